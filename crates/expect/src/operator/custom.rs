//! Custom operators: functions in modules.

use std::borrow::Cow;

use model::Node;
use model::decode::Problems;

use super::ALL;
use crate::compile::Compiler;
use crate::context;
use crate::found::Pass;
use crate::host::{Argument, Function, Naming, Trouble};
use crate::prelude::*;
use crate::returned;
use crate::rule::Evaluation;

/// Key that separates the expected value from options.
const VALUE: &str = "$value";

/// Number of parameters of an operator that matches parts itself.
const RAW: usize = 4;

/// Maximum number of operators that wait for each other. Each uses some of the thread's stack and an engine of its
/// own.
const MAX_WAITING: usize = 16;

/// Maximum total number of requests made while other operators wait. Without it, operators that each make several
/// requests would not terminate.
const MAX_QUESTIONS: usize = 10_000;

/// Call of a custom operator, with its operand.
#[derive(Debug)]
struct Custom {
    name: String,
    function: Function,
    expected: Value,
    options: Option<Value>,
    place: SourceLocation,
}

/// Reads the operand of the operator called `name`. If it has the [`VALUE`] key, its other keys are options.
pub(super) fn read(name: &str, function: Function, operand: &Node) -> Box<dyn Rule> {
    let (mut expected, mut options) = (operand.to_json(), None);
    if function.length != RAW
        && let Value::Object(map) = &mut expected
        && let Some(value) = map.shift_remove(VALUE)
    {
        options = Some(std::mem::replace(&mut expected, value));
    }
    Box::new(Custom { name: name.to_owned(), function, expected, options, place: SourceLocation::from_node(operand) })
}

impl Custom {
    /// Returns the top-level keys of the fixture, then the values that the operator needs.
    fn fixture<'v>(&'v self, at: &Scope<'v>) -> Vec<(&'v str, Option<&'v Value>)> {
        let mut values: Vec<(&str, Option<&Value>)> = match &at.run.data.fixture {
            Value::Object(map) => map.iter().map(|(key, value)| (key.as_str(), Some(value))).collect(),
            Value::Null => Vec::new(),
            other => vec![("input", Some(other))],
        };
        values.retain(|(key, _)| !matches!(*key, "$data" | "$options"));
        values.push(("$data", Some(&at.run.data.variables)));
        values.push(("$options", self.options.as_ref()));
        values
    }
}

impl Rule for Custom {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        if self.function.expects_list && !matches!(actual, Some(Value::Array(_))) {
            let kind = script_type(actual);
            let message = format!("Operator {} requires an array, but got {kind}", self.name);
            return Found::flawed(Flaw::new(&self.place, message).actual(actual));
        }
        let here = match self.function.naming {
            Naming::Physical => Scope { strategy: at.strategy, ..at.below(&self.name) },
            Naming::Virtual | Naming::Template(_) => at.clone(),
        };
        let strategy = self.function.strategy.or(here.strategy).unwrap_or_default();
        if at.waiting == 0 {
            at.run.asked.set(0);
        }
        let context = || context::to_json(&here, strategy, &self.name, &self.function.naming, context::of(&here));
        let mut answer = |asked: &[Option<Value>]| validate(asked, &here);
        let expected = Argument::Value(Some(&self.expected));
        let called = if self.function.length == RAW {
            let arguments = [Argument::Value(actual), expected, Argument::Context(context()), Argument::Validate];
            at.run.host.call(&self.function, &arguments, &mut answer)
        } else {
            let arguments = [Argument::Value(actual), expected, Argument::Fixture(self.fixture(&here))];
            at.run.host.call(&self.function, &arguments, &mut answer)
        };
        let mut found = match called {
            Ok(result) => returned::read(result.as_ref(), Some(&self.expected), actual, &here, &self.place),
            // An error in the user's code says nothing about the agent.
            Err(Trouble::Thrown(reason) | Trouble::Stopped(reason)) => {
                let flaw = Flaw::new(&self.place, format!("`{}`: {reason}", self.name));
                Found::unknown(flaw.expected(self.expected.clone()).actual(actual))
            }
        };
        for flaw in &mut found.flaws {
            flaw.key.get_or_insert_with(|| here.key.clone());
        }
        found
    }
}

/// Answers `validate(actual, expected, ctx)` with the result as JSON.
fn validate(asked: &[Option<Value>], at: &Scope<'_>) -> Result<Value, String> {
    let [actual, expected, rest @ ..] = asked else {
        return Err("validate needs an actual and an expected value".into());
    };
    may_ask(at)?;
    let expected = expected.clone().unwrap_or_default();
    let context = rest.first().and_then(Option::as_ref);
    let mut problems = Problems::new();
    let rules = match context {
        Some(context) => context::rules(context, at.run.rules, &mut problems),
        None => Cow::Borrowed(at.run.rules),
    };
    let matcher = {
        let Evaluation { host, diff, .. } = *at.run;
        let (rules, problems) = (&*rules, &mut problems);
        let mut compiler = Compiler { operators: &ALL, rules, host, diff, problems, critical: false };
        compiler.matcher(&value::node_of(&expected))
    };
    if let Some(problem) = problems.iter().find(|problem| problem.is_error()) {
        return Err(problem.message.clone());
    }
    let run = Evaluation { rules: &rules, asked: at.run.asked.clone(), ..*at.run };
    let here = match context {
        Some(context) => context::at(context, at),
        None => at.below(""),
    };
    let here = Scope { run: &run, waiting: at.waiting + 1, ..here };
    let found = matcher.judge(actual.as_ref(), &here);
    at.run.asked.set(run.asked.get());
    // A script would treat any result other than a match as a mismatch, so an undecided result becomes an error.
    if found.pass == Pass::Unknown {
        let reason = found.flaws.into_iter().find_map(|flaw| flaw.message);
        return Err(reason.unwrap_or_else(|| "it is undecided whether it matches".into()));
    }
    Ok(context::result_json(found, &here.key))
}

/// Returns an error if an operator at `at` must not make any more requests.
fn may_ask(at: &Scope<'_>) -> Result<(), String> {
    let asked = &at.run.asked;
    if at.waiting == 0 {
        return Ok(());
    }
    if at.waiting >= MAX_WAITING {
        return Err(format!("more than {MAX_WAITING} operators wait for each other"));
    }
    asked.set(asked.get() + 1);
    if asked.get() > MAX_QUESTIONS {
        return Err(format!("operators that wait for each other made more than {MAX_QUESTIONS} times"));
    }
    Ok(())
}

/// Returns the result of JavaScript's `typeof`.
fn script_type(value: Option<&Value>) -> &'static str {
    match value {
        None => "undefined",
        Some(Value::Bool(_)) => "boolean",
        Some(Value::Number(_)) => "number",
        Some(Value::String(_)) => "string",
        Some(Value::Null | Value::Array(_) | Value::Object(_)) => "object",
    }
}
