//! A pool of threads for script engines. Threads are reused, because on a new thread, the memory for an engine takes
//! as much time as the engine itself.

use std::io;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

/// Stack size of a thread in bytes; scripts use most of it.
const STACK: usize = 8 << 20;
/// Stack size of an engine on such a thread, in bytes. Functions can call each other as deeply as in Node.js.
pub const SCRIPT_STACK: usize = STACK / 8 * 7;
/// Maximum number of idle threads.
const IDLE: usize = 32;

type Work = Box<dyn FnOnce() + Send>;

static WAITING: Mutex<Vec<Sender<Work>>> = Mutex::new(Vec::new());

/// Runs `work` on a thread that does nothing else in the meantime.
///
/// # Errors
/// Returns an error if no thread can be started.
pub fn spawn(work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let mut work: Work = Box::new(work);
    while let Some(thread) = waiting(Vec::pop) {
        match thread.send(work) {
            Ok(()) => return Ok(()),
            Err(unsent) => work = unsent.0,
        }
    }
    Builder::new().name("script".to_owned()).stack_size(STACK).spawn(move || serve(work)).map(drop)
}

/// Runs `work` and then any further work. After a panic, the thread ends and is not reused.
fn serve(mut work: Work) {
    loop {
        work();
        let (sender, receiver) = channel();
        let is_kept = waiting(|threads| {
            let has_room = threads.len() < IDLE;
            if has_room {
                threads.push(sender);
            }
            has_room
        });
        let Some(next) = is_kept.then(|| receiver.recv().ok()).flatten() else { return };
        work = next;
    }
}

fn waiting<T>(change: impl FnOnce(&mut Vec<Sender<Work>>) -> T) -> T {
    change(&mut WAITING.lock().unwrap_or_else(PoisonError::into_inner))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_thread_is_reused_and_one_that_panicked_is_not() {
        let (done, ids) = channel();
        for _ in 0..200 {
            let done = done.clone();
            spawn(move || done.send(std::thread::current().id()).unwrap()).unwrap();
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        drop(done);
        let distinct: std::collections::HashSet<_> = ids.iter().collect();
        assert!(distinct.len() < 200, "{}", distinct.len());
        spawn(|| panic!("as planned")).unwrap();
        let (done, results) = channel();
        spawn(move || done.send(1).unwrap()).unwrap();
        assert_eq!(results.recv(), Ok(1));
    }
}
