//! Contract tests that every store backend must pass. Each test opens the record in the backend's own way. A backend
//! runs all of them with [`contract_tests`].

use std::sync::Arc;

use jiff::Timestamp;
use model::{
    AttemptRecord, EgressAttempt, EgressVerdict, EgressWay, Ending, Envelope, Event, Lease, Limits, Outcome,
    OutcomeCounts, Owner, Phases, RunInfo, SideEffects, SkillInfo, Step, Summary, Tokens, ToolCall, TrialId,
    TrialRecord,
};
use serde_json::json;

use crate::{ResultFilter, RunFilter, SelectError, Store, StoreError, StoredEvent, TrialFilter, Verification};

pub(crate) const RUN: &str = "0193a000-0000-7000-8000-000000000001";

/// Opens the same record, empty at first, for the owner with that process id.
pub(crate) type OpenStore<'a> = &'a (dyn Fn(u32) -> Box<dyn Store> + Sync);

/// Process that owns the runs of most tests.
const PID: u32 = 4711;

pub(crate) fn owner(pid: u32) -> Owner {
    Owner { id: format!("owner-{pid}"), host: "build-7".into(), pid, process: format!("{pid}:1:x") }
}

/// Generates a test for each rule, with these attributes. `$run` calls a rule with a function that opens a new record.
macro_rules! contract_tests {
    ($run:path $(, #[$attribute:meta])?) => {
        contract_tests! { $run $(, #[$attribute])?:
            events_of_a_run_are_read_in_order
            a_long_unfinished_trial_is_read_completely
            a_batch_is_stored_completely_or_not_at_all
            lists_and_records_round_trip
            runs_are_selected_unambiguously
            results_are_counted_case_by_case
            trials_are_listed_run_by_run
            a_reopened_run_keeps_its_start_and_its_finished_trials
            a_lease_lasts_as_long_as_its_owner_renews_it
            a_run_that_was_taken_over_rejects_its_former_owner
            events_of_a_running_trial_can_be_rewritten
            judgements_are_kept_until_they_are_too_old
            a_running_trial_reports_what_it_is_waiting_for
            a_reader_sees_a_snapshot_while_the_run_continues
            concurrent_writers_share_a_new_record
            trials_that_finish_together_are_read_separately
            cleanups_are_added_up_and_leave_the_run_unchanged
        }
    };
    ($run:path: $($rule:ident)+) => {
        $(#[test]
        fn $rule() {
            $run(crate::tests::contract::$rule);
        })+
    };
    ($run:path, #[$attribute:meta]: $($rule:ident)+) => {
        $(#[test]
        #[$attribute]
        fn $rule() {
            $run(crate::tests::contract::$rule);
        })+
    };
}
pub(crate) use contract_tests;

pub(crate) fn events_of_a_run_are_read_in_order(open: OpenStore<'_>) {
    let mut story = RunBuilder::of(RUN);
    let batches = [
        vec![story.started(&["a", "b", "c"]), story.began("a"), story.began("b")],
        vec![story.calls("b", "ls"), story.calls("a", "pwd"), story.finished("b", Outcome::Failed)],
        vec![story.began("c"), story.finished("c", Outcome::Passed), story.waits("a", "agent")],
        vec![story.finished("a", Outcome::Passed), story.over(Summary::default())],
    ];
    let mut store = open(PID);
    for batch in &batches {
        store.append(batch).unwrap();
    }
    assert_eq!(replayed(&*store, RUN), batches.concat());
    let of_b: Vec<u64> = store
        .trial_events(RUN, &id("b").to_string())
        .unwrap()
        .into_iter()
        .filter_map(StoredEvent::known)
        .map(|envelope| envelope.seq)
        .collect();
    assert_eq!(of_b, [3, 4, 6]);
}

pub(crate) fn a_long_unfinished_trial_is_read_completely(open: OpenStore<'_>) {
    let mut story = RunBuilder::of(RUN);
    let mut events = vec![story.started(&["a", "b"]), story.began("a"), story.began("b")];
    for n in 0..700 {
        events.push(story.calls(if n % 3 == 0 { "a" } else { "b" }, &n.to_string()));
    }
    let mut store = open(PID);
    store.append(&events).unwrap();
    assert_eq!(replayed(&*store, RUN), events);
}

pub(crate) fn a_batch_is_stored_completely_or_not_at_all(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    let good = story.finished("a", Outcome::Passed);
    let stray = RunBuilder::of("nobody").began("a");
    assert!(matches!(store.append(&[good.clone(), stray]), Err(StoreError::UnknownRun(run)) if run == "nobody"));
    assert!(store.trials(&TrialFilter::default()).unwrap().is_empty());
    assert_eq!(store.live(RUN).unwrap().len(), 1);
    store.append(std::slice::from_ref(&good)).unwrap();
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 1);
    assert!(store.append(&[good]).is_err(), "a trial has one outcome");
}

pub(crate) fn lists_and_records_round_trip(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
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
    assert_eq!(run.agents, store.info(RUN).unwrap().agents);
    assert_eq!(run.summary, Some(summary_of(&["a"])));
    let counts = |summary: &Summary| (summary.trials, summary.by_outcome, summary.tokens, summary.cost_usd);
    assert_eq!(counts(&store.summary(RUN).unwrap()), counts(&summary_of(&["a"])));
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

pub(crate) fn results_are_counted_case_by_case(open: OpenStore<'_>) {
    const OTHER: &str = "0193a000-0000-7000-8000-000000000002";
    let mut store = open(PID);
    assert!(store.results(&ResultFilter::default()).unwrap().is_empty());
    let mut story = RunBuilder::of(RUN);
    let mut events = vec![story.started(&["a", "ab"])];
    for (case, repetition, outcome) in
        [("a", 1, Outcome::Passed), ("a", 2, Outcome::Failed), ("a", 3, Outcome::Broken), ("ab", 1, Outcome::Undecided)]
    {
        let mut done = story.finished(case, outcome);
        if let Event::TrialFinished(record) = &mut done.event {
            record.repetition = repetition;
            record.id = (&TrialId { repetition, ..id(case) }).into();
            record.flaky = outcome == Outcome::Passed;
            done.trial = Some(Arc::clone(&record.id));
        }
        events.push(done);
    }
    store.append(&events).unwrap();
    let mut story = RunBuilder::of(OTHER);
    story.seq = 100;
    let mut done = story.finished("b", Outcome::Passed);
    if let Event::TrialFinished(record) = &mut done.event {
        record.skill = None;
    }
    store.append(&[story.started(&["b", "c"]), done]).unwrap();

    assert_eq!(
        store.cases().unwrap(),
        ["a", "ab", "b"].map(|case| ("commit".to_owned(), case.to_owned())),
        "only those with a trial"
    );
    let all = ResultFilter { with_cases: 2, ..ResultFilter::default() };
    let results = store.results(&all).unwrap();
    assert_eq!(results.iter().map(|one| one.run.id.as_str()).collect::<Vec<_>>(), [OTHER, RUN]);
    let [a, ab] = &results[1].cases[..] else { panic!("{results:?}") };
    let of_a = OutcomeCounts::of([Outcome::Passed, Outcome::Failed, Outcome::Broken]);
    assert_eq!((a.case.as_str(), a.by_outcome, a.flaky), ("a", of_a, 1));
    assert_eq!((a.tokens, a.cost_usd, a.trials_with_cost, a.agent_ms), (Some(108), Some(3.0), 3, Some(2700)));
    assert_eq!((ab.case.as_str(), ab.by_outcome.undecided), ("ab", 1));
    assert_eq!(a.settings, ab.settings);
    assert_ne!(a.settings, results[0].cases[0].settings, "another skill");

    let of = |suite: Option<&str>, case: Option<&str>, last| {
        let filter =
            ResultFilter { suite: suite.map(str::to_owned), case: case.map(str::to_owned), last, with_cases: 0 };
        let results = store.results(&filter).unwrap();
        results.into_iter().flat_map(|run| run.cases).map(|case| case.case).collect::<Vec<_>>()
    };
    assert_eq!(of(None, Some("a"), None), ["a"]);
    assert_eq!(of(Some("commit"), Some("b"), None), ["b"]);
    assert_eq!(of(Some("commit"), None, None), ["b", "a", "ab"]);
    assert_eq!(of(None, None, Some(1)), ["b"]);
    assert_eq!(of(Some("com"), None, None), [""; 0]);
    assert_eq!(of(None, Some("c"), None), [""; 0]);
    store.append(&[story.over(Summary::default())]).unwrap();
    let cases = |with_cases| store.results(&ResultFilter { with_cases, ..all.clone() }).unwrap()[0].cases.len();
    assert_eq!([0, 1].map(cases), [0, 1], "a run that ended has a summary");
}

pub(crate) fn runs_are_selected_unambiguously(open: OpenStore<'_>) {
    let mut store = open(PID);
    let ids = ["0193a000-0000-7000-8000-0000000000aa", "0193a000-0000-7000-8000-0000000000ab", "0193b000-1"];
    for (n, run) in ids.iter().enumerate() {
        let mut story = RunBuilder::of(run);
        story.seq = n as u64 * 10;
        store.append(&[story.started(&["a"]), story.began("a"), story.finished("a", Outcome::Passed)]).unwrap();
    }
    let runs = store.runs(&RunFilter::default()).unwrap();
    assert_eq!(runs.iter().map(|run| run.short.as_str()).collect::<Vec<_>>(), ["0193b000", ids[1], ids[0]]);
    assert_eq!(store.select("previous").unwrap().id, ids[1]);
    assert_eq!(store.select("0193b").unwrap().id, ids[2]);
    assert!(matches!(store.select("0193a"), Err(StoreError::Select(SelectError::AmbiguousRun { .. }))));
    assert_eq!(
        store.runs(&RunFilter { last: Some(1), before: Some(at(15)), ..RunFilter::default() }).unwrap()[0].id,
        ids[1]
    );

    assert_eq!(store.select_trial("commit::a").unwrap().run, ids[2]);
    assert_eq!(store.select_trial("previous/a").unwrap().run, ids[1]);
    assert_eq!(store.select_trial("commit::a@fake#1").unwrap().run, ids[2]);
    let error = store.select_trial("aa").unwrap_err();
    assert_eq!(error.to_string(), "unknown trial `aa`");

    store.remove(ids[2]).unwrap();
    assert_eq!(store.select("latest").unwrap().id, ids[1]);
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 2);
    assert!(matches!(store.info(ids[2]), Err(StoreError::UnknownRun(_))));
    assert!(matches!(store.remove(ids[2]), Err(StoreError::UnknownRun(_))));
}

pub(crate) fn trials_are_listed_run_by_run(open: OpenStore<'_>) {
    let mut store = open(PID);
    let (mut old, mut new) = (RunBuilder::of(RUN), RunBuilder::of("0193b000-1"));
    new.seq = 10;
    store.append(&[old.started(&["a", "b"]), old.began("a"), old.finished("a", Outcome::Passed)]).unwrap();
    store.append(&[new.started(&["a"]), new.began("a"), new.finished("a", Outcome::Passed)]).unwrap();
    let last = TrialRecord { started_at: at(100), ..record("b", Outcome::Passed) };
    store.append(&[old.began("b"), old.tell(Some("b"), Event::TrialFinished(Box::new(last)))]).unwrap();
    let rows = store.trials(&TrialFilter::default()).unwrap();
    let listed: Vec<(&str, &str)> = rows.iter().map(|row| (row.run.as_str(), row.case.as_str())).collect();
    assert_eq!(listed, [("0193b000-1", "a"), (RUN, "b"), (RUN, "a")]);
}

pub(crate) fn a_reopened_run_keeps_its_start_and_its_finished_trials(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
    let kept = [story.started(&["a", "b", "c"]), story.began("a"), story.finished("a", Outcome::Passed)];
    store.append(&kept).unwrap();
    store.append(&[story.began("b"), story.calls("b", "ls"), story.began("c")]).unwrap();
    store.append(&[story.finished("c", Outcome::Cancelled)]).unwrap();
    let end = Event::RunFinished { summary: Summary::default(), duration_ms: 9, signal: Some("SIGINT".into()) };
    store.append(&[story.tell(None, end)]).unwrap();
    assert!(store.runs(&RunFilter { interrupted: true, ..RunFilter::default() }).unwrap()[0].is_interrupted());

    let lease = store.select("latest").unwrap().lease.unwrap();
    store.reopen(RUN, Some(&lease), at(100)).unwrap();
    assert_eq!(replayed(&*store, RUN), kept);
    let run = store.select("latest").unwrap();
    assert_eq!((run.finished, run.planned, run.finished_at, run.signal, run.duration_ms), (1, 3, None, None, None));
    let lease = Lease { owner: owner(PID), renewed_at: at(100) };
    assert_eq!((run.summary, run.lease, store.live(RUN).unwrap()), (None, Some(lease), vec![]));

    store.append(&[story.began("b"), story.began("c"), story.finished("c", Outcome::Passed)]).unwrap();
    store.append(&[story.finished("b", Outcome::Failed), story.over(summary_of(&["a"]))]).unwrap();
    assert_eq!(store.trial_events(RUN, &id("b").to_string()).unwrap().len(), 2);
    let run = store.select("latest").unwrap();
    assert_eq!((run.finished, run.is_interrupted()), (3, false));
    assert!(store.runs(&RunFilter { interrupted: true, ..RunFilter::default() }).unwrap().is_empty());
    assert!(matches!(store.reopen("x", None, at(0)), Err(StoreError::UnknownRun(_))));
}

pub(crate) fn a_lease_lasts_as_long_as_its_owner_renews_it(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
    let found = || open(PID).select("latest").unwrap().lease.unwrap();
    assert_eq!(found(), Lease { owner: owner(PID), renewed_at: at(2) });
    assert!(found().is_valid(at(62)) && !found().is_valid(at(63)));
    store.renew(RUN, at(50)).unwrap();
    assert!(found().is_valid(at(110)) && !found().is_valid(at(111)));
    assert!(matches!(store.renew("x", at(50)), Err(StoreError::UnknownRun(_))));
}

pub(crate) fn a_run_that_was_taken_over_rejects_its_former_owner(open: OpenStore<'_>) {
    let (mut first, mut second) = (open(1), open(2));
    let mut story = RunBuilder::of(RUN);
    let start = [story.started(&["a"])];
    first.append(&start).unwrap();
    let seen = second.select("latest").unwrap().lease;
    first.renew(RUN, at(50)).unwrap();
    let is_of_first = |error: StoreError| error.to_string().ends_with("now belongs to process 1 on build-7");
    assert!(is_of_first(second.reopen(RUN, seen.as_ref(), at(90)).unwrap_err()), "it was renewed");
    assert!(is_of_first(second.append(&[story.began("a")]).unwrap_err()));

    let seen = second.select("latest").unwrap().lease;
    second.reopen(RUN, seen.as_ref(), at(120)).unwrap();
    assert!(matches!(first.append(&[story.began("a")]), Err(StoreError::Taken { .. })));
    assert!(matches!(first.renew(RUN, at(121)), Err(StoreError::Taken { .. })));
    assert_eq!(replayed(&*second, RUN), start);
    second.append(&[story.began("a"), story.finished("a", Outcome::Passed)]).unwrap();
    assert_eq!(second.select("latest").unwrap().finished, 1);
}

pub(crate) fn events_of_a_running_trial_can_be_rewritten(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
    let events = [story.started(&["a", "b"]), story.began("a"), story.calls("a", "login hunter22"), story.began("b")];
    store.append(&events).unwrap();
    store.append(&[story.calls("b", "echo hunter22")]).unwrap();
    let without = |event: &mut Event| {
        if let Event::Step(Step::ToolCall(call)) = event {
            call.input = json!({ "command": "[masked]" });
        }
    };
    store.rewrite(RUN, &id("a").to_string(), &mut { without }).unwrap();
    let done = [story.calls("a", "ls"), story.finished("a", Outcome::Passed), story.finished("b", Outcome::Passed)];
    store.append(&done).unwrap();
    store.append(&[story.over(summary_of(&["a", "b"]))]).unwrap();
    let commands = |case: &str| -> Vec<String> {
        let events = store.trial_events(RUN, &id(case).to_string()).unwrap();
        let steps = events.iter().filter_map(|event| match event.step()? {
            Step::ToolCall(call) => Some(call.input["command"].as_str().unwrap().to_owned()),
            _ => None,
        });
        steps.collect()
    };
    assert_eq!((commands("a"), commands("b")), (vec!["[masked]".into(), "ls".into()], vec!["echo hunter22".into()]));
    assert!(matches!(store.verify(RUN).unwrap(), Verification::Intact { trials: 2, .. }));
}

pub(crate) fn judgements_are_kept_until_they_are_too_old(open: OpenStore<'_>) {
    let of = |since: i64| open(PID).judgements(at(since)).unwrap();
    let (first, second) = (of(0), of(0));
    assert_eq!(first.get("k").unwrap(), None);
    first.put("k", "one", at(100)).unwrap();
    second.put("k", "two", at(200)).unwrap();
    first.put("old", "three", at(100)).unwrap();
    let found = (first.get("k").unwrap(), second.get("old").unwrap());
    assert_eq!((found.0.as_deref(), found.1.as_deref()), (Some("two"), Some("three")));
    drop((first, second));
    let later = of(150);
    assert_eq!((later.get("k").unwrap().as_deref(), later.get("old").unwrap()), (Some("two"), None));
}

pub(crate) fn a_running_trial_reports_what_it_is_waiting_for(open: OpenStore<'_>) {
    let mut store = open(PID);
    let mut story = RunBuilder::of(RUN);
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
    assert_eq!((run.finished_at, run.summary), (None, None));
    let live = store.live(RUN).unwrap();
    assert_eq!(
        live.iter().map(|trial| trial.id.as_str()).collect::<Vec<_>>(),
        ["commit::b@fake#1", "commit::a@fake#1"]
    );
    assert_eq!((live[0].waiting_on.as_deref(), live[0].waiting_since), (Some("agent"), Some(at(5))));
    assert!(matches!(&live[0].last_step, Some(Step::ToolCall(call)) if call.name == "Bash"));
    assert_eq!((live[1].waiting_on.as_deref(), live[1].since), (None, at(3)));

    let ready = Event::SandboxReady { path: "/tmp/x".into(), skill: None, duration_ms: 5 };
    store.append(&[story.waits("a", "sandbox"), story.tell(Some("a"), ready)]).unwrap();
    let waits = store.live(RUN).unwrap().swap_remove(1).waiting_on;
    assert_eq!(waits.as_deref(), Some("agent"), "a silent agent is not a sandbox");

    let again = story.began("b");
    store.append(&[Envelope { attempt: Some(2), ..again }]).unwrap();
    let live = store.live(RUN).unwrap();
    assert_eq!((live[0].attempt, live[0].waiting_on.as_deref()), (2, None), "another attempt starts afresh");
}

pub(crate) fn a_reader_sees_a_snapshot_while_the_run_continues(open: OpenStore<'_>) {
    let mut writer = open(PID);
    let mut story = RunBuilder::of(RUN);
    writer.append(&[story.started(&["a", "b"]), story.began("a"), story.calls("a", "ls")]).unwrap();

    let reader = open(PID);
    let mut events = reader.events(RUN).unwrap();
    assert!(matches!(events.next(), Some(Ok(StoredEvent::Known(envelope))) if envelope.seq == 1));
    writer.append(&[story.finished("a", Outcome::Passed), story.began("b")]).unwrap();
    assert_eq!(events.by_ref().map(|event| event.unwrap().known().unwrap().seq).collect::<Vec<_>>(), [2, 3]);
    drop(events);
    assert_eq!(replayed(&*reader, RUN).len(), 5);
    assert_eq!(reader.live(RUN).unwrap()[0].id, id("b").to_string());
}

pub(crate) fn concurrent_writers_share_a_new_record(open: OpenStore<'_>) {
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|n| {
                scope.spawn(move || {
                    let mut store = open(PID);
                    let mut story = RunBuilder::of(&format!("run-{n}"));
                    store.append(&[story.started(&["a"]), story.began("a")]).unwrap();
                    store.append(&[story.finished("a", Outcome::Passed)]).unwrap();
                })
            })
            .collect();
        for writer in writers {
            writer.join().unwrap();
        }
    });
    let store = open(PID);
    assert_eq!(store.trials(&TrialFilter::default()).unwrap().len(), 8);
    for run in store.runs(&RunFilter::default()).unwrap() {
        assert_eq!(replayed(&*store, &run.id).len(), 3);
    }
}

pub(crate) fn trials_that_finish_together_are_read_separately(open: OpenStore<'_>) {
    let mut store = open(PID);
    let (names, events) = many_trials();
    store.append(&events).unwrap();
    assert_eq!(replayed(&*store, RUN), events);
    for name in &names {
        let trial = id(name).to_string();
        assert_eq!(store.trial(RUN, &trial).unwrap().case.to_string(), *name);
        assert_eq!(store.trial_events(RUN, &trial).unwrap().len(), 3);
    }
    assert_eq!(store.runs(&RunFilter::default()).unwrap()[0].finished, 300);
    let ids: Vec<String> = names.iter().rev().map(|name| id(name).to_string()).collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    let read: Vec<String> = store.records(RUN, &ids).unwrap().into_iter().map(|record| record.id.to_string()).collect();
    assert_eq!(read, ids, "in the requested order");
}

pub(crate) fn cleanups_are_added_up_and_leave_the_run_unchanged(open: OpenStore<'_>) {
    let mut story = RunBuilder::of(RUN);
    let mut store = open(PID);
    store
        .append(&[story.started(&["a"]), story.finished("a", Outcome::Passed), story.over(Summary::default())])
        .unwrap();
    let before = store.verify(RUN).unwrap();
    let removed =
        |branch: &str| SideEffects { remote: "/r".into(), branches: vec![branch.into()], ..Default::default() };
    assert_eq!(store.cleaned(RUN).unwrap(), []);
    store.record_cleanup(RUN, &[removed("x")]).unwrap();
    store.record_cleanup(RUN, &[removed("y")]).unwrap();
    assert_eq!(open(PID).cleaned(RUN).unwrap(), [removed("x"), removed("y")]);
    assert_eq!(store.verify(RUN).unwrap(), before);
    store.remove(RUN).unwrap();
    assert!(store.cleaned(RUN).is_err());
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

/// Writes envelopes with consecutive numbers, a second apart.
pub(crate) struct RunBuilder {
    run: String,
    pub(crate) seq: u64,
}

impl RunBuilder {
    pub(crate) fn of(run: &str) -> Self {
        Self { run: run.to_owned(), seq: 0 }
    }

    pub(crate) fn tell(&mut self, trial: Option<&str>, event: Event) -> Envelope {
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

    pub(crate) fn started(&mut self, cases: &[&str]) -> Envelope {
        let info = RunInfo {
            id: self.run.clone(),
            label: Some("nightly".into()),
            regrade_of: None,
            started_at: at(self.seq as i64),
            trialrun_version: "0.1.0".into(),
            settings: serde_json::Map::new(),
            agents: vec![model::AgentInfo {
                name: "fake".into(),
                version: None,
                model: None,
                reasoning_effort: None,
                base_url: None,
            }],
            skills: vec![],
            trials: cases.iter().map(|case| id(case)).collect(),
            decisions: 0,
            jobs: 2,
            invocation: None,
            origin: None,
            shard: None,
            missing_shards: None,
            isolation: None,
        };
        self.tell(None, Event::RunStarted(Box::new(info)))
    }

    pub(crate) fn began(&mut self, case: &str) -> Envelope {
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

    pub(crate) fn waits(&mut self, case: &str, on: &str) -> Envelope {
        self.tell(Some(case), Event::Waiting { on: on.into() })
    }

    pub(crate) fn calls(&mut self, case: &str, command: &str) -> Envelope {
        let call = ToolCall::new("c1", "Bash", json!({ "command": command }), "m1");
        self.tell(Some(case), Event::Step(Step::ToolCall(call)))
    }

    pub(crate) fn finished(&mut self, case: &str, outcome: Outcome) -> Envelope {
        self.tell(Some(case), Event::TrialFinished(Box::new(record(case, outcome))))
    }

    pub(crate) fn over(&mut self, summary: Summary) -> Envelope {
        self.tell(None, Event::RunFinished { summary, duration_ms: 5000, signal: None })
    }
}

pub(crate) fn id(case: &str) -> TrialId {
    TrialId { suite: "commit".into(), case: case.into(), arm: "fake".into(), repetition: 1 }
}

pub(crate) fn record(case: &str, outcome: Outcome) -> TrialRecord {
    let tokens = Tokens { input: 10, cache_read: 5, cache_write: 1, output: 2, reasoning: None };
    let attempt = AttemptRecord {
        outcome,
        usage: Some(tokens),
        cost_usd: Some(0.5),
        duration_ms: 500,
        ..AttemptRecord::default()
    };
    TrialRecord {
        id: (&id(case)).into(),
        suite: "commit".into(),
        case: case.into(),
        title: None,
        tags: Vec::new(),
        quarantine: None,
        arm: "fake".into(),
        agent: "fake".into(),
        model: Some("m".into()),
        variant: None,
        repetition: 1,
        auto_trials: None,
        file: Some("a.yaml".into()),
        line: Some(3),
        outcome,
        flaky: false,
        fault: None,
        reason: Some("why".into()),
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
        judge_sampled: None,
        user: None,
        replies: Vec::new(),
        turn_count: 3,
        tool_calls: vec![],
        calls_unreported: false,
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
        network: Some("none".to_owned()),
        model_traffic: Some(Box::new(model::ModelTraffic { requests: 2, ..model::ModelTraffic::default() })),
        cassette: Some(Box::new(model::CassetteUse { file: "c".into(), recorded: true, replayed: 1, live: 2 })),
        egress: vec![EgressAttempt {
            host: "a.example".to_owned(),
            port: Some(443),
            verdict: EgressVerdict::Refused,
            way: EgressWay::Proxy,
            is_model: false,
            by_command: false,
            reason: Some("not allowed by the network policy".to_owned()),
        }],
        injected_faults: Vec::new(),
        mock_calls: Vec::new(),
        integrity: vec![],
        files_changed: vec![],
        sandbox: None,
        errors: vec![],
        warnings: vec![],
    }
}

pub(crate) fn replayed(store: &dyn Store, run: &str) -> Vec<Envelope> {
    let mut events = Vec::new();
    assert_eq!(store.replay(run, &mut |envelope| events.push(envelope.clone())).unwrap(), 0);
    events
}

pub(crate) fn summary_of(cases: &[&str]) -> Summary {
    let mut summary = Summary::default();
    for case in cases {
        summary.add(&record(case, Outcome::Passed));
    }
    summary
}

/// Returns 300 finished trials that run two at a time: their cases and all events of their run.
pub(crate) fn many_trials() -> (Vec<String>, Vec<Envelope>) {
    let mut story = RunBuilder::of(RUN);
    let names: Vec<String> = (0..300).map(|n| format!("c{n}")).collect();
    let mut events = vec![story.started(&["c0"])];
    for pair in names.chunks(2) {
        events.extend(pair.iter().map(|name| story.began(name)));
        events.extend(pair.iter().map(|name| story.calls(name, &name.repeat(100))));
        events.extend(pair.iter().map(|name| story.finished(name, Outcome::Passed)));
    }
    (names, events)
}
