//! Named values, which may contain templates that use other values.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use model::decode::Problems;
use model::{Node, NodeKind, Source};

use crate::ambient::{Ambient, Chance};
use crate::error::TemplateError;
use crate::path::Key;
use crate::resolution::{Found, Resolution};

/// The values that templates name.
///
/// A value may contain templates itself. They are resolved when they are asked for, each once, and no further than is
/// asked for: `{{ input.a }}` does not touch `input.b`, so a map may refer to its own parts.
#[derive(Debug, Default)]
pub struct Variables {
    entries: Vec<(String, Node)>,
    ambient: Ambient,
    chance: Chance,
    /// What texts with templates came to, by the address of the text's node, which does not move.
    settled: Mutex<HashMap<usize, Result<Node, TemplateError>>>,
}

impl Variables {
    /// No variables at all.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lays the entries of `map` over what is there: an entry of the same name is replaced. Anything but a map has no
    /// entries.
    pub fn layer(self, map: &Node) -> Self {
        let NodeKind::Map(entries) = &map.kind else { return self };
        entries.iter().fold(self, |variables, (name, value)| variables.with(&name.value, value.clone()))
    }

    /// Lays the entries of a JSON object over what is there. Problems in them point at the start of `origin`.
    pub fn layer_json(self, map: &serde_json::Map<String, serde_json::Value>, origin: &Arc<Source>) -> Self {
        map.iter().fold(self, |variables, (name, value)| variables.with(name, Node::from_json(value, origin)))
    }

    /// Sets one variable.
    pub fn with(mut self, name: &str, value: Node) -> Self {
        match self.entries.iter_mut().find(|(known, _)| known == name) {
            Some((_, old)) => *old = value,
            None => self.entries.push((name.to_owned(), value)),
        }
        self.settled = Mutex::default();
        self
    }

    /// Takes one variable away.
    pub fn without(mut self, name: &str) -> Self {
        self.entries.retain(|(known, _)| known != name);
        self.settled = Mutex::default();
        self
    }

    /// The time and the chance that functions such as `strftime_now` and `randomInt` use.
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.chance = Chance::new(ambient.seed);
        self.ambient = ambient;
        self.settled = Mutex::default();
        self
    }

    /// All names, in the order they were first set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The value of `name` as it was set, templates and all.
    pub fn raw(&self, name: &str) -> Option<&Node> {
        self.entries.iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The value of `name` with its templates resolved; `None` if there is no such variable.
    ///
    /// # Errors
    /// What is wrong with a template in it. Its `place` says where.
    pub fn get(&self, name: &str) -> Result<Option<Node>, TemplateError> {
        match Resolution::new(self).find(&[Key::Name(name.to_owned())])? {
            Found::Node(node) => Ok(Some(node)),
            Found::Nowhere { .. } => Ok(None),
        }
    }

    /// All values with their templates resolved. One that cannot be is a problem, and left out.
    pub fn to_json(&self, problems: &mut Problems) -> serde_json::Map<String, serde_json::Value> {
        let mut values = serde_json::Map::new();
        for (name, raw) in &self.entries {
            match self.get(name) {
                Ok(Some(node)) => {
                    values.insert(name.clone(), node.to_json());
                }
                Ok(None) => {}
                Err(error) => {
                    let problem = error.diagnostic_at(raw.excerpt());
                    if !problems.contains(&problem) {
                        problems.push(problem);
                    }
                }
            }
        }
        values
    }

    pub(crate) fn clock(&self) -> &Ambient {
        &self.ambient
    }

    pub(crate) fn chance(&self) -> &Chance {
        &self.chance
    }

    pub(crate) fn settled(&self, address: usize) -> Option<Result<Node, TemplateError>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    pub(crate) fn settle(&self, address: usize, outcome: Result<Node, TemplateError>) {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(address, outcome);
    }
}
