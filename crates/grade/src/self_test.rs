//! Runs every documented example.

use std::sync::Arc;

use expect::Host;
use model::decode::Problems;
use model::{AssertionSpec, Evidence, Finding, Node, Span, Spanned, Status};

use crate::assertion_type::Assertion;
use crate::assertions::ASSERTIONS;
use crate::check::{Check, grade};
use crate::consult::rehearse;
use crate::context::Context;
use crate::example::Example;
use crate::scripts::Scripts;
use crate::yaml;

/// Result of a documented example.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelfTestResult {
    /// Name of the assertion.
    pub assertion: &'static str,
    /// `pass` or `fail`: the expected result.
    pub example: &'static str,
    /// True if the result is the expected one.
    pub ok: bool,
    /// Reason that the assertion gave, or the error.
    pub reason: String,
}

/// Runs the pass and the fail example of every assertion, in order.
pub fn self_test() -> Vec<SelfTestResult> {
    let examples = ASSERTIONS.iter().flat_map(|assertion| {
        let pass = (assertion, "pass", &assertion.pass, Status::Met);
        let fail = (assertion, "fail", &assertion.fail, Status::Unmet);
        [pass, fail]
    });
    examples
        .map(|(assertion, example, given, wanted)| {
            let (ok, reason) = match run(assertion, given) {
                Ok(Some(finding)) => (finding.status == wanted, finding.reason),
                // An implicit assertion that does not apply has no objection to the trial.
                Ok(None) => (wanted == Status::Met, "no finding".into()),
                Err(reason) => (false, reason),
            };
            SelfTestResult { assertion: assertion.name, example, ok, reason }
        })
        .collect()
}

/// Runs the examples in `page`, which describes the operators in expectations, with the embedded script engine.
pub fn operator_self_test(page: &str) -> Vec<expect::SelfTest> {
    let host: Arc<dyn Host> = Arc::new(Scripts::default());
    expect::self_test(page, &host)
}

/// Returns the finding of `assertion` for its own example.
pub(crate) fn run(assertion: &Assertion, example: &Example) -> Result<Option<Finding>, String> {
    let evidence: Evidence = example.evidence();
    let mut checks = Vec::new();
    if !assertion.is_implicit() {
        let mut problems = Problems::new();
        let spec = spec_of(yaml::list_item(&(example.assertion)(), "example.yaml"))?;
        checks.extend(Check::compile(&spec, &Context::default(), &mut problems));
        if let Some(problem) = problems.first() {
            return Err(problem.to_string());
        }
    }
    if let (Some(answer), Some(check)) = (assertion.judge_says(example), checks.first()) {
        return rehearse(check, &evidence, &answer).map(Some);
    }
    Ok(grade(&checks, &evidence).into_iter().find(|finding| finding.kind == assertion.name))
}

/// Creates an entry of `assertions` from its tree.
pub(crate) fn spec_of(node: Node) -> Result<AssertionSpec, String> {
    let text = |key: &str| {
        let found = node.get(key).and_then(|value| Some((value.as_str()?.to_owned(), value.span)));
        found.ok_or_else(|| format!("the example has no `{key}`"))
    };
    let (id, _): (String, Span) = text("id")?;
    let (kind, span) = text("type")?;
    let weight = node.get("weight").and_then(|weight| weight.to_json().as_f64()).unwrap_or(1.0);
    Ok(AssertionSpec {
        id,
        kind: Spanned::new(kind, span),
        weight,
        node,
        arguments: model::Arguments::Fields,
        about: model::AssertionScope::Trial,
    })
}

#[cfg(test)]
mod tests {
    use expect::Rules;

    use super::*;

    /// The page that describes the operators in expectations, with their examples.
    const OPERATORS_PAGE: &str = include_str!("../../../docs/reference/operators.md");

    #[test]
    fn every_documented_example_has_its_documented_result() {
        let results = self_test();
        let wrong: Vec<_> = results.iter().filter(|result| !result.ok).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(results.len(), ASSERTIONS.len() * 2);
    }

    #[test]
    fn every_example_of_an_operator_has_its_documented_result() {
        let results = operator_self_test(OPERATORS_PAGE);
        let wrong: Vec<_> = results.iter().filter(|result| !result.wrong.is_empty()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(results.len(), expect::OPERATORS.len());
    }

    #[test]
    fn every_example_on_the_page_has_its_documented_result() {
        let host: Arc<dyn Host> = Arc::new(Scripts::default());
        let folder = tempfile::tempdir().unwrap();
        for module in OPERATORS_PAGE.split("```js\n// ").skip(1) {
            let (file, rest) = module.split_once('\n').unwrap();
            std::fs::write(folder.path().join(file), rest.split("```").next().unwrap()).unwrap();
        }
        let mut sections = std::collections::BTreeSet::new();
        for example in expect::Example::all(OPERATORS_PAGE) {
            let mut rules = Rules::default();
            for (_, list) in example.settings.iter().filter(|(key, _)| key == "operators") {
                let reference = list.trim_matches(['[', ']']);
                let name = format!("${}", script::Reference::parse(reference).unwrap().inferred_name());
                let function = host.function(reference, &name, folder.path()).unwrap();
                rules.operators.push((name, function));
            }
            assert_eq!(example.wrong(rules, &host), None, "{}", example.section);
            sections.insert(example.section);
        }
        assert_eq!(sections.len(), expect::OPERATORS.len() + 17, "{sections:?}");
    }

    /// Returns the cells of the table with this header on the page.
    fn rows(head: &str) -> Vec<[String; 2]> {
        let rows = OPERATORS_PAGE.split(head).nth(1).unwrap().lines().skip(2).take_while(|line| !line.is_empty());
        let cells = |line: &str| {
            let (left, right) = line.trim_matches(['|', ' ']).split_once(" | ").unwrap();
            [left.to_owned(), right.to_owned()]
        };
        rows.map(cells).collect()
    }

    #[test]
    fn the_page_shows_what_invalid_expectations_cause() {
        let host: Arc<dyn Host> = Arc::new(Scripts::default());
        let rows = rows("| expectation | message |");
        assert_eq!(rows.len(), 11);
        for [expectation, message] in rows {
            let value = serde_json::from_str(expectation.trim_matches('`')).unwrap();
            let mut problems = Problems::new();
            let node = Node::from_json(&value, &model::Source::new("example", ""));
            expect::Expectation::from_value(&node, Rules::default(), &host, None, &mut problems);
            let reported = problems.iter().map(|problem| {
                let kind = if problem.is_error() { "error" } else { "warning" };
                let help = problem.help.iter().map(|help| format!(" ({help})")).collect::<String>();
                format!("{kind}: {}{help}", problem.message)
            });
            assert_eq!(message, reported.collect::<Vec<_>>().join("; "), "{expectation}");
        }
    }

    #[test]
    fn the_page_shows_how_weights_become_shares() {
        let rows = rows("| weights of a level | shares |");
        assert_eq!(rows.len(), 14);
        for [weights, shares] in rows {
            let weights: Vec<Option<f64>> = weights.split(", ").map(|weight| weight.parse().ok()).collect();
            let computed =
                expect::Budget::default().together(&weights).into_iter().map(|share| (share * 1e3).round() / 1e3);
            assert_eq!(shares, computed.map(|share| share.to_string()).collect::<Vec<_>>().join(", "), "{weights:?}");
        }
    }

    #[test]
    fn a_failure_shows_expected_and_actual_values() {
        for assertion in ASSERTIONS {
            let finding = run(assertion, &assertion.fail).unwrap().unwrap();
            assert!(finding.expected.is_some() && finding.actual.is_some(), "{}", assertion.name);
            assert!(!finding.reason.contains('\n') && !finding.reason.is_empty(), "{}", assertion.name);
            assert_eq!(finding.source.is_some(), !assertion.is_implicit(), "{}", assertion.name);
        }
    }
}
