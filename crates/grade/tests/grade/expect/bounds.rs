//! Tests that statements about undecided parts hold for every possible decision: the verdict, the range of the score,
//! and the critical failures.

use std::path::Path;
use std::sync::Arc;

use expect::{Answer, Argument, Data, Expectation, Found, Function, Host, Invalid, Pass, Pattern, Rules, Trouble};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::{Value, json};

use crate::expect::{host, node};

/// Strings that are matched.
const TEXTS: [&str; 2] = ["p", "q"];
/// Patterns that cannot be decided.
const PATTERNS: [&str; 2] = ["s0", "s1"];
/// Number of possible decisions for all patterns and strings.
const ANSWERS: u32 = 1 << (TEXTS.len() * PATTERNS.len());

/// The engine with stubbed patterns, which are decided by the bits of a number. Without a number, they time out.
#[derive(Debug)]
struct Deciding {
    engine: Arc<dyn Host>,
    answers: Option<u32>,
}

#[derive(Debug)]
struct Decided {
    pattern: usize,
    answers: Option<u32>,
}

impl Pattern for Decided {
    fn is_match(&self, text: &str) -> Result<bool, String> {
        let text = TEXTS.iter().position(|known| *known == text).unwrap_or_default();
        let answers = self.answers.ok_or_else(|| "was stopped".to_owned())?;
        Ok(answers & (1 << (self.pattern * TEXTS.len() + text)) != 0)
    }
}

impl Host for Deciding {
    fn regex(&self, source: &str, flags: &str) -> Result<Arc<dyn Pattern>, Invalid> {
        match PATTERNS.iter().position(|pattern| *pattern == source) {
            Some(pattern) => Ok(Arc::new(Decided { pattern, answers: self.answers })),
            None => self.engine.regex(source, flags),
        }
    }

    fn expression(&self, text: &str, names: &[&str]) -> Result<(), Invalid> {
        self.engine.expression(text, names)
    }

    fn evaluate(&self, text: &str, scope: &[(&str, Option<&Value>)]) -> Result<Option<Value>, Trouble> {
        self.engine.evaluate(text, scope)
    }

    fn function(&self, reference: &str, name: &str, directory: &Path) -> Result<Function, Invalid> {
        self.engine.function(reference, name, directory)
    }

    fn call(
        &self,
        function: &Function,
        arguments: &[Argument<'_>],
        answer: &mut Answer<'_>,
    ) -> Result<Option<Value>, Trouble> {
        self.engine.call(function, arguments, answer)
    }
}

fn judged(expected: &Value, actual: &Value, answers: Option<u32>) -> Found {
    let host: Arc<dyn Host> = Arc::new(Deciding { engine: host(), answers });
    let mut problems = Vec::new();
    let expectation = Expectation::from_value(&node(expected), Rules::default(), &host, None, &mut problems);
    expectation.judge(Some(actual), &Data::default())
}

/// Adds metadata to an expectation.
fn with_metadata(inner: impl Strategy<Value = Value>, may_be_penalty: bool) -> impl Strategy<Value = Value> {
    let weights = if may_be_penalty { vec![10, 50, -30, -80] } else { vec![10, 50] };
    let weight = prop::option::weighted(0.5, prop::sample::select(weights));
    let threshold = prop::option::weighted(0.15, prop::sample::select(vec![0.3, 0.5, 0.9]));
    (inner, weight, threshold, prop::bool::weighted(0.2)).prop_map(|(inner, weight, threshold, critical)| {
        let mut expectation = json!({"$expect": inner});
        if let Some(weight) = weight {
            expectation["$score"] = weight.into();
        }
        if let Some(threshold) = threshold {
            expectation["$threshold"] = threshold.into();
        }
        if critical {
            expectation["$critical"] = true.into();
        }
        expectation
    })
}

fn items(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    prop::collection::vec(with_metadata(inner, true), 1..4).prop_map(Value::from)
}

/// Generates an expectation of a string.
fn of_text() -> impl Strategy<Value = Value> {
    let leaf = prop::sample::select(vec!["p", "q", "zzz", "/s0/", "/s1/"]).prop_map(Value::from);
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            items(inner.clone()).prop_map(|items| json!({"$and": items})),
            items(inner.clone()).prop_map(|items| json!({"$or": items})),
            with_metadata(inner, false).prop_map(|inner| json!({"$not": inner})),
        ]
    })
}

/// Generates an expectation of a list of strings.
fn of_list() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        items(of_text()).prop_map(|items| json!({"$all": items})),
        items(of_text()).prop_map(|items| json!({"$sequence": items})),
        items(of_text()).prop_map(|items| json!({"$sequence": items})),
        with_metadata(of_text(), false).prop_map(|inner| json!({"$contains": inner})),
        with_metadata(of_text(), false).prop_map(|inner| json!({"$each": inner})),
        items(of_text()),
    ];
    leaf.prop_recursive(1, 4, 3, |inner| {
        prop_oneof![
            items(inner.clone()).prop_map(|items| json!({"$and": items})),
            items(inner.clone()).prop_map(|items| json!({"$or": items})),
            with_metadata(inner, false).prop_map(|inner| json!({"$not": inner})),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(7), failure_persistence: None, cases: 300, ..ProptestConfig::default()
    })]

    #[test]
    fn undecided_results_stay_within_their_bounds(
        expected in of_list(),
        actual in prop::collection::vec(prop::sample::select(TEXTS.to_vec()), 0..4),
    ) {
        let actual = Value::from(actual);
        let open = judged(&expected, &actual, None);
        prop_assert!(open.pass != Pass::Yes || open.flaws.is_empty(), "{open:#?}");
        prop_assert!(open.pass == Pass::Yes || !open.flaws.is_empty(), "{open:#?}");
        let surely = open.flaws.iter().any(|flaw| flaw.critical && !flaw.undecided);
        let maybe = open.flaws.iter().any(|flaw| flaw.critical);
        prop_assert!(!surely || open.pass == Pass::No, "{open:#?}");
        for answers in 0..ANSWERS {
            let found = judged(&expected, &actual, Some(answers));
            prop_assert!(found.pass != Pass::Unknown && found.score == found.most);
            prop_assert!(open.pass == Pass::Unknown || open.pass == found.pass, "{answers:b}: {open:#?} {found:#?}");
            let inside = open.score - 1e-9 <= found.score && found.score <= open.most + 1e-9;
            prop_assert!(inside, "{answers:b}: {} is not from {} to {}", found.score, open.score, open.most);
            let critical = found.flaws.iter().any(|flaw| flaw.critical);
            prop_assert!(!surely || critical, "{answers:b}: {open:#?} {found:#?}");
            prop_assert!(!critical || maybe, "{answers:b}: {open:#?} {found:#?}");
        }
    }
}
