//! Models on the network: the parts that all vendors have in common.

mod documents;
mod exchange;
mod retry_policy;
mod vendor;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use model::{Step, Tokens};
use tokio::sync::Notify;

pub use self::documents::Documents;
use self::exchange::Exchange;
pub(crate) use self::retry_policy::RetryPolicy;
pub(crate) use self::vendor::Vendor;
use crate::account::Account;
use crate::answer::{BoxFuture, Model, ProviderError};
use crate::providers::DatedPrices;
use crate::{Block, Failure, FailureKind, PendingRequests, Policy, Price, Reply, Request};

/// A model on the network, as seen by one trial. Its account is shared.
pub(crate) struct Remote {
    exchange: Exchange,
    /// The vendor's name for the model.
    model: String,
    account: Arc<Account>,
    policy: Policy,
    price: Option<Price>,
    dated_prices: DatedPrices,
    pending: PendingRequests,
    state: Mutex<State>,
    stirred: Notify,
}

#[derive(Default)]
struct State {
    steps: Vec<Step>,
    replies: u64,
    /// Ids of the calls so far, because some servers start counting again in every response.
    calls: HashSet<String>,
}

impl Model for Remote {
    fn respond<'a>(&'a self, request: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
        Box::pin(async move {
            let request = Request { model: self.model.clone(), ..request.clone() };
            let reply = self.persist(&request).await.map_err(|failure| ProviderError::Failed(Box::new(failure)))?;
            Ok(self.completed(reply))
        })
    }

    fn take_steps(&self) -> Vec<Step> {
        std::mem::take(&mut self.state().steps)
    }

    fn steps_ready(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.stirred.notified())
    }

    fn address(&self) -> Option<&str> {
        Some(self.exchange.address())
    }

    fn silent_for(&self) -> Option<Duration> {
        self.pending.longest()
    }
}

impl Remote {
    /// Retries until there is a response, or until further attempts cannot succeed.
    async fn persist(&self, request: &Request) -> Result<Reply, Failure> {
        let again: fn(FailureKind) -> bool = match request.gives_up_on_silence {
            true => |kind| kind.is_transient() && kind != FailureKind::Silent,
            false => FailureKind::is_transient,
        };
        let retry_policy = RetryPolicy { account: &self.account, policy: &self.policy, again };
        let attempt = || self.exchange.run(request, &self.policy, &self.pending);
        let on_retry = |step| {
            self.state().steps.push(step);
            self.stirred.notify_one();
        };
        retry_policy.ask(attempt, |reply| reply.tokens.map(|tokens| tokens.total()), on_retry).await
    }

    /// Adds the parts of the reply that the vendor omitted: unique ids and the cost.
    fn completed(&self, mut reply: Reply) -> Reply {
        let mut state = self.state();
        state.replies += 1;
        let number = state.replies;
        if reply.message_id.is_empty() {
            reply.message_id = format!("reply_{number}");
        }
        for (index, block) in reply.content.iter_mut().enumerate() {
            if let Block::ToolUse { id, .. } = block
                && (id.is_empty() || state.calls.contains(id.as_str()))
            {
                *id = format!("call_{number}_{}", index + 1);
            }
            if let Block::ToolUse { id, .. } = block {
                state.calls.insert(id.clone());
            }
        }
        reply.cost_usd = reply.cost_usd.or_else(|| self.cost(&reply.tokens?));
        reply
    }

    /// Returns the cost of `tokens`, if the model has a price. Notes the use of a price that may be out of date.
    fn cost(&self, tokens: &Tokens) -> Option<f64> {
        let price = self.price?;
        if let Some(as_of) = price.as_of {
            let mut dated = self.dated_prices.lock().unwrap_or_else(PoisonError::into_inner);
            dated.insert(self.model.clone(), as_of);
        }
        Some(price.cost(tokens))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates the failure for a response that does not describe its own problem.
fn unreadable(sent: &str, what: &str) -> Failure {
    Failure::new(FailureKind::Unreadable, sent).saying(what)
}
