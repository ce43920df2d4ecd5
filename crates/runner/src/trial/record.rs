//! Record of a trial: its evidence and findings in the form used in reports.

use std::sync::Arc;

use jiff::Timestamp;
use model::{
    AnsweredQuestion, AttemptRecord, CallRecord, Diagnostic, Ending, Evidence, Fault, Finding, LogVars, Outcome,
    OutcomeRule, ReplyRecord, RepositoryChange, Status, Trace, TracedReply, TrialRecord,
};
use sandbox::Breakage;

use super::grade::End;
use crate::plan::PlannedTrial;

/// Returns the record of an attempt that ran to its end.
pub(super) fn record_of(planned: &PlannedTrial, end: End) -> TrialRecord {
    let End { evidence, findings, mut warnings, kept, errors, scores, judge, bill, exit_code, side_effects } = end;
    warnings.extend(grade::warnings(&planned.case, &evidence).iter().map(ToString::to_string));
    let traffic = evidence.collected.model_traffic.as_ref();
    warnings.extend(traffic.and_then(|traffic| traffic.difference(evidence.trace.usage.tokens.as_ref())));
    let agent_ms = evidence.agent_ms();
    let integrity = grade::integrity(&evidence);
    let Evidence { mut trace, collected, ending, .. } = evidence;
    let usage = trace.unreported.complete(trace.usage);
    let replies = replies(&trace);
    let calls_unreported = trace.has_unreported_calls();
    let installed = planned.case.subject.installed();
    let used = installed.and_then(|skill| grade::is_used(&trace, planned.case.definition, &skill.name));
    // The result may be large, and is not copied if this is the only reference.
    trace.replies.clear();
    let result = trace.result.take().map(Arc::unwrap_or_clone);
    let outcome = Outcome::of(&findings, &ending, &planned.case.ruling);
    // An agent that was interrupted might still have used the skill.
    let triggered = used.filter(|used| *used || outcome.is_graded());
    // The agent did not get its answers, so nothing about its work can be said.
    let findings = if outcome == Outcome::Stale { Vec::new() } else { findings };
    let (score, max_score) = match planned.case.ruling.scoring {
        Some(scoring) => (Some(scoring.score(&findings)), scoring.max_score),
        None if planned.case.code.is_some() => (share(&findings), 1.0),
        None => {
            let (score, max_score) = grade::score(&findings);
            (Some(score), max_score)
        }
    };
    let fault = match (&ending, outcome) {
        (Ending::ProviderFailed { .. }, _) => Some(Fault::Provider),
        (Ending::InvalidTest { .. }, _) => Some(Fault::Test),
        (Ending::Silent { .. }, _) => None,
        (_, Outcome::Broken) => Some(Fault::Environment),
        (_, Outcome::Undecided) if is_judges(&findings) => Some(Fault::Judge),
        (_, Outcome::Undecided) => Some(Fault::Harness),
        _ => None,
    };
    let reason = match outcome {
        Outcome::Passed => None,
        Outcome::Failed => first_of(&findings, Status::Unmet, !ending.goes_on())
            .or_else(|| planned.case.ruling.scoring.and_then(|scoring| scoring.reason(&findings)))
            .or_else(|| planned.case.ruling.not.then(|| "all assertions hold, but the case has `not`".into())),
        Outcome::Undecided => open_because(&findings, &planned.case.ruling),
        Outcome::Broken | Outcome::Stale | Outcome::Cancelled | Outcome::Skipped => Some(ending.describe()),
    };
    let vars = has_vars(&planned.case.log_vars, outcome);
    TrialRecord {
        vars: planned.case.messages.first().filter(|_| vars).map(|message| message.vars.clone()),
        pass_score: planned.case.ruling.scoring.map(|scoring| scoring.pass_score),
        outcome,
        fault,
        reason,
        ending: Some(ending),
        score,
        max_score: Some(max_score),
        findings,
        input: match (&planned.case.code, &planned.case.user) {
            // The messages are not known beforehand.
            (Some(_), _) | (_, Some(_)) => trace.user_messages.clone(),
            (None, None) => planned.case.messages.iter().map(|message| message.text.clone()).collect(),
        },
        scores,
        judge,
        answer: trace.answer.clone(),
        result,
        replies,
        turn_count: trace.turn_count(),
        tool_calls: trace
            .calls
            .iter()
            .map(|traced| CallRecord {
                name: traced.call.name.clone(),
                raw_name: traced.call.raw_name.clone(),
                input: traced.call.input.clone(),
                result: traced.result.as_ref().map(|result| result.content.clone()),
                is_error: traced.result.as_ref().is_some_and(|result| result.is_error),
                turn: traced.turn,
                parent: traced.call.parent.clone(),
            })
            .collect(),
        calls_unreported,
        questions: trace
            .questions
            .iter()
            .map(|asked| AnsweredQuestion { question: asked.question.clone(), answer: asked.answer.clone() })
            .collect(),
        usage: usage.tokens,
        cost_usd: usage.cost_usd,
        cost_source: usage.cost_usd.and(bill.source).map(str::to_owned),
        cost_usd_cli: bill.reported_usd,
        triggered,
        side_effects: side_effects.unwrap_or_else(|| {
            collected.repository_change.as_deref().map(RepositoryChange::side_effects).unwrap_or_default()
        }),
        exit_code,
        agent_ms,
        session_id: trace.session_id.clone(),
        agent_version: trace.agent_version.clone(),
        auth: trace.auth.clone(),
        network: collected.network,
        model_traffic: collected.model_traffic,
        cassette: None,
        egress: trace.egress,
        injected_faults: collected.faults,
        mock_calls: trace.mock_calls,
        integrity,
        files_changed: collected.files_changed,
        sandbox: kept,
        errors,
        warnings,
        settings: Arc::clone(&planned.recorded_settings),
        ..empty_record(planned)
    }
}

/// Returns `true` if the record of a trial with this outcome contains the case's variables.
fn has_vars(log_vars: &LogVars, outcome: Outcome) -> bool {
    match log_vars {
        LogVars::Always => true,
        LogVars::OnFailure => outcome != Outcome::Passed,
        LogVars::Never => false,
    }
}

/// Returns a trial's replies; their answers only if there are several.
fn replies(trace: &Trace) -> Vec<ReplyRecord> {
    let is_only = trace.replies.len() == 1;
    let reply = |reply: &TracedReply| ReplyRecord {
        answer: reply.answer.clone().filter(|_| !is_only),
        latency_ms: reply.latency_ms,
        first_token_ms: reply.first_token_ms,
    };
    trace.replies.iter().map(reply).collect()
}

/// Returns the score of a scenario's decided claims as a share of the maximum, from 0 to 1; `None` if none is decided.
fn share(findings: &[Finding]) -> Option<f64> {
    let written: Vec<Finding> = findings.iter().filter(|finding| !finding.implicit).cloned().collect();
    let (sum, weights) = grade::score(&written);
    (weights > 0.0).then(|| sum / weights)
}

/// Returns the reason why a trial is undecided, with a note if all decided findings passed.
fn open_because(findings: &[Finding], ruling: &OutcomeRule) -> Option<String> {
    let reason = first_of(findings, Status::Undecided, false)
        .or_else(|| ruling.scoring.and_then(|scoring| scoring.reason(findings)))?;
    let open = Finding::decisive(findings).filter(|finding| !finding.is_decided()).count();
    let noun = if open == 1 { "assertion" } else { "assertions" };
    Some(match Outcome::of_decided(findings, ruling) {
        Some(true) => format!("passed except for {open} undecided {noun}: {reason}"),
        _ => reason,
    })
}

/// Returns `true` if all undecided findings are a judge's.
fn is_judges(findings: &[Finding]) -> bool {
    let mut open = Finding::decisive(findings).filter(|finding| finding.status == Status::Undecided).peekable();
    open.peek().is_some() && open.all(|finding| finding.judged)
}

/// Returns the first decisive finding with `status` and the number of others. If the act phase ended badly, this is the
/// cause of the rest, so the implicit finding about the ending comes first.
fn first_of(findings: &[Finding], status: Status, ended_badly: bool) -> Option<String> {
    let all: Vec<&Finding> = Finding::decisive(findings).filter(|finding| finding.status == status).collect();
    let of_ending = all.iter().find(|finding| ended_badly && finding.implicit);
    let first = of_ending.or_else(|| all.first())?;
    let rest = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
    Some(format!("{}: {}{rest}", first.id, first.reason))
}

/// Returns the record of a trial that an infrastructure problem prevented from getting a verdict.
pub(crate) fn broken(planned: &PlannedTrial, breakage: &Breakage) -> TrialRecord {
    TrialRecord {
        outcome: Outcome::Broken,
        fault: Some(breakage.fault),
        reason: Some(breakage.reason.clone()),
        errors: vec![breakage.reason.clone()],
        ..empty_record(planned)
    }
}

/// Returns the record of a trial whose case cannot be run.
pub(crate) fn unloaded(planned: &PlannedTrial) -> TrialRecord {
    let message = |problem: &Diagnostic| {
        let help = problem.help.iter().map(|help| format!("; {help}"));
        format!("{problem}{}", help.collect::<String>())
    };
    let errors: Vec<String> = planned.case.broken.iter().map(message).collect();
    let more = if errors.len() > 1 { format!(" (and {} more)", errors.len() - 1) } else { String::new() };
    let reason = errors.first().map_or_else(|| "it cannot be run".to_owned(), |first| format!("{first}{more}"));
    TrialRecord { errors, ..broken(planned, &Breakage::test(reason)) }
}

/// Returns the record of a trial whose task panicked.
pub(crate) fn panicked(planned: &PlannedTrial) -> TrialRecord {
    broken(planned, &Breakage::harness("the trial's task panicked; this is a bug in trialrun"))
}

/// Returns the record of a trial that was stopped before its agent left anything.
pub(crate) fn stopped(planned: &PlannedTrial) -> TrialRecord {
    let ending = Ending::Cancelled;
    TrialRecord { reason: Some(ending.describe()), ending: Some(ending), ..empty_record(planned) }
}

/// Returns the record of a trial that was not started, with the reason.
pub(crate) fn cancelled(planned: &PlannedTrial, reason: &str) -> TrialRecord {
    TrialRecord { reason: Some(reason.to_owned()), ..empty_record(planned) }
}

/// Returns the record of a skipped trial.
pub(crate) fn skipped(planned: &PlannedTrial, reason: &str) -> TrialRecord {
    TrialRecord { outcome: Outcome::Skipped, reason: Some(reason.to_owned()), ..empty_record(planned) }
}

/// Returns the record of the attempt that ended with `record`.
pub(super) fn attempt_of(record: &TrialRecord) -> AttemptRecord {
    AttemptRecord {
        outcome: record.outcome,
        reason: record.reason.clone(),
        answer: record.answer.clone(),
        met_share: record.met_share(),
        score: record.score_bounds(),
        triggered: record.triggered,
        usage: record.usage,
        cost_usd: record.cost_usd,
        duration_ms: record.duration_ms,
    }
}

fn empty_record(planned: &PlannedTrial) -> TrialRecord {
    let message = planned.case.messages.first();
    TrialRecord {
        id: (&planned.id()).into(),
        suite: planned.suite.clone(),
        case: planned.case_id.clone(),
        title: planned.case.description.clone(),
        tags: planned.case.tags.clone(),
        quarantine: planned.case.quarantine.clone(),
        arm: planned.arm_name.clone(),
        agent: planned.arm.agent.clone(),
        model: planned.arm.model.clone(),
        variant: planned.arm.variant.clone(),
        repetition: planned.repetition,
        auto_trials: planned.auto,
        file: Some(Arc::clone(&planned.case.source.file)),
        // An excerpt without text refers to the whole file.
        line: (!planned.case.source.text.is_empty()).then_some(planned.case.source.line),
        outcome: Outcome::Cancelled,
        input: planned.case.messages.iter().map(|message| message.text.clone()).collect(),
        input_value: message.and_then(|message| message.input.clone()),
        expected: planned.case.expected.clone(),
        expected_trace: planned.case.expected_trace.clone(),
        expected_schema: planned.case.expected_schema.clone(),
        script: message.and_then(|message| message.script.clone()),
        tools: message.map(|message| message.tools.clone()).unwrap_or_default(),
        not: planned.case.ruling.not,
        position: planned.case.position,
        should_trigger: planned
            .case
            .subject
            .installed()
            .and(planned.case.skill_eval.as_ref())
            .map(|eval| eval.should_trigger),
        started_at: Timestamp::now(),
        skill: planned.skill_info(),
        limits: Arc::clone(&planned.limits),
        ..TrialRecord::default()
    }
}
