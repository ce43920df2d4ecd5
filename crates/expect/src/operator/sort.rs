//! `$sort`: a list matches after sorting.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

use model::{Node, NodeKind};
use serde_json::Map;

use crate::compile::Compiler;
use crate::context;
use crate::host::{Argument, Function, Trouble};
use crate::notation::FUNCTION_TAG;
use crate::path;
use crate::prelude::*;

/// Variables available to an expression in `$by`.
const NAMES: [&str; 7] = ["item", "actual", "index", "array", "data", "input", "ctx"];

/// Key for the sort order.
const BY: &str = "$by";

pub(super) fn read(compiler: &mut Compiler<'_>, operand: &Node, operator: &'static str) -> Option<Box<dyn Rule>> {
    if !matches!(operand.kind, NodeKind::Map(_)) {
        compiler.wrong_operand(operand, operator, "a map of `$by` and an expectation");
        return None;
    }
    let keys = match operand.get(BY) {
        None => Vec::new(),
        Some(by) => match &by.kind {
            NodeKind::List(list) => list.iter().map(|by| Key::read(by, compiler)).collect::<Option<_>>()?,
            _ => vec![Key::read(by, compiler)?],
        },
    };
    let inner = compiler.matcher(&value::without(operand, BY));
    Some(Box::new(Sort { keys, inner, place: SourceLocation::from_node(operand) }))
}

#[derive(Debug)]
struct Sort {
    keys: Vec<Key>,
    inner: Matcher,
    place: SourceLocation,
}

/// Sort key.
#[derive(Debug)]
struct Key {
    of: SortKeySource,
    descending: bool,
}

#[derive(Debug)]
enum SortKeySource {
    Field(String),
    Expression(String),
    Code(Function),
}

impl Key {
    fn read(node: &Node, compiler: &mut Compiler<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::String(reference) if node.tag.as_deref() == Some(FUNCTION_TAG) => {
                let directory = &compiler.rules.directory;
                match compiler.host.function(reference, "", directory) {
                    Ok(function) => Some(Self { of: SortKeySource::Code(function), descending: false }),
                    Err(invalid) => {
                        compiler.problems.push(invalid.diagnostic(node));
                        None
                    }
                }
            }
            NodeKind::String(name) => {
                let (descending, name) = name.strip_prefix('-').map_or((false, name.as_str()), |name| (true, name));
                if name.is_empty() {
                    let problem = node.error(format!("`{BY}` does not name a field"));
                    compiler.problems.push(problem.help("without `$by` the items are sorted by themselves"));
                    return None;
                }
                Some(Self { of: SortKeySource::Field(name.to_owned()), descending })
            }
            NodeKind::Map(_) => {
                let mut fields = model::decode::Fields::of(node, "an item of `$by`", compiler.problems)?;
                let text = fields.required_text("$expr", compiler.problems);
                let place = fields.get("$expr");
                let orders = [("asc", false), ("desc", true)];
                let descending = fields.choice("order", &orders, compiler.problems).unwrap_or_default();
                fields.finish(compiler.problems);
                let (text, place) = text.zip(place)?;
                if let Err(invalid) = compiler.host.expression(&text, &NAMES) {
                    compiler.problems.push(invalid.diagnostic(place));
                    return None;
                }
                Some(Self { of: SortKeySource::Expression(text), descending })
            }
            _ => {
                compiler.wrong_operand(node, BY, "the name of a field, `{$expr, order}` or a list of these");
                None
            }
        }
    }

    /// Returns the value by which `item` is sorted.
    fn value(&self, item: &Value, index: usize, array: &Value, at: &Scope<'_>) -> Result<Option<Value>, Trouble> {
        match &self.of {
            SortKeySource::Field(name) => Ok(path::get(item, name).map(Cow::into_owned)),
            SortKeySource::Expression(text) => {
                let index = Value::from(index);
                let context = if text.contains("ctx") { context::of(at) } else { Value::Null };
                // Passing the whole list for each item is slow, so it is passed only to expressions that use it.
                let array = if text.contains("array") { array } else { &Value::Null };
                let scope = [
                    ("item", Some(item)),
                    ("actual", Some(item)),
                    ("index", Some(&index)),
                    ("array", Some(array)),
                    ("data", Some(&at.run.data.variables)),
                    ("input", at.run.data.input.as_ref()),
                    ("ctx", Some(&context)),
                ];
                at.run.host.evaluate(text, &scope)
            }
            SortKeySource::Code(function) => {
                let index = Value::from(index);
                let arguments = [Some(item), Some(&index), Some(array)].map(Argument::Value);
                let declared = if function.length < arguments.len() { 2 } else { arguments.len() };
                at.run
                    .host
                    .call(function, &arguments[..declared], &mut |_| Err("`validate` is not available here".into()))
            }
        }
    }
}

/// Compares two values. Missing values and null come last, numbers before strings, lists before maps.
fn order(left: Option<&Value>, right: Option<&Value>) -> Ordering {
    let rank = |value: Option<&Value>| match value {
        None => 6,
        Some(Value::Null) => 5,
        Some(Value::Object(_)) => 4,
        Some(Value::Array(_)) => 3,
        Some(Value::String(_)) => 2,
        Some(Value::Number(_)) => 1,
        Some(Value::Bool(_)) => 0,
    };
    match (left, right) {
        (Some(Value::Bool(left)), Some(Value::Bool(right))) => left.cmp(right),
        (Some(Value::Array(left)), Some(Value::Array(right))) => {
            let items = left.iter().zip(right).map(|(left, right)| order(Some(left), Some(right)));
            items.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
        }
        (Some(Value::Object(left)), Some(Value::Object(right))) => order_of_maps(left, right),
        (Some(left), Some(right)) => {
            value::compare(left, right).unwrap_or_else(|| rank(Some(left)).cmp(&rank(Some(right))))
        }
        _ => rank(left).cmp(&rank(right)),
    }
}

/// Compares two maps key by key, in the order of the sorted keys. The order in which a map is written does not matter.
fn order_of_maps(left: &Map<String, Value>, right: &Map<String, Value>) -> Ordering {
    let sorted = |map: &Map<String, Value>| map.keys().cloned().collect::<BTreeSet<String>>();
    let (left_keys, right_keys) = (sorted(left), sorted(right));
    let entries = left_keys.iter().zip(&right_keys).map(|(left_key, right_key)| {
        left_key.cmp(right_key).then_with(|| order(left.get(left_key), right.get(right_key)))
    });
    entries.fold(Ordering::Equal, Ordering::then).then(left.len().cmp(&right.len()))
}

impl Rule for Sort {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let Some(array @ Value::Array(items)) = actual else {
            let critical = self.inner.critical;
            return Found::wrong_type("`$sort` needs a list", actual, critical, &self.place);
        };
        let mut keyed = Vec::with_capacity(items.len());
        for (index, item) in items.iter().enumerate() {
            let keys: Result<Vec<_>, _> = self.keys.iter().map(|key| key.value(item, index, array, at)).collect();
            match keys {
                Ok(keys) => keyed.push((keys, item)),
                Err(Trouble::Thrown(reason)) => {
                    let message = format!("`$by` throws at item {index}: {reason}");
                    return Found::unknown(Flaw::new(&self.place, message).actual(actual));
                }
                Err(Trouble::Stopped(reason)) => return Found::unknown(Flaw::new(&self.place, reason)),
            }
        }
        keyed.sort_by(|(left, left_item), (right, right_item)| {
            if self.keys.is_empty() {
                return order(Some(left_item), Some(right_item));
            }
            let by_key = self.keys.iter().zip(left.iter().zip(right)).map(|(key, (left, right))| {
                let order = order(left.as_ref(), right.as_ref());
                if key.descending { order.reverse() } else { order }
            });
            by_key.fold(Ordering::Equal, Ordering::then)
        });
        let sorted: Value = keyed.into_iter().map(|(_, item)| item.clone()).collect();
        self.inner.judge(Some(&sorted), &Scope { strategy: at.strategy, ..at.below("") })
    }
}
