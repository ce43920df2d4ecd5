//! The whole run as one HTML file that works from disk, without a network, a service worker or other files. A small
//! index comes first, and the page is rendered from it. The transcript of each trial is a compressed chunk at the end
//! of the file, which the page inflates when the trial is opened. So even a run of thousands of trials opens
//! immediately.
//!
//! The scripts are plain files, embedded verbatim. Nothing in the data is executed: the content security policy allows
//! only the scripts of this folder, and they only turn data into text nodes.

mod compare;
mod compared;
mod index;
mod outline;
mod page;
mod plot;
mod record;
mod served;
mod text;
mod transcript;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use model::{Envelope, Event, Outcome, RunInfo, TrialRecord};

pub use compare::{comparison_page, comparison_policy};
pub use compared::ComparedTrial;

use crate::totals::RunTotals;
use crate::{Reporter, ReporterOptions, format};
use index::{Index, Row};
use page::Source;
use transcript::Transcript;

pub use record::{
    CasePage, CasesPage, LiveRun, ProgressPage, RunsPage, case_page, cases_page, message_page, progress_page,
    record_policy, runs_page, trend_page,
};
pub use served::{ServedRun, ServedState, transcript};

/// Size of the output buffer, in bytes.
const BUFFER: usize = 256 * 1024;

struct Html {
    out: Box<dyn Write + Send>,
    /// Folder of the current directory in its repository.
    folder: PathBuf,
    failures_only: bool,
    /// The run and the totals of its trials, once it has started.
    run: Option<(Box<RunInfo>, RunTotals)>,
    /// Transcripts of the trials in progress.
    running: HashMap<Arc<str>, Transcript>,
    /// Finished trials: position in the plan, row of the index, chunk.
    trials: Vec<(usize, Row, String)>,
    last: Option<Timestamp>,
    signal: Option<String>,
    duration_ms: Option<u64>,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Html {
        out: options.out,
        folder: options.folder,
        failures_only: options.failures_only,
        run: None,
        running: HashMap::new(),
        trials: Vec::new(),
        last: None,
        signal: None,
        duration_ms: None,
    })
}

impl Reporter for Html {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.last = Some(envelope.at);
        match &envelope.event {
            Event::RunStarted(info) => self.run = Some((info.clone(), RunTotals::new(info, true))),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.signal.clone_from(signal);
                self.duration_ms = Some(*duration_ms);
            }
            Event::Decided(decision) => {
                if let Some((_, totals)) = &mut self.run {
                    totals.decide(decision);
                }
            }
            Event::TrialFinished(record) => self.finished(record)?,
            _ => {
                if let Some(trial) = &envelope.trial {
                    self.running.entry(Arc::clone(trial)).or_default().add(envelope)?;
                }
            }
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some((info, totals)) = self.run.take() else { return self.out.flush() };
        self.trials.sort_by_key(|(place, ..)| *place);
        let rows: Vec<&Row> = self.trials.iter().map(|(_, row, _)| row).collect();
        let until_now = self.last.map(|last| format::between(info.started_at, last));
        let duration_ms = self.duration_ms.or(until_now);
        let index = Index::new(&info, &totals, duration_ms, self.signal.as_deref(), rows);
        let mut out = BufWriter::with_capacity(BUFFER, &mut self.out);
        page::start(&mut out, &serde_json::to_string(&index)?, &outline::outline(&index), Source::File)?;
        for (number, (_, _, chunk)) in self.trials.iter().enumerate() {
            page::chunk(&mut out, number, chunk)?;
        }
        page::end(&mut out)?;
        out.flush()
    }
}

impl Html {
    fn finished(&mut self, record: &TrialRecord) -> io::Result<()> {
        let Some((_, totals)) = &mut self.run else { return Ok(()) };
        let place = totals.add(record);
        let transcript = self.running.remove(&record.id).unwrap_or_default();
        if !self.failures_only || record.outcome != Outcome::Passed {
            self.trials.push((place, Row::new(record, &self.folder), transcript.chunk(record)?));
        }
        Ok(())
    }
}
