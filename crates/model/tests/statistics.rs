//! Compares the statistics with those recorded by agent-skill-eval 0.6.1; intended differences are listed with their
//! reasons. The mean of no values and the deviation of a single value are unknown here and 0 there.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use trialrun_model::statistics::{ArmStatistics, Delta, Observation};
use trialrun_model::{Estimate, Outcome};

const STATS: &str = include_str!("vectors/compute_stats.json");
const BENCHMARK: &str = include_str!("vectors/compute_benchmark.json");
const DIFFERENCES: &str = include_str!("vectors/differences.json");

/// Tolerance for figures computed from the same values in another order.
const PRECISION: f64 = 1e-9;

/// Converts a recorded run to a trial. A run without assertions has no share of met assertions.
fn observation(run: &Value) -> Observation<u64> {
    // The benchmark of agent-skill-eval leaves out runs without a result.
    if run.get("error").is_some() {
        return Observation::new(0, Outcome::Skipped);
    }
    let (timing, summary) = (&run["timing"], &run["grading"]["summary"]);
    let rate = summary["pass_rate"].as_f64().unwrap();
    let is_full = rate >= 1.0;
    let has_assertions = summary["total"] != 0;
    Observation {
        pass_rate: has_assertions.then_some(rate),
        duration_s: timing["duration_ms"].as_f64().map(|ms| ms / 1000.0),
        tokens: timing["total_tokens"].as_f64(),
        cost_usd: timing["cost_usd"].as_f64(),
        ..Observation::new(run["eval_id"].as_u64().unwrap(), if is_full { Outcome::Passed } else { Outcome::Failed })
    }
}

/// Formats an arm in the structure of the recorded one.
fn to_json(arm: &ArmStatistics) -> Value {
    let estimate = |estimate: Option<Estimate>| {
        estimate.map_or(Value::Null, |estimate| json!({"mean": estimate.mean, "stddev": estimate.stddev}))
    };
    let last = arm.pass_at_k.last();
    json!({
        "pass_rate": estimate(arm.pass_rate),
        "time_seconds": estimate(arm.duration_s),
        "tokens": estimate(arm.tokens),
        "cost_usd": estimate(arm.cost_usd),
        "cost_runs": arm.trials_with_cost,
        "full_pass_rate": arm.full_pass_rate.and_then(|rate| rate.mean),
        "pass_at_k": last.and_then(|point| point.value),
        "k": last.map(|point| point.k),
    })
}

fn delta(delta: &Delta) -> Value {
    json!({
        "pass_rate": delta.pass_rate.map(|difference| difference.mean),
        "time_seconds": delta.duration_s.map(|difference| difference.mean),
        "tokens": delta.tokens.map(|difference| difference.mean),
        "cost_usd": delta.cost_usd.map(|difference| difference.mean),
    })
}

/// Returns our figures for the entries in the recorded benchmark.
fn benchmark(results: &Map<String, Value>, recorded: &Value) -> Value {
    let trials = |agent: &str, with_skill: bool| -> Vec<Observation<u64>> {
        let runs = results.values().filter(|run| run["agent"] == agent && run["with_skill"] == with_skill);
        runs.map(observation).collect()
    };
    let mut summary = Map::new();
    let mut deltas = Map::new();
    let names = recorded["run_summary"].as_object().unwrap();
    for name in names.keys() {
        let (agent, with_skill) = match name.strip_suffix("_with_skill") {
            Some(agent) => (agent, true),
            None => (name.strip_suffix("_without_skill").unwrap(), false),
        };
        summary.insert(name.clone(), to_json(&ArmStatistics::of(&trials(agent, with_skill))));
        if with_skill && names.contains_key(&format!("{agent}_without_skill")) {
            let between = Delta::between(&trials(agent, true), &trials(agent, false));
            if between.cases_paired > 0 {
                deltas.insert(agent.to_owned(), delta(&between));
            }
        }
    }
    let agents = names.keys().map(|name| name.split('_').next().unwrap()).collect::<std::collections::BTreeSet<_>>();
    let only = deltas.values().next().filter(|_| agents.len() == 1).cloned();
    json!({"run_summary": summary, "deltas": deltas, "delta": only})
}

/// Collects each figure in a recorded tree with ours. An empty or null tree counts as a figure.
fn figures(path: &str, recorded: &Value, ours: &Value, found: &mut BTreeMap<String, (Value, Value)>) {
    match recorded {
        Value::Object(entries) if !entries.is_empty() => {
            for (key, recorded) in entries {
                figures(&format!("{path}.{key}"), recorded, &ours[key], found);
            }
        }
        _ => {
            found.insert(path.to_owned(), (recorded.clone(), ours.clone()));
        }
    }
}

fn agree(recorded: &Value, ours: &Value) -> bool {
    match (recorded.as_f64(), ours.as_f64()) {
        (Some(recorded), Some(ours)) => (recorded - ours).abs() <= PRECISION,
        _ => recorded == ours,
    }
}

#[test]
fn every_figure_matches_the_recorded_one_or_is_a_listed_difference() {
    let mut found = BTreeMap::new();
    let stats: Map<String, Value> = serde_json::from_str(STATS).unwrap();
    for (name, vector) in &stats {
        let trials: Vec<_> = vector["runs"].as_array().unwrap().iter().map(observation).collect();
        figures(&format!("stats.{name}"), &vector["stats"], &to_json(&ArmStatistics::of(&trials)), &mut found);
    }
    let recorded: Map<String, Value> = serde_json::from_str(BENCHMARK).unwrap();
    let results = recorded["results"].as_object().unwrap();
    for (name, benchmark_of) in recorded.iter().filter(|(name, _)| *name != "results") {
        figures(&format!("benchmark.{name}"), benchmark_of, &benchmark(results, benchmark_of), &mut found);
    }

    let reasons: BTreeMap<String, String> = serde_json::from_str(DIFFERENCES).unwrap();
    let unknown: Vec<_> = reasons.keys().filter(|path| !found.contains_key(*path)).collect();
    assert!(unknown.is_empty(), "listed, but there is no such figure: {unknown:?}");

    let mut wrong = Vec::new();
    let (mut agreeing, mut differing) = (0, 0);
    for (path, (recorded, ours)) in &found {
        match (agree(recorded, ours), reasons.contains_key(path)) {
            (true, false) => agreeing += 1,
            (false, true) => differing += 1,
            (true, true) => wrong.push(format!("{path} agrees, and is listed as different")),
            (false, false) => wrong.push(format!("{path}: recorded {recorded}, ours {ours}")),
        }
    }
    println!("{agreeing} agree + {differing} listed = {}", found.len());
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), found.len(), wrong.join("\n"));
}
