use model::{Scoring, Severity, UserMessage};
use serde_json::{Value, json};

use super::*;
use crate::context::KnownTools;
use crate::example::EvidenceBuilder;
use crate::self_test::spec_of;
use crate::yaml;

/// Returns a case that asserts `assertions`.
pub(crate) fn case(assertions: &[Value]) -> Case {
    let spec = |value: &Value| spec_of(yaml::list_item(value, "case.yaml")).unwrap();
    Case {
        messages: vec![UserMessage::text("Begin.")],
        assertions: assertions.iter().map(spec).collect(),
        ..Case::new("case", Excerpt::of_file("case.yaml"))
    }
}

/// Returns the finding of one assertion about `evidence`.
pub(crate) fn judged(assertion: &Value, evidence: &Evidence) -> Finding {
    let (checks, problems) = compile(&case(std::slice::from_ref(assertion)), &Context::default());
    assert_eq!(problems, [], "{assertion}");
    grade(&checks, evidence).remove(0)
}

/// Returns the source text that `finding` underlines.
pub(crate) fn underlined(finding: &Finding) -> String {
    let source = finding.source.as_ref().unwrap();
    source.text.chars().skip(source.column - 1).take(source.length).collect()
}

fn problems(assertions: &[Value], context: &Context<'_>) -> Vec<String> {
    let describe = |problem: &Diagnostic| {
        let source = problem.source.as_ref().unwrap();
        let marked: String = source.text.chars().skip(source.column - 1).take(source.length).collect();
        let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
        let help = problem.help.join("; ");
        format!("{severity} at {}:{marked}: {} ({help})", source.line, problem.message)
    };
    compile(&case(assertions), context).1.iter().map(describe).collect()
}

#[test]
fn a_type_of_another_program_gets_the_form_that_means_the_same() {
    for (written, help) in [
        ("llm-rubric", "did you mean `llm_judge`?"),
        ("containsAny", "for one of several texts, write `matches: /one|two/`"),
        ("contains-all", "write an assertion for each, because all must be met"),
        ("not", "write the assertion that denies it, such as `not_contains` or `tool_not_called`"),
    ] {
        let found = problems(&[json!({"id": "a", "type": written})], &Context::default());
        assert!(found[0].contains(help), "{found:?}");
    }
}

#[test]
fn a_mistake_that_many_people_make_is_one_problem_with_what_to_write() {
    let only = |assertion: Value| {
        let found = problems(&[assertion], &Context::default());
        assert_eq!(found.len(), 1, "{found:?}");
        found.into_iter().next().unwrap()
    };
    for (assertion, help) in [
        (json!({"id": "a", "type": "contains hello"}), "(write `contains: hello` without quotes around it)"),
        (json!({"id": "a", "type": "contains", "value": "x"}), "(did you mean `text`?)"),
        (json!({"id": "a", "type": "matches", "regex": "x"}), "(did you mean `pattern`?)"),
        (json!({"id": "a", "type": "file_exists", "file": "x"}), "(did you mean `path`?)"),
        (json!({"id": "a", "type": "tool_called", "name": "x"}), "(did you mean `tool`?)"),
    ] {
        let found = only(assertion);
        assert!(found.ends_with(help), "{found}");
    }
    let mut found = case(&[json!({"id": "a", "type": "contains", "text": "x"})]);
    if let model::NodeKind::Map(entries) = &mut found.assertions[0].node.kind {
        let text = entries.iter_mut().find(|(key, _)| key.value == "text").unwrap();
        text.1.tag = Some(expect::REGEX_TAG.into());
    }
    let problems = compile(&found, &Context::default()).1;
    assert_eq!(problems[0].message, "`text` must be a string, not a regular expression");
    assert_eq!(problems[0].help, ["use `matches` or `not_matches`, which take one"]);
}

#[test]
fn all_problems_of_a_case_are_reported_together_with_their_locations() {
    let found = problems(
        &[
            json!({"id": "a", "type": "tool_caled", "tool": "Bash"}),
            json!({"id": "b", "type": "tool_called", "tol": "Bash"}),
            json!({"id": "c", "type": "output_contains", "pattern": "a(?i)b"}),
            json!({"id": "d", "type": "no_tool_called", "tool": "Bash", "args_match": {"command": "[", "x": "ok", "y": "("}}),
            json!({"id": "e", "type": "token_budget"}),
            json!({"id": "f", "type": "tool_call_sequence", "sequence": []}),
            json!({"id": "g", "type": "tool_call_sequence", "sequence": [{"tool": "Read", "index": 1}, {"args_match": {}}]}),
            json!({"id": "h", "type": "turn_count_at_most", "max": 0}),
            json!({"id": "i", "type": "tool_called", "tool": "Bash", "call_index": -1, "capture": [""], "capture_max_chars": 0}),
            json!({"id": "j", "type": "no_path_escape", "tools": ["Read", 5], "allow_outside": "x"}),
            json!({"id": "j", "type": "turn_count_at_most", "max": 3}),
        ],
        &Context::default(),
    );
    let expected = [
        ("2:tool_caled", "did you mean `tool_called`"),
        ("3:tol", "did you mean `tool`"),
        ("3:\"a(?i)b\"", "(?i:…)"),
        ("5:\"[\"", "invalid regular expression"),
        ("7:\"(\"", "invalid regular expression"),
        ("2:token_budget", "applies to every trial"),
        ("3:[]", "at least one step"),
        ("5:index", "unknown key"),
        ("6:args_match", "has no `tool`"),
        ("3:0", "at least 1"),
        ("4:-1", "at least 0"),
        ("5:\"\"", "must not be empty"),
        ("6:0", "at least 1"),
        ("3:5", "must be a string"),
        ("4:x", "must be a list"),
        ("1:j", "the first one is at case.yaml:1:7"),
    ];
    for (place, words) in expected {
        let wanted = format!("error at {place}: ");
        assert!(
            found.iter().any(|problem| problem.starts_with(&wanted) && problem.contains(words)),
            "{place} {words}\n{found:#?}"
        );
    }
    assert_eq!(found.len(), expected.len(), "{found:#?}");
}

#[test]
fn an_error_in_one_assertion_does_not_affect_the_others() {
    let case = case(&[
        json!({"id": "a", "type": "tool_called", "tool": 1}),
        json!({"id": "b", "type": "tool_called", "tool": "Bash", "weight": 2}),
    ]);
    let (checks, problems) = compile(&case, &Context::default());
    assert_eq!((checks.len(), problems.len()), (1, 1));
    assert_eq!((checks[0].id(), checks[0].kind(), checks[0].weight()), ("b", "tool_called", 2.0));
    assert_eq!(checks[0].source().to_string(), "case.yaml:2:9");
}

#[test]
fn a_misspelt_tool_is_an_error() {
    let assertions = [
        json!({"id": "a", "type": "tool_called", "tool": "bash"}),
        json!({"id": "b", "type": "no_tool_called", "tool": "Bash(git *)"}),
        json!({"id": "c", "type": "tool_called", "tool": "mcp__db__query"}),
        json!({"id": "d", "type": "tool_call_sequence", "sequence": [{"tool": "Bash"}, {"tool": "Raed"}]}),
        json!({"id": "e", "type": "no_path_escape", "tools": ["Read", "Wirte", "WebFetch"]}),
    ];
    let known = ["Bash", "Read", "Write", "WebFetch"];
    let found = problems(&assertions, &Context { known_tools: KnownTools::Only(&known), ..Context::default() });
    let expected = [
        ("bash", "did you mean `Bash`"),
        ("\"Bash(git *)\"", "write `Bash` here"),
        ("Raed", "did you mean `Read`"),
        ("Wirte", "did you mean `Write`"),
        ("WebFetch", "has no path argument"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for ((place, words), problem) in expected.iter().zip(&found) {
        let is_warning = *place == "WebFetch";
        assert_eq!(problem.starts_with("warning at "), is_warning, "{problem}");
        assert!(problem.contains(place) && problem.contains(words), "{problem}");
    }
    let stranger = [json!({"id": "a", "type": "no_tool_called", "tool": "Deploy"})];
    let found = problems(&stranger, &Context { known_tools: KnownTools::Only(&known), ..Context::default() });
    assert!(found.len() == 1 && found[0].starts_with("warning at "), "{found:#?}");
}

#[test]
fn for_agents_with_canonical_tools_other_names_are_reported_and_arguments_are_not() {
    let context = Context { known_tools: KnownTools::Canonical(&["apply_patch"]), ..Context::default() };
    let found = |tool: &str| {
        let assertion = json!({"id": "a", "type": "no_tool_called", "tool": tool, "args_match": {"comand": "x"}});
        problems(&[assertion], &context)
    };
    for known in ["Bash", "Task", "apply_patch", "mcp__db__query"] {
        assert_eq!(found(known), Vec::<String>::new(), "{known}");
    }
    let unknown = found("frobnicate");
    assert!(unknown.len() == 1 && unknown[0].starts_with("warning at "), "{unknown:#?}");
    let misspelt = found("Wirte");
    assert!(misspelt.len() == 1 && misspelt[0].contains("did you mean `Write`"), "{misspelt:#?}");
}

#[test]
fn for_agents_with_arbitrary_tools_only_misspelt_common_tools_are_reported() {
    let about = |tool: &str| [json!({"id": "a", "type": "no_tool_called", "tool": tool})];
    let found = problems(&about("Wirte"), &Context::default());
    assert!(found.len() == 1 && !found[0].starts_with("warning at "), "{found:#?}");
    assert!(found[0].contains("did you mean `Write`"), "{found:#?}");
    let own = Case { tools: vec![json!({"name": "Wirte"})], ..case(&about("Wirte")) };
    assert!(compile(&own, &Context::default()).1.is_empty(), "a tool that the case defines");
    let certain = Context { known_tools: KnownTools::AtLeast(&["Write"]), ..Context::default() };
    let found = problems(&about("write"), &certain);
    assert!(found.len() == 1 && !found[0].starts_with("warning at "), "{found:#?}");
    assert!(found[0].contains("did you mean `Write`"), "{found:#?}");
    for quiet in ["Write", "bash", "deploy"] {
        assert_eq!(problems(&about(quiet), &certain), Vec::<String>::new(), "{quiet}");
    }
    let own = Case { tools: vec![json!({"name": "write"})], ..case(&about("write")) };
    assert!(compile(&own, &certain).1.is_empty(), "a tool that the case defines");
    for quiet in ["write", "Write", "bash", "Deploy", "Writer", "mcp__db__Raed"] {
        assert_eq!(problems(&about(quiet), &Context::default()), Vec::<String>::new(), "{quiet}");
    }
}

#[test]
fn an_argument_that_resembles_a_known_one_is_an_error() {
    let assertion = |tool: &str, argument: &str| {
        [json!({"id": "a", "type": "no_tool_called", "tool": tool, "args_match": {argument: "x"}})]
    };
    let context = Context { known_tools: KnownTools::Only(&["Write", "Task"]), ..Context::default() };
    let found = problems(&assertion("Write", "file_pth"), &context);
    assert!(found.len() == 1 && !found[0].starts_with("warning at "), "{found:#?}");
    assert!(found[0].contains("`file_pth`") && found[0].contains("did you mean `file_path`"), "{found:#?}");
    let found = problems(&assertion("Write", "colour"), &context);
    assert!(found.len() == 1 && found[0].starts_with("warning at "), "{found:#?}");
    for quiet in [assertion("Write", "content"), assertion("Task", "anything")] {
        assert_eq!(problems(&quiet, &context), Vec::<String>::new());
    }
    assert_eq!(problems(&assertion("Write", "file_pth"), &Context::default()), Vec::<String>::new());
}

#[test]
fn signs_of_tampering_fail_a_trial_that_must_have_none_whatever_its_score_is() {
    let context = Context { requires_integrity: true, ..Context::default() };
    let scored = Some(Scoring { max_score: 1.0, pass_score: 1.0 });
    for (pattern, scoring, not) in [("x", None, false), ("x", scored, false), ("y", None, true)] {
        let outcome = |story: EvidenceBuilder| {
            let about = [json!({"id": "a", "type": "output_contains", "pattern": pattern})];
            let case = Case { ruling: OutcomeRule { scoring, not }, ..case(&about) };
            let (checks, _) = compile(&case, &context);
            Outcome::of(&grade(&checks, &story.evidence()), &Ending::Finished, &case.ruling)
        };
        let story = || EvidenceBuilder::new().answer("x");
        assert_eq!(outcome(story()), Outcome::Passed, "{pattern}");
        assert_eq!(outcome(story().changed("tests/test_basket.py")), Outcome::Failed, "{pattern}");
    }
}

#[test]
fn a_case_that_asserts_nothing_is_undecided() {
    let outcome_of = |case: &Case| {
        let (checks, problems) = compile(case, &Context::default());
        let findings = grade(&checks, &EvidenceBuilder::new().answer("x").evidence());
        (Outcome::of(&findings, &Ending::Finished, &case.ruling), findings, problems)
    };
    let (outcome, findings, problems) = outcome_of(&case(&[]));
    assert!(problems.len() == 1 && !problems[0].is_error());
    assert_eq!((findings[0].status, findings[0].kind.as_str()), (Status::Undecided, "nothing_asserted"));
    assert_eq!((&*findings[0].source.as_ref().unwrap().file, outcome), ("case.yaml", Outcome::Undecided));
    // A case without assertions stays undecided under a score, `not` and a limit.
    let scored = Some(Scoring { max_score: 100.0, pass_score: 50.0 });
    for ruling in [OutcomeRule { scoring: scored, not: false }, OutcomeRule { scoring: None, not: true }] {
        assert_eq!(outcome_of(&Case { ruling, ..case(&[]) }).0, Outcome::Undecided);
    }
    let limited = Case { max_turns: Some(3), timeout_ms: Some(5), ..case(&[]) };
    assert_eq!(outcome_of(&limited).0, Outcome::Undecided);
    // A format that counts its cases reports the warning itself.
    let (outcome, _, problems) = outcome_of(&Case { position: Some(0), ..case(&[]) });
    assert_eq!((outcome, problems), (Outcome::Undecided, vec![]));
    for asserted in [Case { must_assert: false, ..case(&[]) }, Case { skip: Some("later".into()), ..case(&[]) }] {
        let (checks, problems) = compile(&asserted, &Context::default());
        assert!(checks.is_empty() && problems.is_empty(), "{problems:?}");
    }
}

#[test]
fn an_expectation_that_cannot_fail_asserts_nothing() {
    let outcome_of = |about: Value| {
        let mut spec = json!({"id": "a", "type": "expect"});
        spec.as_object_mut().unwrap().extend(about.as_object().unwrap().clone());
        let (checks, problems) = compile(&case(&[spec]), &Context::default());
        let findings = grade(&checks, &EvidenceBuilder::new().answer("x").evidence());
        assert_eq!(checks.len(), 1, "{about}");
        (Outcome::of(&findings, &Ending::Finished, &OutcomeRule::default()), problems.len())
    };
    for nothing in [
        json!({"expect": {}}),
        json!({"schema": {}}),
        json!({"output": {"$and": []}}),
        json!({"expect": {"messages": []}}),
        json!({"expect": {"$and": [{}, {"messages": []}]}}),
    ] {
        assert_eq!(outcome_of(nothing.clone()), (Outcome::Undecided, 1), "{nothing}");
    }
    // These hold for every answer that is text, but fail without one.
    for text in [
        json!({"output": ""}),
        json!({"output": {"$contains": ""}}),
        json!({"output": {"$and": [" ", {"$contains": ""}]}}),
        json!({"expect": {"output": ""}}),
    ] {
        assert_eq!(outcome_of(text.clone()), (Outcome::Passed, 1), "{text}");
    }
    let within = json!({"output": {"a": ["x", ""], "b": {"$contains": ""}, "c": "y", "d": {"$not": ""}}});
    assert_eq!(outcome_of(within), (Outcome::Failed, 2));
    for failing in [json!({"output": "", "diff": "chars"}), json!({"output": "/^$/"}), json!({"output": {"$not": ""}})]
    {
        assert_eq!(outcome_of(failing.clone()), (Outcome::Failed, 0), "{failing}");
    }
    for something in [json!({"output": "x"}), json!({"expect": {"output": "x", "messages": []}})] {
        assert_eq!(outcome_of(something.clone()), (Outcome::Passed, 0), "{something}");
    }
}

#[test]
fn a_misspelt_result_key_is_an_error() {
    let problem_of = |expect: Value| {
        let problems = problems(&[json!({"id": "a", "type": "expect", "expect": expect})], &Context::default());
        assert!(problems.len() == 1, "{problems:#?}");
        problems[0].clone()
    };
    for (wrong, near) in [("outptu", "output"), ("tols", "tools")] {
        let problem = problem_of(json!({"output": "x", wrong: []}));
        assert!(
            !problem.starts_with("warning at ") && problem.contains(&format!("did you mean `{near}`")),
            "{problem}"
        );
    }
    assert!(problem_of(json!({"message": "x"})).starts_with("warning at "), "agents have their own keys");
}

#[test]
fn keys_may_be_in_camel_case_as_in_code() {
    let assertion =
        json!({"id": "a", "type": "toolCalled", "tool": "Bash", "argsMatch": {"command": "^ls"}, "title": "Looks"});
    let finding = judged(&assertion, &EvidenceBuilder::new().call("Bash", json!({"command": "ls"})).evidence());
    assert_eq!((finding.status, finding.title.as_deref()), (Status::Met, Some("Looks")));
    let found =
        problems(&[json!({"id": "a", "type": "tool_called", "tool": "x", "argMatch": {}})], &Context::default());
    assert!(found[0].contains("did you mean `args_match`"), "{found:?}");
    let known = [("toolCaled", "tool_called"), ("toolNotCaled", "tool_not_called"), ("skill_loaded", "skill_used")];
    for (wrong, near) in known {
        let found = problems(&[json!({"id": "a", "type": wrong})], &Context::default());
        assert!(found[0].contains(&format!("did you mean `{near}`")), "{found:?}");
    }
}

#[test]
fn implicit_findings_come_last_and_have_no_location() {
    let (checks, _) =
        compile(&case(&[json!({"id": "a", "type": "turn_count_at_most", "max": 3, "weight": 4})]), &Context::default());
    let evidence = EvidenceBuilder::new().answer("x").evidence();
    let findings = grade(&checks, &evidence);
    assert_eq!(
        findings.iter().map(|finding| finding.id.as_str()).collect::<Vec<_>>(),
        ["a", "no_unanswered_questions"]
    );
    assert_eq!((findings[0].weight, findings[0].score, findings[0].implicit), (4.0, Some(1.0), false));
    assert!(findings[1].implicit && findings[1].source.is_none());
}

#[test]
fn a_finding_about_a_reply_names_it_and_has_its_position_in_the_whole_conversation() {
    let user = |index: usize| model::Step::UserMessage { index, of: 2, text: "Go on.".into() };
    let call = |id: &str, message: &str| {
        model::Step::ToolCall(model::ToolCall::new(id, "Bash", json!({"command": "ls"}), message))
    };
    let finished = || model::Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage: model::Usage::default(),
        text: Some("Done.".into()),
        result: None,
    };
    let steps = [user(1), call("a", "m1"), call("b", "m2"), finished(), user(2), call("c", "m3"), finished()];
    let evidence = Evidence { trace: model::Trace::of(&steps), ..EvidenceBuilder::new().evidence() };
    let found = |assertion: Value, about: AssertionScope| {
        let mut case = case(&[assertion]);
        case.assertions[0].about = about;
        grade(&compile(&case, &Context::default()).0, &evidence).remove(0)
    };
    let position = |assertion: Value, about: AssertionScope| {
        found(assertion, about).at.map(|Position { turn, call }| (turn, call))
    };
    let refused = json!({"id": "a", "type": "no_tool_called", "tool": "Bash"});
    assert_eq!(position(refused.clone(), AssertionScope::Trial), Some((Some(0), Some(0))));
    assert_eq!(position(refused.clone(), AssertionScope::Reply(2)), Some((Some(2), Some(2))));
    assert_eq!(position(refused, AssertionScope::LastReply), Some((Some(2), Some(2))));
    let unsaid = json!({"id": "a", "type": "contains", "text": "goodbye"});
    assert_eq!(position(unsaid.clone(), AssertionScope::Trial), None);
    assert_eq!(position(unsaid, AssertionScope::Reply(1)), Some((Some(1), None)), "the end of the reply");
    let not_called = json!({"id": "a", "type": "no_tool_called", "tool": "Edit"});
    let reason = |about: AssertionScope| found(not_called.clone(), about).reason;
    assert_eq!(reason(AssertionScope::Reply(1)), "no `Edit` call among 2 tool calls (reply 1)");
    assert_eq!(reason(AssertionScope::LastReply), "no `Edit` call among 1 tool call (reply 2)");
    assert_eq!(reason(AssertionScope::Trial), "no `Edit` call among 3 tool calls");
}

#[test]
fn what_an_agent_that_could_not_act_did_not_do_is_undecided() {
    let refused = || Ending::Unreachable { reason: "connection refused".into() };
    let status = |assertion: &Value, evidence: EvidenceBuilder| judged(assertion, &evidence.evidence()).status;
    let contains = json!({"id": "a", "type": "contains", "text": "hello"});
    let called = json!({"id": "a", "type": "tool_called", "tool": "Bash"});
    let not_called = json!({"id": "a", "type": "no_tool_called", "tool": "Bash"});
    let silent = || EvidenceBuilder::new().asks("Begin.");
    for assertion in [&contains, &called] {
        assert_eq!(status(assertion, silent().ending(refused())), Status::Undecided, "{assertion}");
        let gave_up = Ending::GaveUp { reason: "the answer is empty".into() };
        assert_eq!(status(assertion, silent().ending(gave_up)), Status::Unmet, "{assertion}");
    }
    let finding = judged(&contains, &silent().ending(refused()).evidence());
    assert_eq!(finding.reason, "the trial is broken, and the agent gave no answer");
    assert_eq!(underlined(&finding), "hello");
    let acted = silent().call("Bash", json!({"command": "ls"})).ending(refused());
    assert_eq!(status(&not_called, acted), Status::Unmet, "it did this, whatever broke the trial later");
}
