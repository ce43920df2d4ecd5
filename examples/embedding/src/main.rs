//! Runs fixtures against a function in this program, without a command line, a record or a report.
//!
//! `cargo run -p trialrun-example-embedding` prints the outcome of each case.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};

use agent::Executor;
use model::{Envelope, Event, Summary};
use runner::Listener;
use sandbox::Host;
use sandbox::supervise::{self, Supervisor};
use session::{Overrides, Place, Session};

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

/// Runs the tests in the folder `tests` against `bot`.
async fn run(
    tests: &Path,
    bot: &'static Executor,
    mut tell: impl FnMut(String) + Send + 'static,
) -> Result<Summary, Box<dyn Error>> {
    let host = Host {
        env: BTreeMap::new(),
        home: None,
        temp: std::env::temp_dir(),
        supervisor: Supervisor::new(std::env::current_exe()?)?,
    };
    let place = Place { directory: tests.to_owned(), state: None, agents: vec![bot], host: Arc::new(host) };
    let mut overrides = Overrides { targets: vec![tests.display().to_string()], ..Overrides::default() };
    overrides.arms.agent = vec!["bot".to_owned()];
    let session = Session::open(place, &overrides.targets)?;
    let mut planned = session.plan(&session.resolve(&overrides)?)?;
    if let Some(problem) = planned.first_error() {
        return Err(problem.to_string().into());
    }
    for warning in session.check(&mut planned)? {
        tell(warning.to_string());
    }
    let (_stop, controls) = tokio::sync::mpsc::unbounded_channel();
    let end = session.run_unrecorded(planned, controls, Arc::new(Outcomes(Mutex::new(tell)))).await?;
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
    println!("{} passed, {} failed", summary.by_outcome.passed, summary.by_outcome.failed);
    Ok(())
}
