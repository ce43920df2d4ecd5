//! The table of all types of assertions, in the order in which users see them.

use std::borrow::Cow;

use crate::assertion::{
    agent_finished, branch_created, budget, command, command_ran, commit_created, contains, egress_only, expect,
    factuality, file_contains, file_exists, file_unchanged, git_clean, guardrail, honoured_denial, integrity_clean,
    json_path, json_schema, latency, llm_judge, mcp_called, mcp_rules, mock_arguments, mock_called, no_egress, no_loop,
    no_path_escape, no_tool_called, no_unanswered_questions, output_contains, output_is_question, permission_asked,
    pushed, recovered, request_check, retries_at_most, review_request_created, reward, rubric, sentiment,
    side_effect_contract, skill_used, tests_pass, time_budget, token_budget, token_usage, tool_call_sequence,
    tool_called, turn_budget, turn_count_at_most, valid_json,
};
use crate::assertion_type::Assertion;
use crate::claim;

/// All types of assertions: first those that users write, then those that apply to every trial.
pub const ASSERTIONS: &[Assertion] = &[
    tool_called::ASSERTION,
    tool_call_sequence::ASSERTION,
    no_tool_called::ASSERTION,
    skill_used::SKILL_USED,
    skill_used::SKILL_NOT_USED,
    skill_used::SUB_AGENT_USED,
    skill_used::SUB_AGENT_NOT_USED,
    contains::ASSERTION,
    contains::NEGATION,
    output_contains::MATCHES,
    output_contains::ASSERTION,
    output_contains::NEGATION,
    output_contains::MISMATCH,
    json_schema::ASSERTION,
    expect::ASSERTION,
    latency::ASSERTION,
    token_usage::ASSERTION,
    turn_count_at_most::ASSERTION,
    no_path_escape::ASSERTION,
    no_egress::ASSERTION,
    egress_only::ASSERTION,
    file_exists::ASSERTION,
    file_exists::NEGATION,
    file_contains::ASSERTION,
    file_contains::NEGATION,
    file_unchanged::ASSERTION,
    valid_json::ASSERTION,
    json_path::ASSERTION,
    json_path::NEGATION,
    command::ASSERTION,
    tests_pass::ASSERTION,
    reward::ASSERTION,
    command_ran::ASSERTION,
    command_ran::NEGATION,
    branch_created::ASSERTION,
    branch_created::NEGATION,
    commit_created::ASSERTION,
    commit_created::NEGATION,
    pushed::ASSERTION,
    pushed::NEGATION,
    review_request_created::ASSERTION,
    review_request_created::NEGATION,
    git_clean::ASSERTION,
    side_effect_contract::ASSERTION,
    integrity_clean::ASSERTION,
    mcp_called::ASSERTION,
    mcp_called::NEGATION,
    mock_called::ASSERTION,
    mock_called::NEGATION,
    permission_asked::ASSERTION,
    permission_asked::NEGATION,
    honoured_denial::ASSERTION,
    mcp_rules::ASSERTION,
    recovered::ASSERTION,
    retries_at_most::ASSERTION,
    no_loop::ASSERTION,
    claim::ASSERTION,
    sentiment::ASSERTION,
    llm_judge::ASSERTION,
    guardrail::ASSERTION,
    factuality::ASSERTION,
    rubric::ASSERTION,
    output_is_question::ASSERTION,
    no_unanswered_questions::ASSERTION,
    turn_budget::ASSERTION,
    token_budget::ASSERTION,
    budget::ASSERTION,
    time_budget::ASSERTION,
    mock_arguments::ASSERTION,
    agent_finished::ASSERTION,
    request_check::ASSERTION,
];

/// Finds an assertion by its name in files or in code, or by an alias.
pub fn find(name: &str) -> Option<&'static Assertion> {
    let name = snake_case(name);
    ASSERTIONS.iter().find(|assertion| assertion.name == name || assertion.aliases.contains(&name.as_ref()))
}

/// Converts `toolCalled` to `tool_called`. Other names are returned unchanged.
pub(crate) fn snake_case(name: &str) -> Cow<'_, str> {
    if !name.contains(|c: char| c.is_ascii_uppercase()) || name.contains('_') {
        return Cow::Borrowed(name);
    }
    let mut snake = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    Cow::Owned(snake)
}

#[cfg(test)]
mod tests {
    use model::{Budget, Ending, Evidence, Finding, Status, Step};

    use super::*;
    use crate::assertion_type::Parameter;
    use crate::check::grade;
    use crate::example::EvidenceBuilder;

    fn implicit(name: &str, evidence: &Evidence) -> Option<Finding> {
        grade(&[], evidence).into_iter().find(|finding| finding.kind == name)
    }

    #[test]
    fn budget_findings_belong_to_implicit_assertions() {
        for name in model::BUDGETS {
            assert!(find(name).is_some_and(Assertion::is_implicit), "{name}");
        }
    }

    #[test]
    fn names_and_fields_are_unique_and_described() {
        for (at, assertion) in ASSERTIONS.iter().enumerate() {
            assert!(ASSERTIONS[..at].iter().all(|other| other.name != assertion.name), "{}", assertion.name);
            assert!(assertion.summary.ends_with('.') && !assertion.summary.contains('\n'), "{}", assertion.name);
            assert!(assertion.fields.iter().all(|field| field.doc.ends_with('.')));
            assert!(!assertion.is_implicit() || assertion.fields.is_empty());
            let names = [&[assertion.name], assertion.aliases].concat();
            assert!(names.iter().all(|name| find(name).is_some_and(|found| found.name == assertion.name)), "{names:?}");
            assert_eq!(find(&assertion.code_name()).map(|found| found.name), Some(assertion.name));
            let is_of_tool = assertion.fields.iter().any(|field| field.name == "tool");
            assert!(!is_of_tool || assertion.reported.is_some(), "{}", assertion.name);
            for parameter in assertion.parameters {
                let (Parameter::Value(name) | Parameter::Map(name)) = parameter else { continue };
                assert!(assertion.fields.iter().any(|field| field.name == *name), "{} {name}", assertion.name);
            }
        }
    }

    #[test]
    fn a_turn_budget_counts_only_if_it_was_set() {
        let stopped = || EvidenceBuilder::new().ending(Ending::OutOfBudget { budget: Budget::Turns, limit: 40.0 });
        assert_eq!(implicit("turn_budget", &stopped().evidence()), None);
        let set = stopped().limits(|limits| limits.max_turns_set = true).evidence();
        assert_eq!(implicit("turn_budget", &set).unwrap().status, Status::Unmet);
        let other = EvidenceBuilder::new().ending(Ending::OutOfBudget { budget: Budget::Cost, limit: 1.0 });
        let other = other.limits(|limits| limits.max_turns_set = true).evidence();
        assert_eq!(implicit("turn_budget", &other).unwrap().status, Status::Met);
    }

    #[test]
    fn a_token_budget_without_a_count_is_undecided_unless_it_stopped_the_agent() {
        let limited = || EvidenceBuilder::new().limits(|limits| limits.token_budget = Some(10.0));
        assert_eq!(implicit("token_budget", &limited().evidence()).unwrap().status, Status::Undecided);
        assert_eq!(implicit("token_budget", &limited().used(4, 3, 3).evidence()).unwrap().status, Status::Met);
        let over = implicit("token_budget", &limited().used(4, 3, 1000).evidence()).unwrap();
        assert_eq!((over.status, over.reason.as_str()), (Status::Unmet, "1,007 tokens exceed the budget of 10"));
        assert_eq!(over.evidence, ["4 input, 3 output, 0 written to a cache, 1,000 read from a cache"]);
        let stopped = limited().ending(Ending::OutOfBudget { budget: Budget::Tokens, limit: 10.0 }).evidence();
        assert_eq!(implicit("token_budget", &stopped).unwrap().status, Status::Unmet);
        assert_eq!(implicit("token_budget", &EvidenceBuilder::new().used(1, 1, 1).evidence()), None);
    }

    #[test]
    fn a_timeout_names_its_setting_and_the_call_that_hangs() {
        let ending = Ending::TimedOut { setting: "timeout".into(), after_ms: 1500, hint: None };
        let mut evidence =
            EvidenceBuilder::new().call("Bash", serde_json::json!({"command": "sleep 9"})).ending(ending).evidence();
        evidence.trace.calls[0].result = None;
        let finding = implicit("time_budget", &evidence).unwrap();
        assert_eq!(finding.reason, "timed out after 1.5 s (timeout)");
        assert_eq!(finding.actual.as_deref(), Some("still waiting for call 1, Bash(command=\"sleep 9\")"));
        assert_eq!(implicit("agent_finished", &evidence), None);
    }

    #[test]
    fn a_sub_agents_turns_do_not_count() {
        let text = |message: &str, parent: Option<&str>| Step::Text {
            message: message.into(),
            text: "a".into(),
            parent: parent.map(str::to_owned),
        };
        let mut evidence = EvidenceBuilder::new().evidence();
        for step in [text("1", None), text("2", Some("c")), text("3", None)] {
            evidence.trace.push(&step);
        }
        let at_most = |max: usize| {
            let assertion = serde_json::json!({"id": "a", "type": "turn_count_at_most", "max": max});
            crate::check::tests::judged(&assertion, &evidence)
        };
        assert_eq!(at_most(2).status, Status::Met);
        assert_eq!(at_most(1).reason, "2 turns, 1 more than allowed");
        assert_eq!(at_most(1).at.unwrap().turn, Some(2));
    }

    #[test]
    fn every_unanswered_question_is_reported_and_located() {
        let mut evidence =
            EvidenceBuilder::new().question("A?", Some("x")).question("B?", None).question("C?", None).evidence();
        evidence.trace.questions[1].options = vec!["yes".into(), "no".into()];
        let finding = implicit("no_unanswered_questions", &evidence).unwrap();
        assert_eq!(finding.reason, "2 questions without a prepared answer");
        assert_eq!(finding.actual.as_deref(), Some("\"B?\" (choices: \"yes\", \"no\")"));
        assert_eq!(finding.evidence, ["\"C?\""]);
    }
}
