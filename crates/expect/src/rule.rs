//! Rules, and the position in a value at which they judge.

use std::cell::Cell;
use std::sync::Arc;

use serde_json::Value;

use crate::found::Found;
use crate::host::Host;
use crate::path;
use crate::quick_score::QuickScore;
use crate::rules::Rules;
use crate::strategy::Strategy;
use crate::text_diff::TextDiff;

/// A rule that judges one value.
pub trait Rule: std::fmt::Debug + Send + Sync {
    /// Judges `actual`, which is `None` for a missing value.
    fn judge(&self, actual: Option<&Value>, at: &Scope<'_>) -> Found;

    /// Returns the score of `actual` without an explanation, or `None` if only [`Rule::judge`] can tell. If it is
    /// `Some`, the result is decided.
    fn quick_score(&self, _actual: Option<&Value>, _at: &Scope<'_>) -> Option<QuickScore> {
        None
    }
}

/// Data for expressions and operators, in addition to the value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Data {
    /// Variables.
    pub variables: Value,
    /// Input of the case.
    pub input: Option<Value>,
    /// The case as written.
    pub fixture: Value,
}

/// Shared state of a whole match.
pub struct Evaluation<'a> {
    /// Host that runs code and regular expressions.
    pub host: &'a Arc<dyn Host>,
    /// Rules of the expectation.
    pub rules: &'a Rules,
    /// Text comparison of the case.
    pub diff: Option<&'a TextDiff>,
    /// Data for expressions and operators.
    pub data: &'a Data,
    /// Number of matches that custom operators requested while other operators were waiting.
    pub asked: Cell<usize>,
}

/// Current position in the value, with the inherited options.
#[derive(Clone)]
pub struct Scope<'a> {
    /// Shared state.
    pub run: &'a Evaluation<'a>,
    /// Path.
    pub key: String,
    /// True if the key exists, regardless of its value.
    pub present: bool,
    /// Default threshold of scores.
    pub threshold: Option<f64>,
    /// True if a failure here fails the whole expectation.
    pub critical: bool,
    /// Strategy for combining the items of this value, if the enclosing operator sets one.
    pub strategy: Option<Strategy>,
    /// True if text differences are not needed.
    pub quiet: bool,
    /// True if a mismatch counts as a success, so that a user's mistake must not look like a mismatch.
    pub negated: bool,
    /// Depth, to stop infinite recursion.
    pub depth: usize,
    /// Number of custom operators that are waiting for this result.
    pub waiting: usize,
}

impl<'a> Scope<'a> {
    /// Creates the initial position, at `key`.
    pub fn root(run: &'a Evaluation<'a>, key: &str) -> Self {
        Self {
            run,
            key: key.to_owned(),
            present: false,
            threshold: None,
            critical: false,
            strategy: None,
            quiet: false,
            negated: run.rules.denied,
            depth: 0,
            waiting: 0,
        }
    }

    /// Returns the position of a part of the value, at `key` relative to this one. With an empty `key`, the path stays
    /// the same.
    pub fn below(&self, key: &str) -> Self {
        Self { key: path::below(&self.key, key), strategy: None, depth: self.depth + 1, ..self.clone() }
    }

    /// Returns the position of a part for which only the verdict is needed.
    pub fn quietly(&self) -> Self {
        Self { quiet: true, ..self.below("") }
    }

    /// Returns the position of item `index` in an operator with `count` items.
    pub fn item(&self, operator: &str, index: usize, count: usize) -> Self {
        if count > 1 { self.below(&format!("{operator}[{index}]")) } else { self.below("") }
    }
}
