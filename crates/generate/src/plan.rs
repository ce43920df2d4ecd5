//! Planning: asks a model for tests in the requested categories.

use std::collections::{BTreeMap, BTreeSet};

use llm::{Conversation, Message, Request, ResponseSchema, Role};
use model::text::one_line;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::answer;
use crate::brief::brief;
use crate::candidate::PlannedTest;
use crate::category::Category;
use crate::profile::Profile;
use crate::prompt::{Fence, plan as prompt};
use crate::target::Target;

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 100;

/// Answer from the planner.
#[derive(Debug, Deserialize)]
struct Plan {
    tests: Vec<PlannedTest>,
}

/// Returns the request for a plan.
pub(crate) fn request(
    profile: &Profile,
    targets: &[Target],
    quotas: &[(&'static Category, usize)],
    existing: &[String],
) -> Request {
    let data = brief(profile, targets);
    let fence = Fence::around(&data);
    let quota = |(category, count): &(&'static Category, usize)| {
        format!("- {} `{}`: {}", count, category.name, category.purpose)
    };
    let quotas: Vec<String> = quotas.iter().map(quota).collect();
    let mut system = vec![prompt::ROLE.to_owned(), fence.rule(), prompt::FIELDS.to_owned()];
    system.push(prompt::QUOTAS.replace("{quotas}", &quotas.join("\n")));
    if !existing.is_empty() {
        let names: Vec<String> = existing.iter().map(|name| format!("- {name}")).collect();
        system.push(prompt::EXISTING.replace("{existing}", &names.join("\n")));
    }
    Request {
        system: vec![system.join("\n\n")],
        messages: vec![Message::text(Role::User, fence.enclose(&data))],
        response_schema: Some(ResponseSchema { name: "plan".into(), schema: schema() }),
        // The user is waiting for the result, so a silent provider is not asked again and again.
        gives_up_on_silence: true,
        conversation: Conversation::main(),
        ..Request::default()
    }
}

/// Returns the JSON Schema of a plan. Every object is closed and complete, as the strict modes of vendors require.
fn schema() -> Value {
    let text = json!({ "type": "string" });
    let texts = json!({ "type": "array", "items": text });
    let names: Vec<&str> = crate::category::CATEGORIES.iter().map(|category| category.name).collect();
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["tests"],
        "properties": { "tests": { "type": "array", "items": {
            "type": "object",
            "additionalProperties": false,
            "required": ["category", "name", "why", "covers", "situation", "success", "failure"],
            "properties": {
                "category": { "type": "string", "enum": names },
                "name": text,
                "why": text,
                "covers": texts,
                "situation": text,
                "success": texts,
                "failure": texts,
            },
        } } },
    })
}

/// Reads a plan. Tests beyond the quota of their category are omitted.
///
/// # Errors
/// Returns a description of the problem: the answer is not a plan, a test covers no known fact, or tests are missing.
pub(crate) fn read(
    value: &Value,
    targets: &[Target],
    quotas: &[(&'static Category, usize)],
) -> Result<Vec<PlannedTest>, String> {
    let plan: Plan = answer::read(value)?;
    let known: BTreeSet<&str> = targets.iter().map(|target| target.id.as_str()).collect();
    let mut left: Vec<(&'static Category, usize)> = quotas.to_vec();
    let mut tests: Vec<PlannedTest> = Vec::new();
    for mut test in plan.tests {
        test.name = one_line(&printable(&test.name), LONGEST_NAME);
        test.why = printable(&test.why);
        let name = &test.name;
        if name.is_empty() || test.situation.trim().is_empty() {
            return Err("a test has no name or no situation".to_owned());
        }
        if let Some(id) = test.covers.iter().find(|id| !known.contains(id.as_str())) {
            let problem = format!("`{name}` covers `{id}`, which is not an id in the data");
            let near = model::nearest(id, known.iter().copied()).map(|near| format!("; did you mean `{near}`?"));
            return Err(problem + &near.unwrap_or_default());
        }
        if test.covers.is_empty() && !known.is_empty() {
            return Err(format!("`{name}` covers nothing"));
        }
        let quota = left.iter_mut().find(|(category, _)| category.name == test.category);
        if let Some((_, count)) = quota.filter(|(_, count)| *count > 0) {
            *count -= 1;
            tests.push(test);
        }
    }
    let missing: Vec<String> = left
        .iter()
        .filter(|(_, count)| *count > 0)
        .map(|(category, count)| format!("{count} of `{}`", category.name))
        .collect();
    match missing.is_empty() {
        true => Ok(tests),
        false => Err(format!("these tests are missing: {}", missing.join(", "))),
    }
}

/// Orders tests so that each category has its first test before any has its second. If the budget is spent early, no
/// category is left out.
pub(crate) fn in_turn(tests: Vec<PlannedTest>) -> Vec<PlannedTest> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let numbered = tests.into_iter().map(|test| {
        let number = counts.entry(test.category.clone()).or_default();
        *number += 1;
        (*number, test)
    });
    let mut numbered: Vec<(usize, PlannedTest)> = numbered.collect();
    numbered.sort_by_key(|(number, _)| *number);
    numbered.into_iter().map(|(_, test)| test).collect()
}

/// Removes characters that a terminal or an editor would act on: control characters, and marks that change the
/// direction of writing.
fn printable(text: &str) -> String {
    let is_mark = |letter: char| matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    text.chars().filter(|letter| letter.is_whitespace() || !(letter.is_control() || is_mark(*letter))).collect()
}

/// Reads the valid part of a plan, for an answer that is still incomplete after the request was repeated.
pub(crate) fn read_part(value: &Value, targets: &[Target], quotas: &[(&'static Category, usize)]) -> Vec<PlannedTest> {
    let tests = value.get("tests").and_then(Value::as_array).cloned().unwrap_or_default();
    let mut left = quotas.to_vec();
    let mut kept = Vec::new();
    for test in tests {
        let alone: Vec<(&'static Category, usize)> = left
            .iter()
            .filter(|(category, count)| *count > 0 && test.get("category") == Some(&json!(category.name)))
            .map(|(category, _)| (*category, 1))
            .collect();
        let read = if alone.is_empty() { continue } else { read(&json!({ "tests": [test] }), targets, &alone) };
        for test in read.into_iter().flatten() {
            if let Some((_, count)) = left.iter_mut().find(|(category, _)| category.name == test.category) {
                *count -= 1;
            }
            kept.push(test);
        }
    }
    kept
}
