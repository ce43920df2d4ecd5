//! What a command after grading says on its standard output: a JSON array of findings, or nothing that counts.

use model::{Finding, Status};
use runner::hook::found;
use serde_json::{Map, Value};

/// Something that a command found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) passed: bool,
    pub(super) evidence: Option<String>,
}

/// What stdout says: `None` unless all of it is a JSON array. Of each element, what it says or what is wrong with it.
pub(super) fn read(stdout: &str) -> Option<Vec<Result<Said, String>>> {
    let Value::Array(elements) = serde_json::from_str(stdout.trim()).ok()? else { return None };
    Some(elements.iter().map(element).collect())
}

fn element(element: &Value) -> Result<Said, String> {
    let Value::Object(fields) = element else {
        return Err(format!("is {}; it must be an object with `text` and `passed`", kind(element)));
    };
    let text = match fields.get("text") {
        Some(Value::String(text)) if !text.trim().is_empty() => text.clone(),
        Some(Value::String(_)) => return Err("has an empty `text`".to_owned()),
        Some(other) => return Err(format!("has {} for `text`; it must be a text", kind(other))),
        None => return Err(missing("text", fields)),
    };
    let passed = match fields.get("passed") {
        Some(Value::Bool(passed)) => *passed,
        Some(other) => {
            return Err(format!("has {} for `passed` of `{text}`; it must be true or false", shown(other)));
        }
        None => return Err(missing("passed", fields)),
    };
    let evidence = match fields.get("evidence") {
        None | Some(Value::Null) => None,
        Some(Value::String(evidence)) => Some(evidence.clone()),
        Some(other) => Some(other.to_string()),
    };
    Ok(Said { text, passed, evidence })
}

fn missing(field: &str, fields: &Map<String, Value>) -> String {
    let near = model::nearest(field, fields.keys().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; it has `{near}`"));
    format!("lacks `{field}`{near}")
}

fn shown(value: &Value) -> String {
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
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// The findings in what `command` wrote. What cannot be read decides nothing, and is told.
pub(super) fn findings(stdout: &str, command: &str) -> Vec<Finding> {
    let Some(elements) = read(stdout) else {
        let is_cut = stdout.trim_start().starts_with('[') && stdout.contains(" bytes left out …]");
        let because = "it found too much to be read: at most 256 KiB of output are kept";
        let too_much = || found(&format!("what `{command}` found"), Status::Undecided, because);
        return is_cut.then(too_much).into_iter().collect();
    };
    let finding = |(at, element): (usize, Result<Said, String>)| match element {
        Ok(said) => {
            let usual = if said.passed { "it says that this holds" } else { "it says that this does not hold" };
            let because = said.evidence.filter(|evidence| !evidence.trim().is_empty());
            let because = because.unwrap_or_else(|| format!("`{command}`: {usual}"));
            found(&said.text, if said.passed { Status::Met } else { Status::Unmet }, &because)
        }
        Err(wrong) => {
            let number = at + 1;
            let because = format!("element {number} of what it wrote {wrong}");
            found(&format!("element {number} of what `{command}` found"), Status::Undecided, &because)
        }
    };
    elements.into_iter().enumerate().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(stdout: &str) -> Vec<(String, Status, String)> {
        let findings = findings(stdout, "look");
        findings.into_iter().map(|finding| (finding.title.unwrap(), finding.status, finding.because)).collect()
    }

    fn row(title: &str, status: Status, because: &str) -> (String, Status, String) {
        (title.to_owned(), status, because.to_owned())
    }

    #[test]
    fn good_elements_count_and_bad_ones_are_told() {
        let stdout = r#" [{"text": "a", "passed": true, "evidence": "seen"}, {"text": "b", "passed": "false"},
            {"text": "c", "passed": false, "evidence": {"n": 1}}, {"text": "d", "pased": true}, 7] "#;
        assert_eq!(
            told(stdout),
            [
                row("a", Status::Met, "seen"),
                row(
                    "element 2 of what `look` found",
                    Status::Undecided,
                    r#"element 2 of what it wrote has the text "false" for `passed` of `b`; it must be true or false"#
                ),
                row("c", Status::Unmet, r#"{"n":1}"#),
                row(
                    "element 4 of what `look` found",
                    Status::Undecided,
                    "element 4 of what it wrote lacks `passed`; it has `pased`"
                ),
                row(
                    "element 5 of what `look` found",
                    Status::Undecided,
                    "element 5 of what it wrote is a number; it must be an object with `text` and `passed`"
                ),
            ]
        );
    }

    #[test]
    fn what_is_no_list_is_kept_and_finds_nothing() {
        for stdout in ["", "done", "{}", "[]", "log\n[{\"text\": \"a\", \"passed\": true}]", "[1", "[… 3 bytes left"]
        {
            assert_eq!(told(stdout), [], "{stdout}");
        }
        assert_eq!(told("[1,\n[… 9 bytes left out …]\n2]")[0].1, Status::Undecided);
    }
}
