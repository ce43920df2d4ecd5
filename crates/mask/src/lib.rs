//! Removes secrets from everything that leaves the process.
//!
//! Grading sees the original text. The runner masks each event before it is sent, so no log, report or record contains
//! a secret, not even in findings. Data that leaves in other ways is masked at that point: the input of user commands,
//! the prompts of judges and simulated users, messages about files, and `config`.
//!
//! ```
//! use std::collections::BTreeMap;
//!
//! let env = BTreeMap::from([("API_KEY".to_owned(), "correct-horse".to_owned())]);
//! let mask = trialrun_mask::Mask::of(&env);
//! assert_eq!(mask.text("the key is correct-horse"), "the key is [masked]");
//! assert_eq!(mask.text("the key is correct-…"), "the key is [masked]…");
//! ```

mod cut;
mod events;
mod finder;
mod key_block;
mod learned;
mod pieces;
pub mod secret;
mod shape;

mod view;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use serde_json::Value;

use self::cut::{Encoded, Parts};
use self::events::Pass;
pub use self::finder::Finder;
pub use self::key_block::KeyBlocks;
use self::key_block::SeenKeys;
use self::learned::Learned;
use self::secret::Forms;
pub use self::secret::Secrets;
use self::view::layers;
use self::view::{MAX_LAYERS, View};

/// Replacement for a secret.
pub const MASKED: &str = "[masked]";

/// Minimum length of a string that is searched, in bytes. Many strings are shorter, but no secret and no part of a
/// secret that is masked is.
const MIN_SEARCHED_BYTES: usize = 8;

/// Maximum size of a compiled set of secrets, in bytes.
const MAX_COMPILED_BYTES: usize = 256 << 20;

/// Secrets of a run: the exact values of variables whose names mark them as secrets, and the shapes of keys.
#[derive(Clone, Default)]
pub struct Mask {
    /// Values of secrets by source: the environment, the configuration, the fixture.
    values: Vec<Arc<Values>>,
    has_shapes: bool,
    /// Secrets that become known during the run.
    learned: Option<Arc<Learned>>,
    /// Private keys in earlier texts, if the mask remembers them.
    seen: Option<Arc<SeenKeys>>,
}

/// Values of secrets from one source.
struct Values {
    /// Every form of each value.
    forms: Vec<Vec<u8>>,
    /// Compiled expression that matches any of the forms.
    finder: Regex,
    /// Finds parts of the forms.
    parts: Parts,
    /// Forms in the digits of an encoding, which may be wrapped into lines, and the finder of their parts.
    wrapped: Option<(Parts, Encoded)>,
}

impl Values {
    /// Returns `None` if there are no forms.
    fn of(Forms { all: forms, encoded }: Forms) -> Option<Self> {
        let (finder, parts) = (alternation(forms.iter().map(Vec::as_slice))?, Parts::new(&forms)?);
        let wrapped = Parts::new(&encoded).map(|parts| (parts, Encoded::new(encoded)));
        Some(Self { forms, finder, parts, wrapped })
    }
}

impl fmt::Debug for Mask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Mask").field("sources", &self.values.len()).finish_non_exhaustive()
    }
}

/// Selection of the secrets that are masked.
#[derive(Clone, Copy, PartialEq)]
enum Extent {
    /// Everything that is a secret or looks like one.
    All,
    /// Only the values that are known to be the user's secrets.
    Values,
}

impl Mask {
    /// Creates a mask for the values of variables in `env` whose names mark them as secrets, for passwords in URLs,
    /// for credentials in header variables, and for anything with the shape of a key.
    pub fn of<'a>(env: impl IntoIterator<Item = (&'a String, &'a String)>) -> Self {
        Self { has_shapes: true, ..Self::default() }.with(secret::texts(env))
    }

    /// Returns a mask that remembers private keys: what was part of a key in one text is masked in all later texts of
    /// this mask and its clones, however they are cut.
    pub fn remembering(&self) -> Self {
        Self { seen: Some(Arc::default()), ..self.clone() }
    }

    /// Returns a mask that remembers nothing, so that its output depends only on the text.
    pub fn forgetful(&self) -> Self {
        Self { seen: None, ..self.clone() }
    }

    /// Adds the secrets of a trial whose fixture sets `env`. The user wrote these values into a file, but reports are
    /// passed on to other people.
    pub fn with_fixture(&self, env: &[(String, String)]) -> Self {
        self.clone().with(secret::texts(env.iter().map(|(name, value)| (name, value))))
    }

    /// Adds further secrets, including those that they [learn](Secrets::learn_header) from now on.
    pub fn with_secrets(mut self, secrets: &Secrets) -> Self {
        self.learned = Some(Arc::clone(secrets.learned()));
        self.with(secrets.texts())
    }

    /// Returns the number of secrets learned so far. If it grows, texts that were masked before may contain a secret.
    pub fn learned(&self) -> usize {
        self.learned.as_ref().map_or(0, |learned| learned.count())
    }

    /// Adds the forms of secrets.
    fn with(mut self, forms: Forms) -> Self {
        self.values.extend(Values::of(forms).map(Arc::new));
        self
    }

    /// Returns `text` with its secrets masked.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked(text, Extent::All)
    }

    /// Returns `text` with only the values that are known to be the user's secrets masked. Text that merely looks like
    /// a secret stays.
    pub fn without_values<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.masked(text, Extent::Values)
    }

    fn masked<'t>(&self, text: &'t str, extent: Extent) -> Cow<'t, str> {
        let has_none = self.values.is_empty() && self.learned() == 0 && (!self.has_shapes || extent == Extent::Values);
        if has_none || text.len() < MIN_SEARCHED_BYTES {
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

    /// Returns the ranges of secrets in `text`, both as it is and with each layer of escapes decoded.
    fn find(&self, text: &[u8], extent: Extent) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let seen = self.seen.as_deref().filter(|_| extent == Extent::All);
        let learned = self.learned.as_ref();
        let learned = learned.and_then(|learned| learned.values(|secrets| Values::of(secret::in_forms(secrets))));
        let found_later = learned.into_iter().chain(seen.and_then(SeenKeys::values));
        let values: Vec<Arc<Values>> = self.values.iter().cloned().chain(found_later).collect();
        let search = |text: &[u8], found: &mut dyn FnMut(Range<usize>)| {
            seen.into_iter().for_each(|seen| seen.note(text));
            search(text, &values, self.has_shapes && extent == Extent::All, found);
        };
        search(text, &mut |range| found.push(range));
        if let Some(view) = View::without_backslashes(text) {
            search(&view.bytes, &mut |range| found.push(view.original(range)));
        }
        let mut views: Vec<View> = Vec::new();
        while views.len() < MAX_LAYERS
            && let Some(view) = View::decode(views.last().map_or(text, |view| view.bytes.as_slice()))
        {
            search(&view.bytes, &mut |range| {
                let range = view.original(range);
                found.push(views.iter().rev().fold(range, |range, view| view.original(range)));
            });
            views.push(view);
        }
        found
    }

    /// Masks the secrets in `value`, including its keys.
    pub fn value(&self, value: &mut Value) {
        Pass::new(self).value(value);
    }

    /// Masks the secrets in `text`, in place.
    pub fn string(&self, text: &mut String) {
        if let Cow::Owned(masked) = self.text(text) {
            *text = masked;
        }
    }
}

/// Searches one layer for secrets, and for parts of secrets where it may have been cut.
fn search(text: &[u8], values: &[Arc<Values>], shapes: bool, mut found: impl FnMut(Range<usize>)) {
    let secrets = values.iter().map(|values| (&values.parts, values.forms.as_slice()));
    cut::search(text, &secrets, shapes, &mut found);
    for values in values {
        values.finder.find_iter(text).for_each(|value| found(value.range()));
        if let Some((parts, encoded)) = &values.wrapped {
            cut::search_lines(text, parts, encoded, &mut found);
        }
    }
    if shapes {
        shape::search(text, found);
    }
}

/// Compiles an expression that matches any of `texts`; `None` if there are none.
fn alternation<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Option<Regex> {
    let byte = |byte: &u8| match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(*byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let pattern = texts.map(|text| text.iter().map(byte).collect::<String>()).collect::<Vec<_>>().join("|");
    let mut builder = RegexBuilder::new(&pattern);
    let built = builder.unicode(false).size_limit(MAX_COMPILED_BYTES).dfa_size_limit(MAX_COMPILED_BYTES).build();
    built.ok().filter(|_| !pattern.is_empty())
}

/// Returns `name`, with a number appended if `is_taken` returns true for it.
fn numbered(name: String, is_taken: impl Fn(&str) -> bool) -> String {
    let more = (2..).map(|number| format!("{name} {number}"));
    let free = [name.clone()].into_iter().chain(more).find(|name| !is_taken(name));
    free.unwrap_or(name)
}

#[cfg(test)]
mod tests;
