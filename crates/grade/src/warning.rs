//! What looks wrong about a trial but decides nothing.

use model::{Budget, Case, Diagnostic, Ending, Evidence};

/// What a person should know about a trial of `case` although it decides nothing: prepared answers that no question
/// asked for, and a cap on turns that nobody set but that stopped the agent.
pub fn warnings(case: &Case, evidence: &Evidence) -> Vec<Diagnostic> {
    let unused = evidence.unused_responses.iter().filter_map(|&at| case.user_responses.get(at)).map(|response| {
        let pattern = &response.match_question.value;
        Diagnostic::warning(format!("no question matched /{pattern}/")).at(response.source.clone())
    });
    let capped = match evidence.ending {
        Ending::OutOfBudget { budget: Budget::Turns, .. } if !evidence.limits.max_turns_set => {
            let turns = evidence.limits.max_turns;
            let warning = Diagnostic::warning(format!("the agent was stopped after {turns} turns"))
                .at(case.source.clone())
                .help("set `max_turns` to allow more, or to make it a failure");
            Some(warning)
        }
        _ => None,
    };
    let over = crate::assertion::over_budget(evidence).into_iter().map(Diagnostic::warning);
    unused.chain(capped).chain(over).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::check::tests::case;
    use crate::example::Story;

    #[test]
    fn unused_answers_and_the_silent_cap_are_told() {
        let mut case = case(&[]);
        case.user_responses = vec![crate::responder::tests::response("Push", "no")];
        let stopped = Ending::OutOfBudget { budget: Budget::Turns, limit: 40.0 };
        let mut evidence = Story::new().ending(stopped).evidence();
        evidence.unused_responses = vec![0, 7];
        let told: Vec<String> = warnings(&case, &evidence).into_iter().map(|warning| warning.message).collect();
        assert_eq!(told, ["no question matched /Push/", "the agent was stopped after 40 turns"]);
        Arc::make_mut(&mut evidence.limits).max_turns_set = true;
        assert_eq!(warnings(&case, &evidence).len(), 1);
    }
}
