//! Implementation of operators.

use std::rc::Rc;

use crate::budget::Budget;
use crate::error::TemplateError;
use crate::limit;
use crate::syntax::Operator;
use crate::value::{Map, Value, within};

/// Returns the value of `left operator right`, for all operators except `and` and `or`, which do not always evaluate
/// the right side.
pub(crate) fn apply(operator: Operator, left: &Value, right: &Value, budget: &Budget) -> Result<Value, TemplateError> {
    match operator {
        Operator::Equal => return Ok(Value::Bool(equal(left, right, budget)?)),
        Operator::NotEqual => return Ok(Value::Bool(!equal(left, right, budget)?)),
        Operator::Concatenate => return concatenate(left, right),
        _ => {}
    }
    if matches!(left, Value::Null) && !matches!(operator, Operator::In | Operator::NotIn)
        || matches!(right, Value::Null)
    {
        return Err(TemplateError::new(format!("`{}` cannot be used with null", operator.symbol())));
    }
    let result = match operator {
        Operator::In => member(left, right, budget)?.map(Value::Bool),
        Operator::NotIn => member(left, right, budget)?.map(|found| Value::Bool(!found)),
        Operator::Add => return add(left, right),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            compare(operator, left, right)
        }
        _ => calculate(operator, left, right),
    };
    result.ok_or_else(|| unsupported(operator, left, right))
}

fn unsupported(operator: Operator, left: &Value, right: &Value) -> TemplateError {
    TemplateError::new(format!("`{}` cannot be used with {} and {}", operator.symbol(), left.kind(), right.kind()))
}

fn calculate(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    let (Value::Number(left), Value::Number(right)) = (left, right) else { return None };
    Some(Value::Number(match operator {
        Operator::Subtract => left.subtract(*right),
        Operator::Multiply => left.multiply(*right),
        Operator::Divide => left.divide(*right),
        Operator::Remainder => left.remainder(*right),
        _ => return None,
    }))
}

fn compare(operator: Operator, left: &Value, right: &Value) -> Option<Value> {
    let order = match (left, right) {
        (Value::Number(left), Value::Number(right)) => left.partial_cmp(right),
        (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
        _ => return None,
    };
    Some(Value::Bool(order.is_some_and(|order| match operator {
        Operator::Less => order.is_lt(),
        Operator::LessOrEqual => order.is_le(),
        Operator::Greater => order.is_gt(),
        _ => order.is_ge(),
    })))
}

fn add(left: &Value, right: &Value) -> Result<Value, TemplateError> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(left.add(*right))),
        (Value::List(left), Value::List(right)) => {
            Value::list(left.items.iter().chain(&right.items).cloned().collect())
        }
        (Value::Text(_), _) | (_, Value::Text(_)) => concatenate(left, right),
        _ => Err(unsupported(Operator::Add, left, right)),
    }
}

fn concatenate(left: &Value, right: &Value) -> Result<Value, TemplateError> {
    let mut text = String::new();
    left.print(&mut text)?;
    right.print(&mut text)?;
    Ok(Value::Text(text.into()))
}

/// Returns `true` if `left` is in `right`; `None` if `right` cannot contain anything.
fn member(left: &Value, right: &Value, budget: &Budget) -> Result<Option<bool>, TemplateError> {
    Ok(match (left, right) {
        (_, Value::List(list)) => {
            let mut comparison = Comparison::new(budget);
            let mut found = false;
            for item in &list.items {
                found = found || comparison.equal(left, item)?;
            }
            Some(found)
        }
        (Value::Text(part), Value::Text(whole)) => Some(whole.contains(&**part)),
        (Value::Text(key), Value::Map(map)) => Some(map.get(key).is_some()),
        (Value::Text(key), Value::Namespace(entries)) => Some(entries.borrow().iter().any(|(name, _)| name == key)),
        _ => None,
    })
}

/// Maximum number of values in a comparison. Shared lists can be far larger than they look.
const COMPARED: usize = 1_000_000;

/// Comparison of values with a common limit.
pub(crate) struct Comparison<'a> {
    budget: &'a Budget,
    /// Number of values compared. Long strings count as several.
    seen: usize,
    /// How many of them have been charged to the budget.
    paid: usize,
}

impl<'a> Comparison<'a> {
    pub(crate) fn new(budget: &'a Budget) -> Self {
        Self { budget, seen: 0, paid: 0 }
    }

    /// Returns `true` if two values are deeply equal. A number never equals a string.
    pub(crate) fn equal(&mut self, left: &Value, right: &Value) -> Result<bool, TemplateError> {
        let same = self.same(left, right)?;
        let steps = (self.seen - self.paid) / limit::VALUES_A_STEP;
        self.paid += steps * limit::VALUES_A_STEP;
        self.budget.spend(steps)?;
        Ok(same)
    }

    fn see(&mut self, values: usize) -> Result<(), TemplateError> {
        self.seen = self.seen.saturating_add(values);
        if self.seen > COMPARED {
            return Err(TemplateError::new("the values are too large to be compared"));
        }
        Ok(())
    }

    fn same(&mut self, left: &Value, right: &Value) -> Result<bool, TemplateError> {
        self.see(1)?;
        Ok(match (left, right) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Number(left), Value::Number(right)) => left == right,
            (Value::Text(left), Value::Text(right)) if left.len() == right.len() => {
                self.see(left.len() / limit::WEIGHED_BYTES)?;
                left == right
            }
            (Value::Function(left), Value::Function(right)) => left == right,
            (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
            (Value::List(left), Value::List(right)) if left.items.len() == right.items.len() => {
                for (left, right) in left.items.iter().zip(&right.items) {
                    if !self.same(left, right)? {
                        return Ok(false);
                    }
                }
                true
            }
            (Value::Map(left), Value::Map(right)) if left.entries.len() == right.entries.len() => {
                self.same_entries(left, right)?
            }
            _ => false,
        })
    }

    /// Returns `true` if two maps of the same size have the same members, in any order.
    fn same_entries(&mut self, left: &Map, right: &Map) -> Result<bool, TemplateError> {
        for (index, (key, value)) in left.entries.iter().enumerate() {
            let other = match right.entries.get(index) {
                Some((same, other)) if same == key => other,
                _ => {
                    self.see(right.entries.len())?;
                    let Some(other) = right.get(key) else { return Ok(false) };
                    other
                }
            };
            if !self.same(value, other)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Returns `true` if two values are deeply equal.
pub(crate) fn equal(left: &Value, right: &Value, budget: &Budget) -> Result<bool, TemplateError> {
    Comparison::new(budget).equal(left, right)
}

/// Returns `count` spaces.
pub(crate) fn spaces(count: usize) -> Result<String, TemplateError> {
    within(count)?;
    Ok(" ".repeat(count))
}
