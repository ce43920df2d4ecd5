//! Combines the items on one level into a single result.

use model::Detail;
use serde_json::Value;

use crate::found::{BranchTally, Flaw, Found, Pass};
use crate::source_location::SourceLocation;
use crate::weight::Budget;

/// Strategy for combining items.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// All items, each by its weight.
    #[default]
    Weighted,
    /// The best item.
    Max,
}

impl Strategy {
    /// All strategies by their written names.
    pub const ALL: [(&'static str, Self); 4] =
        [("weighted", Self::Weighted), ("max", Self::Max), ("and", Self::Weighted), ("or", Self::Max)];

    /// Returns the name for scripts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::Max => "max",
        }
    }

    /// Returns the strategy with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(written, _)| *written == name).map(|(_, strategy)| *strategy)
    }

    /// Returns the share of each item.
    pub fn distribute(self, budget: &Budget, weights: &[Option<f64>]) -> Vec<f64> {
        match self {
            Self::Weighted => budget.together(weights),
            Self::Max => budget.each(weights),
        }
    }

    /// Combines the results of the items. Without items, the result is a full match. `place` is the location of the
    /// whole.
    pub fn aggregate(self, items: impl IntoIterator<Item = Found>, shares: &[f64], place: &SourceLocation) -> Found {
        let mut items = items.into_iter().peekable();
        match self {
            Self::Max if items.peek().is_none() => Found::full(),
            Self::Max => best(items.collect(), shares, place),
            Self::Weighted => weighted(items, shares, place),
        }
    }
}

/// Combines items by weight. Items are judged one after another, and little is stored about each, because many may
/// fail.
fn weighted(items: impl Iterator<Item = Found>, shares: &[f64], place: &SourceLocation) -> Found {
    // If no points can be earned, the score starts at 1 so that penalties can reduce it.
    let earns = shares.iter().any(|share| *share > 0.0);
    let mut whole = Found::scored(if earns { 0.0 } else { 1.0 }, Pass::Yes);
    for (index, item) in items.enumerate() {
        let share = shares.get(index).copied().unwrap_or_default();
        if share < 0.0 {
            // A penalty whose own parts cost more than they earn is not incurred, but it is not a reward either.
            whole.score += item.most.max(0.0) * share;
            whole.most += item.score.max(0.0) * share;
            punish(&mut whole, &item, place);
        } else {
            whole.score += item.score * share;
            whole.most += item.most * share;
            whole.pass = whole.pass.and(item.pass);
            whole.add_flaws(item.flaws);
        }
        whole.details.extend(weighing(item.details, share));
    }
    whole
}

/// Returns the best of the items, or a mismatch if there are none. Only the best item counts, and a penalty cannot be
/// the best.
pub fn best(items: Vec<Found>, shares: &[f64], place: &SourceLocation) -> Found {
    let share_of = |index: usize| shares.get(index).copied().unwrap_or_default();
    let mut whole = Found::scored(0.0, Pass::No);
    let mut tried = BranchTally::default();
    let mut counts: Option<(usize, f64)> = None;
    for (index, item) in items.iter().enumerate().filter(|(index, _)| share_of(*index) >= 0.0) {
        let (score, most) = (item.score * share_of(index), item.most * share_of(index));
        whole.most = if counts.is_none() { most } else { whole.most.max(most) };
        if counts.is_none_or(|(_, best)| best < score) {
            counts = Some((index, score));
            whole.score = score;
        }
        whole.pass = whole.pass.or(item.pass);
        tried.add(item, score);
    }
    if whole.pass != Pass::Yes {
        let branches = items.iter().enumerate().filter(|(index, _)| share_of(*index) >= 0.0).map(|(_, item)| item);
        whole.flaws.push(tried.flaw(whole.pass, none_of(branches, place)));
    }
    items
        .iter()
        .enumerate()
        .filter(|(index, _)| share_of(*index) < 0.0)
        .for_each(|(_, item)| punish(&mut whole, item, place));
    for (index, item) in items.into_iter().enumerate() {
        let passed_over = counts.is_none_or(|(best, _)| best != index);
        let details = weighing(item.details, share_of(index)).map(|detail| Detail { passed_over, ..detail });
        whole.details.extend(details);
    }
    whole
}

/// Applies a penalty to the verdict of `whole`. It has no effect unless it is critical, or it is undecided whether it
/// is incurred.
fn punish(whole: &mut Found, item: &Found, place: &SourceLocation) {
    match item.pass {
        Pass::Yes if item.critical => {
            whole.pass = Pass::No;
            let place = item.place.as_ref().unwrap_or(place);
            whole.flaws.push(penalty(&item.title, &item.details, place));
        }
        Pass::Unknown => {
            whole.pass = whole.pass.and(Pass::Unknown);
            let flaw = |flaw: &Flaw| Flaw { critical: item.critical, firm: false, ..flaw.clone() };
            whole.flaws.extend(item.flaws.iter().map(flaw));
        }
        Pass::Yes | Pass::No => {}
    }
}

/// Returns the mismatch for several branches of which none matches.
fn none_of<'f>(branches: impl Iterator<Item = &'f Found>, place: &SourceLocation) -> Flaw {
    let first: Vec<Option<&Flaw>> = branches.map(|branch| branch.flaws.first()).collect();
    let mut message = match first.len() {
        0 => "there is no expectation to match".to_owned(),
        1 => "the only branch does not match".to_owned(),
        count => format!("none of {count} branches matches"),
    };
    for (index, flaw) in first.iter().enumerate() {
        message.push_str(if index == 0 { ": " } else { "; " });
        message.push_str(flaw.and_then(|flaw| flaw.message.as_deref()).unwrap_or("no match"));
    }
    let actual = first.iter().find_map(|flaw| (*flaw)?.actual.clone());
    let expected: Vec<Option<Value>> = first.iter().map(|flaw| (*flaw)?.expected.clone()).collect();
    let known = expected.iter().any(Option::is_some);
    let expected = known.then(|| expected.into_iter().map(Option::unwrap_or_default).collect());
    Flaw { expected, actual, ..Flaw::new(place, message) }
}

/// Returns the mismatch for a value that must not be present.
fn penalty(title: &Option<String>, details: &[Detail], place: &SourceLocation) -> Flaw {
    let message = title.clone().unwrap_or_else(|| "a value exists but must not".into());
    let key = if let [only] = details { only.key.clone() } else { String::new() };
    Flaw { key: Some(key), critical: true, ..Flaw::new(place, message) }
}

fn weighing(details: Vec<Detail>, share: f64) -> impl Iterator<Item = Detail> {
    details.into_iter().map(move |detail| Detail { weight: share, ..detail })
}
