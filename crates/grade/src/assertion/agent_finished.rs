//! `agent_finished`: the agent answered, and not with an error.

use model::{Budget, Ending, Limits, OnBudget};

use super::prelude::*;

pub(crate) const ASSERTION: Assertion =
    Assertion::implicit("agent_finished", judge).summary("The agent answered without an error.").example(
        nothing_written,
        || EvidenceBuilder::new().answer("Done."),
        || EvidenceBuilder::new().ending(Ending::GaveUp { reason: "error_during_execution".into() }),
    );

fn judge(evidence: &Evidence) -> Option<Verdict> {
    let actual = match &evidence.ending {
        Ending::GaveUp { reason } => format!("the agent ended with {}", format::quoted(reason)),
        // Otherwise, the finding of the limit says so.
        Ending::OutOfBudget { budget, .. } if !is_limited(*budget, &evidence.limits) => {
            format!("the agent ran out of {}, although the trial does not limit them", budget.describe())
        }
        _ => return None,
    };
    Some(Verdict::unmet(evidence.ending.describe(), "an answer to every message", actual))
}

/// Returns `true` if the trial limits `budget`, so that another assertion reports that the agent ran out of it.
fn is_limited(budget: Budget, limits: &Limits) -> bool {
    match budget {
        Budget::Turns => limits.turn_cap().is_some(),
        Budget::Tokens => limits.token_budget.is_some() && !limits.tokens_only_warn(),
        _ => !limits.budgets.is_empty() && limits.on_budget != OnBudget::Warn,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_ran_out_of_something_that_is_not_limited_has_not_finished() {
        let story = || EvidenceBuilder::new().ending(Ending::OutOfBudget { budget: Budget::Turns, limit: 3.0 });
        assert_eq!(judge(&story().evidence()).unwrap().status, model::Status::Unmet);
        let limited = story().limits(|limits| (limits.max_turns, limits.max_turns_set) = (3, true));
        assert!(judge(&limited.evidence()).is_none(), "`turn_budget` reports it");
    }
}
