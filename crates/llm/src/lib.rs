//! Model providers behind one small trait, and the wire formats of their vendors.
//!
//! [`Request`] and [`Reply`] are independent of any vendor's format. [`PROVIDERS`] lists the providers; [`WIRES`]
//! lists the formats that a gateway can serve. Each provider and each wire format is one file and one line in a table.
//!
//! [`Providers`] opens the models of a run: it has the keys, the prices and the policies, and callers with the same
//! account share its limits. This crate does not read the environment or files and does not know agents: keys, scripts
//! and price lists are passed in by the caller. A key never appears in an error, a reply or the output of `Debug`.
//!
//! ```
//! use model::{Diagnostic, Node, Source};
//! use serde_json::json;
//! use trialrun_llm::{Conversation, Message, Model, Opened, Providers, Request, Role, ScriptContext};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let hello = json!({"steps": [{"text": "Hello."}]});
//! let read = |path: &str| Ok::<_, Vec<Diagnostic>>(Node::from_json(&hello, &Source::new(path, "")));
//! let Opened::Script(script) = Providers::default().open("scripted:hello.yaml", None, &read)? else {
//!     panic!("the provider is not a script")
//! };
//! let messages = vec![Message::text(Role::User, "Hi.")];
//! let request = Request { messages, conversation: Conversation::main(), ..Request::default() };
//! let reply = script.play(ScriptContext::default()).respond(&request).await?;
//! assert_eq!(reply.text(), "Hello.");
//! # Ok(())
//! # }
//! ```

mod account;
mod answer;
mod answer_reader;
mod credentials;
pub mod event_stream;
mod failure;
mod faulty;
mod frames;
mod list_prices;
mod message;
mod network;
mod opening;
mod pending_request;
mod policy;
mod price;
mod provider;
mod providers;
mod remote;
mod reply;
mod request;
mod retry_after;
mod schema;
pub mod scripted;
pub mod wire;

pub use answer::{Answer, BoxFuture, Break, Model, ProviderError, Served};
pub use answer_reader::AnswerReader;
pub use credentials::Credentials;
pub use failure::{Failure, FailureKind, is_agents_doing};
pub use faulty::FaultyModel;
pub use list_prices::{ListPrices, slug_candidates};
pub use message::{Block, Message, Role};
pub use network::{ClientError, Proxies, error_chain, is_refused};
pub use opening::{OpenError, Opened, ReadDocument};
pub use pending_request::{PendingRequest, PendingRequests, Waiting};
pub use policy::{Policy, Timeouts};
pub use price::{Price, PriceList, Prices, price_lists};
pub use provider::{PROVIDERS, Provider, provider_of};
pub use providers::Providers;
pub use remote::Documents;
pub use reply::{Reply, StopReason};
pub use request::{Conversation, ConversationRole, Request, ResponseSchema, ToolSpec};
pub use retry_after::parse as retry_after;
pub use schema::{StructuredReply, StructuredReplyError, json_of, structured_reply};
pub use scripted::{Playback, Problem, Script, ScriptContext, ServedFault};
pub use wire::{Incoming, Rejection, SseEvent, SseStream, WIRES, Wire, request_document, wire_of_path};
