//! `retries_at_most`: the agent gave up or succeeded within a number of retries.

use std::collections::BTreeSet;

use model::{FaultReport, TracedCall};

use super::prelude::*;
use crate::call_pattern::{IsSame, is_same, may_be_same, unknown_arguments, unreported_calls};

pub(crate) const ASSERTION: Assertion = Assertion::written("retries_at_most", parse)
    .reported(Reported::ToolCalls)
    .summary("The agent retried each failed model request and each failed tool call at most this number of times.")
    .fields(&[Field::required("max", "whole number", "Maximum number of retries.")])
    .parameters(&[Parameter::Value("max")])
    .example(
        || json!({"id": "patient", "type": "retries_at_most", "max": 2}),
        || EvidenceBuilder::new().fault(model::FaultKind::HttpStatus, "HTTP 529", &[2, 3], 5).answer("Done."),
        || EvidenceBuilder::new().fault(model::FaultKind::HttpStatus, "HTTP 529", &[2, 3, 4], 6).answer("Done."),
    );

#[derive(Debug)]
struct RetriesAtMost {
    max: usize,
    place: SourceLocation,
}

fn parse(reading: &mut Reading<'_>) -> Option<Arc<dyn Matcher>> {
    let node = reading.fields.require("max", reading.problems)?;
    let max = reading.fields.whole("max", 0, reading.problems)?;
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    Some(Arc::new(RetriesAtMost { max, place: SourceLocation::from_node(node) }))
}

impl Matcher for RetriesAtMost {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        let requests = of_requests(&evidence.collected.faults);
        let calls = of_calls(&evidence.trace.calls, is_same, false);
        let is_over = |retries: Option<usize>| retries.is_some_and(|retries| retries > self.max);
        if !is_over(requests.map(|(_, retries)| retries))
            && !is_over(calls.map(|(_, retries)| retries))
            && let Some((at, retries)) = of_calls(&evidence.trace.calls, may_be_same, true)
            && is_over(Some(retries))
        {
            let call = &evidence.trace.calls[at].call;
            let reason = unknown_arguments(call).unwrap_or_else(|| {
                let call = format::shortened(&call.summary());
                format!("{call} may be a retry: not all arguments and results of the calls before it are reported")
            });
            return Ok(Verdict::undecided(reason).at_call(&evidence.trace, at).place(&self.place));
        }
        let (most, what, at) = match (requests, calls) {
            (Some((first, retries)), calls) if calls.is_none_or(|(_, other)| other <= retries) => {
                (retries, format!("model request {first}"), None)
            }
            (_, Some((at, retries))) => {
                (retries, format::shortened(&evidence.trace.calls[at].call.summary()), Some(at))
            }
            (_, None) => {
                let nothing =
                    || Verdict::met("no tool call and no injected fault is known to have failed, so no retry is known");
                let verdict = unreported_calls(&evidence.trace).map_or_else(nothing, Verdict::undecided);
                return Ok(verdict.place(&self.place));
            }
        };
        let retries = format!("{most} {}", if most == 1 { "retry" } else { "retries" });
        let reason = format!("{retries} of {what}");
        let verdict = match most > self.max {
            true => Verdict::unmet(reason, format!("at most {}", self.max), retries),
            false => Verdict::met(reason),
        };
        Ok(verdict.at_call(&evidence.trace, at).place(&self.place))
    }
}

/// Returns the number of the failed model request that was retried most often, and the number of its retries: the
/// requests after it, up to the first one without a fault.
fn of_requests(faults: &[FaultReport]) -> Option<(u64, usize)> {
    let of_requests = |report: &&FaultReport| report.fault.breaks() && report.fault != model::FaultKind::ToolFails;
    let broken: BTreeSet<u64> = faults.iter().filter(of_requests).flat_map(|report| report.hits.clone()).collect();
    let total = faults.iter().filter(of_requests).map(|report| report.total).max().unwrap_or(0);
    let firsts = broken.iter().filter(|number| !broken.contains(&number.saturating_sub(1)));
    let retries = |first: u64| {
        let end = (first..).find(|number| !broken.contains(number)).unwrap_or(first);
        usize::try_from(end.min(total).saturating_sub(first)).unwrap_or(usize::MAX)
    };
    firsts.map(|first| (*first, retries(*first))).max_by_key(|(_, retries)| *retries)
}

/// Returns the call that was retried most often after it failed, and the number of its retries: identical calls, each
/// of which follows a failed one. A call without a result has failed if `silence_is_failure`.
fn of_calls(calls: &[TracedCall], is_same: IsSame, silence_is_failure: bool) -> Option<(usize, usize)> {
    let has_failed = |traced: &TracedCall| traced.result.as_ref().map_or(silence_is_failure, |result| result.is_error);
    let mut longest = None;
    // The last of several identical calls, with the number of retries so far.
    let mut chains: Vec<(usize, usize)> = Vec::new();
    for (at, traced) in calls.iter().enumerate() {
        match chains.iter_mut().find(|(last, _)| is_same(&calls[*last].call, &traced.call)) {
            Some((last, retries)) => {
                *retries = if has_failed(&calls[*last]) { *retries + 1 } else { 0 };
                *last = at;
            }
            None => chains.push((at, 0)),
        }
        let retries = chains.iter().find(|(last, _)| *last == at).map_or(0, |(_, retries)| *retries);
        let is_failure = has_failed(traced) || retries > 0;
        if is_failure && longest.is_none_or(|(_, most)| retries > most) {
            longest = Some((at, retries));
        }
    }
    longest
}

#[cfg(test)]
mod tests {
    use model::{FaultKind, Status};

    use super::*;
    use crate::check::tests::judged;

    fn report(hits: &[u64], total: u64) -> FaultReport {
        FaultReport { fault: FaultKind::CutStream, detail: "cut".into(), hits: hits.to_vec(), total }
    }

    #[test]
    fn retries_of_requests_end_with_the_first_answer() {
        assert_eq!(of_requests(&[report(&[2], 3)]), Some((2, 1)));
        assert_eq!(of_requests(&[report(&[2], 2)]), Some((2, 0)));
        assert_eq!(of_requests(&[report(&[1], 9), report(&[4, 5], 9), report(&[6], 9)]), Some((4, 3)));
        assert_eq!(of_requests(&[]), None);
    }

    #[test]
    fn retries_of_calls_follow_a_failure_of_the_same_call() {
        let evidence = |lines: &[(&str, bool)]| {
            let story = lines
                .iter()
                .fold(EvidenceBuilder::new(), |story, (line, _)| story.call("Bash", json!({"command": line})));
            let mut evidence = story.evidence();
            for (traced, (_, failed)) in evidence.trace.calls.iter_mut().zip(lines) {
                traced.result.as_mut().unwrap().is_error = *failed;
            }
            evidence
        };
        let judge = |lines: &[(&str, bool)], max: u64| {
            judged(&json!({"id": "a", "type": "retries_at_most", "max": max}), &evidence(lines))
        };
        let lines = [("a", true), ("b", false), ("a", true), ("a", false), ("a", false)];
        assert_eq!(judge(&lines, 2).status, Status::Met);
        let over = judge(&lines, 1);
        assert_eq!((over.status, over.reason.as_str()), (Status::Unmet, "2 retries of Bash(command=\"a\")"));
        assert!(judge(&[("a", false), ("a", false)], 0).reason.ends_with("so no retry is known"));

        let mut silent = evidence(&[("a", false), ("b", false), ("a", false)]);
        silent.trace.calls.iter_mut().for_each(|traced| traced.result = None);
        let judge = |max: u64| judged(&json!({"id": "a", "type": "retries_at_most", "max": max}), &silent);
        assert_eq!((judge(0).status, judge(1).status), (Status::Undecided, Status::Met));
    }
}
