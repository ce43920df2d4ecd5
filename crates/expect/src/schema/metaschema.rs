//! Mistakes that the library finds in a schema, reported at their locations in the user's file.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::{Location, LocationSegment};
use jsonschema::types::JsonType;
use jsonschema::{Draft, ReferencingError, ValidationError};
use model::{Diagnostic, Node, NodeKind, Span, nearest};
use serde_json::Value;

use super::mismatch::messages;
use super::vocabulary::{TYPES, draft, draft_addresses};

/// Returns the draft in which `root` is written, or the problem if it is not a schema.
pub(super) fn draft_of(root: &Node) -> Result<Draft, Box<Diagnostic>> {
    if !matches!(root.kind, NodeKind::Bool(_) | NodeKind::Map(_)) {
        return Err(Box::new(root.error(format!("a schema must be a map, not {}", root.kind_name()))));
    }
    let Some(node) = root.get("$schema") else { return Ok(Draft::Draft7) };
    node.as_str().and_then(draft).ok_or_else(|| {
        let known = draft_addresses();
        let written = node.as_str().map_or_else(|| node.kind_name().to_owned(), |text| format!("`{text}`"));
        let near = node.as_str().and_then(|text| nearest(text, known.iter().map(String::as_str)));
        let problem = node.error(format!("`$schema` must name a version of JSON Schema, not {written}")).suggest(near);
        Box::new(problem.help(format!("known versions: {}", known.join(", "))))
    })
}

/// Returns the violations of the metaschema in `root`.
pub(super) fn mistakes(draft: Draft, root: &Node) -> Vec<(Span, Diagnostic)> {
    let metaschema = match draft {
        Draft::Draft4 => jsonschema::draft4::meta::validator(),
        Draft::Draft6 => jsonschema::draft6::meta::validator(),
        Draft::Draft201909 => jsonschema::draft201909::meta::validator(),
        Draft::Draft202012 => jsonschema::draft202012::meta::validator(),
        _ => jsonschema::draft7::meta::validator(),
    };
    let schema = root.to_json();
    let errors: Vec<_> = metaschema.iter_errors(&schema).collect();
    let mut found = Vec::new();
    for error in &errors {
        innermost(error, &mut found);
    }
    // Regular expressions are checked elsewhere, because the library supports less of ECMAScript.
    found.retain(|error| match error.kind() {
        ValidationErrorKind::Format { .. } => false,
        ValidationErrorKind::PropertyNames { error } => !matches!(error.kind(), ValidationErrorKind::Format { .. }),
        _ => true,
    });
    found.into_iter().map(|error| problem(error, root, &schema)).collect()
}

/// Collects the errors in the alternatives whose type is right, such as a list of schemas under `items`.
fn innermost<'e, 'v>(error: &'e ValidationError<'v>, found: &mut Vec<&'e ValidationError<'v>>) {
    let ValidationErrorKind::AnyOf { context } = error.kind() else { return found.push(error) };
    let is_of_type = |errors: &&Vec<ValidationError<'static>>| {
        let is_other = |inner: &ValidationError<'_>| {
            matches!(inner.kind(), ValidationErrorKind::Type { .. }) && inner.instance_path() == error.instance_path()
        };
        !errors.iter().any(is_other)
    };
    let mut fitting = context.iter().filter(is_of_type).flatten().peekable();
    if name(error.instance_path()).0 == "type" || fitting.peek().is_none() {
        return found.push(error);
    }
    for inner in fitting {
        innermost(inner, found);
    }
}

fn problem(error: &ValidationError<'_>, root: &Node, schema: &Value) -> (Span, Diagnostic) {
    let node = find(root, error.instance_path());
    let value = error.instance();
    let (keyword, indices) = name(error.instance_path());
    let problem = match error.kind() {
        ValidationErrorKind::Type { kind: TypeKind::Multiple(_) } => {
            node.error(format!("a schema must be a map, not {}", node.kind_name()))
        }
        ValidationErrorKind::Type { kind: TypeKind::Single(needed @ (JsonType::Object | JsonType::Array)) } => {
            let needed = if *needed == JsonType::Object { "a map" } else { "a list" };
            node.error(format!("`{keyword}{indices}` must be {needed}, not {}", node.kind_name()))
        }
        ValidationErrorKind::AnyOf { .. } if keyword == "type" => {
            let shown = value.as_str().map_or_else(|| value.to_string(), |text| format!("`{text}`"));
            let near = value.as_str().and_then(|text| nearest(text, TYPES.iter().copied()));
            node.error(format!("`type` must be one of {}, not {shown}", TYPES.join(", "))).suggest(near)
        }
        _ => node.error(format!("`{keyword}{indices}` {}", messages(error, schema).join(", "))),
    };
    let help = match (keyword.as_str(), value.as_ref()) {
        ("required", Value::Bool(_)) => {
            "list the names of required properties in `required` of the object that has them"
        }
        ("exclusiveMinimum", Value::Bool(_)) => {
            "write the bound here instead of `minimum`; only draft-04 has a boolean"
        }
        ("exclusiveMaximum", Value::Bool(_)) => {
            "write the bound here instead of `maximum`; only draft-04 has a boolean"
        }
        ("items", Value::Array(_)) => "in draft 2020-12, write a list under `prefixItems`",
        _ => return (node.span, problem),
    };
    (node.span, problem.help(help))
}

/// Returns the last name in a path and the indices after it: `required` and `[0]`.
fn name(path: &Location) -> (String, String) {
    let (mut name, mut indices) = (String::new(), String::new());
    for segment in path {
        match segment {
            LocationSegment::Index(at) => indices.push_str(&format!("[{at}]")),
            segment => {
                name = segment.to_string();
                indices.clear();
            }
        }
    }
    (name, indices)
}

/// Returns the node at `path`, or the nearest one around it.
fn find<'a>(root: &'a Node, path: &Location) -> &'a Node {
    let mut node = root;
    for segment in path {
        let next = match (segment, &node.kind) {
            (LocationSegment::Index(at), NodeKind::List(items)) => items.get(at),
            (segment, _) => node.get(&segment.to_string()),
        };
        let Some(next) = next else { break };
        node = next;
    }
    node
}

/// If the schema does not compile because the target of a reference does not exist, returns that reference and the
/// problem.
pub(super) fn unresolved<'a>(error: &ValidationError<'_>, references: &[&'a Node]) -> Option<(&'a Node, Diagnostic)> {
    let ValidationErrorKind::Referencing(reason) = error.kind() else { return None };
    let words = reason.to_string();
    let node = references.iter().find(|node| {
        let reference = node.as_str().unwrap_or_default();
        let (address, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let last = if fragment.is_empty() { address } else { fragment };
        !last.is_empty() && words.contains(&format!("{last}'"))
    })?;
    let reference = node.as_str().unwrap_or_default();
    let problem = match reason {
        ReferencingError::Unretrievable { .. } => node
            .error(format!("`{reference}` is outside of this schema, and references are never fetched"))
            .help("copy what it refers to into `definitions` and refer to that"),
        ReferencingError::PointerToNowhere { .. } | ReferencingError::NoSuchAnchor { .. } => node
            .error(format!("`{reference}` does not exist in the schema"))
            .help("a part is kept under `definitions` and referred to as `#/definitions/name`"),
        _ => node.error(format!("`{reference}` cannot be resolved: {words}")),
    };
    Some((node, problem))
}

/// Returns the references that lead back to themselves for the same value, so that validation would never end.
pub(super) fn circles(root: &Node, references: &[&Node]) -> Vec<(Span, Diagnostic)> {
    let circular = references.iter().filter(|reference| is_circular(root, reference));
    let problem = |node: &&Node| {
        let problem = node.error("this reference refers to itself for the same value and never ends");
        (node.span, problem.help("refer to it from below `properties` or `items`"))
    };
    circular.map(problem).collect()
}

fn is_circular(root: &Node, reference: &Node) -> bool {
    let mut seen: Vec<*const Node> = Vec::new();
    let mut waiting: Vec<&Node> = target(root, reference).into_iter().collect();
    while let Some(schema) = waiting.pop() {
        let NodeKind::Map(entries) = &schema.kind else { continue };
        if seen.contains(&std::ptr::from_ref(schema)) {
            continue;
        }
        seen.push(schema);
        for (key, node) in entries {
            match (key.value.as_str(), &node.kind) {
                ("$ref", _) if std::ptr::eq(node, reference) => return true,
                ("$ref", _) => waiting.extend(target(root, node)),
                ("not" | "if" | "then" | "else", _) => waiting.push(node),
                ("allOf" | "anyOf" | "oneOf", NodeKind::List(items)) => waiting.extend(items),
                _ => {}
            }
        }
    }
    false
}

/// Returns the part of the schema to which a pointer such as `#/definitions/name` leads.
fn target<'a>(root: &'a Node, reference: &Node) -> Option<&'a Node> {
    reference.as_str()?.strip_prefix('#')?.split('/').skip(1).try_fold(root, |node, step| {
        let step = step.replace("~1", "/").replace("~0", "~");
        match &node.kind {
            NodeKind::List(items) => items.get(step.parse::<usize>().ok()?),
            _ => node.get(&step),
        }
    })
}

/// Returns the problem if the library cannot compile the schema for any other reason.
pub(super) fn uncompiled(error: &ValidationError<'_>, root: &Node) -> (Span, Diagnostic) {
    let node = find(root, error.instance_path());
    (node.span, node.error(format!("the schema cannot be compiled: {error}")))
}
