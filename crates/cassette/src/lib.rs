//! Recorded model traffic. A cassette is a file with the model requests that the trials of one case in one arm made,
//! and the answers that they got. It is meant to be committed.
//!
//! A [`Tape`] serves one running trial: it finds the recorded answer to a request, or records a new one. Requests are
//! compared after normalisation ([`Normalizer`]), so two runs of the same trial match even though their directories,
//! dates and ids differ. A mismatch is reported with a JSON pointer to the first difference.
//!
//! ```
//! use serde_json::json;
//! use trialrun_cassette::{Answer, Asked, CassetteMode, Found, Normalizer, Sender, Tape};
//!
//! let request = json!({"model": "m", "messages": [{"role": "user", "content": "hello"}]});
//! let asked = Asked { sender: Sender::Agent, path: "/v1/messages", body: request };
//! let tape = Tape::new(CassetteMode::Record, "a.jsonl.zst", None, Normalizer::default());
//! let Found::Live(slot) = tape.ask(asked.clone()) else { panic!("nothing is recorded yet") };
//! tape.keep(&slot, Answer::whole(200, "application/json", "{}"));
//!
//! let recording = tape.recorded().unwrap().unwrap();
//! let tape = Tape::new(CassetteMode::Replay, "a.jsonl.zst", Some(recording.into()), Normalizer::default());
//! assert!(matches!(tape.ask(asked), Found::Recorded(_)));
//! ```

mod content_hash;
mod difference;
mod exchange;
mod file;
mod library;
mod normalization;
mod stream;
mod tape;
#[cfg(test)]
mod tests;
mod values;

pub use content_hash::content_hash;
pub use exchange::{Answer, Chunk, Exchange, Recording, RecordingInfo, Sender};
pub use file::{Cassette, CassetteError};
pub use library::{CassetteName, Cassettes, ENDING, file_name};
pub use model::CassetteMode;
pub use normalization::Normalizer;
pub use tape::{Asked, Found, Slot, Tape};
