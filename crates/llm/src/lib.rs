//! Model providers behind one small trait, and the wire formats of their vendors.
//!
//! [`Request`] and [`Reply`] are independent of any vendor's format. [`PROVIDERS`] lists the providers; [`WIRES`]
//! lists the formats that a gateway can serve. A provider is one file and one line in a table, and so is a wire
//! format.
//!
//! [`Providers`] opens the models of a run: it has the keys, the prices and the policies, and callers of the same
//! account share its limits. This crate does not read the environment or files and does not know agents: keys,
//! scripts and price lists are passed in by the caller. A key never appears in an error, a reply or the output of
//! `Debug`.

mod account;
mod answer;
mod credentials;
pub mod event_stream;
mod failure;
mod flight;
mod frames;
mod list_prices;
mod message;
mod network;
mod opening;
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
pub use credentials::Credentials;
pub use failure::{Failure, Trouble};
pub use flight::{Flight, Flights, Waiting};
pub use list_prices::{ListPrices, slug_candidates};
pub use message::{Block, Message, Role};
pub use network::{Proxies, error_chain};
pub use opening::{OpenError, Opened, ReadDocument};
pub use policy::{Policy, Timeouts};
pub use price::{Price, PriceList, Prices, price_lists};
pub use provider::{PROVIDERS, Provider, provider_of};
pub use providers::Providers;
pub use remote::Documents;
pub use reply::{Reply, StopReason};
pub use request::{Conversation, Part, Request, ResponseSchema, ToolSpec};
pub use schema::{InSchema, NoAnswer, in_schema, json_of};
pub use scripted::{FaultKind, Playback, Problem, ProblemKind, Script, ServedFault, Stage};
pub use wire::{Incoming, Rejection, SseEvent, SseStream, WIRES, Wire};
