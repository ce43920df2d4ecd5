//! Properties that hold for every expectation and every value. The random cases are the same in each run.

mod any;
mod full;
mod level;

use expect::{Budget, Data, Expectation, Found, Pass, Rules, Shares, Strict};
use model::Detail;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use serde_json::Value;

use crate::expect::{host, node};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(7), failure_persistence: None, cases, ..ProptestConfig::default() }
}

fn rules() -> impl Strategy<Value = Rules> {
    let strict = any::<[bool; 3]>().prop_map(|[object, array, diff]| Strict { object, array, diff });
    (prop_oneof![Just(Strict::default()), strict], any::<[bool; 3]>(), budget()).prop_map(|(strict, flags, budget)| {
        Rules {
            strict,
            heuristic_schema: flags[0],
            diff_permissive: flags[1].then_some(flags[2]),
            budget,
            ..Rules::default()
        }
    })
}

fn budget() -> impl Strategy<Value = Budget> {
    let max_score = prop::sample::select(vec![1.0, 7.0, 100.0, 1e6]);
    let unassigned = prop::sample::select(vec![0.0, 0.1, 0.5, 1.0, 30.0, 150.0]);
    let shares = prop::sample::select(vec![Shares::Guessed, Shares::Never, Shares::Always]);
    (max_score, unassigned, shares).prop_map(|(max_score, unassigned, shares)| Budget { max_score, unassigned, shares })
}

/// Reads an expectation in all three ways, ignoring problems.
fn read(rules: Rules, expected: &Value, diff: Option<&Value>) -> [Expectation; 3] {
    let mut problems = Vec::new();
    let (host, expected, diff) = (host(), node(expected), diff.map(node));
    [
        Expectation::from_value(&expected, rules.clone(), &host, diff.as_ref(), &mut problems),
        Expectation::from_result(&expected, rules.clone(), &host, diff.as_ref(), &mut problems),
        Expectation::from_schema(&expected, rules, &host, &mut problems),
    ]
}

fn is_in_order(score: f64) -> bool {
    (0.0..=1.0).contains(&score)
}

fn check_details(details: &[Detail]) {
    for detail in details {
        assert!(is_in_order(detail.score) && detail.weight.is_finite(), "{detail:#?}");
        check_details(&detail.details);
    }
}

/// Returns the part of a result that does not depend on the formatting of the actual value: the verdict, the score,
/// the paths and the parts.
fn gist(found: &Found) -> (Pass, String, Vec<(String, bool)>, String) {
    let mut flaws: Vec<_> =
        found.flaws.iter().map(|flaw| (flaw.key.clone().unwrap_or_default(), flaw.critical)).collect();
    flaws.sort();
    (found.pass, format!("{:.12}", found.score), flaws, format!("{:?}", found.details))
}

/// Returns the same value with the keys of every map in reverse order.
fn reversed(value: &Value) -> Value {
    match value {
        Value::Array(items) => items.iter().map(reversed).collect(),
        Value::Object(map) => {
            Value::Object(map.iter().rev().map(|(key, value)| (key.clone(), reversed(value))).collect())
        }
        other => other.clone(),
    }
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn every_expectation_of_every_value_has_a_verdict(
        rules in rules(),
        expected in any::expectation(any::Code::Allowed),
        diff in prop::option::weighted(0.2, any::diff()),
        actual in prop::option::weighted(0.95, any::value()),
    ) {
        let variables = serde_json::json!({"x": 1});
        for expectation in read(rules, &expected, diff.as_ref()) {
            let data = Data { variables: variables.clone(), input: actual.clone(), fixture: expected.clone() };
            let found = expectation.judge(actual.as_ref(), &data);
            prop_assert!(is_in_order(found.score), "{found:#?}");
            prop_assert!(found.pass != Pass::Yes || found.flaws.is_empty(), "{found:#?}");
            prop_assert!(found.pass == Pass::Yes || !found.flaws.is_empty(), "{found:#?}");
            check_details(&found.details);
        }
    }

    #[test]
    fn the_order_of_keys_in_the_actual_value_does_not_matter(
        rules in rules(),
        expected in any::expectation(any::Code::None),
        actual in any::value(),
    ) {
        for expectation in read(rules, &expected, None) {
            let data = Data::default();
            let (one, other) = (expectation.judge(Some(&actual), &data), expectation.judge(Some(&reversed(&actual)), &data));
            prop_assert_eq!(gist(&one), gist(&other));
        }
    }

    #[test]
    fn a_full_match_gets_the_full_score(
        budget in budget(),
        (actual, expected) in full::matching(),
    ) {
        let max_score = budget.max_score;
        let mut problems = Vec::new();
        let rules = Rules { budget, ..Rules::default() };
        let expectation = Expectation::from_value(&node(&expected), rules, &host(), None, &mut problems);
        prop_assert!(problems.is_empty(), "{problems:#?}");
        let found = expectation.judge(Some(&actual), &Data::default());
        prop_assert_eq!(found.pass, Pass::Yes, "{:#?}", found.flaws);
        prop_assert_eq!(found.score * max_score, max_score, "{:#?}", found.details);
    }

    #[test]
    fn a_positive_item_that_fails_never_raises_the_score(
        budget in budget(),
        tree in level::tree(),
        which in any::<prop::sample::Index>(),
    ) {
        let paths = tree.positive_leaves();
        prop_assume!(!paths.is_empty());
        let failed: &Vec<usize> = which.get(&paths);
        let failed = tree.with_failure(failed);
        let rules = Rules { budget, ..Rules::default() };
        let score = |tree: &level::Tree| {
            let mut problems = Vec::new();
            let expected = tree.expected(budget.max_score);
            let expectation = Expectation::from_value(&node(&expected), rules.clone(), &host(), None, &mut problems);
            assert!(problems.is_empty(), "{problems:#?}");
            expectation.judge(Some(&tree.actual()), &Data::default()).score
        };
        let (before, after) = (score(&tree), score(&failed));
        prop_assert!(after <= before + 1e-9, "{before} became {after}: {}", tree.expected(budget.max_score));
    }
}
