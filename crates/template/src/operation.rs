//! Filters, tests, functions and methods. `docs/reference/templates.md` describes each of them, with an example that a
//! test runs.

use crate::ambient::{Ambient, Chance};
use crate::budget::Budget;
use crate::error::TemplateError;
use crate::number::Number;
use crate::value::Value;

/// Named operation on values.
pub(crate) struct Operation {
    /// Name, followed by any arguments in parentheses, as shown in the reference.
    pub(crate) usage: &'static str,
    /// Number of required arguments.
    required: usize,
    run: Run,
}

/// Implementation of an operation.
enum Run {
    /// The general form.
    Call(fn(&Call<'_>) -> Result<Value, TemplateError>),
    /// Answers a question about the operand.
    Test(fn(&Value) -> bool),
    /// Changes a string.
    Text(fn(&str) -> String),
}

/// Arguments and context of an operation.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    /// Value to which a filter, test or method is applied.
    pub(crate) operand: &'a Value,
    given: Vec<Option<Value>>,
    pub(crate) clock: &'a Ambient,
    pub(crate) chance: &'a Chance,
    pub(crate) budget: &'a Budget,
}

/// Evaluated arguments.
pub(crate) struct Given {
    pub(crate) positional: Vec<Value>,
    pub(crate) named: Vec<(String, Value)>,
}

/// Creates an operation whose first `required` arguments must be given.
pub(crate) const fn operation(
    usage: &'static str,
    required: usize,
    run: fn(&Call<'_>) -> Result<Value, TemplateError>,
) -> Operation {
    Operation { usage, required, run: Run::Call(run) }
}

/// Creates an operation that answers a question about its operand.
pub(crate) const fn test(usage: &'static str, holds: fn(&Value) -> bool) -> Operation {
    Operation { usage, required: 0, run: Run::Test(holds) }
}

/// Creates an operation that changes a string.
pub(crate) const fn text(usage: &'static str, change: fn(&str) -> String) -> Operation {
    Operation { usage, required: 0, run: Run::Text(change) }
}

/// Returns the operation with that name.
pub(crate) fn named(operations: &'static [Operation], name: &str) -> Option<&'static Operation> {
    operations.iter().find(|operation| operation.name() == name)
}

/// Returns the names of `operations`.
pub(crate) fn names(operations: &'static [Operation]) -> impl Iterator<Item = &'static str> {
    operations.iter().map(Operation::name)
}

impl Operation {
    pub(crate) fn name(&self) -> &'static str {
        self.usage.split_once('(').map_or(self.usage, |(name, _)| name)
    }

    /// Returns the names of its arguments, in order.
    fn parameters(&self) -> Vec<&'static str> {
        let inside = self.usage.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
        let each = inside.into_iter().flat_map(|inside| inside.split(", "));
        each.map(|parameter| parameter.split_once('=').map_or(parameter, |(name, _)| name)).collect()
    }

    /// Runs the operation on `operand` with positional and named arguments.
    pub(crate) fn apply(
        &self,
        operand: &Value,
        arguments: Given,
        clock: &Ambient,
        chance: &Chance,
        budget: &Budget,
    ) -> Result<Value, TemplateError> {
        let given = self.bind(arguments)?;
        let call = Call { name: self.name(), operand, given, clock, chance, budget };
        match self.run {
            Run::Call(run) => run(&call),
            Run::Test(holds) => Ok(Value::Bool(holds(operand))),
            Run::Text(change) => Ok(Value::Text(change(call.text()?).into())),
        }
    }

    fn bind(&self, arguments: Given) -> Result<Vec<Option<Value>>, TemplateError> {
        let (name, parameters) = (self.name(), self.parameters());
        let usage = || format!("it is written `{}`", self.usage);
        if arguments.positional.len() > parameters.len() {
            return Err(TemplateError::new(format!("`{name}` is given too many arguments")).help(usage()));
        }
        let mut given: Vec<Option<Value>> = arguments.positional.into_iter().map(Some).collect();
        given.resize_with(parameters.len(), || None);
        for (key, value) in arguments.named {
            let slot = parameters.iter().position(|parameter| *parameter == key);
            let Some(slot) = slot.and_then(|at| given.get_mut(at)) else {
                let error = TemplateError::new(format!("`{name}` has no argument named `{key}`"));
                return Err(error.suggest("arguments", &key, parameters));
            };
            if slot.replace(value).is_some() {
                return Err(TemplateError::new(format!("`{name}` is given `{key}` twice")));
            }
        }
        match given.iter().take(self.required).position(Option::is_none) {
            Some(index) => {
                let missing = parameters.get(index).copied().unwrap_or_default();
                Err(TemplateError::new(format!("`{name}` needs the `{missing}` argument")).help(usage()))
            }
            None => Ok(given),
        }
    }
}

impl Call<'_> {
    /// Returns the argument at this index, if it is given and not null.
    pub(crate) fn argument(&self, index: usize) -> Option<&Value> {
        self.given.get(index)?.as_ref().filter(|value| !matches!(value, Value::Null))
    }

    /// Returns the argument at this index, or null.
    pub(crate) fn value(&self, index: usize) -> &Value {
        self.given.get(index).and_then(Option::as_ref).unwrap_or(&Value::Null)
    }

    pub(crate) fn text_argument(&self, index: usize) -> Result<Option<&str>, TemplateError> {
        match self.argument(index) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_argument("text", other)),
        }
    }

    pub(crate) fn number_argument(&self, index: usize) -> Result<Option<Number>, TemplateError> {
        match self.argument(index) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(self.wrong_argument("a number", other)),
        }
    }

    /// Returns an integer argument.
    pub(crate) fn whole_argument(&self, index: usize) -> Result<Option<i64>, TemplateError> {
        let Some(number) = self.number_argument(index)? else { return Ok(None) };
        let whole = number.as_whole();
        whole.map(Some).ok_or_else(|| TemplateError::new(format!("`{}` takes whole numbers, not {number}", self.name)))
    }

    pub(crate) fn flag(&self, index: usize) -> bool {
        self.argument(index).is_some_and(Value::is_true)
    }

    fn wrong_argument(&self, wanted: &str, found: &Value) -> TemplateError {
        TemplateError::new(format!("`{}` takes {wanted} here, not {}", self.name, found.kind()))
    }

    /// Returns the error if the operation cannot be applied to this type of value.
    pub(crate) fn not_for(&self, wanted: &str) -> TemplateError {
        TemplateError::new(format!("`{}` works on {wanted}, not on {}", self.name, self.operand.kind()))
    }

    pub(crate) fn text(&self) -> Result<&str, TemplateError> {
        match self.operand {
            Value::Text(text) => Ok(text),
            _ => Err(self.not_for("text")),
        }
    }

    pub(crate) fn items(&self) -> Result<&[Value], TemplateError> {
        match self.operand {
            Value::List(list) => Ok(&list.items),
            _ => Err(self.not_for("a list")),
        }
    }
}
