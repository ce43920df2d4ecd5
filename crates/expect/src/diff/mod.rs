//! Compares two texts, and returns the difference as parts that a check can allow one by one.
//!
//! Where parts decide a verdict, they must be the parts that the author of a check has seen in other tools. So the
//! units of a text, and the choice between equally short edit scripts, are those of the npm package `diff`, version
//! 8.0. `tests/vectors/diff.jsonl` contains recorded results of that package.

mod cover;
mod drawn;
mod json;
mod options;
mod route;
mod spaces;
mod units;

use std::ops::Range;

use serde_json::Value;

pub use cover::{Coverage, Item, Pattern, cover};
pub use drawn::drawn;
pub use options::Options;
pub use route::EFFORT;

use route::{Op, Run};
use units::Sequence;

/// Units into which texts are split for comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Characters (Unicode scalar values).
    Chars,
    /// Words and punctuation marks. The amount of white space between them does not count.
    Words,
    /// Words, punctuation marks, line ends and runs of other white space.
    WordsWithSpace,
    /// Lines with their line ends.
    Lines,
    /// Sentences and the white space between them.
    Sentences,
    /// The leaves of two JSON documents.
    Json,
}

/// Kinds by their names in files. `auto` is not a kind: with it, [`auto`] chooses one.
pub const KINDS: &[(&str, Option<Kind>)] = &[
    ("auto", None),
    ("chars", Some(Kind::Chars)),
    ("words", Some(Kind::Words)),
    ("wordsWithSpace", Some(Kind::WordsWithSpace)),
    ("lines", Some(Kind::Lines)),
    ("sentences", Some(Kind::Sentences)),
    ("json", Some(Kind::Json)),
];

/// Section of text that both texts or only one of them contain.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// Text of the part. For JSON it is `path: value`, or just the value at the root.
    pub value: String,
    /// True if only the actual text has it.
    pub added: bool,
    /// True if only the expected text has it.
    pub removed: bool,
    /// Path of the leaf, in JSON: `a.b[0]`, or `""` at the root.
    pub path: Option<String>,
    /// Value of the leaf, in JSON.
    pub val: Option<Value>,
}

impl Part {
    /// Returns `true` if only one of the texts has it.
    pub fn is_change(&self) -> bool {
        self.added || self.removed
    }
}

/// Difference between an expected and an actual text.
#[derive(Debug, Clone, PartialEq)]
pub struct Diff {
    /// Units that were compared.
    pub kind: Kind,
    /// Both texts from beginning to end. For JSON, only the differences.
    pub parts: Vec<Part>,
    /// False if the texts are too different for a detailed comparison. Everything between their common beginning and
    /// their common end is then one removed and one added part.
    pub complete: bool,
}

impl Diff {
    /// Returns `true` if the texts differ.
    pub fn has_changes(&self) -> bool {
        self.parts.iter().any(Part::is_change)
    }
}

/// Chooses the kind for two texts: JSON if both are a JSON object or array, lines if either has several lines, words
/// if either contains words and has at least 20 UTF-16 units, otherwise characters.
pub fn auto(expected: &str, actual: &str) -> Kind {
    let wordy =
        |text: &str| text.contains(' ') && text.encode_utf16().take(MIN_LEN_FOR_WORDS).count() == MIN_LEN_FOR_WORDS;
    if json::is_container(expected) && json::is_container(actual) {
        Kind::Json
    } else if expected.contains('\n') || actual.contains('\n') {
        Kind::Lines
    } else if wordy(expected) || wordy(actual) {
        Kind::Words
    } else {
        Kind::Chars
    }
}

/// Minimum length at which a string without line breaks is compared by words, in UTF-16 units.
const MIN_LEN_FOR_WORDS: usize = 20;

/// Compares `actual` with `expected`.
///
/// Without a `kind`, [`auto`] chooses one. If comparing words or lines then shows no change although the texts differ,
/// characters are compared, unless the texts differ only in white space that `options` ignore.
///
/// The effort is limited by [`EFFORT`] and by [`Options::max_edit_length`]. See [`Diff::complete`].
pub fn diff(expected: &str, actual: &str, kind: Option<Kind>, options: &Options) -> Diff {
    let chosen = kind.unwrap_or_else(|| auto(expected, actual));
    let found = of_kind(expected, actual, chosen, options);
    let is_doubtful = kind.is_none()
        && matches!(chosen, Kind::Words | Kind::Lines)
        && options.ignore_whitespace != Some(true)
        && !found.has_changes();
    if is_doubtful {
        let (expected, actual) = (options.without_ignored(expected, chosen), options.without_ignored(actual, chosen));
        if expected != actual {
            return of_kind(&expected, &actual, Kind::Chars, options);
        }
    }
    found
}

fn of_kind(expected: &str, actual: &str, kind: Kind, options: &Options) -> Diff {
    match kind {
        Kind::Json => Diff { kind, parts: json::parts(expected, actual), complete: true },
        Kind::Words if options.ignore_whitespace == Some(false) => {
            of_text(expected, actual, Kind::WordsWithSpace, options, EFFORT)
        }
        _ => of_text(expected, actual, kind, options, EFFORT),
    }
}

fn of_text(expected: &str, actual: &str, kind: Kind, options: &Options, effort: u64) -> Diff {
    let (expected, actual) = (options.line_ends(expected, kind), options.line_ends(actual, kind));
    let [old, new] = units::split([&expected, &actual], kind, options);
    let shortest = route::shortest(&old.ids, &new.ids, options.max_edit_length, effort);
    let complete = shortest.is_some();
    let runs = shortest.unwrap_or_else(|| route::coarse(&old.ids, &new.ids));
    let mut parts = parts([&old, &new], &runs, options.one_change_per_token);
    if kind == Kind::Words && !options.one_change_per_token {
        spaces::share(&mut parts);
    }
    Diff { kind, parts, complete }
}

fn parts([old_units, new_units]: [&Sequence<'_>; 2], runs: &[Run], single: bool) -> Vec<Part> {
    let (mut old, mut new) = (0, 0);
    let mut parts = Vec::with_capacity(runs.len());
    for run in runs {
        let step = if single { 1 } else { run.count };
        for _ in 0..run.count / step.max(1) {
            let range = |index: usize| Range { start: index, end: index + step };
            let value = match run.op {
                Op::Remove => old_units.text(range(old)),
                Op::Keep | Op::Add => new_units.text(range(new)),
            };
            old += if run.op == Op::Add { 0 } else { step };
            new += if run.op == Op::Remove { 0 } else { step };
            parts.push(Part {
                value: value.to_owned(),
                added: run.op == Op::Add,
                removed: run.op == Op::Remove,
                path: None,
                val: None,
            });
        }
    }
    parts
}

#[cfg(test)]
mod tests;
