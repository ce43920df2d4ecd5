//! Warnings about a trial that do not affect its outcome.

use model::{Case, Diagnostic, Evidence};

/// Returns warnings about a trial of `case`: prepared answers that no question matched, more turns than the format's
/// default, and exceeded budgets that only warn.
pub fn warnings(case: &Case, evidence: &Evidence) -> Vec<Diagnostic> {
    let unused = evidence.unused_responses.iter().filter_map(|&index| case.user_responses.get(index)).map(|response| {
        let pattern = &response.match_question.value;
        Diagnostic::warning(format!("no question matched /{pattern}/")).at(response.source.clone())
    });
    let taken = evidence.trace.turn_count() as u64;
    let capped = evidence.limits.warn_turns().filter(|turns| taken > *turns).map(|turns| {
        Diagnostic::warning(format!(
            "the agent took {taken} turns, more than the {turns} of a scenario without `max_turns`"
        ))
        .at(case.source.clone())
        .help("set `max_turns` to allow more, or to stop the agent there and fail the trial")
    });
    let over = crate::assertion::over_budget(evidence).into_iter().map(Diagnostic::warning);
    unused.chain(capped).chain(over).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::check::tests::case;
    use crate::example::EvidenceBuilder;

    #[test]
    fn unused_answers_and_excess_turns_cause_warnings() {
        let mut case = case(&[]);
        case.user_responses = vec![crate::responder::tests::response("Push", "no")];
        let limited = |limits: &mut model::Limits| (limits.max_turns, limits.max_turns_set) = (1, false);
        let mut evidence =
            EvidenceBuilder::new().call("Glob", serde_json::json!({})).answer("Done.").limits(limited).evidence();
        evidence.unused_responses = vec![0, 7];
        let messages: Vec<String> = warnings(&case, &evidence).into_iter().map(|warning| warning.message).collect();
        assert_eq!(
            messages,
            ["no question matched /Push/", "the agent took 2 turns, more than the 1 of a scenario without `max_turns`"]
        );
        Arc::make_mut(&mut evidence.limits).max_turns_set = true;
        assert_eq!(warnings(&case, &evidence).len(), 1);
    }
}
