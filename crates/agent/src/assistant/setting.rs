//! What a project says about an assistant.

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Node};

use crate::field::{either, without_functions};

/// Where a key is put that belongs to the agent alone.
pub(super) const KEY: &str = "OPENAI_API_KEY";

/// What a project says about an assistant. What it holds is never shown.
pub(super) struct Setting {
    pub(super) api: Api,
    pub(super) model: Option<String>,
    pub(super) instructions: Option<String>,
    pub(super) base_url: Option<String>,
    pub(super) key: Option<String>,
}

/// Which interface it is reached by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Api {
    /// Responses, each naming the one before it.
    Responses,
    /// Runs on a thread, by the assistant with this id.
    Assistants(String),
}

impl Setting {
    /// Reads a configuration. `None` where something is wrong, which is in `problems` then.
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let before = problems.len();
        without_functions(node, "assistant", problems);
        let mut fields = Fields::of(node, "an `assistant` agent", problems)?;
        fields.get("type");
        let api = fields.choice("api", &[("responses", false), ("assistants", true)], problems);
        let text = |fields: &mut Fields<'_>, snake: &'static str, camel: &'static str, problems: &mut Problems| {
            let found = if snake == camel { fields.get(snake) } else { either(fields, snake, camel, problems) };
            found.and_then(|node| decode::text(node, &format!("`{snake}`"), problems))
        };
        let id_node = node.get("assistant_id").or_else(|| node.get("assistantId"));
        let id = text(&mut fields, "assistant_id", "assistantId", problems);
        let model = text(&mut fields, "model", "model", problems);
        let instructions = text(&mut fields, "instructions", "instructions", problems);
        let base_url = text(&mut fields, "base_url", "baseUrl", problems);
        let key = text(&mut fields, "api_key", "apiKey", problems);
        fields.finish(problems);
        let api = match (api, id, id_node) {
            (Some(true) | None, Some(id), _) => Api::Assistants(id),
            (Some(false), _, Some(id_node)) => {
                problems.push(
                    id_node
                        .error("the Responses API knows no assistants")
                        .help("write `api: assistants`, or the assistant's `model` and `instructions` in its place"),
                );
                Api::Responses
            }
            (Some(true), None, None) => {
                problems.push(api_node(node).error("`api: assistants` needs an `assistant_id`"));
                Api::Responses
            }
            _ => Api::Responses,
        };
        (problems.len() == before).then_some(Self { api, model, instructions, base_url, key })
    }

    /// The model to ask for: what the run was told goes before what the project says.
    pub(super) fn model<'s>(&'s self, told: Option<&'s str>) -> Option<&'s str> {
        let named = |told: &'s str| {
            let bare = ["openai:", "openai-responses:"].iter().find_map(|prefix| told.strip_prefix(prefix));
            bare.unwrap_or(told)
        };
        told.map(named).or(self.model.as_deref())
    }

    /// What the key and the address are opened with.
    pub(super) fn providers(&self, providers: &llm::Providers) -> llm::Providers {
        self.key.as_deref().map_or_else(|| providers.clone(), |key| providers.with(KEY, key))
    }

    /// Where it is: what the project says goes before what the command line does.
    pub(super) fn base_url<'s>(&'s self, given: Option<&'s str>) -> Option<&'s str> {
        self.base_url.as_deref().or(given)
    }

    /// What is wrong with a model that nobody names.
    pub(super) fn without_model(node: &Node) -> Diagnostic {
        let place = node.get("type").unwrap_or(node);
        place.error("`assistant` needs a `model`").help("or an `assistant_id`, whose assistant has one")
    }
}

fn api_node(node: &Node) -> &Node {
    node.get("api").unwrap_or(node)
}
