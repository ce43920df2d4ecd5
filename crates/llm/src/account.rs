//! An account at a provider, and the limits on its use. All callers that use the same account share one value.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

use crate::Policy;

const MINUTE: Duration = Duration::from_secs(60);

/// An account at a provider.
///
/// It admits as many concurrent requests as the policy allows, in order of arrival. If the provider asks for a pause,
/// all callers wait, and afterwards only half as many requests are admitted; each response then raises the limit a
/// little.
pub(crate) struct Account {
    most: f64,
    requests: Option<Allowance>,
    tokens: Option<Allowance>,
    /// Queue of callers waiting to be admitted, except the first.
    queue: tokio::sync::Mutex<()>,
    changed: Notify,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    under_way: usize,
    /// Current limit on concurrent requests.
    room: f64,
    paused_until: Option<Instant>,
    /// End of a pause for which the provider asked another process.
    paused_elsewhere: Option<Instant>,
    /// Time at which the limit was last reduced.
    cut_at: Option<Instant>,
    requests_paid: Option<Instant>,
    tokens_paid: Option<Instant>,
}

/// Rate limit per minute. Each use moves a mark into the future; a caller waits while the mark is at least one minute
/// ahead.
#[derive(Clone, Copy)]
struct Allowance {
    each: Duration,
}

impl Allowance {
    fn new(per_minute: u64) -> Self {
        Self { each: MINUTE.div_f64(per_minute.max(1) as f64) }
    }

    /// Returns the time at which the next request may be sent.
    fn free_at(mark: Option<Instant>, now: Instant) -> Instant {
        mark.and_then(|mark| mark.checked_sub(MINUTE)).unwrap_or(now).max(now)
    }

    fn pay(self, mark: &mut Option<Instant>, amount: u64, now: Instant) {
        let from = mark.unwrap_or(now).max(now);
        let price = Duration::try_from_secs_f64(self.each.as_secs_f64() * amount as f64).ok();
        *mark = price.and_then(|price| from.checked_add(price)).or(Some(from));
    }
}

/// Permission to have one request in progress; it ends when this value is dropped.
pub(crate) struct Permit {
    account: Arc<Account>,
    since: Instant,
}

/// Result of a request for admission.
enum Admission {
    Granted(Permit),
    Full,
    ShutUntil(Instant),
}

impl Account {
    pub(crate) fn new(policy: &Policy) -> Self {
        let most = policy.concurrency.max(1) as f64;
        Self {
            most,
            requests: policy.requests_per_minute.map(|most| Allowance::new(most.into())),
            tokens: policy.tokens_per_minute.map(Allowance::new),
            queue: tokio::sync::Mutex::default(),
            changed: Notify::new(),
            state: Mutex::new(State { room: most, ..State::default() }),
        }
    }

    /// Waits until a request may be sent.
    pub(crate) async fn enter(self: &Arc<Self>) -> Permit {
        let _first = self.queue.lock().await;
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            // Changes from here on wake this task, so none is missed between checking and waiting.
            changed.as_mut().enable();
            match self.try_admit() {
                Admission::Granted(permit) => return permit,
                Admission::Full => changed.await,
                Admission::ShutUntil(instant) => tokio::select! {
                    () = tokio::time::sleep_until(instant) => {}
                    () = changed => {}
                },
            }
        }
    }

    fn try_admit(self: &Arc<Self>) -> Admission {
        let now = Instant::now();
        let mut state = self.state();
        let requests = self.requests.map(|_| Allowance::free_at(state.requests_paid, now));
        let tokens = self.tokens.map(|_| Allowance::free_at(state.tokens_paid, now));
        let shut = [state.paused_until, state.paused_elsewhere, requests, tokens].into_iter().flatten().max();
        if let Some(until) = shut.filter(|until| *until > now) {
            return Admission::ShutUntil(until);
        }
        if state.under_way as f64 >= state.room.floor() {
            return Admission::Full;
        }
        state.under_way += 1;
        if let Some(allowance) = self.requests {
            allowance.pay(&mut state.requests_paid, 1, now);
        }
        Admission::Granted(Permit { account: Arc::clone(self), since: now })
    }

    /// Returns the rest of a pause for which the provider asked this process.
    pub(crate) fn pause_left(&self) -> Option<Duration> {
        self.state().paused_until?.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
    }

    /// Pauses all callers because the provider asked another process for it.
    pub(crate) fn pause_elsewhere(&self, left: Duration) {
        self.state().paused_elsewhere = Instant::now().checked_add(left);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Permit {
    /// Pauses all callers because the provider asked for it.
    pub(crate) fn pause(&self, wait: Duration) {
        let now = Instant::now();
        let mut state = self.account.state();
        let until = now.checked_add(wait).unwrap_or(now);
        state.paused_until = Some(state.paused_until.map_or(until, |already| already.max(until)));
        // Requests that were admitted together are rejected together, which is one reason to slow down, not several.
        if state.cut_at.is_none_or(|cut| cut < self.since) {
            state.room = (state.room.min(state.under_way as f64) / 2.0).max(1.0);
            state.cut_at = Some(now);
        }
    }

    /// Records a response from the provider.
    pub(crate) fn answered(&self, tokens: Option<u64>) {
        let mut state = self.account.state();
        state.room = (state.room + 1.0 / state.room).min(self.account.most);
        if let (Some(allowance), Some(tokens)) = (self.account.tokens, tokens) {
            allowance.pay(&mut state.tokens_paid, tokens, Instant::now());
        }
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.account.state().under_way -= 1;
        self.account.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(policy: &Policy) -> Arc<Account> {
        Arc::new(Account::new(policy))
    }

    async fn at_once(account: &Arc<Account>) -> Option<Permit> {
        tokio::time::timeout(Duration::from_millis(1), account.enter()).await.ok()
    }

    #[tokio::test(start_paused = true)]
    async fn admission_respects_the_policy_and_the_order_of_arrival() {
        let account = account(&Policy { concurrency: 2, ..Policy::default() });
        let first = account.enter().await;
        let _second = account.enter().await;
        assert!(at_once(&account).await.is_none());
        let order = Arc::new(Mutex::new(Vec::new()));
        let waiting: Vec<_> = (0..3)
            .map(|number| {
                let (account, order) = (Arc::clone(&account), Arc::clone(&order));
                tokio::spawn(async move {
                    let _leave = account.enter().await;
                    order.lock().unwrap().push(number);
                })
            })
            .collect();
        tokio::task::yield_now().await;
        drop(first);
        for task in waiting {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), [0, 1, 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_of_another_process_delays_callers_and_is_not_passed_on() {
        let account = account(&Policy::default());
        account.pause_elsewhere(Duration::from_secs(20));
        assert_eq!(account.pause_left(), None);
        assert!(at_once(&account).await.is_none());
        tokio::time::advance(Duration::from_secs(20)).await;
        let permit = at_once(&account).await.unwrap();
        permit.pause(Duration::from_secs(5));
        assert_eq!(account.pause_left(), Some(Duration::from_secs(5)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_pause_delays_all_callers_and_reduces_concurrency() {
        let account = account(&Policy { concurrency: 8, ..Policy::default() });
        let mut under_way = Vec::new();
        for _ in 0..8 {
            under_way.push(account.enter().await);
        }
        let begun = Instant::now();
        tokio::time::advance(Duration::from_millis(1)).await;
        under_way.iter().for_each(|permit| permit.pause(Duration::from_secs(20)));
        under_way.clear();
        assert!(at_once(&account).await.is_none());
        let leaves = [account.enter().await, account.enter().await, account.enter().await, account.enter().await];
        assert!(begun.elapsed() >= Duration::from_secs(20), "{:?}", begun.elapsed());
        assert!(at_once(&account).await.is_none(), "eight were rejected together, so four are admitted");
        for permit in leaves {
            permit.answered(None);
        }
        let mut more = Vec::new();
        while let Some(permit) = at_once(&account).await {
            more.push(permit);
        }
        assert_eq!(more.len(), 4, "4 + 4 * about 1/4 is not yet 5");
        more.pop().unwrap().answered(None);
        drop(more);
        let mut more = Vec::new();
        while let Some(permit) = at_once(&account).await {
            more.push(permit);
        }
        assert_eq!(more.len(), 5);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_and_tokens_have_a_rate_limit_per_minute() {
        let paced = account(&Policy { requests_per_minute: Some(60), ..Policy::default() });
        let begun = Instant::now();
        for _ in 0..60 {
            drop(paced.enter().await);
        }
        assert_eq!(begun.elapsed(), Duration::ZERO, "the requests of the first minute may all be sent at once");
        for _ in 0..60 {
            drop(paced.enter().await);
        }
        assert!((59..=61).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());

        let counted = account(&Policy { tokens_per_minute: Some(1000), ..Policy::default() });
        let begun = Instant::now();
        counted.enter().await.answered(Some(2500));
        drop(counted.enter().await);
        assert!((89..=91).contains(&begun.elapsed().as_secs()), "{:?}", begun.elapsed());
        counted.enter().await.answered(Some(u64::MAX));
    }

    #[tokio::test(start_paused = true)]
    async fn a_caller_that_leaves_the_queue_does_not_block_others() {
        let account = account(&Policy { concurrency: 1, ..Policy::default() });
        let first = account.enter().await;
        assert!(at_once(&account).await.is_none());
        assert!(at_once(&account).await.is_none());
        drop(first);
        assert!(at_once(&account).await.is_some());
    }
}
