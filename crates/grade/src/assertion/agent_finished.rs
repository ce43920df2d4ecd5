//! `agent_finished`: the agent answered, and not with an error.

use model::Ending;

use super::prelude::*;

pub(super) const ASSERTION: Assertion =
    Assertion::implicit("agent_finished", judge).summary("The agent answered without an error.").example(
        nothing_written,
        || Story::new().answer("Done."),
        || Story::new().ending(Ending::GaveUp { because: "error_during_execution".into() }),
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let Ending::GaveUp { because } = &evidence.ending else { return None };
    let said = words::quoted(because);
    Some(Verdict::unmet(
        evidence.ending.describe(),
        "an answer to every message",
        format!("the agent ended with {said}"),
    ))
}
