//! Validations without a result, for example because a pattern was stopped.

use std::cell::RefCell;

thread_local! {
    /// An undecided check. The library has no way to return it, so it is stored here.
    static UNDECIDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `validation`. If a check could not be decided, the result is invalid, and the reason is returned.
pub(super) fn watched<T>(validation: impl FnOnce() -> T) -> Result<T, String> {
    UNDECIDED.with_borrow_mut(|undecided| *undecided = None);
    let result = validation();
    UNDECIDED.with_borrow_mut(Option::take).map_or(Ok(result), Err)
}

/// Makes the current validation undecided.
pub(super) fn give_up(why: String) {
    UNDECIDED.with_borrow_mut(|undecided| _ = undecided.get_or_insert(why));
}
