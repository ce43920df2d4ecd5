//! Trials that run elsewhere, at a place that plays a script.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use model::{AttemptRecord, Case, Envelope, Event, Excerpt, Outcome, RunInfo, Suite, TrialRecord, Trials, UserMessage};
use sandbox::supervise::Supervisor;
use sandbox::{BoxFuture, Breakage, Host};
use tokio::sync::{mpsc, watch};
use trialrun_runner::{
    Control, Listener, Place, PlaceState, PlanRequest, PlannedTrial, Progress, Selection, Settings, plan,
};

/// Answers each submission of a trial with the progress that `play` returns for it and its lost attempts.
struct Script {
    play: fn(&PlannedTrial, &[AttemptRecord]) -> Vec<Progress>,
    state: watch::Sender<PlaceState>,
    /// What the dispatcher asked for.
    asked: Mutex<Vec<&'static str>>,
    /// Cases of the trials that were handed over.
    submitted: Mutex<Vec<String>>,
    waiting: Mutex<Waiting>,
}

/// Trials that were handed over; `None` once they are taken back.
type Waiting = Option<Vec<mpsc::Sender<Progress>>>;

impl Script {
    fn ask(&self, what: &'static str) {
        self.asked.lock().unwrap().push(what);
    }

    fn give_back(&self) {
        for waiting in self.waiting.lock().unwrap().take().into_iter().flatten() {
            // Fails for a trial that has its outcome.
            let _ = waiting.try_send(Progress::Withdrawn(None));
        }
    }
}

impl Place for Script {
    fn begin<'a>(&'a self, _: &'a RunInfo) -> BoxFuture<'a, Result<(), Breakage>> {
        self.ask("begin");
        Box::pin(std::future::ready(Ok(())))
    }

    fn state(&self) -> watch::Receiver<PlaceState> {
        self.state.subscribe()
    }

    fn requirements(&self, trial: &PlannedTrial) -> Vec<String> {
        vec![trial.case_id.to_string()]
    }

    fn submit(&self, trial: &PlannedTrial, earlier: &[AttemptRecord]) -> mpsc::Receiver<Progress> {
        self.submitted.lock().unwrap().push(trial.case_id.to_string());
        let (sender, receiver) = mpsc::channel(8);
        for progress in (self.play)(trial, earlier) {
            sender.try_send(progress).unwrap();
        }
        match &mut *self.waiting.lock().unwrap() {
            Some(waiting) => waiting.push(sender),
            None => sender.try_send(Progress::Withdrawn(None)).unwrap(),
        }
        receiver
    }

    fn withdraw(&self) {
        self.ask("withdraw");
        self.give_back();
    }

    fn stop(&self, _: bool) {
        self.ask("stop");
        self.give_back();
    }

    fn end(&self) -> BoxFuture<'_, ()> {
        self.ask("end");
        Box::pin(std::future::ready(()))
    }
}

/// Keeps all events.
#[derive(Default)]
struct Log {
    events: Mutex<Vec<Envelope>>,
    is_refused: bool,
    /// Number of times that it says that it cannot store events.
    late: AtomicUsize,
}

impl Listener for Log {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        self.events.lock().unwrap().push(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        self.events.lock().unwrap().push(event);
    }

    fn can_begin(&self) -> bool {
        !self.is_refused
    }

    fn is_late(&self) -> bool {
        self.late.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |late| late.checked_sub(1)).is_ok()
    }
}

/// Runs cases with these ids at a place that plays `play`. Returns the events, and what the place was asked for.
fn run(
    ids: &[&str],
    play: fn(&PlannedTrial, &[AttemptRecord]) -> Vec<Progress>,
    controls: &[Control],
) -> (Vec<Envelope>, Vec<&'static str>) {
    let (events, place) = run_with(Log::default(), ids, 1, play, controls);
    let asked = place.asked.lock().unwrap().clone();
    (events, asked)
}

/// Runs cases with these ids so many times. Returns the events and the place.
fn run_with(
    log: Log,
    ids: &[&str],
    trials: u64,
    play: fn(&PlannedTrial, &[AttemptRecord]) -> Vec<Progress>,
    controls: &[Control],
) -> (Vec<Envelope>, Arc<Script>) {
    let case = |id: &&str| {
        let mut case = Case::new(*id, Excerpt::of_file("chat.yaml"));
        case.messages = vec![UserMessage::text("Hello.")];
        Arc::new(case)
    };
    let suite = Suite {
        name: "chat".into(),
        path: "chat.yaml".into(),
        format: "scenario",
        cases: ids.iter().map(case).collect(),
    };
    let mut settings = Settings::default();
    settings.arms.agents = vec!["fake".to_owned()];
    settings.arms.trials = Some(Trials::Fixed(trials));
    let (mut plan, _) = plan(&PlanRequest {
        suites: &[suite],
        settings: &settings,
        selection: &Selection::default(),
        cwd: Path::new("/"),
        read_script: Arc::new(|_| Err(Vec::new())),
        modules: script::Library::new(),
    });
    let place = Arc::new(Script {
        play,
        state: watch::channel(PlaceState::default()).0,
        asked: Mutex::default(),
        submitted: Mutex::default(),
        waiting: Mutex::new(Some(Vec::new())),
    });
    plan.place = Some(Arc::<Script>::clone(&place));
    let supervisor = Supervisor::unchecked("/none").unwrap();
    let host = Host { env: [].into(), home: None, temp: std::env::temp_dir(), supervisor };
    let info = serde_json::json!({
        "id": "r", "label": null, "started_at": "2026-01-01T00:00:00Z", "trialrun_version": "1", "settings": {},
        "agents": [], "skills": [], "trials": [], "jobs": 1,
    });
    let log = Arc::new(log);
    let (sender, receiver) = mpsc::unbounded_channel();
    controls.iter().for_each(|control| sender.send(control.clone()).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let listener = Arc::<Log>::clone(&log);
    let run = trialrun_runner::run(plan, Arc::new(host), serde_json::from_value(info).unwrap(), receiver, listener);
    runtime.block_on(run).unwrap();
    let events = std::mem::take(&mut *log.events.lock().unwrap());
    (events, place)
}

/// Returns the outcome of a trial as a worker sends it.
fn finished(trial: &PlannedTrial, earlier: &[AttemptRecord], version: &str) -> Progress {
    let (attempt, id) = (earlier.len() as u32 + 1, trial.id());
    let record = TrialRecord {
        id: (&id).into(),
        suite: id.suite.clone(),
        case: id.case.clone(),
        arm: id.arm.clone(),
        agent: "fake".to_owned(),
        agent_version: Some(version.to_owned()),
        repetition: 1,
        outcome: Outcome::Passed,
        attempts: earlier.to_vec(),
        ..TrialRecord::default()
    };
    let waits = Event::Waiting { on: "agent".to_owned() };
    Progress::Events(vec![(attempt, waits), (attempt, Event::TrialFinished(Box::new(record)))])
}

fn records(events: &[Envelope]) -> Vec<&TrialRecord> {
    let record = |event| match event {
        &Envelope { event: Event::TrialFinished(ref record), .. } => Some(&**record),
        _ => None,
    };
    events.iter().filter_map(record).collect()
}

#[test]
fn a_lost_attempt_counts_as_broken_and_is_repeated() {
    let (events, asked) = run(
        &["a"],
        |trial, earlier| match earlier {
            [] => vec![
                Progress::Events(vec![(1, Event::Waiting { on: "x".into() })]),
                Progress::Lost("it is gone".into()),
            ],
            earlier => vec![finished(trial, earlier, "1")],
        },
        &[],
    );
    let [record] = records(&events)[..] else { panic!("{events:?}") };
    assert_eq!((record.outcome, record.attempts.len()), (Outcome::Passed, 1));
    assert_eq!(
        (record.attempts[0].outcome, record.attempts[0].reason.as_deref()),
        (Outcome::Broken, Some("it is gone"))
    );
    let attempts: Vec<Option<u32>> = events.iter().map(|event| event.attempt).collect();
    assert_eq!(attempts, [None, Some(1), Some(1), Some(2), Some(2), None]);
    assert!(matches!(&events[2].event, Event::TrialRetried { reason } if reason == "it is gone"));
    assert_eq!(asked, ["begin", "end"]);
}

#[test]
fn a_trial_that_loses_its_process_each_time_is_broken() {
    let (events, _) = run(&["a"], |_, _| vec![Progress::Lost("gone".into())], &[]);
    let [record] = records(&events)[..] else { panic!("{events:?}") };
    assert_eq!((record.outcome, record.attempts.len()), (Outcome::Broken, 3));
    let (events, _) = run(&["a"], |_, _| vec![Progress::Refused(Breakage::environment("no worker"))], &[]);
    assert_eq!(records(&events)[0].reason.as_deref(), Some("no worker"));
}

#[test]
fn another_version_of_the_agent_is_a_warning() {
    let play = |trial: &PlannedTrial, earlier: &[AttemptRecord]| {
        vec![finished(trial, earlier, if &*trial.case_id == "a" { "1" } else { "2" })]
    };
    let (events, _) = run(&["a", "b"], play, &[]);
    let warnings: Vec<&String> = records(&events).iter().flat_map(|record| &record.warnings).collect();
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("in other trials of the arm `fake`"), "{warnings:?}");
}

#[test]
fn trials_that_have_not_started_are_taken_back_when_the_run_is_stopped() {
    let (events, asked) = run(&["a", "b"], |_, _| Vec::new(), &[Control::Stop("SIGINT".into())]);
    let records = records(&events);
    assert_eq!(records.len(), 2);
    for record in records {
        let reason = Some("the run was stopped");
        assert_eq!((record.outcome, record.reason.as_deref()), (Outcome::Cancelled, reason));
    }
    assert_eq!(asked, ["begin", "stop", "end"]);
}

#[test]
fn no_trial_starts_if_the_start_of_the_run_cannot_be_recorded() {
    let log = Log { is_refused: true, ..Log::default() };
    let (events, place) = run_with(log, &["a"], 1, |trial, earlier| vec![finished(trial, earlier, "1")], &[]);
    assert_eq!(records(&events)[0].outcome, Outcome::Cancelled);
    assert_eq!(*place.asked.lock().unwrap(), ["begin", "end"]);
}

#[test]
fn no_trial_starts_while_events_cannot_be_stored() {
    let play = |trial: &PlannedTrial, earlier: &[AttemptRecord]| vec![finished(trial, earlier, "1")];
    let late = |times| Log { late: AtomicUsize::new(times), ..Log::default() };
    let (events, _) = run_with(late(2), &["a"], 1, play, &[]);
    assert_eq!(records(&events)[0].outcome, Outcome::Passed, "it starts later");
    let stop = [Control::Stop("SIGINT".into())];
    let (events, place) = run_with(late(usize::MAX), &["a"], 1, play, &stop);
    assert_eq!(records(&events)[0].outcome, Outcome::Cancelled);
    assert_eq!(place.submitted.lock().unwrap().len(), 0);
}

#[test]
fn only_the_next_trials_of_each_kind_are_handed_over() {
    let stop = [Control::Stop("SIGINT".into())];
    let (events, place) = run_with(Log::default(), &["a", "b"], 1200, |_, _| Vec::new(), &stop);
    assert_eq!(records(&events).len(), 2400);
    let submitted = place.submitted.lock().unwrap();
    for case in ["a", "b"] {
        assert_eq!(submitted.iter().filter(|submitted| *submitted == case).count(), 1000, "{case}");
    }
    let play = |trial: &PlannedTrial, earlier: &[AttemptRecord]| vec![finished(trial, earlier, "1")];
    let (events, place) = run_with(Log::default(), &["a"], 1200, play, &[]);
    assert_eq!((records(&events).len(), place.submitted.lock().unwrap().len()), (1200, 1200));
}
