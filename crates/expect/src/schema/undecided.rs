//! Validations without a result.

use std::cell::RefCell;
use std::fmt;

/// The validation has no result, for example because a pattern was stopped. The text is the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided(pub String);

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Undecided {}

thread_local! {
    /// Undecided check. The library has no way to return it, so it is passed around the library.
    static UNDECIDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `validation`. Its result is invalid if a check could not be decided.
pub(super) fn watched<T>(validation: impl FnOnce() -> T) -> Result<T, Undecided> {
    UNDECIDED.with_borrow_mut(|undecided| *undecided = None);
    let result = validation();
    UNDECIDED.with_borrow_mut(Option::take).map_or(Ok(result), |why| Err(Undecided(why)))
}

/// Makes the validation that is running undecided.
pub(super) fn give_up(why: String) {
    UNDECIDED.with_borrow_mut(|undecided| _ = undecided.get_or_insert(why));
}
