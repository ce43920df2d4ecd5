//! How the CLI is signed in, and which of the user's files it sees.

use std::path::PathBuf;

use model::SettingSource;
use sandbox::Host;

use crate::Endpoint;

/// The file that holds a sign-in, in Codex's home.
pub(super) const AUTH_FILE: &str = "auth.json";

/// Variables that sign in, in the order they are looked at, and what that is called.
const SECRETS: [(&str, &str); 3] =
    [("CODEX_API_KEY", "api key"), ("OPENAI_API_KEY", "api key"), ("CODEX_ACCESS_TOKEN", "access token")];

/// Variables that say on whose account, and which certificates are trusted. They hold no secret.
const BESIDE: [&str; 3] = ["OPENAI_ORGANIZATION", "OPENAI_PROJECT", "CODEX_CA_CERTIFICATE"];

/// How the CLI is signed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignIn {
    /// With the trial's own token, at the gateway.
    Scripted,
    /// With a key or a token from this variable.
    Lent {
        /// Its name.
        variable: &'static str,
        /// What that is called.
        called: &'static str,
    },
    /// With what this file of the user's holds. The CLI gets a link to it, never a copy: it renews what is in there, and
    /// a copy would end the user's own session.
    Subscription(PathBuf),
    /// Not at all.
    None,
}

impl SignIn {
    /// How it is signed in at `endpoint`.
    pub(super) fn of(host: &Host, endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Gateway { .. } | Endpoint::Script(_) | Endpoint::Provider(_) => Self::Scripted,
            Endpoint::Vendor { .. } => Self::at_the_vendor(host),
        }
    }

    /// How it is signed in where the vendor has its model.
    pub(super) fn at_the_vendor(host: &Host) -> Self {
        let lent = SECRETS.iter().find(|(name, _)| host.var(name).is_some());
        if let Some((variable, called)) = lent {
            return Self::Lent { variable, called };
        }
        let file = users_home(host).map(|home| home.join(AUTH_FILE)).filter(|file| file.is_file());
        file.map_or(Self::None, Self::Subscription)
    }

    /// In words that hold no secret.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Lent { called, .. } => called,
            Self::Subscription(_) => "subscription",
            Self::None => "not signed in",
        }
    }
}

/// What is lent of the host's environment beside the secret.
pub(super) fn lent_beside(host: &Host) -> impl Iterator<Item = (String, String)> {
    BESIDE.iter().filter_map(|name| Some(((*name).to_owned(), host.var(name)?.to_owned())))
}

/// The user's own Codex home.
pub(super) fn users_home(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CODEX_HOME").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".codex")))
}

/// The Codex home that the agent is to see, where it is not the sandbox's own.
pub(super) fn visible_home(host: &Host, sources: &[SettingSource]) -> Option<PathBuf> {
    users_home(host).filter(|_| sources.contains(&SettingSource::User))
}
