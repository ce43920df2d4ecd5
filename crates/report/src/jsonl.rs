//! The event stream as it happened, one envelope per line. If a trial's case is numbered by its position in a file,
//! additional events follow in the format that readers of such files expect. Each comes right after the line that it
//! is derived from, in the same envelope.

mod test_event;

use std::io::{self, Write};

use model::{Envelope, Event};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::fields::{put, put_some};
use crate::{Reporter, ReporterOptions};

struct Jsonl {
    out: Box<dyn Write + Send>,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Jsonl { out: options.out })
}

impl Jsonl {
    fn line(&mut self, what: &impl Serialize) -> io::Result<()> {
        let mut line = serde_json::to_vec(what)?;
        line.push(b'\n');
        // Each line is a single write followed by a flush, so that a program that follows the file never sees half a
        // line.
        self.out.write_all(&line)?;
        self.out.flush()
    }
}

impl Reporter for Jsonl {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.line(envelope)?;
        match derived(envelope) {
            Some(event) => self.line(&with_event(envelope, event)),
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

/// Returns the envelope with its event replaced.
fn with_event(envelope: &Envelope, event: Value) -> Map<String, Value> {
    let mut fields = Map::new();
    put(&mut fields, "v", envelope.v);
    put(&mut fields, "seq", envelope.seq);
    put(&mut fields, "at", envelope.at);
    put(&mut fields, "run", &envelope.run);
    put_some(&mut fields, "trial", envelope.trial.as_deref());
    put_some(&mut fields, "attempt", envelope.attempt);
    put(&mut fields, "event", event);
    fields
}
