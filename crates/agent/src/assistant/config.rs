//! Configuration of an assistant.

use model::decode::{Fields, Problems};
use model::{Diagnostic, Node};

use crate::field::without_functions;

/// Variable that holds the key of this agent.
pub(super) const KEY: &str = "OPENAI_API_KEY";

/// Configuration of an assistant. Its values are never shown, because it may hold a key.
pub(super) struct AssistantConfig {
    pub(super) api: Api,
    pub(super) model: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) key: Option<String>,
}

/// API through which the assistant is accessed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Api {
    /// The Responses API, where each response names the previous one.
    Responses,
    /// The Assistants API, with the id of the assistant to run on a thread.
    Assistants(String),
}

impl AssistantConfig {
    /// Reads a configuration. Returns `None` if it has errors, which are added to `problems`.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let before = problems.len();
        without_functions(node, "assistant", problems);
        let mut fields = Fields::of(node, "an `assistant` agent", problems)?.in_either_case();
        fields.get("type");
        let api = fields.choice("api", &[("responses", false), ("assistants", true)], problems);
        let id_node = fields.get("assistant_id");
        let id = fields.text("assistant_id", problems);
        let model = fields.text("model", problems);
        let instructions = fields.text("instructions", problems);
        let base_url = fields.text("base_url", problems);
        let key = fields.text("api_key", problems);
        fields.finish(problems);
        let api = match (api, id, id_node) {
            (Some(true) | None, Some(id), _) => Api::Assistants(id),
            (Some(false), _, Some(id_node)) => {
                problems.push(
                    id_node
                        .error("the Responses API does not have assistants")
                        .help("write `api: assistants`, or the assistant's `model` and `instructions` in its place"),
                );
                Api::Responses
            }
            (Some(true), None, None) => {
                problems.push(node.get("api").unwrap_or(node).error("`api: assistants` needs an `assistant_id`"));
                Api::Responses
            }
            _ => Api::Responses,
        };
        (problems.len() == before).then_some(Self { api, model, instructions, base_url, key })
    }

    /// Returns the model to request. The run's model takes precedence over the one in the configuration.
    pub(super) fn model<'s>(&'s self, configured: Option<&'s str>) -> Option<&'s str> {
        let named = |configured: &'s str| {
            let bare = ["openai:", "openai-responses:"].iter().find_map(|prefix| configured.strip_prefix(prefix));
            bare.unwrap_or(configured)
        };
        configured.map(named).or(self.model.as_deref())
    }

    /// Returns the providers, with the configured key if there is one.
    pub(super) fn providers(&self, providers: &llm::Providers) -> llm::Providers {
        self.key.as_deref().map_or_else(|| providers.clone(), |key| providers.with(KEY, key))
    }

    /// Returns the address of the service. The configuration takes precedence over the command line.
    pub(super) fn base_url<'s>(&'s self, given: Option<&'s str>) -> Option<&'s str> {
        self.base_url.as_deref().or(given)
    }

    /// Returns the error for a configuration without a model.
    pub(super) fn without_model(node: &Node) -> Diagnostic {
        let place = node.get("type").unwrap_or(node);
        place.error("`assistant` needs a `model`").help("or an `assistant_id`, whose assistant has one")
    }
}
