//! Runs every documented example.

use std::sync::Arc;

use expect::Host;
use model::decode::Problems;
use model::{AssertionSpec, Evidence, Finding, Node, Span, Spanned, Status};

use crate::assertion::{ASSERTIONS, Assertion};
use crate::check::{Check, Context, grade};
use crate::example::Example;
use crate::judge;
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
    pub because: String,
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
            let (ok, because) = match run(assertion, given) {
                Ok(Some(finding)) => (finding.status == wanted, finding.because),
                // An implicit assertion that does not apply has no objection to the trial.
                Ok(None) => (wanted == Status::Met, "nothing to say".into()),
                Err(because) => (false, because),
            };
            SelfTestResult { assertion: assertion.name, example, ok, because }
        })
        .collect()
}

/// Runs the examples of every operator of expectations, with the embedded script engine.
pub fn operator_self_test() -> Vec<expect::SelfTest> {
    let host: Arc<dyn Host> = Arc::new(Scripts::default());
    expect::self_test(&host)
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
    if let (Some(said), Some(check)) = (assertion.judge_says(example), checks.first()) {
        return judge::rehearse(check, &evidence, &said).map(Some);
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
        about: model::About::Trial,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_documented_example_does_what_it_is_for() {
        let results = self_test();
        let wrong: Vec<_> = results.iter().filter(|result| !result.ok).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(results.len(), ASSERTIONS.len() * 2);
    }

    #[test]
    fn every_example_of_an_operator_comes_out_as_documented() {
        let results = operator_self_test();
        let wrong: Vec<_> = results.iter().filter(|result| !result.wrong.is_empty()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(results.len(), expect::OPERATORS.len());
    }

    #[test]
    fn a_failure_says_what_was_wanted_and_what_was_there() {
        for assertion in ASSERTIONS {
            let finding = run(assertion, &assertion.fail).unwrap().unwrap();
            assert!(finding.expected.is_some() && finding.actual.is_some(), "{}", assertion.name);
            assert!(!finding.because.contains('\n') && !finding.because.is_empty(), "{}", assertion.name);
            assert_eq!(finding.source.is_some(), !assertion.is_implicit(), "{}", assertion.name);
        }
    }
}
