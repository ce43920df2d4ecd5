//! `$eq` and `$ne`: exactly this value, or any other.

use model::Node;

use crate::compile::Compiler;
use crate::found::Pass;
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
        match Pass::equal(actual, &self.value) {
            Pass::Unknown => return Found::rounded(actual, &self.place),
            pass if (pass == Pass::Yes) == self.wanted => return Found::full(),
            _ => {}
        }
        let shown = value::shown(Some(&self.value));
        let (message, expected) = if self.wanted {
            (format!("expected exactly {shown}, not {}", value::shown(actual)), self.value.clone())
        } else {
            (format!("expected anything but {shown}"), format!("not {}", value::describe(&self.value)).into())
        };
        Found::flawed(Flaw::new(&self.place, message).expected(expected).actual(actual))
    }

    fn quick_score(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        let pass = Pass::equal(actual, &self.value);
        (pass != Pass::Unknown).then(|| QuickScore::from_bool((pass == Pass::Yes) == self.wanted))
    }
}
