//! Shared code for judged assertions: reading their fields, and formatting judges' answers.

use model::{Node, NodeKind, decode};

use super::votes::{Scores, Votes};
use crate::format;
use crate::reading::Reading;
use crate::verdict::Verdict;

/// Maximum number of judges on a panel. More would cost without adding information.
pub(crate) const MAX_JUDGES: u64 = 15;

/// Reads `judges`.
pub(crate) fn judges(reading: &mut Reading<'_>) -> Option<usize> {
    let node = reading.fields.get("judges")?;
    let number = reading.fields.whole("judges", 1, reading.problems)?;
    if number > MAX_JUDGES {
        reading.problems.push(node.error(format!("`judges` must be at most {MAX_JUDGES}, not {number}")));
        return None;
    }
    usize::try_from(number).ok()
}

/// Reads the strings under `key`, a list or a single string. Returns `None` if there is an error.
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

/// Formats a score with at most two decimals.
pub(crate) fn points(score: f64) -> String {
    ((score * 100.0).round() / 100.0).to_string()
}

/// Returns the verdict on a rating from 1 to `scale` that must reach `threshold`. `wanted` describes that.
pub(crate) fn rated(votes: &Votes<'_>, scores: &Scores, scale: u64, threshold: f64, wanted: String) -> Verdict {
    let reason = format!("{} of {scale}{}{}", points(scores.mean()), scores.describe(), reasoning(votes, 0));
    let share = (scores.mean() - 1.0) / (scale - 1) as f64;
    let quote = quote(votes, 0);
    match scores.reaches(threshold) {
        Some(true) => Verdict::met(reason).scored(share).evidence(quote),
        Some(false) => {
            let actual = quote.unwrap_or_else(|| format!("{} of {scale}", points(scores.mean())));
            Verdict::unmet(reason, wanted, actual).scored(share)
        }
        None => Verdict::undecided(split(votes)),
    }
}

/// Returns the reasoning of a judge that agrees with the majority about the criterion at index `at`.
pub(crate) fn reasoning(votes: &Votes<'_>, index: usize) -> String {
    let text = votes.deciding_mark(index).map(|mark| mark.reasoning.as_str()).filter(|text| !text.is_empty());
    text.map_or_else(String::new, |text| format!(": {text}"))
}

/// Returns the passage quoted for the criterion at index `at`.
pub(crate) fn quote(votes: &Votes<'_>, index: usize) -> Option<String> {
    let quote = votes.deciding_mark(index).map(|mark| mark.quote.as_str())?;
    (!quote.is_empty()).then(|| format::quoted(quote))
}

/// Formats the answers about a criterion in one line: `met (2 of 3): NAME: "quote"`, and the reasoning.
pub(crate) fn line(votes: &Votes<'_>, index: usize, name: &str) -> String {
    let tally = votes.tally(index);
    let majority = match tally.majority() {
        Some(true) => "met",
        Some(false) => "violated",
        None => "undecided",
    };
    let quote = quote(votes, index).map_or_else(String::new, |quote| format!(": {quote}"));
    format!("{majority}{}: {name}{quote}{}", tally.agreement(), reasoning(votes, index))
}

/// Returns the reason why the judges could not decide.
pub(crate) fn split(votes: &Votes<'_>) -> String {
    match (votes.fewest_verdicts(), votes.asked) {
        (_, 0 | 1) => "the judge cannot tell".to_owned(),
        (0, asked) => format!("none of the {asked} judges gave a verdict"),
        (given, asked) if given < asked => {
            format!("{given} of {asked} judges gave a verdict, which does not decide")
        }
        _ => "the judges do not agree".to_owned(),
    }
}
