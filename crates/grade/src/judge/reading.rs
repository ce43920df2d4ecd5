//! What judged assertions have in common while they are read, and how they tell what a judge said.

use model::{Node, NodeKind, decode};

use super::votes::Votes;
use crate::reading::Reading;
use crate::words;

/// The most judges of a panel: more say nothing new, and cost.
pub(crate) const MOST_JUDGES: u64 = 15;

/// `judges`.
pub(crate) fn judges(reading: &mut Reading<'_>) -> Option<usize> {
    let node = reading.fields.get("judges")?;
    let number = reading.fields.whole("judges", 1, reading.problems)?;
    if number > MOST_JUDGES {
        reading.problems.push(node.error(format!("`judges` must be at most {MOST_JUDGES}, not {number}")));
        return None;
    }
    usize::try_from(number).ok()
}

/// Texts under `key`; a single one need not be a list. `None` where something is wrong.
pub(crate) fn texts(reading: &mut Reading<'_>, key: &'static str) -> Option<Vec<String>> {
    let Some(node) = reading.fields.get(key) else { return Some(Vec::new()) };
    let items: &[Node] = match &node.kind {
        NodeKind::List(items) => items,
        _ => std::slice::from_ref(node),
    };
    if items.is_empty() {
        reading.problems.push(node.error(format!("`{key}` must not be empty")));
        return None;
    }
    let what = format!("an item of `{key}`");
    let read: Vec<_> = items.iter().map(|item| decode::text(item, &what, reading.problems)).collect();
    read.into_iter().collect()
}

/// A score, with as few decimals as tell it.
pub(crate) fn points(score: f64) -> String {
    ((score * 100.0).round() / 100.0).to_string()
}

/// Why, in the words of one who says about the criterion number `at` what most say.
pub(crate) fn reasoning(votes: &Votes<'_>, at: usize) -> String {
    let said = votes.speaker(at).map(|mark| mark.reasoning.as_str()).filter(|said| !said.is_empty());
    said.map_or_else(String::new, |said| format!(": {said}"))
}

/// The passage that was quoted for the criterion number `at`.
pub(crate) fn quote(votes: &Votes<'_>, at: usize) -> Option<String> {
    let quote = votes.speaker(at).map(|mark| mark.quote.as_str())?;
    (!quote.is_empty()).then(|| words::quoted(quote))
}

/// What was answered about a criterion, in one line: `met (2 of 3): NAME: "quote"`, and why.
pub(crate) fn line(votes: &Votes<'_>, at: usize, name: &str) -> String {
    let tally = votes.tally(at);
    let said = match tally.majority() {
        Some(true) => "met",
        Some(false) => "violated",
        None => "undecided",
    };
    let quote = quote(votes, at).map_or_else(String::new, |quote| format!(": {quote}"));
    format!("{said}{}: {name}{quote}{}", tally.agreement(), reasoning(votes, at))
}

/// Why nobody can say.
pub(crate) fn split(votes: &Votes<'_>) -> &'static str {
    if votes.asked > 1 { "the judges do not agree" } else { "the judge cannot tell" }
}
