//! Tests of the statements on a real server. Leases expire because their times are moved, not because time passes.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use runner::{Place as _, PlannedTrial, Progress};
use sandbox::Host;
use sandbox::supervise::Supervisor;
use session::{Overrides, Place, Session};
use store::postgres::Settings;
use testkit::PostgresServer;
use tokio::runtime::Runtime;

use crate::bundle::{Bundle, BundleFile};
use crate::coordinator::{Coordinator, CoordinatorOptions};
use crate::database::Database;
use crate::statements::Announcement;
use crate::statements::coordinator::{LostTrial, NewRun, NewTrial};
use crate::statements::worker::{Claim, Order};

/// A queue of its own.
struct Queue {
    settings: Settings,
    runtime: Runtime,
    database: Database,
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

fn bundle(content: &str) -> Bundle {
    Bundle::of(vec![BundleFile::new("a.yaml", content.as_bytes(), false).unwrap()])
}

fn run(id: &str) -> NewRun<'_> {
    NewRun {
        id,
        label: None,
        spec: "{}",
        program: "1",
        judge: None,
        caps: &[],
        max_cost: None,
        max_tokens: None,
        spent_cost: 0.0,
        spent_tokens: 0.0,
        coordinator: "c",
    }
}

fn trial(id: &str, needs: &[&str], caps: &[&str]) -> NewTrial {
    NewTrial { id: id.to_owned(), spec: "{}".into(), needs: words(needs), caps: words(caps), earlier: "[]".into() }
}

fn worker(id: &str, has: &[&str]) -> Announcement {
    Announcement { id: id.into(), host: "h".into(), pid: 1, program: "1".into(), has: words(has), slots: 4 }
}

impl Queue {
    fn new() -> Self {
        let settings = Settings::from_url(&PostgresServer::shared().url()).unwrap();
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        let database = runtime.block_on(Database::open(&settings, None)).unwrap();
        Self { settings, runtime, database }
    }

    fn wait<T>(&self, work: impl Future<Output = Result<T, crate::QueueError>>) -> T {
        self.runtime.block_on(work).unwrap()
    }

    fn sql(&self, sql: &str) {
        self.runtime.block_on(async { self.database.connection().await.unwrap().batch_execute(sql).await.unwrap() });
    }

    fn count(&self, sql: &str) -> i64 {
        self.runtime
            .block_on(async { self.database.connection().await.unwrap().query_one(sql, &[]).await.unwrap().get(0) })
    }

    /// Enters a run with these trials.
    fn enter(&self, run: &NewRun<'_>, trials: &[NewTrial]) {
        self.wait(self.database.enter_run(run, &bundle(run.id)));
        self.wait(self.database.submit(run.id, trials));
    }

    fn claim(&self, worker: &Announcement) -> Option<Claim> {
        self.wait(self.database.claim(worker, &[]))
    }

    /// Returns the id of the trial that the worker claims next.
    fn claimed(&self, worker: &Announcement) -> Option<String> {
        self.claim(worker).map(|claim| claim.trial)
    }

    fn finish(&self, claim: &Claim, worker: &str, cost: f64) -> bool {
        self.wait(self.database.finish(claim, worker, (1, b"end"), (cost, 0.0)))
    }
}

#[test]
fn each_trial_is_claimed_once_however_many_connections_claim() {
    let queue = Queue::new();
    let trials: Vec<NewTrial> = (0..40).map(|number| trial(&number.to_string(), &[], &[])).collect();
    queue.enter(&run("r"), &trials);
    let claims = (0..4).map(|number| {
        let settings = queue.settings.clone();
        queue.runtime.spawn(async move {
            let (database, worker) = (Database::open(&settings, None).await.unwrap(), worker(&number.to_string(), &[]));
            let mut claimed = Vec::new();
            while let Some(claim) = database.claim(&worker, &[]).await.unwrap() {
                claimed.push(claim.trial);
            }
            claimed
        })
    });
    let claims: Vec<_> = claims.collect();
    let claimed: Vec<String> = claims.into_iter().flat_map(|claims| queue.runtime.block_on(claims).unwrap()).collect();
    assert_eq!((claimed.len(), claimed.iter().collect::<BTreeSet<_>>().len()), (40, 40));
}

#[test]
fn a_worker_whose_lease_has_expired_cannot_finish_the_trial() {
    let queue = Queue::new();
    queue.enter(&run("r"), &[trial("t", &[], &[])]);
    let [slow, other] = ["slow", "other"].map(|id| worker(id, &[]));
    let first = queue.claim(&slow).unwrap();
    queue.wait(queue.database.append(&first, 0, b"begin"));
    queue.sql("UPDATE queue_trials SET lease_until = now() - interval '1 second'");
    // The coordinator may be dead at that time.
    assert_eq!(queue.wait(queue.database.heartbeat(&slow)), [], "an expired lease is not extended");
    assert!(!queue.finish(&first, "slow", 5.0), "its time was the time of a worker that did not work");
    let lost = queue.wait(queue.database.sweep("r"));
    assert_eq!(lost, [LostTrial { trial: "t".into(), reason: "the worker on h (process 1) no longer answers".into() }]);
    assert_eq!(queue.claimed(&other), None, "it waits for its coordinator");
    queue.wait(queue.database.submit("r", &[NewTrial { earlier: "[1]".into(), ..trial("t", &[], &[]) }]));
    let second = queue.claim(&other).unwrap();
    assert_eq!((first.attempt, second.attempt, second.earlier.as_str()), (1, 2, "[1]"));

    assert_eq!(queue.wait(queue.database.heartbeat(&slow)), []);
    assert!(!queue.finish(&first, "slow", 5.0), "it is fenced off");
    assert!(!queue.finish(&Claim { attempt: 2, ..first }, "slow", 5.0), "the lease is another worker's");
    assert!(queue.finish(&second, "other", 1.0));
    assert!(queue.finish(&second, "other", 1.0), "the answer to the first may have been lost");
    let chunks = |attempt| queue.wait(queue.database.chunks("r", &[("t".into(), attempt, 0)])).len();
    assert_eq!((chunks(1), chunks(2)), (2, 1), "what the late worker sent is kept apart");
    let lost = "SELECT count(*) FROM queue_attempts WHERE attempt = 1 AND state = 'lost' AND is_late";
    assert_eq!(queue.count(lost), 1);
    assert_eq!(queue.count("SELECT spent_cost::bigint FROM queue_runs"), 1, "only what counts is spent");
    queue.wait(queue.database.end_run("r"));
    assert_eq!(queue.count("SELECT count(*) FROM queue_events WHERE attempt = 1"), 2, "the evidence stays");
    assert_eq!(queue.count("SELECT count(*) FROM queue_events WHERE attempt = 2"), 0);
    assert_eq!(queue.count("SELECT count(*) FROM queue_blobs"), 0);
}

#[test]
fn limits_hold_over_all_workers_and_runs() {
    let queue = Queue::new();
    let caps = [("codex".to_owned(), 2)];
    let ids = ["a", "b", "c", "d"];
    let trials = ids.map(|id| trial(id, &[], &[if id == "d" { "fake" } else { "codex" }]));
    queue.enter(&NewRun { caps: &caps, ..run("r") }, &trials);
    queue.enter(&NewRun { caps: &caps, ..run("s") }, &[trial("e", &[], &["codex"])]);
    let workers = ["1", "2"].map(|id| worker(id, &[]));
    let first = queue.claim(&workers[0]).unwrap();
    let next: Vec<Option<String>> = (1..4).map(|turn| queue.claimed(&workers[turn % 2])).collect();
    assert_eq!(next, [Some("b".into()), Some("d".into()), None]);
    assert!(queue.finish(&first, "1", 0.0));
    assert_eq!(queue.claimed(&workers[1]).as_deref(), Some("c"));
    assert_eq!(queue.claimed(&workers[1]), None, "the limit also counts trials of the other run");
    let runs = queue.wait(queue.database.queued_runs());
    let obstacles = queue.wait(queue.database.obstacles(&runs[1])).unwrap();
    assert_eq!((obstacles.full, obstacles.is_over_budget), (vec![("codex".to_owned(), 2)], false));
    let waiting = queue.wait(queue.database.waiting_groups(&runs[1]));
    assert_eq!(waiting.iter().map(|group| (&*group.trial, group.count)).collect::<Vec<_>>(), [("e", 1)]);
}

#[test]
fn limits_hold_however_many_connections_claim() {
    let queue = Queue::new();
    let trials: Vec<NewTrial> = (0..20).map(|number| trial(&number.to_string(), &[], &["codex"])).collect();
    queue.enter(&NewRun { caps: &[("codex".to_owned(), 3)], ..run("r") }, &trials);
    let settings = Arc::new(queue.settings.clone());
    let claims: Vec<_> = (0..8)
        .map(|number| {
            let settings = Arc::clone(&settings);
            queue.runtime.spawn(async move {
                let database = Database::open(&settings, None).await.unwrap();
                database.claim(&worker(&number.to_string(), &[]), &[]).await.unwrap().is_some()
            })
        })
        .collect();
    let claimed = claims.into_iter().map(|claim| queue.runtime.block_on(claim).unwrap());
    assert_eq!(claimed.filter(|is_claimed| *is_claimed).count(), 3);
}

#[test]
fn no_trial_starts_once_the_budget_is_used_up() {
    let queue = Queue::new();
    let trials = ["a", "b", "c"].map(|id| trial(id, &[], &[]));
    queue.enter(&NewRun { max_cost: Some(1.0), spent_cost: 0.5, ..run("r") }, &trials);
    let worker = worker("w", &[]);
    let first = queue.claim(&worker).unwrap();
    let second = queue.claim(&worker).unwrap();
    assert!(queue.finish(&first, "w", 0.6));
    assert_eq!(queue.claimed(&worker), None);
    assert!(queue.finish(&second, "w", 0.6), "what runs is finished");
    assert!(queue.wait(queue.database.set_budget("r", Some(2.0), None)));
    let situation = queue.wait(queue.database.coordinate("r", "c", "1"));
    assert_eq!((situation.max_cost, situation.max_tokens), (Some(2.0), None));
    assert_eq!(queue.claimed(&worker).as_deref(), Some("c"), "its budget was raised");
}

#[test]
fn a_trial_goes_only_to_a_worker_that_has_what_it_needs() {
    let queue = Queue::new();
    queue.enter(&run("r"), &[trial("t", &["agent:codex", "label:gpu"], &[])]);
    assert_eq!(queue.claimed(&worker("w", &["agent:codex"])), None);
    let able = worker("w", &["agent:codex", "agent:fake", "label:gpu"]);
    assert_eq!(queue.claimed(&Announcement { program: "2".into(), ..able.clone() }), None, "another version");
    assert!(queue.wait(queue.database.claim(&able, &words(&["r"]))).is_none(), "a run that it cannot prepare");
    assert!(queue.wait(queue.database.set_state("r", &["running"], "paused")));
    assert_eq!(queue.claimed(&able), None, "a paused run");
    assert!(queue.wait(queue.database.set_state("r", &["paused"], "running")));
    queue.sql("UPDATE queue_runs SET coordinator_until = now() - interval '1 second'");
    assert_eq!(queue.claimed(&able), None, "a run without a coordinator");
    queue.wait(queue.database.coordinate("r", "c", "1"));
    assert_eq!(queue.claimed(&able).as_deref(), Some("t"));
}

#[test]
fn heartbeats_bring_orders_to_workers() {
    let queue = Queue::new();
    queue.enter(&run("r"), &["a", "b"].map(|id| trial(id, &[], &[])));
    let worker = worker("w", &[]);
    let claim = queue.claim(&worker).unwrap();
    let orders = || queue.wait(queue.database.heartbeat(&worker)).iter().map(|held| held.order).collect::<Vec<_>>();
    assert_eq!(orders(), [Order::Continue]);
    assert_eq!(queue.wait(queue.database.coordinate("r", "c", "1")).slots, 4);
    for trial in ["a", "b"] {
        assert_eq!(queue.wait(queue.database.cancel_trial("r", trial)), [trial]);
    }
    assert_eq!(orders(), [Order::Stop]);
    assert_eq!(queue.claimed(&worker), None, "a cancelled trial does not start");
    assert_eq!(queue.wait(queue.database.withdraw("r", false)), ["b"]);
    queue.wait(queue.database.set_state("r", &["running"], "killing"));
    assert_eq!(orders(), [Order::Kill]);
    let [run] = queue.wait(queue.database.queued_runs()).try_into().unwrap();
    assert_eq!((run.waiting, run.running), (0, vec![("a".to_owned(), "h (process 1)".to_owned())]));
    queue.wait(queue.database.release(&claim, "w", "no disk"));
    queue.wait(queue.database.refuse(&claim, "w", "it is given back already"));
    assert_eq!(queue.wait(queue.database.refusals("r")), []);
    let [lost] = queue.wait(queue.database.sweep("r")).try_into().unwrap();
    assert_eq!(lost.reason, "the worker on h (process 1) gave the trial back: no disk");
}

#[test]
fn pauses_of_providers_are_shared_until_they_end() {
    let queue = Queue::new();
    let share = |pauses: &[(&str, i64)]| {
        let pauses: Vec<(String, i64)> = pauses.iter().map(|(account, rest)| ((*account).to_owned(), *rest)).collect();
        let mut shared = queue.wait(queue.database.share_pauses(&pauses));
        shared.sort();
        shared
    };
    assert_eq!(share(&[]), []);
    share(&[("a", 60_000), ("b", 90_000)]);
    let shared = share(&[("a", 1000)]);
    let [(a, of_a), (b, of_b)] = &shared[..] else { panic!("{shared:?}") };
    assert_eq!((a.as_str(), b.as_str()), ("a", "b"));
    assert!((30_000..=60_000).contains(of_a) && (60_000..=90_000).contains(of_b), "the longer one counts: {shared:?}");
    queue.sql("UPDATE queue_pauses SET until = now() - interval '1 second' WHERE account = 'a'");
    assert_eq!(share(&[]).len(), 1);
}

#[test]
fn a_run_without_a_coordinator_can_be_taken_over() {
    let queue = Queue::new();
    queue.enter(&run("r"), &["done", "held", "waits"].map(|id| trial(id, &[], &[])));
    let worker = worker("w", &[]);
    let done = queue.claim(&worker).unwrap();
    assert!(queue.finish(&done, "w", 0.0));
    queue.wait(queue.database.take("r", &words(&["done"])));
    queue.claim(&worker).unwrap();
    let other = NewRun { coordinator: "d", ..run("r") };
    let refused = queue.runtime.block_on(queue.database.enter_run(&other, &bundle("r")));
    assert!(refused.unwrap_err().to_string().starts_with("another process coordinates this run"));
    queue.sql("UPDATE queue_runs SET coordinator_until = now() - interval '1 second'");
    queue.enter(&other, &["done", "held", "waits"].map(|id| trial(id, &[], &[])));
    assert_eq!(queue.wait(queue.database.coordinate("r", "c", "1")).state, None, "the former one notices it");
    let active = queue.wait(queue.database.active("r"));
    let active: Vec<&str> = active.iter().map(|trial| trial.trial.as_str()).collect();
    assert_eq!(active, ["done", "held"], "what was finished and what runs is not repeated");
    assert_eq!(queue.claimed(&worker).as_deref(), Some("waits"));
}

#[test]
fn a_run_that_nobody_resumes_is_forgotten_when_another_one_ends() {
    let queue = Queue::new();
    for id in ["forgotten", "dead", "ends"] {
        queue.enter(&run(id), &[trial(id, &[], &[])]);
    }
    queue.enter(&run("unbegun"), &[]);
    for (id, age) in [("forgotten", "31 days"), ("dead", "29 days"), ("unbegun", "1 second")] {
        queue.sql(&format!("UPDATE queue_runs SET coordinator_until = now() - interval '{age}' WHERE id = '{id}'"));
    }
    queue.wait(queue.database.end_run("ends"));
    let left = queue.wait(queue.database.queued_runs());
    assert_eq!(left.iter().map(|run| run.id.as_str()).collect::<Vec<_>>(), ["dead"]);
    for (table, rows) in [("queue_trials", 1), ("queue_files", 1), ("queue_blobs", 1), ("queue_runs", 2)] {
        assert_eq!(queue.count(&format!("SELECT count(*) FROM {table}")), rows, "{table}");
    }
}

#[test]
fn a_bundle_is_the_same_after_the_way_through_the_queue() {
    let queue = Queue::new();
    let files = [("tests/a.yaml", false), ("bin/run", true)];
    let files = files.map(|(path, executable)| BundleFile::new(path, path.as_bytes(), executable).unwrap());
    let bundle = Bundle::of(files.into());
    queue.wait(queue.database.enter_run(&run("r"), &bundle));
    let copy = queue.wait(queue.database.bundle(&bundle.digest));
    assert_eq!(copy, bundle);
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("cache").join("x");
    copy.unpack(&target).unwrap();
    assert_eq!(std::fs::read_to_string(target.join("tests/a.yaml")).unwrap(), "tests/a.yaml");
    let mode =
        std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(target.join("bin/run")).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    for path in ["../a", "/etc/a", "", "a/../../b"] {
        let evil = Bundle::of(vec![BundleFile::new(path, b"x", false).unwrap()]);
        let refused = evil.unpack(&folder.path().join("evil")).unwrap_err();
        assert!(refused.to_string().contains("is not a path in it"), "{path}: {refused}");
    }
    let mut changed = bundle;
    changed.files[0].packed = BundleFile::new("a", b"other", false).unwrap().packed;
    assert!(changed.unpack(&folder.path().join("changed")).unwrap_err().to_string().contains("another digest"));
}

/// Opens a session in `directory`, with these environment variables.
fn session(directory: &Path, environment: &[(&str, &str)]) -> Session {
    let supervisor = Supervisor::unchecked("/bin/false").unwrap();
    let env = environment.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let host = Arc::new(Host { env, home: None, temp: std::env::temp_dir(), supervisor });
    let state = Some(directory.join("state"));
    Session::open(Place { directory: directory.to_owned(), state, agents: Vec::new(), host }, &[]).unwrap()
}

#[test]
fn a_bundle_has_the_files_that_the_plan_names_without_ignored_files_and_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (file, text) in [
        ("trialrun.yaml", "defaults:\n  agent: fake\n"),
        (".gitignore", "*.local.csv\n"),
        ("tests/one.yaml", "scenario: one\nuser_prompt: '{{ says }}'\ncases: rows.csv\nassertions: [{contains: a}]\n"),
        (
            "tests/two.yaml",
            "scenario: two\nuser_prompt: '{{ says }}'\ncases: big.local.csv\nassertions: [{contains: a}]\n",
        ),
        ("tests/rows.csv", "says\na\n"),
        ("tests/big.local.csv", "says\na\n"),
        ("tests/unused.csv", "says\na\n"),
        ("notes.txt", "not named\n"),
    ] {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), text).unwrap();
    }
    let collect = |environment: &[(&str, &str)]| {
        let session = session(&root, environment);
        let planned = session.plan(&session.resolve(&Overrides::default()).unwrap()).unwrap();
        assert_eq!(planned.plan.trials.len(), 2);
        Bundle::collect(&session, &planned)
    };
    let collected = collect(&[]).unwrap();
    let paths: Vec<&str> = collected.bundle.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(paths, ["tests/one.yaml", "tests/rows.csv", "tests/two.yaml", "trialrun.yaml"]);
    assert_eq!(collected.left_out, [("tests/big.local.csv".to_owned(), "git ignores it, or it is a link")]);
    assert_eq!(collect(&[]).unwrap().bundle, collected.bundle, "it depends only on the files");

    std::fs::write(root.join("tests/rows.csv"), "says\ncorrect-horse-battery\n").unwrap();
    let refused = collect(&[("MY_API_KEY", "correct-horse-battery")]).err().unwrap().to_string();
    assert!(refused.starts_with("tests/rows.csv contains a secret"), "{refused}");
}

#[test]
fn a_trial_that_depends_on_a_file_that_is_not_sent_is_refused_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    for (file, text) in [
        (
            "trialrun.yaml",
            "agents:\n  built: {type: subprocess, command: [node, dist/bot.js]}\n  plain: {type: subprocess, command: [node, \
             bot.js]}\n",
        ),
        (".gitignore", "dist\n.cache\n"),
        ("dist/bot.js", ""),
        ("bot.js", ""),
        ("skills/refunds/SKILL.md", "---\nname: refunds\ndescription: d\n---\nRefund it.\n"),
        ("tests/built.yaml", "scenario: built\nagent: built\nuser_prompt: a\nassertions: [{contains: a}]\n"),
        ("tests/plain.yaml", "scenario: plain\nagent: plain\nuser_prompt: a\nassertions: [{contains: a}]\n"),
        (
            "skills/refunds/tests/skill.yaml",
            "scenario: skill\nagent: plain\nskill: refunds\nuser_prompt: a\nassertions: [{contains: a}]\n",
        ),
    ] {
        std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        std::fs::write(root.join(file), text).unwrap();
    }
    let refused = || {
        let session = session(&root, &[]);
        let planned = session.plan(&session.resolve(&Overrides::default()).unwrap()).unwrap();
        let options = CoordinatorOptions {
            settings: Settings::from_url(&PostgresServer::shared().url()).unwrap(),
            limits: Vec::new(),
            patience: Duration::from_secs(60),
            same_version: false,
            resumed: None,
            notice: Box::new(|_| {}),
        };
        let coordinator = Coordinator::new(&session, &planned, options).unwrap();
        let refusal = |trial: &PlannedTrial| match coordinator.submit(trial, &[]).try_recv() {
            Ok(Progress::Refused(breakage)) => Some(format!("{}: {}", trial.case_id, breakage.reason)),
            _ => None,
        };
        planned.plan.trials.iter().filter_map(refusal).collect::<Vec<_>>()
    };
    let [built] = refused().try_into().unwrap();
    assert!(built.starts_with("built: the trial may depend on dist/bot.js, which is not sent to workers"), "{built}");
    std::fs::create_dir_all(root.join("skills/refunds/.cache")).unwrap();
    std::fs::write(root.join("skills/refunds/.cache/index"), "").unwrap();
    let both = refused().join("\n");
    assert!(both.contains("skill: the trial may depend on skills/refunds/.cache/index, which"), "{both}");
}
