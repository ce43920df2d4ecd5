//! Runs fixtures against a function of one's own, without a command line, a record or a report.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use agent::Executor;
use model::{Envelope, Event, Summary};
use runner::Listener;
use sandbox::Host;
use sandbox::supervise::Supervisor;
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

/// Runs the tests in the folder `tests` against `bot`. `program` answers `sandbox::supervise::answer`. `tell` receives a
/// line for each warning and each finished trial.
///
/// # Errors
/// If the tests contain errors, or the machine cannot run them.
pub async fn run(
    tests: &Path,
    bot: &'static Executor,
    program: &Path,
    mut tell: impl FnMut(String) + Send + 'static,
) -> Result<Summary, Box<dyn Error>> {
    let host =
        Host { env: BTreeMap::new(), home: None, temp: std::env::temp_dir(), supervisor: Supervisor::new(program)? };
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
#[must_use]
pub fn bot() -> &'static Executor {
    Executor::new("bot", |message| async move {
        match message.contains("capital of France") {
            true => Ok("The capital of France is Paris.".to_owned()),
            false => Err("I know nothing else".to_owned()),
        }
    })
}
