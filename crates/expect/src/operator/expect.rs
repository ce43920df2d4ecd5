//! `$expect`: an expectation with metadata.

use crate::compile::Operator;
use crate::prelude::*;

/// The `$expect` operator.
pub const EXPECT: Operator = Operator {
    name: "$expect",
    summary: "The expectation matches. Use this to add `$score`, `$title` and so on.",
    read: |compiler, operand| {
        let inner = compiler.matcher(operand);
        Some(Box::new(Expect { inner }))
    },
};

#[derive(Debug)]
struct Expect {
    inner: Matcher,
}

impl Rule for Expect {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        self.inner.judge(actual, &Scope { strategy: at.strategy, ..at.below("") })
    }
}
