//! Arms and the effect of the skill on them, in the form of the report: each figure under its own name, with the
//! details beside it.

use std::cmp::Ordering;

use model::statistics::{ArmStatistics, AtK, Difference, Triggering, least_p_value};
use model::{ArmDelta, ArmSummary, CaseDelta, CaseFigures, Estimate, SuiteDelta};
use serde::Serialize;

#[derive(Serialize)]
pub(super) struct Arm<'a> {
    arm: &'a str,
    agent: &'a str,
    model: Option<&'a str>,
    variant: Option<&'a str>,
    trials: usize,
    decided_trials: usize,
    cases: usize,
    broken: usize,
    undecided: usize,
    passed_but_undecided: usize,
    skipped: usize,
    cancelled: usize,
    pass_rate: Option<Estimate>,
    full_pass_rate: Option<f64>,
    full_pass_rate_ci95: Option<[f64; 2]>,
    decided_pass_rate: Option<f64>,
    decided_pass_rate_ci95: Option<[f64; 2]>,
    score: Option<Estimate>,
    k: u64,
    pass_at_k: Option<f64>,
    pass_hat_k: Option<f64>,
    pass_at_k_curve: &'a [AtK],
    pass_hat_k_curve: &'a [AtK],
    duration_s: Option<Estimate>,
    tokens: Option<Estimate>,
    trials_with_tokens: usize,
    cost_usd: Option<Estimate>,
    trials_with_cost: usize,
    trigger: Option<Trigger>,
}

impl<'a> Arm<'a> {
    pub(super) fn of(arm: &'a ArmSummary) -> Self {
        let statistics: &ArmStatistics = &arm.statistics;
        let at_k = statistics.at_k();
        Self {
            arm: &arm.arm,
            agent: &arm.agent,
            model: arm.model.as_deref(),
            variant: arm.variant.as_deref(),
            trials: statistics.trials,
            decided_trials: statistics.decided,
            cases: statistics.cases,
            broken: statistics.broken,
            undecided: statistics.undecided,
            passed_but_undecided: statistics.passed_but_undecided,
            skipped: statistics.skipped,
            cancelled: statistics.cancelled,
            pass_rate: statistics.pass_rate,
            full_pass_rate: statistics.full_pass_rate.map(|rate| rate.mean),
            full_pass_rate_ci95: statistics.full_pass_rate.and_then(|rate| rate.ci95),
            decided_pass_rate: statistics.decided_pass_rate.map(|rate| rate.mean),
            decided_pass_rate_ci95: statistics.decided_pass_rate.and_then(|rate| rate.ci95),
            score: statistics.score,
            k: statistics.k,
            pass_at_k: at_k.map(|(at, _)| at),
            pass_hat_k: at_k.map(|(_, hat)| hat),
            pass_at_k_curve: &statistics.pass_at_k,
            pass_hat_k_curve: &statistics.pass_hat_k,
            duration_s: statistics.duration_s,
            tokens: statistics.tokens,
            trials_with_tokens: statistics.trials_with_tokens,
            cost_usd: statistics.cost_usd,
            trials_with_cost: statistics.trials_with_cost,
            trigger: arm.trigger.as_ref().map(Trigger::of),
        }
    }
}

#[derive(Serialize)]
struct Trigger {
    precision: Option<f64>,
    precision_ci95: Option<[f64; 2]>,
    recall: Option<f64>,
    recall_ci95: Option<[f64; 2]>,
    never: Option<f64>,
    never_ci95: Option<[f64; 2]>,
    hits: u64,
    misses: u64,
    false_alarms: u64,
    rejections: u64,
    unknown: u64,
}

impl Trigger {
    fn of(trigger: &Triggering) -> Self {
        let (mean, ci95) = (|rate: Estimate| rate.mean, |rate: Estimate| rate.ci95);
        Self {
            precision: trigger.precision.map(mean),
            precision_ci95: trigger.precision.and_then(ci95),
            recall: trigger.recall.map(mean),
            recall_ci95: trigger.recall.and_then(ci95),
            never: trigger.never.map(mean),
            never_ci95: trigger.never.and_then(ci95),
            hits: trigger.hits,
            misses: trigger.misses,
            false_alarms: trigger.false_alarms,
            rejections: trigger.rejections,
            unknown: trigger.unknown,
        }
    }
}

#[derive(Serialize)]
pub(super) struct Delta<'a> {
    agent: &'a str,
    model: Option<&'a str>,
    with: &'a str,
    without: &'a str,
    pairs: usize,
    cases_unpaired: usize,
    pass_rate: Option<f64>,
    ci95: Option<[f64; 2]>,
    p_value: Option<f64>,
    cases: usize,
    least_p_value: Option<f64>,
    full_pass_rate: Option<f64>,
    full_pass_rate_ci95: Option<[f64; 2]>,
    full_pass_rate_p_value: Option<f64>,
    decided_pass_rate: Option<f64>,
    decided_pass_rate_ci95: Option<[f64; 2]>,
    decided_pass_rate_p_value: Option<f64>,
    duration_s: Option<f64>,
    duration_s_ci95: Option<[f64; 2]>,
    tokens: Option<f64>,
    tokens_ci95: Option<[f64; 2]>,
    cost_usd: Option<f64>,
    cost_usd_ci95: Option<[f64; 2]>,
    by_suite: Vec<Suite<'a>>,
    by_case: Vec<Case<'a>>,
}

impl<'a> Delta<'a> {
    pub(super) fn of(arms: &'a ArmDelta) -> Self {
        let delta = &arms.delta;
        let (mean, ci95) = (|apart: Difference| apart.mean, |apart: Difference| apart.ci95);
        Self {
            agent: &arms.agent,
            model: arms.model.as_deref(),
            with: &arms.with,
            without: &arms.without,
            pairs: delta.cases_paired,
            cases_unpaired: delta.cases_unpaired,
            pass_rate: delta.pass_rate.map(mean),
            ci95: delta.pass_rate.and_then(ci95),
            p_value: delta.pass_rate.map(|apart| apart.p_value),
            cases: delta.pass_rate.map_or(0, |apart| apart.cases),
            least_p_value: delta.pass_rate.map(|apart| least_p_value(apart.cases)),
            full_pass_rate: delta.full_pass_rate.map(mean),
            full_pass_rate_ci95: delta.full_pass_rate.and_then(ci95),
            full_pass_rate_p_value: delta.full_pass_rate.map(|apart| apart.p_value),
            decided_pass_rate: delta.decided_pass_rate.map(mean),
            decided_pass_rate_ci95: delta.decided_pass_rate.and_then(ci95),
            decided_pass_rate_p_value: delta.decided_pass_rate.map(|apart| apart.p_value),
            duration_s: delta.duration_s.map(mean),
            duration_s_ci95: delta.duration_s.and_then(ci95),
            tokens: delta.tokens.map(mean),
            tokens_ci95: delta.tokens.and_then(ci95),
            cost_usd: delta.cost_usd.map(mean),
            cost_usd_ci95: delta.cost_usd.and_then(ci95),
            by_suite: arms.suites.iter().map(Suite::of).collect(),
            by_case: arms.cases.iter().map(Case::of).collect(),
        }
    }
}

#[derive(Serialize)]
struct Suite<'a> {
    suite: &'a str,
    with: Option<f64>,
    without: Option<f64>,
    pairs: usize,
    cases_unpaired: usize,
    pass_rate: Option<f64>,
    ci95: Option<[f64; 2]>,
    p_value: Option<f64>,
    least_p_value: Option<f64>,
    full_pass_rate: Option<f64>,
    decided_pass_rate: Option<f64>,
    duration_s: Option<f64>,
    tokens: Option<f64>,
    cost_usd: Option<f64>,
    trigger: Option<Trigger>,
}

impl<'a> Suite<'a> {
    fn of(suite: &'a SuiteDelta) -> Self {
        let delta = &suite.delta;
        let mean = |apart: Difference| apart.mean;
        Self {
            suite: &suite.suite,
            with: suite.with,
            without: suite.without,
            pairs: delta.cases_paired,
            cases_unpaired: delta.cases_unpaired,
            pass_rate: delta.pass_rate.map(mean),
            ci95: delta.pass_rate.and_then(|apart| apart.ci95),
            p_value: delta.pass_rate.map(|apart| apart.p_value),
            least_p_value: delta.pass_rate.map(|apart| least_p_value(apart.cases)),
            full_pass_rate: delta.full_pass_rate.map(mean),
            decided_pass_rate: delta.decided_pass_rate.map(mean),
            duration_s: delta.duration_s.map(mean),
            tokens: delta.tokens.map(mean),
            cost_usd: delta.cost_usd.map(mean),
            trigger: suite.trigger.as_ref().map(Trigger::of),
        }
    }
}

#[derive(Serialize)]
struct Case<'a> {
    suite: &'a str,
    case: &'a str,
    with: CaseFigures,
    without: CaseFigures,
    skill: &'static str,
}

impl<'a> Case<'a> {
    fn of(case: &'a CaseDelta) -> Self {
        Self {
            suite: &case.suite,
            case: &case.case,
            with: case.with,
            without: case.without,
            skill: match case.direction() {
                Ordering::Greater => "helps",
                Ordering::Less => "harms",
                Ordering::Equal => "same",
            },
        }
    }
}
