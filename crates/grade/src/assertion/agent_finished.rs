//! `agent_finished`: the agent answered, and not with an error.

use model::Ending;

use super::prelude::*;
use crate::example::nothing_written;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "agent_finished",
    aliases: &[],
    parameters: &[],
    summary: "The agent answered without an error.",
    fields: &[],
    pass: Example { assertion: nothing_written, evidence: || Story::new().answer("Done.").evidence() },
    fail: Example {
        assertion: nothing_written,
        evidence: || Story::new().ending(Ending::GaveUp { because: "error_during_execution".into() }).evidence(),
    },
    form: Form::Implicit { judge },
};

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let Ending::GaveUp { because } = &evidence.ending else { return None };
    let said = words::quoted(because);
    Some(Verdict::unmet(
        evidence.ending.describe(),
        "an answer to every message",
        format!("the agent ended with {said}"),
    ))
}
