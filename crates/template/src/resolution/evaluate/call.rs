//! Evaluates calls, filters and tests.

use super::Evaluator;
use crate::access::namespace;
use crate::error::{ErrorKind, TemplateError};
use crate::filter::FILTERS;
use crate::function::FUNCTIONS;
use crate::operation::{Given, Operation, named, names};
use crate::syntax::{Arguments, Expression, Kind};
use crate::value::{Function, Value};
use crate::{method, nunjucks, predicate};

/// Returns the result of `callee(…)`.
pub(crate) fn function<'a>(
    evaluator: &mut Evaluator<'a>,
    callee: &'a Expression,
    arguments: &'a Arguments,
) -> Result<Value, TemplateError> {
    if let Kind::Member(operand, name) = &callee.kind {
        let operand = evaluator.value(operand)?;
        let given = evaluator.given(arguments)?;
        let own = nunjucks::method(&operand, &name.value).filter(|_| evaluator.is_nunjucks);
        let method = own.map_or_else(|| method::named(&operand, &name.value), Ok);
        let method = method.map_err(|error| error.at(name.range.clone()))?;
        return apply(evaluator, method, &operand, given);
    }
    let called = match &callee.kind {
        // Variables do not hide functions with the same name, because variables cannot be called.
        Kind::Name(name) => find_function(evaluator, name),
        _ => match evaluator.value(callee)? {
            Value::Function(function) => Ok(function),
            other => Err(TemplateError::new(format!("{} cannot be called", other.kind()))),
        },
    };
    let called = called.map_err(|error| error.at(callee.range.clone()))?;
    let given = evaluator.given(arguments)?;
    run(evaluator, called, given)
}

fn find_function(evaluator: &Evaluator<'_>, name: &str) -> Result<Function, TemplateError> {
    let local = evaluator.local(name);
    if let Some(Value::Function(function)) = local {
        return Ok(*function);
    }
    if let Some(function) = named(FUNCTIONS, name) {
        return Ok(Function::Global(function.name()));
    }
    if local.is_some() || evaluator.resolution.variables.raw(name).is_some() {
        return Err(TemplateError::new(format!("`{name}` is a variable, which cannot be called")));
    }
    let error = TemplateError::new(format!("unknown function `{name}`"));
    Err(error.suggest("functions", name, names(FUNCTIONS)))
}

fn run(evaluator: &mut Evaluator<'_>, function: Function, given: Given) -> Result<Value, TemplateError> {
    match function {
        Function::Macro(number) => evaluator.run_macro(number, given),
        Function::Global("namespace") => namespace(given),
        Function::Global(name) => match named(FUNCTIONS, name) {
            Some(function) => apply(evaluator, function, &Value::Null, given),
            None => Ok(Value::Null),
        },
    }
}

fn apply(
    evaluator: &Evaluator<'_>,
    operation: &Operation,
    operand: &Value,
    given: Given,
) -> Result<Value, TemplateError> {
    let variables = evaluator.resolution.variables;
    operation.apply(operand, given, &variables.ambient, &variables.chance, &evaluator.budget)
}

/// Returns the result of `operand | name(…)`.
pub(crate) fn filter<'a>(
    evaluator: &mut Evaluator<'a>,
    operand: &'a Expression,
    name: &str,
    arguments: &'a Arguments,
) -> Result<Value, TemplateError> {
    let own = nunjucks::filter(name).filter(|_| evaluator.is_nunjucks);
    if own.is_some() && matches!(name, "default" | "d") {
        return default(evaluator, operand, arguments);
    }
    let operand = evaluator.value(operand)?;
    let mut given = evaluator.given(arguments)?;
    if let Some(filter) = own {
        return apply(evaluator, filter, &operand, given);
    }
    let function = match evaluator.local(name) {
        Some(Value::Function(function)) => Some(*function),
        _ if evaluator.is_nunjucks => None,
        _ => named(FUNCTIONS, name).map(|function| Function::Global(function.name())),
    };
    if let Some(function) = function {
        given.positional.insert(0, operand);
        return run(evaluator, function, given);
    }
    match named(FILTERS, name) {
        Some(filter) => apply(evaluator, filter, &operand, given),
        None if evaluator.is_nunjucks => {
            let error = TemplateError::new(format!("unknown filter `{name}`"));
            Err(error.suggest("filters", name, nunjucks::filter_names()))
        }
        None => Err(unknown_filter(name)),
    }
}

/// Returns the operand, or the argument if there is no operand; with a second argument that is true, also if the operand
/// is false, null or empty.
fn default<'a>(
    evaluator: &mut Evaluator<'a>,
    operand: &'a Expression,
    arguments: &'a Arguments,
) -> Result<Value, TemplateError> {
    let found = match evaluator.value(operand) {
        Err(error) if error.kind == ErrorKind::Missing => None,
        other => Some(other?),
    };
    let Given { positional, .. } = evaluator.given(arguments)?;
    let is_strict = positional.get(1).is_some_and(Value::is_true);
    let found = found.filter(|value| !is_strict || value.is_true());
    Ok(found.or_else(|| positional.into_iter().next()).unwrap_or(Value::Null))
}

fn unknown_filter(name: &str) -> TemplateError {
    let error = TemplateError::new(format!("unknown filter `{name}`"));
    if matches!(name, "default" | "d") {
        return error.help("write `value if value is defined else …`");
    }
    error.suggest("filters", name, names(FILTERS).chain(names(FUNCTIONS)))
}

/// Returns the result of `operand is name(…)`.
pub(crate) fn test<'a>(
    evaluator: &mut Evaluator<'a>,
    operand: &'a Expression,
    name: &str,
    arguments: &'a Arguments,
) -> Result<bool, TemplateError> {
    // `True`, `False` and `None` are names of tests as well as values.
    let name = match name {
        "True" => "true",
        "False" => "false",
        "None" => "none",
        other => other,
    };
    let test = predicate::named(name)?;
    let value = evaluator.value(operand);
    if matches!(name, "defined" | "undefined") {
        let defined = match value {
            Ok(_) => true,
            Err(error) if error.kind == ErrorKind::Missing => false,
            Err(error) => return Err(error),
        };
        return Ok(defined == (name == "defined"));
    }
    let given = evaluator.given(arguments)?;
    apply(evaluator, test, &value?, given).map(|answer| answer.is_true())
}
