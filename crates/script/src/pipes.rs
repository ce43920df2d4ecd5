//! The pipes of a process that runs the user's code, each with a thread of its own, so that nothing waits for a process that does not read or write.

use std::io::{BufRead, BufReader, Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

use serde_json::Value as Json;

use crate::error::ScriptError;
use crate::launcher::{Launched, Process, Wake};
use crate::thread;

/// Maximum length of a message, in bytes.
const LONGEST: u64 = 256 << 20;

/// Maximum size of the messages that wait to be handled, in bytes.
const MOST_WAITING: usize = 256 << 20;

/// Maximum size of what a process prints without the program's knowledge, in bytes; the rest is dropped.
const MOST_PRINTED: usize = 1 << 20;

/// Something that a process does.
pub(crate) enum Event {
    /// It sent this message.
    Message(Json),
    /// It printed this line.
    Printed(String),
    /// It sent something that is not a message, or too much.
    Garbage(&'static str),
    /// It has closed its output.
    Ended,
}

/// A process with its pipes.
pub(crate) struct Pipes {
    input: Sender<String>,
    events: Receiver<(Event, usize)>,
    waiting: Arc<AtomicUsize>,
    pub process: Box<dyn Process>,
}

impl Pipes {
    /// Serves the pipes of `launched`. `wake` is called after every event.
    pub fn open(launched: Launched, wake: Option<Wake>) -> Result<Self, ScriptError> {
        let Launched { mut input, output, printed, process } = launched;
        let failed = |error: std::io::Error| ScriptError::Failed(format!("cannot start a thread: {error}"));
        let (to_process, lines) = channel::<String>();
        thread::spawn(move || {
            // Fails when the process has ended, which its output shows.
            while let Ok(line) = lines.recv()
                && input.write_all(line.as_bytes()).and_then(|()| input.flush()).is_ok()
            {}
        })
        .map_err(failed)?;
        let (sender, events) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let teller = Teller { events: sender, waiting: Arc::clone(&waiting), wake };
        let of_printed = teller.clone();
        thread::spawn(move || read_messages(output, &teller)).map_err(failed)?;
        thread::spawn(move || read_printed(printed, &of_printed)).map_err(failed)?;
        Ok(Self { input: to_process, events, waiting, process })
    }

    /// Sends a message. If the process has ended, its next event says so.
    pub fn send(&self, message: &Json) {
        let _ = self.input.send(format!("{message}\n"));
    }

    /// Returns the next event, if there is one before `timeout` has passed.
    pub fn next(&self, timeout: std::time::Duration) -> Option<Event> {
        let (event, size) = self.events.recv_timeout(timeout).ok()?;
        self.waiting.fetch_sub(size, Ordering::Relaxed);
        Some(event)
    }
}

/// Passes on events.
#[derive(Clone)]
struct Teller {
    events: Sender<(Event, usize)>,
    waiting: Arc<AtomicUsize>,
    wake: Option<Wake>,
}

impl Teller {
    /// Returns `false` if nobody listens any more.
    fn tell(&self, event: Event, size: usize) -> bool {
        self.waiting.fetch_add(size, Ordering::Relaxed);
        let is_told = self.events.send((event, size)).is_ok();
        if let Some(wake) = &self.wake {
            wake();
        }
        is_told
    }
}

fn read_messages(output: Box<dyn Read + Send>, teller: &Teller) {
    let mut output = BufReader::new(output);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut output).take(LONGEST).read_until(b'\n', &mut line);
        if !read.is_ok_and(|length| length > 0) || line.last() != Some(&b'\n') && line.len() as u64 != LONGEST {
            teller.tell(Event::Ended, 0);
            return;
        }
        let event = match serde_json::from_slice(&line) {
            _ if teller.waiting.load(Ordering::Relaxed) > MOST_WAITING => Event::Garbage("too many messages"),
            Ok(message) => Event::Message(message),
            Err(_) => Event::Garbage("something that is not a message"),
        };
        let is_over = matches!(event, Event::Garbage(_));
        if !teller.tell(event, line.len()) || is_over {
            return;
        }
    }
}

fn read_printed(printed: Box<dyn Read + Send>, teller: &Teller) {
    let mut printed = BufReader::new(printed);
    let mut left = MOST_PRINTED;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = (&mut printed).take(MOST_PRINTED as u64).read_until(b'\n', &mut line);
        if !read.is_ok_and(|length| length > 0) {
            return;
        }
        // Reading goes on, because the process would wait otherwise.
        let Some(room) = left.checked_sub(line.len()) else {
            left = 0;
            continue;
        };
        left = room;
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        teller.tell(Event::Printed(text), line.len());
    }
}
