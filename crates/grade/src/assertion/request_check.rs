//! `request_check`: the requests that the agent sent to its model are those that the scripted model expects.

use super::prelude::*;

pub(crate) const ASSERTION: Assertion = Assertion::implicit("request_check", judge)
    .summary("The agent's requests to a scripted model met the conditions of its script.")
    .example(
        nothing_written,
        || EvidenceBuilder::new().request(1, true, "the request offers the `Bash` tool").answer("Done."),
        || {
            EvidenceBuilder::new().request(1, true, "the request offers the `Bash` tool").request(
                2,
                false,
                "no message contains \"exit code 0\"",
            )
        },
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let checks = &evidence.trace.request_checks;
    if checks.is_empty() {
        return None;
    }
    let failed: Vec<_> = checks.iter().filter(|(_, met, _)| !met).collect();
    let Some((step, _, reason)) = failed.first() else {
        return Some(Verdict::met(format!(
            "the requests met {} of the script's `expect_request`",
            format::count(checks.len(), "condition")
        )));
    };
    let others = failed.iter().skip(1).map(|(step, _, reason)| format!("step {step}: {reason}"));
    let verdict = Verdict::unmet(
        format!("the request for step {step} of the script is not as expected"),
        format!("a request that meets `expect_request` of step {step}"),
        reason.clone(),
    );
    Some(verdict.evidence(format::few(others.collect(), 5)))
}
