//! A custom function in place of a value: `(actual, input) => …`.

use crate::host::{Argument, Function, Trouble};
use crate::prelude::*;
use crate::returned;

/// Function that judges the value.
#[derive(Debug)]
pub struct Code {
    /// The function.
    pub function: Function,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for Code {
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found {
        let arguments = [Argument::Value(actual), Argument::Value(at.run.data.input.as_ref())];
        match at.run.host.call(&self.function, &arguments, &mut |_| Err("`validate` is not available here".into())) {
            Ok(None | Some(Value::Null | Value::Array(_))) => {
                let message = "the function returned neither a boolean nor a number, a string or a result";
                Found::unknown(Flaw::new(&self.place, message).actual(actual))
            }
            Ok(answer) => returned::read(answer.as_ref(), None, actual, at, &self.place),
            Err(Trouble::Thrown(reason) | Trouble::Stopped(reason)) => {
                Found::unknown(Flaw::new(&self.place, reason).actual(actual))
            }
        }
    }
}
