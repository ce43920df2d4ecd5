//! Interface to regular expressions and code. The engine itself does no I/O and runs no scripts.

use std::fmt::Debug;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use model::{Diagnostic, Node, Span};
use serde_json::Value;

use crate::strategy::Strategy;

/// Callback that answers a function's request. It receives the arguments, where `None` is `undefined`. If it returns
/// an error, the error is thrown in the function.
pub type Answer<'a> = dyn FnMut(&[Option<Value>]) -> Result<Value, String> + 'a;

/// Provider of regular expressions, expressions and custom operators.
pub trait Host: Debug + Send + Sync {
    /// Compiles an ECMAScript regular expression.
    ///
    /// # Errors
    /// Returns an error if the pattern or its flags are not valid.
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid>;

    /// Parses a JavaScript expression without running it. `names` are the variables that it will have.
    ///
    /// # Errors
    /// Returns an error if the syntax is wrong, or if the expression uses an undefined name.
    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid>;

    /// Evaluates an expression with the variables in `scope`. `None` is `undefined`, both in the scope and as the
    /// result.
    ///
    /// # Errors
    /// Returns an error if the expression throws or is stopped.
    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble>;

    /// Finds the function to which `reference` refers, and its properties. Relative references are resolved against
    /// `directory`. `name` is the name of the operator, with its `$`.
    ///
    /// # Errors
    /// Returns an error if there is no such function, or if its module cannot be loaded.
    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid>;

    /// Calls a function. Its calls to `validate` are passed to `answer`.
    ///
    /// # Errors
    /// Returns an error if the function throws or is stopped.
    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble>;
}

/// Compiled regular expression.
pub trait Pattern: Debug + Send + Sync {
    /// Returns `true` if some part of `text` matches.
    ///
    /// # Errors
    /// Returns an error if the match was stopped.
    fn is_match(&self, text: &str) -> Result<bool, String>;
}

/// Error in a string that the user wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invalid {
    /// Message in one line.
    pub message: String,
    /// Byte range in the text.
    pub range: Option<Range<usize>>,
    /// Suggestion for the user.
    pub help: Option<String>,
}

impl Invalid {
    /// Returns the error for `node`, which contains the text, with the exact position if it can be determined.
    pub fn diagnostic(&self, node: &Node) -> Diagnostic {
        let written = node.source.text.get(node.span.start()..node.span.end()).unwrap_or_default();
        // Escapes and folding change offsets, so a position can be given only if the text is written literally.
        let inside = self.range.as_ref().zip(node.as_str()).and_then(|(range, text)| {
            let offset = node.span.start() + written.find(text)?;
            Some(Span::new(offset + range.start, offset + range.end))
        });
        let problem = Diagnostic::error(&self.message).at(node.source.excerpt(inside.unwrap_or(node.span)));
        match &self.help {
            Some(help) => problem.help(help),
            None => problem,
        }
    }
}

/// Error of code that did not return a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trouble {
    /// It threw an exception.
    Thrown(String),
    /// It was stopped because it took too long or used too much memory.
    Stopped(String),
}

/// Custom function that checks values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Id of the function for the host.
    pub id: Arc<str>,
    /// Number of declared parameters.
    pub length: usize,
    /// Representation in paths.
    pub naming: Naming,
    /// Strategy for combining its parts. It takes precedence over the user's.
    pub strategy: Option<Strategy>,
    /// True if it only accepts lists.
    pub expects_list: bool,
}

impl Function {
    /// Returns a function that never exists, for an operator whose function could not be found.
    pub fn missing() -> Self {
        Self { id: Arc::from(""), length: 0, naming: Naming::Virtual, strategy: None, expects_list: false }
    }
}

/// How an operator with several parts appears in their paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Naming {
    /// `$and[0]`. Omitted if there is only one part.
    #[default]
    Virtual,
    /// `.$and`, then `[0]`.
    Physical,
    /// Template with the `$operator`, `$key`, `$index` and `$count` variables.
    Template(Arc<str>),
}

/// Argument of a call.
#[derive(Debug, Clone)]
pub enum Argument<'a> {
    /// A value. `None` is `undefined`.
    Value(Option<&'a Value>),
    /// A map with these values and `$validate(actual, expected)`. A key without a value is `undefined`.
    Fixture(Vec<(&'a str, Option<&'a Value>)>),
    /// The `ctx` of four-parameter operators: these values, with `createSubContext`, `createChildContext`,
    /// `distribute` and `aggregate`, which are the functions in [`crate::context`] bound to them.
    Context(Value),
    /// Function that matches a value: `validate(actual, expected, ctx)`.
    Validate,
}
