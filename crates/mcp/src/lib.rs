//! A client of the Model Context Protocol, made for testing: it reports what a server does instead of repairing it, and it
//! can send messages that break the protocol.
//!
//! [`Client`] speaks both eras of the protocol. Since 2026-07-28, each request is self-contained; before that, a client
//! first initialises a session. [`Client::connect`] asks the server with `server/discover` and falls back to
//! `initialize`. Servers are reached through [`Stdio`] or [`Http`]. The caller starts the program of a server, because it
//! knows the sandbox and the environment; this crate only reads and writes its streams.
//!
//! ```no_run
//! use serde_json::json;
//! use trialrun_mcp::{Client, Options, Stdio};
//!
//! # async fn run(child: &mut tokio::process::Child) -> Result<(), trialrun_mcp::Failure> {
//! # let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else { return Ok(()) };
//! let mut client = Client::connect(Stdio::new(stdin, stdout), Options::default()).await?;
//! for tool in client.tools().await? {
//!     println!("{}", tool["name"]);
//! }
//! let exchange = client.call("add", json!({"a": 1, "b": 2})).await?;
//! println!("{}", trialrun_mcp::text_of(exchange.result()?));
//! # Ok(())
//! # }
//! ```

mod client;
mod contract;
mod definition;
mod era;
mod event_stream;
mod exchange;
mod exercise;
mod fuzz;
mod http;
mod protocol;
mod received;
mod rule;
mod safety;
mod stdio;
mod tool_list;
mod transport;

pub use client::{Client, Options, Responder, ServerInfo};
pub use contract::{compare, contract};
pub use era::Era;
pub use exchange::{Answer, Exchange, Failure, Unchecked, text_of};
pub use exercise::{
    FuzzOptions, SafetyOptions, answer_errors, check_fuzz, check_safety, open, output_errors, read_contract,
};
pub use http::{Http, HttpReply};
pub use protocol::{BoxFuture, Connector, check_protocol};
pub use rule::{Report, Rule, SchemaCheck, Tier, Verdict};
pub use stdio::Stdio;
pub use tool_list::{ToolList, ToolListLimits};
pub use transport::{Direction, Transport};
