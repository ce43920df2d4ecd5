//! `$expect`: an expectation with metadata.

use model::Node;

use crate::compile::Compiler;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    let inner = compiler.matcher(operand);
    Some(Box::new(Expect { inner }))
}

#[derive(Debug)]
struct Expect {
    inner: Matcher,
}

impl Rule for Expect {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        self.inner.judge(actual, &Scope { strategy: at.strategy, ..at.below("") })
    }
}
