//! Comparison with the recorded behaviour of ai-tester 0.4.0.

use std::path::{Path, PathBuf};

use model::{PermissionMode, SettingSource, Skill, Subject};
use serde_json::{Value, json};
use trialrun_suite::Project;

use crate::scratch::{Scratch, describe, outline};

fn vectors(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(name)
}

fn lines(name: &str) -> Vec<Value> {
    let text = std::fs::read_to_string(vectors(name)).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Scenarios that ai-tester rejects, with the line at which loading rejects them, or `None` if the problem is
/// inside an assertion, which loading does not check.
const INVALID: &[(&str, Option<(usize, &str)>)] = &[
    ("05-empty-scenario.yaml", Some((1, "`scenario` must not be empty"))),
    ("06-no-prompt-source.yaml", Some((1, "the scenario has no subject"))),
    ("10-max-turns-zero.yaml", Some((3, "`max_turns` must be a whole number of at least 1, not 0"))),
    ("11-max-turns-float.yaml", Some((3, "`max_turns` must be a whole number of at least 1, not 1.5"))),
    ("12-token-budget-negative.yaml", Some((3, "`token_budget` must be greater than 0, not -1"))),
    ("13-bad-permission-mode.yaml", Some((3, "`permission_mode` must be one of"))),
    ("14-bad-setting-source.yaml", Some((3, "an item of `setting_sources` must be one of"))),
    // The id is optional here.
    ("16-assertion-missing-id.yaml", None),
    ("17-tool-called-missing-tool.yaml", None),
    ("19-args-match-nonstring.yaml", None),
    ("20-negative-call-index.yaml", None),
    ("22-empty-pattern.yaml", None),
    ("24-content-and-content-from.yaml", Some((3, "`content` or `content_from`, not both"))),
    ("26-copy-tree-missing.yaml", Some((3, "cannot find the directory `./missing`"))),
    ("27-copy-tree-is-file.yaml", Some((3, "`./01-empty.yaml` is not a directory"))),
    ("28-empty-match-question.yaml", Some((3, "`match_question` must not be empty"))),
    ("29-response-missing-choose.yaml", Some((3, "has no `choose`"))),
    ("30-env-nonstring.yaml", Some((3, "`env.A` must be a string, not a number"))),
    ("31-scenario-number.yaml", Some((1, "`scenario` must be a string, not a number"))),
    ("33-runner-null.yaml", Some((3, "`runner` must be a map, not an empty value (null)"))),
    ("34-assertions-null.yaml", Some((3, "`assertions` must be a list, not an empty value (null)"))),
    ("35-git-init-string.yaml", Some((3, "`git_init` must be true or false, not a string"))),
    ("36-duplicate-keys.yaml", Some((2, "duplicate key `a`"))),
];

/// Copies the scenarios in a folder into a project that has the skill that they name.
fn folder(name: &str) -> (Scratch, Vec<String>) {
    let scratch = Scratch::new();
    scratch.skill("x").write("01-empty.yaml", "");
    let mut files = Vec::new();
    for entry in std::fs::read_dir(vectors(name)).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let file = path.file_name().unwrap().to_str().unwrap().to_owned();
            scratch.write(&file, std::fs::read(&path).unwrap());
            files.push(file);
        }
    }
    files.sort();
    (scratch, files)
}

#[test]
fn every_invalid_scenario_is_refused_at_its_line() {
    let (scratch, files) = folder("invalid");
    assert_eq!(files, INVALID.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>());
    for (file, expected) in INVALID {
        let loaded = scratch.load(&[file]);
        let problems = describe(&loaded.diagnostics);
        match expected {
            Some((line, message)) => {
                let place = format!("{file}:{line}:");
                assert!(problems.iter().any(|p| p.starts_with(&place) && p.contains(message)), "{file}: {problems:#?}");
                // A map under `a` is not a scenario either. Every other file has exactly one problem.
                let more = usize::from(*file == "36-duplicate-keys.yaml");
                assert_eq!(problems.len(), 1 + more, "{file}: {problems:#?}");
                assert!(loaded.has_errors());
            }
            None => {
                assert!(problems.is_empty(), "{file}: {problems:#?}");
                assert_eq!(loaded.suites[0].cases[0].assertions.len(), 1, "{file}");
            }
        }
    }
}

#[test]
fn wrongly_accepted_scenarios_are_rejected_where_loading_can_detect_it() {
    let (scratch, files) = folder("accepted");
    let problems_of = |file: &str| describe(&scratch.load(&[file]).diagnostics);
    let expected: &[(&str, &[&str])] = &[
        (
            "01-typo-key-silently-dropped.yaml",
            &[":2:8: there is no skill called `does-not-exist`", ":3:1: unknown key `asserions` in the scenario"],
        ),
        // Loading does not check whether an agent or a pattern is valid, or whether an assertion's id is unique.
        ("02-unknown-runtime.yaml", &[]),
        ("03-bad-regex-and-duplicate-ids.yaml", &[]),
        ("04-missing-system-prompt-file.yaml", &[":2:21: `./nope.md`: cannot read the file"]),
        ("05-fixture-path-escape-not-checked.yaml", &[":3:37: `path` leaves the sandbox with `..`: `../escape`"]),
        ("06-both-token-budget-spellings.yaml", &[":4:1: the token budget is given twice"]),
    ];
    assert_eq!(files, expected.iter().map(|(file, _)| (*file).to_owned()).collect::<Vec<_>>());
    for (file, problems) in expected {
        let found = problems_of(file);
        assert_eq!(found.len(), problems.len(), "{file}: {found:#?}");
        for (found, expected) in found.iter().zip(*problems) {
            assert!(found.starts_with(&format!("{file}{expected}")), "{file}: {found}");
        }
    }
    let loaded = scratch.load(&["02-unknown-runtime.yaml"]);
    let (agent, place) = loaded.suites[0].cases[0].runner.agent.clone().unwrap();
    assert_eq!((agent.as_str(), place.line, place.column), ("gemini", 3, 19));
}

/// Returns the skill called `name` with this text, as loaded for a case that names it.
fn skill_of(name: &str, text: &str) -> Result<Skill, Vec<String>> {
    let scratch = Scratch::new();
    scratch.write(&format!("skills/{name}/SKILL.md"), text);
    let loaded = scratch.write("s.yaml", format!("scenario: s\nskill: {name}\n")).load(&["s.yaml"]);
    match loaded.suites[0].cases[0].subject.skill() {
        Some(skill) => Ok(Skill::clone(skill)),
        None => Err(describe(&loaded.diagnostics)),
    }
}

fn allowed_tools_here(vector: &Value) -> Value {
    let text = format!("---\nname: a\ndescription: d\nallowed-tools: {}\n---\n", vector["in"]);
    let skill = skill_of("a", &text).unwrap();
    json!({ "raw": skill.allowed_tools_raw, "parsed": skill.allowed_tools })
}

/// Returns `true` if a `SKILL.md` is read as recorded: either rejected, or with the same frontmatter and body.
fn skill_agrees(vector: &Value) -> bool {
    match skill_of("a", vector["text"].as_str().unwrap()) {
        Ok(skill) => vector["frontmatter"] == Value::Object(skill.frontmatter) && vector["body"] == json!(skill.body),
        Err(_) => vector["error"].is_string(),
    }
}

#[test]
fn every_vector_matches_or_is_a_listed_difference() {
    let differences: Value =
        serde_json::from_str(&std::fs::read_to_string(vectors("differences.json")).unwrap()).unwrap();
    let differences = differences.as_array().unwrap();
    for difference in differences {
        let reason = difference["reason"].as_str().unwrap();
        assert!(reason.starts_with("defect: "), "a difference needs its reason: {reason}");
    }
    let (mut all, mut agree, mut listed) = (0, 0, 0);
    let mut hold = |file: &str, key: &str, vector: &Value, agrees: bool| {
        all += 1;
        let is_listed = differences.iter().any(|it| it["file"] == file && it[key] == vector[key]);
        match (agrees, is_listed) {
            (true, false) => agree += 1,
            (false, true) => listed += 1,
            (true, true) => panic!("{file}: listed as a difference but agrees: {vector}"),
            (false, false) => panic!("{file}: differs and is not listed: {vector}"),
        }
    };
    for vector in lines("allowed_tools.jsonl") {
        hold("allowed_tools.jsonl", "in", &vector, allowed_tools_here(&vector) == vector["out"]);
    }
    for vector in lines("skill_md.jsonl") {
        hold("skill_md.jsonl", "text", &vector, skill_agrees(&vector));
    }
    // Written past the output capture of passing tests, so that the count is visible in the test output.
    let counted = format!("skill vectors: {agree} agree + {listed} listed = {all} vectors");
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
    assert_eq!(agree + listed, all);
    assert_eq!(listed, differences.len());
}

#[test]
fn a_rejected_skill_is_reported_at_its_line() {
    let vectors = lines("skill_md.jsonl");
    let refused: Vec<_> =
        vectors.iter().filter_map(|vector| skill_of("a", vector["text"].as_str().unwrap()).err()).flatten().collect();
    assert_eq!(
        refused,
        [
            "skills/a/SKILL.md:1:1: the skill has no frontmatter",
            "skills/a/SKILL.md:4:15: `token-budget` must be a number greater than 0, not a string",
            "skills/a/SKILL.md:2:7: this `[` is never closed",
        ]
    );
}

#[test]
fn the_recorded_project_loads_with_every_value() {
    let root = vectors("project");
    let (project, problems) = Project::find(&root.join("skills/good-skill/tests"), &root);
    assert!(problems.is_empty(), "{problems:#?}");
    assert_eq!((&project.root, &project.skills_dir), (&root, &root.join("skills")));
    assert_eq!(project.defaults.model.as_ref().unwrap().value, "project-default-model");
    assert_eq!(project.defaults.permission_mode.as_ref().unwrap().value, PermissionMode::Plan);

    let load = |targets: &[&str]| {
        trialrun_suite::load(&trialrun_suite::Request {
            root: root.clone(),
            skills_dir: project.skills_dir.clone(),
            cwd: root.clone(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            ..trialrun_suite::Request::default()
        })
    };
    let loaded = load(&[]);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    assert_eq!(outline(&loaded), ["good-skill: chain, full-featured, minimal"]);
    let cases = &loaded.suites[0].cases;

    let texts = |index: usize| cases[index].messages.iter().map(|message| message.text.as_str()).collect::<Vec<_>>();
    assert_eq!(texts(0), ["first\nline", "second"]);
    assert_eq!(
        texts(2),
        ["Run the `good-skill` skill from your system prompt, from start to end, on the current working directory."]
    );

    let full = &cases[1];
    assert!(texts(1)[0].ends_with("on the current working directory.\nArgument: auth"));
    assert_eq!(full.description.as_deref(), Some("every field"));
    assert_eq!((full.max_turns, full.token_budget), (Some(12), Some(9000.0)));
    assert_eq!(full.source.to_string(), "skills/good-skill/tests/full.yaml:1:11");
    let runner = &full.runner;
    assert_eq!(runner.agent.as_ref().unwrap().0, "claude-code");
    assert_eq!(runner.model.as_deref(), Some("my-model"));
    assert_eq!(runner.permission_mode, Some(PermissionMode::AcceptEdits));
    assert_eq!(
        runner.allowed_tools_override.as_deref(),
        Some(["Read".to_owned(), "Bash(git *)".to_owned()].as_slice())
    );
    assert_eq!(runner.setting_sources, [SettingSource::User, SettingSource::Project]);

    let fixtures = &full.fixtures;
    assert_eq!((fixtures.git_init, fixtures.git_branch.as_deref()), (true, Some("feature/x")));
    let trees: Vec<_> = fixtures.copy_trees.iter().map(|tree| (tree.from.clone(), tree.to.as_str())).collect();
    let tree = root.join("skills/good-skill/tests/tree");
    assert_eq!(trees, [(tree.clone(), "."), (tree, "vendor/deep")]);
    let committed: Vec<_> = fixtures.files_committed.iter().map(|file| (file.path.as_str(), &*file.content)).collect();
    assert_eq!(committed, [("README.md", b"# Demo\n".as_slice()), ("src/a.ts", b"inner\n".as_slice())]);
    assert_eq!((fixtures.files_staged.len(), fixtures.files_unstaged[0].content.len()), (1, 0));
    assert_eq!(fixtures.setup_commands[0].value, "echo hi > made.txt");
    assert_eq!(fixtures.env, [("MY_FLAG".to_owned(), "1".to_owned())]);

    assert_eq!(full.user_responses[0].match_question.value, "(?i)commit");
    assert_eq!(full.user_responses[0].choose, "Commit as is");
    let assertions: Vec<_> =
        full.assertions.iter().map(|it| (it.id.as_str(), it.kind.value.as_str(), it.weight)).collect();
    assert_eq!(assertions.len(), 6);
    assert_eq!(assertions[1], ("a2", "tool_call_sequence", 2.0));
    assert_eq!(full.assertions[0].node.get("args_match").unwrap().to_json(), json!({"command": "^git status"}));

    let Subject::Skill(skill) = &full.subject else { panic!("not a skill") };
    assert_eq!((skill.version.as_deref(), skill.token_budget), (Some("1.2.3"), Some(5000.0)));
    assert_eq!(skill.directory.as_deref(), Some(root.join("skills/good-skill").as_path()));
    assert_eq!(skill.allowed_tools[1].scopes, ["git *", "npm test", "mkdir"]);
    assert!(skill.body.starts_with("\n# Good skill\n"));

    let loaded = load(&["inline.yaml", "from-file.yaml"]);
    assert!(loaded.diagnostics.is_empty(), "{:#?}", loaded.diagnostics);
    assert_eq!(outline(&loaded), ["inline: inline-demo", "from-file: from-file"]);
    let inline = &loaded.suites[0].cases[0];
    let Subject::Prompt(prompt) = &inline.subject else { panic!("not a prompt") };
    assert_eq!((prompt.name.as_str(), prompt.body.as_str()), ("inline:inline-demo", "You are terse.\n"));
    assert_eq!(inline.messages[0].text, "say hi");
    assert_eq!(inline.runner.agent.as_ref().unwrap().0, "codex");
    let Subject::Prompt(prompt) = &loaded.suites[1].cases[0].subject else { panic!("not a prompt") };
    assert_eq!(prompt.body.trim_end(), "prompt body");
}
