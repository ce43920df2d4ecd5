//! Compares the results with recorded template results of `@isdk/ai-test-runner` 0.2.3. Each vector agrees, or
//! `differences.json` gives the reason.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Source};
use serde_json::{Map, Value, json};
use trialrun_template::{Format, Variables, resolve, resolve_as};

fn read(name: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)).unwrap()
}

/// Result of one fixture.
#[derive(Debug, PartialEq)]
struct Outcome {
    status: &'static str,
    args: Option<Value>,
}

#[test]
fn templates_match_the_recorded_results() {
    let differences: BTreeMap<String, String> = serde_json::from_str(&read("differences.json")).unwrap();
    let mut wrong = Vec::new();
    let mut seen = 0;
    for line in read("templates.jsonl").lines() {
        let vector: Value = serde_json::from_str(line).unwrap();
        let id = vector["id"].as_str().unwrap().to_owned();
        for (index, (fixture, answer, recorded)) in cases(&vector).into_iter().enumerate() {
            seen += 1;
            let found = outcome(fixture, &answer["output"], answer, &vector["options"]);
            let agrees = agrees(&found, &recorded);
            let listed = differences.get(&id);
            if agrees == listed.is_some() {
                wrong.push(format!("{id}[{index}]: {found:?}, recorded {recorded}, listed: {listed:?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {seen}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(seen > 130, "{seen}");
}

/// Returns the fixture, the answer and the result of each fixture of a vector.
fn cases(vector: &Value) -> Vec<(&Value, &Value, Value)> {
    let Some(fixtures) = vector["fixtures"].as_array() else {
        return vec![(&vector["fixture"], &vector["exec"], vector["expect"].clone())];
    };
    let answers = vector["exec"].as_array().unwrap();
    let answer = |index: usize| answers.get(index).or(answers.last()).unwrap();
    let logs = vector["expect"]["logs"].as_array().unwrap();
    fixtures.iter().enumerate().map(|(index, fixture)| (fixture, answer(index), logs[index].clone())).collect()
}

fn agrees(found: &Outcome, recorded: &Value) -> bool {
    let same_args = match (&found.args, recorded.get("args")) {
        (Some(found), Some(recorded)) => found == recorded,
        _ => true,
    };
    same_args && (found.status == "resolved" && recorded["status"] != "error" || recorded["status"] == found.status)
}

fn outcome(fixture: &Value, output: &Value, answer: &Value, options: &Value) -> Outcome {
    let origin = Source::new("fixture", "");
    let config = &options["fixtureConfig"];
    let variables = layered(layers(fixture, options, config, &origin), fixture, &origin);
    let mut problems = Problems::new();
    // Templates in a fixture first use the fixture's own values, then those in the layers below it.
    let own = resolve(&Node::from_json(fixture, &origin), &variables, &mut problems).to_json();
    let common = resolve(&Node::from_json(config, &origin), &variables, &mut problems).to_json();
    let args = layers(&own, options, &common, &origin).to_json(&mut problems);
    let format = fixture
        .get("templateFormat")
        .map_or(Format::Jinja, |name| Format::from_node(&Node::from_json(name, &origin)).unwrap());
    let of = |key: &str| fixture.get(key).or_else(|| config.get(key));
    let mut parts = Vec::new();
    for (expected, actual) in [(of("output"), output), (of("expect"), answer)] {
        if let Some(expected) = expected {
            let node = Node::from_json(expected, &origin);
            parts.push((resolve_as(format, &node, &variables, &mut problems).to_json(), actual.clone()));
        }
    }
    let status = if !problems.is_empty() {
        "error"
    } else if fixture["diff"].is_array() {
        "resolved"
    } else {
        let verdicts: Option<Vec<bool>> = parts.iter().map(|(expected, actual)| matches(actual, expected)).collect();
        verdicts.map_or("resolved", |verdicts| if verdicts.iter().all(|passes| *passes) { "pass" } else { "fail" })
    };
    Outcome { status, args: problems.is_empty().then_some(Value::Object(args)) }
}

fn layered(variables: Variables, map: &Value, origin: &Arc<Source>) -> Variables {
    variables.layer(&Node::from_json(map, origin))
}

/// Returns the layers of an executor's variables.
fn layers(fixture: &Value, options: &Value, config: &Value, origin: &Arc<Source>) -> Variables {
    let input = match fixture.get("input").or_else(|| config.get("input")) {
        None | Some(Value::Null) => json!({}),
        Some(Value::Object(map)) => Value::Object(map.clone()),
        Some(other) => json!({ "input": other }),
    };
    let script = &options["scriptConfig"];
    let layers = [script, &script["prompt"], fixture, &input, config, &options["userConfig"]["data"]];
    layers.into_iter().fold(Variables::new(), |variables, layer| layered(variables, layer, origin))
}

/// Simplified matching that is sufficient for most vectors. Returns `None` for the others.
fn matches(actual: &Value, expected: &Value) -> Option<bool> {
    match expected {
        Value::String(text) => match regex(text) {
            Some((pattern, fold)) => Some(found(&text_of(actual), &pattern, fold)),
            None => Some(actual.as_str().is_some_and(|actual| includes(actual, text))),
        },
        Value::Array(items) => all(items.iter().enumerate().map(|(index, item)| matches(&actual[index], item))),
        Value::Object(map) => members(actual, map),
        other => Some(actual == other),
    }
}

/// JSON texts are equal if their values are.
fn includes(actual: &str, text: &str) -> bool {
    let json = |text: &str| serde_json::from_str::<Value>(text).ok();
    actual.trim().contains(text.trim()) || json(text).is_some_and(|expected| json(actual) == Some(expected))
}

fn members(actual: &Value, map: &Map<String, Value>) -> Option<bool> {
    if map.keys().any(|key| key.starts_with(['$', '/']) || key == "type" || key == "tools") {
        return None;
    }
    all(map.iter().map(|(key, value)| matches(actual.get(key).unwrap_or(&Value::Null), value)))
}

fn all(mut parts: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    parts.try_fold(true, |so_far, part| part.map(|part| so_far && part))
}

fn text_of(actual: &Value) -> String {
    actual.as_str().map_or_else(|| actual.to_string(), str::to_owned)
}

fn regex(text: &str) -> Option<(String, bool)> {
    let (pattern, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    flags.chars().all(|flag| "dgimsuvy".contains(flag)).then(|| (pattern.to_owned(), flags.contains('i')))
}

/// Returns `true` if a part of `text` matches a pattern of letters, `.`, `^`, `$` and escapes.
fn found(text: &str, pattern: &str, fold: bool) -> bool {
    let (text, pattern) =
        if fold { (text.to_lowercase(), pattern.to_lowercase()) } else { (text.to_owned(), pattern.to_owned()) };
    let letters: Vec<char> = text.chars().collect();
    (0..=letters.len()).any(|start| found_at(&letters, start, &pattern.chars().collect::<Vec<_>>(), start == 0))
}

fn found_at(text: &[char], index: usize, pattern: &[char], begins: bool) -> bool {
    match pattern {
        [] => true,
        ['^', rest @ ..] => begins && found_at(text, index, rest, false),
        ['$', rest @ ..] => index == text.len() && found_at(text, index, rest, false),
        ['\\', escaped, rest @ ..] => text.get(index) == Some(escaped) && found_at(text, index + 1, rest, false),
        ['.', rest @ ..] => index < text.len() && found_at(text, index + 1, rest, false),
        [letter, rest @ ..] => text.get(index) == Some(letter) && found_at(text, index + 1, rest, false),
    }
}
