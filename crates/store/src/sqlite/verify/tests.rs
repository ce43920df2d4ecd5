use model::{Outcome, Summary};
use rusqlite::Connection;

use crate::tests::contract::{RUN, RunBuilder, at, id, many_trials, owner, summary_of};
use crate::{Location, Store, StoreError, Verification, open};

/// Takes over the run, whose owner has ended.
fn reopen(store: &mut dyn Store) -> Result<(), StoreError> {
    let lease = store.select(RUN).unwrap().lease;
    store.reopen(RUN, lease.as_ref(), at(500))
}

/// Records a run with three trials, and with events of their own and of the run in between, in several batches.
fn recorded(path: &std::path::Path) -> Box<dyn Store> {
    let mut store = open(&path.into(), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    let batches = [
        vec![story.started(&["a", "b", "c"]), story.began("a"), story.began("b")],
        vec![story.calls("b", "ls"), story.calls("a", "pwd"), story.finished("b", Outcome::Failed)],
        vec![story.began("c"), story.finished("c", Outcome::Passed), story.calls("a", "make")],
        vec![story.finished("a", Outcome::Passed), story.over(summary_of(&["a"]))],
    ];
    for batch in &batches {
        store.append(batch).unwrap();
    }
    store
}

/// Returns the differences after the statements in `change` were executed on a recorded run.
fn after(change: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = recorded(&path);
    Connection::open(&path).unwrap().execute_batch(change).unwrap();
    differences(store.verify(RUN).unwrap())
}

fn differences(verification: Verification) -> Vec<String> {
    match verification {
        Verification::Changed { differences } => differences.iter().map(ToString::to_string).collect(),
        _ => Vec::new(),
    }
}

/// Replaces text in packed data, as someone editing the record would.
fn edit(path: &std::path::Path, table: &str, column: &str, old: &str, new: &str) {
    let connection = Connection::open(path).unwrap();
    let mut select = connection.prepare(&format!("SELECT rowid, {column} FROM {table}")).unwrap();
    let rows: Vec<(i64, Vec<u8>)> =
        select.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    for (row, packed) in rows {
        let text = String::from_utf8(crate::pack::unpack(&packed).unwrap()).unwrap().replace(old, new);
        let packed = zstd::encode_all(text.as_bytes(), 1).unwrap();
        let update = format!("UPDATE {table} SET {column} = ?2 WHERE rowid = ?1");
        connection.execute(&update, (row, packed)).unwrap();
    }
}

#[test]
fn an_unchanged_run_is_intact_and_its_hash_is_in_the_list() {
    let folder = tempfile::tempdir().unwrap();
    let store = recorded(&folder.path().join("runs.db"));
    let hash = store.select("latest").unwrap().hash.unwrap();
    assert_eq!(store.verify(RUN).unwrap(), Verification::Intact { hash: hash.clone(), trials: 3 });
    let other = recorded(&folder.path().join("other.db"));
    assert_eq!(other.select("latest").unwrap().hash, Some(hash), "the hash depends on what was recorded only");
    assert!(matches!(store.verify("x"), Err(StoreError::UnknownRun(_))));
}

#[test]
fn hundreds_of_trials_in_several_packs_are_verified() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = open(&path.as_path().into(), &owner(1)).unwrap();
    let (names, events) = many_trials();
    events.chunks(100).for_each(|batch| store.append(batch).unwrap());
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 300, .. }));
    edit(&path, "packs", "events", &names[150].repeat(100), "nothing");
    assert_eq!(differences(store.verify(RUN).unwrap())[0], format!("{}: its events were changed", id(&names[150])));
}

#[test]
fn a_changed_removed_or_added_trial_is_named() {
    let (a, b, c) = (id("a"), id("b"), id("c"));
    assert_eq!(
        after("UPDATE trials SET outcome = 'passed' WHERE case_id = 'b'"),
        [format!("{b}: `outcome` is `passed` in the list of trials, and `failed` in its events")]
    );
    assert_eq!(after("UPDATE trials SET cost_usd = 0 WHERE case_id = 'c'").len(), 1);
    assert_eq!(after("UPDATE trials SET most_score = 0.25 WHERE case_id = 'c'").len(), 1);
    assert!(after("UPDATE trials SET least_score = NULL, most_score = NULL").is_empty(), "older trials have none");
    assert_eq!(
        after("UPDATE trials SET settings = settings + 1 WHERE case_id = 'b'"),
        [format!("{}: `settings` in the list of trials does not match its events", id("b"))]
    );
    let removed = after("DELETE FROM trials WHERE case_id = 'c'");
    assert_eq!(removed[0], format!("{c}: it was removed"));
    let hidden = after(
        "DELETE FROM trials WHERE case_id = 'c'; DELETE FROM links WHERE trial LIKE '%::c@%'; UPDATE runs SET finished = 2",
    );
    assert_eq!(
        hidden[0],
        format!("{a}: its hash does not follow from the one before; links were changed, removed or added")
    );
    let added = after(
        "CREATE TEMP TABLE copied AS SELECT * FROM trials WHERE case_id = 'c';
         UPDATE copied SET no = NULL, id = replace(id, '::c@', '::d@'), case_id = 'd';
         INSERT INTO trials SELECT * FROM copied; UPDATE runs SET finished = 4",
    );
    assert_eq!(added[0], "commit::d@fake#1: it was added");
    let moved = after("UPDATE trials SET pack_end = pack_end - 1 WHERE case_id = 'b'");
    assert_eq!(moved, [format!("{b}: its events were changed")]);
    assert_eq!(after("UPDATE packs SET events = x'00' WHERE no = 1").len(), 1, "a damaged pack is a difference");
}

#[test]
fn changes_to_the_plan_the_totals_and_the_events_of_the_run_are_differences() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let store = recorded(&path);
    edit(&path, "infos", "info", "\"case\":\"a\"", "\"case\":\"e\"");
    assert_eq!(differences(store.verify(RUN).unwrap()), ["the run: its plan was changed"]);

    assert_eq!(
        after("UPDATE runs SET summary = replace(summary, '\"passed\":1', '\"passed\":9')"),
        ["the run: its totals were changed"]
    );
    for (change, name) in [
        ("version = '9.9'", "version"),
        ("agents = '[{\"name\":\"other\"}]'", "agents"),
        ("test_files = '{\"a.yaml\":\"\"}'", "test_files"),
        ("missing_shards = '[1]'", "missing_shards"),
        ("sequential = 1", "sequential"),
    ] {
        let expected = format!("the run: `{name}` in the list of runs does not match its events");
        assert_eq!(after(&format!("UPDATE runs SET {change}")), [expected]);
    }
    assert_eq!(
        after("UPDATE runs SET label = 'release'"),
        ["the run: `label` in the list of runs does not match its events"]
    );
    let event = "UPDATE journal SET event = replace(event, 'run_finished', 'run_ended')";
    assert_eq!(after(event)[0], "the run: its event 11 was changed");
    let cut = "DELETE FROM journal WHERE seq = 11; DELETE FROM links WHERE seq = 11;
               UPDATE runs SET finished_us = NULL, duration_ms = NULL, summary = NULL";
    assert_eq!(
        after(cut),
        ["the run: its hash does not follow from its trials and events; the last of them were removed"]
    );
    assert_eq!(after("UPDATE runs SET chain = NULL"), ["the run: its hash was removed"]);
    let late = "INSERT INTO journal SELECT run, id, 99, '{}' FROM trials WHERE case_id = 'a'";
    assert_eq!(after(late), [format!("{}: events were added to it", id("a"))]);
}

#[test]
fn an_event_that_is_edited_before_its_trial_ends_is_a_difference() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut store = open(&path.as_path().into(), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a"), story.calls("a", "rm -rf /")]).unwrap();
    let edit = "UPDATE journal SET event = replace(event, 'rm -rf /', 'ls')";
    Connection::open(&path).unwrap().execute_batch(edit).unwrap();
    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
    assert_eq!(differences(store.verify(RUN).unwrap()), [format!("{}: its events were changed", id("a"))]);
}

#[test]
fn a_resumed_run_is_intact_and_one_that_was_changed_is_not_resumed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut story = RunBuilder::of(RUN);
    {
        let mut store = open(&path.as_path().into(), &owner(1)).unwrap();
        store.append(&[story.started(&["a", "b", "c"]), story.began("a"), story.began("b")]).unwrap();
        store.append(&[story.finished("a", Outcome::Passed), story.calls("b", "ls")]).unwrap();
        store.append(&[story.finished("c", Outcome::Cancelled)]).unwrap();
        store.append(&[story.over(Summary::default())]).unwrap();
    }
    let mut store = open(&path.as_path().into(), &owner(2)).unwrap();
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("UPDATE trials SET outcome = 'failed' WHERE case_id = 'a'").unwrap();
    let error = reopen(&mut *store).unwrap_err().to_string();
    assert!(error.contains("was changed after it was recorded: commit::a@fake#1: `outcome` is `failed`"), "{error}");
    connection.execute_batch("UPDATE trials SET outcome = 'passed' WHERE case_id = 'a'").unwrap();

    reopen(&mut *store).unwrap();
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 1, .. }));
    store.append(&[story.began("b"), story.began("c"), story.finished("c", Outcome::Passed)]).unwrap();
    store.append(&[story.finished("b", Outcome::Failed), story.over(summary_of(&["a"]))]).unwrap();
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 3, .. }));
}

#[test]
fn a_run_recorded_before_there_were_chains_has_none_even_if_it_continues() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let mut story = RunBuilder::of(RUN);
    let mut store = open(&path.as_path().into(), &owner(1)).unwrap();
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    store.remove_chain(RUN).unwrap();
    store.append(&[story.finished("a", Outcome::Passed), story.over(summary_of(&["a"]))]).unwrap();
    assert_eq!(store.verify(RUN).unwrap(), Verification::Unchained);
    assert_eq!(store.select("latest").unwrap().hash, None);
    reopen(&mut *store).unwrap();
    assert_eq!(store.verify(RUN).unwrap(), Verification::Unchained);
}

#[test]
fn a_batch_that_fails_leaves_the_chain_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = open(&Location::File(folder.path().join("runs.db")), &owner(1)).unwrap();
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a"), story.calls("a", "ls")]).unwrap();
    let done = story.finished("a", Outcome::Passed);
    assert!(store.append(&[done.clone(), RunBuilder::of("nobody").began("a")]).is_err());
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 0, .. }));
    store.append(&[done]).unwrap();
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 1, .. }));
}

#[test]
fn runs_from_several_writers_have_separate_chains() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    std::thread::scope(|scope| {
        for number in 0..4 {
            let path = &path;
            scope.spawn(move || {
                let mut store = open(&path.as_path().into(), &owner(number)).unwrap();
                let mut story = RunBuilder::of(&format!("run-{number}"));
                store.append(&[story.started(&["a", "b"]), story.began("a"), story.began("b")]).unwrap();
                store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
                store.append(&[story.finished("b", Outcome::Passed)]).unwrap();
            });
        }
    });
    let store = open(&path.as_path().into(), &owner(1)).unwrap();
    for number in 0..4 {
        let found = store.verify(&format!("run-{number}")).unwrap();
        assert!(matches!(found, Verification::Intact { trials: 2, .. }), "{found:?}");
    }
    let mut store = store;
    store.remove("run-1").unwrap();
    assert!(matches!(store.verify("run-2").unwrap(), Verification::Intact { .. }));
}
