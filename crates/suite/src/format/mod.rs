//! Formats of suites. A new format is a file here and a line in [`FORMATS`], or in [`NAMED`] if its file names
//! identify it.

mod assertions;
mod code;
pub mod collection;
mod conversation;
mod dataset;
mod evals;
mod fixtures;
mod foreign;
mod harbor;
mod literal;
mod mcp;
mod plugin_eval;
mod promptfoo;
mod rows;
mod scenario;
mod trigger;
mod user_responses;
mod vally;
mod waza;

use std::path::Path;
use std::sync::Arc;

use model::decode::Problems;
use model::{Case, Diagnostic, Node, Source, nearest};

use crate::library::Library;

pub use conversation::{has_only_keys_of_tests, misspelt_turns};
pub use evals::{ASSERTION_KEYS, ASSERTION_TYPES, AssertionType, EVALS_NAME, are_evals, design_warnings};
pub use harbor::is_task as is_harbor_task;
pub use plugin_eval::misspelt as misspelt_plugin_case;
pub use rows::read_table;
pub use scenario::{OPENING, WARN_TURNS, near_miss, run};

/// File name of a skill's evaluation in places where suites are searched.
pub const EVALS_FILE: &str = "evals.json";

/// Returns `true` if the file at `path` has the name of a skill's evaluation.
pub fn is_evals_file(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == EVALS_FILE)
}

/// Breaks a case, and what its variants run.
pub fn break_case(case: &mut Case, errors: &[Diagnostic]) {
    case.broken.extend(errors.iter().cloned());
    for (_, variant) in &mut case.variants {
        Arc::make_mut(variant).broken.extend(errors.iter().cloned());
    }
}

/// A format that is recognised by the contents of a file.
pub struct Format {
    /// Name, such as `scenario`.
    pub name: &'static str,
    /// Name of the tool that the format comes from, if it is not a format of trialrun.
    pub tool: Option<&'static str>,
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
pub static FORMATS: [Format; 8] = [
    mcp::MCP,
    vally::VALLY,
    waza::WAZA,
    promptfoo::PROMPTFOO,
    dataset::DATASET,
    scenario::SCENARIO,
    conversation::CONVERSATION,
    evals::EVALS,
];

/// Function that reads a file whose format is recognised by its name.
pub type ReadNamed = fn(&Path, &Arc<Source>, &Library, &mut Problems) -> Vec<Arc<Case>>;

/// Returns the name of the file at `path`.
fn file_name(path: &Path) -> Option<&str> {
    path.file_name()?.to_str()
}

/// A format that is recognised by the name of a file and its folders.
pub struct NamedFormat {
    /// Name, such as `fixtures`.
    pub name: &'static str,
    /// Name of the tool that the format comes from, if it is not a format of trialrun.
    pub tool: Option<&'static str>,
    /// Text after the name in a message that describes the file names.
    pub mark: &'static str,
    /// `true` if a mistake in a file breaks only the trials of its own cases; otherwise it prevents the run.
    pub fails_alone: bool,
    /// Returns `true` if the file at a path with a matching name, which was found by a search, seems intended for this
    /// format, judging by its text. Other files are skipped.
    pub is_meant: fn(&Path, &str) -> bool,
    /// Returns the suite's name, if a file in this format has this path.
    pub suite: fn(&Path) -> Option<&str>,
    /// Returns the folder whose files together are the suite of the file at a path; `None` if each file is a suite.
    pub folder: fn(&Path) -> Option<&Path>,
    /// Reads the cases of the file at an absolute path. A case with problems is returned as far as it could be read.
    pub read: ReadNamed,
}

/// Reason why a case is skipped if another one has `only`.
const ONLY_CASE: &str = "another case has `only: true`";
/// The same for a scenario in code.
const ONLY_SCENARIO: &str = "another scenario of the file has `only: true`";

/// Returns `true` if a case is skipped because another one has `only`.
pub fn is_skipped_by_only(case: &Case) -> bool {
    matches!(case.skip.as_deref(), Some(ONLY_CASE | ONLY_SCENARIO))
}

/// Skips cases without `only`, with the reason `reason`, if any case has it.
fn skip_others<'c>(cases: impl IntoIterator<Item = &'c mut Case>, reason: &str) {
    let (only, others): (Vec<_>, Vec<_>) = cases.into_iter().partition(|case| case.only.is_some());
    for case in others.into_iter().filter(|case| !only.is_empty() && case.skip.is_none()) {
        case.skip = Some(reason.to_owned());
    }
}

/// All formats that are recognised by name.
pub static NAMED: [NamedFormat; 6] = [
    fixtures::FIXTURES,
    code::CODE,
    plugin_eval::PLUGIN_EVAL,
    trigger::TRIGGER,
    promptfoo::PROMPTFOO_CONFIG,
    harbor::HARBOR,
];

/// Returns the format of files with a name like the one at `path`, and the name of its suite.
pub fn named(path: &Path) -> Option<(&'static NamedFormat, &str)> {
    NAMED.iter().find_map(|format| Some((format, (format.suite)(path)?)))
}

/// Endings of the names of suites of Vally and waza. They are recognised by their contents.
const EVAL_ENDINGS: [&str; 2] = ["eval.yaml", "eval.yml"];

/// Returns `true` if another tool recognises the file at `path` by its name and place.
pub fn is_of_other_tool(path: &Path) -> bool {
    let is_eval = |name: &str| {
        let front = EVAL_ENDINGS.iter().find_map(|ending| name.strip_suffix(ending));
        front.is_some_and(|front| front.is_empty() || front.ends_with('.'))
    };
    named(path).is_some_and(|(format, _)| format.tool.is_some()) || file_name(path).is_some_and(is_eval)
}

/// Returns the name that the file called `file` was probably meant to have: `a.test.ts` for `a.tests.ts` and
/// `a_spec.ts`, `a.fixture.yaml` for `a.fixure.yaml`, `a.yaml` for `a.ymal`. `text` returns its text, which must look
/// like a test. In a folder of tests, modules with any name are considered.
pub fn misspelt(file: &str, is_in_tests: bool, text: impl FnOnce() -> Option<String>) -> Option<String> {
    if file.starts_with(['_', '.']) || named(Path::new(file)).is_some() {
        return None;
    }
    let is_test = |text: &str| FORMATS.iter().any(|format| (format.is_meant)(text));
    let Some((rest, written)) = file.rsplit_once('.') else {
        return (is_in_tests && is_test(&text()?)).then(|| format!("{file}.yaml"));
    };
    let extension = written.to_ascii_lowercase();
    let of_code = match extension.as_str() {
        "ts" | "tsx" | "cts" => Some("ts"),
        "js" | "jsx" | "cjs" => Some("js"),
        "mts" | "mjs" => Some(extension.as_str()),
        _ => None,
    };
    let (stem, kind) = rest.rsplit_once('.').filter(|(stem, _)| !stem.is_empty()).unwrap_or((rest, ""));
    if let Some(extension) = of_code {
        let lower = kind.to_ascii_lowercase();
        if lower == "d" {
            return None;
        }
        let is_marked = lower == "spec" || (!lower.is_empty() && nearest(&lower, ["test"]).is_some());
        let bare = if is_marked { Some(stem) } else { without_mark(rest) };
        let is_meant = if bare.is_some() { script::Tests::may_be } else { script::Tests::defines_one };
        let is_read = bare.is_some() || is_in_tests;
        return (is_read && is_meant(&text()?)).then(|| format!("{}.test.{extension}", bare.unwrap_or(rest)));
    }
    if let Some(right) = misspelt_fixtures(file) {
        return Some(right);
    }
    let right = match extension.as_str() {
        "txt" => rest.to_owned(),
        "jsonl" | "ndjson" => return None,
        "jsonc" | "json5" => format!("{rest}.json"),
        other => format!("{rest}.{}", nearest(other, ["yaml", "json"])?),
    };
    let is_readable = |file: &str| crate::document::Language::from_path(Path::new(file)).is_some();
    let is_meant = |text: String| named(Path::new(&right)).is_some() || is_test(&text);
    (!is_readable(file) && is_readable(&right) && is_meant(text()?)).then_some(right)
}

/// Returns `true` if the file called `file` has one test in JSON per line.
pub fn is_lines_of_tests(file: &str, text: impl FnOnce() -> Option<String>) -> bool {
    let extension = file.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_lines = ["jsonl", "ndjson"].iter().any(|lines| extension.eq_ignore_ascii_case(lines));
    // Rows of data may have other keys of tests as columns.
    let is_test = |line: &str| {
        json_keys(line).is_some_and(|keys| ["turns", "assertions"].iter().any(|key| keys.contains(key)))
            && FORMATS.iter().any(|format| (format.is_meant)(line))
    };
    is_lines && named(Path::new(file)).is_none() && text().is_some_and(|text| text.lines().next().is_some_and(is_test))
}

/// Returns the name that a fixtures file called `file` was probably meant to have.
pub fn misspelt_fixtures(file: &str) -> Option<String> {
    let (rest, extension) = file.rsplit_once('.').filter(|_| !file.starts_with('_'))?;
    let (stem, kind) = rest.rsplit_once('.').filter(|(stem, kind)| !stem.is_empty() && !kind.is_empty())?;
    let right = format!("{stem}.{}.{extension}", nearest(kind, ["fixture"])?);
    (named(Path::new(file)).is_none() && named(Path::new(&right)).is_some()).then_some(right)
}

/// Returns the name of a module without a mark that other tools use for tests: `refund_test`, `test_refund`.
fn without_mark(stem: &str) -> Option<&str> {
    const AFTER: [&str; 6] = ["_test", "-test", "_spec", "-spec", "Test", "Spec"];
    const BEFORE: [&str; 2] = ["test_", "test-"];
    let bare = AFTER.iter().find_map(|mark| stem.strip_suffix(mark));
    bare.or_else(|| BEFORE.iter().find_map(|mark| stem.strip_prefix(mark))).filter(|bare| !bare.is_empty())
}

/// Keys of which each suite in JSON has at least one.
const JSON_KEYS: [&str; 15] = [
    "suite",
    "calls",
    "dataset",
    "turns",
    "says",
    "scenario",
    "system_prompt",
    "system_prompt_file",
    "user_prompt",
    "skill",
    "skill_name",
    "subagent_name",
    "evals",
    "assertions",
    "goal",
];

/// Returns `true` if `text`, which is or should be JSON, may be a suite. Parsing takes far longer, and folders of tests
/// often contain large files of data.
pub fn may_be_json(text: &str) -> bool {
    has_key(text, &JSON_KEYS) || collection::may_be_fixtures(text)
}

/// Returns `true` if one of `keys` seems to be a key in `text`, with or without quotes.
fn has_key(text: &str, keys: &[&str]) -> bool {
    text.split(':').any(|before| {
        let key = before.trim_end().trim_end_matches(['"', '\'']);
        keys.iter().any(|known| key.ends_with(known))
    })
}

/// Returns the keys in `text`, at any depth, if it is written as JSON. It may have what JSON does not allow: comments,
/// single quotes, and keys without quotes.
fn json_keys(text: &str) -> Option<Vec<&str>> {
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut rest = uncommented(text).strip_prefix(['{', '['])?;
    let mut keys = Vec::new();
    loop {
        rest = uncommented(rest);
        let Some(first) = rest.chars().next() else { return Some(keys) };
        let inside = &rest[first.len_utf8()..];
        let word = match first {
            '"' | '\'' => {
                let mut is_escaped = false;
                let end = inside.find(|letter| {
                    let is_end = letter == first && !is_escaped;
                    is_escaped = letter == '\\' && !is_escaped;
                    is_end
                });
                let word = &inside[..end.unwrap_or(inside.len())];
                rest = inside.get(word.len() + 1..).unwrap_or_default();
                word
            }
            _ => {
                let length = rest.find(|letter| !is_word(letter)).unwrap_or(rest.len()).max(first.len_utf8());
                let (word, after) = rest.split_at(length);
                rest = after;
                word
            }
        };
        if uncommented(rest).starts_with(':') {
            keys.push(word);
        }
    }
}

/// Returns `text` without spaces and comments at its start.
fn uncommented(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        let end = match text {
            _ if text.starts_with("//") || text.starts_with('#') => text.find('\n'),
            _ if text.starts_with("/*") => text.find("*/").map(|at| at + 2),
            _ => return text,
        };
        text = &text[end.unwrap_or(text.len())..];
    }
}

#[cfg(test)]
mod tests {
    use super::{json_keys, misspelt};

    #[test]
    fn a_misspelt_test_file_name_is_detected() {
        let test = "import { scenario } from \"trialrun\";\nexport default scenario('a', () => {});\n";
        let conversation = "turns:\n  - says: hi\n";
        for (file, text, right) in [
            ("hi.tests.ts", test, Some("hi.test.ts")),
            ("hi.spec.ts", test, Some("hi.test.ts")),
            ("hi.test.tsx", test, None),
            ("hi.TEST.TS", test, Some("hi.test.ts")),
            ("hi_test.js", test, Some("hi.test.js")),
            ("test_hi.cjs", test, Some("hi.test.js")),
            ("hi.ts", test, Some("hi.test.ts")),
            ("hi.ts", "import { assert } from 'trialrun';\nexport const helper = 1;\n", None),
            ("hi_test.js", "import test from 'ava';\n", None),
            ("a.b.tset.mjs", test, Some("a.b.test.mjs")),
            ("a.fixure.yaml", "", Some("a.fixture.yaml")),
            ("a.ymal", conversation, Some("a.yaml")),
            ("a.yaml.txt", conversation, Some("a.yaml")),
            ("a.jsonc", "{\"turns\": [{\"says\": \"hi\"}]}", Some("a.json")),
            ("a.yaml.txt", "notes", None),
            ("a.yaml.bak", conversation, None),
            ("a.fixture.yaml", "", None),
            ("a.yaml", conversation, None),
            ("hi.test.ts", test, None),
            ("_hi.tests.ts", test, None),
            ("hi.d.ts", test, None),
            (".spec.ts", test, None),
            ("hi", conversation, Some("hi.yaml")),
            ("notes", "turns of a road", None),
            ("a.model.yaml", conversation, None),
        ] {
            assert_eq!(misspelt(file, true, || Some(text.to_owned())).as_deref(), right, "{file}");
        }
        assert_eq!(misspelt("hi.ts", false, || panic!("a module with any name is not read")), None);
    }

    #[test]
    fn keys_of_broken_json_are_found() {
        assert_eq!(json_keys(" {\"a\": \"x: y\", \"b\":[{\"c\" :1,]"), Some(vec!["a", "b", "c"]));
        assert_eq!(json_keys("a: {\"b\": 1}"), None);
        assert_eq!(json_keys("{\"a"), Some(vec![]));
        assert_eq!(
            json_keys("// it's a\n{'b': \"\\\"c\\\": \", /* d: */ e: f, # g:\n\"é\" : ü}"),
            Some(vec!["b", "e", "é"])
        );
    }
}
