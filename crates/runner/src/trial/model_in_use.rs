//! Endpoint of a trial's model, and information from a scripted model about how the trial ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::{Description, Endpoint, SessionContext, Turn, WAITING_ON_PROVIDER};
use cassette::{Sender, Tape};
use llm::{Block, FaultyModel, Model};
use model::{
    CaseFault, Ending, Event, FaultReport, GatewayMode, IntegrityKind, IntegritySign, Limits, ModelTraffic, Step, Trace,
};
use sandbox::{Breakage, Sandbox};

use super::Shared;
use crate::event_bus::EventSender;
use crate::plan::{ModelChoice, PlannedTrial};
use crate::recorded_model::RecordedModel;

/// Name of the provider for scripted models.
const SCRIPTED: &str = "scripted:";

/// A model while a trial uses it.
pub(super) struct ModelInUse {
    pub(super) endpoint: Endpoint,
    pub(super) playback: Option<Arc<llm::Playback>>,
    /// The model with the faults of the case, if there are any.
    pub(super) faulty: Option<Arc<FaultyModel>>,
    /// Permission to send requests to a scripted model through the gateway.
    admission: Option<gateway::Admission>,
    /// True if the agent calls a model.
    asks_model: bool,
    /// Permission to send requests through the gateway to a vendor's model.
    pub(super) observed: Option<gateway::ForwardedAdmission>,
}

impl ModelInUse {
    /// Returns the model of the agent; a scripted one is restarted for each attempt.
    pub(super) fn of(
        planned: &PlannedTrial,
        shared: &Shared,
        sandbox: Option<&dyn Sandbox>,
        events: &EventSender,
        tape: Option<&Arc<Tape>>,
    ) -> Self {
        let agent = planned.agent.description();
        let asks_model = agent.wire.is_some() || agent.calls_script;
        let of_vendor =
            |endpoint, faulty| Self { endpoint, playback: None, faulty, asks_model, admission: None, observed: None };
        let base_url = shared.settings.arms.base_url.as_deref();
        let script = match &planned.model {
            ModelChoice::Vendor(Some(name)) if planned.agent.description().asks_providers => {
                let opened = shared.settings.providers.model(name, base_url);
                let opened = opened.map(|model| RecordedModel::wrap(model, tape, Sender::Agent));
                let faulty = opened.as_ref().ok().and_then(|model| with_faults(model, name, planned, shared, events));
                let model = opened.map(|model| faulty.clone().map_or(model, |faulty| faulty as Arc<dyn Model>));
                return of_vendor(Endpoint::Provider(model), faulty);
            }
            ModelChoice::Vendor(_) => {
                return of_vendor(Endpoint::Vendor { base_url: base_url.map(str::to_owned) }, None);
            }
            ModelChoice::Scripted(script) => script,
        };
        let text_of = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let playback = Arc::new(script.play(llm::ScriptContext {
            sandbox: text_of(sandbox.map(Sandbox::work)),
            home: text_of(sandbox.map(Sandbox::home)),
            without_tools: without_tools(planned),
        }));
        let model: Arc<dyn Model> = playback.clone();
        let faulty = with_faults(&model, SCRIPTED, planned, shared, events);
        let (endpoint, admission) = match (&shared.gateway, planned.agent.description().wire) {
            (Some(gateway), Some(_)) => {
                let token = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
                let admission = match &faulty {
                    Some(faulty) => gateway.admit(token.clone(), Arc::clone(faulty)),
                    None => gateway.admit(token.clone(), Arc::clone(&playback)),
                };
                (Endpoint::Gateway { base_url: gateway.base_url(), token }, Some(admission))
            }
            _ => {
                let model = faulty.clone().map_or(model, |faulty| faulty as Arc<dyn Model>);
                (Endpoint::Script { model, name: playback.name().to_owned() }, None)
            }
        };
        Self { endpoint, playback: Some(playback), faulty, asks_model, admission, observed: None }
    }

    /// Returns a model of a vendor that nothing asks.
    #[cfg(test)]
    pub(super) fn unused(endpoint: Endpoint) -> Self {
        Self { endpoint, playback: None, faulty: None, asks_model: false, admission: None, observed: None }
    }

    /// Puts the gateway between the agent and the vendor of its model, if the run observes or records this traffic.
    /// Sets the new endpoint in `context`, the agent's context.
    ///
    /// # Errors
    /// Returns an error if the agent's requests cannot go through the gateway.
    pub(super) fn observe(
        &mut self,
        planned: &PlannedTrial,
        shared: &Shared,
        tape: Option<&Arc<Tape>>,
        context: &mut SessionContext,
    ) -> Result<(), Breakage> {
        let is_observed = shared.settings.gateway == GatewayMode::Observe || tape.is_some();
        let Some(gateway) = shared.gateway.as_ref().filter(|_| is_observed) else { return Ok(()) };
        let cannot = |reason: String| {
            let hint = match tape {
                Some(_) => "set `cassette` to `off` to run it without a cassette",
                None => "set `gateway` to `off` to run it unobserved",
            };
            Breakage::environment(format!("the gateway cannot observe the model of the agent: {reason}; {hint}"))
                .for_good()
        };
        let token = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
        let variables = planned.agent.model_variables(context);
        if !variables.is_empty() {
            let addresses: Vec<&str> = variables.iter().map(|(_, address)| address.as_str()).collect();
            let observed = gateway.forward(&token, &shared.upstream, &addresses, tape).map_err(cannot)?;
            let names = variables.iter().map(|(name, _)| name.clone());
            context.model_variables = names.zip(observed.base_urls().map(str::to_owned)).collect();
            self.observed = Some(observed);
            return Ok(());
        }
        let (Endpoint::Vendor { base_url }, Some(_)) = (&self.endpoint, planned.agent.description().wire) else {
            return Ok(());
        };
        let address = planned.agent.forwarding_address(context).map_err(|error| cannot(error.to_string()))?;
        let observed = gateway.forward(&token, &shared.upstream, &[&address], tape).map_err(cannot)?.of_one_program();
        let gateway = observed.base_urls().next().unwrap_or_default().to_owned();
        self.endpoint = Endpoint::Observed { gateway, base_url: base_url.clone() };
        context.endpoint = self.endpoint.clone();
        self.observed = Some(observed);
        Ok(())
    }

    /// Returns the agent's traffic that the gateway observed. A program that the user wrote may not use a model at all.
    pub(super) fn traffic(&self) -> Option<Box<ModelTraffic>> {
        let traffic = self.observed.as_ref()?.traffic();
        let may_have_none = !matches!(self.endpoint, Endpoint::Observed { .. });
        (traffic.requests > 0 || !may_have_none).then(|| Box::new(traffic))
    }

    /// Returns how the act phase ended when the time ran out. Must be called at that moment: a request that is
    /// unanswered then was held up by the model, and afterwards the agent has left.
    pub(super) fn timed_out(&self, limits: &Limits, waiting_on: &str) -> Ending {
        let setting = limits.timeout_from.clone().unwrap_or_default();
        let timeout = limits.timeout_ms as f64 / 1000.0;
        // Faults of the case are part of the test, so the agent must cope with them in time.
        if self.faulty.as_ref().is_some_and(|faulty| faulty.has_occurred()) {
            return Ending::TimedOut { setting, after_ms: limits.timeout_ms, hint: None };
        }
        let failed = |what: &str| Ending::ProviderFailed {
            reason: format!("{what} when the trial's timeout of {timeout} s expired ({setting})"),
        };
        // A request that has just arrived did not use up the time.
        let held_up = Duration::from_millis(limits.timeout_ms / 2).min(Duration::from_secs(1));
        match self.playback.as_ref().and_then(|playback| playback.in_flight()) {
            Some(waited) if waited >= held_up => {
                failed(&format!("the model had not answered a request for {:.1} s", waited.as_secs_f64()))
            }
            // An answer that has not begun is the provider's responsibility; the length of an answer is the model's.
            _ if self.silent_for().is_some_and(|waited| waited >= Duration::from_millis(limits.timeout_ms / 2)) => {
                failed("the provider had not started to respond")
            }
            _ if waiting_on == WAITING_ON_PROVIDER => failed("the agent was retrying its model after an error"),
            _ => Ending::TimedOut { setting, after_ms: limits.timeout_ms, hint: None },
        }
    }

    /// Returns the ids of the calls in `trace` that no model requested, and the positions of the replies that no model
    /// wrote. The gateway has seen all responses, so what was not in one was written into the output of the agent's
    /// program. Replies are compared only if the agent `is_finished`: otherwise, programs report errors as replies.
    pub(super) fn forged(&self, agent: &Description, trace: &Trace, is_finished: bool) -> (Vec<String>, Vec<usize>) {
        let from_model = match (&self.endpoint, &self.playback, &self.observed) {
            (Endpoint::Gateway { .. }, Some(playback), _) => {
                let mut replied = playback.replied();
                replied.extend(self.faulty.iter().flat_map(|faulty| faulty.calls()));
                Some(replied)
            }
            (_, _, Some(observed)) => observed.replied(),
            _ => None,
        };
        let Some((from_model, call_ids)) = from_model.zip(agent.call_ids) else { return (Vec::new(), Vec::new()) };
        let calls = call_ids.forged(trace.calls.iter().map(|traced| &traced.call), &from_model);
        // Without any response, the program answered by itself.
        let is_compared = is_finished && !from_model.is_empty();
        let replies = if is_compared { agent::forged_replies(&trace.replies, &from_model) } else { Vec::new() };
        (calls, replies)
    }

    /// Returns what the model has said to the agent's program, if the gateway has seen all answers and none of them was an
    /// error, so that no answer explains why the program fails.
    pub(super) fn said_without_error(&self) -> Option<Vec<Block>> {
        match (&self.admission, &self.playback, &self.observed) {
            (Some(admission), Some(playback), _) => {
                (admission.has_answered() && !admission.has_failed()).then(|| playback.replied())
            }
            (_, _, Some(observed)) if !observed.has_failed() => observed.replied(),
            _ => None,
        }
    }

    /// Returns the sign that another program than the agent's sent requests to the model.
    pub(super) fn foreign_requests(&self) -> Option<IntegritySign> {
        let of_script = self.admission.as_ref().and_then(gateway::Admission::foreign);
        let foreign = of_script.or_else(|| self.observed.as_ref()?.foreign())?;
        let program = if foreign.program.is_empty() { "an unnamed program".to_owned() } else { foreign.program };
        let requests = if foreign.count == 1 { "a request".to_owned() } else { format!("{} requests", foreign.count) };
        let detail = format!("{requests} to the agent's model, which only the agent's own program may use; refused");
        Some(IntegritySign::new(IntegrityKind::ForeignRequest, program, detail))
    }

    /// Returns what became of those faults of the case that hit model requests, in the order of the case.
    pub(super) fn fault_reports(&self, faults: &[CaseFault]) -> Vec<FaultReport> {
        let Some(faulty) = &self.faulty else { return Vec::new() };
        let of_requests = faults.iter().filter(|fault| fault.action.requests().is_some());
        of_requests
            .zip(faulty.hits())
            .map(|(fault, hits)| FaultReport {
                fault: fault.action.kind(),
                detail: fault.action.describe(),
                hits,
                total: faulty.requests(),
            })
            .collect()
    }

    /// Returns how long a provider on the network has not responded to a request.
    fn silent_for(&self) -> Option<Duration> {
        match &self.endpoint {
            Endpoint::Provider(Ok(model)) => model.silent_for(),
            _ => self.observed.as_ref()?.silent_for(),
        }
    }

    /// Changes the ending of a trial whose agent has not said anything before the timeout. Its program was waiting for a
    /// model that is not observed, so the silence says nothing about the agent.
    fn judge_silence(&self, trace: &Trace, ending: &mut Ending) {
        let Ending::TimedOut { setting, after_ms, .. } = ending else { return };
        let is_unobserved = matches!(self.endpoint, Endpoint::Vendor { .. }) && self.observed.is_none();
        if is_unobserved && self.asks_model && trace.turns.is_empty() && trace.calls.is_empty() {
            *ending = Ending::Silent { setting: std::mem::take(setting), after_ms: *after_ms };
        }
    }

    /// Records the requests and the problems of a scripted model, which are more precise than the agent's report.
    pub(super) fn record(&self, turn: &mut Turn, ending: &mut Ending) {
        // The provider did not fail; the agent did not recover from the fault.
        if let Ending::ProviderFailed { reason } = ending
            && self.faulty.as_ref().is_some_and(|faulty| faulty.is_broken())
        {
            *ending = Ending::GaveUp { reason: std::mem::take(reason) };
        }
        if let Some(observed) = &self.observed
            // Some agents wait longer than the trial's timeout before they repeat a failed request.
            && matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. } | Ending::TimedOut { .. })
            && let Some(reason) = observed.failure()
        {
            *ending = Ending::ProviderFailed { reason };
        }
        self.judge_silence(turn.trace(), ending);
        let Some(playback) = &self.playback else { return };
        for step in playback.take_steps() {
            let _ = turn.record(step);
        }
        if matches!(ending, Ending::Cancelled) {
            return;
        }
        if let Some(reason) = playback.wrong_call() {
            turn.warn(reason.clone());
            turn.excuse(Ending::InvalidTest { reason });
        }
        if let Some(problem) = playback.problems().into_iter().next() {
            // The user wrote the script, so the test is invalid.
            *ending = Ending::InvalidTest { reason: problem.message };
        } else if matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. })
            && let Some(fault) = playback.faulted()
            && !fault.recovered
            && !fault.is_agents_doing
        {
            *ending = Ending::ProviderFailed { reason: fault.reason };
        }
    }
}

/// Returns `model` with those faults of the case that hit model requests; `None` if there are none.
fn with_faults(
    model: &Arc<dyn Model>,
    name: &str,
    planned: &PlannedTrial,
    shared: &Shared,
    events: &EventSender,
) -> Option<Arc<FaultyModel>> {
    let faults = planned.case.faults.iter().map(|fault| &fault.action);
    let faults: Vec<_> = faults.filter(|fault| fault.requests().is_some()).cloned().collect();
    if faults.is_empty() {
        return None;
    }
    let events = events.clone();
    let report = move |occurrence| events.emit(Event::Step(Step::Fault(occurrence)));
    let providers = (&shared.settings.providers, name);
    Some(Arc::new(FaultyModel::new(Arc::clone(model), faults, without_tools(planned), providers, report)))
}

fn without_tools(planned: &PlannedTrial) -> bool {
    planned.setup.closed_tools.as_ref().is_some_and(Vec::is_empty)
}
