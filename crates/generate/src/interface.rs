//! Documents that an HTTP endpoint publishes about itself: OpenAPI, agent cards, plugin manifests and health checks.

use std::path::Path;

use model::{Node, NodeKind};

use crate::profile::{Evidence, EvidenceKind, Fact, Parameter, Profile, Trait, TraitKind};
use crate::source::openapi;

/// Confidence in statements in an endpoint's documents.
const CONFIDENCE: f64 = 0.9;

/// Paths at which endpoints publish documents, the most informative one first.
pub const INTERFACE_PATHS: [&str; 5] =
    ["/.well-known/agent-card.json", "/.well-known/ai-plugin.json", "/openapi.json", "/health", "/docs"];

/// Returns the facts in an endpoint's JSON document, which is in the file at `path` and was found at `url`. `None` if
/// it is not JSON.
pub fn read_interface(path: &Path, url: &str) -> Option<Profile> {
    let document = suite::read_document(path, url).ok()?;
    if !matches!(document.kind, NodeKind::Map(_)) {
        return None;
    }
    let mut profile = match document.get("openapi").or_else(|| document.get("swagger")) {
        Some(_) => of_openapi(&document),
        None => of_card(&document),
    };
    profile.change_evidence(|evidence| {
        (evidence.kind, evidence.confidence) = (EvidenceKind::Document, CONFIDENCE);
    });
    Some(profile)
}

/// Reads the operations of an agent's own interface. They are not tools of the agent.
fn of_openapi(document: &Node) -> Profile {
    let mut profile = openapi::profile(document);
    for tool in std::mem::take(&mut profile.tools) {
        let parameters: Vec<String> = tool.parameters.iter().map(parameter).collect();
        let text = format!("{}({})", tool.name, parameters.join(", "));
        profile.traits.push(Trait { kind: TraitKind::Endpoint, fact: Fact { text, evidence: tool.evidence } });
    }
    profile
}

fn parameter(one: &Parameter) -> String {
    let kind = one.kind.as_ref().map(|kind| format!(": {kind}")).unwrap_or_default();
    format!("{}{}{kind}", one.name, if one.required { "" } else { "?" })
}

/// Reads an Agent2Agent card, a plugin manifest, or a health check.
fn of_card(document: &Node) -> Profile {
    let text = |node: &Node, key: &str| -> Option<Fact> {
        let value = node.get(key)?;
        Some(Fact::new(value.as_str()?.trim(), Evidence::at(&value.excerpt())))
    };
    let first = |keys: &[&str]| keys.iter().find_map(|key| text(document, key));
    let mut profile = Profile {
        name: first(&["name_for_human", "name", "agent", "service"]).map(|fact| fact.text),
        description: first(&["description", "description_for_human"]),
        instructions: text(document, "description_for_model").into_iter().collect(),
        ..Profile::default()
    };
    if let Some(NodeKind::List(skills)) = document.get("skills").map(|skills| &skills.kind) {
        for skill in skills {
            let Some(name) = text(skill, "name").or_else(|| text(skill, "id")) else { continue };
            let described = text(skill, "description").map(|fact| format!(": {}", fact.text)).unwrap_or_default();
            profile.capabilities.push(Fact { text: format!("{}{described}", name.text), evidence: name.evidence });
        }
    }
    profile.traits.extend(text(document, "model").map(|fact| Trait { kind: TraitKind::Model, fact }));
    profile
}
