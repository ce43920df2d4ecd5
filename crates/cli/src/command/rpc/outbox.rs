//! Messages to the client, which a thread writes in order.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// Number of queued bytes from which events wait.
const FULL: usize = 8 << 20;

/// Messages that are not yet written.
#[derive(Default)]
struct Queue {
    /// Messages that are written before all others.
    first: VecDeque<String>,
    lines: VecDeque<String>,
    bytes: usize,
    /// True if nothing can be written any more.
    is_broken: bool,
    /// True if the thread ends as soon as everything is written.
    is_closing: bool,
}

/// Queue of messages to the client. A client that does not read delays only events.
pub struct Outbox {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Outbox {
    /// Starts the thread that writes to `out`.
    ///
    /// # Errors
    /// Returns an error if the thread cannot be started.
    pub fn start(out: Box<dyn Write + Send>) -> io::Result<(Arc<Self>, JoinHandle<()>)> {
        let outbox = Arc::new(Self { queue: Mutex::default(), changed: Condvar::new() });
        let writer = Arc::clone(&outbox);
        let thread = std::thread::Builder::new().name("rpc-write".into()).spawn(move || writer.write(out))?;
        Ok((outbox, thread))
    }

    /// Queues a message without waiting.
    pub fn send(&self, line: String) {
        self.push(self.lock(), line);
    }

    /// Queues a message before all those that are not callbacks, without waiting.
    pub fn send_first(&self, line: String) {
        let mut queue = self.lock();
        if !queue.is_broken {
            queue.bytes += line.len();
            queue.first.push_back(line);
            self.changed.notify_all();
        }
    }

    /// Queues a message as soon as the client has read enough of the earlier ones.
    ///
    /// # Errors
    /// Returns an error if the client can no longer be reached.
    pub fn send_when_read(&self, line: String) -> io::Result<()> {
        let is_full = |queue: &mut Queue| queue.bytes > FULL && !queue.is_broken;
        let queue = self.changed.wait_while(self.lock(), is_full).unwrap_or_else(PoisonError::into_inner);
        if queue.is_broken {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.push(queue, line);
        Ok(())
    }

    /// Ends the thread once everything is written.
    pub fn close(&self) {
        self.lock().is_closing = true;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, mut queue: MutexGuard<'_, Queue>, line: String) {
        if !queue.is_broken {
            queue.bytes += line.len();
            queue.lines.push_back(line);
            self.changed.notify_all();
        }
    }

    fn write(&self, mut out: Box<dyn Write + Send>) {
        loop {
            let is_idle = |queue: &mut Queue| queue.first.is_empty() && queue.lines.is_empty() && !queue.is_closing;
            let mut queue = self.changed.wait_while(self.lock(), is_idle).unwrap_or_else(PoisonError::into_inner);
            let Some(line) = queue.first.pop_front().or_else(|| queue.lines.pop_front()) else { return };
            drop(queue);
            let written = out.write_all(line.as_bytes()).and_then(|()| out.write_all(b"\n")).and_then(|()| out.flush());
            queue = self.lock();
            queue.bytes -= line.len();
            if written.is_err() {
                *queue = Queue { is_broken: true, ..Queue::default() };
                self.changed.notify_all();
                return;
            }
            self.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};

    use super::*;

    /// A client that reads a message only when it is released.
    struct Client(Receiver<()>, Sender<Vec<u8>>);

    impl Write for Client {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.recv().map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
            self.1.send(bytes.to_vec()).map(|()| bytes.len()).map_err(io::Error::other)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn messages_are_written_in_order_and_never_wait_for_the_client() {
        let ((release, gate), (seen, read)) = (channel(), channel());
        let (outbox, thread) = Outbox::start(Box::new(Client(gate, seen))).unwrap();
        (0..100).for_each(|number| outbox.send(format!("{number}{}", " ".repeat(FULL / 50))));
        outbox.close();
        (0..200).for_each(|_| release.send(()).unwrap());
        thread.join().unwrap();
        let lines: Vec<Vec<u8>> = read.iter().filter(|bytes| bytes != b"\n").collect();
        assert!((0..100).all(|number| lines[number].starts_with(format!("{number} ").as_bytes())));
    }

    #[test]
    fn callbacks_do_not_wait_for_events_that_the_client_has_not_read() {
        let ((release, gate), (seen, read)) = (channel(), channel());
        let (outbox, thread) = Outbox::start(Box::new(Client(gate, seen))).unwrap();
        outbox.send_when_read("event 1".into()).unwrap();
        release.send(()).unwrap();
        assert_eq!(read.recv().unwrap(), b"event 1");
        // The end of that line is not read yet, so everything else is queued.
        (2..100).for_each(|number| outbox.send_when_read(format!("event {number}")).unwrap());
        outbox.send_first("callback 1".into());
        outbox.send_first("callback 2".into());
        outbox.close();
        (0..201).for_each(|_| release.send(()).unwrap());
        thread.join().unwrap();
        let lines: Vec<Vec<u8>> = read.iter().filter(|bytes| bytes != b"\n").collect();
        assert_eq!(&lines[..3], [&b"callback 1"[..], b"callback 2", b"event 2"]);
    }

    #[test]
    fn a_closed_pipe_is_an_error_for_events_and_ends_the_thread() {
        let ((release, gate), (seen, _read)) = (channel::<()>(), channel());
        let (outbox, thread) = Outbox::start(Box::new(Client(gate, seen))).unwrap();
        outbox.send(" ".repeat(FULL + 1));
        let waiting = std::thread::spawn({
            let outbox = Arc::clone(&outbox);
            move || outbox.send_when_read("event".into())
        });
        drop(release);
        assert_eq!(waiting.join().unwrap().unwrap_err().kind(), io::ErrorKind::BrokenPipe);
        thread.join().unwrap();
        outbox.send("later".into());
    }
}
