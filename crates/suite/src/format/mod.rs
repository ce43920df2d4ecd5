//! Formats of suites. A new format is a file here and a line in [`FORMATS`], or in [`NAMED`] if its file names
//! identify it.

mod assertions;
mod code;
mod conversation;
mod evals;
mod fixtures;
mod rows;
mod scenario;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Node, Source, nearest};

use crate::library::Library;

pub use code::CODE_NAME;
pub use conversation::misspelt_turns;
pub use evals::{
    ASSERTION_KEYS, ASSERTION_TYPES, AssertionType, EVALS_FILE, EVALS_NAME, design_warnings,
    is_called_so as is_evals_file,
};
pub use rows::read_table;
pub use scenario::{OPENING, WARN_TURNS, near_miss, run};

/// A format that is recognised by the contents of a file.
pub struct Format {
    /// Name, such as `scenario`.
    pub name: &'static str,
    /// Text after the name in a message that says how files of this format are recognised.
    pub mark: &'static str,
    /// `true` if a mistake in a file breaks only the trials of its own cases; otherwise it prevents the run.
    pub fails_alone: bool,
    /// Returns `true` if a file that was found by a search and is too broken to be parsed seems intended for this
    /// format, judging by its text.
    pub is_meant: fn(&str) -> bool,
    /// Returns `true` if a file that was found by a search is, or nearly is, in this format. Other files are skipped.
    pub resembles: fn(&SuiteFile<'_>) -> bool,
    /// Returns `true` if a file that must be a suite is intended for this format, whether it is valid or not.
    pub recognises: fn(&SuiteFile<'_>) -> bool,
    /// Reads the cases in a file. A case with problems is returned as far as it could be read, so that later stages
    /// can find more problems.
    pub read: fn(&SuiteFile<'_>, &Library, &mut Problems) -> Vec<Arc<Case>>,
}

/// A file that may contain a suite.
pub struct SuiteFile<'a> {
    /// Absolute path.
    pub path: &'a Path,
    /// Parsed contents.
    pub root: &'a Node,
}

impl SuiteFile<'_> {
    /// Returns the directory to which the paths in the file are relative.
    pub fn directory(&self) -> &Path {
        directory(self.path)
    }
}

/// Returns the directory to which the paths in the file at `path` are relative.
fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// All formats that are recognised by content; the first that recognises a file reads it.
pub static FORMATS: [Format; 3] = [scenario::SCENARIO, conversation::CONVERSATION, evals::EVALS];

/// Function that reads a file whose format is recognised by its name.
pub type ReadNamed = fn(&Path, &Arc<Source>, &Library, &mut Problems) -> Vec<Arc<Case>>;

/// A format that is recognised by the file name. Each file is a separate suite.
pub struct NamedFormat {
    /// Name, such as `fixtures`.
    pub name: &'static str,
    /// Text after the name in a message that describes the file names.
    pub mark: &'static str,
    /// Returns `true` if a file with a matching name that was found by a search seems intended for this format,
    /// judging by its text. Other files are skipped.
    pub is_meant: fn(&str) -> bool,
    /// Returns the suite's name, if this is the name of a file in this format.
    pub suite: fn(&str) -> Option<&str>,
    /// Reads the cases of the file at an absolute path. A case with problems is returned as far as it could be read.
    pub read: ReadNamed,
}

/// Skips cases without `only`, with the reason `reason`, if any case has it.
fn skip_others<'c>(cases: impl IntoIterator<Item = (&'c mut Case, bool)>, reason: &str) {
    let (only, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|(_, is_only)| *is_only);
    for (case, _) in others.into_iter().filter(|(case, _)| !only.is_empty() && case.skip.is_none()) {
        case.skip = Some(reason.to_owned());
    }
}

/// All formats that are recognised by name.
pub static NAMED: [NamedFormat; 2] = [fixtures::FIXTURES, code::CODE];

/// Returns the format of files with a name like the one at `path`, and the name of its suite.
pub fn named(path: &Path) -> Option<(&'static NamedFormat, &str)> {
    let file = path.file_name()?.to_str()?;
    NAMED.iter().find_map(|format| Some((format, (format.suite)(file)?)))
}

/// Returns the name that the file called `file` was probably meant to have: `a.test.ts` for `a.tests.ts` and
/// `a.spec.ts`, `a.fixture.yaml` for `a.fixure.yaml`.
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
    fn a_misspelt_test_file_name_is_detected() {
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
