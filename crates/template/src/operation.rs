//! Filters, tests, functions and methods describe themselves; the reference is made from their tables.

use crate::ambient::{Ambient, Chance};
use crate::budget::Budget;
use crate::error::Failure;
use crate::number::Number;
use crate::value::Value;

/// A thing of the template language, for the reference.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// What it is called.
    pub name: &'static str,
    /// How it is written, with its arguments.
    pub usage: &'static str,
    /// What it does.
    pub doc: &'static str,
    /// A template that uses it, which needs no variables.
    pub example: &'static str,
    /// What the example becomes; absent if that is a matter of time or chance, or an error.
    pub shows: Option<&'static str>,
}

/// Something with a name that takes values and gives one.
pub(crate) struct Operation {
    pub(crate) entry: Entry,
    /// The names of its arguments, in their order.
    pub(crate) parameters: &'static [&'static str],
    /// How many of them there must be.
    pub(crate) required: usize,
    pub(crate) run: fn(&Call<'_>) -> Result<Value, Failure>,
}

/// What an operation is given.
pub(crate) struct Call<'a> {
    pub(crate) name: &'static str,
    /// What a filter, test or method is applied to.
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

/// An operation without arguments.
pub(crate) const fn plain(
    name: &'static str,
    doc: &'static str,
    example: &'static str,
    shows: &'static str,
    run: fn(&Call<'_>) -> Result<Value, Failure>,
) -> Operation {
    Operation {
        entry: Entry { name, usage: name, doc, example, shows: Some(shows) },
        parameters: &[],
        required: 0,
        run,
    }
}

impl Operation {
    /// Runs it on `operand` with arguments that are told apart by place and name.
    pub(crate) fn apply(
        &self,
        operand: &Value,
        arguments: Given,
        clock: &Ambient,
        chance: &Chance,
        budget: &Budget,
    ) -> Result<Value, Failure> {
        let given = self.bind(arguments)?;
        (self.run)(&Call { name: self.entry.name, operand, given, clock, chance, budget })
    }

    fn bind(&self, arguments: Given) -> Result<Vec<Option<Value>>, Failure> {
        let name = self.entry.name;
        if arguments.positional.len() > self.parameters.len() {
            let usage = format!("it is written `{}`", self.entry.usage);
            return Err(Failure::new(format!("`{name}` is given too many arguments")).help(usage));
        }
        let mut given: Vec<Option<Value>> = arguments.positional.into_iter().map(Some).collect();
        given.resize_with(self.parameters.len(), || None);
        for (key, value) in arguments.named {
            let slot = self.parameters.iter().position(|parameter| *parameter == key);
            let Some(slot) = slot.and_then(|at| given.get_mut(at)) else {
                return Err(Failure::new(format!("`{name}` has no argument `{key}`")).suggest(
                    "arguments",
                    &key,
                    self.parameters,
                ));
            };
            if slot.replace(value).is_some() {
                return Err(Failure::new(format!("`{name}` is given `{key}` twice")));
            }
        }
        match given.iter().take(self.required).position(Option::is_none) {
            Some(at) => {
                let missing = self.parameters.get(at).copied().unwrap_or_default();
                let usage = format!("it is written `{}`", self.entry.usage);
                Err(Failure::new(format!("`{name}` needs the argument `{missing}`")).help(usage))
            }
            None => Ok(given),
        }
    }
}

impl Call<'_> {
    /// The argument at this place, if there is one and it is not null.
    pub(crate) fn argument(&self, at: usize) -> Option<&Value> {
        self.given.get(at)?.as_ref().filter(|value| !matches!(value, Value::Null))
    }

    /// The argument at this place, null if there is none.
    pub(crate) fn value(&self, at: usize) -> &Value {
        self.given.get(at).and_then(Option::as_ref).unwrap_or(&Value::Null)
    }

    pub(crate) fn text_argument(&self, at: usize) -> Result<Option<&str>, Failure> {
        match self.argument(at) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(other) => Err(self.wrong_argument("text", other)),
        }
    }

    pub(crate) fn number_argument(&self, at: usize) -> Result<Option<Number>, Failure> {
        match self.argument(at) {
            None => Ok(None),
            Some(Value::Number(number)) => Ok(Some(*number)),
            Some(other) => Err(self.wrong_argument("a number", other)),
        }
    }

    /// A whole number.
    pub(crate) fn whole_argument(&self, at: usize) -> Result<Option<i64>, Failure> {
        let Some(number) = self.number_argument(at)? else { return Ok(None) };
        let whole = number.as_whole();
        whole.map(Some).ok_or_else(|| Failure::new(format!("`{}` takes whole numbers, not {number}", self.name)))
    }

    pub(crate) fn flag(&self, at: usize) -> bool {
        self.argument(at).is_some_and(Value::is_true)
    }

    fn wrong_argument(&self, wanted: &str, found: &Value) -> Failure {
        Failure::new(format!("`{}` takes {wanted} here, not {}", self.name, found.kind()))
    }

    /// It cannot be applied to this kind of value.
    pub(crate) fn not_for(&self, wanted: &str) -> Failure {
        Failure::new(format!("`{}` works on {wanted}, not on {}", self.name, self.operand.kind()))
    }

    pub(crate) fn text(&self) -> Result<&str, Failure> {
        match self.operand {
            Value::Text(text) => Ok(text),
            _ => Err(self.not_for("text")),
        }
    }

    pub(crate) fn items(&self) -> Result<&[Value], Failure> {
        match self.operand {
            Value::List(list) => Ok(&list.items),
            _ => Err(self.not_for("a list")),
        }
    }
}
