//! Assertions and operators that are functions of the program that uses trialrun, such as a client in Python.

use std::fmt::Debug;

use expect::{Function, Naming};
use serde_json::Value;

/// Beginning of the ids of operators. No reference to a module begins like this.
const OPERATOR: &str = "\u{0}function:";

/// Number of parameters of an operator that gets the actual value, the expected value, and options.
const PARAMETERS: usize = 3;

/// Functions of the program that uses trialrun. They are called on grading threads, which wait for them.
pub trait Functions: Debug + Send + Sync {
    /// Returns the names of its assertions.
    fn assertions(&self) -> &[&'static str];

    /// Returns the names of its operators, with their `$`.
    fn operators(&self) -> &[String];

    /// Calls the assertion `name` with its arguments and the evidence.
    ///
    /// # Errors
    /// Returns a description in one line if the function threw or did not answer.
    fn check(&self, name: &str, evidence: Value) -> Result<Value, String>;

    /// Calls the operator `name` with an actual value, an expected value, and options.
    ///
    /// # Errors
    /// Returns a description in one line if the function threw or did not answer.
    fn compare(&self, name: &str, values: Value) -> Result<Value, String>;
}

/// Returns the operators in `functions`, as expectations name them.
pub(crate) fn operators(functions: &dyn Functions) -> impl Iterator<Item = (String, Function)> {
    functions.operators().iter().map(|name| {
        let function = Function {
            id: format!("{OPERATOR}{name}").into(),
            length: PARAMETERS,
            naming: Naming::default(),
            strategy: None,
            expects_list: false,
        };
        (name.clone(), function)
    })
}

/// Returns the name of the operator with this id, if it is a function of the program.
pub(crate) fn operator(id: &str) -> Option<&str> {
    id.strip_prefix(OPERATOR)
}
