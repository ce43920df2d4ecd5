//! What stands for an expectation that is not valid: it never holds. Nothing runs while there is one; whoever goes on
//! regardless gets no pass from it.

use serde_json::Value;

use crate::found::{Flaw, Found};
use crate::matcher::{At, Rule};
use crate::place::Place;

/// An expectation that is not valid.
#[derive(Debug)]
pub struct Never {
    /// Where it is written.
    pub place: Place,
}

impl Rule for Never {
    fn judge(&self, actual: Option<&Value>, _at: &At<'_>) -> Found {
        Found::flawed(Flaw::new(&self.place, "the expectation is not valid").actual(actual))
    }
}
