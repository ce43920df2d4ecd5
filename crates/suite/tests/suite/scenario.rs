//! Scenario files: accepted and rejected content, with locations.

use model::Subject;

use crate::scratch::{Scratch, describe, outline};

#[test]
fn keys_added_to_the_original_format_are_read() {
    let scratch = Scratch::new();
    scratch.write("hello.yaml", "steps: [{ text: hello }]");
    let case = scratch.case(
        "scenario: s
system_prompt: p
tags: [smoke, slow]
timeout: 90s
trials: 3
agent: claude
model: scripted:./hello.yaml
runner: {reasoning_effort: low, allowed_tools_override: []}
",
    );
    assert_eq!(case.tags, ["smoke", "slow"]);
    assert_eq!((case.timeout_ms, case.trials), (Some(90_000), Some(model::Trials::Fixed(3))));
    assert_eq!(case.runner.agent.as_ref().unwrap().0, "claude-code");
    assert_eq!(case.runner.model, Some(format!("scripted:{}", scratch.path("hello.yaml").display())));
    assert_eq!(case.runner.model_source.as_ref().unwrap().to_string(), "s.yaml:7:8");
    assert_eq!(case.runner.reasoning_effort.as_deref(), Some("low"));
    assert_eq!(case.runner.allowed_tools_override.as_deref(), Some([].as_slice()));
}

#[test]
fn limits_that_cannot_be_kept_and_rates_that_are_not_tested_cause_warnings() {
    let problems = |rest: &str| {
        let problems = Scratch::new().problems(&format!("scenario: s\nsystem_prompt: p\n{rest}\n"));
        assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
        describe(&problems)
    };
    let found = problems("user_prompts: [a, b, c]\nmax_turns: 2");
    assert_eq!(found, ["s.yaml:4:12: `max_turns` is 2, but each of the 3 messages takes at least one turn"]);
    let found = problems("trials: 5\npass_rate: 0.9");
    assert_eq!(found, ["s.yaml:4:12: `pass_rate` is not tested with a fixed number of `trials`"]);
    for fine in ["user_prompts: [a, b]\nmax_turns: 2", "trials: auto\npass_rate: 0.9", "pass_rate: 0.9"] {
        assert_eq!(problems(fine), [""; 0], "{fine}");
    }
}

#[test]
fn a_misspelt_skill_in_an_assertion_causes_a_warning() {
    let scratch = Scratch::new();
    scratch.skill("notes");
    let problems = |assertion: &str| {
        describe(&scratch.problems(&format!("scenario: s\nskill: notes\nassertions:\n  - {assertion}\n")))
    };
    assert_eq!(problems("skill_used: note"), ["s.yaml:4:17: the project has no skill `note`"]);
    assert_eq!(problems("{ id: a, type: skill_not_used, skill: Notes }").len(), 1);
    for fine in ["skill_used: notes", "skill_used: elsewhere", "skill_not_used: plugin:other"] {
        assert_eq!(problems(fine), [""; 0], "{fine}");
    }
}

#[test]
fn the_model_in_the_runner_block_keeps_its_location() {
    let scratch = Scratch::new();
    let case = scratch.case("scenario: s\nsystem_prompt: p\nrunner:\n  model: m\n");
    assert_eq!(case.runner.model.as_deref(), Some("m"));
    assert_eq!(case.runner.model_source.as_ref().unwrap().to_string(), "s.yaml:4:10");
    assert!(scratch.case("scenario: s\nsystem_prompt: p\n").runner.model_source.is_none());
}

#[test]
fn the_message_is_derived_from_prompt_argument_and_subject() {
    let scratch = Scratch::new();
    scratch.skill("x");
    let first = |text: &str| scratch.case(text).messages[0].text.clone();
    let run = "Run the `x` skill from your system prompt, from start to end, on the current working directory.";
    assert_eq!(first("{scenario: s, skill: x}"), run);
    assert_eq!(first("{scenario: s, skill: x, argument: ''}"), run);
    assert_eq!(first("{scenario: s, skill: x, argument: 'a {b}'}"), format!("{run}\nArgument: a {{b}}"));
    assert_eq!(first("{scenario: s, skill: x, user_prompt: '/x {{ y }}'}"), "/x {{ y }}");
    assert_eq!(first("{scenario: s, system_prompt: p}"), "Begin.");
    assert_eq!(first("{scenario: s, system_prompt: p, argument: hi}"), "hi");
}

#[test]
fn a_misspelt_scenario_is_one_error() {
    let problems = Scratch::new().problems("senario: s\nsystem_prompt: p\n");
    assert_eq!(
        problems.iter().map(|problem| problem.message.as_str()).collect::<Vec<_>>(),
        ["unknown key `senario` in the scenario"]
    );
}

#[test]
fn an_agent_that_is_declared_in_a_scenario_belongs_to_the_configuration() {
    let problems = Scratch::new()
        .problems("scenario: s\nsystem_prompt: p\nagent:\n  type: subprocess\n  comand: ./a\nassertions: []\n");
    assert_eq!(problems[0].message, "`agent` must be the name of an agent, not a map");
    assert!(problems[0].help[0].contains("in `trialrun.yaml`, as `agents: { NAME: { … } }`"), "{problems:?}");
    assert_eq!(problems.iter().filter(|problem| problem.message.contains("agent")).count(), 1);
}

#[test]
fn all_problems_of_a_scenario_are_reported_together() {
    let scratch = Scratch::new();
    scratch.skill("commit");
    let problems = scratch.problems(
        "scenario: s
skill: comit
system_prompt: p
user_prompt: a
user_prompts: []
argument: unused
max_turns: 0
timeout: soon
agent: codex
model: scripted:nope.yaml
runner:
  runtime: claude
  agent: chat
  permission_mod: plan
  setting_sources: [usr]
fixtures: {extends: base}
user_responses: [{match_question: a, choose: b, colour: c}]
assertions: [{id: a, type: t, weight: 0}, {type: t}, 5]
asertions: []
description: !note x
",
    );
    let found: Vec<_> = problems
        .iter()
        .map(|problem| {
            let place = problem.source.as_ref().unwrap();
            format!("{}:{} {}", place.line, place.column, problem.message)
        })
        .collect();
    assert_eq!(
        found,
        [
            "2:8 there is no skill called `comit`",
            "3:1 a scenario tests one subject: it already has `skill`, so remove `system_prompt`",
            "5:1 a scenario has `user_prompt` or `user_prompts`, not both",
            "5:15 `user_prompts` must not be empty",
            "6:1 `argument` is not used, because `user_prompt` is set",
            "7:12 `max_turns` must be a whole number of at least 1, not 0",
            "8:10 `timeout` must be a duration, not `soon`",
            "9:1 `agent` is given twice",
            "10:8 cannot read the script `nope.yaml`: No such file or directory (os error 2)",
            "13:3 `runtime` and `agent` are the same; give one of them",
            "14:3 unknown key `permission_mod` in `runner`",
            "15:21 an item of `setting_sources` must be one of `user`, `project`, `local`, not `usr`",
            "16:21 there is no `_fixtures.yaml` to extend from",
            "17:49 unknown key `colour` in an item of `user_responses`",
            "18:39 `weight` must be greater than 0, not 0",
            "18:54 an assertion must be a map, not a number",
            "19:1 unknown key `asertions` in the scenario",
            "20:14 unknown tag `!note`",
        ]
    );
    let help = |message: &str| problems.iter().find(|it| it.message.contains(message)).unwrap().help.join("; ");
    assert_eq!(help("called `comit`"), "did you mean `commit`?; looked in skills");
    assert_eq!(help("permission_mod"), "did you mean `permission_mode`?");
    assert_eq!(help("`usr`"), "did you mean `user`?");
    assert_eq!(help("asertions"), "`assertions` is already on line 18: write what belongs to it there");
}

#[test]
fn a_scenario_with_problems_is_still_returned_for_further_checks() {
    let scratch = Scratch::new();
    let loaded = scratch
        .write("s.yaml", "scenario: ''\nsystem_prompt: p\nassertions: [{id: a, type: t}, {id: b}]\n")
        .load(&["s.yaml"]);
    assert!(loaded.has_errors());
    assert_eq!(outline(&loaded), ["s: s"]);
    assert_eq!(loaded.suites[0].cases[0].assertions.len(), 1);
}

#[test]
fn a_broken_skill_is_reported_once_for_all_scenarios_that_name_it() {
    let scratch = Scratch::new();
    scratch.write("skills/x/SKILL.md", "---\nname: y\ndescription: d\n---\n");
    for index in 0..3 {
        scratch.write(&format!("skills/x/tests/{index}.yaml"), format!("scenario: s{index}\nskill: x\n"));
    }
    let loaded = scratch.load(&["x"]);
    assert_eq!(describe(&loaded.diagnostics), ["skills/x/SKILL.md:2:7: the skill is named `y` but its directory `x`"]);
}

#[test]
fn a_skill_without_its_file_and_a_path_as_name_are_rejected() {
    let scratch = Scratch::new();
    scratch.write("skills/bare/x", "").write("elsewhere/SKILL.md", "");
    assert_eq!(
        describe(&scratch.problems("{scenario: s, skill: bare}")),
        ["s.yaml:1:22: the `bare` skill has no SKILL.md"]
    );
    for name in ["../elsewhere", "a/b", "..", "/x"] {
        let problems = describe(&scratch.problems(&format!("{{scenario: s, skill: '{name}'}}")));
        assert_eq!(problems, [format!("s.yaml:1:22: `{name}` is not a valid name of a skill")]);
    }
}

#[test]
fn a_system_prompt_file_is_relative_to_the_scenario() {
    let scratch = Scratch::new();
    scratch
        .write("deep/prompt.md", "be {terse}\n")
        .write("deep/t.yaml", "scenario: s\nsystem_prompt_file: prompt.md\n");
    let loaded = scratch.load(&["deep/t.yaml"]);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    let Subject::Prompt(prompt) = &loaded.suites[0].cases[0].subject else { panic!("not a prompt") };
    assert_eq!(prompt.body, "be {terse}\n");
}

#[test]
fn json_scenarios_are_read_strictly() {
    let scratch = Scratch::new();
    scratch.write("s.json", "{\n  \"scenario\": \"s\",\n  \"system_prompt\": \"p\"\n}\n");
    assert_eq!(outline(&scratch.load(&["s.json"])), ["s: s"]);
    scratch.write("s.json", "{\n  \"scenario\": \"s\",\n  \"system_prompt\": \"p\",\n}\n");
    assert_eq!(describe(&scratch.load(&["s.json"]).diagnostics), ["s.json:4:1: not valid JSON: trailing comma"]);
}

#[test]
fn long_and_multibyte_strings_are_accepted() {
    let scratch = Scratch::new();
    let long = "x é ".repeat(50_000);
    let text = serde_json::json!({"scenario": "s", "system_prompt": long, "argument": "a"}).to_string();
    scratch.write("s.json", &text);
    let loaded = scratch.load(&["s.json"]);
    assert!(loaded.diagnostics.is_empty(), "{:?}", describe(&loaded.diagnostics));
    let Subject::Prompt(prompt) = &loaded.suites[0].cases[0].subject else { panic!("not a prompt") };
    assert_eq!(prompt.body, long);
}

#[test]
fn a_prepared_answer_under_a_key_of_other_programs_is_reported_once() {
    let scratch = Scratch::new();
    let text = "scenario: a\nsystem_prompt: hi\nuser_responses:\n  - match_question: push\n    answer: 'Yes'\n\
                assertions: [{id: a, type: contains, text: hi}]\n";
    let found = scratch.problems(text);
    let found: Vec<String> = found.iter().map(|problem| format!("{problem}; {}", problem.help.join("; "))).collect();
    assert_eq!(found, ["s.yaml:5:5: unknown key `answer` in an item of `user_responses`; did you mean `choose`?"]);
}
