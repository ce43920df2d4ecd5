//! Reasons why the address of an agent's model is not known, or cannot be changed.

/// Reason why the requests of an agent to its model cannot be restricted to an address, or sent to another one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// Only the agent's program knows the address.
    #[error("`{agent}` does not say where its model is")]
    NotStated {
        /// Name of the agent.
        agent: &'static str,
    },
    /// The agent's program has no setting for it.
    #[error("`{agent}` cannot be pointed at another address")]
    Fixed {
        /// Name of the agent.
        agent: &'static str,
    },
    /// Requests are signed for the host of a cloud provider.
    #[error("{agent} signs its requests for {cloud} (`{variable}` is set)")]
    Signed {
        /// Name of the agent's program.
        agent: &'static str,
        /// Name of the cloud provider.
        cloud: &'static str,
        /// Variable that enables it.
        variable: &'static str,
    },
    /// The address in a cloud provider depends on a region that is not set.
    #[error("set `{variable}` to the address of the model in {cloud}")]
    NoRegion {
        /// Name of the cloud provider.
        cloud: &'static str,
        /// Variable with the address.
        variable: &'static str,
    },
    /// The agent sends requests with a subscription to a fixed address.
    #[error("{agent} sends requests with its subscription sign-in for `{provider}` to a fixed address")]
    Subscription {
        /// Name of the agent's program.
        agent: &'static str,
        /// Name of the provider.
        provider: String,
    },
    /// The agent chooses the model itself.
    #[error("{agent} chooses the model itself; set `model`")]
    NoModel {
        /// Name of the agent's program.
        agent: &'static str,
    },
    /// The name of the model does not say which provider has it.
    #[error("the model has no provider, as in `anthropic/MODEL`")]
    NoProvider,
    /// The address of a provider is not in the list.
    #[error("the address of the provider `{0}` is not known")]
    UnknownProvider(String),
}
