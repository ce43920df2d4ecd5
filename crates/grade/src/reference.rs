//! Generated sections of the reference pages about assertions and operators.

use std::fmt::Write;

use expect::OPERATORS;

use crate::assertion_type::{Assertion, Field, Parameter, camel_case};
use crate::assertions::ASSERTIONS;
use crate::example::Example;
use crate::self_test;

/// Returns the generated sections of the reference pages, with their names, as Markdown.
pub fn reference() -> Vec<(String, String)> {
    let operators = OPERATORS.iter().map(|operator| (operator.name, operator.summary));
    let assertions = ASSERTIONS.iter().map(|assertion| (assertion.name, assertion.summary));
    let mut sections = vec![
        ("operators".to_owned(), index("operator", operators)),
        ("assertions".to_owned(), index("assertion", assertions)),
    ];
    sections.extend(ASSERTIONS.iter().map(|assertion| (format!("assertion {}", assertion.name), describe(assertion))));
    sections
}

/// Returns a table of names with links to their headings.
fn index(title: &str, rows: impl Iterator<Item = (&'static str, &'static str)>) -> String {
    // The dollar is not part of a heading's anchor.
    let row =
        |(name, summary): (&str, &str)| format!("| [`{name}`](#{}) | {summary} |\n", name.trim_start_matches('$'));
    format!("| {title} | meaning |\n| --- | --- |\n{}", rows.map(row).collect::<String>())
}

/// Returns the fields, forms and examples of an assertion. Writing to a string cannot fail.
fn describe(assertion: &Assertion) -> String {
    let mut out = String::new();
    if !assertion.fields.is_empty() {
        out.push_str("| field | value | default | meaning |\n| --- | --- | --- | --- |\n");
        for Field { name, holds, required, default, doc } in assertion.fields {
            let default = if *required { "required" } else { default.unwrap_or("none") };
            let _ = writeln!(out, "| `{name}` | {holds} | {default} | {doc} |");
        }
        out.push('\n');
    }
    if !assertion.is_implicit() {
        let _ = writeln!(out, "{}\n", forms(assertion));
    }
    show(&mut out, assertion, &assertion.pass, "Met");
    show(&mut out, assertion, &assertion.fail, "Unmet");
    out
}

/// Returns the short form, the form in code, and the aliases of an assertion.
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
            format!("Short form: `{}:` with its `{name}`. ", assertion.name)
        }
        Some(Parameter::Fields) => match assertion.fields.iter().find(|field| field.required) {
            Some(field) => format!("Short form: `{}:` with its `{}`, or a map. ", assertion.name, field.name),
            None => format!("Short form: `{}:` with a map. ", assertion.name),
        },
        None => String::new(),
    };
    let code = std::iter::once("reply".to_owned()).chain(given).collect::<Vec<_>>().join(", ");
    let _ = write!(text, "In code: `assert.{}({code})`.", assertion.code_name());
    for alias in assertion.aliases {
        let _ = write!(text, " Alias: `{alias}`.");
    }
    text
}

fn show(out: &mut String, assertion: &Assertion, example: &Example, title: &str) {
    let _ = write!(out, "{title}:\n\n");
    if let Some(written) = example.written() {
        let _ = write!(out, "```yaml\n{written}```\n\n");
    }
    let mut lines = example.describe();
    lines.extend(assertion.judge_says(example).map(|answer| format!("judge     {answer}")));
    if let Ok(Some(finding)) = self_test::run(assertion, example) {
        lines.push(format!("⇒ {}", finding.reason));
        lines.extend(finding.expected.map(|expected| format!("  expected  {expected}")));
        lines.extend(finding.actual.map(|actual| format!("  actual    {actual}")));
        lines.extend(finding.evidence.into_iter().map(|line| format!("            {line}")));
    }
    let _ = write!(out, "```text\n{}\n```\n\n", lines.join("\n"));
}
