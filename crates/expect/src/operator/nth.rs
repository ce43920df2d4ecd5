//! `$nth`, `$first` and `$last`: one item of a list matches.

use model::{Node, NodeKind};

use crate::compile::Compiler;
use crate::prelude::*;

/// Key of the index.
const INDEX: &str = "$index";

#[derive(Debug)]
struct Nth {
    index: i64,
    inner: Matcher,
    place: SourceLocation,
}

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    let given = operand.get(INDEX);
    let index = match (operator, given) {
        ("$nth", _) if !matches!(operand.kind, NodeKind::Map(_)) => {
            compiler.wrong_operand(operand, operator, "a map of `$index` and an expectation");
            return None;
        }
        ("$nth", Some(node)) => index(node, compiler)?,
        ("$last", _) => -1,
        _ => 0,
    };
    if let Some(node) = given.filter(|_| operator != "$nth") {
        let problem = node.warning(format!("`{INDEX}` has no effect in `{operator}`"));
        compiler.problems.push(problem.help("`$nth` takes the item at an index"));
    }
    let wanted = value::without(operand, INDEX);
    let inner = compiler.matcher(&wanted);
    Some(Box::new(Nth { index, inner, place: SourceLocation::from_node(&wanted) }))
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
