//! Examples of operators that are run as tests: an expectation, values that match it and values that do not.

use std::sync::Arc;

use model::Source;
use model::decode::Problems;
use serde_json::Value;

use super::OPERATORS;
use crate::expectation::{Data, Expectation};
use crate::found::Pass;
use crate::host::Host;
use crate::rules::Rules;

/// Expectation with matching and non-matching values, all as JSON.
#[derive(Debug)]
pub struct Example {
    /// Expectation.
    pub expectation: &'static str,
    /// Values that match.
    pub matches: &'static [&'static str],
    /// Values that do not match.
    pub differs: &'static [&'static str],
}

/// Result of the examples of an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTest {
    /// Name of the operator.
    pub operator: &'static str,
    /// Examples with another result than documented.
    pub wrong: Vec<String>,
}

/// Runs every documented example.
pub fn self_test(host: &Arc<dyn Host>) -> Vec<SelfTest> {
    let test = |operator: &super::Operator| SelfTest {
        operator: operator.name,
        wrong: operator.examples.iter().flat_map(|example| example.run(host)).collect(),
    };
    OPERATORS.iter().map(test).collect()
}

impl Example {
    fn run(&self, host: &Arc<dyn Host>) -> Vec<String> {
        let mut problems = Problems::new();
        let expectation = match serde_json::from_str::<Value>(self.expectation) {
            Ok(value) => {
                let node = model::Node::from_json(&value, &Source::new("example", self.expectation));
                Expectation::of_value(&node, Rules::default(), host, None, &mut problems)
            }
            Err(error) => return vec![format!("{}: {error}", self.expectation)],
        };
        if !problems.is_empty() {
            return problems.iter().map(|problem| format!("{}: {problem}", self.expectation)).collect();
        }
        let matches = self.matches.iter().map(|text| (*text, Pass::Yes));
        let wanted = matches.chain(self.differs.iter().map(|text| (*text, Pass::No)));
        wanted.filter_map(|(text, wanted)| self.differs_from(&expectation, text, wanted)).collect()
    }

    fn differs_from(&self, expectation: &Expectation, text: &str, wanted: Pass) -> Option<String> {
        let value: Value = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return Some(format!("{text}: {error}")),
        };
        let found = expectation.judge(Some(&value), &Data::default());
        (found.pass != wanted).then(|| format!("{} against {text}: {:?}, not {wanted:?}", self.expectation, found.pass))
    }
}
