//! A test that must fail, in the files with tests of the fixture. A command that passes with it does not run its tests to
//! their end: the work ends their process, or hides their result.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use ::files::Found;
use uuid::Uuid;

/// Maximum size of a file with tests to which the failing test is added, in bytes.
const LARGEST: u64 = 1 << 20;

/// Maximum number of files to which it is added.
const MOST: usize = 200;

/// Words of calls that end a process, in any of the languages below.
const ENDINGS: [&str; 7] = ["exit", "abort", "quit", "kill", "exec", "halt", "terminate"];

/// A test that must fail, and whose output shows that it was run.
#[derive(Debug)]
pub(super) struct FailingTest {
    /// Text of its failure, which no other test prints.
    mark: String,
    /// Files with tests, relative to the working directory.
    files: Vec<String>,
}

/// Position of the failing test in a file.
enum Place {
    Begin,
    End,
}

impl FailingTest {
    /// Returns the failing test for those of `tests` in `work` whose language and test runner are known; `None` if there
    /// are none.
    pub(super) fn of(tests: &[String], work: &Path) -> Option<Self> {
        let mark = format!("failing test {}", Uuid::new_v4().simple());
        let is_known = |path: &&String| {
            let text = read(work, path).map(|(_, text)| text);
            text.is_some_and(|text| source(path, &text, &mark).is_some())
        };
        let files: Vec<String> = tests.iter().filter(is_known).take(MOST).cloned().collect();
        (!files.is_empty()).then_some(Self { mark, files })
    }

    /// Adds it to the files in the tree at `work`; if `is_alone`, the files lose their own tests.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub(super) fn write(&self, work: &Path, is_alone: bool) -> io::Result<()> {
        for path in &self.files {
            let Some((real, text)) = read(work, path) else { continue };
            let Some((place, test)) = source(path, &text, &self.mark) else { continue };
            let own = if is_alone { header(path, &text) } else { text };
            fs::write(
                real,
                match place {
                    Place::Begin => format!("{test}\n{own}"),
                    Place::End => format!("{own}\n{test}\n"),
                },
            )?;
        }
        Ok(())
    }

    /// Returns `true` if the output of a command shows that the test was run.
    pub(super) fn was_run(&self, stdout: &str, stderr: &str) -> bool {
        stdout.contains(&self.mark) || stderr.contains(&self.mark)
    }
}

/// Returns `true` if the text of a file contains a word of a call that ends a process.
pub(super) fn may_end_process(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ENDINGS.iter().any(|word| text.contains(word))
}

/// Returns the real path and the text of a file with tests.
fn read(work: &Path, path: &str) -> Option<(PathBuf, String)> {
    let Ok(Found::File(real)) = ::files::find(work, Path::new(path)) else { return None };
    let text = String::from_utf8(::files::read(&real, LARGEST).ok()?).ok()?;
    Some((real, text))
}

/// Returns the failing test for the file at `path`, if it has tests of a known kind.
fn source(path: &str, text: &str, mark: &str) -> Option<(Place, String)> {
    let (stem, ending) = path.rsplit_once('.')?;
    let has = |part: &str| text.contains(part);
    Some(match ending {
        // Both pytest and unittest run it.
        "py" if has("def test") || has("TestCase") => (
            Place::End,
            format!(
                "\nimport unittest as _trialrun_unittest\n\n\nclass TestTrialrunFails(_trialrun_unittest.TestCase):\n    def \
                 test_trialrun_fails(self):\n        raise AssertionError(\"{mark}\")\n"
            ),
        ),
        "rs" if has("#[test]") => {
            (Place::End, format!("\n#[test]\nfn trialrun_fails() {{\n    panic!(\"{mark}\");\n}}\n"))
        }
        "go" if stem.ends_with("_test") && has("*testing.T") => {
            // The files of a package share their names.
            let name = mark.rsplit(' ').next().unwrap_or_default();
            let name = format!("TestTrialrunFails{name}{}", model::digest(path.bytes()));
            (Place::End, format!("\nfunc {name}(t *testing.T) {{\n\tt.Fatal(\"{mark}\")\n}}\n"))
        }
        // What follows `__END__` is not code.
        "rb" if has("describe") && stem.ends_with("_spec") => {
            (Place::Begin, format!("RSpec.describe(\"trialrun\") {{ it(\"fails\") {{ raise \"{mark}\" }} }}"))
        }
        "rb" if has("Minitest::Test") || has("minitest/") => (
            Place::Begin,
            format!(
                "require \"minitest/autorun\"; class TestTrialrunFails < Minitest::Test; def test_fails; flunk \
                 \"{mark}\"; end; end"
            ),
        ),
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => javascript(text, mark)?,
        _ => return None,
    })
}

/// Returns the failing test for a file in JavaScript or TypeScript, if its test runner is known.
fn javascript(text: &str, mark: &str) -> Option<(Place, String)> {
    let body = format!("(\"trialrun fails\", () => {{ throw new Error(\"{mark}\"); }});");
    let is_import = |line: &&str| line.starts_with("import ") || line.starts_with("export ");
    let is_module = text.lines().any(|line| is_import(&line));
    for module in ["node:test", "vitest", "@jest/globals", "bun:test"] {
        if text.contains(&format!("\"{module}\"")) || text.contains(&format!("'{module}'")) {
            let import = match is_module {
                true => format!("import {{ test as trialrunTest }} from \"{module}\"; trialrunTest"),
                false => format!("require(\"{module}\").test"),
            };
            return Some((Place::Begin, format!("{import}{body}")));
        }
    }
    // Test runners that offer global functions.
    let is_called = |name: &str| text.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")));
    let name = ["it", "test"].into_iter().find(|name| is_called(name))?;
    Some((Place::Begin, format!("{name}{body}")))
}

/// Returns the part of a file without which no test in it is run.
fn header(path: &str, text: &str) -> String {
    if !path.ends_with(".go") {
        return String::new();
    }
    let package = text.lines().find(|line| line.starts_with("package ")).unwrap_or_default();
    format!("{package}\n\nimport \"testing\"\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_test_is_added_to_files_with_tests_of_a_known_kind() {
        let known = |path: &str, text: &str| {
            source(path, text, "mark").map(|(place, test)| {
                assert!(test.contains("mark"), "{test}");
                matches!(place, Place::Begin)
            })
        };
        for (path, text, expected) in [
            ("test_a.py", "def test_a():\n    pass\n", Some(false)),
            ("tests/helpers.py", "def total(): return 1\n", None),
            ("tests/total.rs", "#[test]\nfn total() {}\n", Some(false)),
            ("a_test.go", "package a\nfunc TestA(t *testing.T) {}\n", Some(false)),
            ("test/a_test.rb", "require 'minitest/autorun'\n", Some(true)),
            ("spec/a_spec.rb", "describe(1) {}\n", Some(true)),
            ("a.test.js", "const test = require('node:test');\ntest('a', () => {});\n", Some(true)),
            ("a.test.ts", "import { it } from \"vitest\";\n", Some(true)),
            ("a.spec.js", "describe('a', () => {\n  it('b', () => {});\n});\n", Some(true)),
            ("test.js", "require('assert').equal(1, 1);\n", None),
            ("tests/run.sh", "exit 0\n", None),
        ] {
            assert_eq!(known(path, text), expected, "{path}");
        }
        assert!(source("a.mjs", "import test from 'node:test';\n", "m").unwrap().1.starts_with("import "));
        assert!(may_end_process("import os; os._exit(0)") && !may_end_process("return sum(prices)"));
    }

    #[test]
    fn alone_it_replaces_the_tests_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        fs::write(work.join("test_a.py"), "def test_a(): pass\n").unwrap();
        fs::write(work.join("a_test.go"), "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n").unwrap();
        let tests = ["test_a.py", "a_test.go", "none.py"].map(str::to_owned);
        let test = FailingTest::of(&tests, &work).unwrap();
        assert_eq!(test.files, ["test_a.py", "a_test.go"]);
        test.write(&work, false).unwrap();
        let text = |name: &str| fs::read_to_string(work.join(name)).unwrap();
        assert!(text("test_a.py").starts_with("def test_a(): pass\n") && test.was_run("", &text("test_a.py")));
        test.write(&work, true).unwrap();
        assert!(!text("test_a.py").contains("def test_a()") && test.was_run(&text("test_a.py"), ""));
        assert!(text("a_test.go").starts_with("package a\n\nimport \"testing\"\n"));
        assert_eq!(text("a_test.go").matches("func ").count(), 1);
    }
}
