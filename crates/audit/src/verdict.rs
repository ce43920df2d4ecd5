//! Verdicts on the trials of a case, and what they say about its assertions.

use agent::Role;
use model::{Excerpt, Finding, Outcome, Status, TrialRecord};

use crate::outcome::{AssertionAudit, CaseAudit};

/// Types of assertions about time. Adversaries are fast, so no adversary can make them fail.
pub(crate) const ABOUT_TIME: [&str; 2] = ["latency", "time_budget"];

/// Types of assertions about what adversaries do not use: servers, mocked programs, review requests, and a model.
const OUT_OF_REACH: [&str; 4] = ["mcp_not_called", "mock_not_called", "review_request_not_created", "retries_at_most"];

/// A case under audit.
#[derive(Debug, Clone)]
pub struct AuditedCase {
    /// Name of the suite.
    pub suite: String,
    /// Id of the case.
    pub id: String,
    /// Location of the case.
    pub source: Excerpt,
    /// Messages of the user.
    pub prompt: String,
    /// True if doing nothing is right: the skill must not trigger, or the case has `not`.
    pub only_forbids: bool,
    /// Reason why it is not audited.
    pub not_audited: Option<String>,
}

/// Cause of a verdict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cause {
    /// An adversary.
    Adversary {
        /// Name.
        name: &'static str,
        /// Behaviour, in a few words.
        summary: &'static str,
        /// Purpose in the audit.
        role: Role,
    },
    /// A recorded good trial, unchanged.
    Good,
    /// A mutation of a good trial.
    Mutation(String),
}

impl Cause {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Adversary { name, .. } => name,
            Self::Good => "good trial",
            Self::Mutation(name) => name,
        }
    }
}

/// Verdict on one trial.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Cause.
    pub by: Cause,
    /// Outcome.
    pub outcome: Outcome,
    /// Reason, unless it passed.
    pub reason: Option<String>,
    /// True if only a judge can decide it.
    pub is_left_to_judge: bool,
    /// Findings of the assertions that are written in the case.
    pub findings: Vec<Finding>,
}

impl Verdict {
    /// Returns the verdict in a record.
    pub fn of(by: Cause, record: TrialRecord) -> Self {
        let only_judge_missing = Finding::decisive(&record.findings)
            .filter(|finding| finding.status == Status::Undecided)
            .all(|finding| finding.judged);
        let is_left_to_judge = record.outcome == Outcome::Undecided && only_judge_missing;
        let findings = record.findings.into_iter().filter(|finding| !finding.implicit).collect();
        Self { by, outcome: record.outcome, reason: record.reason, is_left_to_judge, findings }
    }
}

/// A case and its verdicts.
#[derive(Debug)]
pub(crate) struct CaseVerdicts {
    pub(crate) case: AuditedCase,
    pub(crate) verdicts: Vec<Verdict>,
    /// Recorded trial that was mutated.
    pub(crate) mutated: Option<String>,
    /// Reason why no trial was mutated.
    pub(crate) not_mutated: Option<String>,
}

impl CaseVerdicts {
    /// Returns the verdicts on adversaries that should not pass the case, each with `true` if it passed. Undecided and
    /// broken trials are omitted.
    pub(crate) fn adversaries(&self) -> impl Iterator<Item = (&Verdict, bool)> {
        let counts = |verdict: &&Verdict| match verdict.by {
            Cause::Adversary { role: Role::Idle, .. } => !self.case.only_forbids,
            Cause::Adversary { role: Role::Busy, .. } => true,
            _ => false,
        };
        // A case that only asks whether the skill is used can say nothing about the work.
        let is_about_work = |verdict: &&Verdict| {
            verdict.findings.is_empty() || !verdict.findings.iter().all(Finding::is_about_skill_use)
        };
        self.verdicts.iter().filter(counts).filter(is_about_work).filter_map(|verdict| match verdict.outcome {
            Outcome::Passed => Some((verdict, true)),
            Outcome::Failed => Some((verdict, false)),
            _ => None,
        })
    }

    /// Returns the status of an assertion for the adversary `name`.
    pub(crate) fn status(&self, name: &str, assertion: &str) -> Option<Status> {
        let verdict = self.verdicts.iter().find(|verdict| verdict.by.name() == name)?;
        verdict.findings.iter().find(|finding| finding.id == assertion).map(|finding| finding.status)
    }

    /// Returns the assertions, in the order in which they were first decided.
    pub(crate) fn assertions(&self) -> Vec<AssertionAudit> {
        let mut assertions: Vec<AssertionAudit> = Vec::new();
        // What a solution shows is not whether an assertion can fail.
        let is_reference = |verdict: &&Verdict| matches!(verdict.by, Cause::Adversary { role: Role::Reference, .. });
        for verdict in self.verdicts.iter().filter(|verdict| !is_reference(verdict)) {
            for finding in &verdict.findings {
                let at = assertions.iter().position(|known| known.id == finding.id).unwrap_or_else(|| {
                    assertions.push(AssertionAudit {
                        id: finding.id.clone(),
                        kind: finding.kind.clone(),
                        line: finding.source.as_ref().map(|source| source.line),
                        failed_for: Vec::new(),
                        held: 0,
                        undecided: None,
                        judged: finding.judged,
                        source: finding.source.clone(),
                    });
                    assertions.len() - 1
                });
                let assertion = &mut assertions[at];
                match finding.status {
                    Status::Met => assertion.held += 1,
                    Status::Unmet => assertion.failed_for.push(verdict.by.name().to_owned()),
                    Status::Undecided => assertion.undecided = Some(finding.reason.clone()),
                }
            }
        }
        for assertion in &mut assertions {
            if !assertion.failed_for.is_empty() {
                assertion.undecided = None;
            } else if assertion.held > 0 {
                assertion.undecided = self.out_of_reach(&assertion.kind).map(str::to_owned);
            }
        }
        assertions
    }

    /// Returns `true` if a verdict on an adversary depends on a judge, which an audit does not ask.
    pub(crate) fn is_left_to_judge(&self) -> bool {
        self.verdicts.iter().any(|verdict| verdict.is_left_to_judge && verdict.counts())
    }

    /// Returns the reason why no trial of the audit can make an assertion of the type `kind` fail.
    fn out_of_reach(&self, kind: &str) -> Option<&'static str> {
        match kind {
            _ if ABOUT_TIME.contains(&kind) && self.mutated.is_none() => Some("adversaries are fast"),
            _ if OUT_OF_REACH.contains(&kind) => Some("adversaries do not do what it forbids"),
            _ => None,
        }
    }

    /// Returns `true` if the audit can say whether the assertion can fail. Without a judge, a judged assertion fails only
    /// if there is nothing to judge.
    pub(crate) fn is_decided(&self, assertion: &AssertionAudit) -> bool {
        let is_in_reach = self.out_of_reach(&assertion.kind).is_none();
        !assertion.judged && (!assertion.failed_for.is_empty() || (assertion.held > 0 && is_in_reach))
    }

    pub(crate) fn audit(&self) -> CaseAudit {
        let by = |wanted: bool| {
            let those = self.adversaries().filter(|(_, passed)| *passed == wanted);
            those.map(|(verdict, _)| verdict.by.name().to_owned()).collect()
        };
        let mutations = self.mutations();
        let left_to_judge = self.verdicts.iter().filter(|verdict| verdict.is_left_to_judge && verdict.counts());
        CaseAudit {
            id: self.case.id.clone(),
            file: self.case.source.file.to_string(),
            line: self.case.source.line,
            passed_by: by(true),
            rejected: by(false),
            left_to_judge: left_to_judge.map(|verdict| verdict.by.name().to_owned()).collect(),
            assertions: self.assertions(),
            mutated: self.mutated.clone(),
            not_mutated: self.not_mutated.clone(),
            unnoticed: mutations
                .filter(|(_, noticed)| !noticed)
                .map(|(verdict, _)| verdict.by.name().to_owned())
                .collect(),
            not_audited: self.not_audited(),
        }
    }

    /// Returns the mutations of a good trial, each with `true` if an assertion noticed it. Mutations that only an
    /// undecided assertion may have noticed are omitted.
    pub(crate) fn mutations(&self) -> impl Iterator<Item = (&Verdict, bool)> {
        let of_mutation = |verdict: &&Verdict| matches!(verdict.by, Cause::Mutation(_));
        self.verdicts.iter().filter(of_mutation).filter_map(|verdict| {
            let has = |status: Status| verdict.findings.iter().any(|finding| finding.status == status);
            match (has(Status::Unmet), has(Status::Undecided)) {
                (true, _) => Some((verdict, true)),
                (false, true) => None,
                (false, false) => Some((verdict, false)),
            }
        })
    }

    /// Returns the reason why the case was not audited.
    pub(crate) fn not_audited(&self) -> Option<String> {
        if self.case.not_audited.is_some() {
            return self.case.not_audited.clone();
        }
        let is_broken = |verdict: &Verdict| !verdict.outcome.is_graded() && verdict.outcome != Outcome::Skipped;
        let broken = self.verdicts.iter().all(is_broken).then(|| self.verdicts.first()).flatten();
        match broken {
            Some(verdict) => Some(verdict.reason.clone().unwrap_or_else(|| verdict.outcome.name().to_owned())),
            None if self.verdicts.is_empty() => Some("it was not run".to_owned()),
            None => None,
        }
    }
}

impl Verdict {
    fn counts(&self) -> bool {
        matches!(self.by, Cause::Adversary { role: Role::Idle | Role::Busy, .. })
    }
}
