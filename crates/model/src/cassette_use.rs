//! Use of a cassette in one trial.

use serde::{Deserialize, Serialize};

/// Use of a cassette in one trial.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CassetteUse {
    /// Path of the cassette, relative to the working directory if it is below that directory.
    pub file: String,
    /// True if the trial was recorded in it.
    pub recorded: bool,
    /// Number of requests that were answered from it.
    pub replayed: u64,
    /// Number of requests that were sent to the model.
    pub live: u64,
}
