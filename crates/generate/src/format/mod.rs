//! Formats of test files.

mod comment;
mod conversation;
mod evals;
mod fixtures;
mod scenario;
mod typescript;
mod yaml;

use serde_json::Value;

use crate::candidate::{AssertionKind, Candidate};
use crate::target::Target;

pub(crate) use comment::COVERS;
pub use evals::{EvalsError, add_to_evals, side_files};

/// A format of test files.
pub struct Format {
    /// Name, as in `--format`.
    pub name: &'static str,
    /// End of the file name.
    pub extension: &'static str,
    /// Folder for its files, relative to the project; if all tests are in one file, relative to the skill.
    pub folder: &'static str,
    /// File that contains all tests, if there is one. The files that exist when the agent starts are then next to it.
    pub common_file: Option<&'static str>,
    /// True if it can only test skills.
    pub is_of_skill: bool,
    /// True if its tests can have several messages.
    pub has_turns: bool,
    /// True if its tests have a sandbox with files.
    pub has_files: bool,
    /// Types of assertions that have no equivalent in it.
    pub lacks: &'static [AssertionKind],
    /// Renders a test.
    pub render: fn(&Candidate, &Context<'_>) -> String,
}

/// Facts that are needed to render a test, in addition to the test.
#[derive(Debug, Clone, Copy)]
pub struct Context<'a> {
    /// Facts that the test may cover.
    pub targets: &'a [Target],
    /// Name of the skill under test, if it is one.
    pub skill: Option<&'a str>,
}

/// All formats; the first is the default.
pub static FORMATS: &[Format] =
    &[typescript::FORMAT, conversation::FORMAT, scenario::FORMAT, evals::FORMAT, fixtures::FORMAT];

/// Returns the format called `name`.
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}

/// Types of assertions about files. Bots have no files.
const ABOUT_SANDBOX: &[AssertionKind] =
    &[AssertionKind::FileExists, AssertionKind::FileContains, AssertionKind::FileUnchanged];

impl Format {
    /// Returns `true` if the format has an equivalent for assertions of this type.
    pub fn can_assert(&self, kind: AssertionKind) -> bool {
        !self.lacks.contains(&kind)
    }
}

/// Returns a text as a JSON string, which is also a valid JavaScript and YAML string.
pub(crate) fn quoted(text: &str) -> String {
    // These two separators count as line breaks in older JavaScript and in YAML.
    Value::from(text).to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Returns a pattern as a regular expression literal that ignores case, for JavaScript and for test files in YAML.
fn regex_literal(pattern: &str) -> String {
    let mut literal = String::from("/");
    let mut letters = pattern.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '\\' => {
                literal.push('\\');
                literal.extend(letters.next().map(|next| if next == '\n' { 'n' } else { next }));
            }
            '/' => literal.push_str("\\/"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\u{2028}' => literal.push_str("\\u2028"),
            '\u{2029}' => literal.push_str("\\u2029"),
            other => literal.push(other),
        }
    }
    literal + "/i"
}

/// Returns a pattern that ignores case, for argument patterns, which are written without slashes.
fn ignoring_case(pattern: &str) -> String {
    format!("(?i){pattern}")
}

#[cfg(test)]
mod tests;
