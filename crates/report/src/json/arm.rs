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
        "decided_trials": statistics.decided,
        "cases": statistics.cases,
        "broken": statistics.broken,
        "stale": statistics.stale,
        "undecided": statistics.undecided,
        "passed_but_undecided": statistics.passed_but_undecided,
        "skipped": statistics.skipped,
        "cancelled": statistics.cancelled,
        "pass_rate": statistics.pass_rate,
        "full_pass_rate": mean(statistics.full_pass_rate),
        "full_pass_rate_ci95": interval(statistics.full_pass_rate),
        "decided_pass_rate": mean(statistics.decided_pass_rate),
        "decided_pass_rate_ci95": interval(statistics.decided_pass_rate),
        "score": statistics.score,
        "k": statistics.k,
        "pass_at_k": at_k.map(|(at, _)| at),
        "pass_hat_k": at_k.map(|(_, hat)| hat),
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
        "precision": mean(trigger.precision),
        "precision_ci95": interval(trigger.precision),
        "recall": mean(trigger.recall),
        "recall_ci95": interval(trigger.recall),
        "never": mean(trigger.never),
        "never_ci95": interval(trigger.never),
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
        "full_pass_rate": mean(delta.full_pass_rate),
        "full_pass_rate_ci95": interval(delta.full_pass_rate),
        "full_pass_rate_p_value": p_value(delta.full_pass_rate),
        "normalised_gain": arms.normalised_gain(),
        "decided_pass_rate": mean(delta.decided_pass_rate),
        "decided_pass_rate_ci95": interval(delta.decided_pass_rate),
        "decided_pass_rate_p_value": p_value(delta.decided_pass_rate),
        "duration_s": mean(delta.duration_s),
        "duration_s_ci95": interval(delta.duration_s),
        "tokens": mean(delta.tokens),
        "tokens_ci95": interval(delta.tokens),
        "cost_usd": mean(delta.cost_usd),
        "cost_usd_ci95": interval(delta.cost_usd),
        "by_suite": arms.suites.iter().map(|of| suite(of, is_tested)).collect::<Value>(),
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
        "full_pass_rate": mean(delta.full_pass_rate),
        "decided_pass_rate": mean(delta.decided_pass_rate),
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
