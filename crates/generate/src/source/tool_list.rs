//! A list of tools: the result of MCP's `tools/list`, or the `tools` of a request in OpenAI's or Anthropic's format.

use std::path::Path;

use model::{Node, NodeKind};

use super::{ReadResult, has_extension};
use crate::profile::{Evidence, Parameter, Profile, ToolFact};

pub(super) fn read(path: &Path, shown: &str) -> Option<ReadResult> {
    if !has_extension(path, &["json", "yaml", "yml"]) {
        return None;
    }
    let document = match suite::read_document(path, shown) {
        Ok(document) => document,
        Err(problems) => return Some(Err(problems)),
    };
    let tools: Vec<ToolFact> = items(&document)?.iter().filter_map(tool).collect();
    (!tools.is_empty()).then(|| Ok(Profile { tools, ..Profile::default() }.into()))
}

fn items(document: &Node) -> Option<&[Node]> {
    let list = document.get("tools").or_else(|| document.get("result")?.get("tools")).unwrap_or(document);
    match &list.kind {
        NodeKind::List(items) => Some(items),
        _ => None,
    }
}

/// Keys for the schema of a tool's parameters.
const SCHEMAS: [&str; 3] = ["inputSchema", "input_schema", "parameters"];

/// Returns `true` if an item has the name and the schema of a tool.
pub(super) fn has_schema(item: &Node) -> bool {
    let is_schema = |schema: &Node| schema.get("type").or_else(|| schema.get("properties")).is_some();
    let schema = SCHEMAS.iter().find_map(|key| item.get(key));
    schema.is_some_and(is_schema) && item.get("name").and_then(Node::as_str).is_some()
}

/// Returns the tool that a list item defines.
pub(super) fn tool(item: &Node) -> Option<ToolFact> {
    let function = item.get("function").unwrap_or(item);
    let name = function.get("name")?;
    let schema = SCHEMAS.iter().find_map(|key| function.get(key));
    Some(ToolFact {
        name: name.as_str()?.to_owned(),
        description: description(function),
        parameters: schema.map(parameters).unwrap_or_default(),
        evidence: vec![Evidence::at(&name.excerpt())],
    })
}

/// Returns the properties in an object's JSON Schema.
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
        description: description(schema),
    };
    properties.iter().map(|(name, schema)| parameter(&name.value, schema)).collect()
}

/// Returns the description in a schema or a definition.
pub(super) fn description(schema: &Node) -> Option<String> {
    schema.get("description").and_then(Node::as_str).map(str::to_owned)
}

/// Returns the type named in a schema.
pub(super) fn kind(schema: &Node) -> Option<String> {
    match &schema.get("type")?.kind {
        NodeKind::String(kind) => Some(kind.clone()),
        NodeKind::List(kinds) => Some(kinds.iter().filter_map(Node::as_str).collect::<Vec<_>>().join(" or ")),
        _ => None,
    }
}
