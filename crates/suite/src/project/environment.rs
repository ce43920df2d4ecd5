//! `${env.NAME}` in a configuration is replaced by the variable's value. Nothing else in the environment is visible.

use std::collections::BTreeMap;

use model::decode::Problems;
use model::{Diagnostic, DiagnosticKind, Node, NodeKind, nearest};

use crate::module_tree::{FUNCTION, REGEX};
use crate::shell::variable_in_capitals;

/// Start of a reference. A `$` before it escapes it.
const OPENING: &str = "${env.";

/// Environment variables by name.
pub type Environment = BTreeMap<String, String>;

/// A reference that could not be resolved, and the keys that lead to it.
#[derive(Debug, Clone)]
pub struct Missing {
    /// Keys from the outermost to the innermost; items of lists are numbers.
    pub way: Vec<String>,
    /// Problem with its location.
    pub problem: Diagnostic,
}

/// Replaces every reference to a variable in `node`. If one cannot be resolved, it stays as written.
pub fn fill(node: &Node, environment: &Environment, missing: &mut Vec<Missing>) -> Node {
    Filling { environment, way: Vec::new(), missing }.node(node)
}

/// Removes the problems under `way` from `missing` and returns them.
pub fn take_below(missing: &mut Vec<Missing>, way: &[&str]) -> Problems {
    let is_below = |one: &Missing| one.way.len() >= way.len() && one.way.iter().zip(way).all(|(is, key)| is == key);
    let (below, others) = std::mem::take(missing).into_iter().partition(is_below);
    *missing = others;
    let below: Vec<Missing> = below;
    below.into_iter().map(|one| one.problem).collect()
}

struct Filling<'a> {
    environment: &'a Environment,
    way: Vec<String>,
    missing: &'a mut Vec<Missing>,
}

impl Filling<'_> {
    fn node(&mut self, node: &Node) -> Node {
        let is_code = node.tag.as_deref().is_some_and(|tag| tag == FUNCTION || tag == REGEX);
        let kind = match &node.kind {
            NodeKind::String(text) if !is_code && text.contains(OPENING) => NodeKind::String(self.text(text, node)),
            NodeKind::List(items) => {
                let items = items.iter().enumerate();
                NodeKind::List(items.map(|(at, item)| self.below(at.to_string(), item)).collect())
            }
            NodeKind::Map(entries) => NodeKind::Map(
                entries.iter().map(|(key, value)| (key.clone(), self.below(key.value.clone(), value))).collect(),
            ),
            other => other.clone(),
        };
        Node { kind, ..node.clone() }
    }

    fn below(&mut self, key: String, node: &Node) -> Node {
        self.way.push(key);
        let filled = self.node(node);
        self.way.pop();
        filled
    }

    fn text(&mut self, text: &str, node: &Node) -> String {
        let mut done = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(offset) = rest.find(OPENING) {
            let (before, reference) = rest.split_at(offset);
            let inside = &reference[OPENING.len()..];
            if let Some(before) = before.strip_suffix('$') {
                done.extend([before, OPENING]);
                rest = inside;
                continue;
            }
            done.push_str(before);
            let Some((name, after)) = inside.split_once('}').filter(|(name, _)| is_name(name)) else {
                let end = inside.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
                let name = &inside[..end.unwrap_or_default()];
                let name = if is_name(name) && !name.is_empty() { name } else { "NAME" };
                let problem = node
                    .error(format!("`{OPENING}` is not followed by the name of a variable"))
                    .help(format!("write `${{env.{name}}}`"));
                self.report(problem);
                done.push_str(OPENING);
                rest = inside;
                continue;
            };
            match self.environment.get(name).filter(|value| !value.is_empty()) {
                Some(value) => done.push_str(value),
                None => {
                    let problem = self.unset(name, node);
                    self.report(problem);
                    done.push_str(&reference[..reference.len() - after.len()]);
                }
            }
            rest = after;
        }
        done + rest
    }

    fn unset(&self, name: &str, node: &Node) -> Diagnostic {
        let state = if self.environment.contains_key(name) { "is empty" } else { "is not set" };
        let near = nearest(name, self.environment.keys().map(String::as_str).filter(|other| *other != name));
        node.error(format!("`{}` needs the `{name}` variable, which {state}", self.way.join(".")))
            .suggest(near)
            .help(format!("set `{name}` in the environment of this command"))
            .of(DiagnosticKind::UnsetVariable(name.to_owned()))
    }

    fn report(&mut self, problem: Diagnostic) {
        self.missing.push(Missing { way: self.way.clone(), problem });
    }
}

/// Returns the name in the first `${NAME}` of `text`, as shells write variables, or in a `$NAME` in capitals.
pub fn shell_variable(text: &str) -> Option<&str> {
    let mut inside = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    let braced = inside.find(|(name, _)| is_name(name) && !name.is_empty()).map(|(name, _)| name);
    braced.or_else(|| variable_in_capitals(text))
}

/// Warns about variables in `node` that are written as shells write them, which are not replaced.
pub fn report_shell_variables(node: &Node, problems: &mut Problems) {
    match &node.kind {
        NodeKind::List(items) => items.iter().for_each(|item| report_shell_variables(item, problems)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| report_shell_variables(value, problems)),
        NodeKind::String(text) => {
            if let Some(name) = shell_variable(text) {
                let problem = node.warning(format!("the variable `{name}` is not filled in here"));
                problems.push(problem.help(for_value(name)));
            }
        }
        _ => {}
    }
}

/// Returns the way to write the value of the variable `name`.
pub fn for_value(name: &str) -> String {
    format!("write `\"${{env.{name}}}\"` for the value of the variable")
}

fn is_name(text: &str) -> bool {
    text.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
        && text.starts_with(|first: char| !first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use model::Source;
    use serde_json::json;

    use super::*;

    fn filled(value: &serde_json::Value) -> (serde_json::Value, Vec<String>) {
        let environment: Environment =
            [("KEY", "k1"), ("EMPTY", ""), ("HOST", "h")].map(|(name, value)| (name.into(), value.into())).into();
        let mut missing = Vec::new();
        let node = fill(&Node::from_json(value, &Source::new("c", "")), &environment, &mut missing);
        (node.to_json(), missing.into_iter().map(|one| one.problem.message).collect())
    }

    #[test]
    fn references_are_resolved_in_every_string() {
        let (value, problems) = filled(&json!({"a": ["Bearer ${env.KEY}", "${env.HOST}:${env.KEY}"], "b": 1}));
        assert_eq!((value, problems), (json!({"a": ["Bearer k1", "h:k1"], "b": 1}), vec![]));
    }

    #[test]
    fn a_dollar_sign_escapes_a_reference() {
        let (value, problems) = filled(&json!(["$${env.KEY} ${env.KEY}", "${other} $5 ${KEY}"]));
        assert_eq!((value, problems), (json!(["${env.KEY} k1", "${other} $5 ${KEY}"]), vec![]));
    }

    #[test]
    fn missing_variables_are_reported_with_their_key_and_stay_as_written() {
        let (value, problems) = filled(&json!({"agents": {"bot": {"url": "x${env.NO}y${env.EMPTY}${env.1}"}}}));
        assert_eq!(value["agents"]["bot"]["url"], "x${env.NO}y${env.EMPTY}${env.1}");
        assert_eq!(
            problems,
            [
                "`agents.bot.url` needs the `NO` variable, which is not set",
                "`agents.bot.url` needs the `EMPTY` variable, which is empty",
                "`${env.` is not followed by the name of a variable",
            ]
        );
    }

    #[test]
    fn a_substituted_value_is_not_expanded_again() {
        let environment: Environment = [("A".into(), "${env.B}".into()), ("B".into(), "b".into())].into();
        let mut missing = Vec::new();
        let node = Node::from_json(&json!("${env.A}"), &Source::new("c", ""));
        assert_eq!(fill(&node, &environment, &mut missing).to_json(), json!("${env.B}"));
        assert!(missing.is_empty());
    }
}
