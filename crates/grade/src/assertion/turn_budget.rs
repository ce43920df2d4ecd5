//! `turn_budget`: the agent finished within `max_turns`.

use model::{Budget, Ending};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion =
    Assertion::implicit("turn_budget", judge).summary("The agent finished before `max_turns` stopped it.").example(
        nothing_written,
        || limited(2).answer("Done."),
        || {
            limited(1)
                .call("Bash", json!({"command": "git status"}))
                .ending(Ending::OutOfBudget { budget: Budget::Turns, limit: 1.0 })
        },
    );

fn limited(max_turns: u64) -> EvidenceBuilder {
    EvidenceBuilder::new().limits(|limits| (limits.max_turns, limits.max_turns_set) = (max_turns, true))
}

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let limit = evidence.limits.turn_cap()?;
    let allowed = format::count(usize::try_from(limit).unwrap_or(usize::MAX), "turn");
    let taken = format::count(evidence.trace.turn_count(), "turn");
    let stopped = matches!(evidence.ending, Ending::OutOfBudget { budget: Budget::Turns, .. });
    Some(if stopped {
        Verdict::unmet(
            format!("`max_turns` stopped the agent after {taken}"),
            format!("an answer within {allowed} (`max_turns`)"),
            format!("{taken}, and the agent was not finished"),
        )
    } else {
        Verdict::met(format!("{taken} of {limit}"))
    })
}
