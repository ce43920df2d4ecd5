//! Forwards the requests of agents to their real providers, and counts them by trial.
//!
//! An agent signs in with its own key, so the first part of the path assigns a request to its trial: the token of the
//! trial. Everything below that is sent to the provider unchanged, and the answer is passed on as it arrives. Keys are
//! passed on, and are never kept.

mod body;
mod exchange;
mod recorded;
mod traffic;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use cassette::Tape;
use hyper::Uri;
use llm::{Block, Providers, Proxies, Timeouts};
use model::ModelTraffic;
use reqwest::{Client, Url};

pub(crate) use self::exchange::forward;
use self::traffic::Traffic;
use crate::program::{ForeignRequests, Program};

/// Connection settings from the gateway to the providers: proxies, timeouts and prices. Each run has one.
pub struct Upstream {
    proxies: Proxies,
    timeouts: Timeouts,
    providers: Providers,
    plain: OnceLock<Result<Client, String>>,
    secure: OnceLock<Result<Client, String>>,
}

impl Upstream {
    /// Creates settings that use `proxies`. Costs are computed with the prices of `providers`.
    pub fn new(proxies: Proxies, timeouts: Timeouts, providers: Providers) -> Self {
        Self { proxies, timeouts, providers, plain: OnceLock::new(), secure: OnceLock::new() }
    }

    fn client(&self, is_secure: bool) -> Result<Client, String> {
        let client = if is_secure { &self.secure } else { &self.plain };
        let create = || self.proxies.forwarding_client(is_secure, self.timeouts.connect);
        client.get_or_init(|| create().map_err(|error| error.to_string())).clone()
    }
}

impl std::fmt::Debug for Upstream {
    /// Leaves out the proxies, which may contain a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("timeouts", &self.timeouts).finish_non_exhaustive()
    }
}

/// A trial whose requests are forwarded.
pub(crate) struct ForwardedTrial {
    upstream: Arc<Upstream>,
    client: Client,
    /// Address of the provider, to which request paths are appended.
    address: Arc<Url>,
    /// Traffic of the trial with all of its providers.
    traffic: Arc<Traffic>,
    /// Tape that replays recorded answers or records new ones.
    tape: Option<Arc<Tape>>,
}

/// The trials whose requests are forwarded, by token.
#[derive(Default)]
pub(crate) struct ForwardedTrials {
    admitted: Mutex<HashMap<String, Arc<ForwardedTrial>>>,
}

impl ForwardedTrials {
    pub(crate) fn admit(
        self: &Arc<Self>,
        gateway: &str,
        token: &str,
        upstream: &Arc<Upstream>,
        addresses: &[&str],
        tape: Option<&Arc<Tape>>,
    ) -> Result<ForwardedAdmission, String> {
        let traffic = Arc::new(Traffic::new(upstream.providers.clone()));
        let mut admission = ForwardedAdmission { base_urls: Vec::new(), traffic, trials: Arc::clone(self) };
        for (at, address) in addresses.iter().enumerate() {
            let address =
                Url::parse(address).map_err(|error| format!("the address of the provider is invalid: {error}"))?;
            if !matches!(address.scheme(), "http" | "https") || address.host_str().is_none() {
                return Err("the address of the provider must start with `http://` or `https://`".to_owned());
            }
            let client = upstream.client(address.scheme() == "https")?;
            let (upstream, address, tape) = (Arc::clone(upstream), Arc::new(address), tape.cloned());
            let trial = ForwardedTrial { upstream, client, address, traffic: Arc::clone(&admission.traffic), tape };
            let token = if at == 0 { token.to_owned() } else { format!("{token}-{}", at + 1) };
            admission.base_urls.push((token.clone(), format!("{gateway}/{token}")));
            self.lock().insert(token, Arc::new(trial));
        }
        Ok(admission)
    }

    /// Returns the trial of a request, and the rest of its path with the query.
    pub(crate) fn find(&self, uri: &Uri) -> Option<(Arc<ForwardedTrial>, String)> {
        let path = uri.path_and_query()?.as_str().strip_prefix('/')?;
        let end = path.find(['/', '?']).unwrap_or(path.len());
        let (token, rest) = path.split_at(end);
        Some((self.lock().get(token)?.clone(), rest.to_owned()))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<ForwardedTrial>>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Permission for one trial to send requests to its providers. Dropping it revokes the tokens.
pub struct ForwardedAdmission {
    /// Tokens and addresses, in provider order.
    base_urls: Vec<(String, String)>,
    traffic: Arc<Traffic>,
    trials: Arc<ForwardedTrials>,
}

impl ForwardedAdmission {
    /// Returns the addresses that the agent uses instead of its providers' own, in the same order:
    /// `http://127.0.0.1:PORT/TOKEN`.
    pub fn base_urls(&self) -> impl Iterator<Item = &str> {
        self.base_urls.iter().map(|(_, base_url)| base_url.as_str())
    }

    /// Returns the traffic so far.
    pub fn traffic(&self) -> ModelTraffic {
        self.traffic.counted()
    }

    /// Returns all tool calls and texts in the answers so far. `None` if an answer could not be read, or if there was
    /// no request for a message; the agent's calls can then not be compared.
    pub fn replied(&self) -> Option<Vec<Block>> {
        self.traffic.replied()
    }

    /// Returns the age of the oldest request whose answer has not begun; `None` if there is none.
    pub fn silent_for(&self) -> Option<Duration> {
        self.traffic.pending.longest()
    }

    /// Forwards requests for messages only of the program that sends the first one. Must be called before any request.
    #[must_use]
    pub fn of_one_program(self) -> Self {
        self.traffic.program.get_or_init(Program::default);
        self
    }

    /// Returns the requests for messages that other programs sent, if they are not forwarded and there are any.
    pub fn foreign(&self) -> Option<ForeignRequests> {
        self.traffic.program.get()?.foreign()
    }

    /// Returns `true` if a request for a message failed, or got no answer for long. If not, no answer explains why the
    /// agent's program fails.
    pub fn has_failed(&self) -> bool {
        self.traffic.has_failed()
    }

    /// Returns the reason why the last request for a message failed, if the provider or the connection to it was at
    /// fault.
    pub fn failure(&self) -> Option<String> {
        self.traffic.failure()
    }
}

impl Drop for ForwardedAdmission {
    fn drop(&mut self) {
        let mut trials = self.trials.lock();
        for (token, _) in &self.base_urls {
            trials.remove(token);
        }
    }
}

impl std::fmt::Debug for ForwardedAdmission {
    /// Omits the tokens.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForwardedAdmission").field("traffic", &self.traffic()).finish_non_exhaustive()
    }
}
