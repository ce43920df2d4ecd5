//! Regular expressions and code, which run in the JavaScript of the host.

use std::path::Path;
use std::sync::Arc;

use expect::{Answer, Argument, Function, Host, Invalid, Naming, Pattern, Strategy, Trouble};
use serde_json::{Map, Value, json};

use crate::answer_of_host;

/// The JavaScript around the module.
#[derive(Debug)]
pub struct JavaScript;

/// A regular expression of the host.
#[derive(Debug)]
struct Regex {
    source: String,
    flags: String,
}

impl Pattern for Regex {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        let answer = answer_of_host(&json!({ "test": [self.source, self.flags, text] }));
        answer.as_bool().ok_or_else(|| message(&answer))
    }
}

impl Host for JavaScript {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        match answer_of_host(&json!({ "regex": [source, flags] })) {
            Value::Bool(true) => Ok(Arc::new(Regex { source: source.to_owned(), flags: flags.to_owned() })),
            answer => Err(invalid(&answer)),
        }
    }

    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid> {
        match answer_of_host(&json!({ "parse": [text, names] })) {
            Value::Bool(true) => Ok(()),
            answer => Err(invalid(&answer)),
        }
    }

    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble> {
        let names: Vec<&str> = scope.iter().map(|(name, _)| *name).collect();
        let values: Vec<Value> = scope.iter().map(|(_, value)| maybe(*value)).collect();
        result(&answer_of_host(&json!({ "evaluate": [text, names, values] })))
    }

    fn function(&self, reference: &str, name: &str, _directory: &Path) -> Result<Function, Invalid> {
        let answer = answer_of_host(&json!({ "function": [reference, name] }));
        let Some(length) = answer.get("length").and_then(Value::as_u64) else { return Err(invalid(&answer)) };
        let strategy = match answer.get("strategy").and_then(Value::as_str) {
            None => None,
            Some(written) => Some(Strategy::named(written).ok_or_else(|| Invalid {
                message: format!("the operator {name} has the unknown strategy `{written}`"),
                range: None,
                help: Some("the strategies are `weighted` and `max`".to_owned()),
            })?),
        };
        let naming = match answer.get("virtual") {
            Some(Value::Bool(false)) => Naming::Physical,
            Some(Value::String(template)) => Naming::Template(template.as_str().into()),
            _ => Naming::Virtual,
        };
        let expects_list = match answer.get("expects") {
            Some(Value::String(kind)) => kind == "array",
            Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "array"),
            _ => false,
        };
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        Ok(Function { id: reference.into(), length, naming, strategy, expects_list })
    }

    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble> {
        let arguments: Vec<Value> = arguments.iter().map(argument).collect();
        let mut told = answer_of_host(&json!({ "call": [*function.id, arguments] }));
        // A function that asks for a match is called again with the answer, from its beginning.
        while let Some(Value::Array(asked)) = told.get_mut("validate").map(Value::take) {
            let asked: Vec<Option<Value>> = asked.into_iter().map(given).collect();
            told = answer_of_host(&match answer(&asked) {
                Ok(value) => json!({ "answer": value }),
                Err(message) => json!({ "refusal": message }),
            });
        }
        result(&told)
    }
}

/// Returns an argument, with marks for what JSON lacks.
fn argument(argument: &Argument<'_>) -> Value {
    match argument {
        Argument::Value(value) => maybe(*value),
        Argument::Fixture(values) => {
            let values: Map<String, Value> =
                values.iter().filter_map(|(key, value)| Some(((*key).to_owned(), (*value)?.clone()))).collect();
            json!({ "fixture": values })
        }
        Argument::Context(values) => json!({ "context": values }),
        Argument::Validate => json!({ "validate": true }),
    }
}

/// Returns `{"value": …}`, or `{}` for `undefined`.
fn maybe(value: Option<&Value>) -> Value {
    value.map_or_else(|| json!({}), |value| json!({ "value": value }))
}

/// Returns the value of `{"value": …}`; `None` without one.
fn given(mut value: Value) -> Option<Value> {
    value.get_mut("value").map(Value::take)
}

fn result(answer: &Value) -> Result<Option<Value>, Trouble> {
    match answer.get("stopped") {
        Some(_) => Err(Trouble::Stopped(message(answer))),
        None if answer.get("error").is_some() => Err(Trouble::Thrown(message(answer))),
        None => Ok(answer.get("value").cloned()),
    }
}

fn message(answer: &Value) -> String {
    let text = answer.get("error").or_else(|| answer.get("stopped")).and_then(Value::as_str);
    text.unwrap_or("the host did not answer").to_owned()
}

fn invalid(answer: &Value) -> Invalid {
    Invalid { message: message(answer), range: None, help: None }
}
