//! Grading a recorded trial again: its evidence comes from the record.

use std::sync::Arc;

use agent::Bill;
use grade::{Check, Responder};
use mask::MASKED;
use model::{Claim, Collected, Event, Evidence, Finding, Step, Trace, TrialRecord};
use tokio::sync::watch;

use super::grade::End;
use super::record::record_of;
use super::{Attempt, Interruption, Shared, StopLevel, broken, stopped};
use crate::event_bus::EventSender;
use crate::plan::PlannedTrial;

/// Reason why an assertion cannot be decided.
const MASKED_NOW: &str = "it examines text that is `[masked]` in the record";

/// Type of findings by hooks.
const HOOK: &str = "hook";

/// Recorded evidence of an attempt.
#[derive(Debug, Clone, Default)]
pub struct RecordedEvidence {
    /// Its `trial_started` event.
    pub started: Option<Event>,
    /// Steps of the agent.
    pub steps: Vec<Step>,
    /// Contents of the sandbox; absent if they were not collected.
    pub collected: Option<Collected>,
    /// Number of events written by another version, which this one cannot read.
    pub unknown: usize,
}

impl RecordedEvidence {
    /// Returns the evidence for grading. What the events do not contain comes from `record`.
    pub fn into_evidence(self, record: &TrialRecord) -> Evidence {
        let mut trace = Trace::of(&self.steps);
        self.collected.iter().for_each(|collected| collected.withdraw_forged(&mut trace));
        Evidence {
            trace,
            collected: self.collected.unwrap_or_default(),
            // A record without an ending has no evidence, and is not graded again.
            ending: record.ending.clone().unwrap_or(model::Ending::Cancelled),
            limits: Arc::clone(&record.limits),
            unused_responses: Vec::new(),
            agent_ms: record.agent_ms,
        }
    }
}

/// Grades a trial again, with the planned checks and the recorded evidence. The record of the agent is not changed.
pub(crate) async fn regrade(
    planned: &PlannedTrial,
    shared: &Arc<Shared>,
    events: &EventSender,
    stop_level: watch::Receiver<StopLevel>,
    old: &TrialRecord,
    recorded: RecordedEvidence,
) -> TrialRecord {
    let unknown = recorded.unknown;
    let evidence = recorded.into_evidence(old);
    let unused_responses = unused(planned, &evidence.trace);
    let evidence = Evidence { unused_responses, limits: Arc::clone(&planned.limits), ..evidence };
    let attempt = Attempt::new(planned, shared, events, stop_level);
    let assessed = attempt.unless(StopLevel::Kill, attempt.assess(&planned.checks, evidence)).await;
    let mut new = match assessed.and_then(|assessed| assessed) {
        Ok((mut findings, evidence, judge)) => {
            let unknown_now = what_is_masked(&planned.checks, &evidence, old, &mut findings);
            for finding in observed(old) {
                if findings.iter().all(|known| known.id != finding.id) {
                    findings.push(finding);
                }
            }
            let mut end = End { judge, bill: Bill::default(), ..End::of(evidence, findings, Vec::new()) };
            end.warnings.extend(unknown_now);
            if unknown > 0 {
                end.warnings.push(format!("{unknown} recorded events are from another version and were omitted"));
            }
            record_of(planned, end)
        }
        Err(Interruption::Broken(breakage)) => broken(planned, &breakage),
        Err(Interruption::Stopped) => stopped(planned),
    };
    if let (Some(_), Some(name)) = (new.judge, shared.judging.model()) {
        Arc::make_mut(&mut new.settings).insert("judge".to_owned(), name.into());
    }
    new.limits = planned.limits.clone();
    new.set_sampled(shared.judging.is_sampled(planned));
    new
}

/// Corrects `findings` if the record masks something that their checks look at: the earlier verdict is kept if the
/// assertion is the same, otherwise the finding is undecided. Judges never saw the user's secrets, so their verdicts
/// stand. Returns a one-line warning about it.
fn what_is_masked(
    checks: &[Check],
    evidence: &Evidence,
    old: &TrialRecord,
    findings: &mut [Finding],
) -> Option<String> {
    let mut undecided: Vec<&str> = Vec::new();
    // The agent itself may have written the mark.
    if !old.masked {
        return None;
    }
    for (check, finding) in checks.iter().zip(findings) {
        if check.asks_judge() || !grade::looks_at_masked(check, evidence, MASKED) {
            continue;
        }
        let digest = check.digest();
        let then = old.findings.iter().find(|then| then.id == check.id() && then.masked.as_ref() == Some(&digest));
        *finding = match then {
            Some(then) => Finding { weight: check.weight(), ..then.clone() },
            None => {
                undecided.push(check.id());
                Finding::undecided(check.id(), check.kind(), check.weight(), Some(check.source()), MASKED_NOW)
            }
        };
    }
    let names = undecided.iter().map(|id| format!("`{id}`")).collect::<Vec<_>>().join(", ");
    (!undecided.is_empty()).then(|| format!("{names}: new or changed since the run; {MASKED_NOW}"))
}

/// Returns the findings that were decided while the sandbox existed. They are kept, because the sandbox is gone.
fn observed(old: &TrialRecord) -> Vec<Finding> {
    old.findings.iter().filter(|finding| finding.claim == Claim::Observed || finding.kind == HOOK).cloned().collect()
}

/// Returns the prepared answers of the current case that no question matched.
fn unused(planned: &PlannedTrial, trace: &Trace) -> Vec<usize> {
    let (mut responder, _) = Responder::compile(&planned.case.user_responses);
    for question in &trace.questions {
        let _ = responder.answer(&mut question.clone());
    }
    responder.unused()
}
