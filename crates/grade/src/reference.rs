//! The reference pages, made from what assertions, operators and templates say of themselves.

mod operators;
mod templates;

use std::fmt::Write;

pub use self::operators::operators_reference;
pub use self::templates::templates_reference;

use crate::assertion::{ASSERTIONS, Assertion, Field, Parameter, camel_case};
use crate::example::Example;
use crate::self_test;

const INTRODUCTION: &str = "\
# Assertions

An assertion says what must hold after the agent has finished. It is judged from the record of what the agent did, so \
a recorded trial can be judged again.

Every entry of `assertions` has these fields beside those of its type:

| field | holds | default | |
| --- | --- | --- | --- |
| `id` | text | required in scenarios | Unique within its case; names the assertion in reports. Elsewhere it is the type \
and a number, such as `contains-2`. |
| `type` | text | required | One of the types below. |
| `weight` | number above 0 | `1` | Its share of the trial's score. A trial passes only if every assertion is met, \
whatever its weight. |
| `title` | text | none | What people call it. |

Files may write the type as the only key beside `id`, `weight` and `title`: `contains: 30 days`. Under it is the field \
that matters most, or a map of the fields; a type that needs no field may stand alone. Code calls an \
assertion by the same name in camel case, as each section shows, after the reply that it is about: \
`assert.contains(reply, \"30 days\")`. Without a reply it is about the whole trial. Fields that are not given one after the \
other go into an object at the end, together with `id`, `weight` and `title`. Everywhere keys may be written in camel case, \
too: `argsMatch` is `args_match`.

A key that is not listed is an error, and so is a regular expression that is not valid.

## Regular expressions

Patterns are ECMAScript regular expressions, as `new RegExp` takes them, and match any part of a text: write `^` and \
`$` to match all of it. A pattern may begin with flags, `(?i)`, `(?ms)`: `i` ignores case, `m` lets `^` and `$` match \
at lines, `s` lets `.` match line ends, `u` and `v` turn on Unicode mode. Flags for a part are written `(?i:…)`. One \
test of one text may take 250 ms. If a pattern is stopped, the assertion is undecided: neither met nor unmet.

In `args_match`, an argument is matched as JavaScript's `String` prints it: numbers as `5` or `1.5`, a list's items \
joined by commas, an object as `[object Object]`. A missing argument, or `null`, is empty text: `^$` matches it, and so \
does `^(?!git )`. A call of `AskUserQuestion` has the texts of its questions for its `question`, a line each.
";

/// The reference as Markdown: `docs/reference/assertions.md`.
pub fn reference() -> String {
    let mut out = INTRODUCTION.to_owned();
    for assertion in ASSERTIONS.iter().filter(|assertion| !assertion.is_implicit()) {
        describe(&mut out, assertion);
    }
    out.push_str("\n## Assertions that go with every trial\n\nThese are not written down.\n");
    for assertion in ASSERTIONS.iter().filter(|assertion| assertion.is_implicit()) {
        describe(&mut out, assertion);
    }
    out
}

/// Writing to text cannot fail, so the results of `write!` mean nothing here.
fn describe(out: &mut String, assertion: &Assertion) {
    let level = if assertion.is_implicit() { "###" } else { "##" };
    let _ = write!(out, "\n{level} `{}`\n\n{}\n\n{}\n", assertion.name, assertion.summary, assertion.details);
    if !assertion.fields.is_empty() {
        out.push_str("\n| field | holds | default | |\n| --- | --- | --- | --- |\n");
        for Field { name, holds, required, default, doc } in assertion.fields {
            let default = if *required { "required" } else { default.unwrap_or("none") };
            let _ = writeln!(out, "| `{name}` | {holds} | {default} | {doc} |");
        }
    }
    if !assertion.is_implicit() {
        let _ = write!(out, "\n{}\n", forms(assertion));
    }
    show(out, assertion, &assertion.pass, "Met");
    show(out, assertion, &assertion.fail, "Not met");
}

/// How the assertion is written as one key and in code, and what else it is called.
fn forms(assertion: &Assertion) -> String {
    let given: Vec<String> = assertion
        .parameters
        .iter()
        .map(|parameter| match parameter {
            Parameter::Value(name) | Parameter::Map(name) => camel_case(name),
            Parameter::Fields => "{ … }".to_owned(),
        })
        .collect();
    let mut text = match assertion.parameters.first() {
        Some(Parameter::Value(name) | Parameter::Map(name)) => {
            format!("In short: `{}:` and its `{name}`. ", assertion.name)
        }
        Some(Parameter::Fields) => match assertion.fields.iter().find(|field| field.required) {
            Some(field) => format!("In short: `{}:` and its `{}`, or a map. ", assertion.name, field.name),
            None => format!("In short: `{}:` and a map. ", assertion.name),
        },
        None => String::new(),
    };
    let code = std::iter::once("reply".to_owned()).chain(given).collect::<Vec<_>>().join(", ");
    let _ = write!(text, "In code: `assert.{}({code})`.", assertion.code_name());
    for alias in assertion.aliases {
        let _ = write!(text, " It may also be called `{alias}`.");
    }
    text
}

fn show(out: &mut String, assertion: &Assertion, example: &Example, title: &str) {
    let _ = write!(out, "\n{title}:\n");
    if let Some(written) = example.written() {
        let _ = write!(out, "\n```yaml\n{written}```\n");
    }
    let mut lines = example.told();
    lines.extend(assertion.judge_says(example).map(|said| format!("judge     {said}")));
    if let Ok(Some(finding)) = self_test::run(assertion, example) {
        lines.push(format!("⇒ {}", finding.because));
        lines.extend(finding.expected.map(|expected| format!("  expected  {expected}")));
        lines.extend(finding.actual.map(|actual| format!("  actual    {actual}")));
        lines.extend(finding.evidence.into_iter().map(|line| format!("            {line}")));
    }
    let _ = write!(out, "\n```text\n{}\n```\n", lines.join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_shows_every_assertion_and_field() {
        let text = reference();
        for assertion in ASSERTIONS {
            assert!(text.contains(&format!("# `{}`", assertion.name)), "{}", assertion.name);
            let code = format!("`assert.{}(reply", assertion.code_name());
            assert!(assertion.is_implicit() || text.contains(&code), "{code}");
            for field in assertion.fields {
                assert!(text.contains(&format!("| `{}` |", field.name)), "{}", field.name);
            }
        }
        assert!(!text.contains("  \n") && text.ends_with("```\n"));
    }
}
