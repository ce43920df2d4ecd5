//! `agent_finished`: the agent answered, and not with an error.

use model::Ending;

use super::prelude::*;

pub(super) const ASSERTION: Assertion =
    Assertion::implicit("agent_finished", judge).summary("The agent answered without an error.").example(
        nothing_written,
        || EvidenceBuilder::new().answer("Done."),
        || EvidenceBuilder::new().ending(Ending::GaveUp { reason: "error_during_execution".into() }),
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let Ending::GaveUp { reason } = &evidence.ending else { return None };
    let quoted = format::quoted(reason);
    Some(Verdict::unmet(
        evidence.ending.describe(),
        "an answer to every message",
        format!("the agent ended with {quoted}"),
    ))
}
