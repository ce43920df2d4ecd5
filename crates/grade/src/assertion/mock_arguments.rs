//! `mock_arguments`: calls to mocks had the arguments that the case expects.

use model::{MockCall, MockVerdict};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::implicit("mock_arguments", judge)
    .summary(
        "Mocked tools were called with the arguments that `expect` requires, and no condition of `abort_when` was met.",
    )
    .example(
        nothing_written,
        || EvidenceBuilder::new().mocked("issues", "close_issue", json!({"id": 7})),
        || EvidenceBuilder::new().rejected("issues", "close_issue", json!({"id": 9}), "`id` is 9, not `7`"),
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let trace = &evidence.trace;
    trace.mocks.as_ref()?;
    let rejected: Vec<&MockCall> =
        trace.mock_calls.iter().filter(|call| call.verdict == MockVerdict::Rejected).collect();
    let Some((first, others)) = rejected.split_first() else {
        let reason = match trace.mock_calls.len() {
            0 => "no mock was called".to_owned(),
            count => format!("none of {} to mocks was rejected", format::count(count, "call")),
        };
        return Some(Verdict::met(reason));
    };
    let reason = format!("{} rejected", format::count(rejected.len(), "call"));
    let verdict = Verdict::unmet(reason, "only calls that the mocks expect", first.describe());
    let others = others.iter().map(|call| call.describe()).collect();
    Some(verdict.evidence([first.output.clone()]).evidence(format::few(others, 4)))
}
