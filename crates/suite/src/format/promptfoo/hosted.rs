//! Providers of models, which become the agent `chat` without tools.

use super::file::FILE;
use super::provider::{Provider, Written, no_agent};
use super::reading::Reading;

/// Keys of the configuration of a model with its system prompt.
const INSTRUCTIONS: [&str; 3] = ["instructions", "systemInstruction", "systemPrompt"];

/// Keys of the configuration of a model that change nothing here, or for which the environment has a value.
const OF_MODELS: [(&str, &str); 14] = [
    ("temperature", "the default of the model is used"),
    ("max_tokens", "the default of the model is used"),
    ("max_completion_tokens", "the default of the model is used"),
    ("max_output_tokens", "the default of the model is used"),
    ("top_p", "the default of the model is used"),
    ("seed", "the default of the model is used"),
    ("presence_penalty", "the default of the model is used"),
    ("frequency_penalty", "the default of the model is used"),
    ("num_predict", "the default of the model is used"),
    ("apiKey", "keys are read from the environment"),
    ("apiKeyEnvar", "keys are read from the environment"),
    ("organization", "it is not sent"),
    ("showThinking", "the thinking of a model is never a part of its answer"),
    ("cost", "prices come from `pricing` in the project's configuration"),
];

/// Keys of the configuration of a model without which answers would differ.
const NOT_OF_MODELS: [(&str, &str); 13] = [
    ("tools", "the tools of a provider are not offered to the model"),
    ("tool_choice", "the tools of a provider are not offered to the model"),
    ("functions", "the tools of a provider are not offered to the model"),
    ("functionToolCallbacks", "the tools of a provider are not offered to the model"),
    ("response_format", "the format of the answer is not requested"),
    ("responseSchema", "the format of the answer is not requested"),
    ("output_format", "the format of the answer is not requested"),
    ("stop", "texts that end an answer are not sent"),
    ("apiHost", "set the address in a variable such as `OPENAI_BASE_URL`"),
    ("apiBaseUrl", "set the address in a variable such as `OPENAI_BASE_URL`"),
    ("mcp", "the servers of a provider are not started"),
    ("passthrough", "the fields are not sent"),
    ("headers", "the headers are not sent"),
];

impl Reading<'_> {
    /// Configures `provider` as a model without tools.
    pub(super) fn model(&mut self, scheme: &str, rest: &str, written: &Written<'_>, provider: &mut Provider) {
        const KINDS: [&str; 6] = ["chat", "messages", "completion", "responses", "embedding", "embeddings"];
        let (kind, model) = match rest.split_once(':').filter(|(kind, _)| KINDS.contains(kind)) {
            Some((kind, model)) => (Some(kind), model),
            None => (None, rest),
        };
        let found = self.config(written, &INSTRUCTIONS, &OF_MODELS, &NOT_OF_MODELS, provider);
        for (key, value) in found {
            match value.as_str().filter(|text| !text.starts_with(FILE)) {
                Some(text) => provider.system_prompt = Some(text.to_owned()),
                None => provider.broken.push(value.error(format!("`{key}` must be a string"))),
            }
        }
        let is_chat = match scheme {
            "google" => !rest.contains(':'),
            // Their models have names such as `llama3.2:1b`.
            "ollama" | "openrouter" => !matches!(kind, Some("embedding" | "embeddings")),
            // Other kinds are images, assistants and the like. `ft:` begins the name of a model that was fine-tuned.
            _ => {
                !matches!(kind, Some("embedding" | "embeddings"))
                    && (!model.contains(':') || model.starts_with("ft:"))
                    && model != "realtime"
            }
        };
        if !is_chat || model.is_empty() {
            provider.broken.push(no_agent(written, None));
            return;
        }
        let vendor = if (scheme, kind) == ("openai", Some("responses")) { "openai-responses" } else { scheme };
        provider.agent = Some("chat".to_owned());
        provider.model = Some(format!("{vendor}:{model}"));
        provider.tools = Some(Vec::new());
    }
}
