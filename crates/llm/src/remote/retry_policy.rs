//! Retries of requests.

use std::sync::Arc;

use model::Step;

use crate::account::Account;
use crate::{Failure, FailureKind, Policy};

/// Rules for retrying a request, and the account whose limits its callers wait for.
pub(crate) struct RetryPolicy<'a> {
    pub(crate) account: &'a Arc<Account>,
    pub(crate) policy: &'a Policy,
    /// Returns `true` for failures that may be retried.
    pub(crate) again: fn(FailureKind) -> bool,
}

impl RetryPolicy<'_> {
    /// Sends the request until there is a response, or until further attempts cannot succeed. `tokens` returns the
    /// usage of a response, and `on_retry` is called for each failed attempt that is repeated.
    pub(crate) async fn ask<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        mut attempt: impl FnMut() -> F,
        tokens: impl Fn(&T) -> Option<u64>,
        on_retry: impl Fn(Step),
    ) -> Result<T, Failure> {
        let mut tried = 0;
        loop {
            let permit = self.account.enter().await;
            tried += 1;
            let mut failure = match attempt().await {
                Ok(answer) => {
                    permit.answered(tokens(&answer));
                    return Ok(answer);
                }
                Err(failure) => failure,
            };
            failure.tries = tried;
            let wait = failure.retry_after.unwrap_or_else(|| self.policy.wait_after(tried));
            let is_too_long = wait > self.policy.longest_pause;
            if failure.kind.is_everybodys() && !is_too_long {
                permit.pause(wait);
            }
            drop(permit);
            if !(self.again)(failure.kind) || tried >= self.policy.tries || is_too_long {
                return Err(failure);
            }
            on_retry(Step::Retry {
                attempt: tried.into(),
                status: failure.status,
                error: failure.to_string(),
                delay_ms: u64::try_from(wait.as_millis()).ok(),
            });
            // Otherwise, the account delays all its callers.
            if !failure.kind.is_everybodys() {
                tokio::time::sleep(wait).await;
            }
        }
    }
}
