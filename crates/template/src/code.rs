//! Templates in code, where the result of a template is not a value but more code.

use model::decode::Problems;
use model::{Node, NodeKind};

/// Warns about every template in `node` that is in code, that is, in the text under a key called `code`.
pub fn warn_of_code(node: &Node, code: &str, problems: &mut Problems) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| warn_of_code(item, code, problems)),
        NodeKind::Map(entries) => {
            for (key, value) in entries {
                match value.as_str().filter(|_| key.value == code).and_then(placeholder) {
                    Some(inside) => warn(value, code, inside, problems),
                    None => warn_of_code(value, code, problems),
                }
            }
        }
        _ => {}
    }
}

fn warn(node: &Node, code: &str, inside: &str, problems: &mut Problems) {
    let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let name = if !inside.is_empty() && inside.chars().all(is_name) { inside } else { "name" };
    let message = format!("a template in `{code}` becomes part of the code");
    problems.push(node.warning(message).help(format!("expressions can read variables: `data.{name}`")));
}

/// Returns the content of the first placeholder in `text`, if there is one.
fn placeholder(text: &str) -> Option<&str> {
    let (_, rest) = text.split_once("{{").or_else(|| text.split_once("{%"))?;
    let end = rest.find("}}").or_else(|| rest.find("%}"))?;
    Some(rest[..end].trim_matches(|c: char| c == '-' || c.is_whitespace()))
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::{Value, json};

    use super::*;

    fn advice(value: &Value) -> Vec<String> {
        let mut problems = Problems::new();
        warn_of_code(&Node::from_json(value, &Source::new("f", "")), "$expr", &mut problems);
        problems.iter().flat_map(|problem| problem.help.clone()).collect()
    }

    #[test]
    fn a_template_in_code_is_reported_with_the_variable_to_read() {
        let reads = |name: &str| vec![format!("expressions can read variables: `data.{name}`")];
        assert_eq!(advice(&json!({"$expr": "actual === '{{ city }}'"})), reads("city"));
        assert_eq!(advice(&json!([{"a": {"$expr": "actual > {{- user.age -}}"}}])), reads("user.age"));
        assert_eq!(advice(&json!({"$expr": "{{ names | join }}"})), reads("name"));
        assert_eq!(advice(&json!({"$expr": "{% if a %}1{% endif %}"})), reads("name"));
    }

    #[test]
    fn code_without_templates_and_templates_outside_of_code_are_fine() {
        assert!(advice(&json!({"$expr": "[1].every(n => { return {a: {n}} })"})).is_empty());
        assert!(advice(&json!({"$eq": "{{ city }}", "a": ["{{ b }}"], "$expr": "data.city === actual"})).is_empty());
    }
}
