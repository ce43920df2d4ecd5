//! Named values, which may contain templates that use other values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use model::{Node, NodeKind, Spanned};

use crate::ambient::{Ambient, Chance};
use crate::error::TemplateError;
use crate::path::Key;

/// Maximum size of a map that is searched without an index.
const SCANNED: usize = 64;

/// Place of a string among variables.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    /// Path of the string, or of the map that has it as a name. Its steps are [canonical](crate::path::canonical).
    pub(crate) path: Vec<Key>,
    /// The string itself, if it is a name.
    pub(crate) name: Option<String>,
}

/// Values to which templates refer.
///
/// A value may itself contain templates. Each is resolved once, on first use, and only as far as needed. For example,
/// `{{ input.a }}` does not resolve `input.b`, so a map may refer to its own parts.
#[derive(Debug, Default)]
pub struct Variables {
    pub(crate) entries: Vec<(String, Node)>,
    /// Index of each name in `entries`.
    places: HashMap<String, usize>,
    pub(crate) ambient: Ambient,
    pub(crate) chance: Chance,
    /// True if a string that is not a valid template is kept unchanged.
    pub(crate) keeps_unread: bool,
    /// Results of strings with templates, by their place.
    settled: Mutex<HashMap<Place, Result<Node, TemplateError>>>,
    /// Indexes of large maps, by their path.
    indexes: Mutex<HashMap<Vec<Key>, HashMap<String, usize>>>,
    /// True if the values became too large. Resolving them is not tried again.
    exhausted: AtomicBool,
}

impl Variables {
    /// Creates an empty set of variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the entries of `map`. An existing entry with the same name is replaced. A value that is not a map has no
    /// entries.
    pub fn layer(self, map: &Node) -> Self {
        let NodeKind::Map(entries) = &map.kind else { return self };
        entries.iter().fold(self, |variables, (name, value)| variables.with(&name.value, value.clone()))
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

    /// Sets the time and the random seed for functions such as `strftime_now` and `randomInt`.
    pub fn ambient(mut self, ambient: Ambient) -> Self {
        self.chance = Chance::new(ambient.seed);
        self.ambient = ambient;
        self.unsettled()
    }

    /// Keeps a string that is not a valid template unchanged, with a warning, because prompts may contain braces, such
    /// as `style={{color: 1}}` or `{{#if name}}`. Also keeps `${{ … }}` with names that are not variables.
    pub fn keeping_unread(self) -> Self {
        Self { keeps_unread: true, ..self }.unsettled()
    }

    /// Clears results that depend on values that have changed.
    fn unsettled(mut self) -> Self {
        self.settled = Mutex::default();
        self.indexes = Mutex::default();
        self.exhausted = AtomicBool::new(false);
        self
    }

    /// Returns all names, in the order in which they were first set.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, _)| name.as_str())
    }

    /// Returns the value of `name` as it was set, with its templates.
    pub fn raw(&self, name: &str) -> Option<&Node> {
        self.places.get(name).and_then(|index| self.entries.get(*index)).map(|(_, value)| value)
    }

    pub(crate) fn settled(&self, place: &Place) -> Option<Result<Node, TemplateError>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).get(place).cloned()
    }

    /// Returns `true` if the values became too large.
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    /// Returns the entry with that name in the map at `path`.
    pub(crate) fn entry<'a>(&self, path: &[Key], map: &'a [(Spanned<String>, Node)], name: &str) -> Option<&'a Node> {
        if map.len() <= SCANNED {
            return map.iter().find(|(known, _)| known.value == name).map(|(_, value)| value);
        }
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        if !indexes.contains_key(path) {
            // If several entries have the same name, the first one counts.
            let index = map.iter().enumerate().rev().map(|(index, (name, _))| (name.value.clone(), index)).collect();
            indexes.insert(path.to_owned(), index);
        }
        indexes.get(path)?.get(name).and_then(|index| map.get(*index)).map(|(_, value)| value)
    }

    pub(crate) fn settle(&self, place: Place, outcome: Result<Node, TemplateError>) {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(place, outcome);
    }
}
