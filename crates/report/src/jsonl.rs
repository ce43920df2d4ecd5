//! The event stream, one envelope a line, as it happened. A trial whose case is counted by its place in a file is told
//! a second time in the events that such files' readers know: right after the line it is made of, in the same envelope.

mod test_event;

use std::io::{self, Write};

use jiff::Timestamp;
use model::{Envelope, Event};
use serde::Serialize;
use serde_json::Value;

use crate::{Opening, Reporter};

struct Jsonl {
    out: Box<dyn Write + Send>,
}

pub(crate) fn open(opening: Opening) -> Box<dyn Reporter> {
    Box::new(Jsonl { out: opening.out })
}

impl Jsonl {
    fn line(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        // One write for a line and a flush after it, so that whoever follows the file never waits for half a line.
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl Reporter for Jsonl {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.line(envelope)?;
        match derived(envelope) {
            Some(event) => self.line(&Derived::of(envelope, event)),
            None => Ok(()),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

fn derived(envelope: &Envelope) -> Option<Value> {
    match &envelope.event {
        // A case begins once, however often it is tried.
        Event::TrialStarted { position: Some(position), script, input, .. } if envelope.attempt.unwrap_or(1) == 1 => {
            Some(test_event::start(*position, script.as_deref(), input.as_ref()))
        }
        Event::TrialFinished(record) => test_event::end(record),
        _ => None,
    }
}

/// An envelope with another event in it.
#[derive(Serialize)]
struct Derived<'a> {
    v: u32,
    seq: u64,
    at: Timestamp,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trial: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempt: Option<u32>,
    event: Value,
}

impl<'a> Derived<'a> {
    fn of(envelope: &'a Envelope, event: Value) -> Self {
        Self {
            v: envelope.v,
            seq: envelope.seq,
            at: envelope.at,
            run: &envelope.run,
            trial: envelope.trial.as_deref(),
            attempt: envelope.attempt,
            event,
        }
    }
}
