//! Events that are committed and that a reporter has not shown yet: the oldest in memory, the rest in a file.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use model::Envelope;

/// How many events are in memory at the most: a dozen batches, so that a file is for those who stand still, and not for
/// those who had to wait for a processor. Writing an event to it and reading it again costs more than a report does.
const IN_MEMORY: usize = 16 * 1024;

/// How many events are taken at a time at the most. They are in memory, too.
const TAKEN: usize = 256;

/// A queue that never makes the one who fills it wait for the one who empties it, and never fills memory.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
    news: Condvar,
}

#[derive(Default)]
struct State {
    /// Older than everything in the file.
    memory: VecDeque<Arc<Envelope>>,
    spill: Option<Spill>,
    /// Nothing more comes.
    closed: bool,
    /// Why not everything came.
    trouble: Option<io::Error>,
}

impl Backlog {
    /// Adds events, unless an earlier one was lost: nobody is shown events with a gap between them.
    pub(super) fn push(&self, events: impl IntoIterator<Item = Arc<Envelope>>) {
        let mut state = self.lock();
        if state.closed {
            return;
        }
        if let Err(error) = events.into_iter().try_for_each(|event| state.push(event)) {
            state.trouble = Some(error);
            state.closed = true;
        }
        self.news.notify_one();
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.lock().closed = true;
        self.news.notify_one();
    }

    /// Nobody takes anything any more.
    pub(super) fn abandon(&self) {
        let mut state = self.lock();
        *state = State { closed: true, trouble: state.trouble.take(), ..State::default() };
    }

    /// The next events that are there, as soon as there are any; none after the last.
    ///
    /// # Errors
    /// When what did not fit into memory could not be kept. There are no more events then.
    pub(super) fn take(&self) -> io::Result<Vec<Arc<Envelope>>> {
        let mut state = self.lock();
        loop {
            state.fill()?;
            if !state.memory.is_empty() {
                let taken = TAKEN.min(state.memory.len());
                return Ok(state.memory.drain(..taken).collect());
            }
            if let Some(error) = state.trouble.take() {
                return Err(error);
            }
            if state.closed {
                return Ok(Vec::new());
            }
            state = self.news.wait(state).unwrap_or_else(PoisonError::into_inner);
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

    /// Once memory is empty, the next ones come out of the file; with the last of them it is gone.
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

/// A file without a name: events as JSON, each with its length before it.
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
