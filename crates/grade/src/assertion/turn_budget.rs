//! `turn_budget`: the agent finished within `max_turns`.

use model::{Budget, Ending};

use super::prelude::*;
use crate::example::nothing_written;

pub(super) const ASSERTION: Assertion = Assertion {
    name: "turn_budget",
    aliases: &[],
    parameters: &[],
    summary: "The agent finished before `max_turns` stopped it.",
    fields: &[],
    pass: Example { assertion: nothing_written, evidence: || limited(2).answer("Done.").evidence() },
    fail: Example {
        assertion: nothing_written,
        evidence: || {
            limited(1)
                .call("Bash", json!({"command": "git status"}))
                .ending(Ending::OutOfBudget { budget: Budget::Turns, limit: 1.0 })
                .evidence()
        },
    },
    form: Form::Implicit { judge },
};

fn limited(max_turns: u64) -> Story {
    Story::new().limits(|limits| (limits.max_turns, limits.max_turns_set) = (max_turns, true))
}

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let limit = evidence.limits.turn_cap()?;
    let allowed = words::count(usize::try_from(limit).unwrap_or(usize::MAX), "turn");
    let taken = words::count(evidence.trace.turn_count(), "turn");
    let stopped = matches!(evidence.ending, Ending::OutOfBudget { budget: Budget::Turns, .. });
    Some(if stopped {
        Verdict::unmet(
            format!("`max_turns` stopped the agent after {taken}"),
            format!("an answer within {allowed} (`max_turns`)"),
            format!("{taken} and still going"),
        )
    } else {
        Verdict::met(format!("{taken} of {limit}"))
    })
}
