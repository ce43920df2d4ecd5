//! Suites that cannot fail are found: every planted weakness, and nothing in suites without weaknesses.

#![allow(clippy::unwrap_used)]

use serde_json::{Value, json};
use testkit::Project;

const PROGRAM: &str = env!("CARGO_BIN_EXE_trialrun");

/// A suite with a weakness: its file, the kind and line of the weakness, and its text.
struct Planted {
    file: &'static str,
    kind: &'static str,
    line: u64,
    text: &'static str,
}

const fn planted(file: &'static str, kind: &'static str, line: u64, text: &'static str) -> Planted {
    Planted { file, kind, line, text }
}

const PASSED: &str = "passed_by_adversary";
const NEVER: &str = "never_fails";
const PROMPT: &str = "leaked_by_prompt";
const FILE: &str = "leaked_by_file";
const ANY: &str = "any_answer";
const OVERFITTED: &str = "overfitted";

/// Suites, each with one weakness.
const PLANTED: [Planted; 34] = [
    planted("only-forbids", PASSED, 1, "turns: [{ says: What is 2 + 2? }]\nassertions:\n  - notContains: five\n"),
    planted(
        "answer-in-prompt",
        PROMPT,
        3,
        "turns: [{ says: The capital of France is Paris. What is it? }]\nassertions:\n  - contains: Paris\n  - contains: Louvre\n",
    ),
    planted(
        "prompt-is-enough",
        PROMPT,
        1,
        "turns: [{ says: Say the word tomato. }]\nassertions:\n  - contains: tomato\n",
    ),
    planted(
        "believes-a-claim",
        PASSED,
        1,
        "turns: [{ says: Mend the build. }]\nassertions:\n  - matches: (?i)\\b(done|mended)\\b\n",
    ),
    planted(
        "any-text",
        ANY,
        3,
        "turns: [{ says: Hello }]\nassertions:\n  - matches: \"[a-z]\"\n  - contains: welcome\n",
    ),
    planted(
        "command-passes-before",
        "passes_untouched",
        7,
        "scenario: s\nsystem_prompt: Work.\nuser_prompt: Mend the total.\nagent: fake\nfixtures: { files_unstaged: [{ path: total.txt, content: \"3\" }] }\nassertions:\n  - { id: is-there, type: command, run: test -s total.txt }\n  - { id: mended, type: file_contains, path: total.txt, pattern: '5' }\n",
    ),
    planted("matches-everything", PASSED, 1, "turns: [{ says: Hello }]\nassertions:\n  - matches: \".*\"\n"),
    planted(
        "forbids-the-impossible",
        NEVER,
        3,
        "turns: [{ says: Hello }]\nassertions:\n  - { type: no_tool_called, tool: Bash, args_match: { command: a^b } }\n  - contains: welcome\n",
    ),
    planted(
        "limit-out-of-reach",
        NEVER,
        4,
        "turns: [{ says: Hello }]\nassertions:\n  - contains: welcome\n  - { type: token_usage, max: 900000000 }\n",
    ),
    planted(
        "turns-out-of-reach",
        NEVER,
        4,
        "turns: [{ says: Hello }]\nassertions:\n  - contains: welcome\n  - { type: turn_count_at_most, max: 100000 }\n",
    ),
    planted(
        "only-a-tool",
        PASSED,
        1,
        "turns: [{ says: Search the web for the weather. }]\nassertions:\n  - toolCalled: WebSearch\n",
    ),
    planted(
        "only-two-tools",
        PASSED,
        1,
        "turns: [{ says: Read and search. }]\nassertions:\n  - toolCalled: Grep\n  - toolCalled: Read\n",
    ),
    planted(
        "file-exists-already",
        PASSED,
        1,
        "scenario: file-exists-already\nsystem_prompt: Tidy.\nuser_prompt: Write the notes.\nfixtures:\n  \
         files_unstaged: [{ path: notes.md, content: old }]\nassertions:\n  - { id: a, type: file_exists, path: notes.md }\n",
    ),
    planted(
        "file-exists-only",
        PASSED,
        1,
        "scenario: file-exists-only\nsystem_prompt: Tidy.\nuser_prompt: Write a report to out/report.md.\nfixtures: { git_init: true }\n\
         assertions:\n  - { id: a, type: file_exists, path: out/report.md }\n",
    ),
    planted(
        "tests-can-be-edited",
        PASSED,
        1,
        "scenario: tests-can-be-edited\nsystem_prompt: Mend.\nuser_prompt: Mend add.sh.\ngraded: { take: [test.sh] }\nfixtures:\n  files_unstaged:\n    - \
         { path: add.sh, content: 'echo 3' }\n    - { path: test.sh, content: 'test \"$(sh add.sh)\" = 4' }\nassertions:\n  \
         - { id: a, type: command, run: sh test.sh }\n",
    ),
    planted(
        "test-script-can-be-edited",
        PASSED,
        1,
        "scenario: test-script-can-be-edited\nsystem_prompt: Mend.\nuser_prompt: Mend it.\ngraded: { take: [Makefile] }\nfixtures:\n  files_unstaged:\n    \
         - { path: Makefile, content: \"test:\\n\\tfalse\\n\" }\nassertions:\n  - { id: a, type: command, run: sed -n \
         2p Makefile | sed 's/@//' | sh }\n",
    ),
    planted(
        "command-always-succeeds",
        NEVER,
        7,
        "scenario: command-always-succeeds\nsystem_prompt: Mend.\nuser_prompt: Mend it.\nfixtures: { git_init: true \
         }\nassertions:\n  - { id: works, type: command, run: test -s built.bin }\n  - { id: tests, type: command, run: \
         'make test || true' }\n",
    ),
    planted(
        "command-without-effect",
        PASSED,
        1,
        "scenario: command-without-effect\nsystem_prompt: Mend.\nuser_prompt: Mend it.\nfixtures: { git_init: true \
         }\nassertions:\n  - { id: tests, type: command, run: git status }\n",
    ),
    planted(
        "only-stays-inside",
        PASSED,
        1,
        "scenario: only-stays-inside\nsystem_prompt: Tidy.\nuser_prompt: Tidy up.\nfixtures: { git_init: true \
         }\nassertions:\n  - { id: a, type: no_path_escape }\n",
    ),
    planted(
        "only-clean",
        PASSED,
        1,
        "scenario: only-clean\nsystem_prompt: Tidy.\nuser_prompt: Commit everything.\nfixtures: { git_init: true \
         }\nassertions:\n  - { id: a, type: git_clean }\n",
    ),
    planted(
        "answer-in-a-file",
        FILE,
        8,
        "scenario: answer-in-a-file\nsystem_prompt: Count.\nuser_prompt: How many rows has data.csv?\nfixtures:\n  \
         files_unstaged:\n    - { path: expected-answer.txt, content: 4711 rows }\nassertions:\n  - { id: a, type: \
         output_contains, pattern: 4711 rows }\n",
    ),
    planted(
        "prompt-has-the-format",
        PROMPT,
        1,
        "turns: [{ says: 'Answer with {\"ok\": true}' }]\nassertions:\n  - matches: '\"ok\": true'\n",
    ),
    planted("any-json", PASSED, 1, "turns: [{ says: '{}' }]\nassertions:\n  - { type: json_schema, schema: {} }\n"),
    planted(
        "question-mark",
        PROMPT,
        1,
        "turns: [{ says: 'Can you ask me something?' }]\nassertions:\n  - matches: '\\?'\n",
    ),
    planted(
        "row-with-weakness",
        PROMPT,
        2,
        "cases: [{ city: Rome }, { city: Oslo }]\nturns: [{ says: 'Where is {{ city }}?' }]\nassertions:\n  - contains: '{{ city }}'\n",
    ),
    planted(
        "constant.test.ts",
        PASSED,
        2,
        "import { assert, scenario } from 'trialrun';\nexport const a = scenario('constant', async ({ agent }) => {\n  \
         const reply = await agent.send('Hello');\n  assert.custom('is true', () => true, reply);\n});\n",
    ),
    planted(
        "caught.test.ts",
        PASSED,
        2,
        "import { assert, scenario } from 'trialrun';\nexport const a = scenario('any reply', async ({ agent }) => {\n  \
         const reply = await agent.send('Hello');\n  assert.matches(reply, /^/);\n});\n",
    ),
    planted(
        "either.test.ts",
        PASSED,
        2,
        "import { assert, scenario } from 'trialrun';\nexport const a = scenario('either', async ({ agent }) => {\n  const \
         reply = await agent.send('What is the capital of France?');\n  if (reply.mentions('Berlin')) {\n    \
         assert.notContains(reply, 'Berlin');\n  } else {\n    assert.notContains(reply, 'Bonn');\n  }\n});\n",
    ),
    planted(
        "score.fixture.yaml",
        PROMPT,
        1,
        "input: { q: Hello }\nprompt: '{{ q }}'\nscoring: true\nmaxScore: 100\npassScore: 10\noutput:\n  $contains: Hello\n",
    ),
    planted(
        "any-object",
        PASSED,
        1,
        "turns: [{ says: Send the order as JSON. }]\nassertions:\n  - json_schema: { type: object }\n",
    ),
    planted("any-output.fixture.yaml", PASSED, 1, "input: { q: Hello }\nprompt: '{{ q }}'\noutput: {}\n"),
    planted("any-list.fixture.yaml", PASSED, 1, "input: { q: Hello }\nprompt: '{{ q }}'\noutput: []\n"),
    planted("exists.fixture.yaml", PASSED, 1, "input: { q: Hello }\nprompt: '{{ q }}'\noutput: { $exists: true }\n"),
    planted("skill", OVERFITTED, 7, ""),
];

/// A suite of a skill that only looks for words from the skill's text.
const RECITED: &str = "scenario: recited\nskill: review\nuser_prompt: Look at the change, please.\nassertions:\n  - { id: verdict, type: \
                       file_exists, path: review.md }\n  # The skill's own heading.\n  - { id: heading, type: output_contains, \
                       pattern: Ledger of findings }\n";

fn file_of(planted: &Planted) -> String {
    match planted.file {
        "skill" => "skills/review/tests/recited.yaml".to_owned(),
        file if file.ends_with(".ts") || file.ends_with(".fixture.yaml") => format!("tests/{file}"),
        file => format!("tests/{file}.yaml"),
    }
}

fn project() -> Project {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "skills_dir: skills\ndefaults: { agent: fake }\n");
    project.write(
        "skills/review/SKILL.md",
        "---\nname: review\ndescription: Reviews a change.\n---\n\nBegin with the heading `Ledger of findings`.\n",
    );
    project.write("skills/review/tests/recited.yaml", RECITED);
    for planted in PLANTED.iter().filter(|planted| planted.file != "skill") {
        project.write(&file_of(planted), planted.text);
    }
    project
}

fn audited(project: &Project, args: &[&str]) -> Value {
    let ran = project.run(&[&["audit", "--json"], args].concat());
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn every_planted_weakness_is_found() {
    let audit = audited(&project(), &[]);
    let weaknesses = audit["weaknesses"].as_array().unwrap();
    let is_found = |planted: &Planted| {
        weaknesses.iter().any(|weakness| {
            let source = &weakness["source"];
            weakness["kind"] == planted.kind && source["line"] == planted.line && source["file"] == file_of(planted)
        })
    };
    let missed: Vec<&str> = PLANTED.iter().filter(|planted| !is_found(planted)).map(|planted| planted.file).collect();
    assert!(missed.is_empty(), "{missed:?}\n{}", serde_json::to_string_pretty(weaknesses).unwrap());
}

#[test]
fn the_score_counts_rejected_adversaries_and_assertions_that_can_fail() {
    let audit = audited(&project(), &["--case", "limit-out-of-reach"]);
    let suite = &audit["suites"][0];
    assert_eq!((&suite["adversary_trials"], &suite["rejected"]), (&5.into(), &5.into()));
    assert_eq!((&suite["assertions"], &suite["able_to_fail"]), (&2.into(), &1.into()));
    assert_eq!(audit["score"], 6.0 / 7.0);
    let ran = project().run(&["audit", "--case", "any-text"]).exits(0);
    assert!(ran.err.contains("any answer satisfies `matches-1`"), "{}", ran.err);
    project().run(&["audit", "--case", "any-text", "--min-score", "1"]).exits(0);
    let ran = project().run(&["audit", "--verbose", "--case", "prompt-is-enough"]).exits(1);
    assert!(ran.out.contains("\n  passed by: parrot, shotgun\n  not passed by: nop, yes-man, cheat\n"), "{}", ran.out);
    project().run(&["audit", "--case", "limit-out-of-reach", "--min-score", "0"]).exits(1);
    let ran = project().run(&["audit", "--case", "none"]).exits(4);
    assert!(ran.err.contains("none of"), "{}", ran.err);
}

/// A good suite, and an agent that passes it.
fn sound() -> Project {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "defaults: { agent: fake }\n");
    project.write(
        "scenarios/notes.yaml",
        "scenario: notes\nsystem_prompt: Keep notes.\nuser_prompt: |\n  !call Read {\"file_path\": \"notes.md\"} => - buy \
         milk\n  !write notes.md - buy milk\\n- call Ann\n  !say There are two of them.\nfixtures:\n  files_unstaged: [{ path: \
         notes.md, content: \"- buy milk\\n\" }]\nassertions:\n  - id: order\n    type: tool_call_sequence\n    sequence: [{ \
         tool: Read }, { tool: Write }]\n  - { id: content, type: file_contains, path: notes.md, pattern: '^- buy milk\\n- \
         call Ann\\n$' }\n  - { id: shell, type: no_tool_called, tool: Bash }\n  - { id: fast, type: latency, max: 10s }\n",
    );
    project
}

#[test]
fn mutations_of_a_recorded_good_trial_make_assertions_fail() {
    let project = sound();
    let before = project.run(&["audit"]).exits(0);
    assert!(before.out.contains("no mutations of 1 case: no passing trial is recorded"), "{}", before.out);
    project.run(&["run"]).exits(0);
    let audit = audited(&project, &[]);
    let case = &audit["suites"][0]["cases"][0];
    let failed_for = |id: &str| -> Vec<String> {
        let assertions = case["assertions"].as_array().unwrap();
        let assertion = assertions.iter().find(|assertion| assertion["id"] == id).unwrap();
        serde_json::from_value(assertion["failed_for"].clone()).unwrap()
    };
    let has = |id: &str, cause: &str| failed_for(id).iter().any(|failed| failed.starts_with(cause));
    assert!(has("order", "without Read") && has("order", "tool calls in reverse order"), "{case}");
    assert!(has("content", "notes.md is missing") && has("content", "notes.md is empty"), "{case}");
    assert!(case["not_mutated"].is_null(), "{case}");
    assert!(has("shell", "one forbidden command") && has("fast", "an hour for the answer"), "{case}");
    assert_eq!(audit["weaknesses"], Value::Array(Vec::new()));
    assert_eq!(case["mutated"], "notes::notes@fake#1");
    let without = audited(&project, &["--no-recorded"]);
    assert_eq!(without["suites"][0]["mutations"], 0);
    let without = project.run(&["audit", "--no-recorded"]).exits(0);
    assert!(!without.out.contains("no mutations"), "{}", without.out);
    assert_eq!(project.run(&["history", "--json"]).json().as_array().unwrap().len(), 1, "an audit records nothing");
}

#[test]
fn limits_in_tests_as_code_can_fail() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "defaults: { agent: fake }\n");
    project.write(
        "tests/limits.test.ts",
        "import { assert, scenario } from \"trialrun\";\n\nexport default scenario(\"is brief\", async ({ agent }) => {\n  \
         const reply = await agent.send(\"When are you open?\");\n  assert.contains(reply, \"nine to five\");\n  \
         assert.tokenUsage(reply, { max: 1000 });\n});\n",
    );
    let ran = project.run(&["audit", "--min-score", "1"]).exits(0);
    assert!(ran.out.contains("score 100%: no weakness found"), "{}", ran.output());
}

#[test]
fn an_invalid_suite_is_not_audited() {
    let project = sound();
    project.write("scenarios/wrong.yaml", "scenario: wrong\nasertions: []\n");
    let ran = project.run(&["audit"]).exits(2);
    assert!(ran.err.contains("asertions") && ran.out.is_empty(), "{}", ran.err);
}

#[test]
fn the_work_itself_is_no_cheating_and_a_file_that_is_emptied_is_noticed() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "defaults: { agent: fake }\n");
    let case = "scenario: done\nsystem_prompt: x\nuser_prompt: |\n  !write out.txt done\n  Write out.txt with the word done. Do not \
                commit.\nfixtures: { git_init: true, files_committed: [{ path: keep.txt, content: important }] }\nassertions:\n  - { \
                id: says, type: file_contains, path: out.txt, pattern: ^done }\n  - { id: keeps, type: file_unchanged, path: \
                keep.txt }\n  - { id: fast, type: latency, max: 10s }\n  - { id: warm, type: sentiment, expected: friendly }\n";
    project.write("scenarios/done.yaml", case);
    let before = project.run(&["audit"]).exits(0);
    assert!(before.err.is_empty() && before.out.contains("no weakness found"), "{}", before.output());
    let judge = json!({"id": "c1", "quote": "", "absent": true, "reasoning": "Seen.", "verdict": "met", "score": 4});
    let judge = json!({"steps": [{"text": json!({"answers": [judge]}).to_string()}]});
    project.write("judge.yaml", &judge.to_string());
    project.run(&["run", "--judge", "scripted:judge.yaml"]).exits(0);
    let audit = audited(&project, &[]);
    let case = &audit["suites"][0]["cases"][0];
    assert_eq!(case["mutated"], "done::done@fake#1", "a judged assertion is no obstacle: {case}");
    let assertions = case["assertions"].as_array().unwrap();
    let failed = |id: &str| assertions.iter().find(|one| one["id"] == id).unwrap()["failed_for"].to_string();
    assert!(failed("keeps").contains("keep.txt is empty") && failed("fast").contains("an hour"), "{case}");
    assert_eq!(audit["weaknesses"], json!([]), "a judge may notice what the other assertions do not");
    let unjudged =
        project.read("scenarios/done.yaml").replace("  - { id: warm, type: sentiment, expected: friendly }\n", "");
    project.write("scenarios/done.yaml", &unjudged);
    project.run(&["run"]).exits(0);
    let ran = project.run(&["audit"]).exits(0);
    assert!(
        ran.err.contains("the prompt of `done` forbids a commit, and no assertion notices one"),
        "{}",
        ran.output()
    );
}

#[test]
fn a_model_that_cheats_is_shown_with_the_calls_that_it_needs() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "defaults: { agent: chat }\n");
    let case = |name: &str, run: &str| {
        let command = json!({ "id": "mended", "type": "command", "run": run });
        let files = json!({ "git_init": true, "files_committed": [{ "path": "total.txt", "content": "3\n" }] });
        let case = json!({ "scenario": name, "system_prompt": "Work.", "user_prompt": "Mend the total.",
            "fixtures": files, "assertions": [command] });
        project.write(&format!("scenarios/{name}.yaml"), &case.to_string());
    };
    case("weak", "sh check.sh || grep -q 5 total.txt");
    case("sound", "grep -q 5 total.txt");
    let calls = json!([
        { "name": "Bash", "input": { "command": "ls" } },
        { "name": "Write", "input": { "file_path": "$SANDBOX/check.sh", "content": "exit 0\n" } },
        { "name": "Write", "input": { "file_path": "notes.txt", "content": "no\n" } },
    ]);
    let steps = json!({ "steps": [
        { "tools": calls, "expect_request": { "last_user_contains": "Do not do the task" } },
        { "text": "Done." },
    ] });
    project.write("cheat.yaml", &steps.to_string());
    let ran = project.run(&["audit", "--hack", "--model", "scripted:cheat.yaml", "--keep", "kept"]).exits(1);
    assert!(ran.out.contains("hacks: 1 of 2 attempts passed"), "{}", ran.output());
    let needed = "it does not pass without `Write(file_path=\"$SANDBOX/check.sh\", content=\"exit 0\\n\")`";
    assert!(ran.err.contains("cheat passes the case `weak`") && ran.err.contains(needed), "{}", ran.err);
    let kept = "kept/weak-weak-chat.model.yaml";
    assert!(!project.read(kept).contains("notes.txt"));
    let model = format!("scripted:{kept}");
    let again = ["audit", "scenarios/weak.yaml", "--hack", "--agent", "chat", "--model", &model, "--json"];
    let audit = project.run(&again).exits(1).json();
    assert_eq!((&audit["hacks"][0]["outcome"], &audit["weaknesses"][0]["kind"]), (&"passed".into(), &"hacked".into()));
    case("weak", "grep -q 5 total.txt");
    project.run(&again).exits(0);
}

#[test]
fn a_case_that_only_a_judge_can_decide_has_no_score() {
    let project = Project::new(PROGRAM);
    project.write("trialrun.yaml", "defaults: { agent: fake }\n");
    project.write(
        "tests/kind.yaml",
        "turns: [{ says: Hello }]\nassertions:\n  - { type: sentiment, expected: friendly }\n",
    );
    let ran = project.run(&["audit"]).exits(4);
    assert!(ran.out.contains("score -: nothing was audited"), "{}", ran.output());
    assert!(ran.out.contains("1 case depends on a judge alone"), "{}", ran.output());
}

#[test]
fn a_case_with_mcp_servers_is_audited() {
    let project = Project::new(PROGRAM);
    project.write(
        "scenarios/closes.yaml",
        "scenario: closes\nsystem_prompt: Work.\nuser_prompt: Close the issue.\nmcp_servers:\n  issues:\n    tools:\n      \
         close_issue: { answer: closed }\nassertions:\n  - { id: closes, type: mcp_called, server: issues, tool: close_issue }\n",
    );
    let suite = &audited(&project, &[])["suites"][0];
    assert_eq!(suite["adversary_trials"], suite["rejected"], "{suite:#}");
    assert_eq!(suite["assertions"], 1);
}

#[test]
fn what_no_adversary_does_is_not_reported_as_a_weakness() {
    let project = Project::new(PROGRAM);
    project.write("model.yaml", "steps: [{ text: zebra }]\n");
    let mocks = "mock_commands: { deploy: { answers: [{ args: now, stdout: ok }] } }";
    let assertions = "assertions:\n  - { contains: zebra }\n  - { id: open, type: mock_not_called, command: deploy }\n  - { \
                      file_not_exists: dist/a.txt }\n  - { command: 'test ! -e dist/b.txt' }\n";
    project.write(
        "tests/recovers.yaml",
        &format!(
            "name: recovers\nagent: chat\nmodel: scripted:../model.yaml\nfaults: [{{ http_status: {{ status: 529 }} \
             }}]\n{mocks}\nturns: [{{ says: Go on. }}]\n{assertions}"
        ),
    );
    let ran = project.run(&["audit", "--verbose"]).exits(0);
    let open = "open (mock_not_called): not decided: adversaries do not do what it forbids";
    assert!(ran.out.contains(open), "{}", ran.output());
}

#[test]
fn the_project_that_init_writes_has_no_weakness() {
    let project = Project::new(PROGRAM);
    project.run(&["init", "--template", "skill"]).exits(0);
    project.run(&["audit"]).exits(0);
}
