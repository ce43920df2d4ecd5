//! Evaluates calls, filters and tests.

use std::ops::Range;

use super::Evaluator;
use crate::access::namespace;
use crate::error::{Failure, Nature, TemplateError};
use crate::operation::{Given, Operation};
use crate::syntax::{Arguments, Expression, Kind, Located};
use crate::value::{Function, Value};
use crate::{filter as filters, function as functions, method, predicate};

/// Returns the result of `callee(…)`.
pub(crate) fn function<'a>(
    evaluator: &mut Evaluator<'a>,
    callee: &'a Expression,
    arguments: &'a Arguments,
    range: &Range<usize>,
) -> Result<Value, TemplateError> {
    if let Kind::Member(of, name) = &callee.kind {
        let operand = evaluator.value(of)?;
        let given = evaluator.given(arguments)?;
        let method = method::named(&operand, &name.value).map_err(|failure| failure.at(name.range.clone()))?;
        return apply(evaluator, method, &operand, given, range);
    }
    let called = match &callee.kind {
        // Variables do not hide functions of the same name, because variables cannot be called.
        Kind::Name(name) => called(evaluator, name).map_err(|failure| failure.at(callee.range.clone()))?,
        _ => match evaluator.value(callee)? {
            Value::Function(function) => function,
            other => {
                let message = format!("{} cannot be called", other.kind());
                return Err(TemplateError::new(callee.range.clone(), message));
            }
        },
    };
    let given = evaluator.given(arguments)?;
    run(evaluator, called, given, range)
}

fn called(evaluator: &Evaluator<'_>, name: &str) -> Result<Function, Failure> {
    let local = evaluator.local(name);
    if let Some(Value::Function(function)) = local {
        return Ok(*function);
    }
    if let Some(function) = functions::named(name) {
        return Ok(Function::Global(function.entry.name));
    }
    if local.is_some() || evaluator.resolution.variables.raw(name).is_some() {
        return Err(Failure::new(format!("`{name}` is a variable, which cannot be called")));
    }
    let known: Vec<&str> = functions::FUNCTIONS.iter().map(|function| function.entry.name).collect();
    Err(Failure::new(format!("unknown function `{name}`")).suggest("functions", name, &known))
}

fn run(
    evaluator: &mut Evaluator<'_>,
    function: Function,
    given: Given,
    range: &Range<usize>,
) -> Result<Value, TemplateError> {
    match function {
        Function::Macro(number) => evaluator.run_macro(number, given, range),
        Function::Global("namespace") => namespace(given).map_err(|failure| failure.at(range.clone())),
        Function::Global(name) => match functions::named(name) {
            Some(function) => apply(evaluator, function, &Value::Null, given, range),
            None => Ok(Value::Null),
        },
    }
}

fn apply(
    evaluator: &Evaluator<'_>,
    operation: &Operation,
    operand: &Value,
    given: Given,
    range: &Range<usize>,
) -> Result<Value, TemplateError> {
    let variables = evaluator.resolution.variables;
    let result = operation.apply(operand, given, variables.clock(), variables.chance(), &evaluator.budget);
    result.map_err(|failure| failure.at(range.clone()))
}

/// Returns the result of `operand | name(…)`.
pub(crate) fn filter<'a>(
    evaluator: &mut Evaluator<'a>,
    operand: &'a Expression,
    name: &'a Located<String>,
    arguments: &'a Arguments,
) -> Result<Value, TemplateError> {
    let operand = evaluator.value(operand)?;
    let mut given = evaluator.given(arguments)?;
    let function = match evaluator.local(&name.value) {
        Some(Value::Function(function)) => Some(*function),
        _ => functions::named(&name.value).map(|function| Function::Global(function.entry.name)),
    };
    if let Some(function) = function {
        given.positional.insert(0, operand);
        return run(evaluator, function, given, &name.range);
    }
    match filters::named(&name.value) {
        Some(filter) => apply(evaluator, filter, &operand, given, &name.range),
        None => Err(unknown_filter(&name.value).at(name.range.clone())),
    }
}

fn unknown_filter(name: &str) -> Failure {
    let failure = Failure::new(format!("unknown filter `{name}`"));
    if matches!(name, "default" | "d") {
        return failure.help("write `value if value is defined else …`");
    }
    let all = filters::FILTERS.iter().chain(functions::FUNCTIONS);
    let known: Vec<&str> = all.map(|filter| filter.entry.name).collect();
    failure.suggest("filters", name, &known)
}

/// Returns the result of `operand is name(…)`.
pub(crate) fn test<'a>(
    evaluator: &mut Evaluator<'a>,
    operand: &'a Expression,
    name: &'a Located<String>,
    arguments: &'a Arguments,
) -> Result<bool, TemplateError> {
    // `True`, `False` and `None` are names of tests as well as values.
    let test_name = match name.value.as_str() {
        "True" => "true",
        "False" => "false",
        "None" => "none",
        other => other,
    };
    let test = predicate::named(test_name).map_err(|failure| failure.at(name.range.clone()))?;
    let value = evaluator.value(operand);
    if matches!(test_name, "defined" | "undefined") {
        let defined = match value {
            Ok(_) => true,
            Err(error) if error.nature == Nature::Missing => false,
            Err(error) => return Err(error),
        };
        return Ok(defined == (test_name == "defined"));
    }
    let given = evaluator.given(arguments)?;
    apply(evaluator, test, &value?, given, &name.range).map(|answer| answer.is_true())
}
