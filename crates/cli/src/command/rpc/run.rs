//! The method `run`.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use model::{Diagnostic, Envelope, Event, Outcome};
use report::{Reporter, ReporterOptions, RunHash, Style};
use runner::Control;
use serde::Deserialize;
use serde_json::{Value, json};
use session::Launch;
use tokio::sync::mpsc::UnboundedReceiver;

use super::Server;
use super::connection::Connection;
use super::message::RpcError;
use super::method::read;
use super::selection::{Selection, invalid, problems, text_of};
use crate::command::cleanup::AfterTrial;
use crate::command::run::{code_of, warn_of_real_remotes};
use crate::place;

/// Events that the client receives.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Events {
    /// All.
    #[default]
    All,
    /// The beginnings and ends of the run and of its trials, and decisions.
    Trials,
}

/// Runs tests and records the run. `controls` stop it.
pub fn run(
    server: &Server,
    mut params: Value,
    id: &Value,
    controls: UnboundedReceiver<Control>,
) -> Result<Value, RpcError> {
    let events: Events = match params.as_object_mut().and_then(|params| params.remove("events")) {
        Some(events) => read(events)?,
        None => Events::default(),
    };
    let (session, mut planned) = Selection::read(params)?.plan(server, id)?;
    let strict = planned.spec.overrides().gates.strict;
    let mut problems = problems(&session, &planned);
    if planned.diagnostics.iter().any(Diagnostic::is_error) || strict && !problems.is_empty() {
        return Err(invalid(&problems));
    }
    if planned.plan.trials.is_empty() {
        return Err(planned.nothing_selected().into());
    }
    problems.extend(session.check(&mut planned)?);
    if strict && !problems.is_empty() {
        return Err(invalid(&problems));
    }
    let cleaner = Arc::new(AfterTrial::default());
    if warn_of_real_remotes(&planned.plan, &server.terminal) > 0 && !planned.plan.settings.sandbox.keep {
        planned.plan.cleaner = Some(Arc::<AfterTrial>::clone(&cleaner));
    }
    let (notes, gates) = (planned.spec.notes().to_vec(), planned.spec.overrides().gates.clone());
    let started = session.start(&planned, None)?;
    let (run, hash) = (started.info.id.clone(), RunHash::default());
    let text = SharedText::default();
    let mut reporters: Vec<Box<dyn Reporter>> =
        vec![Box::new(EventReporter { connection: Arc::clone(&server.connection), request: id.clone(), events })];
    let mut options = ReporterOptions::new(Box::new(text.clone()), Style::plain());
    options.hash = Arc::clone(&hash);
    reporters.extend(report::find("terminal").and_then(|kind| kind.to_stream(options)));
    let launch = Launch {
        reporters,
        hash: Arc::clone(&hash),
        signals: place::SIGNALS,
        controls: Some(controls),
        ..Launch::default()
    };
    let (ended, recorded) = session.run(planned, started, launch)?;
    cleaner.report(&server.terminal);
    let exit_code = code_of(&gates, &ended, &recorded)?;
    Ok(json!({
        "run": run,
        "exit_code": exit_code,
        "summary": ended.summary,
        "stopped_by": ended.stopped_by,
        "hash": hash.get(),
        "problems": problems,
        "problems_text": text_of(&problems),
        "notes": notes,
        "left_over": ended.left_over,
        "text": text.take(),
    }))
}

/// Text that a reporter writes.
#[derive(Clone, Default)]
struct SharedText(Arc<Mutex<Vec<u8>>>);

impl SharedText {
    fn take(&self) -> String {
        let bytes = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sends events to the client. A trial that did not pass comes with its text.
struct EventReporter {
    connection: Arc<Connection>,
    /// Id of the request that started the run.
    request: Value,
    events: Events,
}

impl Reporter for EventReporter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        let is_of_trials = matches!(
            envelope.event,
            Event::RunStarted(_)
                | Event::TrialStarted { .. }
                | Event::TrialRetried { .. }
                | Event::TrialFinished(_)
                | Event::Decided(_)
                | Event::RunFinished { .. }
        );
        if self.events == Events::Trials && !is_of_trials {
            return Ok(());
        }
        let mut params = json!({ "run": self.request, "event": envelope });
        if let Event::TrialFinished(record) = &envelope.event
            && record.outcome != Outcome::Passed
        {
            params["text"] = report::clean(&report::result(record, &Style::plain())).into();
        }
        self.connection.notify_when_read("event", &params)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}
