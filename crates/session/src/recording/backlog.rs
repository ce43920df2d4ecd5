//! Backlog: committed events that a reporter has not yet processed. The oldest are in memory, the rest in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::Envelope;

/// Maximum number of events in memory. It holds a dozen batches, so that the file is used only for reporters that are
/// stuck, not for those that are waiting for CPU time. Writing an event to the file and reading it back costs more
/// than reporting it.
const IN_MEMORY: usize = 16 * 1024;

/// Maximum number of events taken at a time. They are in memory too.
const TAKEN: usize = 256;

/// Unbounded queue that never blocks the sender and uses a bounded amount of memory.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// Older than all events in the file.
    memory: VecDeque<Arc<Envelope>>,
    spill: Option<Spill>,
    /// `true` if there will be no more events.
    closed: bool,
    /// Error that caused the loss of events.
    error: Option<io::Error>,
}

impl Backlog {
    /// Adds events, unless an earlier one was lost: a reporter never gets events with a gap.
    pub(super) fn push(&self, events: impl IntoIterator<Item = Arc<Envelope>>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        if let Err(error) = events.into_iter().try_for_each(|event| state.push(event)) {
            state.error = Some(error);
            state.closed = true;
        }
        self.changed.notify_one();
    }

    /// Marks the end of the events.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.changed.notify_one();
    }

    /// Drops all events, because the receiver is gone.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        *state = State { closed: true, error: state.error.take(), ..State::default() };
    }

    /// Waits for the next events and takes them; returns an empty list after the last. `None` if there are still none
    /// after `timeout`.
    ///
    /// # Errors
    /// Returns an error if events that did not fit into memory could not be stored. No more events follow in that
    /// case.
    pub(super) fn take(&self, timeout: Duration) -> io::Result<Option<Vec<Arc<Envelope>>>> {
        let until = Instant::now() + timeout;
        let mut state = self.lock();
        loop {
            state.fill()?;
            if !state.memory.is_empty() {
                let taken = TAKEN.min(state.memory.len());
                return Ok(Some(state.memory.drain(..taken).collect()));
            }
            if let Some(error) = state.error.take() {
                return Err(error);
            }
            if state.closed {
                return Ok(Some(Vec::new()));
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(None);
            }
            (state, _) = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn push(&mut self, event: Arc<Envelope>) -> io::Result<()> {
        match &mut self.spill {
            Some(spill) => spill.write(&event),
            None if self.memory.len() < IN_MEMORY => {
                self.memory.push_back(event);
                Ok(())
            }
            None => self.spill.insert(Spill::new()?).write(&event),
        }
    }

    /// Reads the next events from the file once memory is empty; the file is removed after its last event.
    fn fill(&mut self) -> io::Result<()> {
        if let (Some(spill), true) = (&mut self.spill, self.memory.is_empty()) {
            while self.memory.len() < IN_MEMORY
                && let Some(event) = spill.read()?
            {
                self.memory.push_back(Arc::new(event));
            }
            if spill.is_empty() {
                self.spill = None;
            }
        }
        Ok(())
    }
}

/// Unnamed file with events as JSON, each preceded by its length.
struct Spill {
    file: File,
    read: u64,
    written: u64,
}

impl Spill {
    fn new() -> io::Result<Self> {
        Ok(Self { file: tempfile::tempfile()?, read: 0, written: 0 })
    }

    fn is_empty(&self) -> bool {
        self.read == self.written
    }

    fn write(&mut self, event: &Envelope) -> io::Result<()> {
        let mut bytes = vec![0; size_of::<u64>()];
        serde_json::to_writer(&mut bytes, event)?;
        let length = (bytes.len() - size_of::<u64>()) as u64;
        bytes[..size_of::<u64>()].copy_from_slice(&length.to_le_bytes());
        self.file.write_all_at(&bytes, self.written)?;
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn read(&mut self) -> io::Result<Option<Envelope>> {
        if self.is_empty() {
            return Ok(None);
        }
        let mut length = [0; size_of::<u64>()];
        self.file.read_exact_at(&mut length, self.read)?;
        let length = u64::from_le_bytes(length);
        let mut bytes = vec![0; usize::try_from(length).map_err(io::Error::other)?];
        self.read += size_of::<u64>() as u64;
        self.file.read_exact_at(&mut bytes, self.read)?;
        self.read += length;
        Ok(Some(serde_json::from_slice(&bytes)?))
    }
}
