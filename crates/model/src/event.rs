//! What a run tells the world: one ordered, owned, serialisable stream, the same live and on disk.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Collected, HookKind, HookRecord, RunInfo, Step, Summary, TrialId, TrialRecord};

/// The version that [`Envelope::v`] carries now.
pub const EVENT_VERSION: u32 = 1;

/// An event, when it happened and what it belongs to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Envelope {
    /// [`EVENT_VERSION`] when it was written.
    pub v: u32,
    /// From 1, without gaps within a run.
    pub seq: u64,
    /// When the dispatcher saw it.
    pub at: Timestamp,
    /// The run.
    pub run: Arc<str>,
    /// The trial's printed id, for everything that belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trial: Option<Arc<str>>,
    /// From 1, for everything that belongs to a trial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// What happened.
    pub event: Event,
}

/// What an envelope belongs to.
#[derive(Debug, Clone, PartialEq)]
struct Origin {
    run: Arc<str>,
    trial: Option<Arc<str>>,
    attempt: Option<u32>,
}

/// Writes envelopes as JSON. What those of one attempt at a trial have in common is written once and copied for the others.
#[derive(Debug, Default)]
pub struct Letterhead {
    /// What the last one belonged to.
    origin: Option<Origin>,
    /// What stands of them in the text.
    text: Vec<u8>,
}

impl Letterhead {
    /// Writes `envelope` to the end of `out`, as serialising it would.
    ///
    /// # Errors
    /// When something in it cannot be JSON.
    pub fn write(&mut self, envelope: &Envelope, out: &mut Vec<u8>) -> serde_json::Result<()> {
        let Envelope { v, seq, at, run, trial, attempt, event } = envelope;
        let is_same = |at: &Origin| (&at.run, &at.trial, &at.attempt) == (run, trial, attempt);
        if !self.origin.as_ref().is_some_and(is_same) {
            self.begin(envelope)?;
        }
        put(out, b"{\"v\":", v)?;
        put(out, b",\"seq\":", seq)?;
        put(out, b",\"at\":", at)?;
        put(out, &self.text, event)?;
        out.push(b'}');
        Ok(())
    }

    fn begin(&mut self, envelope: &Envelope) -> serde_json::Result<()> {
        let Envelope { run, trial, attempt, .. } = envelope;
        self.origin = None;
        self.text.clear();
        put(&mut self.text, b",\"run\":", run)?;
        if let Some(trial) = trial {
            put(&mut self.text, b",\"trial\":", trial)?;
        }
        if let Some(attempt) = attempt {
            put(&mut self.text, b",\"attempt\":", attempt)?;
        }
        self.text.extend_from_slice(b",\"event\":");
        self.origin = Some(Origin { run: Arc::clone(run), trial: trial.clone(), attempt: *attempt });
        Ok(())
    }
}

/// Writes `value` as JSON behind `before`.
fn put(out: &mut Vec<u8>, before: &[u8], value: &impl Serialize) -> serde_json::Result<()> {
    out.extend_from_slice(before);
    serde_json::to_writer(out, value)
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Event {
    /// The run began.
    RunStarted(Box<RunInfo>),
    /// A trial began, or began again.
    TrialStarted {
        /// Its parts.
        id: TrialId,
        /// The agent.
        agent: String,
        /// The model as the user named it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The skill's name, or that of the prompt's stand-in.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        subject: Option<String>,
        /// The file the case was written in.
        file: Arc<str>,
        /// What the user is going to say.
        messages: Vec<String>,
        /// Where the case stands in its file, from 0, for formats whose readers count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        position: Option<usize>,
        /// The script that is to answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        script: Option<String>,
        /// The value the message is made of, where the case has one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        input: Option<Value>,
    },
    /// The sandbox is ready.
    SandboxReady {
        /// Where the agent works.
        path: String,
        /// Where the skill was put, relative to `path`.
        skill: Option<String>,
        /// How long it took.
        duration_ms: u64,
    },
    /// The trial waits for something else now: a name of a wait, such as `agent`, `setup`, `grading`.
    Waiting {
        /// For what.
        on: String,
    },
    /// The agent did something.
    Step(Step),
    /// A line of the agent's own output, as it came but for secrets.
    Output {
        /// `stdout`, `stderr`, or the name of a protocol.
        stream: String,
        /// The line.
        text: String,
    },
    /// Nothing was heard of the agent for a while.
    Idle {
        /// For how long.
        idle_ms: u64,
        /// What it waits for, as far as it is known.
        on: String,
    },
    /// Acting has ended and the sandbox was looked at.
    Collected(Collected),
    /// A command that the user puts around trials is about to run.
    HookStarted {
        /// When it runs.
        hook: HookKind,
        /// Which of those that run then, from 1.
        number: usize,
        /// The command.
        command: String,
    },
    /// It came to its end.
    HookFinished(HookRecord),
    /// An attempt was broken by infrastructure and is tried again.
    TrialRetried {
        /// What broke it.
        because: String,
    },
    /// A trial has its outcome.
    TrialFinished(Box<TrialRecord>),
    /// The run is over.
    RunFinished {
        /// What it came to.
        summary: Summary,
        /// How long it took.
        duration_ms: u64,
        /// The signal that stopped it, if one did.
        signal: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_under_a_letterhead_is_what_serialising_writes() {
        let output = |text: &str| Event::Output { stream: "stdout".into(), text: text.into() };
        let envelope = |seq, run: &str, trial: Option<&str>, attempt, event| Envelope {
            v: EVENT_VERSION,
            seq,
            at: Timestamp::from_nanosecond(1_700_000_000_000_000_000 + i128::from(seq)).unwrap(),
            run: run.into(),
            trial: trial.map(Arc::from),
            attempt,
            event,
        };
        let told = [
            envelope(1, "r", None, None, output("of the run")),
            envelope(2, "r", Some("s::\"a\"@x#1"), Some(1), output("\u{1}\n")),
            envelope(3, "r", Some("s::\"a\"@x#1"), Some(1), Event::TrialRetried { because: "b".into() }),
            envelope(4, "r", Some("s::\"a\"@x#1"), Some(2), output("")),
            envelope(5, "q", Some("s::\"a\"@x#1"), Some(2), output("")),
            envelope(6, "q", None, Some(2), output("")),
        ];
        let mut letterhead = Letterhead::default();
        for envelope in told {
            let mut text = b"before ".to_vec();
            letterhead.write(&envelope, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert_eq!(text.strip_prefix("before "), Some(&*serde_json::to_string(&envelope).unwrap()));
        }
    }
}
