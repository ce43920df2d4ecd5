//! The mask: what takes secrets out of everything that leaves the process.
//!
//! Grading sees the true text. The runner masks each event on its way out, so no log, report or record has a secret, findings
//! included. What leaves by another way is masked where it leaves: what commands of the user are
//! told, what judges and played users read, messages about files, and `config`.

mod cut;
mod key_block;
mod pieces;
pub mod secret;
mod shape;
mod told;
mod view;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

pub use self::key_block::KeyBlocks;
pub use self::secret::Secrets;
use self::told::Pass;
use self::view::layers;
use self::view::{MOST_LAYERS, View};

/// Replacement for a secret.
pub const MASKED: &str = "[masked]";

/// No secret and no part of one that is masked is shorter, in bytes. Values have many short texts.
const SHORTEST: usize = 8;

/// The size up to which a set of secrets may grow when it is compiled, in bytes.
const MOST_COMPILED: usize = 256 << 20;

/// The secrets of a run: exact values of variables whose names say so, and shapes that keys have.
#[derive(Clone, Default)]
pub struct Mask {
    /// The values of secrets, source by source: the environment, the configuration, the fixture.
    values: Vec<Arc<Values>>,
    has_shapes: bool,
}

/// The values of secrets of one source.
struct Values {
    /// Every form of each.
    forms: Vec<Vec<u8>>,
    /// What finds them.
    finder: Regex,
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mask").field("sources", &self.values.len()).finish_non_exhaustive()
    }
}

/// The part of a text that is masked.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// Everything that is, or looks like, a secret.
    All,
    /// The values that are known to be secrets of the user.
    Values,
}

impl Mask {
    /// Masks the values of those variables of `env` whose names look like a secret's, passwords in URLs, lent headers, and
    /// whatever has a key's shape.
    pub fn of<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self { values: Vec::new(), has_shapes: true }.with(secret::texts(env))
    }

    /// The same for a trial whose fixture sets `env`. The user wrote these values down, but reports are passed on.
    pub fn with_fixture(&self, env: &[(String, String)]) -> Self {
        self.clone().with(secret::texts(env.iter().map(|(name, value)| (name, value))))
    }

    /// The same with further secrets.
    pub fn with_secrets(self, secrets: &Secrets) -> Self {
        self.with(secrets.texts())
    }

    /// The same with `forms` of secrets, the longest of which come first.
    fn with(mut self, forms: Vec<Vec<u8>>) -> Self {
        let literal = |text: &Vec<u8>| -> String {
            let byte = |byte: &u8| match byte {
                b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(*byte).to_string(),
                _ => format!("\\x{byte:02x}"),
            };
            text.iter().map(byte).collect()
        };
        let pattern = forms.iter().map(literal).collect::<Vec<_>>().join("|");
        let mut builder = RegexBuilder::new(&pattern);
        let built = builder.unicode(false).size_limit(MOST_COMPILED).dfa_size_limit(MOST_COMPILED).build();
        if let (false, Ok(finder)) = (forms.is_empty(), built) {
            self.values.push(Arc::new(Values { forms, finder }));
        }
        self
    }

    /// `text` without its secrets.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked(text, Extent::All)
    }

    /// `text` without the values that are known to be secrets of the user; what only looks like one stays.
    pub fn without_values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked(text, Extent::Values)
    }

    fn masked<'t>(&self, text: &'t str, extent: Extent) -> Cow<'t, str> {
        let has_none = self.values.is_empty() && (!self.has_shapes || extent == Extent::Values);
        if has_none || text.len() < SHORTEST {
            return Cow::Borrowed(text);
        }
        let mut found = self.find(text.as_bytes(), extent);
        if found.is_empty() {
            return Cow::Borrowed(text);
        }
        found.sort_by_key(|range| (range.start, range.end));
        let (mut masked, mut done) = (String::with_capacity(text.len()), 0);
        let mut ranges = found.into_iter().peekable();
        while let Some(mut range) = ranges.next() {
            while let Some(next) = ranges.next_if(|next| next.start <= range.end) {
                range.end = range.end.max(next.end);
            }
            let (start, end) = (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end));
            masked.push_str(text.get(done..start).unwrap_or_default());
            masked.push_str(MASKED);
            done = end;
        }
        masked.push_str(text.get(done..).unwrap_or_default());
        Cow::Owned(masked)
    }

    /// Ranges of secrets in `text`, as it is and below each layer of its escapes.
    fn find(&self, text: &[u8], extent: Extent) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        self.search(text, extent, |range| found.push(range));
        let mut views: Vec<View> = Vec::new();
        while views.len() < MOST_LAYERS
            && let Some(view) = View::of(views.last().map_or(text, |view| view.bytes.as_slice()))
        {
            self.search(&view.bytes, extent, |range| {
                let range = view.original(range);
                found.push(views.iter().rev().fold(range, |range, view| view.original(range)));
            });
            views.push(view);
        }
        found
    }

    /// Ranges of secrets, and of parts of secrets beside an ellipsis, in one layer.
    fn search(&self, text: &[u8], extent: Extent, mut found: impl FnMut(Range<usize>)) {
        let forms = self.values.iter().flat_map(|values| &values.forms);
        cut::search(text, forms, extent == Extent::All && self.has_shapes, &mut found);
        for values in &self.values {
            values.finder.find_iter(text).for_each(|value| found(value.range()));
        }
        if self.has_shapes && extent == Extent::All {
            shape::search(text, found);
        }
    }

    /// `value` without its secrets, keys included.
    pub fn value(&self, value: &mut Value) {
        Pass::of(self).value(value);
    }

    /// `text` without its secrets, in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }
}

/// `name`, with a number behind it where it `is_taken`.
fn numbered(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    let more = (2..).map(|number| format!("{name} {number}"));
    let free = [name.clone()].into_iter().chain(more).find(|name| !is_taken(name));
    free.unwrap_or(name)
}

#[cfg(test)]
mod tests;
