//! What a vendor offers beside the answers of its models: documents, each below the vendor's address.

use std::sync::{Arc, Mutex, PoisonError};

use model::Step;
use serde_json::Value;

use super::exchange::Exchange;
use crate::account::Account;
use crate::{Failure, Policy, Trouble};

/// A vendor's documents, as one trial sees them: signed, patient, and sharing the account with everybody who asks for
/// the same. No key is in any error.
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

    /// What is at `path`, such as `/threads/t_1/messages?order=asc`. Tried as often as the policy allows.
    ///
    /// # Errors
    /// Why there is no answer.
    pub async fn get(&self, path: &str) -> Result<Value, Failure> {
        self.persist(path, None, Trouble::is_transient).await
    }

    /// Sends `body` to `path`. It is tried again only where the vendor cannot have done what it asks for already.
    ///
    /// # Errors
    /// As [`get`](Self::get).
    pub async fn post(&self, path: &str, body: &Value) -> Result<Value, Failure> {
        let is_untouched = |trouble| matches!(trouble, Trouble::RateLimit | Trouble::Overloaded | Trouble::Unreachable);
        self.persist(path, Some(body), is_untouched).await
    }

    /// What there is to record since the last call: tries that failed and were repeated.
    pub fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.steps.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn persist(&self, path: &str, body: Option<&Value>, again: fn(Trouble) -> bool) -> Result<Value, Failure> {
        let mut tried = 0;
        loop {
            let leave = self.account.enter().await;
            tried += 1;
            let mut failure = match self.exchange.call(path, body, &self.policy).await {
                Ok(document) => {
                    leave.answered(None);
                    return Ok(document);
                }
                Err(failure) => failure,
            };
            failure.tries = tried;
            let wait = failure.retry_after.unwrap_or_else(|| self.policy.wait_after(tried));
            let is_too_long = wait > self.policy.longest_pause;
            if failure.trouble.is_everybodys() && !is_too_long {
                leave.pause(wait);
            }
            drop(leave);
            if !again(failure.trouble) || tried >= self.policy.tries || is_too_long {
                return Err(failure);
            }
            self.steps.lock().unwrap_or_else(PoisonError::into_inner).push(Step::Retry {
                attempt: tried.into(),
                status: failure.status,
                error: failure.to_string(),
                delay_ms: u64::try_from(wait.as_millis()).ok(),
            });
            if !failure.trouble.is_everybodys() {
                tokio::time::sleep(wait).await;
            }
        }
    }
}
