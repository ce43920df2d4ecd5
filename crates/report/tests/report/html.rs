//! The page for browsers: its index and its transcripts. `cli/tests/cli/html.rs` opens it in a browser.

use std::io::Read;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::read::DeflateDecoder;
use model::*;
use serde_json::{Value, json};

use crate::formats::{HOSTILE, every_outcome};
use crate::run_builder::{RunBuilder, failed, id, one_job, passed};
use crate::{expect, reported};

/// Returns the text of the element with that id.
fn element<'a>(page: &'a str, id: &str) -> &'a str {
    let (_, after) = page.split_once(&format!(" id=\"{id}\">")).unwrap();
    after.split_once("</script>").unwrap().0
}

fn index(page: &str) -> Value {
    serde_json::from_str(element(page, "index")).unwrap()
}

/// Returns the transcript of the trial with that number.
fn transcript(page: &str, number: usize) -> Value {
    let bytes = STANDARD.decode(element(page, &format!("t{number}"))).unwrap();
    let mut text = String::new();
    DeflateDecoder::new(&*bytes).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Returns the value in a readable form. The last digits of a number depend on how it is parsed.
fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(&rounded(value)).unwrap() + "\n"
}

fn rounded(value: &Value) -> Value {
    match value {
        Value::Number(number) if number.is_f64() => json!((number.as_f64().unwrap() * 1e9).round() / 1e9),
        Value::Array(items) => items.iter().map(rounded).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), rounded(value))).collect(),
        other => other.clone(),
    }
}

#[test]
fn the_index_has_every_outcome() {
    let page = reported("html", &every_outcome().events, |options| options.folder = "bots".into());
    expect("html.index.json", &pretty(&index(&page)));
}

#[test]
fn a_transcript_has_the_steps_of_every_attempt() {
    let page = reported("html", &one_job().events, |_| {});
    expect("html.trial.json", &pretty(&transcript(&page, 1)));
    assert_eq!(index(&page)["trials"][2]["outcome"], "broken");
    assert!(transcript(&page, 2)["events"].to_string().contains("trial_retried"));
}

#[test]
fn a_trial_without_steps_keeps_its_calls() {
    let trial = id("a", "claude-code", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    story.ends(passed(&trial)).over();
    let page = reported("html", &story.events, |_| {});
    assert_eq!(transcript(&page, 0)["trial"]["tool_calls"][0]["name"], "Bash");
}

#[test]
fn data_cannot_escape_its_element() {
    let text = format!("{HOSTILE}</script><script>alert(1)</script><!-- <img src=x onerror=alert(1)>");
    let trial = id(&text, "claude-code", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    let mut record = failed(&trial);
    record.title = Some(text.clone());
    story.starts(&trial, &[&text]).says(&text).ends(record).over();
    let page = reported("html", &story.events, |_| {});
    assert!(!page.contains("alert(1)</script>") && !page.contains("<img"));
    assert_eq!(index(&page)["trials"][0]["title"], text);
    assert_eq!(transcript(&page, 0)["events"][0]["event"]["text"], text);
}

#[test]
fn passed_trials_are_omitted_on_request() {
    let page = reported("html", &every_outcome().events, |options| options.failures_only = true);
    let outcomes = index(&page)["trials"].as_array().unwrap().iter().map(|trial| trial["outcome"].clone()).collect();
    let outcomes: Vec<Value> = outcomes;
    assert!(!outcomes.contains(&json!("passed")) && outcomes.len() == 10, "{outcomes:?}");
}

#[test]
fn a_thousand_trials_of_thirty_events_fit_in_a_small_file() {
    let trials: Vec<TrialId> = (0..1000).map(|number| id(&format!("case-{number}"), "claude-code", 1)).collect();
    let mut story = RunBuilder::new(trials.clone(), 1);
    for (number, trial) in trials.iter().enumerate() {
        story.starts(trial, &["Fix the date of releases."]);
        for step in 0..14 {
            // The texts differ, so that compression cannot shrink the file more than in practice.
            let digest = digest(format!("{number} {step}").bytes());
            story.calls(&format!("c{step}"), "Bash", json!({ "command": format!("git show {digest}") }));
            story.answers(&format!("c{step}"), &format!("commit {digest}\nFix the date\n"), false);
        }
        story.ends(failed(trial));
    }
    story.over();
    let page = reported("html", &story.events, |_| {});
    assert!(page.len() < 8_000_000, "{}", page.len());
}

#[test]
fn the_verdict_and_the_failures_are_readable_without_scripts() {
    let page = reported("html", &every_outcome().events, |_| {});
    let (_, main) = page.split_once("<main id=\"main\"").unwrap();
    let main = main.split_once("</main>").unwrap().0;
    assert!(main.contains("<span class=\"result FAIL\">FAIL</span> 4 of 10 trials failed"), "{main}");
    assert!(main.contains("came before <code>git push</code>"), "{main}");
    assert_eq!(
        main.matches("<div class=\"failure ").count(),
        7,
        "neither passed, skipped, quarantined nor of the baseline"
    );
}
