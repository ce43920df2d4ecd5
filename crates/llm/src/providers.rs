//! State shared by all the models that a run opens.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::civil::Date;
use tokio::sync::OnceCell;

use crate::account::Account;
use crate::credentials::Key;
use crate::network::Network;
use crate::{Credentials, ListPrices, Policy, Prices};

/// Opens models. It has the keys, the prices, the policies, and the accounts shared by callers of the same provider.
/// Clones share everything, and a run has one.
#[derive(Clone, Default)]
pub struct Providers {
    shared: Arc<Shared>,
}

/// Address of an account, and its key.
type Sign = (String, Option<Key>);

/// Models whose cost was computed from built-in prices, and the dates of these prices.
pub(crate) type DatedPrices = Arc<Mutex<BTreeMap<String, Date>>>;

#[derive(Clone, Default)]
struct Shared {
    credentials: Credentials,
    prices: Prices,
    policy: Policy,
    /// Policies of providers that have their own.
    policies: Arc<BTreeMap<String, Policy>>,
    network: Arc<Network>,
    accounts: Arc<Mutex<HashMap<Sign, Arc<Account>>>>,
    list: Arc<OnceCell<Result<Arc<ListPrices>, String>>>,
    dated_prices: DatedPrices,
    /// True if models can be opened without a key.
    needs_no_key: bool,
}

impl Providers {
    /// Creates it with these keys, prices and policy.
    pub fn new(credentials: Credentials, prices: Prices, policy: Policy) -> Self {
        let network = Arc::new(Network::new(&credentials, &policy));
        let shared = Shared { credentials, prices, policy, network, ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// Returns a copy with a variable set to `value`, such as a key for only one caller. Prices, policies, the network
    /// and the accounts are still shared.
    pub fn with(&self, variable: &str, value: &str) -> Self {
        let credentials = self.shared.credentials.clone().with(variable, value);
        Self { shared: Arc::new(Shared { credentials, ..Shared::clone(&self.shared) }) }
    }

    /// Returns a copy that opens models without keys, because their answers are recorded.
    pub fn without_keys(&self) -> Self {
        Self { shared: Arc::new(Shared { needs_no_key: true, ..Shared::clone(&self.shared) }) }
    }

    /// Returns `true` if models can be opened without a key.
    pub(crate) fn needs_no_key(&self) -> bool {
        self.shared.needs_no_key
    }

    /// Returns a copy in which the named providers have their own policies.
    pub fn with_policies(&self, policies: BTreeMap<String, Policy>) -> Self {
        let (policies, accounts) = (Arc::new(policies), Arc::default());
        Self { shared: Arc::new(Shared { policies, accounts, ..Shared::clone(&self.shared) }) }
    }

    /// Returns `true` if a variable, such as `OPENAI_API_KEY`, is set and not empty. Its value is never shown.
    pub fn holds(&self, variable: &str) -> bool {
        self.shared.credentials.get(variable).is_some()
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.shared.credentials
    }

    /// Returns the prices of models, if known.
    pub fn prices(&self) -> &Prices {
        &self.shared.prices
    }

    /// Returns the models whose cost was computed from built-in prices so far, and the dates of these prices.
    pub fn dated_prices(&self) -> BTreeMap<String, Date> {
        self.shared.dated_prices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Models whose cost was computed from built-in prices.
    pub(crate) fn price_book(&self) -> DatedPrices {
        Arc::clone(&self.shared.dated_prices)
    }

    /// Returns OpenRouter's price list, which is fetched on first use.
    pub(crate) fn list(&self) -> &OnceCell<Result<Arc<ListPrices>, String>> {
        &self.shared.list
    }

    /// Returns the policy of the provider called `name`.
    pub(crate) fn policy_of(&self, name: &str) -> &Policy {
        self.shared.policies.get(name).unwrap_or(&self.shared.policy)
    }

    pub(crate) fn network(&self) -> &Network {
        &self.shared.network
    }

    /// Returns the account of `key` at `origin`; the first caller determines its policy.
    pub(crate) fn account(&self, origin: String, key: Option<Key>, policy: &Policy) -> Arc<Account> {
        let mut accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.entry((origin, key)).or_insert_with(|| Arc::new(Account::new(policy)));
        Arc::clone(account)
    }

    /// Returns the accounts for which providers asked this process to pause, by name, and the rest of each pause. Other
    /// processes with the same key use the same name.
    pub fn pauses(&self) -> Vec<(String, Duration)> {
        let accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts.iter().filter_map(|(sign, account)| Some((name_of(sign), account.pause_left()?))).collect()
    }

    /// Pauses requests to an account, because its provider asked another process for it.
    pub fn pause(&self, name: &str, left: Duration) {
        let accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        accounts
            .iter()
            .filter(|(sign, _)| name_of(sign) == name)
            .for_each(|(_, account)| account.pause_elsewhere(left));
    }
}

/// Returns a name for an account, from which its key cannot be found out.
fn name_of(sign: &Sign) -> String {
    let mut hasher = DefaultHasher::new();
    sign.hash(&mut hasher);
    format!("{} {:016x}", sign.0, hasher.finish())
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("credentials", &self.shared.credentials)
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}
