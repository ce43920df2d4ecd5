//! Threads for scenarios. One that has played its scenario waits a while for the next: starting and ending a thread takes
//! as long as a small scenario, and what it has of memory is warm.

use std::any::Any;
use std::cell::RefCell;
use std::sync::mpsc::{SendError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, ThreadId, current};
use std::time::Duration;

/// The stack of a thread, in bytes; most of it is for the scripts' own.
const STACK: usize = 4 << 20;

/// How long a thread that has rested waits for something to do before it ends.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long a thread has nothing to do before it clears away what was left behind.
const REST: Duration = Duration::from_millis(100);

/// Something to do.
pub(super) type Work = Box<dyn FnOnce() + Send>;

/// The threads that have nothing to do.
static IDLE: Mutex<Vec<(ThreadId, Sender<Work>)>> = Mutex::new(Vec::new());

thread_local! {
    /// What this thread is to drop when it has time.
    static LEFT: RefCell<Option<Box<dyn Any>>> = const { RefCell::new(None) };
}

/// Has `thing` dropped when this thread has nothing better to do: while it waits, or before the next thing that is left.
pub(super) fn leave_behind(thing: Box<dyn Any>) {
    drop(LEFT.replace(Some(thing)));
}

/// Whether something was left behind.
pub(super) fn is_untidy() -> bool {
    LEFT.with_borrow(Option::is_some)
}

/// Drops what was left behind: there is time now.
pub(super) fn tidy() {
    drop(LEFT.take());
}

/// Has `work` done on a thread that does nothing else meanwhile.
///
/// # Errors
/// If there is no thread to be had.
pub(super) fn run(mut work: Work) -> std::io::Result<()> {
    while let Some((_, idle)) = idle_threads().pop() {
        match idle.send(work) {
            Ok(()) => return Ok(()),
            Err(SendError(back)) => work = back,
        }
    }
    Builder::new().name("scenario".to_owned()).stack_size(STACK).spawn(move || serve(work)).map(drop)
}

/// What such a thread does.
fn serve(first: Work) {
    let (giving, given) = channel();
    let mut next = Some(first);
    while let Some(work) = next {
        work();
        idle_threads().push((current().id(), giving.clone()));
        let given_within = |time| given.recv_timeout(time).ok();
        let after_a_rest = || {
            tidy();
            given_within(PATIENCE)
        };
        let at_last = || {
            let is_idle = leave();
            // Whoever has taken it off the list is about to give it something.
            if is_idle { None } else { given.recv().ok() }
        };
        next = given_within(REST).or_else(after_a_rest).or_else(at_last);
    }
}

/// Takes this thread off the list; whether it was there.
fn leave() -> bool {
    let mut idle = idle_threads();
    let at = idle.iter().position(|(id, _)| *id == current().id());
    at.map(|at| idle.swap_remove(at)).is_some()
}

/// Entries come and go whole, whoever panics.
fn idle_threads() -> MutexGuard<'static, Vec<(ThreadId, Sender<Work>)>> {
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, TryRecvError};

    use super::*;

    /// Runs something that tells which thread it is on and then waits until it may end.
    fn begin() -> (ThreadId, Sender<()>) {
        let (tell, told) = channel();
        let (end, ended): (Sender<()>, Receiver<()>) = channel();
        run(Box::new(move || {
            tell.send(current().id()).unwrap();
            let _ = ended.recv();
        }))
        .unwrap();
        (told.recv().unwrap(), end)
    }

    #[test]
    fn works_that_overlap_have_a_thread_each() {
        let begun: Vec<_> = (0..8).map(|_| begin()).collect();
        let ids: std::collections::HashSet<_> = begun.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids.len(), 8);
    }

    #[test]
    fn a_thread_that_fails_takes_nobody_with_it() {
        let (tell, told) = channel::<()>();
        run(Box::new(move || {
            let _tell = tell;
            std::panic::resume_unwind(Box::new(()));
        }))
        .unwrap();
        assert!(told.recv().is_err());
        begin();
    }

    #[test]
    fn what_is_left_behind_goes_before_the_next_or_when_there_is_time() {
        let thing = || {
            let (held, dropped) = channel::<()>();
            leave_behind(Box::new(held));
            dropped
        };
        let is_gone = |dropped: &Receiver<()>| dropped.try_recv() == Err(TryRecvError::Disconnected);
        let first = thing();
        assert!(!is_gone(&first));
        let second = thing();
        assert!(is_gone(&first) && !is_gone(&second));
        tidy();
        assert!(is_gone(&second));
        tidy();
    }

    #[test]
    fn a_thread_that_rests_tidies_up() {
        let (held, dropped) = channel::<()>();
        run(Box::new(move || leave_behind(Box::new(held)))).unwrap();
        assert!(dropped.recv().is_err());
    }
}
