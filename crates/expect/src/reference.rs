//! The reference of expectations, made from what the operators say of themselves and from examples that are run.

mod chapters;
mod scoring;
mod shown;

use std::fmt::Write;
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Source};
use serde_json::Value;

use self::chapters::{CHAPTERS, REFUSED};
use self::shown::Shown;
use crate::expectation::Expectation;
use crate::host::Host;
use crate::operator::{Example, OPERATORS, Operator};
use crate::rules::Rules;
use crate::weight::Budget;

const INTRODUCTION: &str = "\
# Expectations and operators

An expectation says what a value should be: a text, a pattern, a number, a list, a map, a JSON Schema, or an operator \
such as `$contains`. It is judged to a verdict, a score from 0 to 1, and a list of what is not as it should be. It \
stands under `output` and `expect` of a [fixtures file](fixtures.md), and in the assertion \
[`expect`](assertions.md#expect) of a scenario.

Everything here is written as JSON; in YAML it means the same. An example shows an expectation and values it was held \
against: `✓` matches, `✗` does not. A score is shown where it is not simply all or nothing, a path where something \
further inside is not as it should be.
";

/// The reference as Markdown. `host` runs its examples.
pub fn reference(host: &Arc<dyn Host>) -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## The operators\n\n| operator | |\n| --- | --- |\n");
    for operator in OPERATORS {
        // The dollar is not part of the heading's anchor.
        let anchor = operator.name.trim_start_matches('$');
        let _ = writeln!(page, "| [`{}`](#{anchor}) | {} |", operator.name, operator.summary);
    }
    for operator in OPERATORS {
        describe(&mut page, operator, host);
    }
    for chapter in CHAPTERS {
        let _ = write!(page, "\n## {}\n\n{}", chapter.title, chapter.text);
        if chapter.title == chapters::WEIGHTS {
            page.push_str(&shares());
        }
        for shown in chapter.shown {
            shown.write(&mut page, host);
        }
    }
    page.push_str(&refused(host));
    page
}

/// What the examples of the chapters come to otherwise than they should; empty if the page is right. Those of the
/// operators are run by [`crate::self_test`].
pub fn wrong_examples(host: &Arc<dyn Host>) -> Vec<String> {
    let wrong = CHAPTERS.iter().flat_map(|chapter| {
        let wrong = chapter.shown.iter().flat_map(|shown| shown.wrong(host));
        wrong.map(|wrong| format!("{}: {wrong}", chapter.title))
    });
    let silent = REFUSED.iter().filter(|text| problems(text, host).is_empty());
    wrong.chain(silent.map(|text| format!("{text} has nothing wrong with it"))).collect()
}

/// Writing to text cannot fail, so the results of `write!` mean nothing here.
fn describe(page: &mut String, operator: &Operator, host: &Arc<dyn Host>) {
    let Operator { name, summary, operand, details, scoring, examples, .. } = operator;
    let _ = write!(page, "\n### `{name}`\n\n{summary}\n\nTakes {operand}. {details}\n\nScore: {scoring}\n");
    for example in *examples {
        Shown::of(example).write(page, host);
    }
}

/// How weights of one level become shares, as the engine itself shares them.
fn shares() -> String {
    let mut table = String::from("\n| weights of a level | shares |\n| --- | --- |\n");
    let shown = |weight: f64| shown::number(weight);
    for weights in scoring::WEIGHTS_SHOWN {
        let written = weights.iter().map(|weight| weight.map_or_else(|| "none".to_owned(), shown));
        let shares = Budget::default().together(weights).into_iter().map(shown);
        let list = |parts: &mut dyn Iterator<Item = String>| parts.collect::<Vec<_>>().join(", ");
        let _ = writeln!(table, "| {} | {} |", list(&mut written.into_iter()), list(&mut shares.into_iter()));
    }
    table
}

/// Expectations that are not valid, with what is said about them.
fn refused(host: &Arc<dyn Host>) -> String {
    let mut table = String::from("\n| written | told |\n| --- | --- |\n");
    for text in REFUSED {
        let told: Vec<String> = problems(text, host);
        let _ = writeln!(table, "| `{}` | {} |", shown::cell(text), shown::cell(&told.join("; ")));
    }
    table
}

/// What is said about the expectation `text`.
fn problems(text: &str, host: &Arc<dyn Host>) -> Vec<String> {
    let Ok(value) = serde_json::from_str::<Value>(text) else { return Vec::new() };
    let mut problems = Problems::new();
    let node = Node::from_json(&value, &Source::new("example", ""));
    Expectation::of_value(&node, Rules::default(), host, None, &mut problems);
    problems
        .iter()
        .map(|problem| {
            let kind = if problem.is_error() { "error" } else { "warning" };
            let help = problem.help.iter().map(|help| format!(" ({help})")).collect::<String>();
            format!("{kind}: {}{help}", problem.message)
        })
        .collect()
}

impl Shown {
    /// An operator's example.
    fn of(example: &Example) -> Self {
        let row = |passes| move |value: &&'static str| shown::Row { value, passes, score: None };
        let matches = example.matches.iter().map(row(true));
        let rows = matches.chain(example.differs.iter().map(row(false))).collect();
        Self { expectation: example.expectation, given: "", rows: shown::Rows::Made(rows) }
    }
}
