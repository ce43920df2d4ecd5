//! `$nth`, `$first` and `$last`: one item of a list matches.

use model::{Node, NodeKind};

use crate::compile::{Compiler, Operator};
use crate::prelude::*;

/// Key of the index.
const INDEX: &str = "$index";

/// The `$nth` operator.
pub const NTH: Operator = Operator {
    name: "$nth",
    summary: "The item at `$index` matches the rest of the map.",
    read: |compiler, operand| {
        if !matches!(operand.kind, NodeKind::Map(_)) {
            compiler.wrong_operand(operand, "$nth", "a map of `$index` and an expectation");
            return None;
        }
        let index = match operand.get(INDEX) {
            None => 0,
            Some(node) => index(node, compiler)?,
        };
        Some(Nth::of(compiler, &value::without(operand, INDEX), index))
    },
};

/// The `$first` operator.
pub const FIRST: Operator = Operator {
    name: "$first",
    summary: "The first item of the list matches.",
    read: |compiler, operand| {
        let wanted = without_index(operand, "$first", compiler);
        Some(Nth::of(compiler, &wanted, 0))
    },
};

/// The `$last` operator.
pub const LAST: Operator = Operator {
    name: "$last",
    summary: "The last item of the list matches.",
    read: |compiler, operand| {
        let wanted = without_index(operand, "$last", compiler);
        Some(Nth::of(compiler, &wanted, -1))
    },
};

#[derive(Debug)]
struct Nth {
    index: i64,
    inner: Matcher,
    place: Place,
}

impl Nth {
    fn of(compiler: &mut Compiler<'_>, wanted: &Node, index: i64) -> Box<dyn Rule> {
        let inner = compiler.matcher(wanted);
        Box::new(Self { index, inner, place: Place::of(wanted) })
    }
}

fn index(node: &Node, compiler: &mut Compiler<'_>) -> Option<i64> {
    let index = match &node.kind {
        NodeKind::Number(number) => number.as_i64().or_else(|| {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() < 9.0e15).then_some(float as i64)
        }),
        _ => None,
    };
    if index.is_none() {
        compiler.problems.push(node.error(format!("`{INDEX}` must be a whole number, not {}", node.to_json())));
    }
    index
}

/// Removes `$index`, which has no meaning for the first or the last item, and reports it.
fn without_index(operand: &Node, operator: &str, compiler: &mut Compiler<'_>) -> Node {
    let Some(index) = operand.get(INDEX) else { return operand.clone() };
    let problem = index.warning(format!("`{INDEX}` has no effect in `{operator}`"));
    compiler.problems.push(problem.help("`$nth` takes the item at an index"));
    value::without(operand, INDEX)
}

impl Rule for Nth {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let critical = self.inner.critical;
        let missing =
            |message: String| Found::flawed(Flaw { critical, ..Flaw::new(&self.place, message).actual(actual) });
        let Some(Value::Array(items)) = actual else {
            return missing(format!("expected a list, not {}", value::kind(actual)));
        };
        let count = i64::try_from(items.len()).unwrap_or(i64::MAX);
        let index = if self.index < 0 { count + self.index } else { self.index };
        let item = usize::try_from(index).ok().and_then(|index| items.get(index));
        let Some(item) = item else {
            return missing(format!("there is no item {} in a list of {count}", self.index));
        };
        let here = Scope { present: true, strategy: at.strategy, ..at.below(&format!("[{index}]")) };
        self.inner.judge(Some(item), &here)
    }
}
