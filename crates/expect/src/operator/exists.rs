//! `$exists`: a value exists, or does not exist.

use model::decode::Fields;
use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::prelude::*;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    let place = SourceLocation::from_node(operand);
    let wanted = match &operand.kind {
        NodeKind::Bool(wanted) => Some((*wanted, false)),
        NodeKind::Map(_) => Fields::of(operand, "`$exists`", compiler.problems).map(|mut fields| {
            let wanted = fields.boolean("$value", compiler.problems).unwrap_or(true);
            let strict = fields.boolean("strict", compiler.problems).unwrap_or_default();
            fields.finish(compiler.problems);
            (wanted, strict)
        }),
        _ => {
            let wanted = value::truthy(&operand.to_json());
            let message = format!("`$exists` takes true or false; {} counts as {wanted}", operand.kind_name());
            compiler.problems.push(operand.warning(message).help(format!("write `$exists: {wanted}`")));
            Some((wanted, false))
        }
    };
    wanted.map(|(wanted, strict)| Box::new(Exists { wanted, strict, place }) as Box<dyn Rule>)
}

#[derive(Debug)]
struct Exists {
    wanted: bool,
    strict: bool,
    place: SourceLocation,
}

impl Rule for Exists {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let is_there = if self.strict { at.present } else { actual.is_some() };
        if is_there == self.wanted {
            return Found::full();
        }
        let what = if self.strict { "the key" } else { "a value" };
        let message = if self.wanted { format!("{what} must exist") } else { format!("{what} exists but must not") };
        Found::flawed(Flaw::new(&self.place, message).actual(actual))
    }
}
