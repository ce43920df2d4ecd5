//! `$not`: the expectation does not hold.

use model::Node;

use crate::compile::Compiler;
use crate::found::Pass;
use crate::pattern::Negated;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    compiler.doubt_bare(operand);
    let beside = compiler.critical;
    let inner = compiler.matcher(operand);
    // Critical parts of the operand need not hold.
    compiler.critical = beside || inner.meta.critical;
    let denied = format!("not {}", value::describe(&operand.to_json()));
    let rule = Box::new(Not { inner, denied, place: SourceLocation::from_node(operand) });
    Some(Box::new(Negated { rule }))
}

#[derive(Debug)]
struct Not {
    inner: Matcher,
    /// Description of the expected value.
    denied: String,
    place: SourceLocation,
}

impl Rule for Not {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let inside = Scope { strategy: at.strategy, critical: false, ..at.quietly() };
        let found = self.inner.judge(actual, &inside);
        let critical = self.inner.meta.critical;
        match found.pass {
            Pass::No => Found::full(),
            Pass::Yes => {
                let message = format!("{} matches but must not", value::shown(actual));
                let flaw = Flaw::new(&self.place, message).expected(self.denied.as_str().into()).actual(actual);
                Found::flawed(Flaw { critical, ..flaw })
            }
            Pass::Unknown => {
                let flaws = found.flaws.into_iter().map(|flaw| Flaw { critical, firm: false, ..flaw }).collect();
                Found { most: 1.0, flaws, ..Found::scored(0.0, Pass::Unknown) }
            }
        }
    }
}
