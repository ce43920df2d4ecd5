//! A rule that must not hold: the operand of `$not`, and a penalty.

use crate::prelude::*;

/// A rule whose failure counts as a success.
#[derive(Debug)]
pub struct Denied {
    /// The rule.
    pub rule: Box<dyn Rule>,
}

impl Rule for Denied {
    fn judge(&self, actual: Option<&Value>, at: &At<'_>) -> Found {
        self.rule.judge(actual, &At { negated: true, ..at.clone() })
    }
}
