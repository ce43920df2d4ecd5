//! What everything that is opened in a run has in common.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use crate::account::Account;
use crate::credentials::Key;
use crate::network::Network;
use crate::provider::{Opening, named};
use crate::{Credentials, OpenError, Opened, Policy, Prices, ReadDocument};

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
    network: Network,
    accounts: Mutex<HashMap<Sign, Arc<Account>>>,
}

impl Providers {
    /// Opens with these keys, at these prices, as patiently as the policy says.
    pub fn new(credentials: Credentials, prices: Prices, policy: Policy) -> Self {
        let network = Network::new(&credentials, &policy);
        let shared = Shared { credentials, prices, policy, network, accounts: Mutex::default() };
        Self { shared: Arc::new(shared) }
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

    pub(crate) fn credentials(&self) -> &Credentials {
        &self.shared.credentials
    }

    pub(crate) fn prices(&self) -> &Prices {
        &self.shared.prices
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.shared.policy
    }

    pub(crate) fn network(&self) -> &Network {
        &self.shared.network
    }

    /// The account that `key` opens at `origin`.
    pub(crate) fn account(&self, origin: String, key: Option<Key>) -> Arc<Account> {
        let mut accounts = self.shared.accounts.lock().unwrap_or_else(PoisonError::into_inner);
        let account = accounts.entry((origin, key)).or_insert_with(|| Arc::new(Account::new(&self.shared.policy)));
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
