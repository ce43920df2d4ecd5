//! The act phase: the conversation with the agent.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::{Activity, Pricing, Resolver, Session, SessionContext, Turn};
use cassette::Sender;
use grade::Responder;
use model::{
    AssertionScope, Code, Ending, FaultKind, FaultReport, IntegritySign, ModelTraffic, ReplyProbes, SimulatedUser,
    Step, UserMessage,
};
use sandbox::{Breakage, DiskWatch, Host, Sandbox};
use tokio::sync::watch;

use super::clock::{Clock, Watched};
use super::code::{Conversations, RunningScenario, ScenarioEnd};
use super::control_run::ControlRuns;
use super::culprit::Culprit;
use super::mocks::{Players, TrialMocks};
use super::model_in_use::ModelInUse;
use super::network::TrialNetwork;
use super::recording;
use super::{Attempt, StopLevel, probe, retry};
use crate::code::Script;
use crate::recorded_model::RecordedModel;

/// Result of the act phase.
pub(super) struct ActResult {
    pub(super) turn: Turn,
    pub(super) ending: Ending,
    /// Result of the scenario, if the case is code.
    pub(super) played: Option<ScenarioEnd>,
    /// Probes of the sandbox that were made between messages.
    pub(super) reply_probes: Vec<ReplyProbes>,
    /// Time that the agent worked, in milliseconds.
    pub(super) agent_ms: u64,
    /// Ids of the tool calls that no model requested.
    pub(super) forged_calls: Vec<String>,
    /// Positions of replies that no model wrote.
    pub(super) forged_replies: Vec<usize>,
    /// Traffic between the agent and its model that the gateway observed.
    pub(super) model_traffic: Option<Box<ModelTraffic>>,
    /// Sign that another program than the agent's used the agent's model.
    pub(super) foreign_requests: Option<IntegritySign>,
    /// Faults of the case that hit model requests, and what became of them.
    pub(super) faults: Vec<FaultReport>,
}

impl ActResult {
    /// Returns the result of an agent that did nothing but end.
    fn of_ending(turn: Turn, ending: Ending, agent_ms: u64) -> Self {
        let (reply_probes, faults, played, model_traffic) = (Vec::new(), Vec::new(), None, None);
        let (forged_calls, forged_replies, foreign_requests) = (Vec::new(), Vec::new(), None);
        Self {
            turn,
            ending,
            played,
            reply_probes,
            agent_ms,
            forged_calls,
            forged_replies,
            model_traffic,
            foreign_requests,
            faults,
        }
    }
}

impl Attempt<'_> {
    /// Runs the conversation until the agent has answered the last message or something ended it.
    pub(super) async fn act(&self, sandbox: Option<Arc<dyn Sandbox>>, pricing: Pricing) -> Result<ActResult, Breakage> {
        let planned = self.planned;
        let player = planned.case.user.as_ref().map(|user| self.player(SimulatedUser::clone(user))).transpose()?;
        let (began, waited) = (Instant::now(), self.events.waited());
        // The clock adds the time for which the attempt waits for the listener. Earlier waiting does not count as the
        // agent's time either.
        let deadline = began + Duration::from_millis(self.limits.timeout_ms) - waited;
        let mut model = ModelInUse::of(planned, self.shared, sandbox.as_deref(), self.events, self.tape());
        self.start_mocks(sandbox.as_deref())?;
        let mut session_context = self.session_context(sandbox.clone(), &model);
        model.observe(planned, self.shared, self.tape(), &mut session_context)?;
        let activity = Arc::new(Activity::default());
        let (stop, stopping) = watch::channel(false);
        let disk = sandbox.as_deref().and_then(|sandbox| self.disk(sandbox));
        let mut turn = self.turn(&activity, stopping, pricing, sandbox.as_deref()).on_disk(disk.clone());
        let clock = Clock {
            deadline,
            limits: &self.limits,
            idle_warn: Duration::from_millis(self.shared.settings.idle_warn_ms),
            grace: Duration::from_millis(self.shared.settings.stop_grace_ms),
            model: &model,
            stop: &stop,
            stop_level: self.stop_level.clone(),
            activity: &activity,
            events: self.events,
            disk: disk.as_deref(),
        };
        self.open_network(&session_context)?;
        // The scenario loads while the agent is prepared.
        let script = planned.case.code.as_ref().map(|code| self.script(code)).transpose()?;
        let configured = &self.shared.settings.configured;
        let mut others =
            script.as_ref().map(|_| Conversations::beside(session_context.clone(), planned.agent, configured));
        let mut session = match clock.watch(planned.agent.open(session_context)).await {
            Watched::Done(session) => {
                self.check_shown(sandbox.as_deref())?;
                session?
            }
            Watched::Ended(ending) => {
                let agent_ms = self.agents_time(began, waited);
                return Ok(ActResult::of_ending(turn, ending, agent_ms));
            }
        };
        let played = match script.zip(others.as_mut()) {
            Some((script, others)) => {
                let scenario =
                    RunningScenario::new(self, session.as_mut(), others, &mut turn, &clock, sandbox.clone(), script);
                Some(Box::pin(scenario.play()).await)
            }
            None => None,
        };
        let mut reply_probes = Vec::new();
        let mut ending = match &played {
            Some(Ok(played)) => played.ending.clone(),
            Some(Err(_)) => Ending::Cancelled,
            None => {
                let ending =
                    self.converse(session.as_mut(), &mut turn, &clock, sandbox.as_deref(), &mut reply_probes).await;
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
        let _ = self.unless(StopLevel::Kill, closing).await;
        if let Some(code) = session.exit_code() {
            turn.exited(Some(code));
        }
        let sees_all = !others.as_ref().is_some_and(Conversations::had_other_agents);
        drop((session, others));
        let played = played.transpose()?;
        if let Ending::TimedOut { hint, .. } = &mut ending {
            *hint = turn.timeout_hint().map(Box::from);
        }
        model.record(&mut turn, &mut ending);
        if let Some(network) = self.network.get() {
            network.explain(&mut ending);
        }
        if let Some(mocks) = self.mocks.get() {
            mocks.explain(&mut ending).into_iter().for_each(|warning| turn.warn(warning));
        }
        recording::judge_staleness(self.tape(), &mut ending);
        let foreign_requests = model.foreign_requests();
        let agent = planned.agent.description();
        let is_finished = matches!(ending, Ending::Finished);
        let (forged_calls, forged_replies) = match sees_all {
            true => model.forged(agent, turn.trace(), is_finished),
            false => (Vec::new(), Vec::new()),
        };
        let model_traffic = model.traffic();
        if planned.case.skill_eval.is_some() {
            // A program that failed before its first model request reveals nothing about the agent.
            let has_acted = turn.trace().turn_count() > 0;
            ending = retry::counted(ending, turn.exit_code().filter(|_| has_acted));
        }
        let faults = model.fault_reports(&planned.case.faults);
        Ok(ActResult {
            turn,
            ending,
            played,
            reply_probes,
            agent_ms,
            forged_calls,
            forged_replies,
            model_traffic,
            foreign_requests,
            faults,
        })
    }

    /// Opens the network for the sandbox's processes as far as the trial's policy allows it.
    fn open_network(&self, context: &SessionContext) -> Result<(), Breakage> {
        let Some(sandbox) = &context.sandbox else { return Ok(()) };
        let policy = self.network_policy();
        let network =
            TrialNetwork::start(&policy, self.planned, context, &**sandbox, self.canaries.as_ref(), self.events)?;
        if let Some(network) = network {
            let _ = self.network.set(network);
        }
        Ok(())
    }

    /// Installs the MCP servers and mocked programs of the trial.
    fn start_mocks(&self, sandbox: Option<&dyn Sandbox>) -> Result<(), Breakage> {
        let (planned, settings) = (self.planned, &self.shared.settings);
        let Some(sandbox) = sandbox.filter(|_| !planned.mocks.is_empty()) else { return Ok(()) };
        let mut players = Players::new();
        for mock in planned.played_mocks() {
            let name = mock.model.as_deref();
            let player = self.shared.judging.player(settings, name, "play the mock", &planned.directory);
            let (model, called) = player.map_err(|reason| Breakage::environment(reason).for_good())?;
            let tape = self.tape().filter(|_| self.shared.judging.player_is_on_network(name));
            players.insert(mock.model.clone(), (RecordedModel::wrap(model, tape, Sender::User), called));
        }
        let mocks = Arc::clone(&planned.mocks);
        let started = TrialMocks::start(mocks, sandbox, &self.shared.host, self.events, players)?;
        let _ = self.mocks.set(started);
        Ok(())
    }

    /// Returns the recorder of the agent's steps, which also enforces its limits.
    fn turn(
        &self,
        activity: &Arc<Activity>,
        stopping: watch::Receiver<bool>,
        pricing: Pricing,
        sandbox: Option<&dyn Sandbox>,
    ) -> Turn {
        let (responder, _) = Responder::compile(&self.planned.case.user_responses);
        let resolver = Resolver {
            work: sandbox.map(|sandbox| sandbox.work().to_owned()),
            home: sandbox.map(|sandbox| sandbox.home().to_owned()),
        };
        let events = Box::new(self.events.clone());
        let turn = Turn::new(events, Arc::clone(&self.limits), responder, resolver, Arc::clone(activity), stopping);
        let case = &self.planned.case;
        let used = case.subject.installed().filter(|_| case.ends_when_triggered);
        let servers = self.mocks.get().map(TrialMocks::servers).unwrap_or_default();
        turn.paid_by(pricing)
            .with_servers(servers)
            .ends_with_use_of(used.map(|skill| (case.definition, skill.name.clone())))
    }

    /// Returns the watch for the disk on which the agent works; `None` if a fault of the case fills it.
    fn disk(&self, sandbox: &dyn Sandbox) -> Option<Arc<DiskWatch>> {
        // The agent must cope with a disk that is full on purpose.
        let is_limited = self.planned.case.faults.iter().any(|fault| fault.action.kind() == FaultKind::DiskFull);
        (!is_limited).then(|| Arc::new(DiskWatch::start(sandbox, self.shared.settings.sandbox.disk_limit)))
    }

    /// Returns everything that the agent needs to open a session.
    fn session_context(&self, sandbox: Option<Arc<dyn Sandbox>>, model: &ModelInUse) -> SessionContext {
        let planned = self.planned;
        SessionContext {
            conversation: None,
            trial: planned.id(),
            case: Arc::clone(&planned.case),
            arm: Arc::clone(&planned.arm),
            argument: planned.argument.clone(),
            config: planned.config.clone(),
            directory: Arc::clone(&planned.directory),
            position: planned.position,
            sandbox,
            host: self.host(),
            setup: Arc::clone(&planned.setup),
            limits: Arc::clone(&planned.limits),
            source_repo: self.shared.settings.sandbox.source_repo.clone(),
            endpoint: model.endpoint.clone(),
            model_variables: Vec::new(),
            servers: self.mocks.get().map(TrialMocks::servers).unwrap_or_default(),
            providers: self.shared.settings.providers.clone(),
            state: Arc::clone(&planned.state),
        }
    }

    /// Returns the machine as the agent sees it. If all answers are recorded, an agent that is not signed in gets a
    /// dummy key, because its program would not start without one.
    fn host(&self) -> Arc<Host> {
        let (host, planned) = (&self.shared.host, self.planned);
        let is_replayed = self.tape().is_some_and(|tape| tape.needs_no_model());
        let missing = is_replayed.then(|| planned.agent.missing_key(host, planned.setup.model.as_deref())).flatten();
        match missing {
            Some(variable) => {
                let mut host = Host::clone(host);
                host.env.insert(variable, "replayed-from-a-cassette".to_owned());
                Arc::new(host)
            }
            None => Arc::clone(host),
        }
    }

    /// Returns the agent's time since `began` in milliseconds. Waiting for the record, a judge or a simulated user is
    /// not included; `waited` is the total waiting time at `began`.
    fn agents_time(&self, began: Instant, waited: Duration) -> u64 {
        model::millis(began.elapsed().saturating_sub(self.events.waited().saturating_sub(waited)))
    }

    /// Starts the scenario for a case that is code.
    fn script(&self, code: &Code) -> Result<Script, Breakage> {
        let model = self.planned.arm.model.as_deref().map_or(script::Value::Undefined, script::Value::from);
        let about = vec![("name".to_owned(), self.planned.arm.agent.as_str().into()), ("model".to_owned(), model)];
        Script::start(code, script::Value::Map(about), Arc::clone(&self.planned.state))
            .map_err(|error| Breakage::environment(format!("cannot start a thread: {error}")))
    }

    /// Sends the user's messages one after another, as long as the agent answers. Probes of the sandbox for assertions
    /// about a reply are added to `reply_probes`.
    async fn converse(
        &self,
        session: &mut dyn Session,
        turn: &mut Turn,
        clock: &Clock<'_>,
        sandbox: Option<&dyn Sandbox>,
        reply_probes: &mut Vec<ReplyProbes>,
    ) -> Ending {
        let messages = &self.planned.case.messages;
        for (at, message) in messages.iter().enumerate() {
            let ending = self.send(session, message, messages.len(), turn, clock).await;
            if !ending.goes_on() {
                return ending;
            }
            reply_probes.extend(self.probe_after_reply(at + 1, sandbox).await);
        }
        Ending::Finished
    }

    /// Probes the sandbox for assertions about the reply to message `number`, before the next message is sent. This
    /// time counts as the harness's, not the agent's.
    async fn probe_after_reply(&self, number: usize, sandbox: Option<&dyn Sandbox>) -> Option<ReplyProbes> {
        let needs = self.needs(|check| check.about() == AssertionScope::Reply(number));
        let sandbox = sandbox.filter(|_| !needs.is_empty())?;
        let began = Instant::now();
        let control_runs = ControlRuns { attempt: self, checks: &self.planned.checks, answered: number };
        let probes = Box::pin(probe::run(sandbox, needs, &[], None, &control_runs));
        let probes = self.unless(StopLevel::Stop, probes).await.ok()?;
        self.events.pause(began.elapsed());
        Some(ReplyProbes { reply: number, probes })
    }

    /// Records and sends one message, and records the latency of the reply. `of` is the number of messages, as far as
    /// it is known.
    pub(super) async fn send(
        &self,
        session: &mut dyn Session,
        message: &UserMessage,
        of: usize,
        turn: &mut Turn,
        clock: &Clock<'_>,
    ) -> Ending {
        let index = turn.trace().user_messages.len() + 1;
        let step = Step::UserMessage { index, of: of.max(index), text: message.text.clone() };
        if let Err(ending) = turn.record(step) {
            return ending;
        }
        if let Some(mocks) = self.mocks.get() {
            mocks.user_messages(index);
        }
        let (began, waited) = (Instant::now(), self.events.waited());
        turn.message_begins();
        let culprit = Culprit::watch(self.planned.agent.description());
        let ending = match clock.watch(session.send(message, turn)).await {
            Watched::Done(ending) => {
                let mut ending = turn.message_ends(ending);
                if let Some(reason) = clock.disk.and_then(DiskWatch::excess) {
                    ending = Ending::GaveUp { reason };
                }
                if turn.excused().is_none() {
                    let said = clock.model.said_without_error();
                    let sign = culprit.judge(&mut ending, turn.trace(), turn.exit_code(), said.as_deref());
                    sign.into_iter().for_each(|sign| drop(self.own_end.set(sign)));
                }
                ending
            }
            Watched::Ended(ending) => ending,
        };
        if !self.planned.agent.description().answers_at_once {
            let first_token_ms = turn.first_token().map(|at| model::millis(at.saturating_duration_since(began)));
            let replied = Step::Replied { latency_ms: self.agents_time(began, waited), first_token_ms };
            // If a limit was reached meanwhile, it is already in `ending`, or the next step reports it.
            let _ = turn.record(replied);
        }
        ending
    }
}
