//! Assertions that are functions of the program that uses trialrun.

use std::sync::Arc;

use model::text::shortened;
use model::{Arguments, AssertionSpec, Evidence, Node, NodeKind, Status};
use serde_json::{Map, Value, json};

use crate::arguments::COMMON;
use crate::context::Context;
use crate::functions::Functions;
use crate::given::{self, ResultKeys};
use crate::matcher::{Judgement, Matcher};
use crate::verdict::Verdict;

/// Maximum number of characters of an answer that are shown in a message.
const SHOWN: usize = 300;

/// Compiles an assertion that is a function of the program. Returns its name and its matcher.
pub(crate) fn compile(spec: &AssertionSpec, context: &Context<'_>) -> Option<(&'static str, Arc<dyn Matcher>)> {
    let functions = context.scripts?.functions()?;
    let name = *functions.assertions().iter().find(|name| **name == spec.kind.value)?;
    let matcher = FunctionCheck { name, arguments: arguments(spec), functions: Arc::clone(functions) };
    Some((name, Arc::new(matcher)))
}

/// Returns the arguments: the value after the colon, or the fields of the entry.
fn arguments(spec: &AssertionSpec) -> Value {
    match &spec.arguments {
        Arguments::Brief(value) => value.to_json(),
        Arguments::Listed(values) => values.iter().map(Node::to_json).collect(),
        Arguments::Fields => {
            let NodeKind::Map(entries) = &spec.node.kind else { return Value::Null };
            let own = entries.iter().filter(|(key, _)| !COMMON.contains(&key.value.as_str()));
            Value::Object(own.map(|(key, value)| (key.value.clone(), value.to_json())).collect())
        }
    }
}

/// An assertion that is a function of the program.
#[derive(Debug)]
struct FunctionCheck {
    name: &'static str,
    arguments: Value,
    functions: Arc<dyn Functions>,
}

impl FunctionCheck {
    fn read(&self, answer: Value) -> Result<Verdict, String> {
        let name = self.name;
        match answer {
            Value::Bool(true) => Ok(Verdict::met(format!("`{name}` holds"))),
            Value::Bool(false) => {
                Ok(Verdict { status: Status::Unmet, ..Verdict::met(format!("`{name}` does not hold")) })
            }
            Value::Object(map) => self.read_map(map),
            Value::Null => Err("it returned nothing; it must return true, false, or a map with `passed`".to_owned()),
            other => {
                let shown = shortened(&other.to_string(), SHOWN);
                Err(format!("it must return true, false, or a map with `passed`, not {shown}"))
            }
        }
    }

    fn read_map(&self, mut map: Map<String, Value>) -> Result<Verdict, String> {
        let name = self.name;
        let wrong = |key: &str, kind: &str| format!("`{key}` must be {kind}");
        let mut text = |key: &str| match map.remove(key)? {
            Value::Null => None,
            Value::String(text) => Some(text),
            other => Some(other.to_string()),
        };
        let (reason, expected, actual) = (text("reason"), text("expected"), text("actual"));
        let (status, plain) = match map.remove("passed") {
            Some(Value::Bool(true)) => (Status::Met, "holds"),
            Some(Value::Bool(false)) => (Status::Unmet, "does not hold"),
            Some(Value::Null) => (Status::Undecided, "cannot be decided"),
            Some(_) => return Err(wrong("passed", "true, false or null")),
            None => return Err("it returned a map without `passed`".to_owned()),
        };
        let reason = reason.unwrap_or_else(|| format!("`{name}` {plain}"));
        let mut verdict = Verdict { status, expected, actual, ..Verdict::met(reason) };
        match map.remove("score") {
            None | Some(Value::Null) => {}
            Some(score) => match score.as_f64() {
                Some(score) if (0.0..=1.0).contains(&score) => verdict = verdict.scored(score),
                _ => return Err(wrong("score", "a number from 0 to 1")),
            },
        }
        match map.remove("evidence") {
            None | Some(Value::Null) => {}
            Some(Value::Array(lines)) if lines.iter().all(Value::is_string) => {
                verdict = verdict.evidence(lines.iter().filter_map(Value::as_str).map(str::to_owned));
            }
            Some(_) => return Err(wrong("evidence", "a list of strings")),
        }
        match map.keys().next() {
            Some(key) => Err(format!("it returned the unknown key `{key}`")),
            None => Ok(verdict),
        }
    }
}

impl Matcher for FunctionCheck {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let asked = json!({
            "arguments": self.arguments,
            "answer": evidence.trace.answer,
            "result": given::all(evidence, &ResultKeys::All),
            "directory": evidence.collected.sandbox,
        });
        let verdict = self.functions.check(self.name, asked).and_then(|answer| self.read(answer));
        Ok(verdict.map_err(|reason| format!("`{}`: {reason}", self.name))?)
    }

    fn is_function(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use model::Case;

    use super::*;
    use crate::check::{compile as compile_case, grade, mistake};
    use crate::example::EvidenceBuilder;
    use crate::scripts::Scripts;

    /// Returns the arguments of `echo` as its answer, and fails for `fail`.
    #[derive(Debug)]
    struct Echo;

    impl Functions for Echo {
        fn assertions(&self) -> &[&'static str] {
            &["echo", "fail"]
        }

        fn operators(&self) -> &[String] {
            &[]
        }

        fn check(&self, name: &str, evidence: Value) -> Result<Value, String> {
            match name {
                "echo" => Ok(evidence["arguments"].clone()),
                _ => Err(format!("it threw with {}", evidence["answer"])),
            }
        }

        fn compare(&self, _: &str, _: Value) -> Result<Value, String> {
            Err(String::new())
        }
    }

    /// Judges an assertion; returns its status, score and reason, and the mistake of the test.
    fn judged(kind: &str, argument: &Value) -> (Status, Option<f64>, String, Option<String>) {
        let argument = Node::from_json(argument, &model::Source::new("case.yaml", ""));
        let mut case = Case::new("c", argument.excerpt());
        case.assertions.push(AssertionSpec {
            id: "a".into(),
            kind: model::Spanned::new(kind.into(), model::Span::default()),
            weight: 1.0,
            node: argument.clone(),
            arguments: Arguments::Brief(argument),
            about: model::AssertionScope::Trial,
        });
        let scripts = Scripts::default().with_functions(Some(Arc::new(Echo)));
        let (checks, problems) = compile_case(&case, &Context { scripts: Some(&scripts), ..Context::default() });
        assert!(problems.is_empty(), "{problems:?}");
        let findings = grade(&checks, &EvidenceBuilder::new().answer("hi").evidence());
        let finding = findings[0].clone();
        (finding.status, finding.score, finding.reason, mistake(&checks, &findings))
    }

    #[test]
    fn a_function_decides_an_assertion() {
        let whole = json!({"passed": true, "score": 0.5, "reason": "half of it", "evidence": ["x"]});
        assert_eq!(judged("echo", &json!(true)), (Status::Met, Some(1.0), "`echo` holds".into(), None));
        assert_eq!(judged("echo", &json!(false)), (Status::Unmet, Some(0.0), "`echo` does not hold".into(), None));
        assert_eq!(judged("echo", &whole), (Status::Met, Some(0.5), "half of it".into(), None));
        let open = judged("echo", &json!({"passed": null, "reason": "no network"}));
        assert_eq!(open, (Status::Undecided, None, "no network".into(), None));
    }

    #[test]
    fn values_other_than_texts_are_shown_as_json() {
        let check = FunctionCheck { name: "echo", arguments: Value::Null, functions: Arc::new(Echo) };
        let verdict = check.read(json!({"passed": false, "expected": 1, "actual": ["a"]})).unwrap();
        assert_eq!((verdict.expected.as_deref(), verdict.actual.as_deref()), (Some("1"), Some(r#"["a"]"#)));
    }

    #[test]
    fn everything_else_is_a_mistake_of_the_test() {
        for (kind, argument, expected) in [
            ("fail", json!(true), "it threw with \"hi\""),
            ("echo", json!(null), "it returned nothing"),
            ("echo", json!("yes"), "it must return true, false, or a map with `passed`, not \"yes\""),
            ("echo", json!({"score": 1}), "it returned a map without `passed`"),
            ("echo", json!({"passed": 1}), "`passed` must be true, false or null"),
            ("echo", json!({"passed": true, "score": 2}), "`score` must be a number from 0 to 1"),
            ("echo", json!({"passed": true, "why": "x"}), "it returned the unknown key `why`"),
        ] {
            let (status, _, reason, mistake) = judged(kind, &argument);
            assert!(status == Status::Undecided && reason.starts_with(&format!("`{kind}`: {expected}")), "{reason}");
            assert!(mistake.is_some_and(|mistake| mistake.ends_with(&reason)), "{reason}");
        }
    }
}
