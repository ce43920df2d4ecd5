//! Rules for a whole expectation: strictness, scoring, diffs, operators.

use std::path::PathBuf;

use model::decode::Problems;
use model::{Node, NodeKind};
use serde_json::Value;

use crate::host::Function;
use crate::weight::Budget;

/// Rules for a whole expectation.
#[derive(Debug, Clone)]
pub struct Rules {
    /// Kinds of values that must not contain more than the expected parts.
    pub strict: Strict,
    /// True if a map with a `type` from JSON Schema is a schema.
    pub heuristic_schema: bool,
    /// Distribution of weights.
    pub budget: Budget,
    /// True if scores decide. Only scripts can see this.
    pub scoring: bool,
    /// Score from which it passes. Only scripts can see it.
    pub pass_score: f64,
    /// True if the whole expectation must not match.
    pub denied: bool,
    /// True if changes that are not in a given list of changes are allowed.
    pub diff_permissive: Option<bool>,
    /// Custom operators by name, with their `$`.
    pub operators: Vec<(String, Function)>,
    /// True if a custom operator overrides a built-in one of the same name.
    pub allow_override: bool,
    /// Folder against which relative references to modules are resolved.
    pub directory: PathBuf,
}

impl Default for Rules {
    fn default() -> Self {
        let budget = Budget::default();
        Self {
            strict: Strict::default(),
            heuristic_schema: true,
            budget,
            scoring: false,
            pass_score: budget.max_score,
            denied: false,
            diff_permissive: None,
            operators: Vec::new(),
            allow_override: false,
            directory: PathBuf::new(),
        }
    }
}

impl Rules {
    /// Returns the custom operator with that name.
    pub fn operator(&self, name: &str) -> Option<&Function> {
        self.operators.iter().find(|(known, _)| known == name).map(|(_, function)| function)
    }
}

/// Kinds of values that must not contain more than the expected parts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strict {
    /// True if maps must not have other keys.
    pub object: bool,
    /// True if lists must not have other items.
    pub array: bool,
    /// True if diffs must not contain other changes, and must contain every listed one.
    pub diff: bool,
}

impl Strict {
    /// Reads `true`, `false`, one of `object`, `array`, `diff`, or a list of them.
    pub fn read(node: &Node, problems: &mut Problems) -> Self {
        let mut strict = Self::default();
        match &node.kind {
            NodeKind::Bool(all) => strict = Self { object: *all, array: *all, diff: *all },
            NodeKind::List(items) => items.iter().for_each(|item| strict.add(item, problems)),
            _ => strict.add(node, problems),
        }
        strict
    }

    fn add(&mut self, node: &Node, problems: &mut Problems) {
        let kinds = [("object", 0), ("array", 1), ("diff", 2)];
        match model::decode::choice(node, "`strict`", &kinds, problems) {
            Some(0) => self.object = true,
            Some(1) => self.array = true,
            Some(_) => self.diff = true,
            None => {}
        }
    }

    /// Converts to JSON for scripts.
    pub fn to_json(self) -> Value {
        let kinds = [("object", self.object), ("array", self.array), ("diff", self.diff)];
        kinds.iter().filter(|(_, on)| *on).map(|(name, _)| Value::from(*name)).collect()
    }
}
