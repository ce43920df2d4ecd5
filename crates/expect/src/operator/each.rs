//! `$each`: every item of a list matches.

use model::Node;

use crate::compile::Compiler;
use crate::prelude::*;
use crate::strategy::Strategy;

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, _operator: &'static str) -> Option<Box<dyn Rule>> {
    let wanted = compiler.matcher(operand);
    Some(Box::new(Each { wanted, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct Each {
    wanted: Matcher,
    place: SourceLocation,
}

impl Rule for Each {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(Value::Array(items)) = actual else {
            let critical = self.wanted.critical;
            return Found::wrong_type("`$each` needs a list", actual, critical, &self.place);
        };
        let shares = Strategy::Weighted.distribute(&at.run.rules.budget, &vec![Some(1.0); items.len()]);
        let found = items.iter().enumerate().map(|(index, item)| {
            let here = Scope { present: true, ..at.item("$each", index, items.len()) };
            self.wanted.judge(Some(item), &here)
        });
        Strategy::Weighted.aggregate(found, &shares, &self.place)
    }
}
