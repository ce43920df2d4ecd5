//! Model requests that have no recorded answer.

use serde::{Deserialize, Serialize};

/// A request that has no answer in a cassette, compared with the most similar recorded request.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StaleRequest {
    /// Path of the cassette.
    pub cassette: String,
    /// Number of the request in the trial, from 1.
    pub number: u64,
    /// Sender of the request: `agent`, `sub-agent`, `side request`, `judge` or `simulated user`.
    pub sender: String,
    /// JSON pointer to the first difference; `None` if there is no recorded request to compare with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Excerpt of the recorded request at the pointer; `None` if it has no value there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<String>,
    /// Excerpt of the new request at the pointer; `None` if it has no value there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// Reason why there is nothing to compare with.
    #[serde(skip_serializing_if = "Option::is_none", rename = "because")]
    pub reason: Option<String>,
}

impl StaleRequest {
    /// Returns a one-line description for users.
    pub fn describe(&self) -> String {
        let Self { cassette, number, sender, .. } = self;
        let text = format!("request {number} ({sender}) is not in {cassette}");
        let Some(pointer) = &self.pointer else {
            return format!("{text}: {}", self.reason.as_deref().unwrap_or("there is no similar request"));
        };
        let place = if pointer.is_empty() { "the whole request" } else { pointer };
        match (&self.recorded, &self.actual) {
            (Some(recorded), Some(actual)) => format!("{text}: {place} was {recorded}, and is now {actual}"),
            (Some(recorded), None) => format!("{text}: {place} was {recorded}, and is now missing"),
            (None, Some(actual)) => format!("{text}: {place} is new: {actual}"),
            (None, None) => format!("{text}: {place} differs"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_names_the_first_difference() {
        let request = StaleRequest {
            cassette: "a.jsonl".into(),
            number: 2,
            sender: "agent".into(),
            pointer: Some("/model".into()),
            recorded: Some("`m1`".into()),
            actual: Some("`m2`".into()),
            reason: None,
        };
        assert_eq!(request.describe(), "request 2 (agent) is not in a.jsonl: /model was `m1`, and is now `m2`");
        let gone = StaleRequest { actual: None, ..request.clone() };
        assert!(gone.describe().ends_with("/model was `m1`, and is now missing"));
        let new = StaleRequest { pointer: None, reason: Some("nothing is left".into()), ..request };
        assert!(new.describe().ends_with("is not in a.jsonl: nothing is left"));
    }
}
