//! `$not`: the expectation does not hold.

use model::{Diagnostic, Node, NodeKind};

use crate::compile::Compiler;
use crate::found::Pass;
use crate::pattern::Negated;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    compiler.problems.extend(bare_operator(operand));
    let beside = compiler.critical;
    let inner = compiler.matcher(operand);
    // Critical parts of the operand need not hold.
    compiler.critical = beside || inner.meta.critical;
    let denied = format!("not {}", value::describe(&operand.to_json()));
    let rule = Box::new(Not { inner, denied, place: SourceLocation::from_node(operand) });
    Some(Box::new(Negated { rule }))
}

/// Returns a warning if all keys of `operand` are names of operators without `$`: the value would need these keys, so a
/// text would never match. Names that values often have as keys, such as `all`, are left out.
fn bare_operator(operand: &Node) -> Option<Diagnostic> {
    const BARE: [&str; 9] = ["contains", "includes", "eq", "ne", "gt", "gte", "lt", "lte", "nin"];
    let NodeKind::Map(entries) = &operand.kind else { return None };
    let (first, _) = entries.first().filter(|_| entries.iter().all(|(key, _)| BARE.contains(&key.value.as_str())))?;
    let meant = if first.value == "includes" { "contains" } else { &first.value };
    let problem = Diagnostic::warning(format!("`{}` is a key of the value here, not an operator", first.value));
    Some(problem.at(operand.source.excerpt(first.span)).suggest(Some(&format!("${meant}"))))
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
