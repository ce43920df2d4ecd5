//! Collects the list items that were tried for one expectation, if one matching item is enough.

use crate::found::{Flaw, Found, Pass};

/// State of the critical parts of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CriticalState {
    /// No critical part fails.
    Kept,
    /// It is not decided.
    Doubtful,
    /// A critical part fails.
    Broken,
}

impl CriticalState {
    /// Returns the state of an item with the result `found`.
    pub fn new(found: &Found) -> Self {
        if found.fails_critically() {
            Self::Broken
        } else if found.may_fail_critically() {
            Self::Doubtful
        } else {
            Self::Kept
        }
    }
}

/// Combined result of the items. The best one counts, but an item that meets the critical parts takes precedence over
/// any that does not. Otherwise, the score of one item would be combined with the failure of another.
#[derive(Debug, Default)]
pub struct Candidates {
    kept: Option<Best>,
    doubtful: Option<Best>,
    broken: Option<Best>,
    /// True if a critical part of an item fails, or may fail.
    may_break: bool,
}

/// The best of the items in the same state.
#[derive(Debug)]
struct Best {
    score: f64,
    /// Lowest score of any of them.
    least: f64,
    /// Highest possible score of any of them.
    most: f64,
    firm: bool,
    index: usize,
    flaws: Vec<Flaw>,
}

impl Candidates {
    /// Adds the item at `index` with its result. `surely` is true if the item had to be tried, and false if that is
    /// undecided.
    pub fn add(&mut self, index: usize, found: Found, surely: bool) {
        let of_item = CriticalState::new(&found);
        self.may_break |= of_item != CriticalState::Kept;
        let state = if of_item == CriticalState::Kept && !surely { CriticalState::Doubtful } else { of_item };
        let firm = found.flaws.iter().any(|flaw| flaw.firm);
        let (score, most) = (found.score, found.most);
        self.put(state, Best { score, least: score, most, firm, index, flaws: found.flaws });
    }

    /// Adds the scores of an item.
    pub fn add_scores(&mut self, state: CriticalState, score: f64, most: f64) {
        self.put(state, Best { score, least: score, most, firm: false, index: 0, flaws: Vec::new() });
    }

    fn put(&mut self, state: CriticalState, new: Best) {
        let slot = match state {
            CriticalState::Kept => &mut self.kept,
            CriticalState::Doubtful => &mut self.doubtful,
            CriticalState::Broken => &mut self.broken,
        };
        let Some(known) = slot.as_mut() else {
            *slot = Some(new);
            return;
        };
        let (least, most) = (known.least.min(new.least), known.most.max(new.most));
        // If items have the same score, prefers one that a threshold could compensate for.
        if new.score > known.score || (new.score == known.score && known.firm && !new.firm) {
            *known = new;
        }
        (known.least, known.most) = (least, most);
    }

    /// Returns the lowest and the highest possible combined score, or 0 if no item was tried.
    pub fn scores(&self) -> (f64, f64) {
        let most = |best: &Option<Best>| best.as_ref().map_or(f64::NEG_INFINITY, |best| best.most);
        match (&self.kept, &self.doubtful, &self.broken) {
            (Some(kept), doubtful, _) => (kept.score, kept.most.max(most(doubtful))),
            (None, Some(doubtful), broken) => (doubtful.least, doubtful.most.max(most(broken))),
            (None, None, Some(broken)) => (broken.score, broken.most),
            (None, None, None) => (0.0, 0.0),
        }
    }

    fn best(&self) -> Option<&Best> {
        self.kept.as_ref().or(self.doubtful.as_ref()).or(self.broken.as_ref())
    }

    /// Returns the index of the best item, its score and its mismatches.
    pub fn nearest(&self) -> Option<(usize, f64, &[Flaw])> {
        self.best().map(|best| (best.index, best.score, best.flaws.as_slice()))
    }

    /// Returns the mismatch if no item was enough, given the combined verdict. If no item was tried, the mismatch
    /// fails the whole expectation if a part of it `is_critical`.
    pub fn flaw(&self, pass: Pass, flaw: Flaw, is_critical: bool) -> Flaw {
        let all_break = self.kept.is_none() && self.doubtful.is_none();
        let surely = flaw.critical || (all_break && (self.broken.is_some() || is_critical));
        let is_doubtful = self.kept.is_none() && self.doubtful.is_some() && (is_critical || self.may_break);
        Flaw {
            critical: surely || is_doubtful,
            undecided: pass == Pass::Unknown || (is_doubtful && !surely),
            firm: self.best().is_some_and(|best| best.firm),
            ..flaw
        }
    }
}
