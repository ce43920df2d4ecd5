//! Examples on a Markdown page: an expectation in a `json` block, followed by values with their results in a `text`
//! block.

use std::fmt::Write as _;
use std::sync::Arc;

use model::decode::Problems;
use model::{Node, Source};
use serde_json::Value;

use crate::expectation::Expectation;
use crate::found::{Found, Pass};
use crate::host::Host;
use crate::operator::OPERATORS;
use crate::rule::Data;
use crate::rules::{Rules, Strict};

/// Separator between a value and its score.
const SCORE: &str = "   scores ";

/// An expectation, with values that match it and values that do not.
#[derive(Debug, Default)]
pub struct Example {
    /// Heading of its section.
    pub section: String,
    /// Settings for the case, from a line such as ``with `strict: true` ``.
    pub settings: Vec<(String, String)>,
    /// The expectation as JSON.
    pub expectation: String,
    /// A line for each value, followed by a line for each failure.
    pub results: String,
}

/// Result of an operator's examples: those whose results differ from the documentation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// Name of the operator.
    pub operator: &'static str,
    /// A message per wrong example.
    pub wrong: Vec<String>,
}

/// Runs the examples of all operators. The examples for `$name` are in the section of `page` with this heading.
pub fn self_test(page: &str, host: &Arc<dyn Host>) -> Vec<SelfTest> {
    let examples = Example::all(page);
    let test = |name| {
        let own: Vec<&Example> = examples.iter().filter(|example| example.section == name).collect();
        let wrong = own.iter().filter_map(|example| example.wrong(Rules::default(), host)).collect();
        SelfTest { operator: name, wrong: if own.is_empty() { vec!["it has no example".to_owned()] } else { wrong } }
    };
    OPERATORS.iter().map(|operator| test(operator.name)).collect()
}

impl Example {
    /// Returns the examples on `page`.
    pub fn all(page: &str) -> Vec<Self> {
        let mut examples = Vec::new();
        let mut next = Self::default();
        let mut lines = page.lines();
        while let Some(line) = lines.next() {
            if line.starts_with("##") {
                next = Self { section: line.trim_matches(['#', ' ', '`']).to_owned(), ..Self::default() };
            } else if let Some(settings) = line.strip_prefix("with `") {
                let settings = settings.split('`').filter_map(|setting| setting.split_once(": "));
                next.settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned())).collect();
            } else if let Some(language) = line.strip_prefix("```") {
                let block = lines.by_ref().take_while(|line| *line != "```").collect::<Vec<_>>().join("\n");
                match language {
                    "json" => next.expectation = block,
                    "text" if !next.expectation.is_empty() => {
                        let section = next.section.clone();
                        examples.push(Self { results: block, ..next });
                        next = Self { section, ..Self::default() };
                    }
                    _ => {}
                }
            }
        }
        examples
    }

    /// Returns the difference between the documented and the actual results, if there is one.
    pub fn wrong(&self, rules: Rules, host: &Arc<dyn Host>) -> Option<String> {
        match self.run(rules, host) {
            Ok(results) if results == self.results => None,
            Ok(results) => {
                Some(format!("{} documents\n{}\nbut the results are\n{results}", self.expectation, self.results))
            }
            Err(reason) => Some(format!("{}: {reason}", self.expectation)),
        }
    }

    /// Returns the results for its values, in the form of `results`.
    fn run(&self, mut rules: Rules, host: &Arc<dyn Host>) -> Result<String, String> {
        let mut problems = Problems::new();
        let mut diff = None;
        for (key, value) in &self.settings {
            match key.as_str() {
                "strict" => rules.strict = Strict::read(&node(value)?, &mut problems),
                "diff" => diff = Some(node(value)?),
                _ => {}
            }
        }
        let expected = node(&self.expectation)?;
        let expectation = Expectation::from_result(&expected, rules, host, diff.as_ref(), &mut problems);
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
        let mut results = String::new();
        for line in self.results.lines() {
            let Some(value) = line.strip_prefix("✓ ").or_else(|| line.strip_prefix("✗ ")) else { continue };
            let value = value.split(SCORE).next().unwrap_or_default();
            let actual = if value == "nothing" { None } else { Some(json(value)?) };
            show(value, expectation.judge(actual.as_ref(), &Data::default()), &mut results);
        }
        Ok(results.trim_end().to_owned())
    }
}

/// Adds a line for a value, and a line for each of its failures. Writing to a string cannot fail.
fn show(value: &str, found: Found, results: &mut String) {
    let (mark, plain) = match found.pass {
        Pass::Yes => ('✓', 1.0),
        Pass::No => ('✗', 0.0),
        Pass::Unknown => ('?', 0.0),
    };
    let _ = write!(results, "{mark} {value}");
    if (found.score - plain).abs() > 1e-9 {
        let score = format!("{:.3}", found.score);
        let _ = write!(results, "{SCORE}{}", score.trim_end_matches('0').trim_end_matches('.'));
    }
    results.push('\n');
    for flaw in found.flaws {
        let failure = flaw.into_failure();
        let key = if failure.key.is_empty() { String::new() } else { format!("{}: ", failure.key) };
        let critical = if failure.critical { " (critical)" } else { "" };
        let _ = writeln!(results, "    ⇒ {key}{}{critical}", failure.message);
    }
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("{text}: {error}"))
}

fn node(text: &str) -> Result<Node, String> {
    Ok(Node::from_json(&json(text)?, &Source::new("example", text)))
}
