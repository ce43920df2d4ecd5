//! The mapping to the semantic conventions of OpenTelemetry: every name that spans and log records use, as data. A new
//! version of the conventions requires changes only in this file.

/// Version of the GenAI semantic conventions that the names follow. All of these conventions are still in development.
pub(super) const GEN_AI_VERSION: &str = "0.1.0";

// Names of operations.

pub(super) const INVOKE_AGENT: &str = "invoke_agent";
pub(super) const CHAT: &str = "chat";
pub(super) const EXECUTE_TOOL: &str = "execute_tool";

/// Event for the result of an assertion.
pub(super) const EVALUATION_RESULT: &str = "gen_ai.evaluation.result";

// Attributes of the GenAI conventions.

pub(super) const OPERATION: &str = "gen_ai.operation.name";
pub(super) const PROVIDER: &str = "gen_ai.provider.name";
pub(super) const REQUEST_MODEL: &str = "gen_ai.request.model";
pub(super) const RESPONSE_MODEL: &str = "gen_ai.response.model";
pub(super) const AGENT_NAME: &str = "gen_ai.agent.name";
pub(super) const AGENT_VERSION: &str = "gen_ai.agent.version";
pub(super) const CONVERSATION: &str = "gen_ai.conversation.id";
/// All input tokens, cached or not.
pub(super) const INPUT_TOKENS: &str = "gen_ai.usage.input_tokens";
pub(super) const CACHE_READ_TOKENS: &str = "gen_ai.usage.cache_read.input_tokens";
pub(super) const CACHE_WRITE_TOKENS: &str = "gen_ai.usage.cache_creation.input_tokens";
pub(super) const OUTPUT_TOKENS: &str = "gen_ai.usage.output_tokens";
pub(super) const REASONING_TOKENS: &str = "gen_ai.usage.reasoning.output_tokens";
pub(super) const TOOL_NAME: &str = "gen_ai.tool.name";
pub(super) const TOOL_TYPE: &str = "gen_ai.tool.type";
pub(super) const TOOL_CALL: &str = "gen_ai.tool.call.id";
pub(super) const SKILL_NAME: &str = "gen_ai.skill.name";
pub(super) const EVALUATION_NAME: &str = "gen_ai.evaluation.name";
pub(super) const SCORE_VALUE: &str = "gen_ai.evaluation.score.value";
pub(super) const SCORE_LABEL: &str = "gen_ai.evaluation.score.label";
pub(super) const EXPLANATION: &str = "gen_ai.evaluation.explanation";

// Attributes with content, which the conventions exclude by default.

pub(super) const INPUT_MESSAGES: &str = "gen_ai.input.messages";
pub(super) const OUTPUT_MESSAGES: &str = "gen_ai.output.messages";
pub(super) const TOOL_ARGUMENTS: &str = "gen_ai.tool.call.arguments";
pub(super) const TOOL_RESULT: &str = "gen_ai.tool.call.result";

// Attributes of the general conventions.

pub(super) const ERROR_TYPE: &str = "error.type";
pub(super) const SERVICE_NAME: &str = "service.name";
pub(super) const SUITE_NAME: &str = "test.suite.name";
/// Values: `success`, `failure`, `aborted`.
pub(super) const SUITE_STATUS: &str = "test.suite.run.status";
pub(super) const CASE_NAME: &str = "test.case.name";
/// Values: `pass`, `fail`; absent for every other outcome.
pub(super) const CASE_STATUS: &str = "test.case.result.status";
pub(super) const CODE_FILE: &str = "code.file.path";
pub(super) const CODE_LINE: &str = "code.line.number";

// Attributes that the conventions do not cover.

pub(super) const CONVENTIONS: &str = "trialrun.gen_ai_conventions.version";
pub(super) const RUN_ID: &str = "trialrun.run.id";
pub(super) const RUN_LABEL: &str = "trialrun.run.label";
pub(super) const RUN_SIGNAL: &str = "trialrun.run.signal";
/// Prefix for the number of trials with each outcome.
pub(super) const RUN_TRIALS: &str = "trialrun.run.trials";
pub(super) const TRIAL_ID: &str = "trialrun.trial.id";
pub(super) const TRIAL_OUTCOME: &str = "trialrun.trial.outcome";
pub(super) const TRIAL_ARM: &str = "trialrun.trial.arm";
pub(super) const TRIAL_REPETITION: &str = "trialrun.trial.repetition";
pub(super) const TRIAL_FLAKY: &str = "trialrun.trial.flaky";
pub(super) const TRIAL_BASELINE: &str = "trialrun.trial.baseline";
pub(super) const TRIAL_SCORE: &str = "trialrun.trial.score";
pub(super) const TRIAL_MAX_SCORE: &str = "trialrun.trial.max_score";
pub(super) const ATTEMPT: &str = "trialrun.attempt";
pub(super) const COST: &str = "trialrun.cost_usd";
pub(super) const CANONICAL_TOOL: &str = "trialrun.tool.name";
pub(super) const ASSERTION_TYPE: &str = "trialrun.assertion.type";
pub(super) const ASSERTION_WEIGHT: &str = "trialrun.assertion.weight";
pub(super) const JUDGED: &str = "trialrun.assertion.judged";

/// Prefixes of model names, each with the provider that makes these models. A model with any other name has no
/// provider.
const PROVIDERS: [(&str, &str); 13] = [
    ("claude", "anthropic"),
    ("haiku", "anthropic"),
    ("sonnet", "anthropic"),
    ("opus", "anthropic"),
    ("gpt-", "openai"),
    ("o1", "openai"),
    ("o3", "openai"),
    ("o4", "openai"),
    ("gemini", "gcp.gemini"),
    ("command", "cohere"),
    ("mistral", "mistral_ai"),
    ("deepseek", "deepseek"),
    ("grok", "x_ai"),
];

/// Returns the name of a model without its provider: `openai:gpt-5` and `openai/gpt-5` are `gpt-5`.
pub(super) fn model_name(written: &str) -> &str {
    let name = written.split_once(':').map_or(written, |(_, name)| name);
    name.rsplit('/').next().unwrap_or(name)
}

/// Returns the provider of a model, if its name reveals it.
pub(super) fn provider(model: &str) -> Option<&'static str> {
    let name = model_name(model);
    PROVIDERS.iter().find(|(beginning, _)| name.starts_with(beginning)).map(|(_, provider)| *provider)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_provider_of_a_model_follows_from_its_name() {
        let found = ["anthropic:claude-haiku-4-5", "openrouter:openai/gpt-5", "sonnet", "scripted:hello.yaml"];
        assert_eq!(found.map(provider), [Some("anthropic"), Some("openai"), Some("anthropic"), None]);
    }
}
