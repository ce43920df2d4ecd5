//! Runs a plan while recording it.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use model::{Diagnostic, Lease, RemoteMode, RunInfo, Shard};
use report::{Reporter, RunHash};
use runner::{Control, Listener, Plan, PlannedTrial, RunEnd};
use sandbox::Breakage;
use store::Store;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::error::Error;
use crate::invocation::invocation;
use crate::origin::origin;
use crate::plan::{Planned, missing_agents};
use crate::recording::{Recorded, Recording};
use crate::run_lock::RunLock;
use crate::session::Session;
use crate::{git_sign_in, hooks, parent_files, sandbox_choice};

/// Time that remaining tasks have to finish.
const SHUTDOWN: Duration = Duration::from_millis(200);

/// A run with its record.
pub struct Started {
    /// The record.
    pub store: Box<dyn Store>,
    /// The run.
    pub info: RunInfo,
    /// Its lock; absent if the file system has no locks.
    pub lock: Option<RunLock>,
    /// The interruption after which the run continues; `None` for a new run.
    pub resumed: Option<Resumed>,
}

/// The interruption of a run.
pub struct Resumed {
    /// Lease of the owner that was interrupted.
    pub former: Option<Lease>,
}

/// Participants of a run that its caller provides.
#[derive(Default)]
pub struct Launch {
    /// Reports of the run.
    pub reporters: Vec<Box<dyn Reporter>>,
    /// Receives the hash of the record, which reports show at the end.
    pub hash: RunHash,
    /// Directory for artefacts.
    pub artifacts: Option<PathBuf>,
    /// Signals to the process.
    pub signals: Signals,
    /// Controls of this run alone, in addition to signals.
    pub controls: Option<UnboundedReceiver<Control>>,
}

/// Path on which signals to the process reach a run. By default, none do.
#[derive(Clone, Copy)]
pub struct Signals {
    /// Sends signals that arrive from now on to this run.
    pub connect: fn(&UnboundedSender<Control>) -> io::Result<()>,
    /// Returns `true` if a signal has arrived.
    pub was_received: fn() -> bool,
}

impl Default for Signals {
    fn default() -> Self {
        Self { connect: |_| Ok(()), was_received: || false }
    }
}

impl Session {
    /// Makes the checks that follow planning and precede each run: creates a sandbox if the project allows another kind
    /// in its place, looks for files that steer tools in all sandboxes and for the programs of agents, and refuses to
    /// lend a sign-in that nothing uses. Returns the warnings.
    ///
    /// # Errors
    /// Returns an error if the machine does not allow a check, or if the other kind of sandbox cannot be planned with.
    pub fn check(&self, planned: &mut Planned) -> Result<Vec<Diagnostic>, Error> {
        if planned.spec.overrides().sandboxes.lend_git_sign_in && !uses_real_remote(&planned.plan) {
            return Err(Error::usage("`--lend-git-sign-in` needs `--remote real`")
                .hint("the agents of this run push to copies of the source repository, which need no sign-in"));
        }
        let mut warnings = Vec::new();
        let chosen = planned.spec.sandbox();
        if let Some(fallback) = self.project.sandbox_fallback.as_ref().filter(|fallback| *fallback != chosen)
            && let Some(reason) = sandbox_choice::try_out(&planned.plan, &self.host)?
        {
            warnings.push(sandbox_choice::replaced(chosen, fallback, &reason, self));
            planned.spec = self.with_sandbox(&planned.spec, fallback);
            planned.plan.settings.sandbox.kind.clone_from(fallback);
        }
        warnings.extend(parent_files::warnings(&planned.plan, &self.host));
        warnings.extend(missing_agents(self, &planned.plan));
        Ok(warnings)
    }

    /// Gives the agents of the plan the user's credentials for the source repository, if the run asks for it.
    ///
    /// # Errors
    /// Returns an error if the user has none.
    pub fn lend_sign_in(&self, planned: &mut Planned) -> Result<(), Error> {
        let sandboxes = &planned.spec.overrides().sandboxes;
        if sandboxes.lend_git_sign_in {
            let variables = git_sign_in::variables(sandboxes.source_repo.as_deref(), &self.host)?;
            planned.plan.settings.sandbox.extra_env = variables;
        }
        Ok(())
    }

    /// Returns the description of a new run. `arguments` are those of the command that starts it; without them, the
    /// run cannot be resumed.
    pub fn info(&self, planned: &Planned, arguments: Option<Vec<String>>) -> RunInfo {
        let Planned { spec, plan, .. } = planned;
        let overrides = spec.overrides();
        let shard = planned.shard.map(|(index, of)| Shard {
            index,
            of,
            positions: plan.trials.iter().map(|trial| trial.position).collect(),
            cases_hash: planned.cases_hash.clone(),
        });
        RunInfo {
            id: uuid::Uuid::now_v7().to_string(),
            label: overrides.output.label.clone(),
            regrade_of: None,
            started_at: Timestamp::now(),
            trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
            settings: spec.to_map(self),
            agents: plan.agents.clone(),
            skills: plan.skills.clone(),
            trials: plan.trials.iter().map(PlannedTrial::id).collect(),
            decisions: plan.decisions.len(),
            jobs: plan.settings.jobs.min(plan.trials.len()).max(1),
            invocation: arguments.and_then(|arguments| invocation(arguments, plan, self)),
            origin: Some(origin(&self.cwd, self.environment())),
            shard,
            missing_shards: None,
            isolation: None,
        }
    }

    /// Runs the plan without recording it. The only output is the events that `listener` receives. The future does not
    /// borrow the session.
    ///
    /// # Errors
    /// Returns an error if the run could not be started.
    pub fn run_unrecorded(
        &self,
        planned: Planned,
        controls: UnboundedReceiver<Control>,
        listener: Arc<dyn Listener>,
    ) -> impl Future<Output = Result<RunEnd, Error>> + Send + use<> {
        let (info, host, plan) = (self.info(&planned, None), Arc::clone(&self.host), planned.plan);
        async move { runner::run(plan, host, info, controls, listener).await.map_err(Error::from) }
    }

    /// Opens the record for a new run.
    ///
    /// # Errors
    /// Returns an error if the record cannot be written.
    pub fn start(&self, planned: &Planned, arguments: Option<Vec<String>>) -> Result<Started, Error> {
        let (store, info) = (self.open_store()?, self.info(planned, arguments));
        // Without a lock, the run could be resumed while it is still in progress, but it can run.
        let lock = self.state.lock(&info.id).ok();
        Ok(Started { store, info, lock, resumed: None })
    }

    /// Runs the plan, recording and reporting it. Blocks until the run and its reports have ended.
    ///
    /// # Errors
    /// Returns an error if the run could not be started.
    pub fn run(&self, planned: Planned, started: Started, launch: Launch) -> Result<(RunEnd, Recorded), Error> {
        let Planned { spec, mut plan, .. } = planned;
        let Started { mut store, info, lock, resumed } = started;
        let Launch { mut reporters, hash, artifacts, signals, controls: own } = launch;
        reporters.extend(hooks::set_up(spec.overrides(), self, &mut plan, &info, artifacts)?);
        if let Some(Resumed { former }) = resumed {
            store.reopen(&info.id, former.as_ref(), Timestamp::now())?;
            // Reports show the whole run, including the part before the interruption. Output errors are reported at
            // the end.
            store
                .replay(&info.id, &mut |event| reporters.iter_mut().for_each(|reporter| drop(reporter.event(event))))?;
        }
        let jobs = plan.settings.jobs.min(plan.trials.len()).max(1);
        let host = Arc::clone(&self.host);
        let ended = record(jobs, store, (reporters, hash), signals, |controls, listener| async move {
            let Some(own) = own else { return runner::run(plan, host, info, controls, listener).await };
            let (sender, both) = unbounded_channel();
            [controls, own].into_iter().for_each(|from| drop(tokio::spawn(pass_on(from, sender.clone()))));
            runner::run(plan, host, info, both, listener).await
        });
        drop(lock);
        ended
    }
}

/// Passes controls on until there are no more.
async fn pass_on(mut from: UnboundedReceiver<Control>, to: UnboundedSender<Control>) {
    while let Some(control) = from.recv().await {
        // Fails if the run is over.
        let _ = to.send(control);
    }
}

/// Returns `true` if the agent of a trial can push to the source repository itself.
pub fn uses_real_remote(plan: &Plan) -> bool {
    let settings = &plan.settings.sandbox;
    let is_real = |trial: &PlannedTrial| settings.remote_of(&trial.case) == RemoteMode::Real;
    settings.source_repo.is_some() && plan.trials.iter().any(is_real)
}

/// Runs the future that `start` returns from the controls and the listener, and records its events. At the end of the
/// run, the reporters read its hash.
///
/// # Errors
/// Returns an error if threads cannot be started, or if the run cannot.
pub fn record<F: Future<Output = Result<RunEnd, Breakage>> + Send + 'static>(
    jobs: usize,
    store: Box<dyn Store>,
    (reporters, hash): (Vec<Box<dyn Reporter>>, RunHash),
    signals: Signals,
    start: impl FnOnce(UnboundedReceiver<Control>, Arc<dyn Listener>) -> F,
) -> Result<(RunEnd, Recorded), Error> {
    let (sender, controls) = unbounded_channel();
    let recording = Recording::start(store, reporters, hash, sender.clone(), signals.was_received)
        .map_err(|error| Error::environment(format!("cannot start recording: {error}")))?;
    let ended = on_threads(jobs, || (signals.connect)(&sender), start(controls, recording.listener()));
    let recorded = recording.finish();
    Ok((ended?, recorded))
}

/// Runs the future that `start` returns without recording anything.
///
/// # Errors
/// Returns an error if threads cannot be started, or if the run cannot.
pub fn unrecorded<T: Send + 'static, E: Send + 'static, F: Future<Output = Result<T, E>> + Send + 'static>(
    jobs: usize,
    signals: Signals,
    start: impl FnOnce(UnboundedReceiver<Control>) -> F,
) -> Result<T, Error>
where
    Error: From<E>,
{
    let (sender, controls) = unbounded_channel();
    on_threads(jobs, || (signals.connect)(&sender), start(controls))
}

fn on_threads<T: Send + 'static, E: Send + 'static>(
    jobs: usize,
    connect: impl FnOnce() -> io::Result<()>,
    run: impl Future<Output = Result<T, E>> + Send + 'static,
) -> Result<T, Error>
where
    Error: From<E>,
{
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(jobs.clamp(1, 4))
        .enable_all()
        .build()
        .map_err(|error| Error::environment(format!("cannot start threads: {error}")))?;
    let ended = runtime.block_on(async {
        connect().map_err(|error| Error::environment(format!("cannot listen to signals: {error}")))?;
        // On the threads of its trials, a trial that ends wakes no other thread.
        let ended = tokio::spawn(run).await.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()));
        ended.map_err(Error::from)
    });
    runtime.shutdown_timeout(SHUTDOWN);
    ended
}
