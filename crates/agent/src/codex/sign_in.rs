//! Sign-in of the CLI, and the files of the user that it sees.

use std::path::PathBuf;

use model::SettingSource;
use sandbox::Host;

use crate::Endpoint;

/// File in Codex's home that holds the sign-in.
pub(super) const AUTH_FILE: &str = "auth.json";

/// Variables that hold credentials, in the order in which they are read, with the names of the sign-ins.
const SECRETS: [(&str, &str); 3] =
    [("CODEX_API_KEY", "api key"), ("OPENAI_API_KEY", "api key"), ("CODEX_ACCESS_TOKEN", "access token")];

/// Variables for the account and for trusted certificates. They hold no secrets.
const BESIDE: [&str; 3] = ["OPENAI_ORGANIZATION", "OPENAI_PROJECT", "CODEX_CA_CERTIFICATE"];

/// Sign-in of the CLI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SignIn {
    /// The trial's own token, at the gateway.
    Scripted,
    /// A key or a token from a variable.
    Lent {
        /// Name of the variable.
        variable: &'static str,
        /// Name of the sign-in.
        called: &'static str,
    },
    /// Credentials in this file of the user. The CLI gets a link to it and never a copy: it renews the credentials, and
    /// renewing a copy would invalidate the user's own session.
    Subscription(PathBuf),
    /// No sign-in.
    None,
}

impl SignIn {
    /// Returns the sign-in for `endpoint`.
    pub(super) fn of(host: &Host, endpoint: &Endpoint) -> Self {
        match endpoint {
            Endpoint::Gateway { .. } | Endpoint::Script(_) | Endpoint::Provider(_) => Self::Scripted,
            Endpoint::Vendor { .. } => Self::at_the_vendor(host),
        }
    }

    /// Returns the sign-in for a vendor's model.
    pub(super) fn at_the_vendor(host: &Host) -> Self {
        let lent = SECRETS.iter().find(|(name, _)| host.var(name).is_some());
        if let Some((variable, called)) = lent {
            return Self::Lent { variable, called };
        }
        let file = users_home(host).map(|home| home.join(AUTH_FILE)).filter(|file| file.is_file());
        file.map_or(Self::None, Self::Subscription)
    }

    /// Returns the name of the sign-in, without secrets.
    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::Scripted => "scripted",
            Self::Lent { called, .. } => called,
            Self::Subscription(_) => "subscription",
            Self::None => "not signed in",
        }
    }
}

/// Returns the host's variables that are passed on in addition to the credentials.
pub(super) fn lent_beside(host: &Host) -> impl Iterator<Item = (String, String)> {
    BESIDE.iter().filter_map(|name| Some(((*name).to_owned(), host.var(name)?.to_owned())))
}

/// Returns the user's own Codex home.
pub(super) fn users_home(host: &Host) -> Option<PathBuf> {
    let moved = host.var("CODEX_HOME").map(PathBuf::from);
    moved.or_else(|| host.home.as_ref().map(|home| home.join(".codex")))
}

/// Returns the Codex home for the agent, if it is not the sandbox's own.
pub(super) fn visible_home(host: &Host, sources: &[SettingSource]) -> Option<PathBuf> {
    users_home(host).filter(|_| sources.contains(&SettingSource::User))
}
