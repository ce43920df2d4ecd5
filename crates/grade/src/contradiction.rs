//! Warnings about two assertions of a case that no trial can meet together.

use std::collections::BTreeMap;

use expect::SourceLocation;
use model::decode::Problems;
use model::{AssertionSpec, Diagnostic, NodeKind};
use serde_json::Value;

use crate::arguments::{self, COMMON};
use crate::assertions::{find, snake_case};
use crate::{folded, grader, promptfoo};

/// Fields that do not affect whether an assertion is met.
const WITHOUT_EFFECT: [&str; 2] = ["capture", "capture_max_chars"];

/// Types with a negation that also denies what more fields select. Fields of other types can select more.
const NARROWED_BY_FIELDS: [&str; 9] = [
    "tool_called",
    "mcp_called",
    "mock_called",
    "permission_asked",
    "commit_created",
    "branch_created",
    "pushed",
    "review_request_created",
    "json_path",
];

/// Types that are met only if their file exists.
const NEED_FILE: [&str; 4] = ["file_exists", "file_contains", "file_not_contains", "file_unchanged"];

/// Tool of which `tool_called` also counts reads of a skill's file, and `no_tool_called` does not.
const SKILL: &str = "Skill";

/// An assertion with its fields, in whichever form they are written.
struct Written<'s> {
    spec: &'s AssertionSpec,
    kind: &'static str,
    fields: BTreeMap<String, Value>,
}

/// Reports each of `assertions` that no trial can meet together with an earlier one.
pub(crate) fn report(assertions: &[AssertionSpec], problems: &mut Problems) {
    let denies =
        |spec: &AssertionSpec| snake_case(&spec.kind.value).split('_').any(|word| matches!(word, "no" | "not"));
    if assertions.len() < 2 || !assertions.iter().any(denies) {
        return;
    }
    let written: Vec<Written<'_>> = assertions.iter().filter_map(Written::of).collect();
    written.iter().for_each(|one| problems.extend(one.misspelt_tool(&written)));
    for (index, later) in written.iter().enumerate() {
        let excluded = |earlier: &&Written<'_>| earlier.denies(later) || later.denies(earlier);
        let Some(earlier) = written[..index].iter().find(excluded) else { continue };
        let place = |one: &Written<'_>| SourceLocation::at(&one.spec.node, one.spec.kind.span).excerpt();
        let (kind, other) = (later.kind, earlier.kind);
        let problem = Diagnostic::warning(format!("no trial can meet both this `{kind}` and `{other}`"));
        let first = format!("`{other}` is at {}; remove one of them, or change what it is about", place(earlier));
        problems.push(problem.at(place(later)).help(first));
    }
}

impl<'s> Written<'s> {
    /// Returns the assertion if it is of a type of this program and its arguments can be read.
    fn of(spec: &'s AssertionSpec) -> Option<Self> {
        if promptfoo::is_meant(spec) || grader::is_meant(spec) {
            return None;
        }
        let assertion = find(&spec.kind.value).filter(|assertion| !assertion.is_implicit())?;
        let entry = arguments::entry(spec, assertion, &mut Problems::new())?;
        let NodeKind::Map(entries) = &entry.kind else { return None };
        let counts = |key: &str| {
            let is_title = key == "text" && assertion.has_caption();
            !is_title && !COMMON.contains(&key) && !WITHOUT_EFFECT.contains(&key)
        };
        let fields = entries.iter().map(|(key, value)| (snake_case(&key.value).into_owned(), value.to_json()));
        let fields = fields.filter(|(key, _)| counts(key)).collect();
        Some(Self { spec, kind: assertion.name, fields })
    }

    /// Returns `true` if it is not met in any trial in which `other` is.
    fn denies(&self, other: &Written<'_>) -> bool {
        if self.spec.about != other.spec.about {
            return false;
        }
        if self.kind == "file_not_exists" && NEED_FILE.contains(&other.kind) {
            return self.fields.contains_key("path")
                && self.fields.get("path") == other.fields.get("path")
                && self.fields.get("created") == other.fields.get("created");
        }
        let is_denied = denied(self.kind) == Some(other.kind);
        is_denied && !other.may_be_none() && self.fields.get("tool").is_none_or(|tool| tool != SKILL) && {
            let is_same = |(key, value): (&String, &Value)| other.fields.get(key) == Some(value);
            match (self.kind, self.text(), other.text()) {
                // A text that contains the forbidden one cannot be there without it.
                ("not_contains", Some(forbidden), Some(wanted)) => folded::find(wanted, forbidden).is_some(),
                _ if NARROWED_BY_FIELDS.contains(&other.kind) => self.fields.iter().all(is_same),
                _ => self.fields == other.fields,
            }
        }
    }

    /// Returns the warning about a forbidden tool whose name is that of an expected one, but for a letter within. Other
    /// names that are alike may be those of two tools: `get_user` and `set_user`, `get_users`.
    fn misspelt_tool(&self, written: &[Written<'_>]) -> Option<Diagnostic> {
        let tool = self.fields.get("tool").filter(|_| self.kind == "no_tool_called")?.as_str()?;
        let others = || written.iter().filter(|other| other.kind == "tool_called" && !other.may_be_none());
        let mut named = others().filter_map(|other| other.fields.get("tool")?.as_str());
        let is_meant = |other: &&str| {
            let (mut letters, mut of_other): (Vec<char>, Vec<char>) = (tool.chars().collect(), other.chars().collect());
            let ends_alike = letters.first() == of_other.first() && letters.last() == of_other.last();
            let is_plural = tool.replace('s', "") == other.replace('s', "");
            letters.sort_unstable();
            of_other.sort_unstable();
            let is_mistake = letters == of_other || letters.len() != of_other.len();
            *other != tool && ends_alike && !is_plural && is_mistake && model::is_one_mistake(tool, other)
        };
        let near = named.clone().find(is_meant).filter(|_| !named.any(|other| other == tool))?;
        let message = format!("`{tool}` is nearly `{near}`, which another assertion of the case expects");
        let key = self.spec.node.get("tool").map_or(self.spec.kind.span, |value| value.span);
        Some(Diagnostic::warning(message).at(SourceLocation::at(&self.spec.node, key).excerpt()).suggest(Some(near)))
    }

    /// Returns the text of `contains` and `not_contains`.
    fn text(&self) -> Option<&str> {
        self.fields.get("text").and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    /// Returns `true` if it can be met without anything that its fields select.
    fn may_be_none(&self) -> bool {
        ["min", "max", "count"].iter().any(|key| self.fields.get(*key).is_some_and(|count| count == 0))
    }
}

/// Returns the type of which `kind` is the negation.
fn denied(kind: &str) -> Option<&'static str> {
    if kind == "json_path_not_exists" {
        return Some("json_path");
    }
    let words: Vec<&str> = kind.split('_').filter(|word| !matches!(*word, "no" | "not")).collect();
    let positive = words.join("_");
    find(&positive).map(|assertion| assertion.name).filter(|name| *name != kind)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::assertions::ASSERTIONS;
    use crate::check::compile;
    use crate::check::tests::case;
    use crate::context::Context;

    use super::*;

    /// Returns the number of pairs that are reported in a case with these assertions.
    fn reported(assertions: &[Value]) -> usize {
        let entry = |(index, value): (usize, &Value)| {
            let mut entry = json!({"id": index.to_string()});
            entry.as_object_mut().unwrap().extend(value.as_object().unwrap().clone());
            entry
        };
        let case = case(&assertions.iter().enumerate().map(entry).collect::<Vec<_>>());
        let problems = compile(&case, &Context::default()).1;
        problems.iter().filter(|problem| problem.message.starts_with("no trial can meet both")).count()
    }

    #[test]
    fn every_negation_has_its_positive_type() {
        let negations = ASSERTIONS.iter().filter_map(|assertion| Some((assertion.name, denied(assertion.name)?)));
        let negations: Vec<(&str, &str)> = negations.collect();
        assert!(negations.contains(&("mock_not_called", "mock_called")), "{negations:?}");
        assert!(negations.contains(&("no_output_contains", "output_contains")), "{negations:?}");
        assert_eq!(negations.len(), 17, "{negations:?}");
        for name in NARROWED_BY_FIELDS.iter().chain(&NEED_FILE) {
            assert!(find(name).is_some_and(|found| found.name == *name), "{name}");
        }
    }

    #[test]
    fn an_assertion_and_its_negation_are_reported() {
        for pair in [
            [json!({"type": "contains", "text": "hello"}), json!({"type": "not_contains", "text": "Hello"})],
            [json!({"type": "not_contains", "text": "hell"}), json!({"type": "contains", "text": "hello"})],
            [json!({"type": "matches", "pattern": "a+"}), json!({"type": "not_matches", "pattern": "a+"})],
            [json!({"type": "file_exists", "path": "a"}), json!({"type": "file_not_exists", "path": "a", "text": "x"})],
            [
                json!({"type": "file_not_exists", "path": "a"}),
                json!({"type": "file_contains", "path": "a", "contains": "x"}),
            ],
            [
                json!({"type": "tool_called", "tool": "Bash", "args_match": {"command": "ls"}, "min": 2}),
                json!({"type": "tool_not_called", "tool": "Bash"}),
            ],
            [json!({"type": "commit_created", "message": "x"}), json!({"type": "commit_not_created"})],
            [json!({"type": "skill_used", "skill": "a"}), json!({"type": "skill_not_used", "skill": "a"})],
        ] {
            assert_eq!(reported(&pair), 1, "{pair:?}");
        }
    }

    #[test]
    fn assertions_that_a_trial_can_meet_together_are_not_reported() {
        for pair in [
            [json!({"type": "contains", "text": "hello"}), json!({"type": "not_contains", "text": "hello world"})],
            [
                json!({"type": "tool_called", "tool": "Bash"}),
                json!({"type": "no_tool_called", "tool": "Bash", "args_match": "rm"}),
            ],
            [
                json!({"type": "tool_called", "tool": "Bash", "min": 0, "max": 1}),
                json!({"type": "no_tool_called", "tool": "Bash"}),
            ],
            [json!({"type": "tool_called", "tool": "Skill"}), json!({"type": "no_tool_called", "tool": "Skill"})],
            [
                json!({"type": "matches", "pattern": "a", "in": "created_files"}),
                json!({"type": "not_matches", "pattern": "a"}),
            ],
            [
                json!({"type": "file_exists", "path": "a", "created": true}),
                json!({"type": "file_not_exists", "path": "a"}),
            ],
            [json!({"type": "contains", "text": "a"}), json!({"type": "not_contains", "text": "b"})],
        ] {
            assert_eq!(reported(&pair), 0, "{pair:?}");
        }
    }

    #[test]
    fn a_forbidden_tool_that_is_nearly_an_expected_one_is_reported() {
        let problems = |forbidden: &str, expected: &str| {
            let case = case(&[
                json!({"id": "a", "type": "no_tool_called", "tool": forbidden}),
                json!({"id": "b", "type": "tool_called", "tool": expected}),
            ]);
            compile(&case, &Context::default()).1.into_iter().map(|problem| problem.message).collect::<Vec<_>>()
        };
        let nearly = "`lookup_ordr` is nearly `lookup_order`, which another assertion of the case expects";
        assert_eq!(problems("lookup_ordr", "lookup_order"), [nearly]);
        assert_eq!(problems("lookpu_order", "lookup_order").len(), 1);
        for (forbidden, expected) in [
            ("set_order", "get_order"),
            ("get_orders", "get_order"),
            ("list_order", "lists_order"),
            ("read_1", "read_2"),
        ] {
            assert_eq!(problems(forbidden, expected), Vec::<String>::new(), "{forbidden}");
        }
    }
}
