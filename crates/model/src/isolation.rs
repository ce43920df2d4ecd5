//! Isolation of a run's trials from the machine.

use serde::{Deserialize, Serialize};

use crate::NetworkPolicy;

/// Guarantees that a project or a case can require: `network`, and the names of the layers.
pub const GUARANTEES: [&str; 6] = ["filesystem", "processes", "network", "limits", "landlock", "seccomp"];

/// Isolation of a run's trials.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Isolation {
    /// Kind of sandbox.
    pub sandbox: String,
    /// Network policy of trials whose case does not set one, such as `none`.
    pub network: String,
    /// Layers of the isolation, including those that the machine refuses. Empty if processes are not isolated.
    pub layers: Vec<IsolationLayer>,
}

/// A guarantee that is required and does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingGuarantee {
    /// What requires it, such as `the case`.
    pub by: String,
    /// Name of the guarantee, one of [`GUARANTEES`].
    pub name: String,
    /// Description of the isolation.
    pub isolation: String,
}

impl std::error::Error for MissingGuarantee {}

impl std::fmt::Display for MissingGuarantee {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { by, name, isolation } = self;
        write!(f, "{by} requires `{name}` isolation, which this run does not have ({isolation})")
    }
}

/// One layer of the isolation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IsolationLayer {
    /// Name, such as `filesystem`.
    pub name: String,
    /// True if it is in force, false if the machine refuses it.
    pub holds: bool,
    /// Mechanism that enforces it, or the reason for the refusal.
    pub detail: String,
}

impl Isolation {
    /// Returns the isolation for a kind of sandbox that does not isolate its processes.
    pub fn none(sandbox: &str) -> Self {
        Self { sandbox: sandbox.to_owned(), network: "open".to_owned(), layers: Vec::new() }
    }

    /// Returns the isolation for a trial with another network policy.
    pub fn with_network(self, policy: &NetworkPolicy) -> Self {
        Self { network: policy.to_string(), ..self }
    }

    /// Returns `true` if the guarantee `name` holds: the name of a layer. `network` holds only if the policy is not
    /// `open`.
    pub fn holds(&self, name: &str) -> bool {
        let is_wanted = name != "network" || self.network != NetworkPolicy::Open.to_string();
        is_wanted && self.layers.iter().any(|layer| layer.name == name && layer.holds)
    }

    /// Checks that every guarantee in `required` holds; `by` requires them.
    ///
    /// # Errors
    /// Returns the first that does not hold.
    pub fn check(&self, by: &str, required: &[String]) -> Result<(), MissingGuarantee> {
        match required.iter().find(|name| !self.holds(name)) {
            None => Ok(()),
            Some(name) => Err(MissingGuarantee { by: by.to_owned(), name: name.clone(), isolation: self.summary() }),
        }
    }

    /// Describes the isolation in one line.
    pub fn summary(&self) -> String {
        if self.layers.is_empty() {
            return format!("sandbox {}, not isolated", self.sandbox);
        }
        let mut text = format!("sandbox {}, network {}", self.sandbox, self.network);
        // A policy that needs the network layer does not run without it.
        for layer in self.layers.iter().filter(|layer| !layer.holds && layer.name != "network") {
            text.push_str(&format!(", without {} ({})", layer.name, layer.detail));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_summary_names_the_layers_that_are_refused() {
        let layer = |name: &str, holds, detail: &str| IsolationLayer {
            name: name.to_owned(),
            holds,
            detail: detail.to_owned(),
        };
        let mut isolation = Isolation::none("local");
        assert_eq!(isolation.summary(), "sandbox local, not isolated");
        assert!(!isolation.holds("network") && !isolation.holds("filesystem"));
        isolation = Isolation {
            sandbox: "isolated".into(),
            network: "none".into(),
            layers: vec![
                layer("filesystem", true, "namespaces"),
                layer("network", true, "namespace"),
                layer("landlock", false, "not supported"),
            ],
        };
        assert_eq!(isolation.summary(), "sandbox isolated, network none, without landlock (not supported)");
        assert!(isolation.holds("network") && isolation.holds("filesystem") && !isolation.holds("landlock"));
    }
}
