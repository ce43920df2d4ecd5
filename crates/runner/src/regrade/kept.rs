//! The parts of a record that do not change when it is graded again.

use std::sync::Arc;

use model::{Event, Fault, Outcome, TrialId, TrialRecord};

/// Returns the record of a trial that is not graded again, with the reason as a warning.
pub(super) fn as_it_was(mut old: TrialRecord, reason: Option<&str>) -> TrialRecord {
    let warning = reason.map(|reason| format!("not graded again: {reason}"));
    old.warnings.extend(warning.filter(|warning| !old.warnings.contains(warning)));
    old
}

/// Returns the record of a trial that can no longer be graded.
pub(super) fn without_verdict(old: TrialRecord, outcome: Outcome, reason: &str) -> TrialRecord {
    TrialRecord {
        outcome,
        reason: Some(reason.to_owned()),
        flaky: false,
        fault: None,
        findings: Vec::new(),
        score: None,
        max_score: None,
        judge: None,
        ..old
    }
}

/// Returns the record of a trial that could not be graded again for a reason other than its agent.
pub(super) fn broken(old: TrialRecord, fault: Fault, reason: &str) -> TrialRecord {
    TrialRecord { fault: Some(fault), ..without_verdict(old, Outcome::Broken, reason) }
}

/// Merges the record `new` of a regraded trial into `old`: the verdict comes from `new`, everything about the agent
/// from `old`.
pub(super) fn merged(old: TrialRecord, new: TrialRecord) -> TrialRecord {
    let mut attempts = old.attempts;
    if let Some(last) = attempts.last_mut() {
        (last.outcome, last.reason) = (new.outcome, new.reason.clone());
        (last.met_share, last.score, last.triggered) = (new.met_share(), new.score_bounds(), new.triggered);
    }
    let mut warnings = new.warnings;
    warnings.extend(
        old.warnings.into_iter().filter(|warning| !new.findings.iter().any(|finding| finding.reason == *warning)),
    );
    warnings.dedup();
    let mut settings = old.settings;
    if let Some(judge) = new.settings.get("judge") {
        Arc::make_mut(&mut settings).insert("judge".to_owned(), judge.clone());
    }
    TrialRecord {
        flaky: TrialRecord::is_flaky(new.outcome, &attempts),
        outcome: new.outcome,
        fault: new.fault,
        reason: new.reason,
        score: new.score,
        max_score: new.max_score,
        pass_score: new.pass_score,
        findings: new.findings,
        title: new.title,
        tags: new.tags,
        quarantine: new.quarantine,
        expected: new.expected,
        expected_trace: new.expected_trace,
        expected_schema: new.expected_schema,
        not: new.not,
        triggered: new.triggered,
        should_trigger: new.should_trigger,
        judge: new.judge,
        judge_sampled: new.judge_sampled,
        limits: new.limits,
        warnings,
        settings,
        attempts,
        ..TrialRecord { attempts: Vec::new(), warnings: Vec::new(), settings: Arc::default(), ..old }
    }
}

/// Returns the start event for a trial that exists only as a record.
pub(super) fn begun(old: &TrialRecord) -> Event {
    Event::TrialStarted {
        id: TrialId {
            suite: old.suite.clone(),
            case: old.case.clone(),
            arm: old.arm.clone(),
            repetition: old.repetition,
        },
        agent: old.agent.clone(),
        model: old.model.clone(),
        subject: old.skill.as_ref().map(|skill| skill.name.clone()),
        file: "".into(),
        messages: old.input.clone(),
        position: old.position,
        script: old.script.clone(),
        input: old.input_value.clone(),
    }
}
