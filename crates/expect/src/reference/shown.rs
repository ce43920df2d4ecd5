//! An example on the page: an expectation, what the case says besides, and what values come to.

use std::fmt::Write;
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Source};
use serde_json::Value;

use crate::expectation::{Data, Expectation};
use crate::found::{Found, Pass};
use crate::host::Host;
use crate::rules::{Rules, Strict};

/// An expectation and values that it is held against.
pub(super) struct Shown {
    /// The expectation, as JSON.
    pub expectation: &'static str,
    /// What the case says besides, as a map in JSON: `strict`, `diff`; empty for nothing.
    pub given: &'static str,
    /// The values.
    pub rows: Rows,
}

/// The values of an example.
pub(super) enum Rows {
    /// Written down.
    Fixed(&'static [Row]),
    /// Taken from somewhere else.
    Made(Vec<Row>),
}

/// A value and what it comes to.
pub(super) struct Row {
    /// As JSON; [`NOTHING`] for a missing value.
    pub value: &'static str,
    /// Whether it matches.
    pub passes: bool,
    /// What it scores, where that is part of the example.
    pub score: Option<f64>,
}

/// Stands for a missing value.
pub(super) const NOTHING: &str = "nothing";

/// A value that matches in full.
pub(super) const fn yes(value: &'static str) -> Row {
    Row { value, passes: true, score: Some(1.0) }
}

/// A value that does not match and scores nothing.
pub(super) const fn no(value: &'static str) -> Row {
    Row { value, passes: false, score: Some(0.0) }
}

/// A value that scores something between.
pub(super) const fn scores(value: &'static str, passes: bool, score: f64) -> Row {
    Row { value, passes, score: Some(score) }
}

/// An example without anything besides.
pub(super) const fn shown(expectation: &'static str, rows: &'static [Row]) -> Shown {
    Shown { expectation, given: "", rows: Rows::Fixed(rows) }
}

/// An example of a case that says more.
pub(super) const fn given(given: &'static str, expectation: &'static str, rows: &'static [Row]) -> Shown {
    Shown { expectation, given, rows: Rows::Fixed(rows) }
}

impl Shown {
    /// Adds it to `page`.
    pub fn write(&self, page: &mut String, host: &Arc<dyn Host>) {
        let _ = write!(page, "\n```json\n{}\n```\n", self.expectation);
        if let Ok(Value::Object(given)) = serde_json::from_str(self.given) {
            let said: Vec<String> = given.iter().map(|(key, value)| format!("`{key}: {value}`")).collect();
            let _ = write!(page, "\nwith {}\n", said.join(", "));
        }
        page.push_str("\n```text\n");
        if let Ok(expectation) = self.compile(host) {
            for row in self.rows() {
                if let Ok(found) = row.judge(&expectation) {
                    page.push_str(&row.drawn(found));
                }
            }
        }
        page.push_str("```\n");
    }

    /// What does not come out as it should.
    pub fn wrong(&self, host: &Arc<dyn Host>) -> Vec<String> {
        let expectation = match self.compile(host) {
            Ok(expectation) => expectation,
            Err(because) => return vec![format!("{}: {because}", self.expectation)],
        };
        let wrong = self.rows().iter().filter_map(|row| row.wrong(&expectation));
        wrong.map(|wrong| format!("{} against {wrong}", self.expectation)).collect()
    }

    fn rows(&self) -> &[Row] {
        match &self.rows {
            Rows::Fixed(rows) => rows,
            Rows::Made(rows) => rows,
        }
    }

    fn compile(&self, host: &Arc<dyn Host>) -> Result<Expectation, String> {
        let mut problems = Problems::new();
        let expected = node(self.expectation)?;
        let case = if self.given.is_empty() { None } else { Some(node(self.given)?) };
        let said = |key: &str| case.as_ref().and_then(|case| case.get(key));
        let mut rules = Rules::default();
        if let Some(strict) = said("strict") {
            rules.strict = Strict::read(strict, &mut problems);
        }
        let expectation = Expectation::of_result(&expected, rules, host, said("diff"), &mut problems);
        match problems.first() {
            None => Ok(expectation),
            Some(problem) => Err(problem.to_string()),
        }
    }
}

impl Row {
    fn judge(&self, expectation: &Expectation) -> Result<Found, String> {
        let value = match self.value {
            NOTHING => None,
            text => Some(serde_json::from_str::<Value>(text).map_err(|error| format!("{text}: {error}"))?),
        };
        Ok(expectation.judge(value.as_ref(), &Data::default()))
    }

    fn wrong(&self, expectation: &Expectation) -> Option<String> {
        let found = match self.judge(expectation) {
            Ok(found) => found,
            Err(because) => return Some(because),
        };
        let is_right = (found.pass == Pass::Yes) == self.passes
            && found.pass != Pass::Unknown
            && self.score.is_none_or(|score| (score - found.score).abs() < 1e-9);
        (!is_right).then(|| format!("{}: {:?} with {}", self.value, found.pass, found.score))
    }

    fn drawn(&self, found: Found) -> String {
        let (mark, plain) = if found.pass == Pass::Yes { ('✓', 1.0) } else { ('✗', 0.0) };
        let mut text = format!("{mark} {}", self.value);
        if (found.score - plain).abs() > 1e-9 {
            let _ = write!(text, "   scores {}", number(found.score));
        }
        text.push('\n');
        for flaw in found.flaws {
            let failure = flaw.into_failure();
            let key = if failure.key.is_empty() { String::new() } else { format!("{}: ", failure.key) };
            let critical = if failure.critical { " (critical)" } else { "" };
            let _ = writeln!(text, "    ⇒ {key}{}{critical}", failure.message);
        }
        text
    }
}

fn node(text: &str) -> Result<Node, String> {
    let value = serde_json::from_str::<Value>(text).map_err(|error| format!("{text}: {error}"))?;
    Ok(Node::from_json(&value, &Source::new("example", text)))
}

/// With three digits at most.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A text that fits into a cell of a table.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}
