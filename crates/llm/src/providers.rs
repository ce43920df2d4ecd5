//! What everything that is opened in a run has in common.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OnceCell;

use crate::account::Account;
use crate::credentials::Key;
use crate::network::Network;
use crate::provider::{Opening, named};
use crate::{Credentials, Documents, ListPrices, OpenError, Opened, Policy, Prices, ReadDocument, openai};

/// Where models are opened from: keys, prices, patience, and the accounts that all who ask the same provider share.
/// Clones share everything; a run has one.
#[derive(Clone, Default)]
pub struct Providers {
    shared: Arc<Shared>,
}

/// Where an account is, and the key that opens it.
type Sign = (String, Option<Key>);

#[derive(Default)]
struct Shared {
    credentials: Credentials,
    prices: Prices,
    policy: Policy,
    /// Those of providers that have one of their own.
    policies: Arc<BTreeMap<String, Policy>>,
    network: Arc<Network>,
    accounts: Arc<Mutex<HashMap<Sign, Arc<Account>>>>,
    list: Arc<OnceCell<Result<Arc<ListPrices>, String>>>,
}

impl Providers {
    /// Opens with these keys, at these prices, as patiently as the policy says.
    pub fn new(credentials: Credentials, prices: Prices, policy: Policy) -> Self {
        let network = Arc::new(Network::new(&credentials, &policy));
        let shared = Shared { credentials, prices, policy, network, ..Shared::default() };
        Self { shared: Arc::new(shared) }
    }

    /// The same with `value` in a variable, such as a key that somebody has to themselves. Prices, patience, the network
    /// and the accounts are still shared.
    pub fn with(&self, variable: &str, value: &str) -> Self {
        let shared = Shared {
            credentials: self.shared.credentials.clone().with(variable, value),
            prices: self.shared.prices.clone(),
            policy: self.shared.policy.clone(),
            policies: Arc::clone(&self.shared.policies),
            network: Arc::clone(&self.shared.network),
            accounts: Arc::clone(&self.shared.accounts),
            list: Arc::clone(&self.shared.list),
        };
        Self { shared: Arc::new(shared) }
    }

    /// The same, with providers that are asked by a policy of their own, by their names.
    pub fn with_policies(&self, policies: BTreeMap<String, Policy>) -> Self {
        let shared = Shared {
            credentials: self.shared.credentials.clone(),
            prices: self.shared.prices.clone(),
            policy: self.shared.policy.clone(),
            policies: Arc::new(policies),
            network: Arc::clone(&self.shared.network),
            accounts: Arc::default(),
            list: Arc::clone(&self.shared.list),
        };
        Self { shared: Arc::new(shared) }
    }

    /// Opens OpenAI's Assistants API, or that of a server like it at `base_url`. Nothing is sent yet.
    ///
    /// # Errors
    /// A key or an address that is missing or wrong.
    pub fn assistants(&self, base_url: Option<&str>) -> Result<Documents, OpenError> {
        let read = &|_: &str| Err(Vec::new());
        openai::ASSISTANTS.documents(&Opening { argument: "", base_url, providers: self, read })
    }

    /// Opens `NAME:ARGUMENT`, such as `openai:gpt-5` or `scripted:hello.yaml`; a file it names is read by `read`.
    /// `base_url` is another address than the vendor's own. Nothing is sent yet.
    ///
    /// # Errors
    /// A name that nobody has, a key or an address that is missing, a file that is wrong.
    pub fn open(&self, written: &str, base_url: Option<&str>, read: ReadDocument<'_>) -> Result<Opened, OpenError> {
        let (provider, argument) = named(written)?;
        (provider.open)(&Opening { argument, base_url, providers: self, read })
    }

    /// Whether a variable, such as `OPENAI_API_KEY`, is there and not empty. What is in it is never shown.
    pub fn holds(&self, variable: &str) -> bool {
        self.shared.credentials.get(variable).is_some()
    }

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.shared.credentials
    }

    /// What models cost, as far as it is known.
    pub fn prices(&self) -> &Prices {
        &self.shared.prices
    }

    /// OpenRouter's own list, once somebody has asked for it.
    pub(crate) fn list(&self) -> &OnceCell<Result<Arc<ListPrices>, String>> {
        &self.shared.list
    }

    /// How the provider called `name` is asked.
    pub(crate) fn policy_of(&self, name: &str) -> &Policy {
        self.shared.policies.get(name).unwrap_or(&self.shared.policy)
    }

    pub(crate) fn network(&self) -> &Network {
        &self.shared.network
    }

    /// The account that `key` opens at `origin`; whoever is first says by which policy it is used.
    pub(crate) fn account(&self, origin: String, key: Option<Key>, policy: &Policy) -> Arc<Account> {
        let mut accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.entry((origin, key)).or_insert_with(|| Arc::new(Account::new(policy)));
        Arc::clone(account)
    }
}

impl fmt::Debug for Providers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Providers")
            .field("credentials", &self.shared.credentials)
            .field("policy", &self.shared.policy)
            .finish_non_exhaustive()
    }
}
