//! The formats a suite may be written in. A new one is a file here and a line in [`FORMATS`], or in [`NAMED`] if the
//! names of its files tell it.

mod assertions;
mod code;
mod conversation;
mod evals;
mod fixtures;
mod scenario;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Node, Source, nearest};

use crate::library::Library;

pub use code::CODE;
pub use evals::{
    ASSERTION_KEYS, ASSERTION_TYPES, AssertionType, EVALS, EVALS_FILE, EVALS_FOLDER, design_warnings,
    is_called_so as is_evals_file,
};
pub use fixtures::{
    FIELDS, FRONT_FIELDS, Field as FixtureField, FixtureSettings, Kind as FixtureKind, SECTION_FIELDS, STRICT,
};
pub use scenario::{OPENING, WARN_TURNS, near_miss, run};

/// A way to write cases down that is told by what is in a file.
pub trait Format: Sync {
    /// Its name, such as `scenario`.
    fn name(&self) -> &'static str;

    /// How a file of this format is told from others, to follow its name in a message.
    fn mark(&self) -> &'static str;

    /// Whether a file that was only come across is meant to be of this format, by a look at its text, which is too
    /// broken to be parsed.
    fn is_meant(&self, text: &str) -> bool;

    /// `true` if a mistake in a file breaks the trials of its own cases; otherwise nothing runs.
    fn fails_alone(&self) -> bool {
        false
    }

    /// Whether a file that was only come across is meant to be of this format, if only nearly. Any other is passed over.
    fn resembles(&self, file: &SuiteFile<'_>) -> bool;

    /// Whether `file`, which must be a suite, is meant to be of this format, broken or not.
    fn recognises(&self, file: &SuiteFile<'_>) -> bool;

    /// The cases of `file`. A case with problems is given as far as it could be read, so that what comes after
    /// loading can look for more of them.
    fn read(&self, file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>>;
}

/// A file that may hold a suite.
pub struct SuiteFile<'a> {
    /// Where it is, absolute.
    pub path: &'a Path,
    /// What is written in it.
    pub root: &'a Node,
}

impl SuiteFile<'_> {
    /// The directory that the paths in the file start at.
    pub fn directory(&self) -> &Path {
        directory(self.path)
    }
}

/// The directory that the paths in the file at `path` start at.
fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Every format that is told by content; the first that recognises a file reads it.
pub static FORMATS: &[&dyn Format] = &[&scenario::Scenario, &conversation::Conversation, &evals::Evals];

/// A way to write cases down that is told by the names of its files. Each file is a suite of its own.
pub trait NamedFormat: Sync {
    /// Its name, such as `fixtures`.
    fn name(&self) -> &'static str;

    /// What files of this format are called, to follow its name in a message.
    fn mark(&self) -> &'static str;

    /// Whether a file of such a name that was only come across is meant to be of this format, by a look at its text. Any
    /// other is passed over.
    fn is_meant(&self, _text: &str) -> bool {
        true
    }

    /// The suite's name, if `file` is the name of a file of this format.
    fn suite<'f>(&self, file: &'f str) -> Option<&'f str>;

    /// The cases of the file at `path`, which is absolute. A case with problems is given as far as it could be read.
    fn read(&self, path: &Path, source: &Arc<Source>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>>;
}

/// Every format that is told by name.
pub static NAMED: &[&dyn NamedFormat] = &[&fixtures::FixturesFormat, &code::CodeFormat];

/// The format that files called like the one at `path` have, and the name of its suite.
pub fn named(path: &Path) -> Option<(&'static dyn NamedFormat, &str)> {
    let file = path.file_name()?.to_str()?;
    NAMED.iter().find_map(|format| Some((*format, format.suite(file)?)))
}

/// The name that the file called `file` was probably meant to have: `a.test.ts` for `a.tests.ts` and `a.spec.ts`,
/// `a.fixture.yaml` for `a.fixure.yaml`.
pub fn misspelt(file: &str) -> Option<String> {
    let (rest, extension) = file.rsplit_once('.')?;
    let (stem, kind) = rest.rsplit_once('.').filter(|(stem, _)| !stem.is_empty() && !stem.starts_with('_'))?;
    let of_code = match extension {
        "ts" | "tsx" | "cts" => Some("ts"),
        "js" | "jsx" | "cjs" => Some("js"),
        "mts" | "mjs" => Some(extension),
        _ => None,
    };
    let is_test = kind == "spec" || nearest(kind, ["test"]).is_some();
    let right = match of_code {
        Some(extension) if is_test => format!("{stem}.test.{extension}"),
        _ => nearest(kind, ["fixture"]).map(|near| format!("{stem}.{near}.{extension}"))?,
    };
    (named(Path::new(file)).is_none() && named(Path::new(&right)).is_some()).then_some(right)
}

#[cfg(test)]
mod tests {
    use super::misspelt;

    #[test]
    fn a_name_that_is_nearly_that_of_a_test_is_found() {
        for (file, right) in [
            ("hi.tests.ts", Some("hi.test.ts")),
            ("hi.spec.ts", Some("hi.test.ts")),
            ("hi.test.tsx", Some("hi.test.ts")),
            ("a.b.tset.mjs", Some("a.b.test.mjs")),
            ("a.fixure.yaml", Some("a.fixture.yaml")),
            ("a.fixture.yaml", None),
            ("hi.test.ts", None),
            ("_hi.tests.ts", None),
            ("hi.ts", None),
            ("hi.d.ts", None),
            (".spec.ts", None),
            ("a.model.yaml", None),
        ] {
            assert_eq!(misspelt(file).as_deref(), right, "{file}");
        }
    }
}
