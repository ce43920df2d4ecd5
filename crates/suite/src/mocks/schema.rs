//! Checks the JSON Schema of a mocked tool for mistakes that would only show in the agent's answers. What a schema may
//! have besides, such as the keywords of a newer draft, is not reported.

use model::decode::{Problems, add_unknown_key, shown};
use model::{Diagnostic, DiagnosticKind, Node, NodeKind, nearest};

const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Keywords of all drafts, and those of OpenAPI.
const KEYWORDS: &str = "\
    additionalItems additionalProperties allOf anyOf const contains contentEncoding contentMediaType \
    contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated description \
    discriminator else enum example examples exclusiveMaximum exclusiveMinimum externalDocs format if items \
    maxContains maxItems maxLength maxProperties maximum minContains minItems minLength minProperties minimum \
    multipleOf not nullable oneOf pattern patternProperties prefixItems properties propertyNames readOnly \
    required then title type unevaluatedItems unevaluatedProperties uniqueItems writeOnly xml";

/// Reports the mistakes in the schema of a tool.
pub(super) fn check(schema: &Node, problems: &mut Problems) {
    let is_keyword = |name: &str| {
        let mut known = KEYWORDS.split(' ');
        name.starts_with(['$', 'x']) || known.any(|known| known == name) || nearest(name, KEYWORDS.split(' ')).is_some()
    };
    let is_schema = |value: &Node| match &value.kind {
        NodeKind::String(kind) => TYPES.contains(&kind.as_str()),
        kind => matches!(kind, NodeKind::Map(_)),
    };
    if let NodeKind::Map(entries) = &schema.kind
        && let Some((first, _)) = entries.first()
        && entries.iter().all(|(key, value)| !is_keyword(&key.value) && is_schema(value))
    {
        let message = format!("`{}` is not a keyword of JSON Schema", first.value);
        let problem = Diagnostic::error(message).at(schema.source.excerpt(first.span));
        problems.push(problem.help("write the arguments below `properties`: `{ type: object, properties: { … } }`"));
        return;
    }
    check_part(schema, problems);
}

fn check_part(schema: &Node, problems: &mut Problems) {
    let entries = match &schema.kind {
        NodeKind::Map(entries) => entries.as_slice(),
        NodeKind::Bool(_) => return,
        _ => {
            let problem = schema.error(format!("a JSON Schema must be a map, not {}", shown(schema)));
            let kind = schema.as_str().filter(|kind| TYPES.contains(kind));
            problems.push(
                kind.into_iter().fold(problem, |problem, kind| problem.help(format!("write `{{ type: {kind} }}`"))),
            );
            return;
        }
    };
    for (key, value) in entries {
        match key.value.as_str() {
            "type" => check_types(value, problems),
            "properties" => match &value.kind {
                NodeKind::Map(properties) => properties.iter().for_each(|(_, property)| check_part(property, problems)),
                _ => wrong(value, "properties", "a map", problems),
            },
            "required" => check_required(value, schema.get("properties"), problems),
            "items" => match &value.kind {
                NodeKind::List(items) => items.iter().for_each(|item| check_part(item, problems)),
                _ => check_part(value, problems),
            },
            "enum" if !matches!(value.kind, NodeKind::List(_)) => wrong(value, "enum", "a list", problems),
            "allOf" | "anyOf" | "oneOf" => match &value.kind {
                NodeKind::List(parts) => parts.iter().for_each(|part| check_part(part, problems)),
                _ => wrong(value, &key.value, "a list", problems),
            },
            written if !written.starts_with(['$', 'x']) && !KEYWORDS.split(' ').any(|known| known == written) => {
                let free = KEYWORDS.split(' ').filter(|known| schema.get(known).is_none());
                let Some(near) = nearest(written, free) else { continue };
                let kind = DiagnosticKind::UnknownKey { key: written.to_owned(), meant: Some(near.to_owned()) };
                let problem = Diagnostic::error(format!("`{written}` is not a keyword of JSON Schema")).of(kind);
                let problem = problem.at(value.source.excerpt(key.span)).suggest(Some(near));
                add_unknown_key(schema, problem, problems);
            }
            _ => {}
        }
    }
}

fn wrong(value: &Node, key: &str, needs: &str, problems: &mut Problems) {
    problems.push(value.error(format!("`{key}` must be {needs}, not {}", shown(value))));
}

/// Reports types that JSON Schema does not have.
fn check_types(written: &Node, problems: &mut Problems) {
    let types = match &written.kind {
        NodeKind::List(types) => types.as_slice(),
        _ => std::slice::from_ref(written),
    };
    for node in types {
        let Some(kind) = node.as_str() else {
            wrong(node, "type", "the name of a type", problems);
            continue;
        };
        if !TYPES.contains(&kind) {
            let problem = node.error(format!("`{kind}` is not a type of JSON Schema"));
            problems.push(match nearest(kind, TYPES) {
                Some(near) => problem.suggest(Some(near)),
                None => problem.help(format!("types: {}", TYPES.join(", "))),
            });
        }
    }
}

/// Reports a value of `required` that is not a list of names, and names that are similar to that of a property.
fn check_required(required: &Node, properties: Option<&Node>, problems: &mut Problems) {
    let names = match &required.kind {
        NodeKind::List(names) => names.as_slice(),
        _ => {
            let problem = required.error(format!("`required` must be a list of names, not {}", shown(required)));
            problems.push(match &required.kind {
                NodeKind::String(name) => problem.help(format!("write `[{name}]`")),
                NodeKind::Bool(true) => problem.help("write the name of the property into `required` of the map above"),
                _ => problem,
            });
            return;
        }
    };
    let Some(NodeKind::Map(properties)) = properties.map(|node| &node.kind) else { return };
    let known = || properties.iter().map(|(name, _)| name.value.as_str());
    for node in names {
        if let Some(name) = node.as_str().filter(|name| known().all(|known| known != *name))
            && let Some(near) = nearest(name, known())
        {
            problems.push(node.error(format!("`properties` has no `{name}`")).suggest(Some(near)));
        }
    }
}

#[cfg(test)]
mod tests {
    use model::Source;

    use super::*;
    use crate::document::{self, Language};

    fn found(text: &str) -> Vec<String> {
        let mut problems = Problems::new();
        let schema = document::read(&Source::new("s.yaml", text), Language::Yaml, &mut problems).unwrap();
        check(&schema, &mut problems);
        let line = |problem: &Diagnostic| format!("{} {}", problem.message, problem.help.join(" "));
        problems.iter().map(|problem| line(problem).trim_end().to_owned()).collect()
    }

    #[test]
    fn mistakes_in_the_schema_of_a_tool_are_reported() {
        for (schema, expected) in [
            ("{ proprties: { a: {} } }", "`proprties` is not a keyword of JSON Schema did you mean `properties`?"),
            ("{ properties: { a: { type: strng } } }", "`strng` is not a type of JSON Schema did you mean `string`?"),
            ("{ properties: { a: string } }", "a JSON Schema must be a map, not a string write `{ type: string }`"),
            (
                "{ city: { type: string } }",
                "`city` is not a keyword of JSON Schema write the arguments below `properties`: `{ type: object, \
                 properties: { … } }`",
            ),
            ("{ properties: { a: {} }, required: a }", "`required` must be a list of names, not a string write `[a]`"),
            ("{ properties: { name: {} }, required: [nmae] }", "`properties` has no `nmae` did you mean `name`?"),
            (
                "{ properties: { a: { type: string, required: true } } }",
                "`required` must be a list of names, not a boolean write the name of the property into `required` of \
                 the map above",
            ),
            ("{ properties: { a: { enum: b } } }", "`enum` must be a list, not a string"),
            ("{ anyOf: [{ type: [string, nul] }] }", "`nul` is not a type of JSON Schema did you mean `null`?"),
        ] {
            assert_eq!(found(schema), [expected], "{schema}");
        }
    }

    #[test]
    fn a_schema_may_have_more_than_what_is_checked() {
        for schema in [
            "{ type: object, properties: { type: { type: string }, requires: {} }, required: [other] }",
            "{ $defs: { a: {} }, $ref: '#/$defs/a', x-order: 1, prefixItems: [], patternProperties: {}, hidden: true }",
            "{ items: [{ type: string }, true] }",
            "{ type: array, items: { type: [string, 'null'] }, minItems: 1, additionalItems: false, example: [a] }",
            "{ additionalProperties: { type: string }, dependentRequired: {}, unevaluatedProperties: false, if: {} }",
            "{ multipleOf: 2, uniqueItems: true, contains: {}, propertyNames: {}, not: {}, then: {}, else: {} }",
            "{ definitions: {}, $schema: s, deprecated: true, readOnly: true, writeOnly: false, const: 1 }",
        ] {
            assert_eq!(found(schema), Vec::<String>::new(), "{schema}");
        }
    }
}
