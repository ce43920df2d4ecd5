//! The handlers of the API.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use hyper::StatusCode;
use jiff::Timestamp;
use model::{RunInfo, RunRow};
use queue::{Queue, QueuedRun};
use report::{ReporterOptions, Style, TrendOf};
use serde_json::{Value, json};
use session::{ErrorKind, Overrides};
use store::{ResultFilter, RunFilter, Store, TrialFilter};

use super::field::{NEW_COST, NEW_TOKENS, RESUME, RETRY, SUBMISSION, TRIAL};
use super::problem::{Problem, json_answer};
use super::record::listed;
use super::service::{Call, Service};
use super::submission::{Submitted, arguments};
use crate::command::compare::{self, Recorded};
use crate::command::{history, pause, show};
use crate::http_server::{Answer, response};
use crate::recorded_arguments::recorded_overrides;
use crate::workers::queue_json;

/// Maximum number of entries of one answer.
pub const MOST: usize = 1000;
/// Number of entries of an answer unless the request says otherwise.
const SOME: usize = 100;
/// Maximum number of entries before the first one of an answer.
const MAX_OFFSET: usize = 10_000_000;
/// Number of runs of a trend that are searched for flaky cases.
const SEARCHED: usize = 50;

/// Options of a new run: only workers run its trials, and a broken test file is an error, because nobody reads warnings.
const NEW: [&str; 2] = ["--jobs=0", "--strict-files"];

fn ok(value: &Value) -> Result<Answer, Problem> {
    Ok(json_answer(StatusCode::OK, value))
}

/// Returns the run to which a part of the path refers.
pub fn run_of(store: &dyn Store, call: &Call, part: &str) -> Result<RunRow, Problem> {
    Ok(store.select(call.part(part))?)
}

/// Reads the start time after which the runs of another part of a list are: a time, or microseconds since 1970.
pub fn before(call: &Call) -> Result<Option<Timestamp>, Problem> {
    let Some(text) = call.text("before") else { return Ok(None) };
    let time = match text.parse::<i64>() {
        Ok(microseconds) => Timestamp::from_microsecond(microseconds).ok(),
        Err(_) => text.parse().ok(),
    };
    let wrong = "`before` must be a time such as `2026-11-28T20:00:00Z`";
    time.map(Some).ok_or_else(|| Problem::bad_request(wrong))
}

pub fn runs(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let last = call.count("last", SOME, MOST)?;
    let named = call.text("named").map(str::to_owned);
    let filter = RunFilter { last: Some(last.saturating_add(1)), before: before(call)?, named, ..RunFilter::default() };
    let Some(store) = service.record.open()? else {
        return ok(&json!({ "schema": "trialrun.runs/1", "runs": [], "next": null }));
    };
    let mut rows = store.runs(&filter)?;
    let has_more = rows.len() > last;
    rows.truncate(last);
    let next = rows.last().filter(|_| has_more).map(|run| run.started_at);
    let mut runs = Vec::new();
    for run in rows {
        runs.push(report::run_json(&listed(&*store, run)?));
    }
    service.record.keep(store);
    ok(&json!({ "schema": "trialrun.runs/1", "runs": runs, "next": next }))
}

pub fn run(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let queue = service.record.queue()?;
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let live = store.live(&run.id)?;
        let queued = queue.as_deref().map(|queue| queued(queue, &run.id)).transpose()?.flatten();
        ok(&json!({
            "schema": "trialrun.run/1", "run": report::run_json(&listed(store, run)?), "live": live, "queue": queued,
        }))
    })
}

/// Returns the run in the queue, and what its trials wait for.
fn queued(queue: &Queue, run: &str) -> Result<Option<Value>, Problem> {
    let view = crate::workers::view(queue)?;
    let json = queue_json(&view);
    let runs = json["runs"].as_array().cloned().unwrap_or_default();
    Ok(runs.into_iter().find(|queued| queued["run"] == run))
}

pub fn trials(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (last, offset) = (call.count("last", SOME, MOST)?, call.count("offset", 0, MAX_OFFSET)?);
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let filter = TrialFilter {
            suite: call.text("suite").map(str::to_owned),
            case: call.text("case").map(str::to_owned),
            last: Some(offset + last + 1),
            ..TrialFilter::of_run(&run.id)
        };
        let (mut at, mut trials) = (0, Vec::new());
        store.each_trial(&filter, &mut |trial| {
            if at >= offset {
                trials.push(trial);
            }
            at += 1;
            true
        })?;
        let has_more = trials.len() > last;
        trials.truncate(last);
        let next = has_more.then_some(offset + last);
        ok(&json!({ "schema": "trialrun.trials/1", "run": run.id, "trials": trials, "next_offset": next }))
    })
}

pub fn trial(service: &Service, call: &Call) -> Result<Answer, Problem> {
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let wanted = format!("{}/{}", run.id, call.part("trial"));
        store.select_trial(&wanted)?;
        let (_, trial) = show::trial(store, &wanted)?;
        ok(&trial)
    })
}

/// A buffer that a reporter writes.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Formats of reports that programs read, with their media types.
pub const FORMATS: [(&str, &str); 6] = [
    ("json", "application/json"),
    ("jsonl", "application/x-ndjson"),
    ("junit", "application/xml"),
    ("markdown", "text/markdown; charset=utf-8"),
    ("ctrf", "application/json"),
    ("tap", "text/plain; charset=utf-8"),
];

pub fn results(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let wanted = call.text("format").unwrap_or("json");
    let found = FORMATS.iter().find(|(name, _)| *name == wanted);
    let (Some((name, kind)), Some(report)) = (found, report::find(wanted)) else {
        let names: Vec<&str> = FORMATS.iter().map(|(name, _)| *name).collect();
        return Err(Problem::bad_request(format!("`format` must be one of {}", names.join(", "))));
    };
    service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let out = Shared::default();
        let mut options = ReporterOptions::new(Box::new(out.clone()), Style::plain());
        options.folder.clone_from(&service.folder);
        let _ = run.hash.clone().map(|hash| options.hash.set(hash));
        let failed = |error: std::io::Error| {
            Problem::new(StatusCode::INTERNAL_SERVER_ERROR, format!("cannot write the {name} report: {error}"))
        };
        let mut reporter = report.to_stream(options).ok_or_else(|| Problem::bad_request("this report is a folder"))?;
        let mut written = Ok(());
        store.replay(&run.id, &mut |event| {
            if written.is_ok() {
                written = reporter.event(event);
            }
        })?;
        written.and_then(|()| reporter.finish()).map_err(failed)?;
        drop(reporter);
        let bytes = std::mem::take(&mut *out.0.lock().unwrap_or_else(PoisonError::into_inner));
        Ok(response(StatusCode::OK, kind, bytes))
    })
}

pub fn comparison(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let [before, after] = compared(service, call)?;
    ok(&compare::recorded_json(before, after, service.threshold)?)
}

/// Returns the two runs in the path of a comparison, each with its record.
pub fn compared(service: &Service, call: &Call) -> Result<[Recorded; 2], Problem> {
    let find = |part: &str| {
        let store = service.record.open()?.ok_or_else(|| Problem::not_found("Nothing is recorded yet."))?;
        let run = run_of(&*store, call, part)?;
        Ok::<_, Problem>((store, run))
    };
    Ok([find("before")?, find("after")?])
}

pub fn cases(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (last, offset) = (call.count("last", SOME, MOST)?, call.count("offset", 0, MAX_OFFSET)?);
    let text = call.text("text").unwrap_or_default();
    service.record.read(|store| {
        let mut cases = store.cases()?;
        cases.retain(|(suite, case)| suite.contains(text) || case.contains(text));
        let next = (cases.len() > offset + last).then_some(offset + last);
        let listed = cases.iter().skip(offset).take(last).map(|(suite, case)| json!({ "suite": suite, "case": case }));
        let listed: Vec<Value> = listed.collect();
        ok(&json!({ "schema": "trialrun.cases/1", "cases": listed, "next_offset": next }))
    })
}

pub fn trend(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let last = call.count("last", 20, MOST)?;
    let (suite, case) = (call.text("suite"), call.text("case"));
    service.record.read(|store| {
        let (suite, case) = history::selected(Some(store), suite, case)?;
        let runs = store.results(&ResultFilter {
            suite: suite.clone(),
            case: case.clone(),
            last: Some(last),
            with_cases: SEARCHED,
        })?;
        if runs.is_empty() {
            history::named(store, suite.as_deref(), case.as_deref())
                .map_err(|error| Problem::not_found(error.to_string()))?;
        }
        let of = match (&suite, &case) {
            (_, Some(_)) => TrendOf::Cases,
            (Some(_), None) => TrendOf::Suite,
            (None, None) => TrendOf::Runs,
        };
        ok(&report::trend_json(&runs, of))
    })
}

pub fn queue(service: &Service, _: &Call) -> Result<Answer, Problem> {
    let view = service.record.queue()?.as_deref().map(crate::workers::view).transpose()?;
    ok(&queue_json(&view.unwrap_or_default()))
}

pub fn submit(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let options = arguments(&SUBMISSION, &call.body)?;
    start(service, &[NEW.map(str::to_owned).to_vec(), options].concat(), None)
}

/// Returns the run to which the path refers, which must not be in progress, and its settings.
fn ended(service: &Service, call: &Call) -> Result<(RunRow, RunInfo), Problem> {
    let (run, info) = service.record.read(|store| {
        let run = run_of(store, call, "run")?;
        let info = store.info(&run.id)?;
        Ok((run, info))
    })?;
    match session::is_active(&run) {
        true => Err(Problem::conflict(format!("the run {} is in progress", run.short))),
        false => Ok((run, info)),
    }
}

pub fn retry(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (run, info) = ended(service, call)?;
    let Some(Overrides { targets, arms, .. }) = recorded_overrides(&info) else {
        let message = "the command that started the run is not recorded; start a run with `failed_in` instead";
        return Err(Problem::conflict(message));
    };
    let mut options = NEW.map(str::to_owned).to_vec();
    options.push(format!("--failed-in={}", run.id));
    options.extend(arms.agent.iter().map(|agent| format!("--agent={agent}")));
    options.extend(arms.model.iter().map(|model| format!("--model={model}")));
    options.extend(arguments(&RETRY, &call.body)?);
    options.extend(targets);
    start(service, &options, None)
}

pub fn resume(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (run, info) = ended(service, call)?;
    // Otherwise, this machine would run its trials.
    if recorded_overrides(&info).is_none_or(|overrides| overrides.schedule.jobs != Some(0)) {
        return Err(Problem::conflict(format!("the run {} was not started with `--jobs 0`", run.short)));
    }
    if !run.is_interrupted() {
        return Err(Problem::conflict(format!("the run {} was not interrupted", run.short)));
    }
    let mut options = vec![format!("--resume={}", run.id)];
    options.extend(arguments(&RESUME, &call.body)?);
    start(service, &options, Some(&run.id))
}

/// Starts a process that coordinates a run.
fn start(service: &Service, arguments: &[String], resumed: Option<&str>) -> Result<Answer, Problem> {
    let Some(submitter) = &service.submitter else {
        return Err(no_queue(service));
    };
    let submitted = submitter.start(arguments, resumed, &service.record)?;
    Ok(match submitted {
        Submitted::Started(run) => json_answer(
            StatusCode::CREATED,
            &json!({ "schema": "trialrun.submitted/1", "run": run.id, "label": run.label, "page": format!("/runs/{}/", run.id) }),
        ),
        Submitted::Starting => json_answer(
            StatusCode::ACCEPTED,
            &json!({ "schema": "trialrun.submitted/1", "run": null, "label": null, "page": "/progress" }),
        ),
    })
}

fn no_queue(service: &Service) -> Problem {
    Problem::conflict(format!(
        "Only runs whose trials workers run can be started and changed here, and workers need a database; this record is \
         {}.",
        service.record.place()
    ))
}

/// Returns the queue, and the run in it to which the path refers.
fn in_queue(service: &Service, call: &Call) -> Result<(Arc<Queue>, QueuedRun), Problem> {
    if !service.record.has_queue() {
        return Err(no_queue(service));
    }
    let queue = service.record.queue()?.ok_or_else(|| Problem::not_found("no run is in the queue"))?;
    let run = pause::choose(queue.runs()?, Some(call.part("run")))?;
    Ok((queue, run))
}

/// Returns the answer to a request that changed a run, or did not.
fn changed(run: &QueuedRun, state: &str, is_changed: bool) -> Result<Answer, Problem> {
    if !is_changed {
        return Err(Problem::conflict(format!("the run {} is {}, so nothing has changed", run.id, run.state)));
    }
    ok(&json!({ "schema": "trialrun.changed/1", "run": run.id, "state": state }))
}

pub fn pause(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (queue, run) = in_queue(service, call)?;
    changed(&run, "paused", queue.pause(&run.id)?)
}

pub fn resume_queue(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (queue, run) = in_queue(service, call)?;
    let [cost, tokens] = [call.number(&NEW_COST)?, call.number(&NEW_TOKENS)?];
    let has_budget = (cost.is_some() || tokens.is_some()) && queue.set_budget(&run.id, cost, tokens)?;
    let is_continued = queue.resume(&run.id)?;
    changed(&run, if is_continued { "running" } else { &run.state }, has_budget || is_continued)
}

pub fn cancel(service: &Service, call: &Call) -> Result<Answer, Problem> {
    let (queue, run) = in_queue(service, call)?;
    let Some(trial) = call.string(&TRIAL)? else { return changed(&run, "stopping", queue.cancel(&run.id)?) };
    let cancelled = pause::cancel_trial(&queue, &run, trial).map_err(|error| match error.kind() {
        ErrorKind::Usage => Problem::conflict(error.to_string()),
        _ => error.into(),
    })?;
    ok(&json!({ "schema": "trialrun.changed/1", "run": run.id, "state": run.state, "cancelled": cancelled }))
}
