//! The life of a trial: provision, act, collect, grade, close. Closing always runs, whatever happened before.

mod again;
mod clock;
mod code;
mod files;
mod hooks;
pub(crate) mod judging;
mod model_in_use;
pub(crate) mod probe;
mod record;
mod regrade;
mod user;

use std::collections::BTreeMap;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::Poll;
use std::time::{Duration, Instant};

use agent::{Activity, Agent, Bill, Flow, Pricing, Resolver, Session, SessionContext, Turn};
use grade::{Check, Responder};
use jiff::Timestamp;
use mask::Mask;
use model::{
    About, Aside, AttemptRecord, Case, Change, Code, Collected, Ending, Event, Evidence, FileChange, Finding, Limits,
    Need, Outcome, Phases, ReplyProbes, SimulatedUser, Status, Step, TrialRecord, Usage, UserMessage,
};
use sandbox::{Breakage, Host, Registry, Request, Sandbox, SandboxError, SandboxFactory};
use tokio::sync::watch;

use self::again::{Again, Trace};
use self::clock::{Clock, Watched};
use self::code::{Others, Played, Stage};
use self::judging::Judging;
use self::model_in_use::ModelInUse;
use self::record::record_of;
pub(crate) use self::record::{broken, cancelled, panicked, stopped};
use self::record::{skipped, unloaded};
pub use self::regrade::RecordedEvidence;
pub(crate) use self::regrade::regrade;
use crate::code::Script;
use crate::control::Halt;
use crate::event_bus::EventSender;
use crate::grader::{self, Grader};
use crate::hook::Hook;
use crate::plan::{PlannedTrial, RetryOn, Settings};
use crate::pricing::pricing_of;
use crate::spending::Spending;

/// State that all trials of a run share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) settings: Settings,
    pub(crate) factory: SandboxFactory,
    pub(crate) registry: Arc<Registry>,
    pub(crate) gateway: Option<gateway::Gateway>,
    pub(crate) grader: Grader,
    pub(crate) judging: Arc<Judging>,
    pub(crate) mask: Arc<Mask>,
    pub(crate) spending: Spending,
    pub(crate) hook: Option<Arc<dyn Hook>>,
}

impl Shared {
    /// Returns the mask of one trial, which includes the secrets of its fixture.
    pub(crate) fn mask_of(&self, planned: &PlannedTrial) -> Arc<Mask> {
        match planned.case.fixtures.env.as_slice() {
            [] => Arc::clone(&self.mask),
            env => Arc::new(self.mask.with_fixture(env)),
        }
    }
}

/// Thread on which evidence is graded, which may take long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grading {
    /// The current thread, which serves no agent that takes its time. Checks that run the user's code are graded
    /// elsewhere all the same.
    Here,
    /// A grading thread.
    Elsewhere,
}

/// Returns the record of a trial that is not run: because it is skipped, because its case is broken, or because the
/// budget of the run is used up. `None` if it is to be run.
pub(crate) fn not_run(planned: &PlannedTrial, shared: &Shared) -> Option<TrialRecord> {
    let because = planned.case.skip.as_deref();
    match because {
        Some(because) => Some(skipped(planned, because)),
        None if !planned.case.broken.is_empty() => Some(unloaded(planned)),
        None => {
            let because = shared.spending.ceased()?;
            Some(cancelled(planned, because))
        }
    }
}

/// Returns `true` if the trial needs a sandbox.
pub(crate) fn needs_sandbox(planned: &PlannedTrial) -> bool {
    has_sandbox(planned.agent, &planned.case)
}

/// Returns `true` if trials of `case` with `agent` have a sandbox.
pub(crate) fn has_sandbox(agent: &dyn Agent, case: &Case) -> bool {
    let fixtures = &case.fixtures;
    // To measure whether a skill helps, there must be a place without it.
    let installs = case.skill_eval.is_some() && agent.description().folder_of(case.definition).is_some();
    installs || agent.description().needs_sandbox || !fixtures.is_empty() || !fixtures.env.is_empty()
}

fn needs_repository(check: &Check) -> bool {
    check.needs().contains(&Need::Repository)
}

/// Sends the event that an attempt starts.
pub(crate) fn begin(planned: &PlannedTrial, events: &EventSender) {
    let first = planned.case.messages.first();
    events.emit(Event::TrialStarted {
        id: planned.id.clone(),
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

/// Runs a trial that has been announced to its outcome. A broken attempt is retried as often as the settings say, and a
/// failed one where they say so.
///
/// Futures that only few trials wait for (a sandbox, code, a played user, a judge) are boxed: otherwise the future of
/// every trial would have room for all of them, and it is moved several times.
/// of every trial would have room for all of it, and is moved several times.
pub(crate) async fn run(
    planned: Arc<PlannedTrial>,
    shared: Arc<Shared>,
    mut events: EventSender,
    halt: watch::Receiver<Halt>,
    grading: Grading,
) -> TrialRecord {
    let started_at = Timestamp::now();
    let started = Instant::now();
    let mut attempts: Vec<AttemptRecord> = Vec::new();
    let mut judge: Option<Aside> = None;
    let mut user: Option<Aside> = None;
    let mut phases = Phases::default();
    let mut limits = Arc::clone(&planned.limits);
    loop {
        let began = Instant::now();
        let attempt = Attempt {
            planned: &planned,
            shared: &shared,
            events: &events,
            halt: halt.clone(),
            grading,
            began,
            before: &attempts,
            limits: Arc::clone(&limits),
            judge: OnceLock::new(),
            user: Mutex::default(),
            phases: Mutex::default(),
        };
        let ended = attempt.run().await;
        let is_final = matches!(&ended, Err(Cut::Broken(breakage)) if breakage.is_final);
        let (mut record, trace) = match ended {
            Ok(end) => {
                let trace = again::trace_of(&end.evidence.collected);
                (record_of(&planned, end), trace)
            }
            Err(Cut::Broken(breakage)) => (broken(&planned, &breakage), Trace::None),
            Err(Cut::Stopped) => (stopped(&planned), Trace::None),
        };
        record.limits = Arc::clone(&limits);
        for (sum, took) in [(&mut judge, record.judge), (&mut user, attempt.user_took())] {
            if let Some(took) = took {
                *sum.get_or_insert_default() += took;
            }
        }
        phases += attempt.phases();
        attempts.push(AttemptRecord {
            outcome: record.outcome,
            because: record.because.clone(),
            answer: record.answer.clone(),
            usage: record.usage,
            cost_usd: record.cost_usd,
            duration_ms: model::millis(began.elapsed()),
        });
        // The test would have the same mistake the next time.
        let is_final = is_final || matches!(record.ending, Some(Ending::InvalidTest { .. }));
        let again = match is_final || *halt.borrow() != Halt::No {
            true => Again::No,
            false => again::decide(&planned, &shared.settings, &attempts, record.ending.as_ref(), &trace),
        };
        if let Again::Not(because) = &again {
            record.warnings.push(format!("not tried again: {because}"));
        }
        if matches!(again, Again::No | Again::Not(_)) {
            record.flaky =
                record.outcome == Outcome::Passed && attempts.iter().any(|attempt| attempt.outcome == Outcome::Failed);
            record.attempts = attempts;
            record.masked = events.has_hidden();
            (record.judge, record.user, record.phases) = (judge, user, phases);
            if let (Some(_), Some(name)) = (judge, shared.judging.model()) {
                Arc::make_mut(&mut record.settings).insert("judge".to_owned(), name.into());
            }
            record.started_at = started_at;
            record.duration_ms = model::millis(started.elapsed());
            shared.spending.add(&record, &shared.settings);
            return record;
        }
        events.emit(Event::TrialRetried { because: record.because.unwrap_or_default() });
        if again == Again::Counted {
            let used = Usage { tokens: record.usage, cost_usd: record.cost_usd };
            limits = Arc::new(again::limits_after(
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

/// Result of an attempt that ran to its end.
struct End {
    evidence: Evidence,
    findings: Vec<Finding>,
    warnings: Vec<String>,
    kept: Option<String>,
    errors: Vec<String>,
    /// Scores that a scenario recorded.
    scores: BTreeMap<String, f64>,
    /// Usage of the judge.
    judge: Option<Aside>,
    /// Details of the cost beside its amount.
    bill: Bill,
    /// Exit code of the agent's process.
    exit_code: Option<i32>,
}

impl End {
    fn of(evidence: Evidence, findings: Vec<Finding>, warnings: Vec<String>) -> Self {
        let (kept, errors, scores) = (None, Vec::new(), BTreeMap::new());
        Self { evidence, findings, warnings, kept, errors, scores, judge: None, bill: Bill::default(), exit_code: None }
    }

    /// Marks the disk as full while the agent worked. That is not a failure of the agent, whatever else it ran into.
    fn blame_disk(&mut self) {
        let ending = &mut self.evidence.ending;
        let has_failed = !ending.goes_on() || self.findings.iter().any(|finding| finding.status == Status::Unmet);
        if has_failed && *ending != Ending::Cancelled {
            *ending = Ending::Aborted { because: "the disk was full while the agent worked".to_owned() };
        }
    }

    /// Returns a copy for the user's commands.
    fn copy(&self) -> Self {
        let (findings, warnings) = (self.findings.clone(), self.warnings.clone());
        Self {
            scores: self.scores.clone(),
            judge: self.judge,
            bill: self.bill,
            exit_code: self.exit_code,
            ..Self::of(self.evidence.clone(), findings, warnings)
        }
    }

    /// Adds the result of a scenario: its claims go before the implicit findings.
    fn add(&mut self, played: Played) {
        let Played { mut claims, judge, .. } = played;
        self.scores = std::mem::take(&mut claims.scores);
        if self.evidence.ending != Ending::Cancelled {
            self.findings.splice(0..0, claims.into_findings());
        }
        self.judge = judge;
    }
}

/// Reason why an attempt did not complete.
enum Cut {
    Broken(Breakage),
    /// Stopped by the user.
    Stopped,
}

impl<E: Into<Breakage>> From<E> for Cut {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

struct Attempt<'a> {
    planned: &'a Arc<PlannedTrial>,
    shared: &'a Arc<Shared>,
    events: &'a EventSender,
    halt: watch::Receiver<Halt>,
    grading: Grading,
    began: Instant,
    /// The attempts before this one.
    before: &'a [AttemptRecord],
    /// Limits of the trial, with what earlier attempts used of them.
    limits: Arc<Limits>,
    /// Created on first use.
    judge: OnceLock<Result<grade::Judge, String>>,
    /// Usage of the played user so far.
    user: Mutex<Option<Aside>>,
    /// Durations of the phases so far.
    phases: Mutex<Phases>,
}

impl Attempt<'_> {
    /// Returns the usage of the played user so far, whatever became of the attempt.
    fn user_took(&self) -> Option<Aside> {
        *self.user.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the durations of the phases so far.
    fn phases(&self) -> Phases {
        *self.phases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds the time since `began` to the phase that `of` selects.
    fn took(&self, of: fn(&mut Phases) -> &mut u64, began: Instant) {
        *of(&mut self.phases.lock().unwrap_or_else(PoisonError::into_inner)) += model::millis(began.elapsed());
    }

    async fn run(&self) -> Result<End, Cut> {
        let began = Instant::now();
        let provisioned = self.provision().await;
        self.took(|phases| &mut phases.provision_ms, began);
        let sandbox = provisioned?;
        let ended = self.in_sandbox(sandbox.clone()).await;
        let closed = self.close(sandbox).await;
        let mut end = ended?;
        end.kept = closed.kept;
        end.errors.extend(closed.error);
        Ok(end)
    }

    async fn in_sandbox(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Result<End, Cut> {
        let paying = Box::pin(pricing_of(self.planned, &self.shared.settings, &self.shared.host));
        let (pricing, warning) = self.unless(Halt::Stop, paying).await?;
        let began = Instant::now();
        let acted = self.act(sandbox.clone(), pricing).await;
        self.took(|phases| &mut phases.act_ms, began);
        let mut acted = acted?;
        if let Some(warning) = warning {
            acted.turn.warn(warning);
        }
        let looked = std::mem::take(&mut acted.looked);
        let began = Instant::now();
        // Pinned here: a future that is passed by value takes its space twice in the one that awaits it.
        let collected = {
            let collecting = pin!(self.collect(sandbox.clone(), &acted.ending, looked));
            self.with_grace(collecting).await
        };
        self.took(|phases| &mut phases.collect_ms, began);
        let collected = match collected {
            Ok(Ok(Ok(collected))) => collected,
            // Caused by the agent itself, whatever it reported.
            Ok(Ok(Err(because))) => {
                if acted.ending.goes_on() {
                    acted.ending = Ending::GaveUp { because };
                }
                let everything = FileChange { path: ".".to_owned(), change: Change::Deleted };
                Collected { files_changed: vec![everything], ..Collected::default() }
            }
            // The agent's steps are kept, although they are not evidence without a look at what it left behind.
            Ok(Err(Breakage { because, .. })) => {
                acted.ending = Ending::Aborted { because };
                Collected::default()
            }
            // The steps so far are kept; without a look at the sandbox there is no verdict.
            Err(_) => {
                acted.ending = Ending::Cancelled;
                Collected::default()
            }
        };
        let disk_was_full = acted.turn.disk_was_full();
        let began = Instant::now();
        let graded = {
            let grading = pin!(self.grade(acted, collected));
            self.with_grace(grading).await
        };
        self.took(|phases| &mut phases.grade_ms, began);
        let mut end = graded??;
        if disk_was_full {
            end.blame_disk();
        }
        let began = Instant::now();
        Box::pin(self.after_grading(&mut end, sandbox.as_ref())).await;
        self.took(|phases| &mut phases.hooks_ms, began);
        Ok(end)
    }

    /// Creates a fresh sandbox, or none if neither agent nor case needs one.
    async fn provision(&self) -> Result<Option<Arc<dyn Sandbox>>, Cut> {
        let case = &self.planned.case;
        let agent = self.planned.agent;
        if !needs_sandbox(self.planned) {
            return Ok(None);
        }
        self.events.emit(Event::Waiting { on: "sandbox".into() });
        let began = Instant::now();
        let skill = case.subject.installed().cloned();
        let folder = agent.description().folder_of(case.definition);
        let request = Request {
            fixtures: Arc::clone(&case.fixtures),
            skill: skill.clone().zip(folder.map(str::to_owned)),
            watch_repository: case.skill_eval.is_some()
                || again::retry_on(self.planned, &self.shared.settings) != RetryOn::NONE
                || self.planned.checks.iter().any(needs_repository),
            source_repo: self.shared.settings.sandbox.source_repo.clone(),
            lent: self.shared.settings.sandbox.lent.clone(),
            setup_timeout: Duration::from_millis(self.shared.settings.sandbox.setup_timeout_ms),
            keep: self.shared.settings.sandbox.keep,
        };
        let sandbox = self.unless(Halt::Stop, Box::pin(self.shared.factory.make(request))).await??;
        self.events.emit(Event::SandboxReady {
            path: sandbox.work().to_string_lossy().into_owned(),
            skill: skill.zip(folder).map(|(skill, folder)| format!("{folder}/{}", skill.file_name())),
            duration_ms: model::millis(began.elapsed()),
        });
        Ok(Some(sandbox))
    }

    /// Runs the conversation until the agent has answered the last message or something ended it.
    async fn act(&self, sandbox: Option<Arc<dyn Sandbox>>, pricing: Pricing) -> Result<Acted, Breakage> {
        let planned = self.planned;
        let player = planned.case.user.as_ref().map(|user| self.player(SimulatedUser::clone(user))).transpose()?;
        let (began, waited) = (Instant::now(), self.events.waited());
        // The clock adds what the attempt waits for the listener; what it waited before is not the agent's either.
        let deadline = began + Duration::from_millis(self.limits.timeout_ms) - waited;
        let model = ModelInUse::of(planned, self.shared, sandbox.as_deref());
        let activity = Arc::new(Activity::default());
        let (stop, stopping) = watch::channel(false);
        let (responder, _) = Responder::compile(&planned.case.user_responses);
        let resolver = Resolver {
            work: sandbox.as_ref().map(|sandbox| sandbox.work().to_owned()),
            home: sandbox.as_ref().map(|sandbox| sandbox.home().to_owned()),
        };
        let mut turn = Turn::new(
            Box::new(self.events.clone()),
            Arc::clone(&self.limits),
            responder,
            resolver,
            Arc::clone(&activity),
            stopping,
        )
        .paid_by(pricing)
        .on_disk(sandbox.as_ref().map(|sandbox| sandbox.work()));
        let clock = Clock {
            deadline,
            limits: &self.limits,
            idle_warn: Duration::from_millis(self.shared.settings.idle_warn_ms),
            grace: Duration::from_millis(self.shared.settings.stop_grace_ms),
            model: &model,
            stop: &stop,
            halt: self.halt.clone(),
            activity: &activity,
            events: self.events,
        };
        let shown = sandbox.clone();
        let session_context = SessionContext {
            conversation: None,
            trial: planned.id.clone(),
            case: Arc::clone(&planned.case),
            arm: Arc::clone(&planned.arm),
            argument: planned.argument.clone(),
            config: planned.config.clone(),
            directory: Arc::clone(&planned.directory),
            position: planned.position,
            sandbox,
            host: Arc::clone(&self.shared.host),
            setup: Arc::clone(&planned.setup),
            limits: Arc::clone(&planned.limits),
            source_repo: self.shared.settings.sandbox.source_repo.clone(),
            endpoint: model.endpoint.clone(),
            providers: self.shared.settings.providers.clone(),
        };
        // The scenario loads while the agent is prepared.
        let script = planned.case.code.as_ref().map(|code| self.script(code)).transpose()?;
        let configured = &self.shared.settings.configured;
        let mut others = script.as_ref().map(|_| Others::beside(session_context.clone(), planned.agent, configured));
        let mut session = match clock.watch(planned.agent.open(session_context)).await {
            Watched::Done(session) => session?,
            Watched::Ended(ending) => {
                let agent_ms = self.agents_time(began, waited);
                return Ok(Acted { turn, ending, played: None, looked: Vec::new(), agent_ms });
            }
        };
        let played = match script.zip(others.as_mut()) {
            Some((script, others)) => {
                let stage = Stage::new(self, session.as_mut(), others, &mut turn, &clock, shown.clone(), script);
                Some(Box::pin(stage.play()).await)
            }
            None => None,
        };
        let mut looked = Vec::new();
        let mut ending = match &played {
            Some(Ok(played)) => played.ending.clone(),
            Some(Err(_)) => Ending::Cancelled,
            None => {
                let ending = self.converse(session.as_mut(), &mut turn, &clock, shown.as_deref(), &mut looked).await;
                match player {
                    Some(player) if ending.goes_on() => {
                        Box::pin(self.play_user(player, session.as_mut(), &mut turn, &clock)).await
                    }
                    _ => ending,
                }
            }
        };
        let agent_ms = self.agents_time(began, waited);
        let closing = tokio::time::timeout(clock.grace, async {
            if let Some(others) = &mut others {
                others.close().await;
            }
            session.close().await;
        });
        let _ = self.unless(Halt::Kill, closing).await;
        if let Some(code) = session.exit_code() {
            turn.exited(Some(code));
        }
        drop((session, others));
        let played = played.transpose()?;
        model.tell(&mut turn, &mut ending);
        if planned.case.skill_eval.is_some() {
            // A program that failed before its first model request says nothing about the agent.
            let has_acted = turn.trace().turn_count() > 0;
            ending = again::counted(ending, turn.exit_code().filter(|_| has_acted));
        }
        Ok(Acted { turn, ending, played, looked, agent_ms })
    }

    /// The time since `began` in milliseconds, without what the attempt has waited since it had waited that long: waiting for
    /// the record, a judge or a played user is not the agent's.
    fn agents_time(&self, began: Instant, waited: Duration) -> u64 {
        model::millis(began.elapsed().saturating_sub(self.events.waited().saturating_sub(waited)))
    }

    /// Starts the scenario of a case that is code.
    fn script(&self, code: &Code) -> Result<Script, Breakage> {
        let model = self.planned.arm.model.as_deref().map_or(script::Value::Undefined, script::Value::from);
        let about = vec![("name".to_owned(), self.planned.arm.agent.as_str().into()), ("model".to_owned(), model)];
        Script::start(code, script::Value::Map(about))
            .map_err(|error| Breakage::environment(format!("cannot start a thread: {error}")))
    }

    /// Sends the user's messages one after the other, as long as the agent answers. Probes of the sandbox for
    /// assertions about a reply are added to `looked`.
    async fn converse(
        &self,
        session: &mut dyn Session,
        turn: &mut Turn,
        clock: &Clock<'_>,
        sandbox: Option<&dyn Sandbox>,
        looked: &mut Vec<ReplyProbes>,
    ) -> Ending {
        let messages = &self.planned.case.messages;
        for (at, message) in messages.iter().enumerate() {
            let said = Step::UserMessage { index: at + 1, of: messages.len(), text: message.text.clone() };
            if let Flow::Stop(ending) = turn.record(said) {
                return ending;
            }
            let ending = self.send(session, message, turn, clock).await;
            if !ending.goes_on() {
                return ending;
            }
            looked.extend(self.look_after(at + 1, sandbox).await);
        }
        Ending::Finished
    }

    /// Probes the sandbox for assertions about the reply to message `number`, before the next message is sent. This
    /// time counts as the harness's, not the agent's.
    async fn look_after(&self, number: usize, sandbox: Option<&dyn Sandbox>) -> Option<ReplyProbes> {
        let needs = self.needs(|check| check.about() == About::Reply(number));
        let sandbox = sandbox.filter(|_| !needs.is_empty())?;
        let began = Instant::now();
        let probes = self.unless(Halt::Stop, Box::pin(probe::look(sandbox, needs, &[]))).await.ok()?;
        self.events.pause(began.elapsed());
        Some(ReplyProbes { reply: number, probes })
    }

    /// Sends one message that is already recorded, and records the latency of the reply.
    async fn send(
        &self,
        session: &mut dyn Session,
        message: &UserMessage,
        turn: &mut Turn,
        clock: &Clock<'_>,
    ) -> Ending {
        let (began, waited) = (Instant::now(), self.events.waited());
        turn.message_begins();
        let ending = match clock.watch(session.send(message, turn)).await {
            Watched::Done(reply) => reply.ending,
            Watched::Ended(ending) => ending,
        };
        if !self.planned.agent.description().answers_at_once {
            let first_token_ms = turn.first_token().map(|at| model::millis(at.saturating_duration_since(began)));
            let replied = Step::Replied { latency_ms: self.agents_time(began, waited), first_token_ms };
            // If a limit was hit meanwhile, it is in `ending` already, or the next step reports it.
            let _ = turn.record(replied);
        }
        ending
    }

    /// Returns what the checks that `wanted` selects need from the sandbox.
    fn needs(&self, wanted: impl Fn(&Check) -> bool) -> Vec<Need> {
        self.planned.checks.iter().filter(|check| wanted(check)).flat_map(Check::needs).collect()
    }

    /// Collects what the agent leaves, or the reason why it left nothing to inspect; `looked` are the probes made on
    /// the way.
    async fn collect(
        &self,
        sandbox: Option<Arc<dyn Sandbox>>,
        ending: &Ending,
        looked: Vec<ReplyProbes>,
    ) -> Result<Result<Collected, String>, Breakage> {
        let Some(sandbox) = sandbox else { return Ok(Ok(Collected::default())) };
        self.events.emit(Event::Waiting { on: "collecting".into() });
        let mut collected = match sandbox.collect().await {
            Err(SandboxError::Ruined { because }) => return Ok(Err(because)),
            collected => collected?,
        };
        // A stopped trial is not graded.
        if !matches!(ending, Ending::Cancelled) {
            let mut needs = self.needs(|check| !looked.iter().any(|then| check.about() == About::Reply(then.reply)));
            // A later version of the suite may need the files once the sandbox is gone.
            needs.extend(self.planned.case.skill_eval.is_some().then_some(Need::Files));
            collected.probes = Box::pin(probe::look(&*sandbox, needs, &collected.files_changed)).await;
        }
        collected.reply_probes = looked;
        if self.shared.hook.as_ref().is_some_and(|hook| hook.wants_patch()) {
            collected.patch = sandbox.patch(&collected).await;
        }
        self.events.emit(Event::Collected(collected.clone()));
        Ok(Ok(collected))
    }

    async fn grade(&self, acted: Acted, collected: Collected) -> Result<End, Cut> {
        let Acted { turn, ending, played, agent_ms, .. } = acted;
        let exit_code = turn.exit_code();
        let bill = turn.bill();
        let (trace, unused_responses, warnings) = turn.into_parts();
        let limits = self.limits.clone();
        let evidence = Evidence { trace, collected, ending, limits, unused_responses, agent_ms: Some(agent_ms) };
        let has_claimed = |played: &Played| !played.claims.is_empty() || !evidence.ending.goes_on();
        let checks = match &played {
            Some(played) if !has_claimed(played) => Arc::new(vec![grade::nothing_asserted(&self.planned.case)]),
            _ => Arc::clone(&self.planned.checks),
        };
        let (mut findings, evidence, took) = Box::pin(self.assess(&checks, evidence)).await?;
        if self.events.has_hidden() {
            // Grading the record again sees less than was visible now.
            let own = checks.iter().zip(&mut findings).filter(|(check, _)| !check.asks_judge());
            own.for_each(|(check, finding)| finding.masked = Some(check.digest()));
        }
        let mut end = End { bill, exit_code, ..End::of(evidence, findings, warnings) };
        if let Some(played) = played {
            end.add(played);
        }
        if let Some(took) = took {
            *end.judge.get_or_insert_default() += took;
        }
        Ok(end)
    }

    /// Grades `evidence` with `checks`, including those that need a judge. Returns also the usage of the judge.
    async fn assess(
        &self,
        checks: &Arc<Vec<Check>>,
        evidence: Evidence,
    ) -> Result<(Vec<Finding>, Evidence, Option<Aside>), Cut> {
        let (mut findings, evidence) = match (&evidence.ending, self.grading) {
            (Ending::Cancelled, _) => (Vec::new(), evidence),
            (_, Grading::Here) if !checks.iter().any(Check::runs_code) => {
                (grader::grade_here(checks, &evidence)?, evidence)
            }
            _ => {
                self.events.emit(Event::Waiting { on: "grading".into() });
                self.shared.grader.grade(Arc::clone(checks), evidence).await?
            }
        };
        let took = self.consult(checks, &evidence, &mut findings).await;
        Ok((findings, evidence, took))
    }

    async fn close(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Closed {
        let Some(sandbox) = sandbox else { return Closed::default() };
        self.events.emit(Event::Waiting { on: "cleaning up".into() });
        let kept = self.shared.settings.sandbox.keep.then(|| sandbox.work().to_string_lossy().into_owned());
        Closed { kept, error: sandbox.close().await.err().map(|error| error.to_string()) }
    }

    /// Runs `work`, unless the run is asked to stop with at least `limit`.
    async fn unless<T>(&self, limit: Halt, work: impl Future<Output = T>) -> Result<T, Cut> {
        if *self.halt.borrow() >= limit {
            return Err(Cut::Stopped);
        }
        let mut halt = self.halt.clone();
        let stopped = async {
            let _ = halt.wait_for(|halt| *halt >= limit).await;
        };
        until(stopped, work).await
    }

    /// Runs `work`, which has the grace period of agents once the run is asked to stop.
    async fn with_grace<T>(&self, work: impl Future<Output = T>) -> Result<T, Cut> {
        let (mut asked, mut told) = (self.halt.clone(), self.halt.clone());
        let grace = Duration::from_millis(self.shared.settings.stop_grace_ms);
        let stopped = async {
            let _ = asked.wait_for(|halt| *halt >= Halt::Stop).await;
            let _ = tokio::time::timeout(grace, told.wait_for(|halt| *halt >= Halt::Kill)).await;
        };
        until(stopped, work).await
    }
}

/// Runs `work`, unless `stopped` completes first.
async fn until<T>(stopped: impl Future<Output = ()>, work: impl Future<Output = T>) -> Result<T, Cut> {
    let mut work = pin!(work);
    // Work that does not wait needs no supervision.
    if let Poll::Ready(done) = poll_once(work.as_mut()).await {
        return Ok(done);
    }
    tokio::select! {
        biased;
        () = stopped => Err(Cut::Stopped),
        done = work => Ok(done),
    }
}

/// Polls `work` once.
async fn poll_once<W: Future>(mut work: Pin<&mut W>) -> Poll<W::Output> {
    std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context))).await
}

struct Acted {
    turn: Turn,
    ending: Ending,
    /// Result of the scenario, if the case is code.
    played: Option<Played>,
    /// Probes of the sandbox that were made between messages.
    looked: Vec<ReplyProbes>,
    /// Time of the agent, in milliseconds.
    agent_ms: u64,
}

#[derive(Default)]
struct Closed {
    kept: Option<String>,
    error: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trial_is_small_enough_to_be_moved() {
        fn size<F>(
            _: impl Fn(Arc<PlannedTrial>, Arc<Shared>, EventSender, watch::Receiver<Halt>, Grading) -> F,
        ) -> usize {
            size_of::<F>()
        }
        assert!(size(run) < 16 * 1024, "{} bytes", size(run));
    }
}
