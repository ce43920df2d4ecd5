//! What trials are called on a screen: their id without the parts that all of them share.

use model::{TrialId, TrialRecord};

/// Knows which parts of an id tell a run's trials apart.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    arms: bool,
    repetitions: bool,
    width: usize,
}

impl Names {
    pub(crate) fn of<'a>(ids: impl IntoIterator<Item = &'a TrialId> + Clone) -> Self {
        let first = ids.clone().into_iter().next();
        let arms = ids.clone().into_iter().any(|id| first.is_some_and(|first| first.arm != id.arm));
        let repetitions = ids.clone().into_iter().any(|id| id.repetition > 1);
        let mut names = Self { arms, repetitions, width: 0 };
        names.width = ids.into_iter().map(|id| names.of_id(id).chars().count()).max().unwrap_or(0);
        names
    }

    /// The longest name, in characters.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Whether something is repeated.
    pub(crate) fn repeats(&self) -> bool {
        self.repetitions
    }

    pub(crate) fn of_id(&self, id: &TrialId) -> String {
        self.join(&id.suite, &id.case, &id.arm, id.repetition)
    }

    pub(crate) fn of_record(&self, record: &TrialRecord) -> String {
        self.join(&record.suite, &record.case, &record.arm, record.repetition)
    }

    fn join(&self, suite: &str, case: &str, arm: &str, repetition: u64) -> String {
        let mut name = format!("{suite}::{case}");
        if self.arms {
            name.push('@');
            name.push_str(arm);
        }
        if self.repetitions {
            name.push_str(&format!("#{repetition}"));
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(arm: &str, repetition: u64) -> TrialId {
        TrialId { suite: "s".into(), case: "c".into(), arm: arm.into(), repetition }
    }

    #[test]
    fn a_name_leaves_out_what_all_trials_share() {
        let name = |ids: &[TrialId]| Names::of(ids).of_id(&ids[0]);
        assert_eq!(name(&[id("a", 1)]), "s::c");
        assert_eq!(name(&[id("a", 1), id("b", 1)]), "s::c@a");
        assert_eq!(name(&[id("a", 1), id("a", 2)]), "s::c#1");
        assert_eq!(name(&[id("a", 1), id("b", 2)]), "s::c@a#1");
    }
}
