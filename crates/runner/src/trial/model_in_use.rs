//! Endpoint of a trial's model, and information from a scripted model about how the trial ended.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agent::{Description, Endpoint, SessionContext, Turn, WAITING_ON_PROVIDER};
use model::{Ending, GatewayMode, Limits, ModelTraffic, Trace};
use sandbox::{Breakage, Sandbox};

use super::Shared;
use crate::plan::{ModelChoice, PlannedTrial};

/// A model while a trial uses it.
pub(super) struct ModelInUse {
    pub(super) endpoint: Endpoint,
    pub(super) playback: Option<Arc<llm::Playback>>,
    pub(super) _admission: Option<gateway::Admission>,
    /// Permission to send requests through the gateway to the model of a vendor.
    pub(super) observed: Option<gateway::ForwardedAdmission>,
}

impl ModelInUse {
    /// Returns the model of the agent; a scripted one is restarted for each attempt.
    pub(super) fn of(planned: &PlannedTrial, shared: &Shared, sandbox: Option<&dyn Sandbox>) -> Self {
        let script = match &planned.model {
            ModelChoice::Vendor(Some(name)) if planned.agent.description().asks_providers => {
                let base_url = shared.settings.arms.base_url.as_deref();
                let endpoint = Endpoint::Provider(shared.settings.providers.model(name, base_url));
                return Self { endpoint, playback: None, _admission: None, observed: None };
            }
            ModelChoice::Vendor(_) => {
                let base_url = shared.settings.arms.base_url.clone();
                return Self {
                    endpoint: Endpoint::Vendor { base_url },
                    playback: None,
                    _admission: None,
                    observed: None,
                };
            }
            ModelChoice::Scripted(script) => script,
        };
        let place = |path: Option<&Path>| path.map(|path| path.to_string_lossy().into_owned()).unwrap_or_default();
        let playback = Arc::new(script.play(llm::ScriptContext {
            sandbox: place(sandbox.map(Sandbox::work)),
            home: place(sandbox.map(Sandbox::home)),
            without_tools: planned.setup.closed_tools.as_ref().is_some_and(Vec::is_empty),
        }));
        match (&shared.gateway, planned.agent.description().wire) {
            (Some(gateway), Some(_)) => {
                let token = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
                let admission = gateway.admit(token.clone(), Arc::clone(&playback));
                let endpoint = Endpoint::Gateway { base_url: gateway.base_url(), token };
                Self { endpoint, playback: Some(playback), _admission: Some(admission), observed: None }
            }
            _ => Self {
                endpoint: Endpoint::Script(Arc::clone(&playback)),
                playback: Some(playback),
                _admission: None,
                observed: None,
            },
        }
    }

    /// Puts the gateway between the agent and the vendor of its model, if the run observes this traffic. `context` is
    /// the context of the agent, and gets the new endpoint.
    ///
    /// # Errors
    /// Returns an error if the agent's requests cannot go through the gateway.
    pub(super) fn observe(
        &mut self,
        planned: &PlannedTrial,
        shared: &Shared,
        context: &mut SessionContext,
    ) -> Result<(), Breakage> {
        let (Endpoint::Vendor { base_url }, Some(_)) = (&self.endpoint, planned.agent.description().wire) else {
            return Ok(());
        };
        let (Some(gateway), GatewayMode::Observe) = (&shared.gateway, shared.settings.gateway) else { return Ok(()) };
        let cannot = |reason: String| {
            let hint = "set `gateway` to `off` to run it unobserved";
            Breakage::environment(format!("the gateway cannot observe the model of the agent: {reason}; {hint}"))
                .for_good()
        };
        let address = planned.agent.forwarding_address(context).map_err(cannot)?;
        let token = format!("trialrun-{}", uuid::Uuid::now_v7().simple());
        let observed = gateway.forward(token, &shared.upstream, &address).map_err(cannot)?;
        self.endpoint = Endpoint::Observed { gateway: observed.base_url().to_owned(), base_url: base_url.clone() };
        context.endpoint = self.endpoint.clone();
        self.observed = Some(observed);
        Ok(())
    }

    /// Returns the traffic of the agent that the gateway observed.
    pub(super) fn traffic(&self) -> Option<Box<ModelTraffic>> {
        self.observed.as_ref().map(|observed| Box::new(observed.traffic()))
    }

    /// Returns how the act phase ended when the wall clock ran out. Must be called at that moment: a request that is
    /// unanswered then was held up by the model, and afterwards the agent has left.
    pub(super) fn timed_out(&self, limits: &Limits, waiting_on: &str) -> Ending {
        let setting = limits.timeout_from.clone().unwrap_or_default();
        let timeout = limits.timeout_ms as f64 / 1000.0;
        let failed = |what: &str| Ending::ProviderFailed {
            reason: format!("{what} when the trial's timeout of {timeout} s expired ({setting})"),
        };
        // A request that has just arrived is not what took the time.
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
            _ => Ending::TimedOut { setting, after_ms: limits.timeout_ms },
        }
    }

    /// Returns the ids of the calls in `trace` that no model asked for. The gateway has seen all requests, so a call that
    /// was not in an answer was written into the output of the agent's program.
    pub(super) fn forged(&self, agent: &Description, trace: &Trace) -> Vec<String> {
        let asked = match (&self.endpoint, &self.playback, &self.observed) {
            (Endpoint::Gateway { .. }, Some(playback), _) => Some(playback.calls()),
            (_, _, Some(observed)) => observed.asked(),
            _ => None,
        };
        match asked.zip(agent.call_ids) {
            Some((asked, call_ids)) => call_ids.forged(trace.calls.iter().map(|traced| &traced.call), &asked),
            None => Vec::new(),
        }
    }

    /// Returns how long a provider on the network has not responded to a request.
    fn silent_for(&self) -> Option<Duration> {
        match &self.endpoint {
            Endpoint::Provider(Ok(model)) => model.silent_for(),
            _ => self.observed.as_ref()?.silent_for(),
        }
    }

    /// Records the requests and the problems of a scripted model, which are more precise than the agent's report.
    pub(super) fn record(&self, turn: &mut Turn, ending: &mut Ending) {
        if let Some(observed) = &self.observed
            // Some agents wait longer than the trial before they send a failed request again.
            && matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. } | Ending::TimedOut { .. })
            && let Some(reason) = observed.failure()
        {
            *ending = Ending::ProviderFailed { reason };
        }
        let Some(playback) = &self.playback else { return };
        for step in playback.take_steps() {
            let _ = turn.record(step);
        }
        if matches!(ending, Ending::Cancelled) {
            return;
        }
        if let Some(problem) = playback.problems().into_iter().next() {
            // The user wrote the script, so the test is invalid.
            *ending = Ending::InvalidTest { reason: problem.message };
        } else if matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. })
            && let Some(fault) = playback.faulted()
            && !fault.recovered
        {
            *ending = Ending::ProviderFailed { reason: fault.reason };
        }
    }
}
