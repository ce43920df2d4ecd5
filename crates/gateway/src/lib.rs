//! A loopback endpoint that speaks vendors' wire formats and answers from any model.
//!
//! One [`Gateway`] serves a whole run. Each trial is let in with a token of its own and a model of its own
//! ([`Gateway::admit`]); a real agent CLI is given the gateway's address and the token as its key, and talks to what it
//! takes for its vendor. The token may arrive as `x-api-key` or as `Authorization: Bearer`; how it arrived is kept, the
//! token itself is not shown anywhere. A request with a token nobody let in is refused in the vendor's own words.
//!
//! The gateway knows no agent and no script. Which formats there are is the table [`llm::WIRES`]; how an answer breaks
//! on purpose is told by the model ([`llm::Answer::Broken`]) and acted out here, on the wire.

mod admission;
mod body;
mod connection;
mod server;

pub use admission::{Admission, Auth, SeenRequest};
pub use server::Gateway;
