//! Sign-in of an agent's program to its model provider.

use std::path::PathBuf;

use sandbox::Host;

use crate::Endpoint;

/// Sign-in of an agent's program to its model provider.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SignIn {
    /// The trial's own token, for the gateway.
    Scripted,
    /// A key or a token from the environment.
    Lent {
        /// Name of the variable.
        variable: &'static str,
        /// Name of the sign-in.
        called: &'static str,
    },
    /// The user's credentials in this file. The program uses the file itself and never a copy: it renews the
    /// credentials, and renewing a copy would invalidate the user's own session.
    Subscription(PathBuf),
    /// No sign-in.
    None,
}

impl SignIn {
    /// Returns the sign-in for `endpoint`, which is `detect` for a vendor's model.
    pub(crate) fn for_endpoint(endpoint: &Endpoint, detect: impl FnOnce() -> Self) -> Self {
        match endpoint {
            Endpoint::Gateway { .. } | Endpoint::Script { .. } | Endpoint::Provider(_) => Self::Scripted,
            Endpoint::Vendor { .. } | Endpoint::Observed { .. } => detect(),
        }
    }

    /// Returns the sign-in for the first variable in `secrets` that is set. Each variable comes with the name of its
    /// sign-in.
    pub(crate) fn forwarded(host: &Host, secrets: &[(&'static str, &'static str)]) -> Option<Self> {
        let (variable, called) = secrets.iter().find(|(name, _)| host.var(name).is_some())?;
        Some(Self::Lent { variable, called })
    }

    /// Returns the name of the sign-in, without secrets; `None` if there is none.
    pub(crate) fn name(&self) -> Option<&'static str> {
        match self {
            Self::Scripted => Some("scripted"),
            Self::Lent { called, .. } => Some(called),
            Self::Subscription(_) => Some("subscription"),
            Self::None => None,
        }
    }
}
