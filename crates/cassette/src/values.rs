//! Values that differ between runs, and the names that replace them.

use std::collections::HashMap;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Names, with a length if only the beginning of the value is meant.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"⟦([a-z]+(?: \d+)?)(?::(\d+))?⟧").ok());
/// Words that may be ids or their beginnings.
static HEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").ok());

/// Returns the name of a value in texts.
pub(crate) fn name(of: &str) -> String {
    format!("⟦{of}⟧")
}

/// The values that were replaced in one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    /// Values and their names: directories, and ids in the order of appearance.
    named: Vec<(String, String)>,
    numbers: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
}

impl Values {
    /// Creates the values of directories.
    pub(crate) fn new(places: &[(String, String)]) -> Self {
        Self { named: places.to_vec(), ..Self::default() }
    }

    /// Returns the numbered name of an id.
    pub(crate) fn number(&mut self, kind: &'static str, value: &str) -> String {
        if let Some(known) = self.numbers.get(value) {
            return known.clone();
        }
        let count = self.counts.entry(kind).or_default();
        *count += 1;
        let named = name(&format!("{kind} {count}"));
        self.numbers.insert(value.to_owned(), named.clone());
        self.named.push((value.to_owned(), named.clone()));
        named
    }

    /// Returns `text` with names in place of the values; `None` if it stays the same.
    pub(crate) fn named_in(&self, text: &str) -> Option<String> {
        let mut new = text.to_owned();
        // A short form of an id must not replace the beginning of the long one.
        let mut found: Vec<_> = self.named.iter().filter(|(value, _)| text.contains(value.as_str())).collect();
        found.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        for (value, named) in found {
            new = new.replace(value.as_str(), named);
        }
        // Models often write only the beginning of an id.
        if let Some(hex) = HEX.as_ref().filter(|hex| !self.numbers.is_empty() && hex.is_match(&new)) {
            new = hex.replace_all(&new, |word: &Captures<'_>| self.beginning(&word[0])).into_owned();
        }
        (new != text).then_some(new)
    }

    fn beginning(&self, word: &str) -> String {
        let found = self.named.iter().find(|(value, _)| value.len() > word.len() && value.starts_with(word));
        let found = found.and_then(|(_, named)| Some((named.strip_suffix('⟧')?, word.len())));
        found.map_or_else(|| word.to_owned(), |(named, length)| format!("{named}:{length}⟧"))
    }

    /// Returns `text` with the values in place of their names. Names without a value stay.
    pub(crate) fn restored_in(&self, text: &str) -> String {
        let Some(names) = NAMES.as_ref().filter(|names| names.is_match(text)) else { return text.to_owned() };
        let restored = names.replace_all(text, |found: &Captures<'_>| {
            let wanted = name(&found[1]);
            let Some((value, _)) = self.named.iter().find(|(_, named)| *named == wanted) else {
                return found[0].to_owned();
            };
            let length = found.get(2).and_then(|length| length.as_str().parse::<usize>().ok());
            length.and_then(|length| value.get(..length)).unwrap_or(value).to_owned()
        });
        restored.into_owned()
    }
}
