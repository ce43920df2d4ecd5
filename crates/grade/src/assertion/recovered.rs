//! `recovered`: the agent continued after the faults of its case, and ended normally.

use model::{Ending, FaultKind, FaultReport};

use super::prelude::*;
use crate::shell;

pub(crate) const ASSERTION: Assertion = Assertion::written("recovered", |_| Some(Arc::new(Recovered)))
    .summary("The agent continued after the faults of its case, and ended normally.")
    .fields(&[TITLE])
    .pass(
        || json!({"id": "recovers", "type": "recovered"}),
        || EvidenceBuilder::new().fault(FaultKind::HttpStatus, "HTTP 529", &[2], 4).answer("Done."),
    )
    .fail(
        || json!({"id": "recovers", "type": "recovered"}),
        || {
            let ending = Ending::GaveUp { reason: "API error 529".into() };
            EvidenceBuilder::new().fault(FaultKind::HttpStatus, "HTTP 529", &[2, 3], 3).ending(ending)
        },
    );

#[derive(Debug)]
struct Recovered;

impl Matcher for Recovered {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let reports = &evidence.collected.faults;
        let met: Vec<&FaultReport> = reports.iter().filter(|report| was_met(report, evidence)).collect();
        if met.is_empty() {
            let reason = if reports.is_empty() { "the case has no faults" } else { "no fault occurred" };
            return Ok(Verdict::undecided(format!("{reason}, so there was nothing to recover from")));
        }
        let expected = "an agent that continues and ends normally";
        if evidence.ending != Ending::Finished {
            let reason = format!("{}, after {}", evidence.ending.describe(), faults(&met));
            return Ok(Verdict::unmet(reason, expected, evidence.ending.describe()));
        }
        if let Some(report) = met.iter().find(|report| !went_on(report, evidence)) {
            let what = match report.fault {
                FaultKind::ToolFails => "the agent did nothing after the program had failed",
                _ => "the agent sent no model request after the fault",
            };
            return Ok(Verdict::unmet(format!("{what}: {}", report.detail), expected, what));
        }
        let word = if met.len() == 1 { "this fault" } else { "these faults" };
        Ok(Verdict::met(format!("the agent continued after {word}: {}", faults(&met))))
    }
}

/// Describes faults in a few words.
fn faults(met: &[&FaultReport]) -> String {
    format::few(met.iter().map(|report| report.detail.clone()).collect(), 3).join("; ")
}

/// Returns `true` if the agent met the fault. For a full disk or a read-only file, its results show whether it did.
fn was_met(report: &FaultReport, evidence: &Evidence) -> bool {
    let shows = |words: &[&str]| {
        let mut results = evidence.trace.calls.iter().filter_map(|traced| traced.result.as_ref());
        results.any(|result| words.iter().any(|word| result.content.contains(word)))
    };
    match report.fault {
        FaultKind::DiskFull => shows(&["No space left on device", "ENOSPC"]),
        FaultKind::ReadOnly => shows(&["Read-only file system", "EROFS", "read-only file system"]),
        _ => report.has_occurred(),
    }
}

/// Returns `true` if the agent did something after the last time the fault occurred.
fn went_on(report: &FaultReport, evidence: &Evidence) -> bool {
    let is_last = report.hits.last().is_some_and(|last| *last >= report.total);
    if !report.fault.breaks() || !is_last {
        return true;
    }
    // Another way to the same goal is a recovery too.
    report.fault == FaultKind::ToolFails && {
        let runs_it = |line: &str| {
            let commands = shell::commands(line);
            let mut programs = commands.iter().flat_map(|simple| shell::invocations(&simple.words));
            programs
                .any(|words| words.first().is_some_and(|program| report.detail.starts_with(&format!("`{program}` "))))
        };
        let calls = &evidence.trace.calls;
        let line = |at: usize| calls[at].call.command().and_then(|line| line.as_str());
        let last = (0..calls.len()).rev().find(|at| line(*at).is_some_and(runs_it));
        last.is_some_and(|last| last + 1 < calls.len())
    }
}

#[cfg(test)]
mod tests {
    use model::Status;

    use super::*;
    use crate::check::tests::judged;

    fn status(story: EvidenceBuilder) -> Status {
        judged(&json!({"id": "a", "type": "recovered"}), &story.evidence()).status
    }

    #[test]
    fn without_a_fault_that_occurred_it_is_undecided() {
        assert_eq!(status(EvidenceBuilder::new().answer("Done.")), Status::Undecided);
        let missed = EvidenceBuilder::new().fault(FaultKind::CutStream, "cut", &[], 2).answer("Done.");
        assert_eq!(status(missed), Status::Undecided);
        let unseen = EvidenceBuilder::new().fault(FaultKind::ReadOnly, "read-only: docs", &[], 0).answer("Done.");
        assert_eq!(status(unseen), Status::Undecided);
    }

    #[test]
    fn an_agent_that_ends_right_after_the_fault_did_not_recover() {
        let last = EvidenceBuilder::new().fault(FaultKind::CutStream, "cut", &[1, 2], 2).answer("Done.");
        assert_eq!(status(last), Status::Unmet);
        let slow = EvidenceBuilder::new().fault(FaultKind::SlowStream, "slow", &[2], 2).answer("Done.");
        assert_eq!(status(slow), Status::Met);
    }

    #[test]
    fn another_way_after_a_failed_program_is_a_recovery() {
        let story = || {
            EvidenceBuilder::new()
                .fault(FaultKind::ToolFails, "`npm` fails with exit code 1", &[1], 1)
                .call("Bash", json!({"command": "cd web && npm ci"}))
        };
        assert_eq!(status(story().answer("It does not work.")), Status::Unmet);
        assert_eq!(status(story().call("Bash", json!({"command": "yarn"})).answer("Done.")), Status::Met);
    }
}
