//! JSON Schema: compiles a schema in the user's file once, and then returns the errors in any number of values.
//!
//! A schema is interpreted as in ajv: draft-07 unless `$schema` names another draft, with the formats of ajv-formats
//! and the keywords of ajv-keywords. Unlike in ajv, a schema that cannot be compiled is an error with a location. The
//! library knows the drafts and resolves references; this module adds the features that only ajv has.

mod check;
mod describe;
mod document;
mod format;
mod heuristic;
mod metaschema;
mod mismatch;
mod mistake;
mod rounding;
mod select;
mod temporal;
mod transform;
mod undecided;
mod vocabulary;

use std::fmt;
use std::sync::Arc;

use jsonschema::{Draft, Validator};
use model::decode::Problems;
use model::{Diagnostic, Node, Span};
use serde_json::Value;

pub use heuristic::looks_like_schema;

use document::Document;
use vocabulary::REFERENCES;

/// Provider of ECMAScript regular expressions.
///
/// The flags are `u` for patterns and for `regexp` without its own flags, empty for the `regex` format, and otherwise
/// those given by the user, without `g` and `y`. The source never begins with flags: `(?i)a` is an error.
pub trait Patterns: Send + Sync {
    /// Checks that `source` with `flags` is a valid expression.
    ///
    /// # Errors
    /// Returns the description of the error.
    fn check(&self, source: &str, flags: &str) -> Result<(), String>;

    /// Returns `true` if some part of `text` matches. The expression has passed [`Patterns::check`].
    ///
    /// # Errors
    /// Returns the reason why the match is undecided, such as a timeout.
    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String>;
}

/// Maximum nesting depth of a value. The library is recursive.
const MAX_VALUE_DEPTH: usize = 200;

/// Compiled schema. Clones share it.
#[derive(Clone)]
pub struct Schema(Arc<Compiled>);

struct Compiled {
    /// Schema as compiled by the library.
    document: Value,
    validator: Validator,
}

/// Reason why it is not known whether a value is valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndecidedSchema(String);

impl std::fmt::Display for UndecidedSchema {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UndecidedSchema {}

/// Error of a value.
#[derive(Debug, Clone, PartialEq)]
pub struct SchemaError {
    /// Path in the value: `a.b[0]`, or empty for the value itself.
    pub path: String,
    /// Keyword that is not met, as written by the user. Empty if the schema is just `false`.
    pub keyword: String,
    /// Requirement in a few words, to be used after the path: "must be a string, not a number".
    pub message: String,
    /// Value of the keyword in the schema.
    pub expected: Value,
}

impl Schema {
    /// Compiles the schema in `node`. Keys that start with `_` are ignored. Every problem is reported with its
    /// location. Returns `None` if one of them is an error.
    pub fn compile(node: &Node, patterns: &Arc<dyn Patterns>, problems: &mut Problems) -> Option<Self> {
        let draft = metaschema::draft_of(node).map_err(|problem| problems.push(*problem)).ok()?;
        let mut reading = Document::new(draft, patterns);
        let document = reading.schema(node);
        if !reading.is_too_deep {
            reading.problems.append(&mut metaschema::mistakes(draft, node));
            reading.problems.append(&mut metaschema::circles(node, &reading.references));
        }
        let Document { references, problems: mut found, .. } = reading;
        let mut validator = None;
        if !found.iter().any(|(_, problem)| problem.is_error()) {
            validator = build(draft, &document, patterns, node, &references).map_err(|more| found.extend(more)).ok();
        }
        found.sort_by_key(|(span, _)| span.start());
        problems.extend(found.into_iter().map(|(_, problem)| problem));
        validator.map(|validator| Self(Arc::new(Compiled { document, validator })))
    }

    /// Returns all errors in `value`. The list is empty if the value is valid.
    ///
    /// # Errors
    /// Returns the reason if a pattern could not be decided, if digits of a number are not known that determine the result,
    /// or if the value is nested too deeply for safe recursion.
    pub fn validate(&self, value: &Value) -> Result<Vec<SchemaError>, UndecidedSchema> {
        if is_deeper_than(value, MAX_VALUE_DEPTH) {
            return Err(UndecidedSchema(format!("the value is nested more than {MAX_VALUE_DEPTH} deep")));
        }
        let Compiled { document, validator } = &*self.0;
        let errors = undecided::watched(|| mismatch::all(validator, document, value)).map_err(UndecidedSchema)?;
        rounding::doubt(validator, document, value, &errors).map_or(Ok(errors), |doubt| Err(UndecidedSchema(doubt)))
    }
}

/// Compiles `document`. Every reference that leads nowhere is an error: the library stops at the first one, so it is
/// omitted from the next attempt.
fn build(
    draft: Draft,
    document: &Value,
    patterns: &Arc<dyn Patterns>,
    root: &Node,
    references: &[&Node],
) -> Result<Validator, Vec<(Span, Diagnostic)>> {
    let mut document = document.clone();
    let mut problems = Vec::new();
    for _ in 0..=references.len() {
        match check::build(draft, &document, patterns) {
            Ok(validator) if problems.is_empty() => return Ok(validator),
            Ok(_) => break,
            Err(error) => {
                let Some((node, problem)) = metaschema::unresolved(&error, references) else {
                    problems.push(metaschema::uncompiled(&error, root));
                    break;
                };
                problems.push((node.span, problem));
                remove_reference(&mut document, &node.to_json());
            }
        }
    }
    Err(problems)
}

/// Removes every occurrence of the reference.
fn remove_reference(document: &mut Value, reference: &Value) {
    match document {
        Value::Object(map) => {
            map.retain(|key, value| !(REFERENCES.contains(&key.as_str()) && value == reference));
            map.values_mut().for_each(|value| remove_reference(value, reference));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| remove_reference(item, reference)),
        _ => {}
    }
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Schema").field(&self.0.document).finish()
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

/// Returns `true` if `value` has more than `limit` levels of lists and maps.
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
