//! JSON Schema: compiles a schema in the user's file once, and then returns the errors of any number of values.
//!
//! A schema is read like ajv reads it: as draft-07 unless `$schema` says otherwise, with the formats of ajv-formats
//! and the keywords of ajv-keywords. Unlike there, a schema that cannot be compiled is an error at its place. All
//! dialects are translated into one, with every reference resolved, and the validating library only receives that.

mod check;
mod format;
mod heuristic;
mod internet;
mod mismatch;
mod pattern_properties;
mod reference;
mod temporal;
mod translation;
mod vocabulary;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::Validator;
use model::decode::Problems;
use model::{Excerpt, Node, Source, Span};
use serde_json::Value;

pub use heuristic::looks_like_schema;

use translation::Translation;

/// Provider of ECMAScript regular expressions.
///
/// The flags are `u` for patterns and for `regexp` without flags of its own, empty for the format `regex`, and
/// otherwise those of the user, without `g` and `y`. The source never begins with flags: `(?i)a` is an error.
pub trait Patterns: Send + Sync {
    /// Checks that `source` with `flags` is a valid expression.
    ///
    /// # Errors
    /// Returns what is wrong with it.
    fn check(&self, source: &str, flags: &str) -> Result<(), String>;

    /// Returns true if some part of `text` matches. The expression has passed [`Patterns::check`].
    ///
    /// # Errors
    /// Returns why the match is not decided, such as a timeout.
    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String>;
}

/// Maximum nesting depth of a value. The library is recursive.
const DEEPEST_VALUE: usize = 200;

/// Compiled schema. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    translation: Translation,
    patterns: Arc<dyn Patterns>,
    /// The most recently used validator. Values of the same kind have the same property names, and often follow each
    /// other.
    last: Mutex<Arc<Spelled>>,
}

/// Document that the library has compiled.
struct Spelled {
    /// Property names that it is compiled for. Empty if it is for every value.
    names: BTreeSet<String>,
    document: Value,
    validator: Validator,
}

/// Error of a value.
#[derive(Clone, PartialEq)]
pub struct SchemaError {
    /// Path in the value: `a.b[0]`, or empty for the value itself.
    pub path: String,
    /// Keyword that is not met, as written by the user. Empty if the schema is just `false`.
    pub keyword: String,
    /// Requirement in a few words that follow the path: "must be a string, not a number".
    pub message: String,
    /// Value of the keyword in the user's schema.
    pub expected: Value,
    source: Arc<Source>,
    span: Span,
}

/// The validation has no result, for example because a pattern was stopped. The text is the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided(pub String);

impl Schema {
    /// Compiles the schema in `node`. Keys that start with `_` are ignored. Every problem is reported with its place.
    /// Returns `None` if one of them is an error.
    pub fn compile(node: &Node, patterns: Arc<dyn Patterns>, problems: &mut Problems) -> Option<Self> {
        let mut found = Problems::new();
        let translation = Translation::of(node, &*patterns, &mut found);
        let broken = found.iter().any(model::Diagnostic::is_error);
        problems.append(&mut found);
        let translation = translation.filter(|_| !broken)?;
        match spell(&translation, BTreeSet::new(), &patterns) {
            Ok(spelled) => {
                Some(Self(Arc::new(Compiled { translation, patterns, last: Mutex::new(Arc::new(spelled)) })))
            }
            Err(Undecided(why)) => {
                problems.push(node.error(format!("the schema cannot be compiled: {why}")));
                None
            }
        }
    }

    /// Returns all errors of `value`. The list is empty if the value is valid.
    ///
    /// # Errors
    /// Returns [`Undecided`] if a pattern could not be decided, or if the value is nested too deeply for safe
    /// recursion.
    pub fn validate(&self, value: &Value) -> Result<Vec<SchemaError>, Undecided> {
        if is_deeper_than(value, DEEPEST_VALUE) {
            return Err(Undecided(format!("the value is nested more than {DEEPEST_VALUE} deep")));
        }
        let spelled = self.0.spelled(value)?;
        check::watched(|| mismatch::all(&spelled.validator, &spelled.document, &self.0.translation, value))
    }
}

impl Compiled {
    /// Returns the validator for `value`.
    fn spelled(&self, value: &Value) -> Result<Arc<Spelled>, Undecided> {
        let last = Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner));
        if !self.translation.depends_on_names() {
            return Ok(last);
        }
        let names = pattern_properties::names(value);
        if names.iter().copied().eq(last.names.iter().map(String::as_str)) {
            return Ok(last);
        }
        let names = names.into_iter().map(str::to_owned).collect();
        let spelled = Arc::new(spell(&self.translation, names, &self.patterns)?);
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Arc::clone(&spelled);
        Ok(spelled)
    }
}

fn spell(
    translation: &Translation,
    names: BTreeSet<String>,
    patterns: &Arc<dyn Patterns>,
) -> Result<Spelled, Undecided> {
    let document = translation.document(&names, &**patterns)?;
    let validator = translation.build(&document, patterns).map_err(Undecided)?;
    Ok(Spelled { names, document, validator })
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.translation.original()).finish()
    }
}

impl SchemaError {
    /// Returns the source line of the keyword in the user's schema.
    pub fn excerpt(&self) -> Excerpt {
        self.source.excerpt(self.span)
    }
}

impl fmt::Debug for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the whole file.
        let Self { path, keyword, message, expected, span, .. } = self;
        f.debug_struct("SchemaError")
            .field("path", path)
            .field("keyword", keyword)
            .field("message", message)
            .field("expected", expected)
            .field("span", span)
            .finish_non_exhaustive()
    }
}

impl fmt::Display for SchemaError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(f, "`{}` ", self.path)?;
        }
        f.write_str(&self.message)
    }
}

impl fmt::Display for Undecided {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Undecided {}

/// True if `value` has more than `limit` levels of lists and maps.
fn is_deeper_than(value: &Value, limit: usize) -> bool {
    let mut waiting = vec![(value, 0)];
    while let Some((value, depth)) = waiting.pop() {
        if depth > limit {
            return true;
        }
        match value {
            Value::Array(items) => waiting.extend(items.iter().map(|item| (item, depth + 1))),
            Value::Object(map) => waiting.extend(map.values().map(|item| (item, depth + 1))),
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests;
