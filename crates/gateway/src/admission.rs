//! Admitted trials and the requests they have sent.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use llm::{Conversation, Model, PendingRequests, Waiting};

use crate::program::{ForeignRequests, Program};

/// The admitted trials, by token.
#[derive(Default)]
pub(crate) struct AdmittedTrials {
    admitted: Mutex<HashMap<String, Arc<AdmittedTrial>>>,
}

/// One admitted trial.
pub(crate) struct AdmittedTrial {
    pub(crate) model: Arc<dyn Model>,
    pub(crate) pending: PendingRequests,
    pub(crate) program: Program,
    has_answered: AtomicBool,
    has_failed: AtomicBool,
    seen: Mutex<Vec<SeenRequest>>,
    requests: AtomicU64,
}

impl AdmittedTrials {
    pub(crate) fn admit(self: &Arc<Self>, token: String, model: Arc<dyn Model>) -> Admission {
        let trial = Arc::new(AdmittedTrial {
            model,
            pending: PendingRequests::default(),
            program: Program::default(),
            has_answered: AtomicBool::default(),
            has_failed: AtomicBool::default(),
            seen: Mutex::default(),
            requests: AtomicU64::default(),
        });
        self.lock().insert(token.clone(), Arc::clone(&trial));
        Admission { token, trial, trials: Arc::clone(self) }
    }

    pub(crate) fn find(&self, token: &str) -> Option<Arc<AdmittedTrial>> {
        self.lock().get(token).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<AdmittedTrial>>> {
        self.admitted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AdmittedTrial {
    pub(crate) fn saw(&self, request: SeenRequest) {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).push(request);
    }

    /// Records that the program got a message, or an error or a broken message in its place.
    pub(crate) fn answered(&self, is_message: bool) {
        let answer = if is_message { &self.has_answered } else { &self.has_failed };
        answer.store(true, Ordering::Relaxed);
    }

    /// Returns the number of the next request, starting at 1.
    pub(crate) fn next_number(&self) -> u64 {
        self.requests.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// Permission for one trial to send requests. Dropping it revokes the token: later requests are refused.
pub struct Admission {
    token: String,
    trial: Arc<AdmittedTrial>,
    trials: Arc<AdmittedTrials>,
}

impl Admission {
    /// Returns the requests received so far, in order.
    pub fn seen(&self) -> Vec<SeenRequest> {
        self.trial.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns `true` if the agent's program got a message.
    pub fn has_answered(&self) -> bool {
        self.trial.has_answered.load(Ordering::Relaxed)
    }

    /// Returns `true` if the agent's program got an error or a broken message. If not, no answer explains why it fails.
    pub fn has_failed(&self) -> bool {
        self.trial.has_failed.load(Ordering::Relaxed)
    }

    /// Returns the requests for messages that other programs sent with the token, if there are any.
    pub fn foreign(&self) -> Option<ForeignRequests> {
        self.trial.program.foreign()
    }

    /// Returns the age of the oldest unanswered request; `None` if all are answered.
    pub fn in_flight(&self) -> Option<Duration> {
        self.trial.pending.longest()
    }

    /// Returns the unanswered requests, the oldest first.
    pub fn waiting(&self) -> Vec<Waiting> {
        self.trial.pending.waiting()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        let mut admitted = self.trials.lock();
        // The same token may have been admitted again since; then the entry belongs to the newer admission.
        if admitted.get(&self.token).is_some_and(|trial| Arc::ptr_eq(trial, &self.trial)) {
            admitted.remove(&self.token);
        }
    }
}

impl std::fmt::Debug for Admission {
    /// Omits the token.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Admission").field("seen", &self.seen()).finish_non_exhaustive()
    }
}

/// A received request, without its text and its token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// HTTP method, such as `POST`.
    pub method: String,
    /// Path without the query.
    pub path: String,
    /// Header that carried the token.
    pub auth: Auth,
    /// Value of the `User-Agent` header.
    pub user_agent: Option<String>,
    /// True if the client requested a stream.
    pub stream: bool,
    /// Conversation to which the request belongs.
    pub conversation: Conversation,
    /// Requested model; `None` if the request was not for a message or could not be parsed.
    pub model: Option<String>,
    /// Names of the offered tools, in order.
    pub tools: Vec<String>,
}

/// Header that carried a request's token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Auth {
    /// The token was the value of a header for keys, such as `x-api-key`.
    ApiKey,
    /// The token came as `Authorization: Bearer`.
    Bearer,
}
