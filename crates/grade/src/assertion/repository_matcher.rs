//! Matchers of assertions about changes to the repository.

use std::fmt::Debug;

use model::{Evidence, Need, RepositoryChange};

use crate::evidence::repository::change;
use crate::matcher::{Judgement, Matcher};

/// Assertion about changes to the repository.
pub(crate) trait RepositoryMatcher: Debug + Send + Sync {
    /// Judges `change`, which is a part of `evidence`.
    fn judge_change(&self, change: &RepositoryChange, evidence: &Evidence) -> Judgement;
}

impl<M: RepositoryMatcher> Matcher for M {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Repository]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        self.judge_change(change(evidence)?, evidence)
    }
}
