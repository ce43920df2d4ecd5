//! Tests of what changes affect, without a clock.

use std::sync::Arc;

use sandbox::Host;
use sandbox::supervise::Supervisor;
use session::Place;

use super::*;

fn write(path: &std::path::Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn planned(root: &std::path::Path) -> (Session, Planned) {
    let supervisor = Supervisor::unchecked("/bin/false").unwrap();
    let host = Host { env: BTreeMap::new(), home: None, temp: std::env::temp_dir(), supervisor };
    let state = Some(root.join("state"));
    let place = Place { directory: root.to_owned(), state, agents: Vec::new(), host: Arc::new(host) };
    let mut args = Overrides { targets: vec![root.display().to_string()], ..Overrides::default() };
    args.arms.agent = vec!["fake".into()];
    let session = Session::open(place, &args.targets).unwrap();
    let planned = session.plan(&session.resolve(&args).unwrap()).unwrap();
    (session, planned)
}

/// Returns a project with two suites, one of which names a prompt while the other imports a module, and its watched
/// files.
fn project() -> (tempfile::TempDir, PathBuf, Watched) {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().canonicalize().unwrap();
    write(&root.join("trialrun.yaml"), "state: state\n");
    let scenario = "scenario: one\nsystem_prompt_file: prompts/one.md\nuser_prompt: hi\n";
    write(&root.join("one.yaml"), scenario);
    write(&root.join("prompts/one.md"), "Be brief.\n");
    write(&root.join("two.fixture.ts"), "import { cases } from './lib/cases.ts';\nexport default cases;\n");
    write(
        &root.join("lib/cases.ts"),
        "import text from './text.json';\nexport const cases = [{ input: text.hello, output: 'hi' }];\n",
    );
    write(&root.join("lib/text.json"), "{\"hello\": \"hi\"}\n");
    write(&root.join("README.md"), "nothing\n");
    let mut watched = Watched::default();
    let (session, planned) = planned(&root);
    assert!(planned.diagnostics.iter().all(|problem| !problem.is_error()), "{:?}", planned.diagnostics);
    let args = Overrides { targets: vec![root.display().to_string()], ..Overrides::default() };
    assert_eq!(watched.learn(&session, &planned, &args, &Affected::Everything), None);
    (directory, root, watched)
}

/// Returns the changes that `change` makes, and the tests that they affect.
fn after(watched: &Watched, change: impl FnOnce()) -> (BTreeMap<PathBuf, Change>, Option<Affected>) {
    let before = watched.snapshot();
    change();
    let changes = before.changes(&watched.snapshot());
    let affected = watched.affected_by(&changes);
    (changes, affected)
}

fn only(path: PathBuf) -> Option<Affected> {
    Some(Affected::Suites([path].into()))
}

#[test]
fn a_change_affects_the_suites_that_depend_on_the_file() {
    let (_directory, root, watched) = project();
    let touch = |file: &str| after(&watched, || write(&root.join(file), "other, and longer than it was before\n")).1;
    assert_eq!(touch("prompts/one.md"), only(root.join("one.yaml")));
    assert_eq!(touch("lib/text.json"), only(root.join("two.fixture.ts")));
    assert_eq!(touch("lib/cases.ts"), only(root.join("two.fixture.ts")));
    assert_eq!(touch("README.md"), None);
    assert_eq!(touch("trialrun.yaml"), Some(Affected::Everything));
}

#[test]
fn saving_by_rename_counts_as_a_change_to_the_file() {
    let (_directory, root, watched) = project();
    let (changes, affected) = after(&watched, || {
        write(&root.join("one.yaml~"), "scenario: one\nsystem_prompt: x\nuser_prompt: hi\n");
        std::fs::rename(root.join("one.yaml~"), root.join("one.yaml")).unwrap();
    });
    assert_eq!(changes.into_iter().collect::<Vec<_>>(), [(root.join("one.yaml"), Change::Other)]);
    assert_eq!(affected, only(root.join("one.yaml")));
}

#[test]
fn a_new_suite_runs_alone_and_a_removed_one_affects_only_itself() {
    let (_directory, root, mut watched) = project();
    let (_, affected) = after(&watched, || write(&root.join("three.yaml"), "scenario: three\nsystem_prompt: x\n"));
    let affected = affected.unwrap();
    assert_eq!(affected, Affected::Suites(BTreeSet::new()));
    let args = Overrides { targets: vec![root.display().to_string()], ..Overrides::default() };
    let (session, planned) = planned(&root);
    assert_eq!(watched.learn(&session, &planned, &args, &affected), Some([root.join("three.yaml")].into()));
    let (changes, affected) = after(&watched, || std::fs::remove_file(root.join("one.yaml")).unwrap());
    assert_eq!(changes.values().copied().collect::<Vec<_>>(), [Change::Gone]);
    assert_eq!(affected, only(root.join("one.yaml")));
}

#[test]
fn while_a_file_is_broken_every_change_triggers_a_run() {
    let (_directory, root, mut watched) = project();
    watched.pending = Some(Affected::Suites([root.join("one.yaml")].into()));
    let (_, affected) = after(&watched, || write(&root.join("README.md"), "more than there was before\n"));
    assert_eq!(affected, Some(Affected::Suites(BTreeSet::new())));
    let all = Affected::Suites([root.join("one.yaml")].into()).and(&Affected::Everything);
    assert_eq!(all, Affected::Everything);
}

#[test]
fn a_line_shows_the_changes_and_the_tests_to_run() {
    let (_directory, root, mut watched) = project();
    watched.cwd = root.clone();
    let changes: BTreeMap<PathBuf, Change> =
        ["a", "b", "c", "d"].iter().map(|name| (root.join(name), Change::Other)).collect();
    let described = watched.describe(&changes, &Affected::Suites([root.join("one.yaml")].into()));
    assert_eq!(described, "changed: a, b, c, 1 more → 1 suite");
    let gone = [(root.join("a"), Change::Gone)].into();
    assert_eq!(watched.describe(&gone, &Affected::Everything), "changed: a (gone) → everything");
}
