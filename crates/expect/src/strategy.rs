//! How the items of a level come together into one result.

use model::Detail;
use serde_json::Value;

use crate::found::{Flaw, Found, Pass};
use crate::place::Place;
use crate::weight::Budget;

/// How items are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Strategy {
    /// All of them, each by its weight.
    #[default]
    Weighted,
    /// The best one.
    Max,
}

impl Strategy {
    /// Every strategy by its written names.
    pub const ALL: [(&'static str, Self); 4] =
        [("weighted", Self::Weighted), ("max", Self::Max), ("and", Self::Weighted), ("or", Self::Max)];

    /// As scripts name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Weighted => "weighted",
            Self::Max => "max",
        }
    }

    /// The strategy of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(written, _)| *written == name).map(|(_, strategy)| *strategy)
    }

    /// What each item is worth.
    pub fn distribute(self, budget: &Budget, weights: &[Option<f64>]) -> Vec<f64> {
        match self {
            Self::Weighted => budget.together(weights),
            Self::Max => budget.each(weights),
        }
    }

    /// The result of the items together. `place` is that of the whole.
    pub fn aggregate(self, items: Vec<Found>, shares: &[f64], place: &Place) -> Found {
        match self {
            Self::Weighted => weighted(items, shares, place),
            Self::Max => max(items, shares, place),
        }
    }
}

fn weighted(items: Vec<Found>, shares: &[f64], place: &Place) -> Found {
    let share_of = |at: usize| shares.get(at).copied().unwrap_or_default();
    // Where nothing can be earned, everything is there from the start, for penalties to take from.
    let earns = (0..items.len()).any(|at| share_of(at) > 0.0);
    let mut whole = Found::scored(if earns { 0.0 } else { 1.0 }, Pass::Yes);
    for (at, item) in items.into_iter().enumerate() {
        let share = share_of(at);
        whole.score += item.score * share;
        let critical = item.has_critical();
        if share >= 0.0 {
            whole.pass = whole.pass.and(item.pass);
            whole.flaws.extend(item.flaws);
        } else {
            match item.pass {
                Pass::Yes if critical => {
                    whole.pass = Pass::No;
                    let place = item.place.as_ref().unwrap_or(place);
                    whole.flaws.push(penalty(&item.title, &item.details, place));
                }
                Pass::Unknown => {
                    whole.pass = whole.pass.and(Pass::Unknown);
                    whole.flaws.extend(item.flaws);
                }
                Pass::Yes | Pass::No => {}
            }
        }
        whole.details.extend(weighing(item.details, share));
    }
    whole
}

fn max(items: Vec<Found>, shares: &[f64], place: &Place) -> Found {
    let mut best = Found::scored(0.0, Pass::No);
    let mut told = Vec::with_capacity(items.len());
    let mut critical = false;
    for (at, item) in items.into_iter().enumerate() {
        let share = shares.get(at).copied().unwrap_or_default();
        best.score = best.score.max(item.score * share);
        best.pass = match (best.pass, item.pass) {
            (Pass::Yes, _) | (_, Pass::Yes) => Pass::Yes,
            (Pass::Unknown, _) | (_, Pass::Unknown) => Pass::Unknown,
            _ => Pass::No,
        };
        critical |= item.has_critical();
        told.push((item.flaws.first().cloned(), item.flaws.len()));
        best.details.extend(weighing(item.details, share));
    }
    if best.pass != Pass::Yes {
        best.flaws.push(Flaw { critical, ..none_of(told, place) });
    }
    best
}

/// What is said when none of several branches matches.
fn none_of(branches: Vec<(Option<Flaw>, usize)>, place: &Place) -> Flaw {
    let mut message = match branches.len() {
        0 => "there is nothing that it could be".to_owned(),
        1 => "the only branch does not match".to_owned(),
        count => format!("none of {count} branches matches"),
    };
    for (at, (flaw, _)) in branches.iter().enumerate() {
        let because = flaw.as_ref().and_then(|flaw| flaw.message.as_deref()).unwrap_or("no match");
        message.push_str(if at == 0 { ": " } else { "; " });
        message.push_str(because);
    }
    let actual = branches.iter().find_map(|(flaw, _)| flaw.as_ref()?.actual.clone());
    let expected: Vec<Option<Value>> = branches.into_iter().map(|(flaw, _)| flaw?.expected).collect();
    let known = expected.iter().any(Option::is_some);
    let expected = known.then(|| expected.into_iter().map(Option::unwrap_or_default).collect());
    Flaw { expected, actual, ..Flaw::new(place, message) }
}

/// What is said when something that must not be is there.
fn penalty(title: &Option<String>, details: &[Detail], place: &Place) -> Flaw {
    let message = title.clone().unwrap_or_else(|| "something is there that must not be".into());
    let key = if let [only] = details { only.key.clone() } else { String::new() };
    Flaw { key: Some(key), critical: true, ..Flaw::new(place, message) }
}

fn weighing(details: Vec<Detail>, share: f64) -> impl Iterator<Item = Detail> {
    details.into_iter().map(move |detail| Detail { weight: share, ..detail })
}
