//! A list of tools: the result of MCP's `tools/list`, or the `tools` of a request in OpenAI's or Anthropic's format.

use std::path::Path;

use model::{Node, NodeKind};

use super::{Found, has_extension};
use crate::profile::{Evidence, Parameter, Profile, ToolFact};

pub(super) fn read(path: &Path, shown: &str) -> Option<Found> {
    if !has_extension(path, &["json", "yaml", "yml"]) {
        return None;
    }
    let document = match suite::read_document(path, shown) {
        Ok(document) => document,
        Err(problems) => return Some(Err(problems)),
    };
    let tools: Vec<ToolFact> = items(&document)?.iter().filter_map(tool).collect();
    (!tools.is_empty()).then(|| Ok(Profile { tools, ..Profile::default() }))
}

fn items(document: &Node) -> Option<&[Node]> {
    let list = document.get("tools").or_else(|| document.get("result")?.get("tools")).unwrap_or(document);
    match &list.kind {
        NodeKind::List(items) => Some(items),
        _ => None,
    }
}

fn tool(item: &Node) -> Option<ToolFact> {
    let function = item.get("function").unwrap_or(item);
    let name = function.get("name")?;
    let schemas = ["inputSchema", "input_schema", "parameters"];
    let schema = schemas.iter().find_map(|key| function.get(key));
    Some(ToolFact {
        name: name.as_str()?.to_owned(),
        description: function.get("description").and_then(Node::as_str).map(str::to_owned),
        parameters: schema.map(parameters).unwrap_or_default(),
        evidence: vec![Evidence::at(&name.excerpt())],
    })
}

/// Returns the properties of an object's JSON Schema.
pub(super) fn parameters(schema: &Node) -> Vec<Parameter> {
    let required: Vec<&str> = match schema.get("required").map(|list| &list.kind) {
        Some(NodeKind::List(names)) => names.iter().filter_map(Node::as_str).collect(),
        _ => Vec::new(),
    };
    let Some(NodeKind::Map(properties)) = schema.get("properties").map(|map| &map.kind) else { return Vec::new() };
    let parameter = |name: &str, schema: &Node| Parameter {
        name: name.to_owned(),
        kind: kind(schema),
        required: required.contains(&name),
    };
    properties.iter().map(|(name, schema)| parameter(&name.value, schema)).collect()
}

/// Returns the type that a schema names.
pub(super) fn kind(schema: &Node) -> Option<String> {
    match &schema.get("type")?.kind {
        NodeKind::String(kind) => Some(kind.clone()),
        NodeKind::List(kinds) => Some(kinds.iter().filter_map(Node::as_str).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}
