//! Near-duplicates: tests that check the same thing in other words.

use std::collections::BTreeSet;

use crate::candidate::Candidate;

/// Similarity at or above which a test is a duplicate.
const THRESHOLD: f64 = 0.75;

/// Features of a test: its assertions, the facts that it covers, and the tools that an agent called in it.
pub(crate) type Features = BTreeSet<String>;

/// Returns the features of `candidate`. `called` are the tools that an agent called when the test was tried out.
pub(crate) fn features(candidate: &Candidate, called: &[String]) -> Features {
    let mut features: Features = candidate.planned.covers.iter().map(|id| format!("covers {id}")).collect();
    for assertion in candidate.assertions() {
        let kind = assertion.kind.name();
        let subject = [&assertion.value, &assertion.tool, &assertion.path].map(|text| folded(text)).join("|");
        features.insert(format!("{kind} {subject}"));
        features.extend(assertion.arguments.iter().map(|one| format!("{kind} {} {}", one.name, folded(&one.pattern))));
    }
    features.extend(called.iter().map(|tool| format!("called {tool}")));
    features
}

/// Returns the position of the test among `admitted` that has nearly the same features.
pub(crate) fn duplicate_of<'a>(features: &Features, mut admitted: impl Iterator<Item = &'a Features>) -> Option<usize> {
    admitted.position(|other| similarity(features, other) >= THRESHOLD)
}

/// Returns the share of common features, from 0 to 1 (Jaccard index).
fn similarity(one: &Features, other: &Features) -> f64 {
    let common = one.intersection(other).count();
    let all = one.len() + other.len() - common;
    if all == 0 { 1.0 } else { common as f64 / all as f64 }
}

/// Returns the words of a text in lower case and without punctuation.
fn folded(text: &str) -> String {
    let words = text.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join(" ")
}
