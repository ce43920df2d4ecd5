//! Facts in a profile that tests can be about.

use std::hash::{DefaultHasher, Hash, Hasher};

use model::text::one_line;
use serde::Serialize;

use crate::profile::{Evidence, Profile};

/// Maximum length of the text of a target, in characters.
const LONGEST: usize = 160;
/// Maximum length of the purpose, which users describe in several sentences.
const LONGEST_PURPOSE: usize = 4_000;

/// A fact that a test can be about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Id, such as `tool:lookup_order` or `constraint:2`.
    pub id: String,
    /// Text: the name of a tool, or a sentence in one line.
    pub text: String,
    /// Location that states it, such as `prompt.md:12`; empty if there is none.
    pub place: String,
}

/// Returns everything in `profile` that a test can be about: its purpose, tools, constraints and instructions.
pub fn targets(profile: &Profile) -> Vec<Target> {
    let described = |fact: &crate::Fact| Target {
        text: one_line(&fact.text, LONGEST_PURPOSE),
        ..target("purpose".into(), "", &fact.evidence)
    };
    let purpose = profile.description.iter().map(described);
    let tools = profile.tools.iter().map(|tool| target(format!("tool:{}", tool.name), &tool.name, &tool.evidence));
    let numbered = |kind: &'static str, facts| {
        let facts: &Vec<crate::Fact> = facts;
        facts.iter().enumerate().map(move |(at, fact)| target(format!("{kind}:{}", at + 1), &fact.text, &fact.evidence))
    };
    let constraints = numbered("constraint", &profile.constraints);
    purpose.chain(tools).chain(constraints).chain(numbered("instruction", &profile.instructions)).collect()
}

fn target(id: String, text: &str, evidence: &[Evidence]) -> Target {
    let place = evidence.first().map(Evidence::place).unwrap_or_default();
    Target { id, text: one_line(text, LONGEST), place }
}

/// Orders the targets by `seed`. Models prefer facts that come first, so a different seed gives different tests.
pub(crate) fn ordered(mut targets: Vec<Target>, seed: u64) -> Vec<Target> {
    if seed != 0 {
        targets.sort_by_key(|target| {
            let mut hasher = DefaultHasher::new();
            (seed, &target.id).hash(&mut hasher);
            hasher.finish()
        });
    }
    targets
}
