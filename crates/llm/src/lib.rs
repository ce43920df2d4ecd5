//! Model providers behind one thin trait, and the wire formats of their vendors.
//!
//! A [`Request`] goes in, a [`Reply`] comes out, both free of any vendor's spelling. [`PROVIDERS`] lists who can answer;
//! [`WIRES`] lists the formats a gateway can speak on a provider's behalf. A provider is one file and one line, a wire
//! format likewise.
//!
//! Nothing here opens a socket, reads a file or knows an agent: a script arrives as a tree that somebody else has read,
//! and a wire format turns bytes into a request and a reply into bytes.

mod flight;
mod message;
mod provider;
mod reply;
mod request;
pub mod scripted;
pub mod wire;

pub use flight::{Flight, Flights, Waiting};
pub use message::{Block, Message, Role};
pub use provider::{
    Answer, BoxFuture, Break, Model, OpenError, Opened, PROVIDERS, Provider, ProviderError, ReadDocument, Served, open,
    provider_of,
};
pub use reply::{Reply, StopReason};
pub use request::{Conversation, Part, Request, ToolSpec};
pub use scripted::{FaultKind, Playback, Problem, ProblemKind, Script, ServedFault, Stage, reference};
pub use wire::{Incoming, Rejection, SseEvent, SseStream, WIRES, Wire};
