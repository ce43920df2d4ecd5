//! The event stream, one envelope a line, as it happened.

use std::io::{self, Write};

use model::Envelope;

use crate::{Opening, Reporter};

struct Jsonl {
    out: Box<dyn Write + Send>,
}

pub(crate) fn open(opening: Opening) -> Box<dyn Reporter> {
    Box::new(Jsonl { out: opening.out })
}

impl Reporter for Jsonl {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        let mut line = serde_json::to_vec(envelope)?;
        line.push(b'\n');
        // One write for a line and a flush after it, so that whoever follows the file never waits for half a line.
        self.out.write_all(&line)?;
        self.out.flush()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
