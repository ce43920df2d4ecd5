//! Selection of the files to load.

use crate::scratch::{Scratch, describe, outline};

fn prompt(id: &str) -> String {
    format!("scenario: {id}\nsystem_prompt: p\n")
}

fn test_of(skill: &str, id: &str) -> String {
    format!("scenario: {id}\nskill: {skill}\n")
}

/// Creates two skills with tests, one without, and folders that are not skills.
fn skills() -> Scratch {
    let scratch = Scratch::new();
    for name in ["beta", "alpha", "untested"] {
        scratch.skill(name);
    }
    scratch
        .write("skills/alpha/tests/b.yaml", test_of("alpha", "b"))
        .write("skills/alpha/tests/a.YML", test_of("beta", "a"))
        .write("skills/alpha/tests/_skipped.yaml", "not: read")
        .write("skills/alpha/tests/deeper/c.yaml", "not: read")
        .write("skills/alpha/tests/notes.txt", "not read")
        .write("skills/beta/tests/c.yaml", test_of("beta", "c"))
        .write("skills/no-skill/tests/_d.yaml", "not: read")
        .write("skills/no-tests/notes.yaml", "not: read")
        .write("skills/.hidden/tests/d.yaml", "not: read");
    #[cfg(unix)]
    std::os::unix::fs::symlink(scratch.path("skills/alpha"), scratch.path("skills/linked")).unwrap();
    scratch
}

#[test]
fn without_targets_every_skill_is_tested_in_order() {
    let scratch = skills();
    let loaded = scratch.load(&[]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(outline(&loaded), ["alpha: a, b", "beta: c"]);
    assert_eq!(loaded.suites[0].path, scratch.path("skills/alpha/tests"));
    assert_eq!(loaded.suites[0].format, "scenario");
    let subject = loaded.suites[0].cases[0].subject.skill().unwrap();
    assert_eq!(subject.name, "beta", "a scenario can name a skill other than the one it belongs to");
}

#[test]
fn skills_files_and_directories_can_be_targets() {
    let scratch = skills();
    scratch.write("more/x/one.yaml", prompt("one")).write("more/two.yml", prompt("two"));
    let named = |targets: &[&str]| {
        let loaded = scratch.load(targets);
        assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
        outline(&loaded)
    };
    assert_eq!(named(&["beta", "alpha"]), ["beta: c", "alpha: a, b"]);
    assert_eq!(named(&["skills/alpha"]), ["alpha: a, b"]);
    assert_eq!(named(&["./skills"]), ["alpha: a, b", "beta: c"]);
    assert_eq!(named(&["skills/alpha/tests/b.yaml"]), ["alpha: b"]);
    assert_eq!(named(&["skills/alpha/tests/b.yaml", "alpha", "beta"]), ["alpha: b, a", "beta: c"]);
    assert_eq!(named(&["more"]), ["two: two", "one: one"]);
    assert_eq!(named(&["."]), ["two: two", "one: one", "alpha: a, b", "beta: c"]);
}

#[test]
fn a_directory_is_searched_for_suites_and_other_files_are_skipped() {
    let scratch = Scratch::new();
    scratch
        .write("d/ok.yaml", prompt("ok"))
        .write("d/flow.yaml", "{scenario: flow, system_prompt: p}")
        .write("d/other.yaml", "services: {scenario: {image: x}}\n")
        .write("d/two.yaml", "a: 1\n---\nb: 2\n")
        .write("d/load.yaml", "config: {}\nscenarios:\n  - flow: []\n")
        .write("d/table.yaml", "skill: {a: 1}\nmax_turns: {a: 1}\nscenario: {name: default}\n")
        .write("d/skill.yaml", "skill: x\ndescription: no scenario, just a key of that name\n")
        .write("d/.hidden/x.yaml", "scenario: [\n")
        .write("d/fixtures/x.yaml", "scenario: [\n")
        .write("d/node_modules/x.yaml", "scenario: [\n")
        .write("d/_x.yaml", "scenario: [\n")
        .write("d/build/CACHEDIR.TAG", "")
        .write("d/build/x.yaml", "scenario: [\n");
    let loaded = scratch.load(&["d"]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(outline(&loaded), ["flow: flow", "ok: ok"]);

    scratch.write("d/z.yaml", "scenario: [\n");
    let loaded = scratch.load(&["d"]);
    assert_eq!(describe(&loaded.diagnostics), ["d/z.yaml:1:11: this `[` is never closed"]);
    assert_eq!(loaded.suites.len(), 2, "a broken file does not affect others");
}

#[test]
fn a_file_that_resembles_a_scenario_is_reported() {
    let scratch = Scratch::new();
    scratch
        .write("d/ok.yaml", prompt("ok"))
        .write("d/typo.yaml", "scenrio: second\nsystem_prompt: p\n")
        .write("d/lone.yaml", "senario: third\n")
        .write("d/keys.yaml", "# none\nuser_prompt: hi\nassertions: []\n")
        .write("d/half.yaml", "scenrio: x\nassertions: [\n")
        .write("d/sick.yaml", "a: [\n")
        .write("d/void.yaml", "# later\n");
    let loaded = scratch.load(&["d"]);
    let messages: Vec<(bool, String)> =
        loaded.diagnostics.iter().map(|problem| (problem.is_error(), problem.to_string())).collect();
    let error = |text: &str| (true, text.to_owned());
    let warning = |text: &str| (false, text.to_owned());
    assert_eq!(
        messages,
        [
            error("d/half.yaml:2:13: this `[` is never closed"),
            error("d/keys.yaml:2:1: this is not a test in a known format"),
            error("d/lone.yaml:1:1: this is not a test in a known format"),
            warning("d/sick.yaml:1:4: this `[` is never closed"),
            error("d/typo.yaml:1:1: unknown key `scenrio` in the scenario"),
            warning("d/void.yaml:1:1: the file is empty"),
        ]
    );
    assert_eq!(loaded.diagnostics[2].help[0], "did you mean `scenario` instead of `senario`?");
    assert_eq!(loaded.diagnostics[4].help, ["did you mean `scenario`?"]);
}

#[test]
fn every_file_directly_in_the_scenarios_folder_must_be_a_suite() {
    let scratch = Scratch::new();
    scratch
        .write("scenarios/first.yaml", prompt("first"))
        .write("scenarios/second.yaml", "scenrio: second\nsystem_prompt: p\n")
        .write("scenarios/other.yml", "services: {}\n")
        .write("scenarios/_fixtures.yaml", "base: {}\n")
        .write("scenarios/notes.txt", "not read")
        .write("scenarios/models/m.yaml", "steps: [{text: hi}]\n")
        .write("scenarios/models/sick.yaml", "a: [\n")
        .write("scenarios/models/void.yaml", "")
        .write("scenarios/deep/third.yaml", "scenrio: third\nsystem_prompt: p\n");
    let loaded = scratch.load(&[]);
    assert_eq!(
        describe(&loaded.diagnostics),
        [
            "scenarios/deep/third.yaml:1:1: unknown key `scenrio` in the scenario",
            "scenarios/other.yml:1:1: this is not a test in a known format",
            "scenarios/second.yaml:1:1: unknown key `scenrio` in the scenario",
        ]
    );
    assert!(loaded.diagnostics.iter().all(model::Diagnostic::is_error));
}

#[test]
fn an_unreadable_test_file_or_a_misspelt_turns_key_is_reported() {
    let scratch = Scratch::new();
    scratch
        .write("tests/good.yaml", "name: good\nturns: [hello]\nassertions: [{contains: hello}]\n")
        .write("tests/typo.yaml", "name: typo\ntruns: [{says: hello}]\n")
        .write("tests/one.yaml", "name: one\npersona: {name: Ada}\nTurns: [hello]\n")
        .write("tests/sick.yaml", "not: [a\n")
        .write("tests/void.yaml", "")
        .write("tests/data.yaml", "names: [a, b]\n");
    let loaded = trialrun_suite::load(&trialrun_suite::Request {
        root: scratch.root().to_owned(),
        skills_dir: scratch.path("skills"),
        tests: Some(scratch.path("tests")),
        cwd: scratch.root().to_owned(),
        ..trialrun_suite::Request::default()
    });
    assert_eq!(
        describe(&loaded.diagnostics),
        [
            "tests/one.yaml:1:1: this is not a test in a known format",
            "tests/sick.yaml:1:6: this `[` is never closed",
            "tests/typo.yaml:1:1: this is not a test in a known format",
            "tests/void.yaml:1:1: the file is empty",
        ]
    );
    let helps: Vec<&str> = loaded.diagnostics.iter().map(|problem| problem.help[0].as_str()).take(3).collect();
    assert_eq!(
        (helps[0], helps[2]),
        ("did you mean `turns` instead of `Turns`?", "did you mean `turns` instead of `truns`?")
    );
}

#[test]
fn tests_without_a_skill_are_an_error() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("skills/x/tests/t.yaml", test_of("x", "t"))
        .write("skills/greeter/Skill.md", "---\nname: greeter\ndescription: d\n---\n")
        .write("skills/greeter/tests/hello.yaml", test_of("greeter", "hello"))
        .write("skills/lost/tests/t.yml", test_of("lost", "t"));
    for targets in [[].as_slice(), &["skills"]] {
        let loaded = scratch.load(targets);
        assert_eq!(
            describe(&loaded.diagnostics),
            ["`skills/greeter` has tests but no SKILL.md", "`skills/lost` has tests but no SKILL.md"]
        );
        assert!(loaded.has_errors());
        assert_eq!(loaded.diagnostics[0].help, ["did you mean `SKILL.md` instead of `Skill.md`?"]);
        assert_eq!(
            loaded.diagnostics[1].help,
            ["tests that do not belong to a skill go into the project's folder `scenarios`"]
        );
        assert_eq!(outline(&loaded), ["x: t"]);
    }
    let loaded = scratch.load(&["skills/greeter/tests/hello.yaml"]);
    assert_eq!(loaded.diagnostics[0].help, ["did you mean `SKILL.md` instead of `Skill.md`?"]);
}

#[test]
fn a_file_in_an_unknown_format_is_an_error_that_lists_the_formats() {
    let scratch = Scratch::new();
    scratch.skill("x");
    for (file, text) in [("n.yaml", "services: {}\n"), ("e.yaml", ""), ("l.yaml", "- a\n"), ("t.txt", "scenario: s")] {
        let loaded = scratch.write(file, text).load(&[file]);
        assert_eq!(describe(&loaded.diagnostics), [format!("{file}:1:1: this is not a test in a known format")]);
        assert!(loaded.diagnostics[0].help.iter().any(|line| line.starts_with("scenario: ")));
    }
    let loaded = scratch.write("skills/x/tests/t.yaml", "Scenario: s\n").load(&["x"]);
    assert_eq!(loaded.diagnostics[0].help[0], "did you mean `scenario` instead of `Scenario`?");
}

#[test]
fn a_missing_target_is_an_error_with_the_nearest_name() {
    let scratch = skills();
    scratch.write("more/case.yaml", prompt("s"));
    let problem = |target: &str| {
        let loaded = scratch.load(&[target]);
        let problem = &loaded.diagnostics[0];
        assert!(problem.is_error());
        (problem.message.clone(), problem.help.join("; "))
    };
    assert_eq!(
        problem("alhpa"),
        (
            "`alhpa` is neither a file, nor a directory, nor a skill in `skills`".to_owned(),
            "did you mean `alpha`?; to run one case, write `SUITE::CASE` as `trialrun list` shows it".to_owned()
        )
    );
    assert!(problem("more/cas.yaml").1.starts_with("did you mean `more/case.yaml`?"));
    let elsewhere = problem("more/nosuch.yaml");
    assert_eq!(elsewhere.0, "there is no file `more/nosuch.yaml`");
    assert_eq!(elsewhere.1, "files in its folder: `case.yaml`");
    scratch.write("scenarios/billing/refund.yaml", prompt("r"));
    assert!(problem("refund:first").1.starts_with("did you mean `refund::first`?"));
    for suite in ["refund", "billing/refund", "refund.yml", "scenario/billing/refund.yaml"] {
        assert!(problem(suite).1.starts_with("did you mean `scenarios/billing/refund.yaml`?"), "{}", problem(suite).1);
    }
    assert_eq!(problem("zzz").1, "to run one case, write `SUITE::CASE` as `trialrun list` shows it");
    scratch.write(
        "scenarios/hi.spec.ts",
        "import { scenario } from \"trialrun\";\nexport default scenario('a', () => {});\n",
    );
    let of_name =
        ("this file is not read as a test because of its name", "call it `hi.test.ts`, or begin its name with `_`");
    assert_eq!(problem("scenarios/hi.spec.ts"), (of_name.0.to_owned(), of_name.1.to_owned()));
    scratch.write(".claude/skills/notes/SKILL.md", "---\nname: notes\ndescription: Takes notes.\n---\n");
    let path = "give its path, `.claude/skills/notes`, or set `skills_dir: .claude/skills` in the configuration";
    assert_eq!(problem("notes").1, path);
}

#[test]
fn a_skill_without_tests_and_an_empty_directory_cause_warnings() {
    let scratch = skills();
    scratch.write("empty/readme", "");
    assert_eq!(describe(&scratch.load(&["untested"]).diagnostics), ["untested:1:1: the `untested` skill has no tests"]);
    let loaded = scratch.load(&["empty"]);
    assert_eq!(describe(&loaded.diagnostics), ["no suite found in empty"]);
    assert!(!loaded.has_errors());
}

#[test]
fn a_project_without_skills_gets_a_hint() {
    let scratch = Scratch::new();
    std::fs::remove_dir(scratch.path("skills")).unwrap();
    let loaded = scratch.load(&[]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["there are no tests here: neither `tests` nor `scenarios` nor `skills`"]
    );
    assert!(loaded.has_errors());
    scratch.write("b.fixture.yaml", "- input: a\n");
    scratch.write("a.test.ts", "");
    scratch.write("c.yaml", "");
    let help = &scratch.load(&[]).diagnostics[0].help;
    assert_eq!(help[0], "`trialrun run a.test.ts` runs that file");
}

#[test]
fn scenarios_without_a_skill_are_found_in_their_folder() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("skills/x/tests/a.yaml", test_of("x", "a"))
        .write("scenarios/models/m.yaml", "steps: [{text: hi}]\n")
        .write("scenarios/deep/b.yaml", prompt("b"))
        .write("elsewhere/c.yaml", prompt("c"));
    assert_eq!(outline(&scratch.load(&[])), ["x: a", "deep/b: b"]);
    std::fs::remove_dir_all(scratch.path("skills")).unwrap();
    let loaded = scratch.load(&[]);
    assert_eq!((outline(&loaded), describe(&loaded.diagnostics)), (vec!["deep/b: b".to_owned()], Vec::new()));
}

#[test]
fn two_scenarios_of_a_skill_cannot_have_the_same_id() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("skills/x/tests/a.yaml", test_of("x", "same"))
        .write("skills/x/tests/b.yaml", format!("# later\n{}", test_of("x", "same")))
        .write("alone.yaml", prompt("same"));
    let loaded = scratch.load(&["x", "alone.yaml"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["skills/x/tests/b.yaml:2:11: a second scenario with the id `same` in `x`"]
    );
    assert_eq!(loaded.diagnostics[0].help, ["the first is at skills/x/tests/a.yaml:1:11"]);
}

#[test]
fn suites_with_the_same_name_are_named_by_their_path() {
    let scratch = Scratch::new();
    scratch
        .write("a/same.yaml", prompt("one"))
        .write("b/same.yaml", prompt("two"))
        .write("b/same.yml", prompt("three"))
        .write("c.yaml", prompt("four"));
    let loaded = scratch.load(&["a", "b", "c.yaml"]);
    // Files that differ only in their extensions share a name: adding one of them does not rename the other.
    assert_eq!(outline(&loaded), ["a/same: one", "b/same: two", "b/same: three", "c: four"]);
}

#[test]
fn a_skill_outside_the_project_can_refer_to_its_siblings() {
    let scratch = Scratch::new();
    scratch.skill("x");
    for name in ["x", "y"] {
        scratch.write(&format!("other/{name}/SKILL.md"), format!("---\nname: {name}\ndescription: other\n---\n"));
    }
    scratch.write("other/y/tests/t.yaml", test_of("x", "t"));
    let loaded = scratch.load(&["other"]);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(loaded.suites[0].cases[0].subject.skill().unwrap().description, "other");
}

#[test]
fn paths_are_shown_relative_to_the_working_directory() {
    let scratch = Scratch::new();
    scratch.skill("x").write("skills/x/tests/t.yaml", "scenario: t\nskill: x\nmax_turn: 1\n");
    let problems_in = |cwd: &str| describe(&scratch.load_from(&scratch.path(cwd), &["x"]).diagnostics);
    assert_eq!(problems_in("skills/x"), ["tests/t.yaml:3:1: unknown key `max_turn` in the scenario"]);
    let outside = scratch.path("skills/x/tests/t.yaml").display().to_string();
    scratch.write("sub/x", "");
    assert_eq!(problems_in("sub"), [format!("{outside}:3:1: unknown key `max_turn` in the scenario")]);
}

#[test]
fn many_files_are_read_in_the_order_of_their_names() {
    let scratch = Scratch::new();
    for index in 0..300 {
        let broken = if index % 50 == 7 { "tpyo: 1\n" } else { "" };
        scratch.write(&format!("many/{index:03}.yaml"), format!("{}{broken}", prompt(&format!("case-{index:03}"))));
    }
    let loaded = scratch.load(&["many"]);
    let ids: Vec<_> = loaded.suites.iter().map(|suite| suite.cases[0].id.clone()).collect();
    assert_eq!(ids, (0..300).map(|index| format!("case-{index:03}")).collect::<Vec<_>>());
    let lines = describe(&loaded.diagnostics);
    assert_eq!(lines.len(), 6);
    assert!(lines[0].starts_with("many/007.yaml:3:1") && lines[5].starts_with("many/257.yaml:3:1"), "{lines:?}");
}

#[test]
fn a_test_that_is_ignored_because_of_its_name_is_reported() {
    let scratch = Scratch::new();
    let test = "import { scenario } from 'trialrun';\nexport default scenario('a', () => {});\n";
    scratch
        .write("tests/hi.tests.ts", test)
        .write("tests/deep/bye.spec.ts", test)
        .write("tests/_later.tests.ts", test)
        .write("tests/own.spec.ts", "import { test } from 'vitest';\ntest('b', () => {});\n")
        .write("tests/a.fixure.yaml", "- {input: a, output: b}\n")
        .write("tests/right.test.ts", test);
    let loaded = scratch.load(&["tests"]);
    assert_eq!(outline(&loaded), ["right: a"]);
    let files: Vec<String> =
        loaded.diagnostics.iter().map(|problem| problem.source.as_ref().unwrap().to_string()).collect();
    assert_eq!(files, ["tests/a.fixure.yaml:1:1", "tests/deep/bye.spec.ts:1:1", "tests/hi.tests.ts:1:1"]);
    assert!(loaded.diagnostics.iter().all(|problem| !problem.is_error()));
    assert_eq!(loaded.diagnostics[2].help, ["call it `hi.test.ts`, or begin its name with `_`"]);
}

#[test]
fn an_evaluation_beside_its_skill_is_reported() {
    let scratch = Scratch::new();
    scratch.skill("notes").skill("other");
    scratch
        .write("skills/notes/evals.json", r#"{"skill_name": "notes", "evals": [{"id": 1, "prompt": "x"}]}"#)
        .write("skills/other/evals.json", r#"{"rows": [1]}"#);
    let loaded = scratch.load(&[]);
    let found = describe(&loaded.diagnostics);
    assert_eq!(found, ["skills/notes/evals.json:1:1: this file is not read as a test because of its folder"]);
    assert_eq!(loaded.diagnostics[0].help, ["move it to `evals/evals.json` of the skill, or name it as a target"]);
}

#[test]
fn pipes_devices_and_links_to_them_are_errors_when_read() {
    let scratch = Scratch::new();
    scratch.skill("s").skill("t").write("skills/s/evals/x", "").write("skills/s/tests/x", "").write("skills/u/x", "");
    scratch.write("examples/e/evals/x", "").write("scenarios/deep/x", "");
    for place in ["skills/s/evals/evals.json", "examples/e/evals/evals.json", "scenarios/z.fixture.yaml"] {
        std::os::unix::fs::symlink("/dev/zero", scratch.path(place)).unwrap();
    }
    for place in ["scenarios/deep/a.yaml", "skills/s/tests/a.yaml", "skills/u/SKILL.md", "scenarios/notes.txt"] {
        assert!(std::process::Command::new("mkfifo").arg(scratch.path(place)).status().unwrap().success());
    }
    let problems = describe(&scratch.load(&[]).diagnostics);
    let expected = [
        "examples/e/evals/evals.json",
        "scenarios/deep/a.yaml",
        "scenarios/z.fixture.yaml",
        "skills/s/evals/evals.json",
        "skills/s/tests/a.yaml",
        "skills/u/SKILL.md",
    ];
    assert_eq!(problems, expected.map(|place| format!("{place}:1:1: cannot read the file: it is not a regular file")));
}

#[test]
fn suites_in_subfolders_are_named_by_their_path_below_the_folder_of_tests() {
    let scratch = Scratch::new();
    scratch.write("scenarios/a.yaml", prompt("one"));
    scratch.write("scenarios/b.yaml", prompt("two"));
    scratch.write("scenarios/deep/a.yaml", prompt("three"));
    scratch.write("scenarios/deep/c.yaml", prompt("four"));
    scratch.write("scenarios/deeper/c.yaml", prompt("five"));
    let loaded = scratch.load(&[]);
    let mut names: Vec<&str> = loaded.suites.iter().map(|suite| suite.name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["a", "b", "deep/a", "deep/c", "deeper/c"]);
}

#[test]
fn the_tests_of_a_skill_keep_their_name_next_to_a_file_with_the_same_name() {
    let names = |scratch: &Scratch| {
        let loaded = scratch.load(&["skills/refund", "tests", "scenarios"]);
        let mut names: Vec<String> = loaded.suites.iter().map(|suite| suite.name.clone()).collect();
        names.sort_unstable();
        names
    };
    let scratch = Scratch::new();
    scratch.write("tests/other.yaml", "turns: [{ says: hi }]\nassertions:\n  - contains: hi\n");
    scratch.write("scenarios/another.yaml", prompt("zero"));
    scratch.skill("refund").write("skills/refund/tests/a.yaml", prompt("one"));
    assert_eq!(names(&scratch), ["another", "other", "refund"]);
    scratch.write("tests/refund.yaml", "turns: [{ says: hi }]\nassertions:\n  - contains: hi\n");
    assert_eq!(names(&scratch), ["another", "other", "refund", "tests/refund"]);
    scratch.write("scenarios/refund.yaml", prompt("two"));
    assert_eq!(names(&scratch), ["another", "other", "refund", "skills/refund/tests", "tests/refund"]);
}

/// Loads everything in a project with a `tests` folder.
fn load_all(scratch: &Scratch) -> trialrun_suite::Loaded {
    trialrun_suite::load(&trialrun_suite::Request {
        root: scratch.root().to_owned(),
        skills_dir: scratch.path("skills"),
        tests: Some(scratch.path("tests")),
        cwd: scratch.root().to_owned(),
        ..trialrun_suite::Request::default()
    })
}

/// Returns the problems that do not prevent the run because they break only the trials of their own file.
fn contained(loaded: &trialrun_suite::Loaded) -> Vec<String> {
    let cases = loaded.suites.iter().flat_map(|suite| &suite.cases);
    cases.flat_map(|case| describe(&case.broken)).collect()
}

const TALK: &str = "turns: [{ says: hi }]\nassertions: [{ contains: hi }]\n";

#[test]
fn tests_in_json_are_read_and_data_is_not() {
    let scratch = Scratch::new();
    let talk = r#"{"name":"talks","turns":[{"says":"hi"}],"assertions":[{"contains":"hi"}]}"#;
    scratch
        .skill("x")
        .write("tests/talk.json", talk)
        .write("tests/broken.json", "{\"turns\": [{\"says\": \"hi\",}]}")
        .write("tests/data.json", "{\"turns\": 5, \"names\": [\"a\"]}")
        .write("tests/sick.json", "{\"names\": [}")
        .write("tests/package.json", "{\"name\": \"tests\", \"scripts\": {\"test\": \"x\"}}")
        .write("scenarios/typo.json", r#"{"scenario": "s", "system_prompt": "p", "asertions": []}"#)
        .write("skills/x/tests/s.json", r#"{"scenario": "s", "skill": "x"}"#);
    let loaded = load_all(&scratch);
    assert_eq!(outline(&loaded), ["x: s", "typo: s", "broken: broken", "talk: talks"]);
    assert_eq!(describe(&loaded.diagnostics), ["scenarios/typo.json:1:41: unknown key `asertions` in the scenario"]);
    assert_eq!(contained(&loaded), ["tests/broken.json:1:26: not valid JSON: trailing comma"]);
}

#[test]
fn a_test_with_what_json_does_not_allow_is_reported_and_such_data_is_not() {
    let scratch = Scratch::new();
    let talk = r#"{"name": "talks", "turns": [{"says": "it's"}], "assertions": [{"contains": "hi"}]}"#;
    let fixtures = r#"[{"title": "a", "input": "b", "output": "c",}]"#;
    scratch
        .write("tests/a.json", format!("// it's a test\n{talk}"))
        .write("tests/b.json", talk.replace("it's", "its").replace('"', "'"))
        .write("tests/c.json", r#"{turns: [{says: "hi"}], assertions: [{contains: "hi"}]}"#)
        .write("tests/d.json", TALK)
        .write("tests/e.json", fixtures)
        .write("tests/f.json", "// data\n{\"turns\": 5, \"names\": [\"a\"]}")
        .write("tests/g.json", "{names: ['goal'], city: 'says'}")
        .write("tests/h.json", r#"{"suite": "mcp", "calls": [{"call": "add",}]}"#)
        .write("tests/i.json", "{'dataset': 'a.jsonl', 'format': 'inspect'}")
        .write("tests/good.yaml", TALK);
    let loaded = load_all(&scratch);
    assert_eq!(
        contained(&loaded),
        [
            "tests/a.json:1:1: not valid JSON: expected value",
            "tests/b.json:1:2: not valid JSON: key must be a string",
            "tests/c.json:1:2: not valid JSON: key must be a string",
            "tests/d.json:1:2: not valid JSON: expected ident",
            "tests/i.json:1:2: not valid JSON: key must be a string",
        ]
    );
    let trailing = ["tests/e.json:1:45", "tests/h.json:1:43"].map(|at| format!("{at}: not valid JSON: trailing comma"));
    assert_eq!(describe(&loaded.diagnostics), trailing);
}

#[test]
fn a_list_of_tests_is_refused_and_a_table_of_rows_is_not() {
    let scratch = Scratch::new();
    let item = "- name: one\n  turns: [{ says: hi }]\n  assertions: [{ contains: hi }]\n";
    scratch
        .write("tests/list.yaml", format!("{item}{}", item.replace("one", "two")))
        .write("tests/wrapped.yaml", format!("tests:\n{item}"))
        .write("tests/cases.yaml", "- { input: hi, output: hello }\n")
        .write("tests/rows.yaml", "- { input: hi, output: hello }\n")
        .write("tests/data.yaml", "- { scenario: refund, city: Bern }\n")
        .write("tests/of-rows.fixture.yaml", "---\ncases: rows.yaml\n---\n")
        .write("scenarios/list.yaml", "- { scenario: a, system_prompt: p, user_prompt: hi }\n");
    let loaded = load_all(&scratch);
    assert_eq!(
        contained(&loaded),
        [
            "tests/list.yaml:1:1: a file has one conversation, and this is a list of 2",
            "tests/wrapped.yaml:2:3: a file has one conversation, and this is a list of 1",
        ]
    );
    assert_eq!(
        describe(&loaded.diagnostics),
        [
            "scenarios/list.yaml:1:1: a file has one scenario, and this is a list of 1",
            "tests/cases.yaml:1:1: cases with an expected answer are read only from a fixtures file",
        ]
    );
    assert!(loaded.diagnostics[0].is_error() && !loaded.diagnostics[1].is_error());
    assert_eq!(loaded.diagnostics[1].help, ["call the file `cases.fixture.yaml`"]);
}

#[test]
fn a_test_whose_file_has_the_wrong_name_is_not_skipped_in_silence() {
    let scratch = Scratch::new();
    let cases = "- title: a\n  input: hi\n  output: hello\n";
    let json = "{\"title\": \"a\", \"input\": \"hi\", \"output\": \"hello\"}";
    scratch
        .write("tests/front.yaml", format!("message: hi\n---\n{cases}"))
        .write("tests/hello_fixture.yaml", cases)
        .write("tests/hello.json", format!("[{json}]"))
        .write("tests/lines.jsonl", format!("{json}\n"))
        .write("tests/talk", TALK)
        .write("tests/rows.jsonl", format!("{json}\n"))
        .write("tests/of-rows.yaml", format!("{TALK}cases: rows.jsonl\ndescription: '{{{{ input }}}}'\n"))
        .write("tests/data.json", "[{\"input\": \"hi\", \"output\": \"hello\"}]")
        .write("tests/used.json", format!("[{json}]"))
        .write("tests/a.test.js", "import rows from './used.json';\n")
        .write("tests/LICENSE", "Permission is granted: do what you want.\n");
    let loaded = load_all(&scratch);
    let helped = loaded.diagnostics.iter().map(|problem| {
        let file = problem.source.as_ref().map(|place| place.file.to_string()).unwrap_or_default();
        format!("{file}: {}", problem.help.join(" "))
    });
    let mut helped: Vec<String> = helped.collect();
    helped.sort();
    assert_eq!(
        helped,
        [
            "tests/front.yaml: call the file `front.fixture.yaml`",
            "tests/hello.json: call the file `hello.fixture.json`",
            "tests/hello_fixture.yaml: call the file `hello.fixture.yaml`",
            "tests/lines.jsonl: call the file `lines.fixture.jsonl`",
            "tests/talk: call it `talk.yaml`, or begin its name with `_`",
        ]
    );
}

#[test]
fn a_test_with_bytes_that_are_not_utf_8_is_not_skipped() {
    let scratch = Scratch::new();
    let latin1 = |text: &str| text.bytes().map(|byte| if byte == b'~' { 0xe9 } else { byte }).collect::<Vec<u8>>();
    let utf16 = |text: &str| format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    scratch
        .write("tests/caf~.yaml", latin1(&TALK.replace("hi", "caf~")))
        .write("tests/wide.yaml", utf16(TALK))
        .write("tests/a.test.ts", latin1("import { scenario } from 'trialrun'; // ~"))
        .write("tests/foreign.test.js", latin1("test('~', () => {});"))
        .write("tests/notes.yaml", latin1("a: ~"))
        .write("tests/good.yaml", TALK)
        .write("scenarios/deep/s.yaml", latin1("scenario: ~\nsystem_prompt: p\n"))
        .write("scenarios/deep/model.yaml", latin1("a: ~"));
    let loaded = load_all(&scratch);
    assert_eq!(
        contained(&loaded),
        [
            "tests/a.test.ts:1:41: the file is not UTF-8 text",
            "tests/caf~.yaml:1:20: the file is not UTF-8 text",
            "tests/wide.yaml:1:1: the file is UTF-16 text, not UTF-8",
        ]
    );
    let messages: Vec<(bool, String)> =
        loaded.diagnostics.iter().map(|problem| (problem.is_error(), problem.to_string())).collect();
    assert_eq!(
        messages,
        [
            (true, "scenarios/deep/s.yaml:1:11: the file is not UTF-8 text".to_owned()),
            (false, "tests/notes.yaml:1:4: the file is not UTF-8 text".to_owned()),
        ]
    );
}

#[test]
fn broken_files_of_one_stem_have_different_ids() {
    let scratch = Scratch::new();
    scratch
        .write("tests/a.yaml", [TALK.as_bytes(), b"# \xe9\n"].concat())
        .write("tests/a.json", b"{\"name\": \"\xe9\", \"turns\": [{\"user\": \"hi\"}]}")
        .write("tests/half.yaml", [TALK.as_bytes(), b"# \xe9\n"].concat())
        .write("tests/half.json", "{\"name\": \"half\", \"turns\": [{\"user\": \"hi\"}]}")
        .write("tests/list.yaml", format!("- {}", TALK.trim_end().replace('\n', "\n  ")))
        .write("tests/list.json", "[{\"name\": \"b\", \"turns\": [{\"user\": \"hi\"}]}]")
        .write("tests/one.yaml", [TALK.as_bytes(), b"# \xe9\n"].concat());
    let loaded = load_all(&scratch);
    assert_eq!(describe(&loaded.diagnostics), [] as [&str; 0]);
    assert_eq!(
        outline(&loaded),
        ["a: a.json", "a: a.yaml", "half: half", "half: half.yaml", "list: list.json", "list: list.yaml", "one: one"]
    );
}

#[test]
fn empty_files_and_tables_are_reported_with_what_to_do() {
    let scratch = Scratch::new();
    scratch
        .write("tests/good.yaml", TALK)
        .write("tests/empty.json", "")
        .write("tests/data/empty.json", "")
        .write("tests/rows.csv", "a,b\n1,2\n")
        .write("tests/t.fixture.csv", "input,output\na,b\n");
    let advice = |loaded: &trialrun_suite::Loaded| {
        let all = loaded.diagnostics.iter();
        all.map(|problem| format!("{problem}; {}", problem.help.join("; "))).collect::<Vec<_>>()
    };
    assert_eq!(
        advice(&load_all(&scratch)),
        [
            "tests/t.fixture.csv:1:1: this file is not read as a test, because it is a table; name it in a test, which \
             runs once for each row: `cases: t.fixture.csv`",
            "tests/empty.json:1:1: the file is empty; ",
        ]
    );
    assert_eq!(
        advice(&scratch.load(&["tests/rows.csv"])),
        ["tests/rows.csv:1:1: this file is not read as a test, because it is a table; name it in a test, which runs \
          once for each row: `cases: rows.csv`"]
    );
    scratch.write("tests/lines.jsonl", "{\"turns\": [\"a\"], \"assertions\": []}\n");
    let named = scratch.load(&["tests/lines.jsonl"]);
    assert!(named.has_errors());
    assert_eq!(
        advice(&named),
        ["tests/lines.jsonl:1:1: this file is not read, because a file has one test; put each line into a file of \
          its own, such as `NAME.json`"]
    );
}

#[test]
fn only_the_key_that_is_probably_meant_is_suggested() {
    let scratch = Scratch::new();
    scratch.write("tests/turn.yaml", "name: b\nturn:\n  - says: hello\n");
    let loaded = scratch.load(&["tests/turn.yaml"]);
    assert_eq!(loaded.diagnostics[0].help, ["did you mean `turns` instead of `turn`?"]);
    let loaded = scratch.write("s.yaml", "Scenario: a\nuser_prompt: b\n").load(&["s.yaml"]);
    assert_eq!(loaded.diagnostics[0].help, ["did you mean `scenario` instead of `Scenario`?"]);
}

#[test]
fn a_file_with_nothing_but_keys_of_tests_or_without_legible_text_is_not_skipped() {
    let scratch = Scratch::new();
    scratch
        .write("tests/bytes.yaml", [0xff, 0, 0xff])
        .write("tests/code.test.mjs", [0xff, 0, 0xff])
        .write("tests/data.yaml", "turns: 7\nboard: []\n")
        .write("tests/expect.yaml", "name: x\nexpect: hello\n")
        .write("tests/good.yaml", TALK)
        .write("tests/list.yaml", "turns: [hello, 7]\n")
        .write("tests/number.yaml", "turns: 7\n")
        .write("tests/open.yaml", "turns: [\n")
        .write("tests/page.json", "{\"name\": \"x\", \"description\": \"y\"}")
        .write("tests/turn.yaml", "name: x\nturn: [{user: hi}]\n")
        .write("scenarios/deep/bytes.yaml", [0xff, 0, 0xff]);
    let loaded = load_all(&scratch);
    assert_eq!(
        contained(&loaded),
        [
            "tests/list.yaml:1:16: a turn must be a map, not a number",
            "tests/number.yaml:1:8: `turns` must be a list, not a number",
            "tests/open.yaml:1:8: this `[` is never closed",
        ]
    );
    assert_eq!(
        describe(&loaded.diagnostics),
        [
            "scenarios/deep/bytes.yaml:1:1: the file is not UTF-8 text",
            "tests/bytes.yaml:1:1: the file is not UTF-8 text",
            "tests/code.test.mjs:1:1: the file is not UTF-8 text",
            "tests/expect.yaml:1:1: this is not a test in a known format",
            "tests/turn.yaml:1:1: this is not a test in a known format",
        ]
    );
}

#[test]
fn files_in_a_folder_of_tests_without_a_test_are_reported_once() {
    let scratch = Scratch::new();
    scratch
        .write("tests/first.yaml", "cases:\n  - question: hi\n    answer: hello\n")
        .write("tests/second.yaml", "title: x\n");
    let loaded = load_all(&scratch);
    assert_eq!(describe(&loaded.diagnostics), ["tests/first.yaml:1:1: this is not a test in a known format"]);
    let help = &loaded.diagnostics[0].help;
    assert!(help[1].starts_with("conversation: "), "{help:?}");
    assert_eq!(
        help[help.len() - 2..],
        [
            "or a file of Vally, claude plugin eval, harbor, promptfoo, skill-creator, waza",
            "another file there is not a test either"
        ]
    );
    scratch.write("tests/third.yaml", "turns: [hello]\nassertions: [{contains: hello}]\n");
    assert_eq!(describe(&load_all(&scratch).diagnostics), [""; 0]);
}

#[test]
fn links_to_skills_and_tests_are_followed_once() {
    let scratch = Scratch::new();
    let link = |target: &str, path: &str| std::os::unix::fs::symlink(target, scratch.path(path)).unwrap();
    scratch.write(".agents/skills/x/SKILL.md", "---\nname: x\ndescription: d\n---\n");
    scratch.write(".agents/skills/x/tests/a.yaml", test_of("x", "a"));
    scratch.write("skills/.keep", "").write("tests/real/b.yaml", TALK).write("outside.yaml", TALK);
    link("../.agents/skills/x", "skills/x");
    link("real", "tests/alias");
    link("..", "tests/real/loop");
    link("../outside.yaml", "tests/c.yaml");
    link("gone.yaml", "tests/d.yaml");
    let loaded = load_all(&scratch);
    assert_eq!(outline(&loaded), ["x: a", "c: c", "real/b: b"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["tests/d.yaml:1:1: cannot read the file: it is a link to a file that does not exist"]
    );
}

#[test]
fn tests_in_deeper_and_misnamed_folders_are_not_silent() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("skills/x/tests/deep/a.yaml", test_of("x", "a"))
        .write("skills/x/tests/deep/model.yaml", "steps: []\n")
        .write("skills/x/test/b.yaml", test_of("x", "b"))
        .write("skills/x/assets/c.yaml", test_of("x", "c"))
        .write("skills/group/y/SKILL.md", "---\nname: y\ndescription: d\n---\n")
        .write("skills/group/y/tests/d.yaml", test_of("y", "d"))
        .write("skills/group/y/evals/evals.schema.json", r#"{"properties": {"skill_name": {}, "evals": {}}}"#)
        .write("test/e.yaml", TALK)
        .write("tests/lines.jsonl", r#"{"turns": [{"says": "hi"}]}"#)
        .write("tests/rows.jsonl", r#"{"scenario": "refund", "skill": "x"}"#)
        .write("test/f.test.js", "describe('unit', () => {});\n")
        .write("tests/.keep", "");
    let loaded = load_all(&scratch);
    assert_eq!(outline(&loaded), ["x/deep/a: a"]);
    let messages: Vec<(String, String)> =
        loaded.diagnostics.iter().map(|problem| (problem.to_string(), problem.help.join("; "))).collect();
    let of_folder = |file: &str, help: &str| {
        (format!("{file}:1:1: this file is not read as a test because of its folder"), help.to_owned())
    };
    let misspelt = "call the folder `tests`, or name the file as a target";
    let elsewhere =
        "name it as a target, or move it to a folder that is searched: `tests` of a skill, or that of the project";
    assert_eq!(
        messages,
        [
            of_folder("skills/group/y/tests/d.yaml", elsewhere),
            of_folder("skills/x/test/b.yaml", misspelt),
            of_folder("test/e.yaml", misspelt),
            (
                "tests/lines.jsonl:1:1: this file is not read, because a file has one test".to_owned(),
                "put each line into a file of its own, such as `NAME.json`".to_owned(),
            ),
        ]
    );
    assert!(!loaded.has_errors());
}

#[test]
fn tests_for_another_tool_are_ignored() {
    let scratch = Scratch::new();
    let unit = "import { add } from './add.js';\nexport const x = 1;\ndescribe('add', () => {});\n";
    scratch
        .write("tests/unit.test.js", unit)
        .write("scenarios/unit.test.js", unit)
        .write("tests/add.js", "export const add = (a, b) => a + b;\n")
        .write(
            "tests/mine.js",
            "import { scenario } from 'trialrun';\nexport const check = (name) => scenario(name, () => {});\n",
        )
        .write("tests/own.test.js", "import { check } from './mine.js';\nexport default check('own');\n");
    let loaded = load_all(&scratch);
    assert_eq!(describe(&loaded.diagnostics), [""; 0]);
    assert_eq!(outline(&loaded), ["own: own"]);
}

#[test]
fn a_suite_keeps_its_name_when_others_are_added() {
    let scratch = Scratch::new();
    let code = "import { scenario } from 'trialrun';\nexport default scenario('code', () => {});\n";
    scratch.write("tests/order.yaml", TALK).write("tests/billing/order.yaml", TALK);
    assert_eq!(outline(&load_all(&scratch)), ["billing/order: order", "order: order"]);
    scratch.write("tests/order.test.ts", code).write("tests/shop/order.yaml", TALK);
    scratch.write("tests/order.fixture.yaml", "- { input: a, output: a }\n");
    let loaded = load_all(&scratch);
    assert_eq!(
        outline(&loaded),
        ["billing/order: order", "order: 1", "order: code", "order: order", "shop/order: order"]
    );
}

#[test]
fn a_test_with_one_wrong_key_is_not_taken_for_data() {
    let scratch = Scratch::new();
    let expect = "expect: [{contains: hi}]";
    scratch
        .write("tests/a.yaml", format!("name: a\nsteps:\n  - says: hi\n    {expect}\n"))
        .write("tests/b.yaml", format!("name: b\nconversation:\n  - user: hi\n    {expect}\n"))
        .write("tests/c.yaml", "name: c\nmessages:\n  - says: hi\n")
        .write("tests/d.yaml", format!("name: d\nprompt: hi\n{expect}\n"))
        .write("tests/e.yaml", "name: e\nuser:\n  gaol: buy\n")
        .write("tests/f.yaml", "datset: f.json\nformat: deepeval\nmetrics: [ExactMatch]\n")
        .write("skills/x/SKILL.md", "---\nname: x\ndescription: d\n---\n# Body\n")
        .write("skills/x/evals/eval.yaml", "stimulus:\n  - name: x\n    prompt: hi\n")
        .write("skills/y/SKILL.md", "---\nname: y\ndescription: d\n---\n# Body\n")
        .write("skills/y/evals/eval.yaml", "config: {}\nmetrics: []\nscenario: s\ntask: ['*.yaml']\n")
        // Data with some of the keys.
        .write("tests/deep/a.yaml", "name: a\nsteps:\n  - text: hi\n  - run: b\n")
        .write("tests/deep/b.yaml", "name: b\nuser: {name: Ann, gold: 7}\n")
        .write("tests/deep/c.yaml", "name: c\nmessages:\n  - speaker: Ann\n    says: hi\n")
        .write("tests/deep/d.yaml", "data: x\nformat: csv\nmetrics: [a]\n")
        .write("tests/deep/e.yaml", "config: {}\ntask: [a]\n")
        .write("tests/deep/f.yaml", "name: f\nprompt: hi\n");
    let loaded = load_all(&scratch);
    let all = loaded.diagnostics.iter().chain(loaded.suites.iter().flat_map(|s| &s.cases).flat_map(|c| &c.broken));
    let found: Vec<String> = all.map(|problem| format!("{problem} {}", problem.help.join(" "))).collect();
    let expected = [
        ("skills/x/evals/eval.yaml:1:1: ", "`stimuli`"),
        ("skills/y/evals/eval.yaml:4:1: ", "`tasks`"),
        ("tests/a.yaml:1:1: ", "`turns` instead of `steps`"),
        ("tests/b.yaml:1:1: ", "`turns` instead of `conversation`"),
        ("tests/c.yaml:1:1: ", "`turns` instead of `messages`"),
        ("tests/d.yaml:1:1: this is not a test in a known format", ""),
        ("tests/e.yaml:3:3: unknown key `gaol`", "`goal`"),
        ("tests/f.yaml:1:1: unknown key `datset`", "`dataset`"),
    ];
    for (start, part) in expected {
        let is_there = |one: &&String| one.starts_with(start) && one.contains(part);
        assert_eq!(found.iter().filter(is_there).count(), 1, "{start}: {found:#?}");
    }
    let of_data = |one: &&String| one.contains("deep/");
    assert!(!found.iter().any(|one| of_data(&one)), "{found:#?}");
}
