//! Runs fixtures against a function in this program, without a command line, a record or a report.
//!
//! `cargo run -p trialrun-example-embedding` prints the outcome of each case.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use agent::Executor;
use model::{Envelope, Event, RunInfo, Summary};
use runner::{Listener, PlanRequest, Selection, Settings};
use sandbox::Host;
use sandbox::supervise::{self, Supervisor};

/// Passes the outcomes of trials to a function.
struct Outcomes<F>(Mutex<F>);

impl<F: FnMut(String) + Send> Listener for Outcomes<F> {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        self.on_event(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        if let Event::TrialFinished(record) = event.event {
            let mut tell = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            tell(format!("{} {}", record.outcome.name(), record.case));
        }
    }
}

/// Runs the fixtures in the `tests` folder against `bot`.
async fn run(
    tests: &Path,
    bot: &'static Executor,
    tell: impl FnMut(String) + Send + 'static,
) -> Result<Summary, Box<dyn Error>> {
    let loaded = suite::load(&suite::Request {
        root: tests.to_owned(),
        cwd: tests.to_owned(),
        targets: vec![tests.display().to_string()],
        ..suite::Request::default()
    });
    let mut settings = Settings { embedded: vec![bot], jobs: 4, ..Settings::default() };
    settings.arms.agents = vec!["bot".to_owned()];
    let (plan, problems) = runner::plan(&PlanRequest {
        suites: &loaded.suites,
        settings: &settings,
        selection: &Selection::default(),
        cwd: tests,
        read_script: Arc::new(|_| Err(Vec::new())),
        modules: loaded.modules,
    });
    if let Some(problem) = loaded.diagnostics.iter().chain(&problems).find(|problem| problem.is_error()) {
        return Err(problem.to_string().into());
    }
    let info = RunInfo {
        id: "embedded".to_owned(),
        label: None,
        regrade_of: None,
        started_at: jiff::Timestamp::now(),
        trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: serde_json::Map::new(),
        agents: plan.agents.clone(),
        skills: plan.skills.clone(),
        trials: plan.trials.iter().map(|trial| trial.id.clone()).collect(),
        decisions: 0,
        jobs: settings.jobs,
        isolation: None,
        invocation: None,
        shard: None,
        missing_shards: None,
    };
    let host = Host {
        env: BTreeMap::new(),
        home: None,
        temp: std::env::temp_dir(),
        supervisor: Supervisor::new(std::env::current_exe()?)?,
    };
    let (_stop, controls) = tokio::sync::mpsc::unbounded_channel();
    let end = runner::run(plan, Arc::new(host), info, controls, Arc::new(Outcomes(Mutex::new(tell)))).await?;
    Ok(end.summary)
}

/// The bot: it knows one fact.
fn bot() -> &'static Executor {
    Executor::new("bot", |message| async move {
        match message.contains("capital of France") {
            true => Ok("The capital of France is Paris.".to_owned()),
            false => Err("I know nothing else".to_owned()),
        }
    })
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    // For each process in a sandbox, this program starts itself again as the supervisor.
    if let Some(code) = supervise::answer(std::env::args_os().skip(1)) {
        return Ok(code);
    }
    print_outcomes()?;
    Ok(ExitCode::SUCCESS)
}

#[tokio::main]
#[allow(clippy::print_stdout, reason = "this is an example program")]
async fn print_outcomes() -> Result<(), Box<dyn Error>> {
    let tests = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests"));
    let summary = run(tests, bot(), |line| println!("{line}")).await?;
    println!("{} passed, {} failed", summary.passed, summary.failed);
    Ok(())
}
