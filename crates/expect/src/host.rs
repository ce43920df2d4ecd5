//! What matching needs from outside: regular expressions and code. The engine itself does no I/O and runs no script.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use crate::strategy::Strategy;

/// Answers what a function asks for, from the arguments of its request; `None` is `undefined`. The error is what the
/// function sees thrown.
pub type Answer<'a> = dyn FnMut(&[Option<Value>]) -> Result<Value, String> + 'a;

/// Regular expressions, expressions and custom operators, whoever runs them.
pub trait Host: Debug + Send + Sync {
    /// A compiled ECMAScript regular expression.
    ///
    /// # Errors
    /// When the pattern or its flags are not valid.
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid>;

    /// Reads the text of a JavaScript expression without running it. `names` are the variables that it will have.
    ///
    /// # Errors
    /// When its syntax is wrong, or it uses a name that nothing has.
    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid>;

    /// Runs an expression. `scope` has its variables; `None` is `undefined`. The answer is `None` for `undefined`, too.
    ///
    /// # Errors
    /// When it throws or is stopped.
    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble>;

    /// Finds the function that `reference` names and what it says about itself. Relative references start at
    /// `directory`; `name` is the operator's, with its `$`.
    ///
    /// # Errors
    /// When there is no such function or its module cannot be loaded.
    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid>;

    /// Calls a function. What it asks for with `validate` goes to `answer`.
    ///
    /// # Errors
    /// When it throws or is stopped.
    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble>;
}

/// A compiled regular expression.
pub trait Pattern: Debug + Send + Sync {
    /// Whether some part of `text` matches.
    ///
    /// # Errors
    /// Why there is no answer: it was stopped.
    fn is_match(&self, text: &str) -> Result<bool, String>;
}

/// Why something the user wrote cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// What is wrong, in one line.
    pub message: String,
    /// Where in the text, in bytes.
    pub range: Option<Range<usize>>,
    /// What to do.
    pub help: Option<String>,
}

/// Why code gave no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It threw.
    Thrown(String),
    /// It was stopped: it took too long or too much memory.
    Stopped(String),
}

/// A function of the user's that checks values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// What the host finds it by.
    pub id: Arc<str>,
    /// How many parameters it declares.
    pub length: usize,
    /// How it shows in paths.
    pub naming: Naming,
    /// How it counts the parts it checks; goes before what the user says.
    pub strategy: Option<Strategy>,
    /// Whether it takes only lists.
    pub expects_list: bool,
}

impl Function {
    /// A function that is never found, for an operator whose own could not be.
    pub fn missing() -> Self {
        Self { id: Arc::from(""), length: 0, naming: Naming::Virtual, strategy: None, expects_list: false }
    }
}

/// How an operator with several parts shows in their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Naming {
    /// `$and[0]`, and nothing where there is only one part.
    #[default]
    Virtual,
    /// `.$and`, then `[0]`.
    Physical,
    /// A template of the variables `$operator`, `$key`, `$index`, `$count`.
    Template(Arc<str>),
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Argument<'a> {
    /// A value; `None` is `undefined`.
    Value(Option<&'a Value>),
    /// A map of these and of `$validate(actual, expected)`; a key without a value is `undefined`.
    Fixture(Vec<(&'a str, Option<&'a Value>)>),
    /// What a four-parameter operator calls `ctx`: these values, and `createSubContext`, `createChildContext`,
    /// `distribute` and `aggregate`, which are [`crate::context`] bound to them.
    Context(Value),
    /// A function that has a value matched: `validate(actual, expected, ctx)`.
    Validate,
}
