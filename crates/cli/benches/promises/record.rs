//! Reading from a record: the page of a run, and lists and comparisons over a million trials.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::{Envelope, Event, Outcome, RunInfo, Summary, TrialId, TrialRecord};
use serde_json::json;

use super::{Promise, ok, times, trialrun, write};

/// Number of runs in the large record, and of trials in each.
const RUNS: usize = 10_000;
const TRIALS: usize = 100;
/// Number of trials in each of the two runs that are compared.
const COMPARED: usize = 10_000;

/// Measures the page of a run of 1,000 trials with about 30 events each: the time to write it, and its size.
pub fn page(scratch: &Path) -> [Promise; 2] {
    let dir = scratch.join("page");
    for number in 0..1000 {
        let calls: String = (0..13)
            .map(|call| {
                format!(
                    "  !call Bash {{\"command\": \"grep -rn case{number} src/module{call}\"}} => src/module{call}/file{number}.rs:{call}: \
                     fn case{number}(input: &str) -> Result<(), Error>, called {call} times from module{call}\n"
                )
            })
            .collect();
        let text = format!(
            "scenario: case-{number}\nsystem_prompt: Be brief.\nuser_prompt: |\n{calls}  !say done\n\
             assertions:\n  - {{id: c, type: output_contains, pattern: \"done\"}}\n"
        );
        write(&dir.join(format!("scenarios/case-{number}.yaml")), &text);
    }
    write(&dir.join("trialrun.yaml"), "defaults: { agent: fake }\n");
    ok(&trialrun(&dir, &["run", "scenarios", "--quiet"]));
    let measured = times(7, || ok(&trialrun(&dir, &["report", "--format", "html", "-o", "page.html"])));
    let size = std::fs::metadata(dir.join("page.html")).expect("the page").len();
    [
        Promise { what: "HTML of 1,000 trials of 30 events", limit: 1000.0, unit: "ms", measured },
        Promise { what: "  its size", limit: 8.0, unit: "MB", measured: vec![size as f64 / 1e6] },
    ]
}

/// Measures commands on a record with 10,000 runs and 1,000,000 trials, and with two more runs of 10,000 trials each.
pub fn million(scratch: &Path) -> [Promise; 5] {
    let dir = large_record(scratch);
    let measure = |what, limit, arguments: &[&str]| {
        let measured = times(7, || {
            let output = trialrun(&dir, arguments);
            // The exit code of `compare` is 1 if there is a regression.
            let is_compared = arguments[0] == "compare" && output.status.code() == Some(1);
            if !is_compared {
                ok(&output);
            }
        });
        Promise { what, limit, unit: "ms", measured }
    };
    [
        measure("`history` of 10,000 runs with 1,000,000 trials", 100.0, &["history"]),
        measure("`trend` over them", 100.0, &["trend"]),
        measure("`trend` of one of their cases", 100.0, &["trend", "--case", "case-7"]),
        measure("`show` of one of their trials", 50.0, &["show", "run-00005000/case-7"]),
        measure("`compare` of two runs of 10,000 trials", 300.0, &["compare", "before", "after"]),
    ]
}

fn large_record(scratch: &Path) -> PathBuf {
    let dir = scratch.join("million");
    write(&dir.join("trialrun.yaml"), "defaults: { agent: fake }\n");
    std::fs::create_dir_all(dir.join(".trialrun")).expect("a directory");
    fill(&store::Location::File(dir.join(".trialrun/runs.db")));
    dir
}

/// Records the runs of the large record.
pub fn fill(location: &store::Location) {
    let owner = model::Owner { id: "bench".into(), host: "bench".into(), pid: 1, process: String::new() };
    let mut store = store::open(location, &owner).expect("a record");
    let mut record = |id: &str, label: Option<&str>, minute: usize, trials: usize, unlucky: usize| {
        store.append(&run(id, label, minute, trials, unlucky)).expect("a recorded run");
    };
    record("before", Some("before"), 0, COMPARED, 10);
    record("after", Some("after"), 1, COMPARED, 11);
    for number in 0..RUNS {
        record(&format!("run-{number:08}"), None, 2 + number, TRIALS, 7 + number % 5);
    }
}

/// Returns the events of a run that started that many minutes after the first. Each trial whose number is a multiple
/// of `unlucky` failed.
fn run(id: &str, label: Option<&str>, minute: usize, trials: usize, unlucky: usize) -> Vec<Envelope> {
    let first: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let at = first + jiff::SignedDuration::from_mins(minute as i64);
    let ids: Vec<TrialId> = (0..trials)
        .map(|number| TrialId {
            suite: "suite".into(),
            case: format!("case-{number}").into(),
            arm: "fake".into(),
            repetition: 1,
        })
        .collect();
    let info: RunInfo = serde_json::from_value(json!({
        "id": id, "label": label, "started_at": at, "trialrun_version": "0", "settings": {},
        "agents": [{ "name": "fake" }], "skills": [], "trials": ids, "jobs": 1,
    }))
    .expect("a run");
    let sample: TrialRecord = serde_json::from_value(json!({
        "id": "", "suite": "suite", "case": "", "arm": "fake", "agent": "fake", "repetition": 1, "outcome": "passed",
        "findings": [], "input": ["go"], "answer": "done", "turn_count": 1, "duration_ms": 1200, "agent_ms": 1000,
        "started_at": at, "cost_usd": 0.01,
        "usage": { "input": 900, "cache_read": 0, "cache_write": 0, "output": 100 },
    }))
    .expect("a trial");
    let mut summary = Summary::default();
    let mut events = vec![(None, Event::RunStarted(Box::new(info)))];
    for (number, planned) in ids.iter().enumerate() {
        let trial = Arc::<str>::from(planned);
        let mut record = TrialRecord { id: Arc::clone(&trial), case: Arc::clone(&planned.case), ..sample.clone() };
        if number % unlucky == 0 {
            record.outcome = Outcome::Failed;
            record.reason = Some("the answer does not contain `done`".into());
        }
        summary.add(&record);
        events.push((Some(trial), Event::TrialFinished(Box::new(record))));
    }
    events.push((None, Event::RunFinished { summary, duration_ms: 30_000, signal: None }));
    let run: Arc<str> = id.into();
    let numbered = events.into_iter().zip(1..);
    numbered
        .map(|((trial, event), seq)| Envelope {
            v: 1,
            seq,
            at,
            run: Arc::clone(&run),
            attempt: trial.as_ref().map(|_| 1),
            trial,
            event,
        })
        .collect()
}
