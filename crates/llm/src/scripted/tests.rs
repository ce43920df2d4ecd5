//! Compares the reference page with the keys that the reader of scripts knows.

pub(crate) mod specimen;

use std::sync::Arc;

use super::{Script, ScriptContext};
use crate::reply::STOP_REASONS;
use crate::scripted::fault::KINDS;

const PAGE: &str = include_str!("../../../../docs/reference/scripted-model.md");

/// Returns the first cells of the rows of the table after `after`.
fn table(after: &str) -> Vec<String> {
    let rows = PAGE.split(after).nth(1).unwrap().lines().skip_while(|line| !line.starts_with("| ---")).skip(1);
    let first = |row: &str| row.split('`').nth(1).unwrap().to_owned();
    rows.take_while(|line| line.starts_with('|')).map(first).collect()
}

/// Returns the keys that the reader accepts at the location where `text` has the `zzzz` key.
fn keys_read(text: &str) -> Vec<String> {
    let problems = Script::from_node(&specimen::node("s.yaml", text)).unwrap_err();
    let unknown = problems.iter().find(|problem| problem.message.starts_with("unknown key `zzzz`"));
    let help = &unknown.unwrap_or_else(|| panic!("{text}: {problems:#?}")).help;
    let known = help.iter().find_map(|line| line.strip_prefix("known keys: ")).unwrap();
    let mut keys: Vec<_> = known.split(", ").map(str::to_owned).collect();
    keys.sort();
    keys
}

#[test]
fn the_page_lists_exactly_the_keys_that_are_read() {
    for (heading, text) in [
        ("## The file\n", "zzzz: 1"),
        ("## A step\n", "steps: [{zzzz: 1}]"),
        ("## A tool call\n", "steps: [{tools: [{zzzz: 1}]}]"),
        ("## `usage`\n", "steps: [{usage: {zzzz: 1}}]"),
        ("## `fault`\n", "steps: [{fault: {zzzz: 1}}]"),
        ("## `expect_request`\n", "steps: [{expect_request: {zzzz: 1}}]"),
        ("## A conversation\n", "conversations: [{zzzz: 1}]"),
        ("## `match`\n", "conversations: [{match: {zzzz: 1}}]"),
    ] {
        let mut listed = table(heading);
        listed.sort();
        assert_eq!(keys_read(text), listed, "{heading}");
    }
}

#[test]
fn the_page_lists_every_fault_and_stop_reason() {
    assert_eq!(table("| kind | effect |\n"), KINDS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    assert!(STOP_REASONS.iter().all(|(name, _)| PAGE.contains(&format!("`{name}`"))));
}

#[test]
fn the_example_can_be_played() {
    let example = PAGE.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let script = Script::from_node(&specimen::node("example.yaml", example)).unwrap();
    assert_eq!(script.len(), 4);
    assert_eq!(Arc::new(script).play(ScriptContext::default()).name(), "example.yaml");
}
