//! A trial's network: its policy, and the relay that is the only way out if the policy is not `open`.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agent::SessionContext;
use gateway::{Relay, RelayRules};
use llm::Proxies;
use model::{Destination, EgressAttempt, Ending, Event, HostPattern, NetworkPolicy, Step, Trace};
use sandbox::supervise::{Arrival, Listeners};
use sandbox::{Breakage, Sandbox};
use tokio::task::JoinSet;

use super::canaries::CanaryWatch;
use crate::event_bus::EventSender;
use crate::plan::PlannedTrial;

/// Pause after the system could not accept a connection because no file descriptors were left.
const PAUSE: Duration = Duration::from_millis(20);

/// Attempts by a trial's processes to reach hosts, in order.
type Attempts = Arc<Mutex<Vec<EgressAttempt>>>;

/// The network of a trial while its processes run. Dropping it closes all connections.
pub(super) struct TrialNetwork {
    policy: NetworkPolicy,
    relay: Arc<Relay>,
    attempts: Attempts,
    serving: tokio::task::JoinHandle<()>,
}

impl TrialNetwork {
    /// Starts serving the processes of `sandbox`. Returns `None` if they use the machine's network, or have no network.
    ///
    /// # Errors
    /// Returns an error if the policy cannot be applied.
    pub(super) fn start(
        policy: &NetworkPolicy,
        planned: &PlannedTrial,
        context: &SessionContext,
        sandbox: &dyn Sandbox,
        canaries: Option<&Arc<CanaryWatch>>,
        events: &EventSender,
    ) -> Result<Option<Self>, Breakage> {
        if policy.is_open() {
            return Ok(None);
        }
        let mut rules = rules(policy, planned, context)?;
        let own = planned.agent.own_ports(context)?;
        rules.own = own.into_iter().filter_map(|port| Destination::new("127.0.0.1", port)).collect();
        let of_loopback = rules.allowed.iter().filter_map(HostPattern::destination);
        let forwards: HashMap<u16, Destination> = rules
            .model
            .iter()
            .cloned()
            .chain(of_loopback)
            .chain(rules.own.iter().cloned())
            .filter(Destination::is_loopback)
            .map(|destination| (destination.port, destination))
            .collect();
        if let Some(reason) = sandbox.refuses_hosts() {
            // If no host is allowed, having no network at all satisfies the policy.
            return match rules.model.is_empty() && rules.allowed.is_empty() {
                true if rules.own.is_empty() => Ok(None),
                true => {
                    Err(Breakage::environment("the agent cannot send its spans (`traces`) without a network")
                        .for_good())
                }
                false => Err(Breakage::environment(reason).for_good()),
            };
        }
        let ports: Vec<u16> = forwards.keys().copied().collect();
        let Some(listeners) = sandbox.serve(&ports)? else { return Ok(None) };
        let proxies = Proxies::of(|name| context.host.env.get(name).map(String::as_str));
        let attempts = Attempts::default();
        let report = {
            let (attempts, events, canaries) = (Arc::clone(&attempts), events.clone(), canaries.cloned());
            move |mut attempt: EgressAttempt, written: &str| {
                if let Some(canaries) = &canaries {
                    canaries.see_host(written);
                }
                // The usual spelling of a host is in lower case, in which the masks do not find a secret.
                if let Cow::Owned(masked) = events.mask().text(written) {
                    attempt.host = masked;
                }
                attempts.lock().unwrap_or_else(PoisonError::into_inner).push(attempt.clone());
                events.emit(Event::Step(Step::Egress(attempt)));
            }
        };
        let canaries = canaries.cloned();
        let request = move |head: &str| {
            if let Some(canaries) = &canaries {
                canaries.see_request(head);
            }
        };
        let relay = Relay::new(rules, &proxies, report, request);
        let serving = tokio::spawn(serve(listeners, Arc::clone(&relay), Arc::new(forwards)));
        Ok(Some(Self { policy: policy.clone(), relay, attempts, serving }))
    }

    /// Returns the policy as it is recorded.
    pub(super) fn policy(&self) -> String {
        self.policy.to_string()
    }

    /// Adds the attempts so far to the trace. Their events were emitted when they were made.
    pub(super) fn complete(&self, trace: &mut Trace) {
        trace.egress.clone_from(&self.attempts.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Corrects the ending of an agent that failed because the relay failed, or could not reach the model.
    pub(super) fn explain(&self, ending: &mut Ending) {
        if !matches!(ending, Ending::GaveUp { .. } | Ending::Aborted { .. } | Ending::TimedOut { .. }) {
            return;
        }
        if self.serving.is_finished() {
            *ending = Ending::Aborted { reason: "the relay to the network has ended".to_owned() };
        } else if let Some(reason) = self.relay.model_failure() {
            *ending = Ending::ProviderFailed { reason };
        }
    }
}

impl Drop for TrialNetwork {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Returns the hosts that the policy allows.
fn rules(policy: &NetworkPolicy, planned: &PlannedTrial, context: &SessionContext) -> Result<RelayRules, Breakage> {
    let allowed = match policy {
        NetworkPolicy::Allow(hosts) => hosts.clone(),
        NetworkPolicy::ModelOnly => Vec::new(),
        NetworkPolicy::Open | NetworkPolicy::None => return Ok(RelayRules::default()),
    };
    let unknown = |reason: String| {
        let hint = "list its host, as in `network: {allow: [api.example.com]}`";
        Breakage::environment(format!("the host of the model is not known: {reason}; {hint}")).for_good()
    };
    let model = match planned.agent.model_addresses(context) {
        Ok(addresses) => addresses
            .iter()
            .map(|address| {
                Destination::of_url(address).ok_or_else(|| unknown("its address is not a valid URL".to_owned()))
            })
            .collect::<Result<_, _>>()?,
        // The list names it.
        Err(_) if !allowed.is_empty() => Vec::new(),
        Err(error) => return Err(unknown(error.to_string())),
    };
    Ok(RelayRules { model, allowed, own: Vec::new() })
}

/// Serves the programs of a sandbox until the future is dropped.
async fn serve(listeners: Listeners, relay: Arc<Relay>, forwards: Arc<HashMap<u16, Destination>>) {
    let mut programs = JoinSet::new();
    loop {
        tokio::select! {
            arrival = listeners.next() => match arrival {
                Ok(arrival) => {
                    programs.spawn(serve_program(arrival, Arc::clone(&relay), Arc::clone(&forwards)));
                }
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
            Some(_) = programs.join_next() => {}
        }
    }
}

/// Serves one program until it and all its descendants have ended.
async fn serve_program(arrival: Arrival, relay: Arc<Relay>, forwards: Arc<HashMap<u16, Destination>>) {
    // A program that ended before it began needs no network.
    let Ok(served) = arrival.take().await else { return };
    let by_command = served.is_of_command;
    let mut serving = JoinSet::new();
    for socket in served.lookups {
        let relay = Arc::clone(&relay);
        serving.spawn(async move { relay.answer_lookups(&socket, by_command).await });
    }
    for (address, socket) in served.listeners {
        let (relay, destination) = (Arc::clone(&relay), forwards.get(&address.port()).cloned());
        serving.spawn(async move {
            match destination {
                Some(destination) => relay.forward(&socket, destination, by_command).await,
                None => relay.serve_proxy(&socket, by_command).await,
            }
        });
    }
    served.ended.wait().await;
}
