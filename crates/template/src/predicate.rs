//! Tests: `value is test`.

use crate::error::TemplateError;
use crate::number::Number;
use crate::operation::{Call, Given, Operation, named as find, names, operation, test};
use crate::operator::{Comparison, equal};
use crate::value::Value;

/// All tests. `defined` and `undefined` are handled before a value is needed, because there may be none.
pub(crate) const TESTS: &[Operation] = &[
    test("defined", |_| true),
    test("undefined", |_| false),
    test("none", |value| matches!(value, Value::Null)),
    test("boolean", |value| matches!(value, Value::Bool(_))),
    test("true", |value| matches!(value, Value::Bool(true))),
    test("false", |value| matches!(value, Value::Bool(false))),
    test("string", |value| matches!(value, Value::Text(_))),
    test("number", |value| matches!(value, Value::Number(_))),
    test("integer", |value| matches!(value, Value::Number(Number::Whole(_)))),
    operation("odd", 0, |call| Ok(Value::Bool(remainder(call)? != 0.0))),
    operation("even", 0, |call| Ok(Value::Bool(remainder(call)? == 0.0))),
    test("iterable", |value| matches!(value, Value::List(_) | Value::Text(_))),
    test("callable", |value| matches!(value, Value::Function(_))),
    test("lower", |value| matches!(value, Value::Text(text) if text.to_lowercase() == **text)),
    test("upper", |value| matches!(value, Value::Text(text) if text.to_uppercase() == **text)),
    operation("eq(value)", 1, equality),
    operation("equalto(value)", 1, equality),
];

fn equality(call: &Call<'_>) -> Result<Value, TemplateError> {
    equal(call.operand, call.value(0), call.budget).map(Value::Bool)
}

fn remainder(call: &Call<'_>) -> Result<f64, TemplateError> {
    match call.operand {
        Value::Number(number) => Ok(number.as_double() % 2.0),
        _ => Err(call.not_for("a number")),
    }
}

/// Returns the test with that name.
pub(crate) fn named(name: &str) -> Result<&'static Operation, TemplateError> {
    find(TESTS, name).ok_or_else(|| {
        let error = TemplateError::new(format!("unknown test `{name}`"));
        error.suggest("tests", name, names(TESTS))
    })
}

/// Returns `true` if `value` passes the test that a filter names. All comparisons share one limit.
pub(crate) fn passes(
    test: &Operation,
    value: &Value,
    argument: Option<&Value>,
    call: &Call<'_>,
    comparison: &mut Comparison<'_>,
) -> Result<bool, TemplateError> {
    if let (true, Some(argument)) = (matches!(test.name(), "eq" | "equalto"), argument) {
        return comparison.equal(value, argument);
    }
    call.budget.spend(value.size())?;
    let given = Given { positional: argument.cloned().into_iter().collect(), named: Vec::new() };
    test.apply(value, given, call.clock, call.chance, call.budget).map(|answer| answer.is_true())
}
