//! Collects the verdicts about each case.

use std::collections::BTreeMap;

use crate::outcome::{Audit, CaseAudit, SuiteAudit};
use crate::verdict::{AuditedCase, CaseVerdicts, Verdict};
use crate::weakness;

/// Collects the verdicts about each case.
#[derive(Debug, Default)]
pub struct AuditBuilder {
    entries: Vec<CaseVerdicts>,
    index: BTreeMap<(String, String), usize>,
}

impl AuditBuilder {
    /// Adds a case. A case that was already added is kept unchanged.
    pub fn add(&mut self, case: AuditedCase) {
        let key = (case.suite.clone(), case.id.clone());
        if !self.index.contains_key(&key) {
            self.index.insert(key, self.entries.len());
            self.entries.push(CaseVerdicts { case, verdicts: Vec::new(), mutated: None, not_mutated: None });
        }
    }

    /// Adds a verdict about a case, if the case is known.
    pub fn add_verdict(&mut self, suite: &str, case: &str, verdict: Verdict) {
        if let Some(entry) = self.entry(suite, case) {
            entry.verdicts.push(verdict);
        }
    }

    /// Sets the recorded trial whose evidence is mutated.
    pub fn mutates(&mut self, suite: &str, case: &str, trial: &str) {
        if let Some(entry) = self.entry(suite, case) {
            entry.mutated = Some(trial.to_owned());
        }
    }

    /// Sets the reason why no trial of the case is mutated.
    pub fn does_not_mutate(&mut self, suite: &str, case: &str, reason: &str) {
        if let Some(entry) = self.entry(suite, case) {
            entry.not_mutated = Some(reason.to_owned());
        }
    }

    fn entry(&mut self, suite: &str, case: &str) -> Option<&mut CaseVerdicts> {
        let at = *self.index.get(&(suite.to_owned(), case.to_owned()))?;
        self.entries.get_mut(at)
    }

    /// Returns the result.
    pub fn finish(self) -> Audit {
        let mut weaknesses = Vec::new();
        let mut suites: Vec<SuiteAudit> = Vec::new();
        let mut names: Vec<&str> = Vec::new();
        for entry in &self.entries {
            if !names.contains(&entry.case.suite.as_str()) {
                names.push(&entry.case.suite);
            }
        }
        for name in names {
            let entries: Vec<&CaseVerdicts> = self.entries.iter().filter(|entry| entry.case.suite == name).collect();
            weaknesses.extend(weakness::of_suite(name, &entries));
            suites.push(suite(name, &entries));
        }
        let sum = |of: fn(&SuiteAudit) -> usize| suites.iter().map(of).sum::<usize>();
        let score = share(
            sum(|suite| suite.rejected) + sum(|suite| suite.able_to_fail),
            sum(|suite| suite.adversary_trials) + sum(|suite| suite.assertions),
        );
        Audit { schema: "trialrun.audit/1", score, weaknesses: weakness::merged(weaknesses), suites, hacks: Vec::new() }
    }
}

fn suite(name: &str, entries: &[&CaseVerdicts]) -> SuiteAudit {
    let cases: Vec<CaseAudit> = entries.iter().map(|entry| entry.audit()).collect();
    let certain = entries.iter().filter(|entry| !entry.is_left_to_judge());
    let verdicts: Vec<bool> = certain.flat_map(|entry| entry.adversaries().map(|(_, passed)| passed)).collect();
    let decided = entries.iter().flat_map(|entry| {
        let assertions = entry.assertions().into_iter();
        assertions.filter(|assertion| entry.is_decided(assertion)).map(|one| !one.failed_for.is_empty())
    });
    let decided: Vec<bool> = decided.collect();
    let noticed: Vec<bool> = entries.iter().flat_map(|entry| entry.mutations().map(|(_, noticed)| noticed)).collect();
    let rejected = verdicts.iter().filter(|passed| !**passed).count();
    let able_to_fail = decided.iter().filter(|able| **able).count();
    SuiteAudit {
        name: name.to_owned(),
        score: share(rejected + able_to_fail, verdicts.len() + decided.len()),
        adversary_trials: verdicts.len(),
        rejected,
        assertions: decided.len(),
        able_to_fail,
        mutations: noticed.len(),
        noticed: noticed.iter().filter(|noticed| **noticed).count(),
        cases,
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}
