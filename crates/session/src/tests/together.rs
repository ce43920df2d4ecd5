//! Two sessions that run at the same time in one process.

use std::fs;
use std::path::Path;
use std::sync::Barrier;

use store::TrialFilter;

use super::session_with;
use crate::Overrides;
use crate::run::Launch;

/// Files that both projects have, with the same text. What they import and refer to differs.
const SHARED: [(&str, &str); 3] = [
    (
        "tests/greet.test.ts",
        "import { assert, scenario } from 'trialrun';\n\
         import { name } from './name.ts';\n\
         export default scenario('greets', async ({ agent }) => {\n\
           globalThis.names = [...(globalThis.names ?? []), name];\n\
           assert.contains(await agent.send(`hello ${name}`), name);\n\
           assert.custom('sees only its own state', () => globalThis.names.length === 1);\n\
         });\n",
    ),
    (
        "tests/rows.fixture.json",
        r#"[{"input": "a row", "output": {"$own": "a row"}, "operators": {"$own": "./own.ts#own"}},
            {"input": "a row", "output": {"$expr": "actual === 'a row'"}}]"#,
    ),
    // Each of the projects has one of these texts as a secret.
    (
        "tests/secrets.yaml",
        "scenario: secrets\nsystem_prompt: x\nuser_prompt: orchid-wombat-4711 and fennel-heron-1174\nassertions:\n  - contains: and\n",
    ),
];

/// Runs the project in `root` when the other one is planned, too. Returns its settings and its records as text.
fn run(root: &Path, name: &str, secret: &str, timeout: &str, others: &Barrier) -> (String, Vec<String>) {
    fs::create_dir_all(root.join("tests")).unwrap();
    for (file, text) in SHARED {
        fs::write(root.join(file), text).unwrap();
    }
    fs::write(root.join("tests/name.ts"), format!("export const name = '{name}';\n")).unwrap();
    let own = format!("export const own = (actual, expected) => actual === expected || '{name} says no';\n");
    fs::write(root.join("tests/own.ts"), own).unwrap();
    let config = format!("defaults:\n  agent: fake\n  timeout: {timeout}\n");
    fs::write(root.join("trialrun.yaml"), config).unwrap();
    let session = session_with(root, &[("SERVICE_TOKEN", secret)]);
    let mut overrides = Overrides::default();
    overrides.arms.trials = Some(model::Trials::Fixed(5));
    overrides.schedule.jobs = Some(4);
    let planned = session.plan(&session.resolve(&overrides).unwrap()).unwrap();
    assert_eq!(planned.diagnostics, []);
    let started = session.start(&planned, None).unwrap();
    let id = started.info.id.clone();
    others.wait();
    let (ended, _) = session.run(planned, started, Launch::default()).unwrap();
    assert_eq!((ended.summary.by_outcome.passed, ended.summary.trials), (20, 20), "{name}");
    let store = session.read_store().unwrap();
    let rows = store.trials(&TrialFilter::of_run(&id)).unwrap();
    let record = |row: &model::TrialRow| serde_json::to_string(&store.trial(&id, &row.id).unwrap()).unwrap();
    (store.info(&id).unwrap().settings["timeout_ms"].to_string(), rows.iter().map(record).collect())
}

#[test]
fn two_sessions_in_one_process_do_not_see_each_other() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    let both = Barrier::new(2);
    let (rose, reed) = std::thread::scope(|scope| {
        let one = scope.spawn(|| run(&root.join("one"), "rose", "orchid-wombat-4711", "40s", &both));
        let other = scope.spawn(|| run(&root.join("other"), "reed", "fennel-heron-1174", "50s", &both));
        (one.join().unwrap(), other.join().unwrap())
    });
    assert_eq!((rose.0.as_str(), reed.0.as_str()), ("40000", "50000"));
    for ((_, records), own, foreign, visible, hidden) in [
        (rose, "rose", "reed", "fennel-heron-1174", "orchid-wombat-4711"),
        (reed, "reed", "rose", "orchid-wombat-4711", "fennel-heron-1174"),
    ] {
        let has = |text: &str| records.iter().filter(|record| record.contains(text)).count();
        assert_eq!((has(own), has(foreign)), (5, 0), "{own}");
        assert_eq!((has(visible), has(hidden)), (5, 0), "{own}");
    }
}
