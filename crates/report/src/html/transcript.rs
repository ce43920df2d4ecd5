//! The transcript of one trial: its record and its events, compressed.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use jiff::Timestamp;
use model::{Collected, Envelope, Event, TrialRecord};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{format, trial_json};

/// Fields of a trial that only repeat what its steps say.
const IN_STEPS: [&str; 4] = ["tool_calls", "messages", "turns", "questions"];

/// Events of a trial in progress, as JSON.
#[derive(Default)]
pub(super) struct Transcript {
    /// Time at which the current attempt started.
    started: Option<Timestamp>,
    /// Elements of a JSON array.
    events: Vec<u8>,
    has_steps: bool,
    /// State of the sandbox after the last attempt.
    collected: Value,
}

/// An event with the time since the start of its attempt.
#[derive(Serialize)]
struct Timed<'a> {
    ms: u64,
    attempt: u32,
    event: &'a Event,
}

impl Transcript {
    /// Adds an event if the page shows it. The agent's raw output is omitted, because the steps contain the same.
    pub(super) fn add(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::TrialStarted { .. } => self.started = Some(envelope.at),
            Event::Collected(collected) => self.collected = changes(collected),
            Event::Step(_) => {
                self.has_steps = true;
                self.push(envelope)?;
            }
            Event::SandboxReady { .. } | Event::HookFinished(_) | Event::TrialRetried { .. } => self.push(envelope)?,
            _ => {}
        }
        Ok(())
    }

    fn push(&mut self, envelope: &Envelope) -> io::Result<()> {
        if !self.events.is_empty() {
            self.events.push(b',');
        }
        let timed = Timed {
            ms: format::between(self.started.unwrap_or(envelope.at), envelope.at),
            attempt: envelope.attempt.unwrap_or(1),
            event: &envelope.event,
        };
        Ok(serde_json::to_writer(&mut self.events, &timed)?)
    }

    /// Returns the transcript of the finished trial as Base64 of raw deflate.
    pub(super) fn chunk(self, record: &TrialRecord) -> io::Result<String> {
        Ok(STANDARD.encode(self.deflated(Some(record))?))
    }

    /// Returns the transcript compressed with raw deflate, which browsers can inflate. A trial without an outcome has
    /// no record.
    pub(super) fn deflated(self, record: Option<&TrialRecord>) -> io::Result<Vec<u8>> {
        let mut trial = record.map_or(Value::Null, trial_json);
        if let Some(fields) = trial.as_object_mut().filter(|_| self.has_steps) {
            fields.retain(|name, _| !IN_STEPS.contains(&name.as_str()));
        }
        let mut encoder = DeflateEncoder::new(Vec::with_capacity(self.events.len() / 4), Compression::default());
        let front = json!({ "trial": trial, "collected": self.collected }).to_string();
        encoder.write_all(front.strip_suffix('}').unwrap_or(&front).as_bytes())?;
        encoder.write_all(b",\"events\":[")?;
        encoder.write_all(&self.events)?;
        encoder.write_all(b"]}")?;
        encoder.finish()
    }
}

/// Returns the changes that the agent made, as far as the page shows them.
fn changes(collected: &Collected) -> Value {
    json!({
        "patch": collected.patch,
        "outside_changes": collected.outside_changes,
        "new_commits": collected.repository.as_ref().map(|repository| &repository.new_commits),
    })
}
