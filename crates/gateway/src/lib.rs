//! A loopback endpoint that speaks vendors' wire formats and answers from any model.
//!
//! One [`Gateway`] serves a whole run. Each trial is admitted with its own token and its own model
//! ([`Gateway::admit`]). A real agent CLI gets the gateway's address as its vendor's address and the token as its key.
//! The token may arrive as `x-api-key`, as `x-goog-api-key` or as `Authorization: Bearer`. The gateway records which header was used and
//! never shows the token itself. A request with an unknown token is refused with the vendor's own error format.
//!
//! For a vendor's model, the gateway forwards requests instead ([`Gateway::forward`]). The token is then part of the
//! address, because the agent signs in with its own key. Answers are passed on as they arrive, and counted.
//!
//! The program that sends a trial's first request for a message is the agent's. Such requests of other programs, like
//! those that a command of the agent sends with the program's token, are refused and counted separately.
//!
//! A [`Relay`] is the way out for processes whose network is closed: a proxy that connects only to allowed hosts.
//!
//! The gateway does not depend on agents or scripts. The supported formats are listed in [`llm::WIRES`]. The model
//! decides how an answer breaks on purpose ([`llm::Answer::Broken`]), and the gateway breaks it on the wire.
//!
//! ```
//! use std::sync::Arc;
//!
//! use llm::{BoxFuture, Model, ProviderError, Reply, Request};
//! use trialrun_gateway::Gateway;
//!
//! struct Silent;
//!
//! impl Model for Silent {
//!     fn respond<'a>(&'a self, _: &'a Request) -> BoxFuture<'a, Result<Reply, ProviderError>> {
//!         Box::pin(async { Ok(Reply::default()) })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let gateway = Gateway::start().await?;
//! let admission = gateway.admit("token", Arc::new(Silent));
//! // An agent gets the address and the token, and its requests are answered by the model.
//! assert!(gateway.base_url().starts_with("http://127.0.0.1:"));
//! assert!(admission.seen().is_empty());
//! # Ok(())
//! # }
//! ```

mod admission;
mod body;
mod connection;
mod connection_headers;
mod forward;
mod program;
mod relay;
mod server;

pub use admission::{Admission, Auth, SeenRequest};
pub use forward::{ForwardedAdmission, Upstream};
pub use program::ForeignRequests;
pub use relay::{Relay, RelayRules};
pub use server::Gateway;
