//! Filters, tests, functions and methods, with their descriptions. The reference documentation is generated from their
//! tables.

use crate::ambient::{Ambient, Chance};
use crate::budget::Budget;
use crate::error::TemplateError;
use crate::number::Number;
use crate::value::Value;

/// Entry of the template language in the reference documentation.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Name.
    pub name: &'static str,
    /// Syntax with the arguments.
    pub usage: &'static str,
    /// Description.
    pub doc: &'static str,
    /// Example template, which does not need variables.
    pub example: &'static str,
    /// Result of the example. `None` if it depends on time or randomness, or is an error.
    pub shows: Option<&'static str>,
}

/// Named operation on values.
pub(crate) struct Operation {
    pub(crate) entry: Entry,
    /// Names of its arguments, in order.
    pub(crate) parameters: &'static [&'static str],
    /// Number of required arguments.
    pub(crate) required: usize,
    pub(crate) run: fn(&Call<'_>) -> Result<Value, TemplateError>,
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

/// Creates an operation without arguments. An empty result means that the example's result varies.
pub(crate) const fn plain(
    name: &'static str,
    doc: &'static str,
    example: &'static str,
    shows: &'static str,
    run: fn(&Call<'_>) -> Result<Value, TemplateError>,
) -> Operation {
    Operation {
        entry: Entry { name, usage: name, doc, example, shows: if shows.is_empty() { None } else { Some(shows) } },
        parameters: &[],
        required: 0,
        run,
    }
}

/// Returns the operation of that name.
pub(crate) fn named(operations: &'static [Operation], name: &str) -> Option<&'static Operation> {
    operations.iter().find(|operation| operation.entry.name == name)
}

impl Operation {
    /// Adds arguments: the number of those that are required, all names in order, and the syntax of a call.
    pub(crate) const fn takes(self, required: usize, parameters: &'static [&'static str], usage: &'static str) -> Self {
        Self { entry: Entry { usage, ..self.entry }, parameters, required, ..self }
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
        (self.run)(&Call { name: self.entry.name, operand, given, clock, chance, budget })
    }

    fn bind(&self, arguments: Given) -> Result<Vec<Option<Value>>, TemplateError> {
        let name = self.entry.name;
        if arguments.positional.len() > self.parameters.len() {
            let usage = format!("it is written `{}`", self.entry.usage);
            return Err(TemplateError::new(format!("`{name}` is given too many arguments")).help(usage));
        }
        let mut given: Vec<Option<Value>> = arguments.positional.into_iter().map(Some).collect();
        given.resize_with(self.parameters.len(), || None);
        for (key, value) in arguments.named {
            let slot = self.parameters.iter().position(|parameter| *parameter == key);
            let Some(slot) = slot.and_then(|at| given.get_mut(at)) else {
                let error = TemplateError::new(format!("`{name}` has no argument `{key}`"));
                return Err(error.suggest("arguments", &key, self.parameters.iter().copied()));
            };
            if slot.replace(value).is_some() {
                return Err(TemplateError::new(format!("`{name}` is given `{key}` twice")));
            }
        }
        match given.iter().take(self.required).position(Option::is_none) {
            Some(at) => {
                let missing = self.parameters.get(at).copied().unwrap_or_default();
                let usage = format!("it is written `{}`", self.entry.usage);
                Err(TemplateError::new(format!("`{name}` needs the argument `{missing}`")).help(usage))
            }
            None => Ok(given),
        }
    }
}

impl Call<'_> {
    /// Returns the argument at this index, if it is given and not null.
    pub(crate) fn argument(&self, at: usize) -> Option<&Value> {
        self.given.get(at)?.as_ref().filter(|value| !matches!(value, Value::Null))
    }

    /// Returns the argument at this index, or null.
    pub(crate) fn value(&self, at: usize) -> &Value {
        self.given.get(at).and_then(Option::as_ref).unwrap_or(&Value::Null)
    }

    pub(crate) fn text_argument(&self, at: usize) -> Result<Option<&str>, TemplateError> {
        match self.argument(at) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_argument("text", other)),
        }
    }

    pub(crate) fn number_argument(&self, at: usize) -> Result<Option<Number>, TemplateError> {
        match self.argument(at) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(self.wrong_argument("a number", other)),
        }
    }

    /// Returns an integer argument.
    pub(crate) fn whole_argument(&self, at: usize) -> Result<Option<i64>, TemplateError> {
        let Some(number) = self.number_argument(at)? else { return Ok(None) };
        let whole = number.as_whole();
        whole.map(Some).ok_or_else(|| TemplateError::new(format!("`{}` takes whole numbers, not {number}", self.name)))
    }

    pub(crate) fn flag(&self, at: usize) -> bool {
        self.argument(at).is_some_and(Value::is_true)
    }

    fn wrong_argument(&self, wanted: &str, found: &Value) -> TemplateError {
        TemplateError::new(format!("`{}` takes {wanted} here, not {}", self.name, found.kind()))
    }

    /// Returns the error that the operation cannot be applied to this type of value.
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
