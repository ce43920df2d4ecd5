//! Model providers behind one thin trait, and the wire formats of their vendors.
//!
//! A [`Request`] goes in, a [`Reply`] comes out, both free of any vendor's spelling. [`PROVIDERS`] lists who can answer;
//! [`WIRES`] lists the formats a gateway can speak on a provider's behalf. A provider is one file and one line, a wire
//! format likewise.
//!
//! [`Providers`] is what a run opens them from: it has the keys, the prices and the patience, and whoever asks the same
//! account shares its limits. This crate reads no environment, reads no file and knows no agent: a key, a script or a
//! list of prices is handed in by somebody else. A key is in no error, no reply and no output of `Debug`.

mod account;
mod anthropic;
mod compatible;
mod credentials;
mod failure;
mod flight;
mod frames;
mod message;
mod network;
mod ollama;
mod openai;
mod openrouter;
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

pub use credentials::Credentials;
pub use failure::{Failure, Trouble};
pub use flight::{Flight, Flights, Waiting};
pub use message::{Block, Message, Role};
pub use openrouter::{ListPrices, slug_candidates};
pub use policy::{Policy, Timeouts};
pub use price::{Price, Prices};
pub use provider::{
    Answer, BoxFuture, Break, Model, OpenError, Opened, PROVIDERS, Provider, ProviderError, ReadDocument, Served,
    provider_of,
};
pub use providers::Providers;
pub use remote::Documents;
pub use reply::{Reply, StopReason};
pub use request::{Conversation, Part, Request, ResponseSchema, ToolSpec};
pub use schema::{InSchema, NoAnswer, in_schema, json_of};
pub use scripted::{FaultKind, Playback, Problem, ProblemKind, Script, ServedFault, Stage, reference};
pub use wire::{Incoming, Rejection, SseEvent, SseStream, WIRES, Wire};
