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

/// Words of code that reaches its test runner: what it compares with, and which tests it runs.
const RUNNERS: [&str; 15] = [
    "test()",
    "argv",
    "os.args",
    "flag.set",
    "unittest",
    "pytest",
    "testcase",
    "minitest",
    "rspec",
    "test::builder",
    "node:test",
    "node:assert",
    "'assert'",
    "\"assert\"",
    "globalthis",
];

/// A test that must fail, and whose output shows that it was run.
#[derive(Debug)]
pub(super) struct FailingTest {
    /// Text of its failure, which no other test prints.
    mark: String,
    /// Files with tests, relative to the working directory.
    files: Vec<String>,
    /// Files that commands run.
    programs: Vec<String>,
}

/// Contents of a file with the failing test.
struct Contents {
    /// Next to its own tests.
    added: String,
    /// Without them.
    alone: String,
}

impl FailingTest {
    /// Returns the failing test for those of `tests` in `work` whose language and test runner are known; `None` if there
    /// are none. Commands run `programs`, with or without a test runner.
    pub(super) fn of(tests: &[String], programs: Vec<String>, work: &Path) -> Option<Self> {
        let mark = format!("failing test {}", Uuid::new_v4().simple());
        let is_known = |path: &&String| {
            let text = read(work, path).map(|(_, text)| text);
            text.is_some_and(|text| contents(path, &text, programs.contains(path), &mark).is_some())
        };
        let files: Vec<String> = tests.iter().filter(is_known).take(MOST).cloned().collect();
        (!files.is_empty()).then_some(Self { mark, files, programs })
    }

    /// Adds it to the files in the tree at `work`; if `is_alone`, the files lose their own tests.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub(super) fn write(&self, work: &Path, is_alone: bool) -> io::Result<()> {
        for path in &self.files {
            let Some((real, text)) = read(work, path) else { continue };
            let Some(contents) = contents(path, &text, self.programs.contains(path), &self.mark) else { continue };
            fs::write(real, if is_alone { contents.alone } else { contents.added })?;
        }
        Ok(())
    }

    /// Returns `true` if the output of a command shows that the test was run.
    pub(super) fn was_run(&self, stdout: &str, stderr: &str) -> bool {
        stdout.contains(&self.mark) || stderr.contains(&self.mark)
    }
}

/// Returns `true` if the text of a file contains a word of a call that ends a process, or that reaches a test runner.
pub(super) fn may_steer_tests(text: &str) -> bool {
    contains_any(text, &ENDINGS) || contains_any(text, &RUNNERS)
}

/// Returns the real path and the text of a file with tests.
fn read(work: &Path, path: &str) -> Option<(PathBuf, String)> {
    let Ok(Found::File(real)) = ::files::find(work, Path::new(path)) else { return None };
    let text = String::from_utf8(::files::read(&real, LARGEST).ok()?).ok()?;
    Some((real, text))
}

/// Returns the contents of the file at `path` with the failing test, if it has tests of a known kind, or if `is_program`
/// says that a command runs it, and it ends in no other place than its end.
fn contents(path: &str, text: &str, is_program: bool, mark: &str) -> Option<Contents> {
    let (stem, ending) = path.rsplit_once('.')?;
    let has = |part: &str| text.contains(part);
    let returns = || text.lines().any(|line| line.starts_with("return"));
    let is_plain = is_program && !contains_any(text, &ENDINGS) && !has("die") && !returns();
    Some(match ending {
        "py" if text.lines().any(|line| line.starts_with("def test")) => {
            at_end(text, &format!("def test_trialrun_fails():\n    raise AssertionError(\"{mark}\")"))
        }
        // Both pytest and unittest run it.
        "py" if has("def test") || has("TestCase") => {
            let test = PYTHON.replace("MARK", mark);
            Contents {
                alone: format!("{test}\n\nif __name__ == \"__main__\":\n    _trialrun_unittest.main()\n"),
                added: before(text, |line| line.starts_with("if __name__"), &test),
            }
        }
        "py" if is_plain => at_end(text, &format!("raise AssertionError(\"{mark}\")")),
        "rs" if has("#[test]") => {
            at_end(text, &format!("#[test]\nfn trialrun_fails() {{\n    panic!(\"{mark}\");\n}}"))
        }
        "go" if stem.ends_with("_test") && has("*testing.T") => {
            // The files of a package share their names.
            let name = mark.rsplit(' ').next().unwrap_or_default();
            let name = format!("TestTrialrunFails{name}{}", model::digest(path.bytes()));
            let test = format!("func {name}(t *testing.T) {{\n\tt.Fatal(\"{mark}\")\n}}\n");
            let package = text.lines().find(|line| line.starts_with("package ")).unwrap_or_default();
            Contents { alone: format!("{package}\n\nimport \"testing\"\n\n{test}"), added: format!("{text}\n{test}") }
        }
        // What follows `__END__` is not code.
        "rb" if has("describe") && stem.ends_with("_spec") => {
            at_begin(text, &format!("RSpec.describe(\"trialrun\") {{ it(\"fails\") {{ raise \"{mark}\" }} }}"))
        }
        "rb" if has("Minitest::Test") || has("minitest/") => at_begin(text, &RUBY.replace("MARK", mark)),
        "rb" if is_plain => before_data(text, &format!("raise \"{mark}\"")),
        "t" | "pl" if has("Test::More") => Contents {
            alone: format!("use Test::More; ok(0, \"{mark}\"); done_testing;\n"),
            ..before_data(text, &format!("Test::More::ok(0, \"{mark}\");"))
        },
        "pl" if is_plain => before_data(text, &format!("die \"{mark}\";")),
        "lua" if has("describe(") => at_end(
            text,
            &format!("describe(\"trialrun\", function() it(\"fails\", function() error(\"{mark}\") end) end)"),
        ),
        "php" if is_plain && !has("?>") => {
            let failure = format!("fwrite(STDERR, \"{mark}\\n\"); exit(1);");
            Contents { alone: format!("<?php\n{failure}\n"), added: format!("{text}\n{failure}\n") }
        }
        // The work can define `test`.
        "sh" | "bash" if is_plain => {
            at_end(text, &format!("if test 1 = 2 || [ 1 = 2 ]; then :; else echo \"{mark}\" >&2; exit 1; fi"))
        }
        "js" | "mjs" | "cjs" | "jsx" | "ts" | "mts" | "cts" | "tsx" => javascript(text, is_plain, mark)?,
        _ => return None,
    })
}

/// Test in Python. It passes if the work has replaced a comparison by one that fails in no case.
const PYTHON: &str = "

import unittest as _trialrun_unittest


class TestTrialrunFails(_trialrun_unittest.TestCase):
    def test_trialrun_fails(self):
        comparisons = (lambda: self.assertEqual(1, 2), lambda: self.assertTrue(False), lambda: self.assertIn(1, []))
        for compare in comparisons:
            try:
                compare()
            except AssertionError:
                continue
            return
        raise AssertionError(\"MARK\")
";

/// The same for minitest.
const RUBY: &str = "require \"minitest/autorun\"; class TestTrialrunFails < Minitest::Test; def test_fails; \
    [-> { assert_equal 1, 2 }, -> { assert false }].each { |compare| begin; compare.call; rescue Minitest::Assertion; \
    next; end; return }; flunk \"MARK\"; end; end";

/// The same for programs that use `node:assert`.
const JAVASCRIPT: &str = "for (const compare of [() => ASSERT.equal(1, 2), () => ASSERT.strictEqual(1, 2), \
    () => ASSERT.deepStrictEqual(1, 2), () => ASSERT.ok(false)]) { try { compare(); } catch { continue; } return; } \
    throw new Error(\"MARK\");";

/// Returns the contents of a file in JavaScript or TypeScript, if its test runner is known.
fn javascript(text: &str, is_plain: bool, mark: &str) -> Option<Contents> {
    let is_import = |line: &&str| line.starts_with("import ") || line.starts_with("export ");
    let is_module = text.lines().any(|line| is_import(&line));
    let import = |module: &str, name: &str| match is_module {
        true => format!("import * as {name} from \"{module}\"; "),
        false => format!("const {name} = require(\"{module}\"); "),
    };
    let names = |module: &str| [format!("\"{module}\""), format!("'{module}'")].iter().any(|name| text.contains(name));
    let uses_assert = names("node:assert") || names("assert");
    let (assert, failure) = match uses_assert {
        true if is_module => {
            (import("node:assert", "trialrunAssert"), JAVASCRIPT.replace("ASSERT", "trialrunAssert.default"))
        }
        true => (import("node:assert", "trialrunAssert"), JAVASCRIPT.replace("ASSERT", "trialrunAssert")),
        false => (String::new(), "throw new Error(\"MARK\");".to_owned()),
    };
    let failure = failure.replace("MARK", mark);
    let body = format!("(\"trialrun fails\", () => {{ {failure} }});");
    for module in ["node:test", "vitest", "@jest/globals", "bun:test"] {
        if names(module) {
            return Some(at_begin(
                text,
                &format!("{assert}{}trialrunTests.test{body}", import(module, "trialrunTests")),
            ));
        }
    }
    // Test runners that offer global functions.
    let is_called = |name: &str| text.lines().any(|line| line.trim_start().starts_with(&format!("{name}(")));
    match ["it", "test"].into_iter().find(|name| is_called(name)) {
        Some(name) => Some(at_begin(text, &format!("{assert}{name}{body}"))),
        None if is_plain => Some(at_end(text, &format!("{assert}(() => {{ {failure} }})();"))),
        None => None,
    }
}

fn at_begin(text: &str, test: &str) -> Contents {
    Contents { added: format!("{test}\n{text}"), alone: format!("{test}\n") }
}

fn at_end(text: &str, test: &str) -> Contents {
    Contents { added: format!("{text}\n{test}\n"), alone: format!("{test}\n") }
}

/// Puts a test in front of the data at the end of a program in Perl or Ruby.
fn before_data(text: &str, test: &str) -> Contents {
    let added = before(text, |line| matches!(line, "__END__" | "__DATA__"), test);
    Contents { added, alone: format!("{test}\n") }
}

/// Returns `text` with `test` in front of the first line that `is_place`, or at its end.
fn before(text: &str, is_place: impl Fn(&str) -> bool, test: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| is_place(line)).unwrap_or(lines.len());
    lines.insert(at, test);
    lines.join("\n") + "\n"
}

/// Returns `true` if `text` contains one of `words`, in letters of any case.
fn contains_any(text: &str, words: &[&str]) -> bool {
    let text = text.to_ascii_lowercase();
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_test_is_added_to_files_with_tests_of_a_known_kind() {
        // Returns whether it stands at the beginning.
        let known = |path: &str, text: &str| {
            contents(path, text, path.contains("run"), "mark").map(|contents| {
                assert!(contents.alone.contains("mark") && contents.added.contains("mark"), "{path}");
                !contents.added.starts_with(text.lines().next().unwrap())
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
            ("t/a.t", "use Test::More tests => 1;\n", Some(false)),
            ("spec/a_spec.lua", "describe('a', function() end)\n", Some(false)),
            ("tests/run.sh", "exit 0\n", None),
            ("tests/run.js", "process.exit(check())\n", None),
            ("tests/other.sh", "sh total.sh\n", None),
            ("tests/run.sh", "sh total.sh\n", Some(false)),
            ("tests/run.js", "require('assert').equal(1, 1);\n", Some(false)),
            ("tests/run.py", "assert total() == 5\n", Some(false)),
            ("tests/run.php", "<?php check();\n", Some(false)),
        ] {
            assert_eq!(known(path, text), expected, "{path}");
        }
        let added = |path: &str, text: &str| contents(path, text, true, "mark").unwrap().added;
        assert!(added("a.mjs", "import test from 'node:test';\n").starts_with("import "));
        assert!(
            added("test_a.py", "class A(TestCase): pass\nif __name__ == '__main__':\n    main()\n")
                .ends_with("main()\n")
        );
        assert!(added("t/a.t", "use Test::More;\n__END__\nmore\n").ends_with("__END__\nmore\n"));
        assert!(may_steer_tests("import os; os._exit(0)") && may_steer_tests("os.Args = nil"));
        assert!(!may_steer_tests("return sum(prices)"));
    }

    #[test]
    fn alone_it_replaces_the_tests_of_its_files() {
        let folder = tempfile::tempdir().unwrap();
        let work = folder.path().canonicalize().unwrap();
        fs::write(work.join("test_a.py"), "def test_a(): pass\n").unwrap();
        fs::write(work.join("a_test.go"), "package a\n\nimport \"testing\"\n\nfunc TestA(t *testing.T) {}\n").unwrap();
        let tests = ["test_a.py", "a_test.go", "none.py"].map(str::to_owned);
        let test = FailingTest::of(&tests, Vec::new(), &work).unwrap();
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
