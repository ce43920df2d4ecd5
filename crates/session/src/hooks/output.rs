//! Output of post-grade commands: a JSON array of findings on stdout. Any other output does not count.

use model::{Finding, Status};
use runner::hook::found;
use serde_json::{Map, Value};

/// Finding in the output of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookFinding {
    /// What was checked.
    pub text: String,
    /// True if it holds.
    pub passed: bool,
    /// What shows it.
    pub evidence: Option<String>,
}

/// Parses stdout; `None` unless all of it is a JSON array. Each element becomes a finding or a description of the
/// mistake in it.
pub fn read(stdout: &str) -> Option<Vec<Result<HookFinding, String>>> {
    let Value::Array(elements) = serde_json::from_str(stdout.trim()).ok()? else { return None };
    Some(elements.iter().map(element).collect())
}

fn element(element: &Value) -> Result<HookFinding, String> {
    let Value::Object(fields) = element else {
        return Err(format!("is {}; it must be an object with `text` and `passed`", kind(element)));
    };
    let text = match fields.get("text") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(Value::String(_)) => return Err("has an empty `text`".to_owned()),
        Some(other) => return Err(format!("has {} for `text`; it must be a string", kind(other))),
        None => return Err(missing("text", fields)),
    };
    let passed = match fields.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        Some(other) => {
            return Err(format!("has {} for `passed` of `{text}`; it must be true or false", display(other)));
        }
        None => return Err(missing("passed", fields)),
    };
    let evidence = match fields.get("evidence") {
        None | Some(Value::Null) => None,
        Some(Value::String(evidence)) => Some(evidence.clone()),
        Some(other) => Some(other.to_string()),
    };
    Ok(HookFinding { text, passed, evidence })
}

fn missing(field: &str, fields: &Map<String, Value>) -> String {
    let near = model::nearest(field, fields.keys().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; it has `{near}`"));
    format!("lacks `{field}`{near}")
}

fn display(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text {text:?}"),
        other => kind(other).to_owned(),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Returns the findings in the output of `command`. Elements that cannot be parsed become undecided findings.
pub(super) fn findings(stdout: &str, command: &str) -> Vec<Finding> {
    let Some(elements) = read(stdout) else {
        let is_cut = stdout.trim_start().starts_with('[') && stdout.contains(" bytes omitted …]");
        let reason = "its output is too long: at most 256 KiB are kept";
        let undecided = |reason: &str| found(&format!("findings of `{command}`"), Status::Undecided, reason);
        if is_cut {
            return vec![undecided(reason)];
        }
        return unread(stdout).map(|wrong| undecided(&wrong)).into_iter().collect();
    };
    let finding = |(index, element): (usize, Result<HookFinding, String>)| match element {
        Ok(finding) => {
            let usual = if finding.passed { "reported as passed" } else { "reported as failed" };
            let reason = finding.evidence.filter(|evidence| !evidence.trim().is_empty());
            let reason = reason.unwrap_or_else(|| format!("`{command}`: {usual}"));
            found(&finding.text, if finding.passed { Status::Met } else { Status::Unmet }, &reason)
        }
        Err(wrong) => {
            let number = index + 1;
            let reason = format!("element {number} of its output {wrong}");
            found(&format!("element {number} of the output of `{command}`"), Status::Undecided, &reason)
        }
    };
    elements.into_iter().enumerate().map(finding).collect()
}

/// Describes the mistake in output that was apparently meant to be findings but is not a list of them; `None` for any
/// other output.
fn unread(stdout: &str) -> Option<String> {
    const EXPECTED: &str = "its stdout must be only a JSON array of objects with `text` and `passed`";
    let text = stdout.trim();
    if let Ok(Value::Object(_)) = serde_json::from_str(text) {
        return Some(format!("{EXPECTED}; it is a single object, not in an array"));
    }
    let starts = || {
        let starts = text.match_indices(['[', '{']).map(|(offset, _)| offset);
        starts.filter(|at| *at == 0 || text[..*at].ends_with('\n'))
    };
    let is_finding = |value: &Value| value.get("text").is_some() && value.get("passed").is_some();
    let holds_findings = |index: usize| {
        // Text after the first value is ignored here.
        let value = serde_json::Deserializer::from_str(&text[index..]).into_iter::<Value>().next();
        value.and_then(Result::ok).is_some_and(|value| match &value {
            Value::Array(elements) => elements.iter().any(Value::is_object),
            value => is_finding(value),
        })
    };
    match starts().find(|at| holds_findings(*at)) {
        Some(0) => Some(format!("{EXPECTED}; something else follows the first value")),
        Some(at) => {
            let before = text[..at].lines().count();
            let lines = if before == 1 { "1 line precedes".to_owned() } else { format!("{before} lines precede") };
            Some(format!("{EXPECTED}; {lines} it (write logs to stderr)"))
        }
        None => {
            let broken = starts().find(|index| is_begun(&text[*index..]))?;
            let error = serde_json::from_str::<Value>(&text[broken..]).err();
            Some(format!(
                "{EXPECTED}; it is not valid JSON{}",
                error.map_or_else(String::new, |error| format!(": {error}"))
            ))
        }
    }
}

/// Returns `true` if `text`, which is not valid JSON, begins like findings: with an array that ends immediately or
/// starts with an object, or with an object that has `passed`. A log line such as `[info] done` does not.
fn is_begun(text: &str) -> bool {
    let has_passed = || ["\"passed\"", "'passed'", "passed:"].iter().any(|key| text.contains(key));
    match text.strip_prefix('[').map(str::trim_start) {
        Some(inside) => inside.is_empty() || inside.starts_with('{') || (inside.starts_with('"') && has_passed()),
        None => has_passed(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn describe(stdout: &str) -> Vec<(String, Status, String)> {
        let findings = findings(stdout, "look");
        findings.into_iter().map(|finding| (finding.title.unwrap(), finding.status, finding.reason)).collect()
    }

    fn row(title: &str, status: Status, reason: &str) -> (String, Status, String) {
        (title.to_owned(), status, reason.to_owned())
    }

    #[test]
    fn valid_elements_count_and_invalid_ones_are_reported() {
        let stdout = r#" [{"text": "a", "passed": true, "evidence": "seen"}, {"text": "b", "passed": "false"},
            {"text": "c", "passed": false, "evidence": {"n": 1}}, {"text": "d", "pased": true}, 7] "#;
        assert_eq!(
            describe(stdout),
            [
                row("a", Status::Met, "seen"),
                row(
                    "element 2 of the output of `look`",
                    Status::Undecided,
                    r#"element 2 of its output has the text "false" for `passed` of `b`; it must be true or false"#
                ),
                row("c", Status::Unmet, r#"{"n":1}"#),
                row(
                    "element 4 of the output of `look`",
                    Status::Undecided,
                    "element 4 of its output lacks `passed`; it has `pased`"
                ),
                row(
                    "element 5 of the output of `look`",
                    Status::Undecided,
                    "element 5 of its output is a number; it must be an object with `text` and `passed`"
                ),
            ]
        );
    }

    #[test]
    fn plain_output_is_kept_and_has_no_findings() {
        for stdout in [
            "",
            "done",
            "[]",
            "[info] checking\n[info] done",
            "[1",
            "[… 3 bytes left",
            "log\n[info] \"passed\"",
            "a {\"text\": 1}",
        ] {
            assert_eq!(describe(stdout), [], "{stdout}");
        }
    }

    #[test]
    fn findings_that_are_not_a_single_list_are_undecided_and_the_form_is_shown() {
        let one = r#"{"text": "a", "passed": true}"#;
        for (stdout, wrong) in [
            (one.to_owned(), "it is a single object"),
            ("{}".to_owned(), "it is a single object"),
            (format!("checking\n[{one}]"), "1 line precedes it"),
            (format!("a\n\nb\n[\n{one}\n]"), "3 lines precede it"),
            (format!("[{one}]\ndone"), "something else follows"),
            (format!("{one}\n{one}"), "something else follows"),
            (format!("[{one}"), "it is not valid JSON"),
            ("[{text: h, passed: false}]".to_owned(), "it is not valid JSON: key must be a string"),
            ("{text: h, passed: false}".to_owned(), "it is not valid JSON"),
            ("log\n[{\"text\": \"h\", \"pass".to_owned(), "it is not valid JSON: EOF"),
            ("[\n  { text: 'h', passed: true }\n]".to_owned(), "it is not valid JSON"),
            ("[".to_owned(), "it is not valid JSON: EOF"),
            ("log\n[\n".to_owned(), "it is not valid JSON: EOF"),
            ("log line\n[{\"id\": \"h\", \"status\": \"unmet\"}]".to_owned(), "1 line precedes it"),
            ("[{\"id\": \"h\"}] done".to_owned(), "something else follows"),
        ] {
            let findings = describe(&stdout);
            assert_eq!((findings.len(), findings[0].1), (1, Status::Undecided), "{stdout}");
            let reason = &findings[0].2;
            assert!(reason.contains("a JSON array of objects with `text` and `passed`"), "{reason}");
            assert!(reason.contains(wrong), "{stdout}: {reason}");
        }
        assert_eq!(describe("[1,\n[… 9 bytes omitted …]\n2]")[0].1, Status::Undecided);
    }
}
