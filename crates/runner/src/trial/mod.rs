//! Life cycle of a trial: provision, act, collect, grade, close. Closing always runs, whatever happened before.

mod act;
mod canaries;
mod clock;
mod code;
mod command;
mod control_run;
mod culprit;
mod elsewhere;
mod failing_test;
mod files;
mod grade;
mod hooks;
mod inspection;
mod isolation;
mod mocks;
mod model_in_use;
mod network;
pub(crate) mod probe;
mod record;
mod recording;
mod regrade;
mod remotes;
mod retry;
mod user;

use std::collections::HashMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use ::grade::{Check, Judge};
use cassette::{Cassettes, Tape};
use jiff::Timestamp;
use mask::Mask;
use model::{
    AssertionScope, AttemptRecord, AuxiliaryUsage, Collected, Definition, Ending, Event, IntegrityKind, IntegritySign,
    Limits, Need, NetworkPolicy, Phases, Probed, ReplyProbes, Skill, Step, TrialRecord, Usage,
};
use sandbox::supervise::Network;
use sandbox::{Breakage, Host, ParentFile, Registry, RepositoryDetail, Request, Sandbox, SandboxError, SandboxFactory};
use tokio::sync::watch;
use tracing::{Instrument, info_span};

use self::act::ActResult;
use self::canaries::{CanaryWatch, canaries_of};
use self::control_run::ControlRuns;
pub(crate) use self::elsewhere::{Elsewhere, run as run_elsewhere};
use self::grade::End;
use self::mocks::TrialMocks;
use self::network::TrialNetwork;
use self::record::record_of;
use self::record::{attempt_of, skipped, unloaded};
pub(crate) use self::record::{broken, cancelled, panicked, stopped};
pub use self::recording::{cassette_file, inputs, is_recorded};
pub use self::regrade::RecordedEvidence;
pub(crate) use self::regrade::regrade;
use self::retry::{Changes, Retry};
use crate::cleanup::RemoteCleaner;
use crate::control::StopLevel;
use crate::event_bus::EventSender;
use crate::grader::Grader;
use crate::hook::Hook;
use crate::plan::{Judging, PlannedTrial, RetryOn, Settings};
use crate::pricing::pricing_of;
use crate::spending::Spending;

/// Name under which canaries are masked. It marks them as secrets.
const CANARY_VARIABLE: &str = "CANARY_KEY";

/// Results of commands with the own solution of their case, which are the same for all its trials: by the suite, the
/// case, the command and the number of answered messages.
pub(crate) type Solutions = Mutex<HashMap<(Arc<str>, Arc<str>, String, usize), Arc<tokio::sync::OnceCell<Probed>>>>;

/// State that all trials of a run share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) settings: Settings,
    pub(crate) factory: SandboxFactory,
    pub(crate) registry: Arc<Registry>,
    pub(crate) gateway: Option<gateway::Gateway>,
    pub(crate) upstream: Arc<gateway::Upstream>,
    pub(crate) cassettes: Cassettes,
    pub(crate) grader: Grader,
    pub(crate) judging: Arc<Judging>,
    pub(crate) mask: Arc<Mask>,
    pub(crate) spending: Spending,
    pub(crate) hook: Option<Arc<dyn Hook>>,
    pub(crate) cleaner: Option<Arc<dyn RemoteCleaner>>,
    /// Place where the trials run, if it is not this process.
    pub(crate) elsewhere: Option<Arc<Elsewhere>>,
    /// Results of verifiers with the solutions of cases.
    pub(crate) solutions: Solutions,
    /// Files that steered tools in every sandbox when the run began.
    pub(crate) parent_files: Vec<ParentFile>,
}

impl Shared {
    /// Returns a sign for each file outside the sandboxes that steers tools in all of them, and that appeared during the
    /// run. Only local sandboxes show such files. Which of the trials wrote it cannot be told.
    fn planted_above(&self) -> Vec<IntegritySign> {
        if self.settings.sandbox.kind != "local" {
            return Vec::new();
        }
        let new = sandbox::parent_files(&self.host.temp).into_iter().filter(|file| !self.parent_files.contains(file));
        let sign = |ParentFile { path, tool }| {
            let detail = format!("{tool} may use it in every sandbox, and it appeared during the run");
            IntegritySign::new(IntegrityKind::PlantedCode, path.display().to_string(), detail)
        };
        new.map(sign).collect()
    }

    /// Returns the mask of one trial, which includes the secrets of its fixture and its canaries.
    pub(crate) fn mask_of(&self, planned: &PlannedTrial) -> Arc<Mask> {
        let canaries = canaries_of(planned, &self.settings.sandbox).into_iter();
        let canaries = canaries.map(|canary| (CANARY_VARIABLE.to_owned(), canary.value));
        let secrets: Vec<(String, String)> = planned.case.fixtures.env.iter().cloned().chain(canaries).collect();
        match secrets.as_slice() {
            [] => Arc::clone(&self.mask),
            secrets => Arc::new(self.mask.with_fixture(secrets)),
        }
    }
}

/// Returns the record of a trial that is not run because it is skipped, its case is broken, or the run's budget is
/// used up. `None` if it must be run.
pub(crate) fn not_run(planned: &PlannedTrial, shared: &Shared) -> Option<TrialRecord> {
    let reason = planned.case.skip.as_deref();
    match reason {
        Some(reason) => Some(skipped(planned, reason)),
        None if !planned.case.broken.is_empty() => Some(unloaded(planned)),
        None => {
            let reason = shared.spending.ceased()?;
            Some(cancelled(planned, reason))
        }
    }
}

/// Sends the event for the start of an attempt.
pub(crate) fn begin(planned: &PlannedTrial, events: &EventSender) {
    let first = planned.case.messages.first();
    events.emit(Event::TrialStarted {
        id: planned.id(),
        agent: planned.arm.agent.clone(),
        model: planned.arm.model.clone(),
        subject: planned.case.subject.skill().map(|skill| skill.name.clone()),
        file: Arc::clone(&planned.case.source.file),
        messages: planned.case.messages.iter().map(|message| message.text.clone()).collect(),
        position: planned.case.position,
        script: first.and_then(|message| message.script.clone()),
        input: first.and_then(|message| message.input.clone()),
    });
}

/// Runs a trial, whose start has been emitted, to its outcome. Broken attempts are retried as often as the settings
/// allow, failed ones only if the settings ask for it. `attempts` are those that were lost elsewhere.
///
/// Futures that only a few trials await (a sandbox, code, a simulated user, a judge) are boxed: otherwise the future
/// of every trial would have room for all of them, and it is moved several times.
pub(crate) async fn run(
    planned: PlannedTrial,
    shared: Arc<Shared>,
    mut events: EventSender,
    stop_level: watch::Receiver<StopLevel>,
    mut attempts: Vec<AttemptRecord>,
) -> TrialRecord {
    let started_at = Timestamp::now();
    let started = Instant::now();
    let mut judge: Option<AuxiliaryUsage> = None;
    let mut user: Option<AuxiliaryUsage> = None;
    let mut phases = Phases::default();
    let mut limits = Arc::clone(&planned.limits);
    let lost = attempts.len();
    loop {
        let mut attempt = Attempt::new(&planned, &shared, &events, stop_level.clone());
        (attempt.before, attempt.limits) = (&attempts, Arc::clone(&limits));
        let span = info_span!("trial", id = %planned.id(), attempt = events.attempt());
        let ended = attempt.run().instrument(span).await;
        let tape = attempt.tape().cloned();
        let is_final = matches!(&ended, Err(Interruption::Broken(breakage)) if breakage.is_final);
        let (mut record, trace) = match ended {
            Ok(end) => {
                let trace = retry::changes_of(&end.evidence.collected);
                (record_of(&planned, end), trace)
            }
            Err(Interruption::Broken(breakage)) => (broken(&planned, &breakage), Changes::None),
            Err(Interruption::Stopped) => (stopped(&planned), Changes::None),
        };
        record.limits = Arc::clone(&limits);
        for (sum, took) in [(&mut judge, record.judge), (&mut user, attempt.user_took())] {
            if let Some(took) = took {
                *sum.get_or_insert_default() += took;
            }
        }
        phases += attempt.phases();
        record.duration_ms = model::millis(attempt.began.elapsed());
        attempts.push(attempt_of(&record));
        // The test would fail with the same mistake again.
        let is_final = is_final || matches!(record.ending, Some(Ending::InvalidTest { .. }));
        let again = match is_final || *stop_level.borrow() != StopLevel::No {
            true => Retry::No,
            false => retry::decide(&planned, &shared.settings, &attempts[lost..], record.ending.as_ref(), &trace),
        };
        if let Retry::Refused(reason) = &again {
            record.warnings.push(format!("not retried: {reason}"));
        }
        if matches!(again, Retry::No | Retry::Refused(_)) {
            record.flaky = TrialRecord::is_flaky(record.outcome, &attempts);
            record.attempts = attempts;
            (record.usage, record.cost_usd) = record.spent().parts();
            record.masked = events.has_hidden();
            (record.judge, record.user, record.phases) = (judge, user, phases);
            record.set_sampled(shared.judging.is_sampled(&planned));
            if let (Some(_), Some(name)) = (judge, shared.judging.model()) {
                Arc::make_mut(&mut record.settings).insert("judge".to_owned(), name.into());
            }
            record.started_at = started_at;
            record.duration_ms = model::millis(started.elapsed());
            if let Some(tape) = &tape {
                recording::save(tape, &planned, &shared, events.mask(), &mut record).await;
            }
            shared.spending.add(&record, &planned, &shared.settings, &shared.judging);
            return record;
        }
        events.emit(Event::TrialRetried { reason: record.reason.unwrap_or_default() });
        if again == Retry::Counted {
            let used = Usage { tokens: record.usage, cost_usd: record.cost_usd };
            limits = Arc::new(retry::limits_after(
                &limits,
                used,
                record.agent_ms.unwrap_or(0),
                shared.settings.limits.max_duration_from,
            ));
        }
        events = events.next_attempt();
        begin(&planned, &events);
    }
}

/// Returns the folder with the skills of a plug-in, and where it is installed for an agent that looks for skills in
/// `folder`.
fn skills_of_plugin((plugin, folder): (Arc<Skill>, &str)) -> Option<(Arc<Skill>, String)> {
    let (parent, name) = folder.rsplit_once('/')?;
    let skills = plugin.directory.as_ref()?.join("skills");
    // The folder keeps its name.
    let is_there = skills.is_dir() && name == "skills";
    is_there.then(|| (Arc::new(Skill { directory: Some(skills), ..Skill::clone(&plugin) }), parent.to_owned()))
}

/// Reason why an attempt did not complete.
enum Interruption {
    Broken(Breakage),
    /// Stopped by the user.
    Stopped,
}

impl<E: Into<Breakage>> From<E> for Interruption {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

struct Attempt<'a> {
    planned: &'a PlannedTrial,
    shared: &'a Arc<Shared>,
    events: &'a EventSender,
    stop_level: watch::Receiver<StopLevel>,
    began: Instant,
    /// The attempts before this one.
    before: &'a [AttemptRecord],
    /// Limits of the trial, with what earlier attempts have used.
    limits: Arc<Limits>,
    /// Set once the sandbox is ready, because the tape needs its paths.
    tape: OnceLock<Option<Arc<Tape>>>,
    /// Created on first use.
    judge: OnceLock<Result<Judge, String>>,
    /// Usage of the simulated user so far.
    user: Mutex<Option<AuxiliaryUsage>>,
    /// Durations of the phases so far.
    phases: Mutex<Phases>,
    /// Watch for the canaries of the trial, if there are any.
    canaries: Option<Arc<CanaryWatch>>,
    /// Network of the sandbox's processes, once they run, if it is not the machine's.
    network: OnceLock<TrialNetwork>,
    /// MCP servers and mocked programs, once the sandbox has them, if there are any.
    mocks: OnceLock<TrialMocks>,
    /// Sign that the agent ended its own program.
    own_end: OnceLock<IntegritySign>,
}

impl<'a> Attempt<'a> {
    /// Returns the first attempt at a trial.
    fn new(
        planned: &'a PlannedTrial,
        shared: &'a Arc<Shared>,
        events: &'a EventSender,
        stop_level: watch::Receiver<StopLevel>,
    ) -> Self {
        Self {
            planned,
            shared,
            events,
            stop_level,
            began: Instant::now(),
            before: &[],
            limits: Arc::clone(&planned.limits),
            tape: OnceLock::new(),
            judge: OnceLock::new(),
            user: Mutex::default(),
            phases: Mutex::default(),
            canaries: CanaryWatch::of(&canaries_of(planned, &shared.settings.sandbox)),
            network: OnceLock::new(),
            mocks: OnceLock::new(),
            own_end: OnceLock::new(),
        }
    }

    /// Returns the tape of this attempt, if it has one.
    fn tape(&self) -> Option<&Arc<Tape>> {
        self.tape.get()?.as_ref()
    }

    /// Returns the usage of the models that play the user and mocks so far, however the attempt ended.
    fn user_took(&self) -> Option<AuxiliaryUsage> {
        let user = *self.user.lock().unwrap_or_else(PoisonError::into_inner);
        let mocks = self.mocks.get().and_then(TrialMocks::spent);
        user.into_iter().chain(mocks).reduce(|mut sum, more| {
            sum += more;
            sum
        })
    }

    /// Returns the durations of the phases so far.
    fn phases(&self) -> Phases {
        *self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does the work of a phase in a span with its name, and adds its duration to the field that `of` selects.
    async fn phase<W: Future>(&self, name: &'static str, of: fn(&mut Phases) -> &mut u64, work: W) -> W::Output {
        let began = Instant::now();
        let output = work.instrument(info_span!("phase", name)).await;
        *of(&mut self.phases.lock().unwrap_or_else(PoisonError::into_inner)) += model::millis(began.elapsed());
        output
    }

    async fn run(&self) -> Result<End, Interruption> {
        self.prepare_agent().await?;
        let sandbox = self.phase("provision", |phases| &mut phases.provision_ms, pin!(self.provision())).await?;
        let mut ended = self.in_sandbox(sandbox.clone()).await;
        if let Ok(end) = &mut ended {
            Box::pin(self.clean_remotes(end)).await;
        }
        let closed = self.close(sandbox).instrument(info_span!("phase", name = "close")).await;
        let mut end = ended?;
        end.kept = closed.kept;
        end.errors.extend(closed.error);
        Ok(end)
    }

    async fn in_sandbox(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Result<End, Interruption> {
        let tape = recording::tape(self.planned, self.shared, sandbox.as_deref(), self.events.mask())?;
        let _ = self.tape.set(tape);
        let paying = Box::pin(pricing_of(self.planned, &self.shared.settings, &self.shared.host));
        let (pricing, warning) = self.unless(StopLevel::Stop, paying).await?;
        let mut act_result = {
            let acting = pin!(self.act(sandbox.clone(), pricing));
            self.phase("act", |phases| &mut phases.act_ms, acting).await?
        };
        if let Some(warning) = warning {
            act_result.turn.warn(warning);
        }
        if let Some(sandbox) = &sandbox {
            check_sandbox(&**sandbox, &mut act_result.ending).await;
        }
        let reply_probes = std::mem::take(&mut act_result.reply_probes);
        // Pinned here: a future that is passed by value takes up its space twice in the one that awaits it.
        let collected = {
            let collecting = pin!(self.collect(sandbox.clone(), &act_result, reply_probes));
            self.phase("collect", |phases| &mut phases.collect_ms, self.with_grace(collecting)).await
        };
        let collected = match collected {
            Ok(Ok(collected)) => {
                // The agent itself caused this, whatever it reported.
                if let Some(reason) = collected.lost().filter(|_| act_result.ending.goes_on()) {
                    act_result.ending = Ending::GaveUp { reason: reason.to_owned() };
                }
                collected
            }
            // The agent's steps are kept, but without the state of the sandbox they are not evidence.
            Ok(Err(Breakage { reason, .. })) => {
                act_result.ending = Ending::Aborted { reason };
                Collected::default()
            }
            // The steps so far are kept, but without the state of the sandbox there is no verdict.
            Err(_) => {
                act_result.ending = Ending::Cancelled;
                Collected::default()
            }
        };
        if let Some(network) = self.network.get() {
            act_result.turn.complete_trace(|trace| network.complete(trace));
        }
        if let Some(mocks) = self.mocks.get() {
            act_result.turn.complete_trace(|trace| mocks.complete(trace));
        }
        let excused = act_result.turn.excused();
        let graded = {
            let grading = pin!(self.grade(act_result, collected));
            self.phase("grade", |phases| &mut phases.grade_ms, self.with_grace(grading)).await
        };
        let mut end = graded??;
        if let Some(ending) = excused {
            end.excuse(ending);
        }
        recording::judge_staleness(self.tape(), &mut end.evidence.ending);
        let hooks = Box::pin(self.after_grading(&mut end, sandbox.as_ref()));
        self.phase("hooks", |phases| &mut phases.hooks_ms, hooks).await;
        Ok(end)
    }

    /// Prepares what the agent's trials share.
    async fn prepare_agent(&self) -> Result<(), Interruption> {
        let planned = self.planned;
        let prepared = planned.agent.prepare(planned.config.as_deref(), &self.shared.host, &planned.state);
        Ok(self.unless(StopLevel::Stop, prepared).await??)
    }

    /// Creates a fresh sandbox, or none if neither agent nor case needs one.
    async fn provision(&self) -> Result<Option<Arc<dyn Sandbox>>, Interruption> {
        // Even without a sandbox, what a case requires must hold, whoever runs it.
        self.check_isolation()?;
        if !self.planned.needs_sandbox() {
            return Ok(None);
        }
        self.events.emit(Event::Waiting { on: "sandbox".into() });
        let began = Instant::now();
        let request = self.request();
        let skill = request.skill.clone();
        let sandbox = self.unless(StopLevel::Stop, Box::pin(self.shared.factory.make(request))).await??;
        self.events.emit(Event::SandboxReady {
            path: sandbox.work().to_string_lossy().into_owned(),
            skill: skill.map(|(skill, folder)| format!("{folder}/{}", skill.file_name())),
            duration_ms: model::millis(began.elapsed()),
        });
        Ok(Some(sandbox))
    }

    /// Describes a fresh sandbox for the trial.
    fn request(&self) -> Request {
        let (case, agent) = (&self.planned.case, self.planned.agent);
        let skill = case.subject.installed().cloned();
        let folder = agent.description().folder_of(case.definition);
        let needs_changes = case.skill_eval.is_some()
            || self.uses_real_remote()
            || retry::retry_on(self.planned, &self.shared.settings) != RetryOn::NONE
            || self.planned.checks.iter().any(|check| check.needs().contains(&Need::Repository));
        Request {
            name: format!("{}@{}", self.planned.id(), self.before.len()),
            fixtures: Arc::clone(&case.fixtures),
            skill: match (case.definition, agent.description().plugins_folder) {
                (Definition::SkillsOfPlugin, _) | (Definition::Plugin, None) => {
                    skill.zip(folder).and_then(skills_of_plugin)
                }
                _ => skill.zip(folder.map(str::to_owned)),
            },
            graded: case.graded.clone(),
            repository: match self.shared.settings.sandbox.records_repository {
                _ if needs_changes => RepositoryDetail::Changes,
                true => RepositoryDetail::After,
                false => RepositoryDetail::Nothing,
            },
            source_repo: self.shared.settings.sandbox.source_repo.clone(),
            remote: self.shared.settings.sandbox.remote_of(case),
            // These variables are for the real remote.
            extra_env: match self.uses_real_remote() {
                true => self.shared.settings.sandbox.extra_env.clone(),
                false => Vec::new(),
            },
            setup_timeout: Duration::from_millis(self.shared.settings.sandbox.setup_timeout_ms),
            network: if self.network_policy().is_open() { Network::Open } else { Network::None },
            faults: case.faults.iter().map(|fault| fault.action.clone()).collect(),
            canaries: canaries_of(self.planned, &self.shared.settings.sandbox),
            keep: self.shared.settings.sandbox.keep,
            only_graded: false,
        }
    }

    /// Returns the network policy for the trial. It applies if its sandbox isolates processes.
    fn network_policy(&self) -> NetworkPolicy {
        self.shared.settings.sandbox.network_of(&self.planned.case).cloned().unwrap_or_default()
    }

    /// Returns what the checks that `wanted` selects need from the sandbox.
    fn needs(&self, wanted: impl Fn(&Check) -> bool) -> Vec<Need> {
        self.planned.checks.iter().filter(|check| wanted(check)).flat_map(Check::needs).collect()
    }

    /// Collects the state that the agent left behind. `reply_probes` are the probes made between messages.
    async fn collect(
        &self,
        sandbox: Option<Arc<dyn Sandbox>>,
        act_result: &ActResult,
        reply_probes: Vec<ReplyProbes>,
    ) -> Result<Collected, Breakage> {
        let Some(sandbox) = sandbox else {
            let collected = Collected { faults: act_result.faults.clone(), ..Collected::default() };
            if !collected.faults.is_empty() {
                self.events.emit(Event::Collected(collected.clone()));
            }
            return Ok(collected);
        };
        self.events.emit(Event::Waiting { on: "collecting".into() });
        let mut needs =
            self.needs(|check| !reply_probes.iter().any(|then| check.about() == AssertionScope::Reply(then.reply)));
        // A later version of the suite may need the files once the sandbox is gone.
        needs.extend(self.planned.case.skill_eval.is_some().then_some(Need::Files));
        let mut collected = match sandbox.collect().await {
            Err(SandboxError::Ruined { reason }) => probe::lost(&*sandbox, needs, reason),
            Err(error) => return Err(error.into()),
            // A stopped trial is not graded.
            Ok(collected) if matches!(act_result.ending, Ending::Cancelled) => collected,
            Ok(collected) => {
                let control_runs = ControlRuns {
                    attempt: self,
                    checks: &self.planned.checks,
                    answered: act_result.turn.trace().user_messages.len(),
                };
                let answer = act_result.turn.trace().answer.as_deref();
                let changed = &collected.files_changed;
                let probes = Box::pin(probe::run(&*sandbox, needs, changed, answer, &control_runs)).await;
                let mut collected = Collected { probes, ..collected };
                collected.harmless = control_runs.harmless(&collected, sandbox.work()).await;
                collected
            }
        };
        collected.reply_probes = reply_probes;
        collected.network = self.network.get().map(TrialNetwork::policy);
        // Something else may explain the end after all.
        let own_end = self.own_end.get().filter(|_| matches!(act_result.ending, Ending::GaveUp { .. }));
        collected.integrity.extend(own_end.into_iter().chain(&act_result.foreign_requests).cloned());
        collected.integrity.extend(self.shared.planted_above());
        if let Some(canaries) = &self.canaries {
            without_planted(&*sandbox, &mut collected);
            let texts = sandbox.texts(&collected).await;
            collected.integrity.extend(canaries.signs(act_result.turn.trace(), &*sandbox, &texts));
        }
        collected.forged_calls.clone_from(&act_result.forged_calls);
        collected.forged_replies.clone_from(&act_result.forged_replies);
        let (reports, occurrences) = sandbox.faults();
        occurrences.into_iter().for_each(|occurrence| self.events.emit(Event::Step(Step::Fault(occurrence))));
        collected.faults = act_result.faults.iter().cloned().chain(reports).collect();
        collected.model_traffic.clone_from(&act_result.model_traffic);
        let is_lost = collected.lost().is_some();
        if !is_lost && self.shared.hook.as_ref().is_some_and(|hook| hook.wants_patch()) {
            collected.patch = sandbox.patch(&collected).await;
        }
        self.events.emit(Event::Collected(collected.clone()));
        Ok(collected)
    }

    async fn close(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Closed {
        let Some(sandbox) = sandbox else { return Closed::default() };
        self.events.emit(Event::Waiting { on: "cleaning up".into() });
        let kept = self.shared.settings.sandbox.keep.then(|| sandbox.work().to_string_lossy().into_owned());
        Closed { kept, error: sandbox.close().await.err().map(|error| error.to_string()) }
    }

    /// Runs `work`, unless the run is asked to stop with at least `limit`.
    async fn unless<T>(&self, limit: StopLevel, work: impl Future<Output = T>) -> Result<T, Interruption> {
        if *self.stop_level.borrow() >= limit {
            return Err(Interruption::Stopped);
        }
        let mut stop_level = self.stop_level.clone();
        let stopped = async {
            let _ = stop_level.wait_for(|stop_level| *stop_level >= limit).await;
        };
        until(stopped, work).await
    }

    /// Runs `work`, which gets the agents' grace period once the run is asked to stop.
    async fn with_grace<T>(&self, work: impl Future<Output = T>) -> Result<T, Interruption> {
        let (mut stopped, mut killed) = (self.stop_level.clone(), self.stop_level.clone());
        let grace = Duration::from_millis(self.shared.settings.stop_grace_ms);
        let stopped = async {
            let _ = stopped.wait_for(|stop_level| *stop_level >= StopLevel::Stop).await;
            let _ = tokio::time::timeout(grace, killed.wait_for(|stop_level| *stop_level >= StopLevel::Kill)).await;
        };
        until(stopped, work).await
    }
}

/// Corrects the ending of an agent whose sandbox can no longer run its commands. It may have ended like one that gave
/// up, or that finished without noticing.
async fn check_sandbox(sandbox: &dyn Sandbox, ending: &mut Ending) {
    let is_doubtful = matches!(ending, Ending::Finished | Ending::GaveUp { .. } | Ending::TimedOut { .. });
    if is_doubtful && let Err(error) = sandbox.check().await {
        *ending = Ending::Unreachable { reason: error.to_string() };
    }
}

/// Removes the canaries that the agent did not change from the lists of files.
fn without_planted(sandbox: &dyn Sandbox, collected: &mut Collected) {
    let planted = sandbox.planted();
    for probe in &mut collected.probes {
        if let Probed::Files { files, .. } = &mut probe.found {
            files.retain(|file| !planted.contains(&file.path));
        }
    }
}

/// Runs `work`, unless `stopped` completes first.
async fn until<T>(stopped: impl Future<Output = ()>, work: impl Future<Output = T>) -> Result<T, Interruption> {
    let mut work = pin!(work);
    // Work that does not wait needs no supervision.
    if let Poll::Ready(done) = poll_once(work.as_mut()).await {
        return Ok(done);
    }
    tokio::select! {
        biased;
        () = stopped => Err(Interruption::Stopped),
        done = work => Ok(done),
    }
}

/// Polls `work` once.
async fn poll_once<W: Future>(mut work: Pin<&mut W>) -> Poll<W::Output> {
    std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await
}

#[derive(Default)]
struct Closed {
    kept: Option<String>,
    error: Option<String>,
}
