//! Conversation files: accepted and rejected content, with locations.

use model::{Arguments, AssertionScope};
use serde_json::json;

use crate::scratch::{Scratch, all_problems, describe};

#[test]
fn mistakes_about_what_is_installed_are_reported() {
    let problems = |rest: &str| {
        let scratch = Scratch::new();
        scratch
            .skill("plan")
            .write("c.yaml", format!("turns: [Go.]\nassertions: [{{id: a, type: contains, text: x}}]\n{rest}\n"));
        describe(&scratch.load(&["c.yaml"]).suites[0].cases[0].broken)
    };
    assert_eq!(problems("install: skills/plan\nindicators: [a]\nthreshold: 0.5"), [""; 0]);
    for (rest, problem) in [
        ("install: skills/plna", "`skills/plna` is not a skill, a plug-in or a sub-agent"),
        ("should_trigger: true", "`should_trigger` needs `install`: nothing is installed for the agent"),
        ("install: skills/plan\nindicators: [b]", "there is no assertion called `b`"),
        ("threshold: 0", "`threshold` is 0, so any answer passes"),
    ] {
        let found = problems(rest);
        assert!(found.len() == 1 && found[0].contains(problem), "{rest}: {found:?}");
    }
}

#[test]
fn a_conversation_becomes_a_case() {
    let scratch = Scratch::new();
    let case = scratch.case(
        "name: simple product inquiry
tags: [smoke]
persona: { role: customer, tone: neutral, context: { orders: [17] } }
turns:
  - says: What is the return policy?
    expect: [{ contains: 30 days }, no_path_escape]
  - Thanks.
assertions:
  - contains: welcome
    weight: 2
    id: is-polite
  - contains: { text: bye }
  - type: tool_not_called
    tool: refund
agent: chat
timeout: 9s
reruns: 2
skip: not now
",
    );
    assert_eq!((case.id.as_str(), case.source.to_string().as_str()), ("simple product inquiry", "s.yaml:1:7"));
    let output: Vec<&str> = case.messages.iter().map(|message| message.text.as_str()).collect();
    assert_eq!(output, ["What is the return policy?", "Thanks."]);
    let persona = json!({"role": "customer", "tone": "neutral", "context": {"orders": [17]}});
    assert_eq!(json!(case.messages[1].persona), persona);
    let described: Vec<(&str, &str, AssertionScope, f64)> = case
        .assertions
        .iter()
        .map(|spec| (spec.id.as_str(), spec.kind.value.as_str(), spec.about, spec.weight))
        .collect();
    assert_eq!(
        described,
        [
            ("contains-1", "contains", AssertionScope::Reply(1), 1.0),
            ("no_path_escape-1", "no_path_escape", AssertionScope::Reply(1), 1.0),
            ("is-polite", "contains", AssertionScope::LastReply, 2.0),
            ("contains-2", "contains", AssertionScope::LastReply, 1.0),
            ("tool_not_called-1", "tool_not_called", AssertionScope::LastReply, 1.0),
        ]
    );
    assert!(matches!(&case.assertions[0].arguments, Arguments::Brief(node) if node.as_str() == Some("30 days")));
    assert!(matches!(&case.assertions[4].arguments, Arguments::Fields));
    assert_eq!((case.timeout_ms, case.reruns, case.skip.as_deref()), (Some(9000), Some(2), Some("not now")));
    assert!(case.must_assert);
}

#[test]
fn a_user_can_be_simulated_instead_of_scripted() {
    let scratch = Scratch::new();
    let case = scratch.case(
        "id: refund
name: A refund, played
persona: angry customer
user: { goal: get a refund, stop_when: it is promised, max_turns: 3, model: 'openai:m' }
assertions: [{ contains: refund }]
",
    );
    let user = case.user.as_ref().unwrap();
    assert_eq!((case.id.as_str(), case.description.as_deref()), ("refund", Some("A refund, played")));
    assert_eq!(
        (user.goal.as_str(), user.max_turns, user.stop_when.as_deref()),
        ("get a refund", 3, Some("it is promised"))
    );
    assert_eq!((json!(user.persona), case.messages.len()), (json!({"role": "angry customer"}), 0));
}

#[test]
fn all_problems_of_a_conversation_are_reported_together() {
    let scratch = Scratch::new();
    let problems = scratch.problems(
        "nme: x
persona: { tone: calm, mood: x }
turns:
  - say: hello
  - says: ''
    expect: { contains: x }
  - 5
assertions:
  - { contains: x, matches: y }
  - 7
  - {}
  - { contains: x, weight: 0 }
  - { contains: x, weigth: 2 }
skip: 1
quarantine: { reason: 5, sinc: x, since: yesterday }
user: { persona: x }
",
    );
    let expected = [
        "unknown key `nme` in the conversation",
        "unknown key `mood` in `persona`",
        "unknown key `say` in a turn",
        "`says` must not be empty",
        "`expect` must be a list, not a map",
        "a turn must be a map, not a number",
        "an assertion has no `type`",
        "an assertion must be a map, not a number",
        "an assertion has no `type`",
        "`weight` must be greater than 0, not 0",
        "an assertion has no key `weigth`",
        "`skip` must be true, false or the reason, not a number",
        "`since` must be a date such as `2026-01-31`",
        "unknown key `sinc` in `quarantine`",
        "`reason` must be a string, not a number",
        "`user` has no `goal`",
    ];
    let mut found: Vec<&str> = problems.iter().map(|problem| problem.message.as_str()).collect();
    let mut wanted = expected.to_vec();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn each_mistake_in_a_turn_or_an_assertion_is_one_problem_with_advice() {
    let problems = |text: &str| {
        let found = Scratch::new().problems(text).into_iter();
        found.map(|problem| format!("{}; {}", problem.message, problem.help.join("; "))).collect::<Vec<_>>()
    };
    assert_eq!(
        problems("turns:\n- { role: user, content: hi }\n- { role: assistant, content: hello }\n"),
        [
            "a turn has no `role`; every turn is a message from the user: write `- says: TEXT`",
            "a turn has no `role`; remove this turn: the agent answers each message; write what you require of it as \
             `expect`",
        ]
    );
    assert_eq!(
        problems("turns: [hi]\nassertions:\n- { file_exists: a.txt, text: x }\n"),
        ["an assertion has no `type`; for the type `file_exists`, write `file_exists: {…}` and put `text` into the \
          braces; or write `type: file_exists`, with a key for each field; or begin `text` with `- `, if it is an \
          assertion of its own"]
    );
    assert_eq!(
        problems("turns: [hi]\nexpect: []\nassertions: [{ contains: x }]\n"),
        ["unknown key `expect` in the conversation; `assertions` is already on line 3: write what belongs to it there"]
    );
    assert_eq!(
        problems("turns: [hi]\ncanaries: yes\nassertions: [{ contains: x }]\n"),
        ["`canaries` must be true, false or a list of places, not a string; write `true` or `false`, without quotes"]
    );
    assert_eq!(
        problems("turns: [hi]\nfixtures: { files: [] }\nassertions: [{ contains: x }]\n"),
        ["unknown key `files` in `fixtures`; did you mean `files_committed`?"]
    );
    assert_eq!(
        problems("turns: [hi]\nfiles: [a.txt]\nassertions: [{ contains: x }]\n"),
        ["unknown key `files` in the conversation; did you mean `fixtures`?"]
    );
}

#[test]
fn a_conversation_must_have_a_message() {
    let scratch = Scratch::new();
    let messages =
        |text: &str| scratch.problems(text).iter().map(|problem| problem.message.clone()).collect::<Vec<_>>();
    assert_eq!(messages("turns: []\n"), ["`turns` must not be empty"]);
    assert_eq!(messages("name: x\nassertions: [{contains: x}]\n"), ["the conversation has no `turns`"]);
}

#[test]
fn conversations_are_distinguished_from_other_files() {
    let scratch = Scratch::new();
    scratch.write("somewhere/talk.yaml", "turns: [{says: hi}]\nassertions: [{contains: hi}]\n");
    scratch.write("somewhere/table.yaml", "name: x\nturns: 5\n");
    scratch.write("somewhere/people.yaml", "persona: {a: b}\n");
    scratch.write("somewhere/near.yaml", "name: x\npersona: customer\nassertions: []\nturn: []\n");
    let loaded = scratch.load(&["somewhere"]);
    let formats: Vec<(&str, &str)> = loaded.suites.iter().map(|suite| (suite.name.as_str(), suite.format)).collect();
    assert_eq!(formats, [("near", "conversation"), ("table", "conversation"), ("talk", "conversation")]);
    let near = describe(&all_problems(&loaded));
    assert!(near.iter().any(|line| line.contains("unknown key `turn`")), "{near:#?}");
}

#[test]
fn a_misspelt_turn_key_is_reported_in_files_found_by_a_search() {
    let scratch = Scratch::new();
    scratch.write("somewhere/typo.yaml", "turns:\n  - say: hi\n");
    scratch.write("somewhere/other.yaml", "turns: [{left: 3}, {right: 2}]\n");
    let loaded = scratch.load(&["somewhere"]);
    let found = all_problems(&loaded);
    let problems = describe(&found);
    let [unknown] = &problems[..] else { panic!("{problems:#?}") };
    assert!(unknown.contains("typo.yaml:2:5: unknown key `say` in a turn"), "{unknown}");
    assert!(found.iter().any(|problem| problem.help == ["did you mean `says`?"]));
}

#[test]
fn a_conversation_with_keys_from_another_tool_is_not_skipped() {
    for (text, wrong) in [
        ("name: c\nturns: [{user: hi, expect: [{contains: nope}]}]\n", "unknown key `user` in a turn"),
        ("turns: [{content: hi}]\n", "unknown key `content` in a turn"),
        ("turns: []\nassertions: [{contains: x}]\n", "`turns` must not be empty"),
        ("name: c\nmessages: [{role: user, content: hi}]\n", "this is not a test in a known format"),
        ("messages: [hi]\nassertions: [{contains: x}]\n", "this is not a test in a known format"),
    ] {
        let scratch = Scratch::new();
        scratch.write("tests/c.yaml", text);
        let problems = describe(&all_problems(&scratch.load(&["tests"])));
        assert!(problems.iter().any(|line| line.contains(wrong)), "{text}: {problems:#?}");
    }
    let scratch = Scratch::new();
    scratch.write("tests/data.yaml", "messages: [{role: user, content: hi}]\n");
    assert!(scratch.load(&["tests"]).suites.is_empty());
}

#[test]
fn a_file_with_a_mistake_is_one_broken_case_and_other_files_load() {
    let scratch = Scratch::new();
    scratch.write("talks/good.yaml", "turns: [{says: hi}]\nassertions: [{contains: hi}]\n");
    scratch.write("talks/key.yaml", "name: k\nturns: [{says: hi}]\nasertions: [{contains: hi}]\n");
    scratch.write("talks/syntax.yaml", "name: s\npersona: { role: customer\nturns:\n  - says: hi\n");
    scratch.write("talks/turns.yaml", "turns:\n  - says: \"hi\n");
    scratch.write("talks/user.yaml", "turns:\n  - user: hi\n    expect: [\n");
    let loaded = scratch.load(&["talks"]);
    assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
    let broken: Vec<(&str, usize)> =
        loaded.suites.iter().map(|suite| (suite.cases[0].id.as_str(), suite.cases[0].broken.len())).collect();
    assert_eq!(broken, [("good", 0), ("k", 1), ("syntax", 1), ("turns", 1), ("user", 1)]);
    assert!(loaded.suites.iter().all(|suite| suite.cases[0].fails_alone));
    assert_eq!(describe(&loaded.suites[2].cases[0].broken), ["talks/syntax.yaml:2:10: this `{` is never closed"]);
    // A scenario file defines what a run is for, so a mistake in it prevents the run.
    assert!(scratch.write("s.yaml", "scenario: s\nsystem_prompt: p\nuser_promt: x\n").load(&["s.yaml"]).has_errors());
}

#[test]
fn assertion_ids_do_not_depend_on_how_the_type_is_written() {
    let text = "turns: [hi]\nassertions: [{toolCalled: x}, {tool_called: y}, {type: toolCalled, tool: z}]\n";
    let scratch = Scratch::new();
    let case = scratch.case(text);
    let ids: Vec<&str> = case.assertions.iter().map(|spec| spec.id.as_str()).collect();
    assert_eq!(ids, ["tool_called-1", "tool_called-2", "tool_called-3"]);
}

#[test]
fn a_scenario_accepts_the_short_form() {
    let scratch = Scratch::new();
    let case = scratch.case(
        "scenario: s
system_prompt: p
assertions:
  - contains: 30 days
  - { id: contains-2, contains: x }
  - contains: y
  - { id: t, type: tool_called, tool: Bash }
  - { type: contains, text: z }
",
    );
    let ids: Vec<&str> = case.assertions.iter().map(|spec| spec.id.as_str()).collect();
    assert_eq!(ids, ["contains-1", "contains-2", "contains-3", "t", "contains-4"]);
    assert!(case.assertions.iter().all(|spec| spec.about == AssertionScope::Trial));
}

#[test]
fn conversations_and_code_scenarios_can_define_tools() {
    let scratch = Scratch::new();
    scratch.write("talk.yaml", "turns: [{says: hi}]\ntools: ['./tools.ts#find']\nassertions: [{contains: hi}]\n");
    scratch.write(
        "code.test.ts",
        "import { scenario } from 'trialrun';\nexport default scenario('c', { tools: ['./tools.ts#find'] }, async () => {});\n",
    );
    let loaded = scratch.load(&["talk.yaml", "code.test.ts"]);
    assert_eq!(all_problems(&loaded), []);
    for suite in &loaded.suites {
        assert_eq!(suite.cases[0].all_tools().last(), Some(&json!("./tools.ts#find")), "{}", suite.name);
    }
}

#[test]
fn a_word_for_a_boolean_is_not_a_reason_for_skipping() {
    let problems = |skip: &str| {
        let text = format!("turns: [hi]\nassertions: [{{contains: hi}}]\nskip: {skip}\n");
        Scratch::new().problems(&text)
    };
    for word in ["no", "'false'", "OFF"] {
        let found = problems(word);
        assert_eq!(describe(&found), ["s.yaml:3:7: `skip` must be true, false or the reason, not a string"], "{word}");
    }
    assert_eq!(problems("'no'")[0].help, ["write `true` or `false`, without quotes"]);
    assert_eq!(problems("not today"), []);
}

#[test]
fn a_placeholder_is_reported_if_a_table_beside_the_file_has_its_column() {
    let problems = |table: &str, text: &str| {
        let scratch = Scratch::new();
        scratch.write("cities.csv", table).problems(text)
    };
    let text = "turns: [{says: 'About {{ city }}', expect: [{contains: '{{ city }}'}]}]\n";
    let found = problems("id,city\n1,Rome\n", text);
    assert_eq!(describe(&found), ["s.yaml:1:16: nothing fills `{{ city }}`: the file has no `cases`"]);
    assert_eq!(found[0].help, ["for one case per row of the table, write `cases: cities.csv`"]);
    assert_eq!(problems("id,name\n1,Rome\n", text), []);
    let found = problems("id,city\n1,Rome\n", &format!("{text}parametrize: cities.csv\nmax_turns: '{{{{ id }}}}'\n"));
    assert_eq!(describe(&found), ["s.yaml:2:1: unknown key `parametrize` in the conversation"]);
    assert_eq!(found[0].help, ["did you mean `cases`?"]);
}

#[test]
fn a_mistake_at_a_placeholder_is_reported_once() {
    let problems = |text: &str| {
        let scratch = Scratch::new();
        scratch.write("t.jsonl", "{\"city\": \"Rome\", \"land\": \"Italy\"}\n{\"city\": \"Oslo\"}\n");
        let found = scratch.problems(&format!("cases: t.jsonl\n{text}"));
        // Every case of a file has the problems with the whole file.
        let mut found: Vec<_> = found.iter().map(|one| format!("{one}; {}", one.help.join("; "))).collect();
        found.dedup();
        found
    };
    assert_eq!(
        problems("turns: [hi]\nassertions:\n  - contains: {{ city }}\n"),
        ["s.yaml:4:15: YAML reads a placeholder without quotes as a map; put it in quotes: `\"{{ city }}\"`"]
    );
    assert_eq!(
        problems("turns: ['{{ city } of {{ city }}']\nassertions: [{contains: hi}]\n")[0]
            .split("; with")
            .next()
            .unwrap(),
        "s.yaml:2:10: this `{{` is not closed; it is closed with two braces, `}}`"
    );
    assert_eq!(problems("turns: ['{{ city }']\nassertions: [{contains: hi}]\n").len(), 1);
    let found = problems("turns: ['{{ land }}', '{{ land }} again']\nassertions: [{contains: '{{ land }}'}]\n");
    assert_eq!(found.len(), 1, "{found:#?}");
    assert!(found[0].contains("unknown variable `land`"), "{found:#?}");
}

#[test]
fn a_goal_outside_of_the_user_is_reported_once() {
    let found = Scratch::new().problems("name: a\ngoal: buy a lamp\nassertions: [{contains: hi}]\n");
    assert_eq!(describe(&found), ["s.yaml:2:1: unknown key `goal` in the conversation"]);
    assert_eq!(found[0].help, ["write it under `user`: `user: { goal: … }`"]);
}
