//! What operators do.

use std::rc::Rc;

use crate::error::Failure;
use crate::syntax::Operator;
use crate::value::{Value, within};

/// The value of `left operator right`. `and` and `or` are not among them: they may leave the right side out.
pub(crate) fn apply(operator: Operator, left: &Value, right: &Value) -> Result<Value, Failure> {
    match operator {
        Operator::Equal => return Ok(Value::Bool(equal(left, right)?)),
        Operator::NotEqual => return Ok(Value::Bool(!equal(left, right)?)),
        Operator::Concatenate => return concatenate(left, right),
        _ => {}
    }
    if matches!(left, Value::Null) && !matches!(operator, Operator::In | Operator::NotIn)
        || matches!(right, Value::Null)
    {
        return Err(Failure::new(format!("`{}` cannot be used with nothing (null)", operator.symbol())));
    }
    let result = match operator {
        Operator::In => member(left, right)?.map(Value::Bool),
        Operator::NotIn => member(left, right)?.map(|found| Value::Bool(!found)),
        Operator::Add => return add(left, right),
        Operator::Less | Operator::LessOrEqual | Operator::Greater | Operator::GreaterOrEqual => {
            compare(operator, left, right)
        }
        _ => calculate(operator, left, right),
    };
    result.ok_or_else(|| unsupported(operator, left, right))
}

fn unsupported(operator: Operator, left: &Value, right: &Value) -> Failure {
    Failure::new(format!("`{}` has no meaning between {} and {}", operator.symbol(), left.kind(), right.kind()))
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

fn add(left: &Value, right: &Value) -> Result<Value, Failure> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(Value::Number(left.add(*right))),
        (Value::List(left), Value::List(right)) => {
            Value::list(left.items.iter().chain(&right.items).cloned().collect())
        }
        (Value::Text(_), _) | (_, Value::Text(_)) => concatenate(left, right),
        _ => Err(unsupported(Operator::Add, left, right)),
    }
}

fn concatenate(left: &Value, right: &Value) -> Result<Value, Failure> {
    let mut text = String::new();
    left.print(&mut text)?;
    right.print(&mut text)?;
    Ok(Value::Text(text.into()))
}

/// Whether `left` is in `right`; `None` if nothing can be in it.
fn member(left: &Value, right: &Value) -> Result<Option<bool>, Failure> {
    Ok(match (left, right) {
        (_, Value::List(list)) => {
            let mut found = false;
            for item in &list.items {
                found = found || equal(left, item)?;
            }
            Some(found)
        }
        (Value::Text(part), Value::Text(whole)) => Some(whole.contains(&**part)),
        (Value::Text(key), Value::Map(map)) => Some(map.get(key).is_some()),
        (Value::Text(key), Value::Namespace(entries)) => Some(entries.borrow().iter().any(|(name, _)| name == key)),
        _ => None,
    })
}

/// How many values a comparison looks at before it gives up: shared lists can be far larger than they look.
const COMPARED: u32 = 1_000_000;

/// Whether two values are the same, through and through. A number is never the same as a text.
pub(crate) fn equal(left: &Value, right: &Value) -> Result<bool, Failure> {
    let mut left_to_do = COMPARED;
    equal_within(left, right, &mut left_to_do)
}

fn equal_within(left: &Value, right: &Value, budget: &mut u32) -> Result<bool, Failure> {
    *budget = budget.checked_sub(1).ok_or_else(|| Failure::new("the values are too large to be compared"))?;
    Ok(match (left, right) {
        (Value::Null, Value::Null) => true,
        (Value::Bool(left), Value::Bool(right)) => left == right,
        (Value::Number(left), Value::Number(right)) => left == right,
        (Value::Text(left), Value::Text(right)) => left == right,
        (Value::Function(left), Value::Function(right)) => left == right,
        (Value::Namespace(left), Value::Namespace(right)) => Rc::ptr_eq(left, right),
        (Value::List(left), Value::List(right)) if left.items.len() == right.items.len() => {
            for (left, right) in left.items.iter().zip(&right.items) {
                if !equal_within(left, right, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Map(left), Value::Map(right)) if left.entries.len() == right.entries.len() => {
            for (key, value) in &left.entries {
                let Some(other) = right.get(key) else { return Ok(false) };
                if !equal_within(value, other, budget)? {
                    return Ok(false);
                }
            }
            true
        }
        _ => false,
    })
}

/// So many spaces.
pub(crate) fn spaces(count: usize) -> Result<String, Failure> {
    within(count)?;
    Ok(" ".repeat(count))
}
