//! The event stream, one envelope per line, as it happened. For a trial whose case is numbered by its place in a file,
//! additional events follow in the format that readers of such files expect: right after the line that they are derived
//! from, in the same envelope.

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
        // Each line is one write followed by a flush, so that a program that follows the file never sees half a line.
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
        // A case starts once, however often it is retried.
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
