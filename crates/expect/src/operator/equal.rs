//! `$eq` and `$ne`: exactly this value, or any other.

use model::Node;

use crate::compile::Compiler;
use crate::prelude::*;

#[derive(Debug)]
struct Equal {
    value: Value,
    wanted: bool,
    place: SourceLocation,
}

pub(super) fn read(_compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    Some(Box::new(Equal {
        value: operand.to_json(),
        wanted: operator == "$eq",
        place: SourceLocation::from_node(operand),
    }))
}

impl Rule for Equal {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let is_equal = actual.is_some_and(|actual| value::same(actual, &self.value));
        if is_equal == self.wanted {
            return Found::full();
        }
        let shown = value::shown(Some(&self.value));
        let (message, expected) = if self.wanted {
            (format!("expected exactly {shown}, not {}", value::shown(actual)), self.value.clone())
        } else {
            (format!("expected anything but {shown}"), format!("not {}", value::describe(&self.value)).into())
        };
        Found::flawed(Flaw::new(&self.place, message).expected(expected).actual(actual))
    }
}
