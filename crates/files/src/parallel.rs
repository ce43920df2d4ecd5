//! Runs the same work on many files, or parts of files, on several threads.
//!
//! This uses scoped threads instead of `rayon`, because a single function justifies neither a permanent thread pool
//! nor more dependencies.

use std::sync::{LazyLock, Mutex, PoisonError};

/// With more threads than this, they would wait for each other in the file system. Counting the processors takes
/// longer than copying a file, so it is done only once.
static MAX_THREADS: LazyLock<usize> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from).min(8));

/// Stack size of a thread, equal to that of a program's main thread because parsing is recursive.
const STACK: usize = 8 << 20;

/// Returns the results of `work` for `items`, in their order. Another thread is started only for every `per_thread`
/// items.
pub fn map<T: Send, R: Send>(items: Vec<T>, per_thread: usize, work: impl Fn(T) -> R + Sync) -> Vec<R> {
    let threads = items.len().div_ceil(per_thread).min(*MAX_THREADS);
    if threads <= 1 {
        return items.into_iter().map(work).collect();
    }
    let rest = Mutex::new(items.into_iter().enumerate());
    let take = || rest.lock().unwrap_or_else(PoisonError::into_inner).next();
    let run = || {
        let mut done = Vec::new();
        while let Some((at, item)) = take() {
            done.push((at, work(item)));
        }
        done
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let spawn =
            |_| std::thread::Builder::new().name("files".into()).stack_size(STACK).spawn_scoped(scope, run).ok();
        let others: Vec<_> = (1..threads).filter_map(spawn).collect();
        let mut all = run();
        for other in others {
            match other.join() {
                Ok(done) => all.extend(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        all
    });
    all.sort_by_key(|(at, _)| *at);
    all.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_keep_the_order_of_the_items_for_any_number_of_items() {
        for count in [0, 1, 7, 1_000] {
            let items: Vec<String> = (0..count).map(|number: usize| number.to_string()).collect();
            assert_eq!(map(items.clone(), 3, |item| item), items);
        }
    }
}
