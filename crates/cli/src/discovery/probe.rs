//! Probes of an agent: an in-memory suite of five cases, run like any other suite, but not recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use generate::{EvidenceKind, PROBES, Probe, Profile, observe};
use model::{Case, Diagnostic, Envelope, Event, Excerpt, Outcome, Step, Suite, TrialRecord, UserMessage};
use runner::{Control, Listener};
use session::overrides::Timeout;
use session::{Overrides, Planned, Session};
use suite::Loaded;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Default timeout of one probe, in milliseconds.
pub const TIMEOUT_MS: u64 = 60_000;

/// Name of the suite.
const SUITE: &str = "probes";

/// Sends each probe to `agent` in a separate conversation. Returns what the agent said and did, and the unanswered
/// probes with the reasons. `None` if a signal stopped it.
///
/// # Errors
/// Returns an error if the agent is unknown, or its configuration is invalid.
pub async fn probe(
    agent: &str,
    timeout_ms: u64,
    context: &Session,
    controls: UnboundedReceiver<Control>,
    terminal: &Terminal,
) -> Result<Option<(Profile, Vec<(String, String)>)>, CliError> {
    let mut planned = planned(agent, timeout_ms, context, terminal)?;
    terminal.diagnostics(&context.check(&mut planned)?);
    let conversations = Arc::new(Conversations::default());
    let listener: Arc<dyn Listener> = Arc::clone(&conversations) as _;
    let end = context.run_unrecorded(planned, controls, listener).await?;
    Ok(end.stopped_by.is_none().then(|| conversations.facts()))
}

/// Checks that `agent` can be probed, without sending anything.
///
/// # Errors
/// Returns an error if the agent is unknown, or its configuration is invalid.
pub fn check(agent: &str, context: &Session, terminal: &Terminal) -> Result<(), CliError> {
    planned(agent, TIMEOUT_MS, context, terminal).map(drop)
}

/// Creates and removes a sandbox if the agent needs one.
///
/// # Errors
/// Returns an error if that fails, if the agent is unknown, or if its configuration is invalid.
pub fn try_sandbox(agent: &str, context: &Session, terminal: &Terminal) -> Result<(), CliError> {
    let planned = planned(agent, TIMEOUT_MS, context, terminal)?;
    match session::try_out(&planned.plan, &context.host)? {
        None => Ok(()),
        Some(reason) => Err(CliError::environment(format!("the agent `{agent}` cannot be run: {reason}"))),
    }
}

fn planned(agent: &str, timeout_ms: u64, context: &Session, terminal: &Terminal) -> Result<Planned, CliError> {
    let mut args = Overrides { unjudged: Some("probes are not judged".to_owned()), ..Overrides::default() };
    args.arms.agent.push(agent.to_owned());
    args.arms.trials = Some(model::Trials::Fixed(1));
    args.arms.no_baseline = true;
    args.cassettes.cassette = Some(model::CassetteMode::Off);
    args.schedule.jobs = Some(PROBES.len());
    (args.schedule.retries, args.schedule.reruns) = (Some(0), Some(0));
    args.schedule.timeout = Some(Timeout { ms: timeout_ms, is_bare: false });
    // Modules of agents are loaded when they are used.
    let suites = vec![suite(&context.cwd, timeout_ms)];
    let loaded = Loaded { suites, ..Loaded::default() };
    let planned = context.plan_loaded(&context.resolve(&args)?, loaded)?;
    let errors: Vec<Diagnostic> = planned.diagnostics.iter().filter(|problem| problem.is_error()).cloned().collect();
    if !errors.is_empty() {
        terminal.diagnostics(&errors);
        return Err(CliError::usage(format!("the `{agent}` agent cannot be probed")));
    }
    Ok(planned)
}

fn suite(cwd: &Path, timeout_ms: u64) -> Suite {
    let case = |probe: &Probe| {
        Arc::new(Case {
            messages: vec![UserMessage::text(probe.message)],
            timeout_ms: Some(timeout_ms),
            must_assert: false,
            ..Case::new(probe.name.replace(' ', "-"), Excerpt::of_file(SUITE))
        })
    };
    Suite {
        name: SUITE.to_owned(),
        path: cwd.join(SUITE),
        format: "conversation",
        cases: PROBES.iter().map(case).collect(),
    }
}

/// Conversations with the agent, by trial id.
#[derive(Default)]
struct Conversations(Mutex<BTreeMap<String, Conversation>>);

/// Conversation about one probe.
#[derive(Default)]
struct Conversation {
    steps: Vec<Step>,
    /// Absent until it is finished.
    record: Option<TrialRecord>,
}

impl Conversations {
    fn facts(&self) -> (Profile, Vec<(String, String)>) {
        let (mut profile, mut problems) = (Profile::default(), Vec::new());
        let conversations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for probe in &PROBES {
            let name = format!("probe {}", probe.name);
            let is_about = |record: &TrialRecord| *record.case == *probe.name.replace(' ', "-");
            let found = conversations.values().find(|one| one.record.as_ref().is_some_and(is_about));
            let Some(Conversation { steps, record: Some(record) }) = found else { continue };
            profile.merge(observe(&name, steps, EvidenceKind::Probe, probe.confidence));
            if record.outcome != Outcome::Passed {
                let reason = record.reason.clone().unwrap_or_else(|| record.outcome.name().to_owned());
                problems.push((name, reason));
            }
        }
        (profile, problems)
    }
}

impl Listener for Conversations {
    fn offer(&self, event: Envelope) -> Option<Envelope> {
        self.on_event(event);
        None
    }

    fn on_event(&self, event: Envelope) {
        let Some(trial) = event.trial else { return };
        let mut conversations = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let conversation = conversations.entry(trial.to_string()).or_default();
        match event.event {
            Event::Step(step) => conversation.steps.push(step),
            Event::TrialFinished(finished) => conversation.record = Some(*finished),
            _ => {}
        }
    }
}
