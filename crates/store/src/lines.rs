//! Events as they are stored: lines of JSON, in packs of several trials.

use model::{Envelope, Event, TrialId, TrialRecord};

use crate::StoreError;
use crate::pack::damaged;

/// Size in bytes at which a pack is closed. Reading one trial unpacks the whole pack.
const FULL: usize = 256 * 1024;

/// Size in bytes of a trial's id as JSON, without its names.
const SIZE_OF_ID: usize = r#"{"suite":"","case":"","arm":"","repetition":100000},"#.len();

/// Events as lines of JSON, in order.
#[derive(Default)]
pub(crate) struct Lines {
    text: Vec<u8>,
    /// Number and end offset of each event.
    ends: Vec<(u64, usize)>,
    /// True if they include the trial's first event, so that none of its events can have been written earlier.
    pub(crate) from_the_start: bool,
}

impl Lines {
    pub(crate) fn push(&mut self, envelope: &Envelope) -> Result<(), StoreError> {
        self.from_the_start |= envelope.attempt == Some(1) && matches!(envelope.event, Event::TrialStarted { .. });
        if let Event::RunStarted(info) = &envelope.event {
            // A buffer that doubles its size takes several times the space of the ids of a large plan.
            let size = |id: &TrialId| SIZE_OF_ID + id.suite.len() + id.case.len() + id.arm.len();
            self.text.reserve_exact(info.trials.iter().map(size).sum());
        }
        serde_json::to_writer(&mut self.text, envelope).map_err(|error| damaged(&error))?;
        self.ends.push((envelope.seq, self.text.len()));
        self.text.push(b'\n');
        Ok(())
    }

    /// Returns each line with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, Result<&str, StoreError>)> {
        let mut start = 0;
        self.ends.iter().map(move |&(seq, end)| {
            let line = self.text.get(start..end).unwrap_or_default();
            start = end + 1;
            (seq, std::str::from_utf8(line).map_err(|error| damaged(&error)))
        })
    }

    /// Returns all lines, each with its newline.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.text
    }

    /// Returns the last line.
    pub(crate) fn last(&self) -> &[u8] {
        let start = self.ends.iter().rev().nth(1).map_or(0, |(_, end)| end + 1);
        self.text.get(start..self.text.len().saturating_sub(1)).unwrap_or_default()
    }

    fn first(&self) -> Option<u64> {
        self.ends.first().map(|(seq, _)| *seq)
    }
}

/// Trials of one run that are written into the same pack.
#[derive(Default)]
pub(crate) struct Group<'e> {
    /// Events of all trials.
    pub(crate) text: Vec<u8>,
    pub(crate) trials: Vec<Finished<'e>>,
}

/// Trial with the range of its events in the pack.
pub(crate) struct Finished<'e> {
    pub(crate) id: &'e str,
    pub(crate) record: &'e TrialRecord,
    pub(crate) first_seq: u64,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Events of a trial that were stored before it finished.
#[derive(Default)]
pub(crate) struct Earlier {
    /// Number of the first event; absent if there are none.
    pub(crate) first_seq: Option<u64>,
    pub(crate) text: Vec<u8>,
}

impl Earlier {
    /// Adds an event, without its newline.
    pub(crate) fn push(&mut self, seq: u64, line: &[u8]) {
        self.first_seq.get_or_insert(seq);
        self.text.extend_from_slice(line);
        self.text.push(b'\n');
    }
}

impl<'e> Group<'e> {
    /// Adds a trial: its earlier events and its last `lines`. Returns all of them.
    pub(crate) fn add(&mut self, id: &'e str, record: &'e TrialRecord, earlier: Earlier, lines: &Lines) -> &[u8] {
        let start = self.text.len();
        // The events of one trial can take 100 MB, which are not copied.
        match start == 0 && earlier.text.len() > FULL {
            true => self.text = earlier.text,
            false => self.text.extend_from_slice(&earlier.text),
        }
        self.text.extend_from_slice(&lines.text);
        let first_seq = earlier.first_seq.or(lines.first()).unwrap_or(0);
        self.trials.push(Finished { id, record, first_seq, start, end: self.text.len() });
        self.text.get(start..).unwrap_or_default()
    }

    /// Returns `true` if the group should be written before another trial is added.
    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= FULL
    }
}
