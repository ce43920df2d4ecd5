//! The life of a trial: provision, act, collect, grade, close. Closing runs whatever happened before.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use grade::Responder;
use jiff::Timestamp;
use model::{
    AnsweredQuestion, AttemptRecord, CallRecord, Collected, Ending, Event, Evidence, Fault, Finding, Limits, Outcome,
    Status, Step, TrialRecord,
};
use serde_json::{Map, Value, json};
use tokio::sync::watch;

use crate::activity::Activity;
use crate::agent::{Endpoint, Scene};
use crate::grader::Grader;
use crate::line::Line;
use crate::mask::Mask;
use crate::plan::{ModelChoice, PlannedTrial, Settings};
use crate::resolve::Resolver;
use crate::sandbox::{Registry, Request, Sandbox, Workshop};
use crate::witness::{Flow, Turn};
use crate::{Breakage, Host};

/// What all trials of a run share.
pub(crate) struct Shared {
    pub(crate) host: Arc<Host>,
    pub(crate) settings: Settings,
    pub(crate) workshop: Workshop,
    pub(crate) registry: Arc<Registry>,
    pub(crate) gateway: Option<gateway::Gateway>,
    pub(crate) grader: Grader,
    pub(crate) mask: Arc<Mask>,
}

/// How far a run has been asked to stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Halt {
    /// Not at all.
    No,
    /// Politely: agents are asked to stop and have their grace.
    Stop,
    /// At once.
    Kill,
}

/// Runs a trial to its outcome. A broken attempt is tried again as often as the settings say.
pub(crate) async fn run(
    planned: Arc<PlannedTrial>,
    shared: Arc<Shared>,
    mut line: Line,
    halt: watch::Receiver<Halt>,
) -> TrialRecord {
    let started_at = Timestamp::now();
    let started = Instant::now();
    let mut attempts: Vec<AttemptRecord> = Vec::new();
    loop {
        let began = Instant::now();
        let attempt = Attempt { planned: &planned, shared: &shared, line: &line, halt: halt.clone() };
        let mut record = match attempt.run().await {
            Ok(end) => record_of(&planned, &shared.settings, end),
            Err(Cut::Broken(breakage)) => broken(&planned, &breakage),
            Err(Cut::Stopped) => stopped(&planned),
        };
        attempts.push(AttemptRecord {
            outcome: record.outcome,
            because: record.because.clone(),
            usage: record.usage,
            cost_usd: record.cost_usd,
            duration_ms: millis(began.elapsed()),
        });
        // A scripted model breaks the same way again, so trying again only costs time.
        let scripted = matches!(planned.model, ModelChoice::Scripted(_));
        let again = record.outcome == Outcome::Broken
            && !scripted
            && attempts.len() <= shared.settings.retries as usize
            && *halt.borrow() == Halt::No;
        if !again {
            record.attempts = attempts;
            record.started_at = started_at;
            record.duration_ms = millis(started.elapsed());
            shared.mask.record(&mut record);
            return record;
        }
        let because = shared.mask.text(record.because.as_deref().unwrap_or_default()).into_owned();
        line.tell(Event::TrialRetried { because });
        line = line.next_attempt();
    }
}

/// What an attempt that ran to its end leaves.
struct End {
    evidence: Evidence,
    findings: Vec<Finding>,
    warnings: Vec<String>,
    kept: Option<String>,
    errors: Vec<String>,
}

/// Why an attempt did not get to its end.
enum Cut {
    Broken(Breakage),
    /// By the user.
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
    line: &'a Line,
    halt: watch::Receiver<Halt>,
}

impl Attempt<'_> {
    async fn run(&self) -> Result<End, Cut> {
        let sandbox = self.provision().await?;
        let ended = self.in_sandbox(sandbox.clone()).await;
        let closed = self.close(sandbox).await;
        let mut end = ended?;
        end.kept = closed.kept;
        end.errors.extend(closed.error);
        Ok(end)
    }

    async fn in_sandbox(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Result<End, Cut> {
        let mut acted = self.act(sandbox.clone()).await?;
        let collected = match self.unless(Halt::Kill, self.collect(sandbox)).await {
            Ok(collected) => collected?,
            // What it did so far is kept; without a look at the sandbox there is no verdict.
            Err(_) => {
                acted.ending = Ending::Cancelled;
                Collected::default()
            }
        };
        self.unless(Halt::Kill, self.grade(acted, collected)).await?
    }

    /// A fresh sandbox, or none for an agent and a case that need none.
    async fn provision(&self) -> Result<Option<Arc<dyn Sandbox>>, Cut> {
        let case = &self.planned.case;
        let agent = self.planned.agent;
        if !agent.needs_sandbox() && case.fixtures.is_empty() && case.fixtures.env.is_empty() {
            return Ok(None);
        }
        self.line.tell(Event::Waiting { on: "sandbox".into() });
        let began = Instant::now();
        let skill = case.subject.installed().cloned();
        let folder = agent.skills_folder();
        let request = Request {
            name: case.id.clone(),
            fixtures: Arc::clone(&case.fixtures),
            skill: skill.clone().zip(folder.map(str::to_owned)),
            setup_timeout: Duration::from_millis(self.shared.settings.setup_timeout_ms),
            keep: self.shared.settings.keep_sandbox,
        };
        let sandbox = self.unless(Halt::Stop, self.shared.workshop.make(request)).await??;
        self.line.tell(Event::SandboxReady {
            path: sandbox.work().to_string_lossy().into_owned(),
            skill: skill.zip(folder).map(|(skill, folder)| format!("{folder}/{}", skill.name)),
            duration_ms: millis(began.elapsed()),
        });
        Ok(Some(sandbox))
    }

    /// The conversation, until the agent has answered the last message or something ended it.
    async fn act(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Result<Acted, Breakage> {
        let planned = self.planned;
        let deadline = Instant::now() + Duration::from_millis(planned.limits.timeout_ms);
        let model = self.endpoint(sandbox.as_deref());
        let activity = Arc::new(Activity::new());
        let (stop, stopping) = watch::channel(false);
        let (responder, _) = Responder::compile(&planned.case.user_responses);
        let resolver = Resolver {
            work: sandbox.as_ref().map(|sandbox| sandbox.work().to_owned()),
            home: sandbox.as_ref().map(|sandbox| sandbox.home().to_owned()),
        };
        let mut turn = Turn::new(
            self.line.clone(),
            planned.limits.clone(),
            responder,
            resolver,
            Arc::clone(&self.shared.mask),
            Arc::clone(&activity),
            stopping,
        );
        if model.playback.is_some() {
            turn = turn.of_a_script();
        }
        let clock = Clock {
            deadline,
            limits: &planned.limits,
            idle_warn: Duration::from_millis(self.shared.settings.idle_warn_ms),
            grace: Duration::from_millis(self.shared.settings.stop_grace_ms),
            model: &model,
            stop: &stop,
            halt: self.halt.clone(),
            activity: &activity,
            line: self.line,
        };
        let scene = Scene {
            trial: planned.id.clone(),
            case: Arc::clone(&planned.case),
            arm: planned.arm.clone(),
            argument: planned.argument.clone(),
            position: planned.position,
            sandbox,
            host: Arc::clone(&self.shared.host),
            setup: planned.setup.clone(),
            endpoint: model.endpoint.clone(),
        };
        let mut session = match clock.watch(planned.agent.open(scene)).await {
            Watched::Done(session) => session?,
            Watched::Ended(ending) => return Ok(Acted { turn, ending }),
        };
        let messages = &planned.case.messages;
        let mut ending = Ending::Finished;
        for (at, message) in messages.iter().enumerate() {
            let said = Step::UserMessage { index: at + 1, of: messages.len(), text: message.text.clone() };
            if let Flow::Stop(stop) = turn.record(said) {
                ending = stop;
                break;
            }
            ending = match clock.watch(session.send(message, &mut turn)).await {
                Watched::Done(reply) => reply.ending,
                Watched::Ended(ending) => ending,
            };
            if !ending.goes_on() {
                break;
            }
        }
        let closing = tokio::time::timeout(clock.grace, session.close());
        let _ = self.unless(Halt::Kill, closing).await;
        drop(session);
        model.tell(&mut turn, &mut ending);
        Ok(Acted { turn, ending })
    }

    /// Where the agent's model is: a scripted one is played anew for each attempt.
    fn endpoint(&self, sandbox: Option<&dyn Sandbox>) -> ModelInUse {
        let script = match &self.planned.model {
            ModelChoice::Vendor(_) => {
                let base_url = self.shared.settings.base_url.clone();
                return ModelInUse { endpoint: Endpoint::Vendor { base_url }, playback: None, _admission: None };
            }
            ModelChoice::Scripted(script) => script,
        };
        let place = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let playback = Arc::new(script.play(llm::Stage {
            sandbox: place(sandbox.map(Sandbox::work)),
            home: place(sandbox.map(Sandbox::home)),
            without_tools: self.planned.setup.closed_tools.as_ref().is_some_and(Vec::is_empty),
        }));
        match (&self.shared.gateway, self.planned.agent.wire()) {
            (Some(gateway), Some(_)) => {
                let token = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
                let admission = gateway.admit(token.clone(), Arc::clone(&playback));
                let endpoint = Endpoint::Gateway { base_url: gateway.base_url(), token };
                ModelInUse { endpoint, playback: Some(playback), _admission: Some(admission) }
            }
            _ => ModelInUse {
                endpoint: Endpoint::Script(Arc::clone(&playback)),
                playback: Some(playback),
                _admission: None,
            },
        }
    }

    async fn collect(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Result<Collected, Breakage> {
        let Some(sandbox) = sandbox else { return Ok(Collected::default()) };
        self.line.tell(Event::Waiting { on: "collecting".into() });
        let mut collected = sandbox.collect().await?;
        self.shared.mask.collected(&mut collected);
        self.line.tell(Event::Collected(collected.clone()));
        Ok(collected)
    }

    async fn grade(&self, acted: Acted, collected: Collected) -> Result<End, Cut> {
        let (trace, unused_responses, warnings) = acted.turn.into_parts();
        let limits = self.planned.limits.clone();
        let evidence = Evidence { trace, collected, ending: acted.ending, limits, unused_responses };
        let (findings, evidence) = match evidence.ending {
            Ending::Cancelled => (Vec::new(), evidence),
            _ => self.shared.grader.grade(Arc::clone(&self.planned.checks), evidence).await?,
        };
        Ok(End { evidence, findings, warnings, kept: None, errors: Vec::new() })
    }

    async fn close(&self, sandbox: Option<Arc<dyn Sandbox>>) -> Closed {
        let Some(sandbox) = sandbox else { return Closed::default() };
        let kept = self.shared.settings.keep_sandbox.then(|| sandbox.work().to_string_lossy().into_owned());
        Closed { kept, error: sandbox.close().await.err().map(|error| error.to_string()) }
    }

    /// Does `work`, unless the run is asked to stop as firmly as `limit` or more.
    async fn unless<T>(&self, limit: Halt, work: impl Future<Output = T>) -> Result<T, Cut> {
        let mut halt = self.halt.clone();
        tokio::select! {
            biased;
            _ = halt.wait_for(|halt| *halt >= limit) => Err(Cut::Stopped),
            done = work => Ok(done),
        }
    }
}

struct Acted {
    turn: Turn,
    ending: Ending,
}

#[derive(Default)]
struct Closed {
    kept: Option<String>,
    error: Option<String>,
}

/// A model while a trial uses it.
struct ModelInUse {
    endpoint: Endpoint,
    playback: Option<Arc<llm::Playback>>,
    _admission: Option<gateway::Admission>,
}

impl ModelInUse {
    /// How acting ended when the wall clock ran out. Asked at that moment: a request that is unanswered then was held up
    /// by the model, and afterwards the agent has left.
    fn timed_out(&self, limits: &Limits) -> Ending {
        let setting = limits.timeout_from.clone().unwrap_or_default();
        match self.playback.as_ref().and_then(|playback| playback.in_flight()) {
            Some(waited) => Ending::ProviderFailed {
                because: format!(
                    "the model had left a request unanswered for {:.1} s when the trial's {} s were over ({setting})",
                    waited.as_secs_f64(),
                    limits.timeout_ms as f64 / 1000.0
                ),
            },
            None => Ending::TimedOut { setting, after_ms: limits.timeout_ms },
        }
    }

    /// What a scripted model saw and what went wrong with it: it knows better than the agent.
    fn tell(&self, turn: &mut Turn, ending: &mut Ending) {
        let Some(playback) = &self.playback else { return };
        for step in playback.take_steps() {
            let _ = turn.record(step);
        }
        if let Some(problem) = playback.problems().into_iter().next() {
            *ending = Ending::ProviderFailed { because: problem.message };
        } else if matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. })
            && let Some(fault) = playback.faulted()
            && !fault.recovered
        {
            *ending = Ending::ProviderFailed { because: fault.because };
        }
    }
}

enum Watched<T> {
    Done(T),
    Ended(Ending),
}

/// Watches over everything that may hang.
struct Clock<'a> {
    deadline: Instant,
    limits: &'a Limits,
    idle_warn: Duration,
    grace: Duration,
    model: &'a ModelInUse,
    stop: &'a watch::Sender<bool>,
    halt: watch::Receiver<Halt>,
    activity: &'a Activity,
    line: &'a Line,
}

impl Clock<'_> {
    /// Follows `work` to its end, to the wall clock's or to the user's. A session that is told to stop has its grace to
    /// do so; then it is dropped, and its processes end with it.
    async fn watch<T>(&self, work: impl Future<Output = T>) -> Watched<T> {
        let mut work = std::pin::pin!(work);
        let mut halt = self.halt.clone();
        let mut warn_after = self.idle_warn;
        let ending = loop {
            let (idle, _) = self.activity.idle();
            let quiet = warn_after.saturating_sub(idle).max(Duration::from_millis(10));
            tokio::select! {
                // The clock comes first: an agent that never falls silent must not keep it from being looked at.
                biased;
                _ = tokio::time::sleep_until(self.deadline.into()) => break self.model.timed_out(self.limits),
                _ = halt.wait_for(|halt| *halt != Halt::No) => break Ending::Cancelled,
                done = &mut work => return Watched::Done(done),
                _ = tokio::time::sleep(quiet) => {
                    let (idle, on) = self.activity.idle();
                    if idle >= warn_after {
                        self.line.tell(Event::Idle { idle_ms: millis(idle), on: on.to_owned() });
                        warn_after += self.idle_warn;
                    } else if idle < self.idle_warn {
                        warn_after = self.idle_warn;
                    }
                }
            }
        };
        self.stop.send_replace(true);
        tokio::select! {
            biased;
            _ = halt.wait_for(|halt| *halt == Halt::Kill) => {}
            _ = tokio::time::sleep(self.grace) => {}
            _ = &mut work => {}
        }
        Watched::Ended(ending)
    }
}

/// The record of an attempt that ran to its end.
fn record_of(planned: &PlannedTrial, settings: &Settings, end: End) -> TrialRecord {
    let End { evidence, findings, mut warnings, kept, errors } = end;
    warnings.extend(grade::warnings(&planned.case, &evidence).iter().map(ToString::to_string));
    let Evidence { trace, collected, ending, .. } = evidence;
    let outcome = Outcome::of(&findings, &ending);
    let (score, max_score) = grade::score(&findings);
    let fault = match (&ending, outcome) {
        (Ending::ProviderFailed { .. }, _) => Some(Fault::Provider),
        (_, Outcome::Broken) => Some(Fault::Environment),
        (_, Outcome::Undecided) => Some(Fault::Harness),
        _ => None,
    };
    let because = match outcome {
        Outcome::Passed => None,
        Outcome::Failed => first_of(&findings, Status::Unmet, !ending.goes_on()),
        Outcome::Undecided => first_of(&findings, Status::Undecided, false),
        Outcome::Broken | Outcome::Cancelled | Outcome::Skipped => Some(ending.describe()),
    };
    TrialRecord {
        outcome,
        fault,
        because,
        ending: Some(ending),
        score: Some(score),
        max_score: Some(max_score),
        findings,
        answer: trace.answer.clone(),
        turn_count: trace.turn_count(),
        tool_calls: trace
            .calls
            .iter()
            .map(|traced| CallRecord {
                name: traced.call.name.clone(),
                raw_name: traced.call.raw_name.clone(),
                input: traced.call.input.clone(),
                result: traced.result.as_ref().map(|result| result.content.clone()),
                is_error: traced.result.as_ref().is_some_and(|result| result.is_error),
                turn: traced.turn,
                parent: traced.call.parent.clone(),
            })
            .collect(),
        questions: trace
            .questions
            .iter()
            .map(|asked| AnsweredQuestion { question: asked.question.clone(), answer: asked.answer.clone() })
            .collect(),
        usage: trace.usage.tokens,
        cost_usd: trace.usage.cost_usd,
        cost_source: trace.usage.cost_usd.map(|_| "agent".to_owned()),
        session_id: trace.session_id.clone(),
        agent_version: trace.agent_version.clone(),
        auth: trace.auth.clone(),
        files_changed: collected.files_changed,
        sandbox: kept,
        errors,
        warnings,
        settings: settings_of(planned, settings),
        ..empty_record(planned)
    }
}

/// The first finding of that status and how many more there are. Where acting ended badly, that is why the rest is not
/// as it should be, so the finding about the ending, which nobody wrote, goes first.
fn first_of(findings: &[Finding], status: Status, ended_badly: bool) -> Option<String> {
    let all: Vec<&Finding> = findings.iter().filter(|finding| finding.status == status).collect();
    let of_ending = all.iter().find(|finding| ended_badly && finding.implicit);
    let first = of_ending.or_else(|| all.first())?;
    let rest = if all.len() > 1 { format!(" (and {} more)", all.len() - 1) } else { String::new() };
    Some(format!("{}: {}{rest}", first.id, first.because))
}

/// The record of a trial that infrastructure kept from saying anything.
pub(crate) fn broken(planned: &PlannedTrial, breakage: &Breakage) -> TrialRecord {
    TrialRecord {
        outcome: Outcome::Broken,
        fault: Some(breakage.fault),
        because: Some(breakage.because.clone()),
        errors: vec![breakage.because.clone()],
        ..empty_record(planned)
    }
}

/// The record of a trial that was stopped before its agent could leave anything.
fn stopped(planned: &PlannedTrial) -> TrialRecord {
    let ending = Ending::Cancelled;
    TrialRecord { because: Some(ending.describe()), ending: Some(ending), ..empty_record(planned) }
}

/// The record of a trial that was not started because the run was stopped.
pub(crate) fn cancelled(planned: &PlannedTrial) -> TrialRecord {
    let attempts = Vec::new();
    TrialRecord { because: Some("the run was stopped before it started".into()), attempts, ..empty_record(planned) }
}

fn empty_record(planned: &PlannedTrial) -> TrialRecord {
    TrialRecord {
        id: planned.id.to_string(),
        suite: planned.id.suite.clone(),
        case: planned.id.case.clone(),
        title: planned.case.description.clone(),
        arm: planned.id.arm.clone(),
        agent: planned.arm.agent.clone(),
        model: planned.arm.model.clone(),
        variant: planned.arm.variant.clone(),
        repetition: planned.id.repetition,
        outcome: Outcome::Cancelled,
        flaky: false,
        fault: None,
        because: None,
        ending: None,
        score: None,
        max_score: None,
        pass_score: None,
        findings: Vec::new(),
        input: planned.case.messages.iter().map(|message| message.text.clone()).collect(),
        answer: None,
        turn_count: 0,
        tool_calls: Vec::new(),
        questions: Vec::new(),
        usage: None,
        cost_usd: None,
        cost_source: None,
        duration_ms: 0,
        started_at: Timestamp::now(),
        session_id: None,
        agent_version: None,
        auth: None,
        skill: planned.skill_info(),
        limits: planned.limits.clone(),
        settings: Map::new(),
        attempts: Vec::new(),
        files_changed: Vec::new(),
        sandbox: None,
        errors: Vec::new(),
        warnings: Vec::new(),
    }
}

/// The settings that change what the agent does.
fn settings_of(planned: &PlannedTrial, settings: &Settings) -> Map<String, Value> {
    let setup = &planned.setup;
    let mut map = Map::new();
    map.insert("permission_mode".into(), json!(setup.permission_mode.name()));
    map.insert("allowed_tools".into(), json!(setup.closed_tools));
    map.insert("approved_tools".into(), json!(setup.approved_tools));
    let sources: Vec<&str> = setup.setting_sources.iter().map(|source| source.name()).collect();
    map.insert("setting_sources".into(), json!(sources));
    map.insert("reasoning_effort".into(), json!(setup.reasoning_effort));
    map.insert("sandbox".into(), json!(settings.sandbox));
    map
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
