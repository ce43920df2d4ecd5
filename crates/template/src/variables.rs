//! Named values, which may contain templates that use other values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use model::decode::Problems;
use model::{Node, NodeKind, Source, Spanned};

use crate::ambient::{Ambient, Chance};
use crate::error::TemplateError;
use crate::path::Key;
use crate::resolution::{Found, Resolution};

/// The largest map that is searched without an index.
const SCANNED: usize = 64;

/// The values that templates name.
///
/// A value may contain templates itself. They are resolved when they are asked for, each once, and no further than is
/// asked for: `{{ input.a }}` does not touch `input.b`, so a map may refer to its own parts.
#[derive(Debug, Default)]
pub struct Variables {
    entries: Vec<(String, Node)>,
    /// Where in `entries` a name is.
    places: HashMap<String, usize>,
    ambient: Ambient,
    chance: Chance,
    /// Whether a text that is no valid template stays as it is.
    keeps_unread: bool,
    /// What texts with templates came to, by the address of the text's node, which does not move.
    settled: Mutex<HashMap<usize, Result<Node, TemplateError>>>,
    /// Where in a large map a name is, by the address of the map's entries, which do not move either.
    indexes: Mutex<HashMap<usize, HashMap<String, usize>>>,
    /// Whether the values were found to become too large. It is not tried again.
    exhausted: AtomicBool,
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
        match self.places.get(name).and_then(|at| self.entries.get_mut(*at)) {
            Some((_, old)) => *old = value,
            None => {
                self.places.insert(name.to_owned(), self.entries.len());
                self.entries.push((name.to_owned(), value));
            }
        }
        self.unsettled()
    }

    /// Takes one variable away.
    pub fn without(mut self, name: &str) -> Self {
        if let Some(gone) = self.places.remove(name) {
            self.entries.remove(gone);
            self.places.values_mut().filter(|at| **at > gone).for_each(|at| *at -= 1);
        }
        self.unsettled()
    }

    /// The time and the chance that functions such as `strftime_now` and `randomInt` use.
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.chance = Chance::new(ambient.seed);
        self.ambient = ambient;
        self.unsettled()
    }

    /// Lets a text that is no valid template stay as it is, with a warning: prompts have braces of their own,
    /// `style={{color: 1}}` or `{{#if name}}`. So do `${{ … }}` whose names are no variables.
    pub fn keeping_unread(self) -> Self {
        Self { keeps_unread: true, ..self }.unsettled()
    }

    /// Forgets what depends on values that have changed.
    fn unsettled(mut self) -> Self {
        self.settled = Mutex::default();
        self.indexes = Mutex::default();
        self.exhausted = AtomicBool::new(false);
        self
    }

    /// All names, in the order they were first set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// The value of `name` as it was set, templates and all.
    pub fn raw(&self, name: &str) -> Option<&Node> {
        self.places.get(name).and_then(|at| self.entries.get(*at)).map(|(_, value)| value)
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

    /// All values with their templates resolved. One that cannot be is a problem, and left out. Once they become too
    /// large, all that follow are left out without another problem.
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
                    if self.exhausted() {
                        break;
                    }
                }
            }
        }
        values
    }

    pub(crate) fn keeps_unread(&self) -> bool {
        self.keeps_unread
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

    /// Whether the values were found to become too large.
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    /// The entry of that name in a map that belongs to these variables.
    pub(crate) fn entry<'a>(&self, map: &'a [(Spanned<String>, Node)], name: &str) -> Option<&'a Node> {
        if map.len() <= SCANNED {
            return map.iter().find(|(known, _)| known.value == name).map(|(_, value)| value);
        }
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let index = indexes.entry(map.as_ptr() as usize).or_insert_with(|| {
            // The first of several of the same name counts.
            map.iter().enumerate().rev().map(|(at, (name, _))| (name.value.clone(), at)).collect()
        });
        index.get(name).and_then(|at| map.get(*at)).map(|(_, value)| value)
    }

    pub(crate) fn settle(&self, address: usize, outcome: Result<Node, TemplateError>) {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(address, outcome);
    }
}
