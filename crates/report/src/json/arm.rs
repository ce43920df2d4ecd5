//! Arms and the effect of the skill on them, in the form that the report uses: each figure under its own name, next to
//! its details.

use model::statistics::{Difference, Triggering, least_p_value};
use model::{ArmDelta, ArmSummary, CaseDelta, Estimate, SuiteDelta};
use serde_json::{Value, json};

pub(crate) fn arm(arm: &ArmSummary) -> Value {
    let statistics = &arm.statistics;
    let at_k = statistics.at_k();
    json!({
        "arm": arm.arm,
        "agent": arm.agent,
        "model": arm.model,
        "variant": arm.variant,
        "trials": statistics.trials,
        "passed": statistics.by_outcome.passed,
        "failed": statistics.by_outcome.failed,
        "flaky": statistics.flaky,
        "cases": statistics.cases,
        "broken": statistics.by_outcome.broken,
        "stale": statistics.by_outcome.stale,
        "undecided": statistics.by_outcome.undecided,
        "passed_but_undecided": statistics.passed_but_undecided,
        "skipped": statistics.by_outcome.skipped,
        "cancelled": statistics.by_outcome.cancelled,
        "checks_met": statistics.pass_rate,
        // The former name of `checks_met`.
        "pass_rate": statistics.pass_rate,
        "full_pass_rate": statistics.full_pass_rate.and_then(|rate| rate.mean),
        "full_pass_rate_min": statistics.full_pass_rate.map(|rate| rate.bounds.min),
        "full_pass_rate_max": statistics.full_pass_rate.map(|rate| rate.bounds.max),
        "full_pass_rate_ci95": statistics.full_pass_rate.and_then(|rate| rate.ci95),
        "score": statistics.score,
        "k": statistics.k,
        "pass_at_k": at_k.and_then(|(at, _)| at.value),
        "pass_at_k_min": at_k.map(|(at, _)| at.bounds.min),
        "pass_at_k_max": at_k.map(|(at, _)| at.bounds.max),
        "pass_hat_k": at_k.and_then(|(_, hat)| hat.value),
        "pass_hat_k_min": at_k.map(|(_, hat)| hat.bounds.min),
        "pass_hat_k_max": at_k.map(|(_, hat)| hat.bounds.max),
        "pass_at_k_curve": statistics.pass_at_k,
        "pass_hat_k_curve": statistics.pass_hat_k,
        "duration_s": statistics.duration_s,
        "tokens": statistics.tokens,
        "trials_with_tokens": statistics.trials_with_tokens,
        "cost_usd": statistics.cost_usd,
        "trials_with_cost": statistics.trials_with_cost,
        "trigger": arm.trigger.as_ref().map(trigger),
    })
}

fn trigger(trigger: &Triggering) -> Value {
    json!({
        "precision": trigger.precision.and_then(|rate| rate.mean),
        "precision_min": trigger.precision.map(|rate| rate.bounds.min),
        "precision_max": trigger.precision.map(|rate| rate.bounds.max),
        "precision_ci95": trigger.precision.and_then(|rate| rate.ci95),
        "recall": trigger.recall.and_then(|rate| rate.mean),
        "recall_min": trigger.recall.map(|rate| rate.bounds.min),
        "recall_max": trigger.recall.map(|rate| rate.bounds.max),
        "recall_ci95": trigger.recall.and_then(|rate| rate.ci95),
        "never": trigger.never.and_then(|rate| rate.mean),
        "never_min": trigger.never.map(|rate| rate.bounds.min),
        "never_max": trigger.never.map(|rate| rate.bounds.max),
        "never_ci95": trigger.never.and_then(|rate| rate.ci95),
        "hits": trigger.hits,
        "misses": trigger.misses,
        "false_alarms": trigger.false_alarms,
        "rejections": trigger.rejections,
        "unknown": trigger.unknown,
    })
}

/// Returns the differences between arms. If there was no test, because the results decided how many trials ran, there
/// are no p-values.
pub(crate) fn delta(arms: &ArmDelta, is_tested: bool) -> Value {
    let delta = &arms.delta;
    let p_value = |difference: Option<Difference>| difference.filter(|_| is_tested).map(|it| it.p_value);
    let passed = delta.full_pass_rate;
    json!({
        "agent": arms.agent,
        "model": arms.model,
        "with": arms.with,
        "without": arms.without,
        "pairs": delta.cases_paired,
        "cases_unpaired": delta.cases_unpaired,
        "pass_rate": mean(delta.pass_rate),
        "ci95": interval(delta.pass_rate),
        "p_value": p_value(delta.pass_rate),
        "cases": delta.pass_rate.map_or(0, |difference| difference.cases),
        "least_p_value": delta.pass_rate.filter(|_| is_tested).map(|difference| least_p_value(difference.cases)),
        "full_pass_rate": passed.and_then(|it| it.mean),
        "full_pass_rate_min": passed.map(|it| it.bounds.min),
        "full_pass_rate_max": passed.map(|it| it.bounds.max),
        "full_pass_rate_ci95": passed.and_then(|it| it.ci95),
        "full_pass_rate_p_value": passed.filter(|_| is_tested).map(|it| it.p_value),
        "normalised_gain": arms.normalised_gain(),
        "duration_s": mean(delta.duration_s),
        "duration_s_ci95": interval(delta.duration_s),
        "tokens": mean(delta.tokens),
        "tokens_ci95": interval(delta.tokens),
        "cost_usd": mean(delta.cost_usd),
        "cost_usd_ci95": interval(delta.cost_usd),
        "by_suite": arms.suites.iter().map(|one| suite(one, is_tested)).collect::<Value>(),
        "by_case": arms.cases.iter().map(case).collect::<Value>(),
    })
}

fn suite(suite: &SuiteDelta, is_tested: bool) -> Value {
    let delta = &suite.delta;
    json!({
        "suite": suite.suite,
        "with": suite.with,
        "without": suite.without,
        "pairs": delta.cases_paired,
        "cases_unpaired": delta.cases_unpaired,
        "pass_rate": mean(delta.pass_rate),
        "ci95": interval(delta.pass_rate),
        "p_value": delta.pass_rate.filter(|_| is_tested).map(|difference| difference.p_value),
        "least_p_value": delta.pass_rate.filter(|_| is_tested).map(|difference| least_p_value(difference.cases)),
        "full_pass_rate": delta.full_pass_rate.and_then(|it| it.mean),
        "full_pass_rate_min": delta.full_pass_rate.map(|it| it.bounds.min),
        "full_pass_rate_max": delta.full_pass_rate.map(|it| it.bounds.max),
        "duration_s": mean(delta.duration_s),
        "tokens": mean(delta.tokens),
        "cost_usd": mean(delta.cost_usd),
        "trigger": suite.trigger.as_ref().map(trigger),
    })
}

fn case(case: &CaseDelta) -> Value {
    json!({ "suite": case.suite, "case": case.case, "with": case.with, "without": case.without, "skill": case.effect })
}

fn mean(figure: Option<impl Into<Estimate>>) -> Option<f64> {
    Some(figure?.into().mean)
}

fn interval(figure: Option<impl Into<Estimate>>) -> Option<[f64; 2]> {
    figure?.into().ci95
}
