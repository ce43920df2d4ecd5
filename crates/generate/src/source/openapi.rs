//! An OpenAPI document, version 2 or 3: each operation is a tool.

use std::path::Path;

use model::{Node, NodeKind};

use super::tool_list::{description, kind, parameters};
use super::{ReadResult, has_extension};
use crate::profile::{Evidence, Fact, Parameter, Profile, ToolFact};

/// HTTP methods of operations.
const METHODS: [&str; 8] = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/// Maximum length of a chain of references.
const MOST_REFERENCES: usize = 20;

pub(super) fn read(path: &Path, shown: &str) -> Option<ReadResult> {
    if !has_extension(path, &["json", "yaml", "yml"]) {
        return None;
    }
    let document = suite::read_document(path, shown).ok()?;
    document.get("openapi").or_else(|| document.get("swagger"))?;
    Some(Ok(profile(&document).into()))
}

pub(crate) fn profile(document: &Node) -> Profile {
    let text = |key: &str| document.get("info").and_then(|info| info.get(key));
    let mut profile = Profile {
        name: text("title").and_then(Node::as_str).map(str::to_owned),
        description: text("description").and_then(|node| {
            Some(Fact { text: node.as_str()?.trim().to_owned(), evidence: vec![Evidence::at(&node.excerpt())] })
        }),
        ..Profile::default()
    };
    let Some(NodeKind::Map(paths)) = document.get("paths").map(|paths| &paths.kind) else { return profile };
    for (path, item) in paths {
        let item = resolved(document, item);
        for method in METHODS {
            if let Some(operation) = item.get(method) {
                profile.tools.push(tool(document, &path.value, method, item, operation));
            }
        }
    }
    profile
}

fn tool(document: &Node, path: &str, method: &str, item: &Node, operation: &Node) -> ToolFact {
    let text = |key: &str| operation.get(key).and_then(Node::as_str).map(str::to_owned);
    let mut found: Vec<Parameter> = Vec::new();
    for list in [item.get("parameters"), operation.get("parameters")].into_iter().flatten() {
        let NodeKind::List(items) = &list.kind else { continue };
        for parameter in items.iter().map(|parameter| resolved(document, parameter)) {
            found.extend(parameter_of(document, parameter));
        }
    }
    if let Some(schema) = body(document, operation) {
        found.extend(parameters(resolved(document, schema)));
    }
    let place = operation.get("operationId").unwrap_or(operation);
    ToolFact {
        name: text("operationId").unwrap_or_else(|| format!("{} {path}", method.to_uppercase())),
        description: text("summary").or_else(|| text("description")),
        parameters: found,
        evidence: vec![Evidence::at(&place.excerpt())],
    }
}

/// Returns a parameter in the path, the query, a header or a form; for version 2, the properties of a body.
fn parameter_of(document: &Node, parameter: &Node) -> Vec<Parameter> {
    if parameter.get("in").and_then(Node::as_str) == Some("body") {
        return parameter.get("schema").map(|schema| parameters(resolved(document, schema))).unwrap_or_default();
    }
    let Some(name) = parameter.get("name").and_then(Node::as_str) else { return Vec::new() };
    let schema = parameter.get("schema").map_or(parameter, |schema| resolved(document, schema));
    let required = matches!(parameter.get("required").map(|node| &node.kind), Some(NodeKind::Bool(true)));
    let description = description(parameter).or_else(|| description(schema));
    vec![Parameter { name: name.to_owned(), kind: kind(schema), required, description }]
}

/// Returns the schema of a request body, preferably that for JSON.
fn body<'a>(document: &'a Node, operation: &'a Node) -> Option<&'a Node> {
    let content = resolved(document, operation.get("requestBody")?).get("content")?;
    let NodeKind::Map(types) = &content.kind else { return None };
    let json = types.iter().find(|(name, _)| name.value.contains("json")).or_else(|| types.first())?;
    json.1.get("schema")
}

/// Follows references within the document.
fn resolved<'a>(document: &'a Node, node: &'a Node) -> &'a Node {
    let mut node = node;
    for _ in 0..MOST_REFERENCES {
        let Some(path) = node.get("$ref").and_then(Node::as_str).and_then(|path| path.strip_prefix("#/")) else {
            break;
        };
        let part = |part: &str| part.replace("~1", "/").replace("~0", "~");
        let Some(target) = path.split('/').try_fold(document, |at, key| at.get(&part(key))) else { break };
        node = target;
    }
    node
}
