//! JSON Schema: a schema in the user's file is compiled once and tells of every value what does not fit.
//!
//! A schema is read as ajv reads it: draft-07 unless `$schema` says otherwise, with the formats of ajv-formats and the
//! keywords of ajv-keywords. Other than there, a schema that cannot be compiled is an error at its place. All dialects
//! are translated into one, with every reference resolved, and the library that validates sees only that.

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

/// What decides whether a text matches an ECMAScript regular expression.
///
/// The flags are `u` for patterns and for `regexp` without flags of its own, none for the format `regex`, and otherwise
/// what the user wrote, without `g` and `y`. The source is never preceded by flags: `(?i)a` is an error.
pub trait Patterns: Send + Sync {
    /// Whether `source` with `flags` is a valid expression.
    ///
    /// # Errors
    /// What is wrong with it.
    fn check(&self, source: &str, flags: &str) -> Result<(), String>;

    /// Whether some part of `text` matches; the expression has passed [`Patterns::check`].
    ///
    /// # Errors
    /// Why there is no answer, such as a time limit.
    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String>;
}

/// How deep a value may be nested; the library follows it by recursion.
const DEEPEST_VALUE: usize = 200;

/// A compiled schema. A clone shares it.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    translation: Translation,
    patterns: Arc<dyn Patterns>,
    /// The validator of the last value; values of one kind have the same names, and often one follows another.
    last: Mutex<Arc<Spelled>>,
}

/// A document the library has compiled.
struct Spelled {
    /// The names of the properties it is for; none if it is for every value.
    names: BTreeSet<String>,
    document: Value,
    validator: Validator,
}

/// Something in a value that its schema does not allow.
#[derive(Clone, PartialEq)]
pub struct SchemaError {
    /// Where in the value: `a.b[0]`, empty for the value itself.
    pub path: String,
    /// The keyword that is not met, as the user wrote it; empty where a schema is just `false`.
    pub keyword: String,
    /// What the value must be, in a few words that follow the path: "must be a string, not a number".
    pub message: String,
    /// What stands under the keyword in the user's schema.
    pub expected: Value,
    source: Arc<Source>,
    span: Span,
}

/// The validation has no result, such as when a pattern was stopped; it says why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Undecided(pub String);

impl Schema {
    /// Compiles the schema in `node`. Keys that start with `_` are left out. Every problem is pushed with its place;
    /// the result is absent if one of them is an error.
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

    /// Everything in `value` that the schema does not allow; nothing if it is valid.
    ///
    /// # Errors
    /// [`Undecided`] if a pattern that was asked has no answer, or the value is nested so deep that following it is not
    /// safe.
    pub fn validate(&self, value: &Value) -> Result<Vec<SchemaError>, Undecided> {
        if is_deeper_than(value, DEEPEST_VALUE) {
            return Err(Undecided(format!("the value is nested more than {DEEPEST_VALUE} deep")));
        }
        let spelled = self.0.spelled(value)?;
        check::watched(|| mismatch::all(&spelled.validator, &spelled.document, &self.0.translation, value))
    }
}

impl Compiled {
    /// The validator for `value`.
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
    /// The keyword in the user's schema.
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

/// Whether `value` has more than `limit` levels of lists and maps.
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
