//! A rule that must not hold: the operand of `$not`, or a penalty.

use crate::prelude::*;

/// A rule whose failure counts as a success.
#[derive(Debug)]
pub struct Negated {
    /// The rule.
    pub rule: Box<dyn Rule>,
}

impl Rule for Negated {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        self.rule.judge(actual, &Scope { negated: true, ..at.clone() })
    }
}
