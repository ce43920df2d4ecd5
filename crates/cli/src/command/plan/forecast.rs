//! Computes the figures of a plan: what its trials can show, how many are expected to run, and how much time and money
//! they take.

use model::statistics::{
    Bounds, Comparison, ComparisonForecast, Contract, Counted, SIGNIFICANCE, detectable_drop, wilson_of_share,
};
use model::{DecisionQuestion, PassRate};
use runner::{Plan, PlannedDecision};
use serde::Serialize;

use super::history::History;

/// Probability of detecting a difference that is at least as large as the reported one.
const POWER: f64 = 0.8;
/// Pass rate from which the smallest detectable drop is computed.
const USUAL_RATE: f64 = 0.9;
/// Differences for which the number of trials is forecast.
const DIFFERENCES: [f64; 3] = [0.0, 0.1, 0.25];
/// Largest maximum for which a contract is computed exactly, because the time grows with its square.
const MOST_EXACT: u64 = 1000;

/// Figures of a plan.
#[derive(Debug, Serialize)]
pub struct Forecast {
    /// Number of cases.
    pub cases: usize,
    /// Names of the arms.
    pub arms: Vec<String>,
    /// Number of planned trials. If the results decide how many run, this is the maximum.
    pub trials: usize,
    /// Number of trials that are expected to run.
    pub expected_trials: f64,
    /// Number of combinations of a case and an arm that have earlier results.
    pub known_groups: usize,
    /// Number of combinations of a case and an arm.
    pub groups: usize,
    /// Number of parallel trials.
    pub jobs: usize,
    /// Expected duration in milliseconds; absent if no earlier trial is recorded.
    pub expected_ms: Option<f64>,
    /// Duration in milliseconds if all planned trials run; absent if no earlier trial is recorded.
    pub most_ms: Option<f64>,
    /// Expected cost in US dollars; absent if no earlier cost is recorded.
    pub expected_cost_usd: Option<f64>,
    /// Cost in US dollars if all planned trials run; absent if no earlier cost is recorded.
    pub most_cost_usd: Option<f64>,
    /// What fixed numbers of trials can show.
    pub fixed: Vec<FixedTrials>,
    /// Questions that decide how many trials run.
    pub decisions: Vec<DecisionForecast>,
}

/// Cases that run the same fixed number of times under one arm.
#[derive(Debug, Serialize)]
pub struct FixedTrials {
    /// Arm.
    pub arm: String,
    /// Number of trials for each case.
    pub trials_per_case: u64,
    /// Number of cases.
    pub cases: u64,
    /// 95 % interval for the pass rate of a case that passes 90 % of its trials.
    pub ci95_of_case_at_90: [f64; 2],
    /// Smallest drop from a pass rate of 90 % that a comparison with another run or arm detects in one case with a
    /// probability of 80 %; absent if it cannot detect any.
    pub detectable_drop_of_case: Option<f64>,
    /// The same for all cases together.
    pub detectable_drop: Option<f64>,
}

/// Trials that a question needs.
#[derive(Debug, Serialize)]
pub struct DecisionForecast {
    /// Question.
    pub question: DecisionQuestion,
    /// Suite and case; absent for a comparison over several cases.
    pub case: Option<String>,
    /// Arm.
    pub arm: String,
    /// Arm that it is compared with.
    pub versus: Option<String>,
    /// Number of cases.
    pub cases: usize,
    /// Maximum number of trials for each case and arm.
    pub max_trials: u64,
    /// Pass rate of the first attempts in earlier trials; absent if there are none, or if it is not known exactly.
    pub known_pass_rate: Option<f64>,
    /// Lowest possible pass rate of the first attempts in earlier trials; absent if there are none.
    pub known_pass_rate_min: Option<f64>,
    /// Highest possible one.
    pub known_pass_rate_max: Option<f64>,
    /// Expected number of trials for each case and arm.
    pub expected_trials: f64,
    /// True if the expected number could not be computed, so that it is the maximum.
    pub is_most: bool,
    /// Smallest true pass rate that is shown to be high enough with a probability of 80 %.
    pub high_enough: Option<f64>,
    /// Largest true pass rate that is shown to be too low with a probability of 80 %.
    pub too_low: Option<f64>,
    /// For a comparison: smallest difference from a pass rate of 90 % that the run finds with a probability of 80 %.
    pub detectable_drop: Option<f64>,
    /// For a comparison: how runs end for several true differences.
    pub differences: Vec<DifferenceForecast>,
}

/// How runs of a comparison end for one true difference, by simulation.
#[derive(Debug, Serialize)]
pub struct DifferenceForecast {
    /// True pass rates: the better arm, and the other one.
    pub rates: [f64; 2],
    /// Probability that the run shows which arm is better.
    pub found: f64,
    /// Probability that the run shows that the arms do not differ by an amount that matters.
    pub equivalent: f64,
    /// Number of pairs of trials per case after which at least half of all runs stop.
    pub median_pairs: u64,
}

impl Forecast {
    /// Computes the figures of a plan.
    pub fn of(plan: &Plan, history: &History, jobs: usize) -> Self {
        let mut groups: Vec<Group<'_>> = Vec::new();
        for trial in plan.trials.iter().filter(|trial| trial.case.skip.is_none() && trial.case.broken.is_empty()) {
            let is_same = |group: &&mut Group<'_>| {
                (group.suite, group.case, group.arm) == (&*trial.suite, &*trial.case_id, &*trial.arm_name)
            };
            match groups.iter_mut().rev().find(is_same) {
                Some(group) => group.planned += 1,
                None => groups.push(Group {
                    suite: &trial.suite,
                    case: &trial.case_id,
                    arm: &trial.arm_name,
                    planned: 1,
                    is_auto: trial.auto.is_some(),
                    expected: 0.0,
                }),
            }
        }
        let mut cache = Vec::new();
        let decisions: Vec<DecisionForecast> =
            plan.decisions.iter().map(|decision| DecisionForecast::of(decision, history, &mut cache)).collect();
        for group in &mut groups {
            group.expected = if group.is_auto { 0.0 } else { group.planned as f64 };
        }
        for (decision, forecast) in plan.decisions.iter().zip(&decisions) {
            for group in groups.iter_mut().filter(|group| group.is_about(decision)) {
                group.expected = group.expected.max(forecast.expected_trials.min(group.planned as f64));
            }
        }
        let (expected_ms, known_groups) = sum(&groups, |group| history.of(group)?.mean_ms());
        let (expected_cost_usd, _) = sum(&groups, |group| history.of(group)?.mean_cost_usd());
        let all: Vec<Group<'_>> =
            groups.iter().map(|group| Group { expected: group.planned as f64, ..*group }).collect();
        let (most_ms, _) = sum(&all, |group| history.of(group)?.mean_ms());
        let (most_cost_usd, _) = sum(&all, |group| history.of(group)?.mean_cost_usd());
        let mut arms: Vec<String> = Vec::new();
        for group in &groups {
            if !arms.iter().any(|arm| arm == group.arm) {
                arms.push(group.arm.to_owned());
            }
        }
        let mut cases: Vec<(&str, &str)> = groups.iter().map(|group| (group.suite, group.case)).collect();
        cases.sort_unstable();
        cases.dedup();
        let expected_trials: f64 = groups.iter().map(|group| group.expected).sum();
        let jobs = jobs.clamp(1, plan.trials.len().max(1));
        Self {
            cases: cases.len(),
            fixed: fixed(&groups, &arms),
            arms,
            trials: plan.trials.len(),
            expected_trials,
            known_groups,
            groups: groups.len(),
            jobs,
            expected_ms: expected_ms.map(|ms| ms / (jobs as f64).min(expected_trials.max(1.0))),
            most_ms: most_ms.map(|ms| ms / jobs as f64),
            expected_cost_usd,
            most_cost_usd,
            decisions,
        }
    }
}

/// Trials of one case under one arm.
#[derive(Clone, Copy)]
struct Group<'p> {
    suite: &'p str,
    case: &'p str,
    arm: &'p str,
    planned: u64,
    is_auto: bool,
    expected: f64,
}

impl Group<'_> {
    fn is_about(&self, decision: &PlannedDecision) -> bool {
        let is_arm = *decision.arm == *self.arm || decision.versus.as_deref() == Some(self.arm);
        is_arm && decision.cases.iter().any(|(suite, case)| **suite == *self.suite && **case == *self.case)
    }
}

impl History {
    fn of(&self, group: &Group<'_>) -> Option<super::history::Known> {
        self.get(group.suite, group.case, group.arm)
    }
}

/// Returns the sum of an amount over all expected trials, and the number of cases for which it is known. Cases for
/// which it is unknown count as the mean of the others.
fn sum(groups: &[Group<'_>], of: impl Fn(&Group<'_>) -> Option<f64>) -> (Option<f64>, usize) {
    let known: Vec<f64> = groups.iter().filter_map(&of).collect();
    if known.is_empty() {
        return (None, 0);
    }
    let mean = known.iter().sum::<f64>() / known.len() as f64;
    (Some(groups.iter().map(|group| group.expected * of(group).unwrap_or(mean)).sum()), known.len())
}

/// Returns what cases with a fixed number of trials can show, in arm order.
fn fixed(groups: &[Group<'_>], arms: &[String]) -> Vec<FixedTrials> {
    let mut rows: Vec<FixedTrials> = Vec::new();
    for arm in arms {
        let mut numbers: Vec<u64> =
            groups.iter().filter(|group| group.arm == arm && !group.is_auto).map(|group| group.planned).collect();
        numbers.sort_unstable();
        for same in numbers.chunk_by(|one, other| one == other) {
            let (trials, cases) = (same[0], same.len() as u64);
            rows.push(FixedTrials {
                arm: arm.clone(),
                trials_per_case: trials,
                cases,
                ci95_of_case_at_90: wilson_of_share(USUAL_RATE, trials),
                detectable_drop_of_case: detectable_drop(trials, USUAL_RATE, SIGNIFICANCE, POWER),
                detectable_drop: detectable_drop(trials * cases, USUAL_RATE, SIGNIFICANCE, POWER),
            });
        }
    }
    rows
}

/// Figures that cases with the same required pass rate share: the requirement, the smallest rate that is high enough,
/// and the largest that is too low.
type Shown = ((PassRate, u64), [Option<f64>; 2]);

impl DecisionForecast {
    fn of(decision: &PlannedDecision, history: &History, cache: &mut Vec<Shown>) -> Self {
        let known = decision.cases.iter().filter_map(|(suite, case)| history.get(suite, case, &decision.arm));
        let mut counts = Counted::default();
        known.for_each(|known| counts += known.counts);
        let (rate, passed, decided) = (counts.bounds(), counts.passed, counts.passed + counts.failed);
        // Adding one pass and one failure prevents a few trials from looking certain.
        let likely = (decided > 0).then(|| (passed + 1) as f64 / (decided + 2) as f64);
        let mut forecast = Self {
            question: decision.question,
            case: decision
                .cases
                .first()
                .filter(|_| decision.versus.is_none())
                .map(|(suite, case)| format!("{suite}::{case}")),
            arm: decision.arm.to_string(),
            versus: decision.versus.as_deref().map(str::to_owned),
            cases: decision.cases.len(),
            max_trials: decision.most,
            known_pass_rate: rate.and_then(Bounds::value),
            known_pass_rate_min: rate.map(|rate| rate.min),
            known_pass_rate_max: rate.map(|rate| rate.max),
            expected_trials: decision.most as f64,
            is_most: true,
            high_enough: None,
            too_low: None,
            detectable_drop: None,
            differences: Vec::new(),
        };
        match decision.question {
            DecisionQuestion::PassRate(rate) => {
                let contract = Contract {
                    at_least: rate.at_least,
                    indifference: rate.tolerance,
                    alpha: decision.alpha,
                    max_trials: decision.most.min(MOST_EXACT),
                };
                forecast.expected_trials = expected(&contract, likely);
                forecast.is_most = false;
                let terms = (rate, decision.most);
                let rates = cache.iter().find(|(known, _)| *known == terms).map(|(_, rates)| *rates);
                let rates = rates.unwrap_or_else(|| {
                    let rates = detectable(&contract);
                    cache.push((terms, rates));
                    rates
                });
                [forecast.high_enough, forecast.too_low] = rates;
            }
            DecisionQuestion::Precision { half_width } => {
                let needed = model::statistics::sequential_trials_for_precision(
                    half_width,
                    likely.unwrap_or(0.5),
                    decision.alpha,
                );
                forecast.expected_trials =
                    needed.map_or(decision.most as f64, |needed| (needed as f64).min(decision.most as f64));
                forecast.is_most = needed.is_none_or(|needed| needed > decision.most);
            }
            DecisionQuestion::Difference { half_width: Some(_), .. } => {}
            DecisionQuestion::Difference { margin, half_width: None } => {
                let comparison = Comparison { alpha: decision.alpha, margin, max_pairs: decision.most };
                forecast.compare(&comparison, known_rates(decision, history));
            }
        }
        forecast
    }

    /// Adds the forecast of a comparison. `known` are the pass rates of both arms in earlier trials.
    fn compare(&mut self, comparison: &Comparison, known: Option<[f64; 2]>) {
        let cases = self.cases as u64;
        let ends = DIFFERENCES.map(|difference| {
            let rates = [USUAL_RATE, USUAL_RATE - difference];
            (rates, comparison.forecast(cases, rates))
        });
        let mean = ends.iter().map(|(_, end)| end.mean_pairs).sum::<f64>() / ends.len() as f64;
        self.expected_trials = known.map_or(mean, |rates| comparison.forecast(cases, rates).mean_pairs);
        self.is_most = false;
        self.differences = ends.into_iter().map(|(rates, end)| DifferenceForecast::of(rates, &end)).collect();
        let is_found =
            |difference: f64| comparison.forecast(cases, [USUAL_RATE, USUAL_RATE - difference]).better >= POWER;
        self.detectable_drop = is_found(USUAL_RATE).then(|| boundary([USUAL_RATE, 0.0], 0.01, is_found));
    }
}

impl DifferenceForecast {
    fn of(rates: [f64; 2], forecast: &ComparisonForecast) -> Self {
        let ComparisonForecast { better, worse, equivalent, median_pairs, .. } = *forecast;
        Self { rates, found: better + worse, equivalent, median_pairs }
    }
}

/// Returns the pass rates of both arms in earlier trials, if both have some.
fn known_rates(decision: &PlannedDecision, history: &History) -> Option<[f64; 2]> {
    let rate = |arm: &str| {
        let known = decision.cases.iter().filter_map(|(suite, case)| history.get(suite, case, arm));
        let [passed, all] = known.fold([0, 0], |[passed, all], known| {
            [passed + known.counts.passed, all + known.counts.passed + known.counts.failed]
        });
        (all > 0).then(|| (passed + 1) as f64 / (all + 2) as f64)
    };
    Some([rate(&decision.arm)?, rate(decision.versus.as_deref()?)?])
}

/// Returns the expected number of trials for a likely pass rate. Without one, every rate is equally likely.
fn expected(contract: &Contract, rate: Option<f64>) -> f64 {
    match rate {
        Some(rate) => contract.forecast(rate).mean_trials,
        None => (0..10).map(|at| contract.forecast((f64::from(at) + 0.5) / 10.0).mean_trials).sum::<f64>() / 10.0,
    }
}

/// Returns the smallest true rate that is shown to be high enough with a probability of 80 %, and the largest that is
/// shown to be too low. Each is `None` if no rate can be shown.
fn detectable(contract: &Contract) -> [Option<f64>; 2] {
    let high = |rate: f64| contract.forecast(rate).success >= POWER;
    let low = |rate: f64| contract.forecast(rate).failure >= POWER;
    [
        high(1.0).then(|| boundary([1.0, contract.at_least - contract.indifference], 0.001, high)),
        low(0.0).then(|| boundary([0.0, contract.at_least], 0.001, low)),
    ]
}

/// Returns the boundary between values that are shown and values that are not, at most `step` away from it.
fn boundary([mut shown, mut hidden]: [f64; 2], step: f64, is_shown: impl Fn(f64) -> bool) -> f64 {
    while (shown - hidden).abs() > step {
        let middle = f64::midpoint(shown, hidden);
        if is_shown(middle) { shown = middle } else { hidden = middle }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONTRACT: Contract = Contract { at_least: 0.9, indifference: 0.1, alpha: 0.05, max_trials: 40 };

    #[test]
    fn clear_rates_are_expected_to_take_few_trials() {
        assert!(expected(&CONTRACT, Some(0.3)) < 6.0);
        assert!(expected(&CONTRACT, Some(0.99)) < 25.0);
        let unknown = expected(&CONTRACT, None);
        assert!((5.0..25.0).contains(&unknown), "{unknown}");
    }

    #[test]
    fn the_detectable_rates_enclose_the_required_one() {
        let [high, low] = detectable(&CONTRACT).map(Option::unwrap);
        assert!((0.9..1.0).contains(&high) && (0.4..0.9).contains(&low), "{high} {low}");
        assert_eq!(detectable(&Contract { max_trials: 10, ..CONTRACT })[0], None);
        // 224 of 224 passed trials are enough.
        let strict = Contract { at_least: 0.99, indifference: 0.01, max_trials: 300, ..CONTRACT };
        let high = detectable(&strict)[0].unwrap();
        assert!((0.99..1.0).contains(&high), "{high}");
    }
}
