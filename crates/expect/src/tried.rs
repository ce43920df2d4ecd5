//! The items of a list that were tried on one expectation, of which one was enough.

use crate::found::{Flaw, Found, Pass};

/// How an item stands to what is critical in the expectation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing critical fails.
    Kept,
    /// Nobody can say.
    Doubtful,
    /// Something critical fails.
    Broken,
}

impl Standing {
    /// That of an item which came to `found`.
    pub fn of(found: &Found) -> Self {
        if found.fails_critically() {
            Self::Broken
        } else if found.may_fail_critically() {
            Self::Doubtful
        } else {
            Self::Kept
        }
    }
}

/// What the items come to together. The best one counts; but one that keeps to what is critical goes before any that does
/// not, for otherwise the score of one would be taken and the mistake of another.
#[derive(Debug, Default)]
pub struct Tried {
    kept: Option<Best>,
    doubtful: Option<Best>,
    broken: Option<Best>,
    /// True if something critical fails in an item, or may fail.
    may_break: bool,
}

/// The best of the items that stand alike.
#[derive(Debug)]
struct Best {
    score: f64,
    /// The least score of any of them.
    least: f64,
    /// What any of them might score at most.
    most: f64,
    firm: bool,
    index: usize,
    flaws: Vec<Flaw>,
}

impl Tried {
    /// Takes the item at `index` into account, which came to `found`. `surely` where it had to be tried, and not only
    /// perhaps.
    pub fn add(&mut self, index: usize, found: Found, surely: bool) {
        let of_item = Standing::of(&found);
        self.may_break |= of_item != Standing::Kept;
        let standing = if of_item == Standing::Kept && !surely { Standing::Doubtful } else { of_item };
        let firm = found.flaws.iter().any(|flaw| flaw.firm);
        let (score, most) = (found.score, found.most);
        self.put(standing, Best { score, least: score, most, firm, index, flaws: found.flaws });
    }

    /// Takes the scores of an item into account.
    pub fn add_scores(&mut self, standing: Standing, score: f64, most: f64) {
        self.put(standing, Best { score, least: score, most, firm: false, index: 0, flaws: Vec::new() });
    }

    fn put(&mut self, standing: Standing, new: Best) {
        let slot = match standing {
            Standing::Kept => &mut self.kept,
            Standing::Doubtful => &mut self.doubtful,
            Standing::Broken => &mut self.broken,
        };
        let Some(known) = slot.as_mut() else {
            *slot = Some(new);
            return;
        };
        let (least, most) = (known.least.min(new.least), known.most.max(new.most));
        // Of equals, one that a threshold could make up for.
        if new.score > known.score || (new.score == known.score && known.firm && !new.firm) {
            *known = new;
        }
        (known.least, known.most) = (least, most);
    }

    /// From the least to the most that they score together; nothing where none was tried.
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

    /// The position of the best one, its score and what is wrong with it.
    pub fn nearest(&self) -> Option<(usize, f64, &[Flaw])> {
        self.best().map(|best| (best.index, best.score, best.flaws.as_slice()))
    }

    /// The flaw that tells that none of them was enough, where they came to `pass`. Where none was tried, everything
    /// fails by it if something in the expectation `is_critical`.
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
