//! Asking again.

use std::sync::Arc;

use model::Step;

use crate::account::Account;
use crate::{Failure, Policy, Trouble};

/// How often and when something is asked again, and who else has to wait for that.
pub(super) struct Persistence<'a> {
    pub(super) account: &'a Arc<Account>,
    pub(super) policy: &'a Policy,
    /// What may be asked again at all.
    pub(super) again: fn(Trouble) -> bool,
}

impl Persistence<'_> {
    /// Asks until there is an answer, or asking again is of no use. `tokens` is what an answer took, and `tell` hears of
    /// each try that failed and is repeated.
    pub(super) async fn ask<T, F: Future<Output = Result<T, Failure>>>(
        &self,
        mut attempt: impl FnMut() -> F,
        tokens: impl Fn(&T) -> Option<u64>,
        tell: impl Fn(Step),
    ) -> Result<T, Failure> {
        let mut tried = 0;
        loop {
            let leave = self.account.enter().await;
            tried += 1;
            let mut failure = match attempt().await {
                Ok(answer) => {
                    leave.answered(tokens(&answer));
                    return Ok(answer);
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
            if !(self.again)(failure.trouble) || tried >= self.policy.tries || is_too_long {
                return Err(failure);
            }
            tell(Step::Retry {
                attempt: tried.into(),
                status: failure.status,
                error: failure.to_string(),
                delay_ms: u64::try_from(wait.as_millis()).ok(),
            });
            // Else the account makes everybody wait.
            if !failure.trouble.is_everybodys() {
                tokio::time::sleep(wait).await;
            }
        }
    }
}
