//! Display names of trials: their ids without the parts that are the same for all.

use std::collections::HashMap;

use model::{CaseResults, TrialId, TrialRecord, TrialRow, WITHOUT_SKILL};

use crate::columns;
use crate::plain::clean;

/// The cases whose names include the arm and the repetition, because they ran under several arms or repeatedly.
#[derive(Debug, Clone, Default)]
pub(crate) struct Names {
    /// Suite → case → the parts that its name needs. Cases that need none are absent.
    cases: HashMap<String, HashMap<String, Needs>>,
    width: usize,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Needs {
    arm: bool,
    repetition: bool,
}

/// The parts of a name: suite, case, arm, repetition.
type Parts<'a> = (&'a str, &'a str, &'a str, u64);

impl Names {
    pub(crate) fn new(ids: &[TrialId]) -> Self {
        Self::of_parts(ids.iter().map(|id| (&*id.suite, &*id.case, &*id.arm, id.repetition)))
    }

    pub(crate) fn from_rows(rows: &[TrialRow]) -> Self {
        Self::of_parts(rows.iter().map(|row| (&*row.suite, &*row.case, &*row.arm, row.repetition)))
    }

    pub(crate) fn of_results<'a>(cases: impl Iterator<Item = &'a CaseResults> + Clone) -> Self {
        Self::of_parts(cases.map(|case| (&*case.suite, &*case.case, &*case.arm, 1)))
    }

    fn of_parts<'a>(parts: impl Iterator<Item = Parts<'a>> + Clone) -> Self {
        let mut first_arms: HashMap<(&str, &str), &str> = HashMap::new();
        let mut names = Self::default();
        for (suite, case, arm, repetition) in parts.clone() {
            let arm = *first_arms.entry((suite, case)).or_insert(arm) != arm;
            if arm || repetition > 1 {
                let needs = names.cases.entry(suite.to_owned()).or_default().entry(case.to_owned()).or_default();
                needs.arm |= arm;
                needs.repetition |= repetition > 1;
            }
        }
        names.width = columns::widest(parts.map(|parts| names.join(parts)));
        names
    }

    /// Returns the width of the widest name in columns.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    /// Returns `true` if a case ran more than once.
    pub(crate) fn compares(&self) -> bool {
        !self.cases.is_empty()
    }

    pub(crate) fn of_id(&self, id: &TrialId) -> String {
        self.join((&id.suite, &id.case, &id.arm, id.repetition))
    }

    pub(crate) fn of_record(&self, record: &TrialRecord) -> String {
        self.join((&record.suite, &record.case, &record.arm, record.repetition))
    }

    pub(crate) fn of_row(&self, row: &TrialRow) -> String {
        self.join((&row.suite, &row.case, &row.arm, row.repetition))
    }

    pub(crate) fn of_case(&self, case: &CaseResults) -> String {
        self.join((&case.suite, &case.case, &case.arm, 1))
    }

    fn needs(&self, suite: &str, case: &str) -> Needs {
        self.cases.get(suite).and_then(|cases| cases.get(case)).copied().unwrap_or_default()
    }

    fn join(&self, (suite, case, arm, repetition): Parts<'_>) -> String {
        let needs = self.needs(suite, case);
        let mut name = format!("{suite}::{case}");
        if needs.arm {
            name.push('@');
            name.push_str(arm);
        }
        if needs.repetition {
            name.push_str(&format!("#{repetition}"));
        }
        // A record that comes from elsewhere may have any characters in its names.
        if name.chars().any(char::is_control) { clean(&name).replace(['\n', '\t'], " ") } else { name }
    }
}

/// Returns `true` if `name` is the name of a skill, not of a prompt in its place.
pub(crate) fn is_skill(name: &str) -> bool {
    !name.starts_with("inline:")
}

/// Returns `true` if the trial is part of the baseline: its agent lacks the skill.
pub(crate) fn is_baseline(row: &TrialRow) -> bool {
    row.variant.as_deref() == Some(WITHOUT_SKILL)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(case: &str, arm: &str, repetition: u64) -> TrialId {
        TrialId { suite: "s".into(), case: case.into(), arm: arm.into(), repetition }
    }

    #[test]
    fn a_name_omits_parts_that_do_not_distinguish_trials() {
        let name = |ids: &[TrialId]| Names::new(ids).of_id(&ids[0]);
        assert_eq!(name(&[id("c", "a", 1)]), "s::c");
        assert_eq!(name(&[id("c", "a", 1), id("c", "b", 1)]), "s::c@a");
        assert_eq!(name(&[id("c", "a", 1), id("c", "a", 2)]), "s::c#1");
        assert_eq!(name(&[id("c", "a", 1), id("c", "b", 2)]), "s::c@a#1");
    }

    #[test]
    fn the_name_of_a_case_does_not_depend_on_other_cases() {
        let ids = [id("c", "a", 1), id("d", "b", 1), id("d", "b", 2), id("e", "a", 1), id("e", "b", 1)];
        let names = Names::new(&ids);
        let named: Vec<String> = ids.iter().map(|id| names.of_id(id)).collect();
        assert_eq!(named, ["s::c", "s::d#1", "s::d#2", "s::e@a", "s::e@b"]);
        assert!(names.compares() && !Names::new(&ids[..2]).compares());
        assert_eq!(names.width(), 6);
    }
}
