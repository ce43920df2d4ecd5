//! Compares budgets with recorded results from agent-skill-eval 0.6.1. Only the wording may differ. Also tests each
//! budget on its own: below, at and above the usage, warning and failing.

#![allow(clippy::unwrap_used)]

use model::{
    Budgets, Case, Collected, Ending, Evidence, Excerpt, Limits, OnBudget, Status, Step, Tokens, Trace, Usage,
};
use serde_json::Value;
use trialrun_grade::{grade, warnings};

const BUDGET: &str = include_str!("../vectors/agent-skill-eval/budget.json");

/// Returns the evidence of a trial with that usage and duration.
fn evidence(usage: Usage, duration_ms: Option<u64>, limits: Limits) -> Evidence {
    let mut steps = vec![Step::UserMessage { index: 1, of: 1, text: "go".into() }];
    steps.push(Step::Finished {
        subtype: "success".into(),
        is_error: false,
        usage,
        text: Some("done".into()),
        result: None,
    });
    Evidence {
        trace: Trace::of(&steps),
        collected: Collected::default(),
        ending: Ending::Finished,
        limits: limits.into(),
        unused_responses: Vec::new(),
        agent_ms: duration_ms,
    }
}

fn limits(written: &Value, on_budget: OnBudget) -> Limits {
    let of = |name: &str| written.get(name).and_then(Value::as_f64);
    Limits {
        token_budget: of("max_total_tokens"),
        token_budget_from: of("max_total_tokens").map(|_| "--max-total-tokens".into()),
        budgets: Budgets {
            input: of("max_input_tokens"),
            non_cached_input: of("max_non_cached_input_tokens"),
            output: of("max_output_tokens"),
            reasoning: of("max_reasoning_tokens"),
            cost_usd: of("max_cost_usd"),
            duration_ms: of("max_duration_seconds").map(|seconds| seconds * 1000.0),
        },
        on_budget,
        ..Limits::default()
    }
}

/// Returns the subject of a violation, in the words of the recorded results.
fn kind(violation: &str) -> &'static str {
    let used = violation.split(" used").next().unwrap();
    ["non-cached input tokens", "input tokens", "output tokens", "reasoning tokens", "USD"]
        .into_iter()
        .find(|kind| used.contains(kind))
        .unwrap_or(if used.ends_with(" s") { "duration" } else { "total tokens" })
}

fn warned(usage: Usage, duration_ms: Option<u64>, limits: Limits) -> Vec<&'static str> {
    let case = Case::new("a", Excerpt::of_file("evals.json"));
    let evidence = evidence(usage, duration_ms, limits);
    let mut kinds: Vec<&'static str> = warnings(&case, &evidence)
        .iter()
        .filter(|warning| warning.message.contains(" used, of"))
        .map(|warning| kind(&warning.message))
        .collect();
    kinds.sort_unstable();
    kinds
}

fn failed(usage: Usage, limits: Limits) -> bool {
    grade(&[], &evidence(usage, None, limits)).iter().any(|finding| finding.status == Status::Unmet)
}

#[test]
fn budget_violations_match_the_recorded_ones() {
    let vectors: Value = serde_json::from_str(BUDGET).unwrap();
    let timing = |name: &str| vectors["timing"][name].as_u64().unwrap();
    // Input that was not cached, and the rest of the input.
    let own = timing("non_cached_input_tokens");
    let tokens = Tokens {
        input: own,
        cache_read: timing("input_tokens") - own,
        output: timing("output_tokens"),
        ..Tokens::default()
    };
    let usage = Usage { tokens: Some(tokens), cost_usd: vectors["timing"]["cost_usd"].as_f64() };
    let cases = vectors["cases"].as_array().unwrap();
    for case in cases {
        let recorded = case["violations"].as_array().unwrap().iter().map(|violation| violation.as_str().unwrap());
        let mut recorded: Vec<&str> = recorded
            .map(|violation| {
                if violation.starts_with("duration") {
                    "duration"
                } else {
                    violation.split(|c: char| c.is_ascii_digit()).next().unwrap().trim()
                }
            })
            .collect();
        recorded.sort_unstable();
        let warn = limits(&case["limits"], OnBudget::Warn);
        assert_eq!(warned(usage, Some(timing("duration_ms")), warn), recorded, "{}", case["limits"]);
        // The clock enforces the duration: it stops the agent long before.
        let fails = recorded.iter().any(|kind| *kind != "duration");
        assert_eq!(failed(usage, limits(&case["limits"], OnBudget::Fail)), fails, "{}", case["limits"]);
    }
    let counted = format!("budget vectors: {0} agree + 0 listed = {0} of {0}", cases.len());
    std::io::Write::write_all(&mut std::io::stdout(), format!("\n{counted}\n").as_bytes()).unwrap();
}

#[test]
fn using_exactly_the_budget_passes_and_unreported_usage_decides_nothing() {
    let tokens = Tokens { input: 40, cache_read: 30, cache_write: 20, output: 10, reasoning: Some(4) };
    let usage = Usage { tokens: Some(tokens), cost_usd: Some(0.5) };
    let of = |name: &str, limit: f64, on: OnBudget| limits(&serde_json::json!({ name: limit }), on);
    for (name, kind, used) in [
        ("max_input_tokens", "input tokens", 90.0),
        ("max_non_cached_input_tokens", "non-cached input tokens", 60.0),
        ("max_output_tokens", "output tokens", 10.0),
        ("max_reasoning_tokens", "reasoning tokens", 4.0),
        ("max_total_tokens", "total tokens", 100.0),
        ("max_cost_usd", "USD", 0.5),
        ("max_duration_seconds", "duration", 1.5),
    ] {
        for (limit, is_over) in [(used + 0.1, false), (used, false), (used - 0.1, true)] {
            let expected: Vec<&str> = is_over.then_some(kind).into_iter().collect();
            assert_eq!(warned(usage, Some(1500), of(name, limit, OnBudget::Warn)), expected, "{name} {limit}");
            assert!(!failed(usage, of(name, limit, OnBudget::Warn)), "{name} {limit}: it only warns");
            for on in [OnBudget::Fail, OnBudget::Stop] {
                assert_eq!(failed(usage, of(name, limit, on)), is_over && kind != "duration", "{name} {limit}");
                assert!(warned(usage, Some(1500), of(name, limit, on)).is_empty(), "{name}");
            }
        }
        let unknown = Usage::default();
        assert!(warned(unknown, None, of(name, 0.0, OnBudget::Warn)).is_empty(), "{name}");
        let findings = grade(&[], &evidence(unknown, None, of(name, 0.0, OnBudget::Fail)));
        let budget = findings.iter().find(|finding| finding.is_about_budget()).unwrap();
        assert_eq!(budget.status, Status::Undecided, "{name}: {}", budget.reason);
    }
}

#[test]
fn usage_of_earlier_attempts_counts() {
    let usage = Usage { tokens: Some(Tokens { input: 10, ..Tokens::default() }), cost_usd: Some(0.5) };
    let earlier = model::Earlier { usage, duration_ms: 1000, ..model::Earlier::default() };
    for (name, limit) in [("max_input_tokens", 19.0), ("max_total_tokens", 19.0), ("max_cost_usd", 0.9)] {
        let mut limits = limits(&serde_json::json!({ name: limit }), OnBudget::Fail);
        assert!(!failed(usage, limits.clone()), "{name}");
        limits.earlier = Some(earlier);
        assert!(failed(usage, limits), "{name}");
    }
    let mut late = limits(&serde_json::json!({"max_duration_seconds": 2.4}), OnBudget::Warn);
    late.earlier = Some(earlier);
    assert_eq!(warned(usage, Some(1500), late), ["duration"]);
}
