use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use model::{
    AttemptRecord, Ending, Envelope, Event, Limits, Outcome, Phases, RunInfo, SkillInfo, Step, Summary, Tokens,
    ToolCall, TrialId, TrialRecord,
};
use rusqlite::params;
use serde_json::json;

use super::*;
use crate::SelectError;

const RUN: &str = "0193a000-0000-7000-8000-000000000001";

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
        SqliteStore::open(&self.path).unwrap()
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Creates envelopes with consecutive numbers, a second apart.
struct Story {
    run: String,
    seq: u64,
}

impl Story {
    fn of(run: &str) -> Self {
        Self { run: run.to_owned(), seq: 0 }
    }

    fn tell(&mut self, trial: Option<&str>, event: Event) -> Envelope {
        self.seq += 1;
        Envelope {
            v: model::EVENT_VERSION,
            seq: self.seq,
            at: at(self.seq as i64),
            run: self.run.as_str().into(),
            trial: trial.map(|case| (&id(case)).into()),
            attempt: trial.map(|_| 1),
            event,
        }
    }

    fn started(&mut self, cases: &[&str]) -> Envelope {
        let info = RunInfo {
            id: self.run.clone(),
            label: Some("nightly".into()),
            regrade_of: None,
            started_at: at(self.seq as i64),
            trialrun_version: "0.1.0".into(),
            settings: serde_json::Map::new(),
            agents: vec![],
            skills: vec![],
            trials: cases.iter().map(|case| id(case)).collect(),
            jobs: 2,
        };
        self.tell(None, Event::RunStarted(Box::new(info)))
    }

    fn began(&mut self, case: &str) -> Envelope {
        let event = Event::TrialStarted {
            id: id(case),
            agent: "fake".into(),
            model: None,
            subject: None,
            file: "a.yaml".into(),
            position: None,
            script: None,
            input: None,
            messages: vec!["hi".into()],
        };
        self.tell(Some(case), event)
    }

    fn waits(&mut self, case: &str, on: &str) -> Envelope {
        self.tell(Some(case), Event::Waiting { on: on.into() })
    }

    fn calls(&mut self, case: &str, command: &str) -> Envelope {
        let call = ToolCall::new("c1", "Bash", json!({ "command": command }), "m1");
        self.tell(Some(case), Event::Step(Step::ToolCall(call)))
    }

    fn finished(&mut self, case: &str, outcome: Outcome) -> Envelope {
        self.tell(Some(case), Event::TrialFinished(Box::new(record(case, outcome))))
    }

    fn over(&mut self, summary: Summary) -> Envelope {
        self.tell(None, Event::RunFinished { summary, duration_ms: 5000, signal: None })
    }
}

fn id(case: &str) -> TrialId {
    TrialId { suite: "commit".into(), case: case.into(), arm: "fake".into(), repetition: 1 }
}

fn record(case: &str, outcome: Outcome) -> TrialRecord {
    let tokens = Tokens { input: 10, cache_read: 5, cache_write: 1, output: 2, reasoning: None };
    let attempt = AttemptRecord {
        outcome,
        because: None,
        usage: Some(tokens),
        cost_usd: Some(0.5),
        duration_ms: 500,
        answer: None,
    };
    TrialRecord {
        id: (&id(case)).into(),
        suite: "commit".into(),
        case: case.into(),
        title: None,
        arm: "fake".into(),
        agent: "fake".into(),
        model: Some("m".into()),
        variant: None,
        repetition: 1,
        outcome,
        flaky: false,
        fault: None,
        because: Some("why".into()),
        ending: Some(Ending::Finished),
        score: Some(1.0),
        max_score: Some(2.0),
        pass_score: None,
        findings: vec![],
        input: vec!["hi".into()],
        input_value: None,
        result: None,
        expected: None,
        expected_trace: None,
        expected_schema: None,
        script: None,
        tools: Vec::new(),
        vars: None,
        not: false,
        position: None,
        answer: Some("ho".into()),
        scores: Default::default(),
        judge: None,
        user: None,
        replies: Vec::new(),
        turn_count: 3,
        tool_calls: vec![],
        questions: vec![],
        usage: Some(tokens),
        cost_usd: Some(0.5),
        cost_source: None,
        cost_usd_cli: None,
        triggered: None,
        should_trigger: None,
        side_effects: Vec::new(),
        masked: false,
        duration_ms: 1000,
        agent_ms: Some(900),
        phases: Phases::default(),
        started_at: at(0),
        exit_code: None,
        session_id: None,
        agent_version: None,
        auth: None,
        skill: Some(SkillInfo { name: "commit".into(), version: Some("1".into()), content_hash: "abc".into() }),
        limits: Limits { token_budget: Some(20.0), ..Limits::default() }.into(),
        settings: Arc::default(),
        attempts: vec![attempt.clone(), attempt],
        files_changed: vec![],
        sandbox: None,
        errors: vec![],
        warnings: vec![],
    }
}

fn replayed(store: &SqliteStore, run: &str) -> Vec<Envelope> {
    let mut events = Vec::new();
    assert_eq!(store.replay(run, &mut |envelope| events.push(envelope.clone())).unwrap(), 0);
    events
}

#[test]
fn a_run_comes_back_in_order_whatever_was_packed_when() {
    let scratch = scratch();
    let mut story = Story::of(RUN);
    let batches = [
        vec![story.started(&["a", "b", "c"]), story.began("a"), story.began("b")],
        vec![story.calls("b", "ls"), story.calls("a", "pwd"), story.finished("b", Outcome::Failed)],
        vec![story.began("c"), story.finished("c", Outcome::Passed), story.waits("a", "agent")],
        vec![story.finished("a", Outcome::Passed), story.over(Summary::default())],
    ];
    let mut store = scratch.store();
    for batch in &batches {
        store.append(batch).unwrap();
    }
    assert_eq!(replayed(&store, RUN), batches.concat());
    let of_b: Vec<u64> = store
        .trial_events(RUN, &id("b").to_string())
        .unwrap()
        .into_iter()
        .filter_map(StoredEvent::known)
        .map(|envelope| envelope.seq)
        .collect();
    assert_eq!(of_b, [3, 4, 6]);
    let waiting: i64 =
        store.connection.query_row("SELECT count(*) FROM journal WHERE trial <> ''", [], |row| row.get(0)).unwrap();
    assert_eq!(waiting, 0, "a finished trial leaves nothing in the journal");
}

#[test]
fn a_long_unfinished_trial_is_read_page_by_page() {
    let scratch = scratch();
    let mut story = Story::of(RUN);
    let mut events = vec![story.started(&["a", "b"]), story.began("a"), story.began("b")];
    for n in 0..700 {
        events.push(story.calls(if n % 3 == 0 { "a" } else { "b" }, &n.to_string()));
    }
    let mut store = scratch.store();
    store.append(&events).unwrap();
    assert_eq!(replayed(&store, RUN), events);
}

#[test]
fn a_batch_is_kept_whole_or_not_at_all() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    let good = story.finished("a", Outcome::Passed);
    let stray = Story::of("nobody").began("a");
    assert!(matches!(store.append(&[good.clone(), stray]), Err(StoreError::UnknownRun(run)) if run == "nobody"));
    assert!(store.trials(&TrialFilter::default()).unwrap().is_empty());
    assert_eq!(store.live(RUN).unwrap().len(), 1);
    store.append(std::slice::from_ref(&good)).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 1);
    assert!(store.append(&[good]).is_err(), "a trial has one outcome");
}

#[test]
fn lists_are_made_of_columns_and_records_come_back_whole() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
    let mut summary = Summary::default();
    summary.add(&record("a", Outcome::Passed));
    store
        .append(&[
            story.started(&["a", "b"]),
            story.began("a"),
            story.finished("a", Outcome::Passed),
            story.over(summary),
        ])
        .unwrap();

    let run = &store.runs(&RunFilter::default()).unwrap()[0];
    assert_eq!((run.id.as_str(), run.short.as_str(), run.label.as_deref()), (RUN, "0193a000", Some("nightly")));
    assert_eq!((run.planned, run.finished, run.duration_ms), (2, 1, Some(5000)));
    assert_eq!(run.summary, Some(summary_of(&["a"])));
    assert_eq!(store.info(RUN).unwrap().trials, [id("a"), id("b")]);

    let row = &store.trials(&TrialFilter { case: Some("a".into()), ..TrialFilter::default() }).unwrap()[0];
    assert_eq!((row.outcome, row.attempts, row.turns), (Outcome::Passed, 2, 3));
    assert_eq!((row.tokens.map(|tokens| tokens.total()), row.cost_usd), (Some(36), Some(1.0)), "all attempts");
    assert!(row.over_budget());
    assert_eq!(row.finished_at(), at(1));
    assert_eq!((row.skill_version.as_deref(), row.skill_hash.as_deref()), (Some("1"), Some("abc")));
    assert_eq!(store.trial(RUN, &row.id).unwrap(), record("a", Outcome::Passed));
    assert!(matches!(store.trial(RUN, "x"), Err(StoreError::UnknownTrial { .. })));

    let none = [
        TrialFilter { suite: Some("other".into()), ..TrialFilter::default() },
        TrialFilter { text: Some("::b@".into()), ..TrialFilter::default() },
        TrialFilter { last: Some(0), ..TrialFilter::default() },
        TrialFilter::of_run("other"),
    ];
    for filter in none {
        assert!(store.trials(&filter).unwrap().is_empty(), "{filter:?}");
    }
    assert_eq!(store.trials(&TrialFilter { text: Some("::a@".into()), ..TrialFilter::default() }).unwrap().len(), 1);
}

fn summary_of(cases: &[&str]) -> Summary {
    let mut summary = Summary::default();
    for case in cases {
        summary.add(&record(case, Outcome::Passed));
    }
    summary
}

#[test]
fn runs_are_named_and_told_apart() {
    let scratch = scratch();
    let mut store = scratch.store();
    let ids = ["0193a000-0000-7000-8000-0000000000aa", "0193a000-0000-7000-8000-0000000000ab", "0193b000-1"];
    for (n, run) in ids.iter().enumerate() {
        let mut story = Story::of(run);
        story.seq = n as u64 * 10;
        store.append(&[story.started(&["a"]), story.began("a"), story.finished("a", Outcome::Passed)]).unwrap();
    }
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.short.as_str()).collect::<Vec<_>>(), ["0193b000", ids[1], ids[0]]);
    assert_eq!(store.select("previous").unwrap().id, ids[1]);
    assert_eq!(store.select("0193b").unwrap().id, ids[2]);
    assert!(matches!(store.select("0193a"), Err(StoreError::Select(SelectError::AmbiguousRun { .. }))));
    assert_eq!(store.runs(&RunFilter { last: Some(1), before: Some(at(15)) }).unwrap()[0].id, ids[1]);

    assert_eq!(store.select_trial("commit::a").unwrap().run, ids[2]);
    assert_eq!(store.select_trial("previous/a").unwrap().run, ids[1]);
    assert_eq!(store.select_trial("commit::a@fake#1").unwrap().run, ids[2]);
    let error = store.select_trial("aa").unwrap_err();
    assert_eq!(error.to_string(), "no finished trial is called `aa`; there are commit::a@fake#1");

    store.remove(ids[2]).unwrap();
    assert_eq!(store.select("latest").unwrap().id, ids[1]);
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 2);
    let left: i64 = store
        .connection
        .query_row("SELECT (SELECT count(*) FROM packs) + (SELECT count(*) FROM journal)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 4, "two packs and two run_started");
}

#[test]
fn a_running_trial_says_what_it_waits_for() {
    let scratch = scratch();
    let mut store = SqliteStore::open(&scratch.path).unwrap().owned_by(4711);
    let mut story = Story::of(RUN);
    store
        .append(&[
            story.started(&["a", "b", "c"]),
            story.began("b"),
            story.began("a"),
            story.waits("b", "setup"),
            story.waits("b", "agent"),
            story.calls("b", "sleep 9"),
            story.began("c"),
            story.finished("c", Outcome::Passed),
        ])
        .unwrap();
    let run = store.select("latest").unwrap();
    assert_eq!((run.owner_pid, run.finished_at, run.summary), (Some(4711), None, None));
    let live = store.live(RUN).unwrap();
    assert_eq!(
        live.iter().map(|trial| trial.id.as_str()).collect::<Vec<_>>(),
        ["commit::b@fake#1", "commit::a@fake#1"]
    );
    assert_eq!((live[0].waiting_on.as_deref(), live[0].waiting_since), (Some("agent"), Some(at(5))));
    assert!(matches!(&live[0].last_step, Some(Step::ToolCall(call)) if call.name == "Bash"));
    assert_eq!((live[1].waiting_on.as_deref(), live[1].since), (None, at(3)));

    let again = story.began("b");
    store.append(&[Envelope { attempt: Some(2), ..again }]).unwrap();
    let live = store.live(RUN).unwrap();
    assert_eq!((live[0].attempt, live[0].waiting_on.as_deref()), (2, None), "another attempt begins anew");
}

#[test]
fn an_event_of_another_version_is_kept_and_counted() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
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
fn what_is_recorded_waits_for_the_disk_as_it_should_in_a_new_record_too() {
    let scratch = scratch();
    for _ in 0..2 {
        let store = scratch.store();
        let level: i64 = store.connection.pragma_query_value(None, "synchronous", |row| row.get(0)).unwrap();
        let journal: String = store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!((level, journal.as_str()), (1, "wal"), "NORMAL");
    }
}

#[test]
fn a_newer_record_is_refused_and_not_one_byte_changes() {
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
    assert_eq!(std::fs::read_dir(scratch.path.parent().unwrap()).unwrap().count(), 1, "no log was left beside it");
}

#[test]
fn a_newer_record_whose_last_write_is_still_in_its_log_is_refused_too() {
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
fn a_file_that_is_no_record_is_refused_and_left_alone() {
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
fn looking_for_a_record_makes_none() {
    let scratch = scratch();
    assert!(SqliteStore::open_existing(&scratch.path).unwrap().is_none());
    assert!(!scratch.path.exists());
    assert!(SqliteStore::open(&scratch.path.join("no/such/folder")).is_err());
}

#[test]
fn a_reader_sees_the_run_as_it_was_while_the_run_goes_on() {
    let scratch = scratch();
    let mut writer = scratch.store();
    let mut story = Story::of(RUN);
    writer.append(&[story.started(&["a", "b"]), story.began("a"), story.calls("a", "ls")]).unwrap();

    let reader = SqliteStore::open_existing(&scratch.path).unwrap().unwrap();
    let mut events = reader.events(RUN).unwrap();
    assert!(matches!(events.next(), Some(Ok(StoredEvent::Known(envelope))) if envelope.seq == 1));
    writer.append(&[story.finished("a", Outcome::Passed), story.began("b")]).unwrap();
    assert_eq!(events.by_ref().map(|event| event.unwrap().known().unwrap().seq).collect::<Vec<_>>(), [2, 3]);
    drop(events);
    assert_eq!(replayed(&reader, RUN).len(), 5);
    assert_eq!(reader.live(RUN).unwrap()[0].id, id("b").to_string());
}

#[test]
fn what_is_written_to_a_record_that_was_removed_or_replaced_is_an_error() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
    store.append(&[story.started(&["a"])]).unwrap();
    std::fs::rename(&scratch.path, scratch.path.with_extension("old")).unwrap();
    assert!(matches!(store.append(&[story.began("a")]), Err(StoreError::Gone { .. })));
    std::fs::write(&scratch.path, "").unwrap();
    assert!(matches!(store.append(&[story.waits("a", "agent")]), Err(StoreError::Gone { .. })));
}

#[test]
fn a_record_that_may_only_be_read_is_read_and_not_written() {
    let scratch = scratch();
    let mut story = Story::of(RUN);
    let told = [story.started(&["a"]), story.began("a"), story.finished("a", Outcome::Passed)];
    scratch.store().append(&told).unwrap();
    let mut store = SqliteStore::open_read_only(&scratch.path).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 1);
    assert_eq!(replayed(&store, RUN).len(), 3);
    assert!(store.append(&[story.over(summary_of(&["a"]))]).is_err());
}

#[test]
fn processes_that_make_the_record_at_once_share_it() {
    let scratch = scratch();
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|n| {
                let scratch = &scratch;
                scope.spawn(move || {
                    let mut store = scratch.store();
                    let mut story = Story::of(&format!("run-{n}"));
                    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
                    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
    });
    let store = scratch.store();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 8);
    for run in store.runs(&RunFilter::default()).unwrap() {
        assert_eq!(replayed(&store, &run.id).len(), 3);
    }
}

#[test]
fn ten_thousand_trials_are_listed() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
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
fn finishing_a_trial_writes_no_more_in_a_run_of_ten_thousand() {
    let written = |planned: u64| {
        let scratch = scratch();
        let mut store = scratch.store();
        let mut story = Story::of(RUN);
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
fn a_record_of_the_first_format_is_read_and_goes_on() {
    let scratch = scratch();
    let mut story = Story::of(RUN);
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
    let mut store = scratch.store();
    assert_eq!(replayed(&store, RUN), [began.as_slice(), std::slice::from_ref(&done)].concat());
    assert_eq!(store.trial(RUN, &id("a").to_string()).unwrap(), record("a", Outcome::Passed));
    let last = story.finished("b", Outcome::Failed);
    store.append(std::slice::from_ref(&last)).unwrap();
    assert_eq!(store.trial_events(RUN, &id("b").to_string()).unwrap().len(), 2);
    assert_eq!(replayed(&store, RUN).last(), Some(&last));
    store.remove(RUN).unwrap();
    let left: i64 = store
        .connection
        .query_row("SELECT (SELECT count(*) FROM packs) + (SELECT count(*) FROM journal)", [], |row| row.get(0))
        .unwrap();
    assert_eq!(left, 0);
}

#[test]
fn trials_that_finish_together_share_packs_and_come_back_one_by_one() {
    let scratch = scratch();
    let mut store = scratch.store();
    let mut story = Story::of(RUN);
    let names: Vec<String> = (0..300).map(|n| format!("c{n}")).collect();
    let mut events = vec![story.started(&["c0"])];
    for pair in names.chunks(2) {
        events.extend(pair.iter().map(|name| story.began(name)));
        events.extend(pair.iter().map(|name| story.calls(name, &name.repeat(100))));
        events.extend(pair.iter().map(|name| story.finished(name, Outcome::Passed)));
    }
    store.append(&events).unwrap();
    let packs: i64 = store.connection.query_row("SELECT count(*) FROM packs", [], |row| row.get(0)).unwrap();
    assert!((2..30).contains(&packs), "{packs}");
    assert_eq!(replayed(&store, RUN), events);
    for name in &names {
        let trial = id(name).to_string();
        assert_eq!(store.trial(RUN, &trial).unwrap().case.to_string(), *name);
        assert_eq!(store.trial_events(RUN, &trial).unwrap().len(), 3);
    }
    assert_eq!(store.runs(&RunFilter::default()).unwrap()[0].finished, 300);
}
