//! Distributes work on many files over several threads.

use std::io;
use std::num::NonZero;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Maximum number of threads for one piece of work. More threads would wait for each other in the file system.
const MOST: usize = 8;

/// Number of threads available. It is cached because determining it takes longer than copying a file.
static THREADS: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get).min(MOST));

/// Applies `work` to `items` in chunks of `at_a_time`: on this thread if there is only one chunk, otherwise on several.
/// The results are in the order of the items.
///
/// # Errors
/// Returns the first error in that order. Later items may have been processed or not.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    at_a_time: usize,
    work: impl Fn(&[T]) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    let shares: Vec<&[T]> = items.chunks(at_a_time).collect();
    let threads = shares.len().min(*THREADS);
    if threads < 2 {
        return shares.into_iter().map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let hand = || {
        let mut done = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(share) = shares.get(at) else { return done };
            let result = work(share);
            if result.is_err() {
                next.fetch_max(shares.len(), Ordering::Relaxed);
            }
            done.push((at, result));
        }
    };
    let mut done = thread::scope(|scope| {
        let others: Vec<_> =
            (1..threads).filter_map(|_| thread::Builder::new().spawn_scoped(scope, hand).ok()).collect();
        let mut done = hand();
        for other in others {
            match other.join() {
                Ok(more) => done.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_done_once_and_told_in_order() {
        let items: Vec<u32> = (0..1000).collect();
        for at_a_time in [1, 7, 1000, 5000] {
            let done = each(&items, at_a_time, |share| Ok(share.to_vec())).unwrap();
            assert_eq!(done.concat(), items);
        }
        assert!(each(&items[..0], 1, |share| Ok(share.len())).unwrap().is_empty());
    }

    #[test]
    fn the_first_error_is_told() {
        let items: Vec<u32> = (0..100).collect();
        let fail = |share: &[u32]| if share[0] >= 50 { Err(io::Error::other(share[0].to_string())) } else { Ok(()) };
        assert_eq!(each(&items, 1, fail).unwrap_err().to_string(), "50");
        assert_eq!(each(&items, 100, |_| Err::<(), _>(io::Error::other("all"))).unwrap_err().to_string(), "all");
    }
}
