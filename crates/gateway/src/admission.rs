//! Who may ask, and what was asked.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use llm::{Conversation, Flights, Model, Waiting};

/// The trials that are let in, by token.
#[derive(Default)]
pub(crate) struct Guests {
    admitted: Mutex<HashMap<String, Arc<Guest>>>,
}

/// One trial that is let in.
pub(crate) struct Guest {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) flights: Flights,
    seen: Mutex<Vec<SeenRequest>>,
    requests: AtomicU64,
}

impl Guests {
    pub(crate) fn admit(self: &Arc<Self>, token: String, model: Arc<dyn Model>) -> Admission {
        let guest = Arc::new(Guest {
            model,
            flights: Flights::default(),
            seen: Mutex::default(),
            requests: AtomicU64::default(),
        });
        self.lock().insert(token.clone(), Arc::clone(&guest));
        Admission { token, guest, guests: Arc::clone(self) }
    }

    pub(crate) fn find(&self, token: &str) -> Option<Arc<Guest>> {
        self.lock().get(token).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Guest>>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    pub(crate) fn saw(&self, request: SeenRequest) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    /// The number of the next request, from 1.
    pub(crate) fn next_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A trial's right to ask. It ends when this is dropped: later requests are refused.
pub struct Admission {
    token: String,
    guest: Arc<Guest>,
    guests: Arc<Guests>,
}

impl Admission {
    /// What has arrived so far, in order.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.guest.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How long the oldest unanswered request has been waiting; `None` if all are answered.
    pub fn in_flight(&self) -> Option<Duration> {
        self.guest.flights.longest()
    }

    /// The requests that are unanswered now, the oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.guest.flights.waiting()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut admitted = self.guests.lock();
        // The same token may have been let in anew, and then it is no longer this one's.
        if admitted.get(&self.token).is_some_and(|guest| Arc::ptr_eq(guest, &self.guest)) {
            admitted.remove(&self.token);
        }
    }
}

impl std::fmt::Debug for Admission {
    /// Without the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("seen", &self.seen()).finish_non_exhaustive()
    }
}

/// A request as it arrived, without its text and without its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// The method, such as `POST`.
    pub method: String,
    /// The path, without the query.
    pub path: String,
    /// How it was signed.
    pub auth: Auth,
    /// What the client calls itself.
    pub user_agent: Option<String>,
    /// Whether a stream was asked for.
    pub stream: bool,
    /// Which conversation it belongs to.
    pub conversation: Conversation,
    /// The model that was asked for; `None` if the request was none for a message, or could not be read.
    pub model: Option<String>,
    /// The tools it offers, in order.
    pub tools: Vec<String>,
}

/// How a request was signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// The token was the value of `x-api-key`.
    ApiKey,
    /// The token came as `Authorization: Bearer`.
    Bearer,
}

impl Auth {
    /// As the header is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::ApiKey => "x-api-key",
            Self::Bearer => "Authorization: Bearer",
        }
    }
}
