//! Named values, which may contain templates that use other values.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use model::{Node, NodeKind, Spanned};

use crate::ambient::{Ambient, Chance};
use crate::error::TemplateError;

/// Maximum size of a map that is searched without an index.
const SCANNED: usize = 64;

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
    /// Results of strings with templates, by the address of the string's node, which does not move.
    settled: Mutex<HashMap<usize, Result<Node, TemplateError>>>,
    /// Indexes of large maps, by the address of the map's entries, which do not move either.
    indexes: Mutex<HashMap<usize, HashMap<String, usize>>>,
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

    /// Removes one variable.
    pub fn without(mut self, name: &str) -> Self {
        if let Some(gone) = self.places.remove(name) {
            self.entries.remove(gone);
            self.places.values_mut().filter(|at| **at > gone).for_each(|at| *at -= 1);
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

    pub(crate) fn settled(&self, address: usize) -> Option<Result<Node, TemplateError>> {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
    }

    /// Returns `true` if the values became too large.
    pub(crate) fn exhausted(&self) -> bool {
        self.exhausted.load(Ordering::Relaxed)
    }

    pub(crate) fn exhaust(&self) {
        self.exhausted.store(true, Ordering::Relaxed);
    }

    /// Returns the entry with that name in a map that belongs to these variables.
    pub(crate) fn entry<'a>(&self, map: &'a [(Spanned<String>, Node)], name: &str) -> Option<&'a Node> {
        if map.len() <= SCANNED {
            return map.iter().find(|(known, _)| known.value == name).map(|(_, value)| value);
        }
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        let index = indexes.entry(map.as_ptr() as usize).or_insert_with(|| {
            // If several entries have the same name, the first one counts.
            map.iter().enumerate().rev().map(|(index, (name, _))| (name.value.clone(), index)).collect()
        });
        index.get(name).and_then(|index| map.get(*index)).map(|(_, value)| value)
    }

    pub(crate) fn settle(&self, address: usize, outcome: Result<Node, TemplateError>) {
        self.settled.lock().unwrap_or_else(PoisonError::into_inner).insert(address, outcome);
    }
}
