//! Documents from a vendor's API other than model responses, identified by paths below its base URL.

use std::sync::{Arc, Mutex, PoisonError};

use model::Step;
use serde_json::Value;

use super::exchange::Exchange;
use super::retry_policy::RetryPolicy;
use crate::account::Account;
use crate::{Failure, FailureKind, Policy};

/// A vendor's documents, as seen by one trial. Requests are signed and retried, and share the account with all its
/// other callers. No error contains a key.
pub struct Documents {
    exchange: Exchange,
    account: Arc<Account>,
    policy: Policy,
    steps: Mutex<Vec<Step>>,
}

impl Documents {
    pub(super) fn new(exchange: Exchange, account: Arc<Account>, policy: Policy) -> Self {
        Self { exchange, account, policy, steps: Mutex::default() }
    }

    /// Fetches `path`, such as `/threads/t_1/messages?order=asc`. Retries as often as the policy allows.
    ///
    /// # Errors
    /// Returns the reason why there is no response.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.persist(path, None, FailureKind::is_transient).await
    }

    /// Sends `body` to `path`. Retries only if the vendor cannot have processed the request.
    ///
    /// # Errors
    /// See [`get`](Self::get).
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let is_untouched =
            |trouble| matches!(trouble, FailureKind::RateLimit | FailureKind::Overloaded | FailureKind::Unreachable);
        self.persist(path, Some(body), is_untouched).await
    }

    /// Returns the steps recorded since the last call: failed attempts that were retried.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn persist(
        &self,
        path: &str,
        body: Option<&Value>,
        again: fn(FailureKind) -> bool,
    ) -> Result<Value, Failure> {
        let retry_policy = RetryPolicy { account: &self.account, policy: &self.policy, again };
        let attempt = || self.exchange.call(path, body, &self.policy);
        let on_retry = |step| self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(step);
        retry_policy.ask(attempt, |_| None, on_retry).await
    }
}
