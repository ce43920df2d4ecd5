//! The verdict alone, for runs whose reports are all files.

use std::io::{self, Write};

use model::{Envelope, Event};

use super::{Paint, summary};
use crate::totals::RunTotals;
use crate::{Reporter, ReporterOptions};

/// Writes only the verdict of the run.
struct LastLine {
    out: Box<dyn Write + Send>,
    paint: Paint,
    /// Set by the first event.
    totals: Option<RunTotals>,
    signal: Option<String>,
}

/// Opens a reporter that writes only the line with the verdict of the run.
pub fn last_line(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(LastLine { out: options.out, paint: Paint::new(options.style), totals: None, signal: None })
}

impl Reporter for LastLine {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match (&envelope.event, &mut self.totals) {
            (Event::RunStarted(info), totals) => *totals = Some(RunTotals::new(info, false)),
            (Event::TrialFinished(record), Some(totals)) => drop(totals.add(record)),
            (Event::Decided(decision), Some(totals)) => totals.decide(decision),
            (Event::RunFinished { signal, .. }, _) => self.signal.clone_from(signal),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(totals) = self.totals.take() {
            let verdict = totals.verdict(self.signal.as_deref());
            self.out.write_all(summary::verdict(&verdict, &self.paint).as_bytes())?;
        }
        self.out.flush()
    }
}
