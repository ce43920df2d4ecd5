//! Values that differ between runs, and the names that replace them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Names in a text. A length follows if the name stands for only the beginning of the value.
static NAMES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"⟦([a-z]+(?: \d+)?)(?::(\d+))?⟧").ok());
/// Words that may be ids, or the beginnings of ids.
static HEX: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\b[0-9a-f]{7,64}\b").ok());

/// Returns the name of a value, as it is written in texts.
pub(crate) fn name(value: &str) -> String {
    format!("⟦{value}⟧")
}

/// Values that were replaced in one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    /// Values and their names: directories first, then ids in the order in which they appear.
    named: Vec<(String, String)>,
    numbers: HashMap<String, String>,
    counts: HashMap<&'static str, usize>,
}

impl Values {
    /// Creates values that contain only directories.
    pub(crate) fn new(places: &[(String, String)]) -> Self {
        Self { named: places.to_vec(), ..Self::default() }
    }

    /// Returns the numbered name of an id, and assigns one if the id is new.
    pub(crate) fn numbered_name(&mut self, kind: &'static str, value: &str) -> String {
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

    /// Returns the positions of values in `text`, in order and without overlaps, with their names.
    pub(crate) fn found_in(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let mut found: Vec<(Range<usize>, String)> = Vec::new();
        let mut named: Vec<_> = self.named.iter().filter(|(value, _)| text.contains(value.as_str())).collect();
        // A short id must not replace the beginning of a longer one.
        named.sort_by_key(|(value, _)| std::cmp::Reverse(value.len()));
        let is_free = |found: &[(Range<usize>, String)], range: &Range<usize>| {
            found.iter().all(|(other, _)| range.end <= other.start || range.start >= other.end)
        };
        for (value, named) in named {
            for (start, _) in text.match_indices(value.as_str()) {
                let range = start..start + value.len();
                if is_free(&found, &range) && !continues(text, range.end) {
                    found.push((range, named.clone()));
                }
            }
        }
        // Models often shorten ids.
        if let Some(hex) = HEX.as_ref().filter(|_| !self.numbers.is_empty()) {
            for word in hex.find_iter(text) {
                if let Some(named) = self.beginning(word.as_str()).filter(|_| is_free(&found, &word.range())) {
                    found.push((word.range(), named));
                }
            }
        }
        found.sort_by_key(|(range, _)| range.start);
        found
    }

    /// Replaces values in `text` by their names. Returns `None` if nothing changes.
    pub(crate) fn named_in(&self, text: &str) -> Option<String> {
        let found = self.found_in(text);
        let (mut new, mut at) = (String::new(), 0);
        for (range, named) in &found {
            new.push_str(&text[at..range.start]);
            new.push_str(named);
            at = range.end;
        }
        new.push_str(&text[at..]);
        (!found.is_empty()).then_some(new)
    }

    /// Returns `true` if an id is or begins with `word`.
    pub(crate) fn has_beginning(&self, word: &str) -> bool {
        self.numbers.keys().any(|id| id.starts_with(word))
    }

    fn beginning(&self, word: &str) -> Option<String> {
        let (_, named) = self.named.iter().find(|(value, _)| value.len() > word.len() && value.starts_with(word))?;
        Some(format!("{}:{}⟧", named.strip_suffix('⟧')?, word.len()))
    }

    /// Replaces names in `text` by their values. Names without a value stay.
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

/// Returns `true` if a word continues at `end`.
fn continues(text: &str, end: usize) -> bool {
    text[end..].chars().next().is_some_and(|next| next.is_alphanumeric() || next == '_')
}
