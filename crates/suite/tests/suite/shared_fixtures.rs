//! Use of `_fixtures.yaml` by scenarios.

use crate::scratch::{Scratch, describe};

#[test]
fn the_nearest_parent_file_is_extended_and_own_fields_come_last() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("_fixtures.yaml", "base: {env: {WHERE: root}}")
        .write(
            "skills/_fixtures.yaml",
            "base: {git_init: true, files_committed: [{path: a, content_from: data/a}], env: {WHERE: skills, KEEP: '1'}}\nmore: {extends: base, setup_commands: [one]}\n",
        )
        .write("skills/data/a", [0xff, 0x00])
        .write(
            "skills/x/tests/t.yaml",
            "scenario: t\nskill: x\nfixtures:\n  extends: [more]\n  git_init: false\n  files_committed: [{path: b}]\n  setup_commands: [two]\n  env: {WHERE: own}\n",
        );
    let loaded = scratch.load(&[]);
    assert!(loaded.diagnostics.is_empty(), "{:?}", describe(&loaded.diagnostics));
    let fixtures = &loaded.suites[0].cases[0].fixtures;
    assert!(!fixtures.git_init);
    let files: Vec<_> = fixtures.files_committed.iter().map(|file| (file.path.as_str(), file.content.len())).collect();
    assert_eq!(files, [("a", 2), ("b", 0)]);
    assert_eq!(fixtures.files_committed[0].source.to_string(), "skills/_fixtures.yaml:1:42");
    let commands: Vec<_> = fixtures.setup_commands.iter().map(|command| command.value.as_str()).collect();
    assert_eq!(commands, ["one", "two"]);
    let env: Vec<_> = fixtures.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
    assert_eq!(env, ["WHERE=own", "KEEP=1"]);
}

#[test]
fn the_search_ends_at_the_skills_folder() {
    let scratch = Scratch::new();
    scratch
        .skill("x")
        .write("_fixtures.yaml", "base: {}")
        .write("skills/x/tests/t.yaml", "scenario: t\nskill: x\nfixtures: {extends: base}\n")
        .write("deep/er/s.yaml", "scenario: s\nsystem_prompt: p\nfixtures: {extends: [base]}\n");
    let loaded = scratch.load(&["x", "deep/er/s.yaml"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        ["skills/x/tests/t.yaml:3:21: there is no `_fixtures.yaml` to extend from"]
    );
    assert_eq!(loaded.diagnostics[0].help, ["looked in skills/x/tests, skills/x, skills"]);
}

#[test]
fn a_broken_file_is_reported_once_and_unknown_names_at_each_use() {
    let scratch = Scratch::new();
    scratch.write("_fixtures.yaml", "repository: {git_int: true}\n");
    for at in ["a", "b"] {
        scratch
            .write(&format!("{at}.yaml"), format!("scenario: {at}\nsystem_prompt: p\nfixtures: {{extends: repo}}\n"));
    }
    let loaded = scratch.load(&["a.yaml", "b.yaml"]);
    assert_eq!(
        describe(&loaded.diagnostics),
        [
            "a.yaml:3:21: `_fixtures.yaml` has no fixtures called `repo`",
            "b.yaml:3:21: `_fixtures.yaml` has no fixtures called `repo`",
            "_fixtures.yaml:1:14: unknown key `git_int` in `fixtures`",
        ]
    );
    assert_eq!(loaded.diagnostics[0].help, ["did you mean `repository`?"]);
}
