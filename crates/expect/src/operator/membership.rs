//! `$in` and `$nin`: one of these values, or none of them.

use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::found::Pass;
use crate::prelude::*;

#[derive(Debug)]
struct Membership {
    values: Vec<Value>,
    wanted: bool,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let NodeKind::List(items) = &operand.kind else {
        compiler.wrong_operand(operand, operator, "a list of values");
        return None;
    };
    compiler.doubt_empty(operand, operator, operator == "$nin");
    let values = items.iter().map(Node::to_json).collect();
    Some(Box::new(Membership { values, wanted: operator == "$in", place: SourceLocation::from_node(operand) }))
}

impl Membership {
    /// Returns whether the value is one of those listed.
    fn has(&self, actual: Option<&Value>) -> Pass {
        self.values.iter().fold(Pass::No, |pass, value| pass.or(Pass::equal(actual, value)))
    }
}

impl Rule for Membership {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        match self.has(actual) {
            Pass::Unknown => return Found::rounded(actual, &self.place),
            pass if (pass == Pass::Yes) == self.wanted => return Found::full(),
            _ => {}
        }
        let list = Value::Array(self.values.clone());
        let shown = value::shown(Some(&list));
        let which = if self.wanted { "none" } else { "one" };
        let message = format!("{} is {which} of {shown}", value::shown(actual));
        let expected = if self.wanted { list } else { format!("none of {shown}").into() };
        Found::flawed(Flaw::new(&self.place, message).expected(expected).actual(actual))
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let pass = self.has(actual);
        (pass != Pass::Unknown).then(|| QuickScore::from_bool((pass == Pass::Yes) == self.wanted))
    }
}
