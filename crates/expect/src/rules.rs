//! What holds for a whole expectation: strictness, scoring, diffs, operators.

use std::path::PathBuf;

use model::decode::Problems;
use model::{Node, NodeKind};
use serde_json::Value;

use crate::host::Function;
use crate::weight::Budget;

/// What holds for a whole expectation.
#[derive(Debug, Clone)]
pub struct Rules {
    /// What must not have more than is asked for.
    pub strict: Strict,
    /// Whether a map with the `type` of a JSON Schema is one.
    pub heuristic_schema: bool,
    /// How weights are shared.
    pub budget: Budget,
    /// Whether scores count; only scripts can tell.
    pub scoring: bool,
    /// The score that passes; only scripts can tell.
    pub pass_score: f64,
    /// Whether it is wanted that the whole does not hold.
    pub denied: bool,
    /// Whether undeclared changes are allowed where a list of changes is given.
    pub diff_permissive: Option<bool>,
    /// Custom operators by name, with their `$`.
    pub operators: Vec<(String, Function)>,
    /// Whether a custom operator goes before a built-in one of its name.
    pub allow_override: bool,
    /// Where relative references to modules start.
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
    /// The custom operator of that name.
    pub fn operator(&self, name: &str) -> Option<&Function> {
        self.operators.iter().find(|(known, _)| known == name).map(|(_, function)| function)
    }
}

/// What must not have more than is asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Strict {
    /// Maps have no other keys.
    pub object: bool,
    /// Lists have no other items.
    pub array: bool,
    /// Diffs have no other changes, and every listed one.
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

    /// As scripts read it.
    pub fn to_json(self) -> Value {
        let kinds = [("object", self.object), ("array", self.array), ("diff", self.diff)];
        kinds.iter().filter(|(_, on)| *on).map(|(name, _)| Value::from(*name)).collect()
    }
}
