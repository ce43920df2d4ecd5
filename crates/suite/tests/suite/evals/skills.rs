//! Discovery of suites, and the skill that each suite is about.

use std::path::Path;

use trialrun_suite::{Loaded, Request};

use crate::scratch::{Scratch, describe, outline};

fn suite(skill: &str) -> String {
    format!("{{\"skill_name\": \"{skill}\", \"evals\": [{{\"id\": 1, \"prompt\": \"p\", \"expected_output\": \"\"}}]}}")
}

/// Creates the skills `a` and `b` with suites of their own, `c` with one in the examples folder, and `d` without one.
fn project() -> Scratch {
    let scratch = Scratch::new();
    for name in ["a", "b", "c", "d"] {
        scratch.skill(name);
    }
    scratch
        .write("skills/a/evals/evals.json", suite("a"))
        .write("skills/b/evals/evals.json", suite("b"))
        .write("examples/c/evals/evals.json", suite("c"));
    scratch
}

fn directory(loaded: &Loaded, index: usize) -> &Path {
    loaded.suites[index].cases[0].subject.installed().unwrap().directory.as_deref().unwrap()
}

fn with_skill(scratch: &Scratch, skill: &str, targets: &[&str]) -> Loaded {
    trialrun_suite::load(&Request {
        root: scratch.root().to_owned(),
        skills_dir: scratch.path("skills"),
        cwd: scratch.root().to_owned(),
        targets: targets.iter().map(|target| (*target).to_owned()).collect(),
        skill: Some(skill.to_owned()),
        ..Request::default()
    })
}

#[test]
fn every_skill_with_a_suite_below_a_folder_is_found_once() {
    let scratch = project();
    for targets in [&[][..], &["."], &["skills"], &["skills/", "examples"], &["a", "b", "c"]] {
        let loaded = scratch.load(targets);
        assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0], "{targets:?}");
        let mut found = outline(&loaded);
        found.sort();
        assert_eq!(found, ["a/evals: 1", "b/evals: 1", "c/evals: 1"], "{targets:?}");
        assert!(loaded.suites.iter().all(|suite| suite.format == "evals"));
    }
    assert_eq!(outline(&scratch.load(&["examples"])), ["c/evals: 1"]);
    assert_eq!(outline(&scratch.load(&["skills/b"])), ["b/evals: 1"]);
    assert_eq!(outline(&scratch.load(&["examples/c/evals/evals.json"])), ["c/evals: 1"]);
}

#[test]
fn a_project_with_only_a_skill_and_its_suite_needs_no_skills_folder() {
    let scratch = Scratch::new();
    scratch.write("my-skill/SKILL.md", "---\nname: my-skill\ndescription: d\n---\n");
    scratch.write("my-skill/evals/evals.json", suite("my-skill"));
    std::fs::remove_dir(scratch.path("skills")).unwrap();
    let loaded = scratch.load(&[]);
    assert_eq!((describe(&loaded.diagnostics), outline(&loaded)), (vec![], vec!["my-skill/evals: 1".to_owned()]));
}

#[test]
fn a_suite_outside_the_project_finds_the_skills_next_to_its_examples() {
    let scratch = project();
    let file = "examples/c/evals/evals.json";
    // Without a configuration, the project starts at the named folder.
    let folder = scratch.path("examples/c/evals");
    let loaded = trialrun_suite::load(&Request {
        root: folder.clone(),
        skills_dir: folder.join("skills"),
        cwd: scratch.root().to_owned(),
        targets: vec![file.to_owned()],
        ..Request::default()
    });
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(directory(&loaded, 0), scratch.path("skills/c"));
    let elsewhere = tempfile::tempdir().unwrap();
    let loaded = scratch.load_from(elsewhere.path(), &[scratch.path(file).to_str().unwrap()]);
    assert_eq!(directory(&loaded, 0), scratch.path("skills/c"));
}

#[test]
fn equal_ids_in_two_skills_do_not_conflict() {
    let scratch = project();
    scratch.write("skills/a/tests/t.yaml", "scenario: '1'\nskill: a\n");
    scratch.write("examples/b/evals/evals.json", suite("b"));
    let loaded = scratch.load(&[]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(outline(&loaded), ["a: 1", "a/evals: 1", "b/evals: 1", "c/evals: 1", "examples/b: 1"]);
}

#[test]
fn the_skill_can_be_specified_separately_from_the_suite() {
    let scratch = project();
    scratch.write("next/a/SKILL.md", "---\nname: a\ndescription: the next one\n---\n");
    let loaded = with_skill(&scratch, "next/a", &["skills/a/evals/evals.json"]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(directory(&loaded, 0), scratch.path("next/a"));
    for (skill, expected) in [("./skills/a/", "skills/a"), ("a", "skills/a"), ("c", "skills/c")] {
        let loaded = with_skill(&scratch, skill, &[]);
        assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0], "{skill}");
        assert_eq!((loaded.suites.len(), directory(&loaded, 0)), (1, scratch.path(expected).as_path()), "{skill}");
    }
}

#[test]
fn a_skill_whose_name_differs_from_the_suite_is_an_error() {
    let scratch = project();
    let loaded = with_skill(&scratch, "skills/b", &["skills/a/evals/evals.json"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["skills/a/evals/evals.json:1:16: the suite is about `a`, but the skill is called `b`"]
    );
    assert_eq!(loaded.diagnostics[0].help[0], "did you mean `b`?");
    scratch.write("skills/a/evals/evals.json", suite("b"));
    let loaded = scratch.load(&["a"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["skills/a/evals/evals.json:1:16: the suite is about `b`, but the skill is called `a`"]
    );
}

#[test]
fn a_missing_skill_is_reported_with_the_nearest_name() {
    let scratch = Scratch::new();
    scratch.skill("release-notes").write("examples/x/evals/evals.json", suite("release-note"));
    let loaded = scratch.load(&["examples"]);
    let messages = describe(&loaded.diagnostics);
    assert_eq!(messages, ["examples/x/evals/evals.json:1:16: there is no skill called `release-note`"]);
    let help = &loaded.diagnostics[0].help;
    assert_eq!(
        help,
        &["did you mean `release-notes`?", "looked in skills", "choose its directory as the skill to test"]
    );
    scratch.write("examples/x/evals/evals.json", suite("../skills/release-notes"));
    let message = scratch.load(&["examples"]).diagnostics.remove(0).message;
    assert_eq!(message, "`../skills/release-notes` is not a valid name of a skill");
}

#[test]
fn missing_skills_and_suites_are_reported() {
    let scratch = project();
    scratch.write("skills/d/tests/t.yaml", "scenario: t\nskill: d\n").write("bare/skill.md", "");
    let refusal = |skill: &str, targets: &[&str]| {
        let loaded = with_skill(&scratch, skill, targets);
        assert!(loaded.has_errors(), "{skill}");
        (describe(&loaded.diagnostics), loaded.diagnostics[0].help.clone())
    };
    let (messages, help) = refusal("d", &[]);
    assert_eq!(messages, ["the `d` skill has no `evals/evals.json`"]);
    assert!(help[0].contains("name its suite") && help[1].contains("skills/d"), "{help:?}");
    let (messages, help) = refusal("bare", &[]);
    assert_eq!(
        (messages[0].as_str(), help[0].as_str()),
        ("`bare` is not a skill: it has no SKILL.md", "did you mean `SKILL.md` instead of `skill.md`?")
    );
    let (messages, _) = refusal("skills/dd", &["skills/a/evals/evals.json"]);
    assert_eq!(messages, ["`skills/dd` is not a skill: it has no SKILL.md"]);
    let (messages, _) = refusal("a", &["skills/d/tests/t.yaml"]);
    assert_eq!(messages, ["`a` is chosen as the skill to test, but none of the named suites is about it"]);
}

#[test]
fn an_evals_json_that_is_not_a_suite_is_skipped_in_a_search() {
    let scratch = Scratch::new();
    scratch
        .write("d/one/evals.json", "{\"models\": []}")
        .write("d/two/evals.json", "{\"skill_name\": \"x\", \"evls\": []}")
        .write("d/three/other.json", suite("x"));
    let loaded = scratch.load(&["d"]);
    let messages = describe(&loaded.diagnostics);
    assert_eq!(messages.len(), 3, "{messages:#?}");
    // A suite is read whatever its name is.
    assert_eq!(messages[0], "d/three/other.json:1:16: there is no skill called `x`");
    assert!(messages[1..].iter().all(|line| line.starts_with("d/two/evals.json:1:")), "{messages:#?}");
    assert!(messages.iter().any(|line| line.ends_with("unknown key `evls` in the suite")));
    let named = scratch.skill("x").load(&["d/three/other.json"]);
    assert_eq!(
        (told_of(&named), outline(&named)),
        (vec![], vec!["x/evals: 1".to_owned()]),
        "a named file may have any name"
    );
}

fn told_of(loaded: &Loaded) -> Vec<String> {
    describe(&loaded.diagnostics)
}

#[test]
fn weaknesses_of_a_suite_are_reported_on_request() {
    let warned = |rest: &[&str]| -> Vec<String> {
        let scratch = Scratch::new();
        let case = |(index, rest): (usize, &&str)| {
            format!("{{\"id\": {index}, \"prompt\": \"p\", \"expected_output\": \"\", {rest}}}")
        };
        let cases: Vec<String> = rest.iter().enumerate().map(case).collect();
        scratch.skill("s");
        scratch
            .write("skills/s/evals/evals.json", format!("{{\"skill_name\": \"s\", \"evals\": [{}]}}", cases.join(",")));
        let loaded = scratch.load(&["s"]);
        assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
        let judged = |_: &model::Case, spec: &model::AssertionSpec| {
            spec.kind.value == "claim" && !spec.node.as_str().unwrap().contains("file")
        };
        let warnings = trialrun_suite::design_warnings(&loaded.suites[0], &judged);
        assert!(warnings.iter().all(|warning| !warning.is_error() && warning.source.is_some()));
        warnings.into_iter().map(|warning| warning.message).collect()
    };
    let complete = [r#""assertions": ["is nice", "a file is there"]"#, r#""should_trigger": false"#];
    assert_eq!(warned(&complete), [] as [&str; 0]);
    assert_eq!(
        warned(&[r#""assertions": ["is nice"], "force_skill_invocation": true, "side_effect_level": "live-safe""#]),
        [
            "in `s/evals`, all assertions need a judge",
            "`s/evals` has no negative control",
            "every case of `s/evals` that should trigger the skill names or forces it",
            "every case of `s/evals` uses services outside this machine",
        ]
    );
    assert_eq!(warned(&[complete[1], r#""assertions": [{"type": "git_clean"}]"#]), [] as [&str; 0]);
    let scenario = Scratch::new().case("scenario: s\nsystem_prompt: p\n");
    let suite = model::Suite { name: "s".into(), path: "s".into(), format: "scenario", cases: vec![scenario] };
    assert_eq!(trialrun_suite::design_warnings(&suite, &|_, _| true), []);
}

/// Returns the names of the loaded suites, sorted.
fn names(loaded: &Loaded) -> Vec<&str> {
    let mut names: Vec<&str> = loaded.suites.iter().map(|suite| suite.name.as_str()).collect();
    names.sort_unstable();
    names
}

#[test]
fn a_suite_has_the_same_name_however_it_is_selected() {
    let scratch = project();
    scratch.write("skills/a/tests/t.yaml", "scenario: t\nskill: a\nassertions: []\n");
    // Two suites about one skill, two files with the same stem, and one that has the name of a skill.
    scratch.write("examples/other/evals/evals.json", suite("c"));
    let prompt = |id: &str| format!("scenario: {id}\nsystem_prompt: p\nassertions: []\n");
    for (file, id) in [("one/x", "x"), ("two/x", "x"), ("b", "b"), ("alone", "alone")] {
        scratch.write(&format!("scenarios/{file}.yaml"), prompt(id));
    }
    // A file that is not a suite does not reserve its name.
    scratch.write("scenarios/models/alone.yaml", "steps: []\n");
    let all = ["a", "a/evals", "alone", "b", "b/evals", "examples/c", "examples/other", "one/x", "two/x"];
    assert_eq!(names(&scratch.load(&[])), all);
    for (target, expected) in [
        ("skills/a", &["a", "a/evals"][..]),
        ("a", &["a", "a/evals"]),
        ("skills/a/evals/evals.json", &["a/evals"]),
        ("skills/a/tests/t.yaml", &["a"]),
        ("skills/b", &["b/evals"]),
        ("scenarios/b.yaml", &["b"]),
        ("examples/c", &["examples/c"]),
        ("examples/other/evals/evals.json", &["examples/other"]),
        ("scenarios/one", &["one/x"]),
        ("scenarios/two/x.yaml", &["two/x"]),
        ("scenarios/alone.yaml", &["alone"]),
    ] {
        assert_eq!(names(&scratch.load(&[target])), expected, "{target}");
    }
    assert_eq!(names(&with_skill(&scratch, "skills/a", &[])), ["a/evals"]);
    assert_eq!(names(&with_skill(&scratch, "b", &[])), ["b/evals"]);
    let other = ["examples/other/evals/evals.json"];
    assert_eq!(names(&with_skill(&scratch, "c", &other)), ["examples/other"]);
}

#[test]
fn a_scenario_finds_the_chosen_skill_and_skills_in_parent_folders() {
    let scratch = project();
    let elsewhere = Scratch::new();
    elsewhere.skill("e").write("deep/o.yaml", "scenario: o\nskill: e\nassertions: []\n");
    let file = elsewhere.path("deep/o.yaml");
    let file = file.to_str().unwrap();
    let loaded = scratch.load(&[file]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(directory(&loaded, 0), elsewhere.path("skills/e"));

    elsewhere.write("kept/e/SKILL.md", "---\nname: e\ndescription: another\n---\n");
    let kept = elsewhere.path("kept/e");
    let loaded = with_skill(&scratch, kept.to_str().unwrap(), &[file]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(directory(&loaded, 0), kept);
    let messages = describe(&with_skill(&scratch, "a", &[file]).diagnostics);
    assert_eq!(messages, ["`a` is chosen as the skill to test, but none of the named suites is about it"]);
}

#[test]
fn a_suite_can_name_the_agent_that_runs_it() {
    let scratch = Scratch::new();
    let suite = |agent: &str| suite("a").replacen('{', &format!("{{\"agent\": {agent}, "), 1);
    scratch.skill("a").write("skills/a/evals/evals.json", suite("\"claude\""));
    let loaded = scratch.load(&[]);
    let (agent, place) = loaded.suites[0].cases[0].runner.agent.clone().unwrap();
    assert_eq!((agent.as_str(), place.line, place.column), ("claude-code", 1, 11));
    scratch.write("skills/a/evals/evals.json", suite("3"));
    assert_eq!(
        describe(&scratch.load(&[]).diagnostics),
        ["skills/a/evals/evals.json:1:11: `agent` must be a string, not a number"]
    );
}

fn sub_agent_suite(name: &str) -> String {
    suite(name).replace("skill_name", "subagent_name").replace("\"id\": 1", "\"id\": 1, \"should_trigger\": false")
}

#[test]
fn a_suite_of_a_sub_agent_tests_the_definition_file_of_that_name() {
    let scratch = project();
    scratch
        .write("agents/reviewer.md", "---\nname: reviewer\ndescription: Reviews.\ntools: Read\n---\n\nBe strict.\n")
        .write("agents/reviewer/evals/evals.json", sub_agent_suite("reviewer"))
        .write("examples/other/evals/evals.json", sub_agent_suite("reviewer"));
    for targets in [&[][..], &["agents"], &["agents/reviewer/evals/evals.json"]] {
        let loaded = scratch.load(targets);
        assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0], "{targets:?}");
        let found = loaded.suites.iter().find(|suite| suite.name == "agents/reviewer").unwrap();
        let case = &found.cases[0];
        let skill = case.subject.installed().unwrap();
        assert_eq!((case.definition, skill.name.as_str()), (model::Definition::SubAgent, "reviewer"));
        assert_eq!((skill.body.as_str(), skill.file_name().as_str()), ("Be strict.", "reviewer.md"));
        assert_eq!(case.assertions[0].kind.value, "sub_agent_not_used");
    }
    let chosen = with_skill(&scratch, "agents/reviewer.md", &[]);
    assert_eq!((describe(&chosen.diagnostics), names(&chosen)), (vec![], vec!["agents/reviewer"]));
    let problems = |skill: &str, file: &str| describe(&with_skill(&scratch, skill, &[file]).diagnostics);
    let (own, other) = ("agents/reviewer/evals/evals.json", "skills/a/evals/evals.json");
    assert_eq!(
        problems("a", own),
        [format!("{own}:1:19: the suite is about a sub-agent, and the chosen skill is not one")]
    );
    let expected = format!("{other}:1:16: the suite is about a skill, and the chosen skill is not one");
    assert_eq!(problems("agents/reviewer.md", other), [expected]);

    scratch.write("agents/reviewer/evals/evals.json", sub_agent_suite("reviewr"));
    let loaded = scratch.load(&["agents"]);
    assert!(describe(&loaded.diagnostics)[0].ends_with("there is no sub-agent called `reviewr`"));
    assert_eq!(loaded.diagnostics[0].help[..2], ["did you mean `reviewer`?", "looked in agents"]);
    scratch
        .write("agents/reviewer.md", "Be strict.\n")
        .write("agents/reviewer/evals/evals.json", sub_agent_suite("reviewer"));
    let loaded = scratch.load(&["agents"]);
    assert_eq!(describe(&loaded.diagnostics), ["agents/reviewer.md:1:1: the sub-agent has no frontmatter"]);
}
