//! Tests: `value is test`.

use crate::error::TemplateError;
use crate::number::Number;
use crate::operation::{self, Call, Given, Operation, plain};
use crate::operator::{Comparison, equal};
use crate::value::Value;

/// All tests. `defined` and `undefined` are handled before a value is needed, since there may be none.
pub(crate) const TESTS: &[Operation] = &[
    plain("defined", "True if the variable or attribute exists.", "{{ x is defined }}", "false", |_| yes(true)),
    plain("undefined", "True if the variable or attribute does not exist.", "{{ x is undefined }}", "true", |_| {
        yes(false)
    }),
    plain("none", "True for null.", "{{ none is none }}", "true", |call| yes(matches!(call.operand, Value::Null))),
    plain("boolean", "True for booleans.", "{{ false is boolean }}", "true", |call| {
        yes(matches!(call.operand, Value::Bool(_)))
    }),
    plain("true", "True only for true.", "{{ 1 is true }}", "false", |call| {
        yes(matches!(call.operand, Value::Bool(true)))
    }),
    plain("false", "True only for false.", "{{ false is false }}", "true", |call| {
        yes(matches!(call.operand, Value::Bool(false)))
    }),
    plain("string", "True for strings.", "{{ 'a' is string }}", "true", |call| {
        yes(matches!(call.operand, Value::Text(_)))
    }),
    plain("number", "True for numbers.", "{{ '1' is number }}", "false", |call| {
        yes(matches!(call.operand, Value::Number(_)))
    }),
    plain("integer", "True for integers.", "{{ 3 is integer }}", "true", |call| {
        yes(matches!(call.operand, Value::Number(Number::Whole(_))))
    }),
    plain("odd", "True for odd numbers.", "{{ 3 is odd }}", "true", |call| yes(remainder(call)? != 0.0)),
    plain("even", "True for even numbers.", "{{ 3 is even }}", "false", |call| yes(remainder(call)? == 0.0)),
    plain("iterable", "True for lists and strings.", "{{ [1] is iterable }}", "true", |call| {
        yes(matches!(call.operand, Value::List(_) | Value::Text(_)))
    }),
    plain("callable", "True for functions.", "{{ range is callable }}", "true", |call| {
        yes(matches!(call.operand, Value::Function(_)))
    }),
    plain("lower", "True for strings without upper-case letters.", "{{ 'a' is lower }}", "true", |call| {
        yes(matches!(call.operand, Value::Text(text) if text.to_lowercase() == **text))
    }),
    plain("upper", "True for strings without lower-case letters.", "{{ 'a' is upper }}", "false", |call| {
        yes(matches!(call.operand, Value::Text(text) if text.to_uppercase() == **text))
    }),
    plain("eq", "True if the values are equal.", "{{ 1 is eq(1) }}", "true", equality).takes(
        1,
        &["value"],
        "eq(value)",
    ),
    plain("equalto", "True if the values are equal.", "{{ [1] is equalto([2]) }}", "false", equality).takes(
        1,
        &["value"],
        "equalto(value)",
    ),
];

fn equality(call: &Call<'_>) -> Result<Value, TemplateError> {
    yes(equal(call.operand, call.value(0), call.budget)?)
}

fn yes(answer: bool) -> Result<Value, TemplateError> {
    Ok(Value::Bool(answer))
}

fn remainder(call: &Call<'_>) -> Result<f64, TemplateError> {
    match call.operand {
        Value::Number(number) => Ok(number.as_double() % 2.0),
        _ => Err(call.not_for("a number")),
    }
}

/// Returns the test of that name.
///
/// # Errors
/// Returns an error if there is none.
pub(crate) fn named(name: &str) -> Result<&'static Operation, TemplateError> {
    operation::named(TESTS, name).ok_or_else(|| {
        let error = TemplateError::new(format!("unknown test `{name}`"));
        error.suggest("tests", name, TESTS.iter().map(|test| test.entry.name))
    })
}

/// True if `value` passes the test that a filter names. All comparisons share one limit.
pub(crate) fn passes(
    test: &Operation,
    value: &Value,
    argument: Option<&Value>,
    call: &Call<'_>,
    comparison: &mut Comparison<'_>,
) -> Result<bool, TemplateError> {
    if let (true, Some(argument)) = (matches!(test.entry.name, "eq" | "equalto"), argument) {
        return comparison.equal(value, argument);
    }
    call.budget.spend(value.size())?;
    let given = Given { positional: argument.cloned().into_iter().collect(), named: Vec::new() };
    test.apply(value, given, call.clock, call.chance, call.budget).map(|answer| answer.is_true())
}
