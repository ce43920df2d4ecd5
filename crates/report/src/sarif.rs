//! Diagnostics as SARIF, version 2.1.0, for code scanning.

use std::path::Path;

use model::{Diagnostic, Excerpt, Severity};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use crate::finished::in_repository;
use crate::terminal::distinct;

/// Maximum number of results: GitHub keeps no more per run.
const RESULTS: usize = 5000;
/// Maximum length of the id of a rule, in characters.
const ID: usize = 80;
/// Characters that must be escaped in a path in a URI.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'/');

/// Returns the problems as a SARIF document, errors first. `folder` is the current directory in its repository, and
/// `version` is the version of trialrun.
pub fn sarif(problems: &[Diagnostic], folder: &Path, version: &str) -> Value {
    let mut problems = distinct(problems);
    problems.sort_by_key(|problem| !problem.is_error());
    let mut rules: Vec<(String, String)> = Vec::new();
    let mut results = Vec::new();
    // A problem without a location cannot be a result, because readers would reject the whole file.
    let mut notifications = Vec::new();
    let mut omitted = 0;
    for problem in problems {
        match &problem.source {
            None => notifications.push(json!({ "level": level(problem), "message": { "text": message(problem) } })),
            Some(_) if results.len() == RESULTS => omitted += 1,
            Some(source) => {
                let rule = rule(&problem.message);
                let id = id(&rule);
                let index = rules.iter().position(|(known, _)| *known == id).unwrap_or(rules.len());
                if index == rules.len() {
                    rules.push((id.clone(), rule));
                }
                results.push(json!({
                    "ruleId": id,
                    "ruleIndex": index,
                    "level": level(problem),
                    "message": { "text": message(problem) },
                    "locations": [{ "physicalLocation": location(source, folder) }],
                }));
            }
        }
    }
    if omitted > 0 {
        let text = format!("{omitted} more problems are omitted");
        notifications.push(json!({ "level": "note", "message": { "text": text } }));
    }
    let rules: Vec<Value> =
        rules.iter().map(|(id, rule)| json!({ "id": id, "shortDescription": { "text": rule } })).collect();
    json!({
        "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "trialrun", "version": version, "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "invocations": [{ "executionSuccessful": true, "toolExecutionNotifications": notifications }],
            "results": results,
        }],
    })
}

fn level(problem: &Diagnostic) -> &'static str {
    match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

fn message(problem: &Diagnostic) -> String {
    let mut lines = vec![problem.message.clone()];
    lines.extend(problem.label.clone().filter(|label| *label != problem.message));
    lines.extend(problem.help.iter().map(|help| format!("help: {help}")));
    lines.join("\n")
}

fn location(source: &Excerpt, folder: &Path) -> Value {
    let path = in_repository(folder, &source.file);
    let uri = utf8_percent_encode(&path, PATH).to_string();
    let file = match path.starts_with('/') {
        true => json!({ "uri": format!("file://{uri}") }),
        false => json!({ "uri": uri, "uriBaseId": "%SRCROOT%" }),
    };
    // An excerpt without text refers to the whole file.
    if source.text.is_empty() {
        return json!({ "artifactLocation": file });
    }
    let end = source.column + source.length;
    let region = json!({ "startLine": source.line, "startColumn": source.column, "endColumn": end });
    json!({ "artifactLocation": file, "region": region })
}

/// Returns the part of a message that is the same for all problems of its kind: the part before a colon, with `…` in
/// place of quoted text and numbers.
fn rule(message: &str) -> String {
    let mut rule = String::new();
    // Parts between backticks have odd indices.
    for (number, part) in message.split('`').enumerate() {
        if number % 2 == 1 {
            rule.push('…');
        } else if let Some((front, _)) = part.split_once(": ") {
            rule.push_str(front);
            break;
        } else {
            rule.push_str(part);
        }
    }
    let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = rule.split_whitespace().map(|word| if is_number(&word) { "…" } else { word }).collect();
    words.join(" ")
}

/// Returns the id of a rule, made from its words.
fn id(rule: &str) -> String {
    let words: Vec<String> =
        rule.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_lowercase).collect();
    let id: String = words.join("-").chars().take(ID).collect();
    if id.is_empty() { "problem".to_owned() } else { id }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_of_the_same_kind_share_a_rule() {
        let of = |message: &str| (rule(message), id(&rule(message)));
        assert_eq!(of("unknown key `a`"), ("unknown key …".to_owned(), "unknown-key".to_owned()));
        assert_eq!(of("unknown key `b: c`"), of("unknown key `a`"));
        assert_eq!(of("`weight` is not a field of `contains`").1, "is-not-a-field-of");
        assert_eq!(of("not valid JSON: 3 errors at `x`").1, "not-valid-json");
        assert_eq!(of("12 trials per case exceed the maximum of 100"), of("1 trials per case exceed the maximum of 2"));
        assert_eq!(of("`x`").1, "problem");
    }

    #[test]
    fn the_number_of_results_is_limited() {
        let source =
            |line| Excerpt { file: "a b.yaml".into(), line, column: 2, length: 3, text: "- x".into(), skipped: 0 };
        let mut problems: Vec<Diagnostic> =
            (1..=RESULTS + 2).map(|line| Diagnostic::warning("odd").at(source(line))).collect();
        problems.push(Diagnostic::error("wrong").at(source(1)));
        problems.push(Diagnostic::error("the `X` variable is unknown").help("did you mean `Y`?"));
        let document = sarif(&problems, Path::new("bots"), "1.0.0");
        let run = &document["runs"][0];
        assert_eq!(run["results"].as_array().unwrap().len(), RESULTS);
        assert_eq!(run["results"][0]["level"], "error");
        assert_eq!(run["results"][1]["ruleIndex"], 1);
        let location = &run["results"][0]["locations"][0]["physicalLocation"];
        assert_eq!(location["artifactLocation"], json!({ "uri": "bots/a%20b.yaml", "uriBaseId": "%SRCROOT%" }));
        assert_eq!(location["region"], json!({ "startLine": 1, "startColumn": 2, "endColumn": 5 }));
        let notes = &run["invocations"][0]["toolExecutionNotifications"];
        assert_eq!(notes[0]["message"]["text"], "the `X` variable is unknown\nhelp: did you mean `Y`?");
        assert_eq!(notes[1]["message"]["text"], "3 more problems are omitted");
    }
}
