use std::path::PathBuf;

use model::Outcome;
use rusqlite::params;
use serde_json::json;

use super::*;
use crate::tests::contract::{
    RUN, RunBuilder, at, contract_tests, id, many_trials, owner, record, replayed, summary_of,
};

contract_tests!(keeps);

/// Checks one rule of the contract with a store in a new file.
fn keeps(rule: fn(crate::tests::contract::OpenStore<'_>)) {
    let scratch = scratch();
    rule(&|pid| Box::new(SqliteStore::open(&scratch.path).unwrap().owned_by(&owner(pid)).unwrap()));
}

struct Scratch {
    _dir: tempfile::TempDir,
    path: PathBuf,
}

fn scratch() -> Scratch {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("runs.db");
    Scratch { _dir: dir, path }
}

impl Scratch {
    fn store(&self) -> SqliteStore {
        SqliteStore::open(&self.path).unwrap().owned_by(&owner(4711)).unwrap()
    }
}

/// Rows that hold events.
const ROWS: &str = "(SELECT count(*) FROM packs) + (SELECT count(*) FROM journal)";

impl SqliteStore {
    fn count(&self, query: &str) -> i64 {
        self.connection.query_row(&format!("SELECT {query}"), [], |row| row.get(0)).unwrap()
    }
}

#[test]
fn a_finished_trial_leaves_no_journal_rows_and_a_removed_run_no_rows_at_all() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    assert_eq!(store.count("count(*) FROM journal WHERE trial <> ''"), 1);
    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
    assert_eq!(store.count("count(*) FROM journal WHERE trial <> ''"), 0);
    store.remove(RUN).unwrap();
    assert_eq!(store.count(ROWS), 0);
}

#[test]
fn a_large_event_takes_no_space_once_its_trial_is_packed() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = RunBuilder::of(RUN);
    let large = "x".repeat(4096 * usize::try_from(MANY_UNUSED).unwrap());
    store.append(&[story.started(&["a"]), story.began("a"), story.calls("a", &large)]).unwrap();
    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
    assert!(store.count("freelist_count FROM pragma_freelist_count") >= MANY_UNUSED);
    store.append(&[story.over(summary_of(&["a"]))]).unwrap();
    assert_eq!(store.count("freelist_count FROM pragma_freelist_count"), 0);
}

#[test]
fn trials_that_finish_together_share_packs() {
    let scratch = scratch();
    let mut store = scratch.store();
    store.append(&many_trials().1).unwrap();
    let packs = store.count("count(*) FROM packs");
    assert!((2..30).contains(&packs), "{packs}");
}

#[test]
fn an_event_of_another_version_is_kept_and_counted() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    let strange = json!({ "v": 9, "seq": 3, "at": at(3), "run": RUN, "trial": id("a").to_string(), "attempt": 1,
        "event": { "type": "dreamt", "of": "sheep" } });
    store
        .connection
        .execute(
            "INSERT INTO journal (run, trial, seq, event) VALUES (1, ?1, 3, ?2)",
            params![id("a").to_string(), strange.to_string()],
        )
        .unwrap();
    story.seq = 3;
    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();

    let mut seen = Vec::new();
    assert_eq!(store.replay(RUN, &mut |envelope| seen.push(envelope.seq)).unwrap(), 1);
    assert_eq!(seen, [1, 2, 4]);
    let kept = store.trial_events(RUN, &id("a").to_string()).unwrap();
    assert_eq!(kept[1], StoredEvent::Unknown(strange));
}

#[test]
fn a_new_record_also_syncs_commits_to_disk() {
    let scratch = scratch();
    for _ in 0..2 {
        let store = scratch.store();
        let level: i64 = store.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let journal: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((level, journal.as_str()), (1, "wal"), "NORMAL");
    }
}

#[test]
fn a_newer_record_is_rejected_and_unchanged_byte_for_byte() {
    let scratch = scratch();
    drop(scratch.store());
    let newer = schema::STEPS.len() as u32 + 1;
    Connection::open(&scratch.path).unwrap().pragma_update(None, "user_version", newer).unwrap();
    let before = std::fs::read(&scratch.path).unwrap();
    for _ in 0..2 {
        let error = SqliteStore::open(&scratch.path).err().unwrap();
        assert!(matches!(error, StoreError::Newer { found, known, .. } if found == newer && known == newer - 1));
    }
    assert!(SqliteStore::open_existing(&scratch.path).is_err());
    assert_eq!(std::fs::read(&scratch.path).unwrap(), before);
    assert_eq!(std::fs::read_dir(scratch.path.parent().unwrap()).unwrap().count(), 1, "no log was left next to it");
}

#[test]
fn a_newer_record_whose_last_write_is_still_in_the_wal_is_rejected_too() {
    let scratch = scratch();
    drop(scratch.store());
    let writer = Connection::open(&scratch.path).unwrap();
    writer.pragma_update(None, "user_version", 99).unwrap();
    let before = std::fs::read(&scratch.path).unwrap();
    assert_eq!(
        header(&scratch.path).unwrap(),
        Header::Database { version: schema::STEPS.len() as u32, mark: schema::MARK }
    );
    assert!(matches!(SqliteStore::open(&scratch.path), Err(StoreError::Newer { found: 99, .. })));
    assert_eq!(std::fs::read(&scratch.path).unwrap(), before);
}

#[test]
fn a_file_that_is_not_a_record_is_rejected_and_unchanged() {
    let scratch = scratch();
    std::fs::write(&scratch.path, "not a database, but long enough to look like one; ".repeat(9)).unwrap();
    assert!(matches!(SqliteStore::open(&scratch.path), Err(StoreError::Foreign { .. })));

    std::fs::remove_file(&scratch.path).unwrap();
    Connection::open(&scratch.path).unwrap().execute_batch("CREATE TABLE runs (x)").unwrap();
    let before = std::fs::read(&scratch.path).unwrap();
    assert!(matches!(SqliteStore::open(&scratch.path), Err(StoreError::Foreign { .. })));
    assert_eq!(std::fs::read(&scratch.path).unwrap(), before);
}

#[test]
fn checking_for_a_record_does_not_create_one() {
    let scratch = scratch();
    assert!(SqliteStore::open_existing(&scratch.path).unwrap().is_none());
    assert!(!scratch.path.exists());
    assert!(SqliteStore::open(&scratch.path.join("no/such/folder")).is_err());
}

#[test]
fn writing_to_a_removed_or_replaced_record_is_an_error() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"])]).unwrap();
    std::fs::rename(&scratch.path, scratch.path.with_extension("old")).unwrap();
    assert!(matches!(store.append(&[story.began("a")]), Err(StoreError::Gone { .. })));
    std::fs::write(&scratch.path, "").unwrap();
    assert!(matches!(store.append(&[story.waits("a", "agent")]), Err(StoreError::Gone { .. })));
}

#[test]
fn a_read_only_record_is_read_and_not_written() {
    let scratch = scratch();
    let mut story = RunBuilder::of(RUN);
    let events = [story.started(&["a"]), story.began("a"), story.finished("a", Outcome::Passed)];
    scratch.store().append(&events).unwrap();
    let mut store = SqliteStore::open_read_only(&scratch.path).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 1);
    assert_eq!(replayed(&store, RUN).len(), 3);
    assert!(store.append(&[story.over(summary_of(&["a"]))]).is_err());
}

#[test]
fn ten_thousand_trials_are_listed() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&[]), story.finished("a", Outcome::Passed)]).unwrap();
    let columns: String = store
        .connection
        .query_row(
            "SELECT group_concat(CASE name WHEN 'no' THEN 'NULL' WHEN 'id' THEN 'id || n' ELSE name END)
             FROM pragma_table_info('trials')",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let copy = format!(
        "WITH RECURSIVE numbers (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM numbers WHERE n < 10000)
         INSERT INTO trials SELECT {columns} FROM trials, numbers"
    );
    store.connection.execute(&copy, []).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 10_000);
}

#[test]
fn finishing_a_trial_writes_no_more_in_a_run_of_ten_thousand_trials() {
    let written = |planned: u64| {
        let scratch = scratch();
        let mut store = scratch.store();
        let mut story = RunBuilder::of(RUN);
        let names: Vec<String> = (0..planned).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        store.append(&[story.started(&names.iter().map(String::as_str).collect::<Vec<_>>())]).unwrap();
        store.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
        store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
        std::fs::metadata(scratch.path.with_file_name("runs.db-wal")).unwrap().len()
    };
    let (few, many) = (written(1), written(10_000));
    assert!(many < few * 2, "{many} bytes instead of {few}");
}

#[test]
fn a_record_in_the_first_format_can_be_read_and_extended() {
    let scratch = scratch();
    let mut story = RunBuilder::of(RUN);
    let began = [story.started(&["a", "b"]), story.began("a"), story.began("b")];
    let done = story.finished("a", Outcome::Passed);
    {
        let connection = Connection::open(&scratch.path).unwrap();
        connection.execute_batch(schema::STEPS[0]).unwrap();
        connection.pragma_update(None, "application_id", schema::MARK).unwrap();
        connection.pragma_update(None, "user_version", 1).unwrap();
        let mut packer = Packer::new().unwrap();
        let line = |event: &Envelope| serde_json::to_string(event).unwrap();
        let events = format!("{}\n{}\n", line(&began[1]), line(&done));
        let packed = packer.bytes(events.as_bytes()).unwrap();
        connection
            .execute(
                "INSERT INTO runs (id, started_us, version, planned, finished) VALUES (?1, 0, '0.1.0', 2, 1)",
                [RUN],
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO trials (run, id, suite, case_id, arm, agent, repetition, outcome, flaky, started_us,
                     finished_us, duration_ms, turns, tool_calls, attempts, errors, first_seq)
                 VALUES (1, ?1, 'commit', 'a', 'fake', 'fake', 1, 'passed', 0, 0, 0, 0, 0, 0, 1, 0, 2)",
                [id("a").to_string()],
            )
            .unwrap();
        connection
            .execute("INSERT INTO packs (trial, record, events) VALUES (1, ?1, ?2)", params![vec![0u8], packed])
            .unwrap();
        let mut journal = connection.prepare("INSERT INTO journal VALUES (1, ?1, ?2, ?3)").unwrap();
        journal.execute(params!["", 1, line(&began[0])]).unwrap();
        journal.execute(params![id("b").to_string(), 3, line(&began[2])]).unwrap();
    }
    // It has no owner.
    let mut store = SqliteStore::open(&scratch.path).unwrap();
    assert_eq!(replayed(&store, RUN), [began.as_slice(), std::slice::from_ref(&done)].concat());
    assert_eq!(store.trial(RUN, &id("a").to_string()).unwrap(), record("a", Outcome::Passed));
    let last = story.finished("b", Outcome::Failed);
    store.append(std::slice::from_ref(&last)).unwrap();
    assert_eq!(store.trial_events(RUN, &id("b").to_string()).unwrap().len(), 2);
    assert_eq!(replayed(&store, RUN).last(), Some(&last));
    store.remove(RUN).unwrap();
    assert_eq!(store.count(ROWS), 0);
}

#[test]
fn older_runs_whose_results_decided_how_many_trials_ran_are_recognised() {
    let scratch = scratch();
    {
        let connection = Connection::open(&scratch.path).unwrap();
        schema::STEPS[..7].iter().for_each(|step| connection.execute_batch(step).unwrap());
        connection.pragma_update(None, "application_id", schema::MARK).unwrap();
        connection.pragma_update(None, "user_version", 7).unwrap();
        let insert = "INSERT INTO runs (id, started_us, version, planned, summary) VALUES (?1, ?2, '0.1.0', 2, ?3)";
        let summaries =
            [("a", Some(r#"{"decisions":{"all":1}}"#)), ("b", Some("{}")), ("c", None), ("d", Some("damaged"))];
        for (at, (id, summary)) in summaries.into_iter().enumerate() {
            connection.execute(insert, params![id, at as i64, summary]).unwrap();
        }
        let info = r#"{"id":"c","label":null,"started_at":"2026-01-01T00:00:00Z","trialrun_version":"0.1.0","settings":{},
            "agents":[],"skills":[],"trials":[],"decisions":2,"jobs":1}"#;
        let packed = Packer::new().unwrap().bytes(info.as_bytes()).unwrap();
        connection.execute("INSERT INTO infos (run, info) VALUES (3, ?1)", params![packed]).unwrap();
    }
    let mut runs = scratch.store().runs(&RunFilter::default()).unwrap();
    runs.sort_by(|a, b| a.id.cmp(&b.id));
    let sequential: Vec<bool> = runs.iter().map(|run| run.sequential).collect();
    assert_eq!(sequential, [true, false, true, true], "an unreadable run gets no interval either");
}
