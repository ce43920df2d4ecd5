//! A loopback endpoint that speaks vendors' wire formats and answers from any model.
//!
//! One [`Gateway`] serves a whole run. Each trial is admitted with its own token and its own model
//! ([`Gateway::admit`]). A real agent CLI gets the gateway's address as its vendor's address and the token as its key.
//! The token may arrive as `x-api-key` or as `Authorization: Bearer`. The gateway records which header was used and
//! never shows the token itself. A request with an unknown token is refused with the vendor's own error format.
//!
//! The gateway knows nothing about agents or scripts. The supported formats are listed in [`llm::WIRES`]. The model
//! decides how an answer breaks on purpose ([`llm::Answer::Broken`]), and the gateway breaks it on the wire.

mod admission;
mod body;
mod connection;
mod server;

pub use admission::{Admission, Auth, SeenRequest};
pub use server::Gateway;
