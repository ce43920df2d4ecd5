//! Distributes work on many files over several threads.

use std::io;

use files::parallel;

/// Applies `work` to `items` in chunks of `at_a_time`: on this thread if there is only one chunk, otherwise on
/// several. The results are in the order of the items.
///
/// # Errors
/// Returns the first error in that order. Later items may or may not have been processed.
pub(super) fn each<T: Sync, R: Send>(
    items: &[T],
    at_a_time: usize,
    work: impl Fn(&[T]) -> io::Result<R> + Sync,
) -> io::Result<Vec<R>> {
    parallel::map(items.chunks(at_a_time).collect(), 1, work).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_processed_once_and_results_are_in_order() {
        let items: Vec<u32> = (0..1000).collect();
        for at_a_time in [1, 7, 1000, 5000] {
            let done = each(&items, at_a_time, |share| Ok(share.to_vec())).unwrap();
            assert_eq!(done.concat(), items);
        }
        assert!(each(&items[..0], 1, |share| Ok(share.len())).unwrap().is_empty());
    }

    #[test]
    fn the_first_error_is_returned() {
        let items: Vec<u32> = (0..100).collect();
        let fail = |share: &[u32]| if share[0] >= 50 { Err(io::Error::other(share[0].to_string())) } else { Ok(()) };
        assert_eq!(each(&items, 1, fail).unwrap_err().to_string(), "50");
        assert_eq!(each(&items, 100, |_| Err::<(), _>(io::Error::other("all"))).unwrap_err().to_string(), "all");
    }
}
