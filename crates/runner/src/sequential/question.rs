//! A question in progress: its evidence so far, and its answer once there is enough evidence.

use model::statistics::{
    Bounds, Comparison, ComparisonDecision, Counted, Decision, OpenDecision, PairBounds, e_difference_above,
};
use model::{Answer, DecisionQuestion, DecisionRecord, PassRate, StopReason};

use super::group::Group;
use crate::plan::{PlannedDecision, contract};

/// A question whose answer decides how many trials run.
pub(super) struct Question {
    pub(super) planned: PlannedDecision,
    /// Groups for each case: one, or for a difference one for each arm.
    pub(super) cases: Vec<Vec<usize>>,
    /// False once it needs no further trial.
    pub(super) is_open: bool,
    /// Largest of its e-values so far.
    e_value: f64,
    /// Number of counted trials or rounds.
    counted: u64,
}

impl Question {
    pub(super) fn new(planned: PlannedDecision, cases: Vec<Vec<usize>>) -> Self {
        Self { planned, cases, is_open: true, e_value: 1.0, counted: 0 }
    }

    /// Returns the groups that the question is about.
    pub(super) fn groups(&self) -> impl Iterator<Item = usize> {
        self.cases.iter().flatten().copied()
    }

    /// Returns the figures from which the next trial is chosen.
    pub(super) fn open_decision(&self, groups: &[Group]) -> OpenDecision {
        let running = self.groups().map(|index| groups[index].running()).max().unwrap_or(0);
        let costs = self.groups().map(|index| groups[index].mean_cost_usd());
        OpenDecision {
            e_value: self.e_value,
            enough: 1.0 / self.planned.alpha,
            trials: self.counted + running,
            cost_usd: costs.collect::<Option<Vec<f64>>>().map(|costs| costs.iter().sum()),
        }
    }

    /// Evaluates the results so far. Returns the answer and the reason if no further trial is needed.
    pub(super) fn evaluate(&mut self, groups: &[Group]) -> Option<(Answer, StopReason)> {
        let found = match self.planned.question {
            DecisionQuestion::PassRate(rate) => self.pass_rate(rate, &groups[self.cases[0][0]]),
            DecisionQuestion::Precision { half_width } => self.precision(half_width, &groups[self.cases[0][0]]),
            DecisionQuestion::Difference { margin, half_width } => self.difference(margin, half_width, groups),
        };
        let has_no_results = || self.groups().any(|index| groups[index].has_no_results());
        found.or_else(|| has_no_results().then_some((Answer::Undecided, StopReason::Broken)))
    }

    fn pass_rate(&mut self, rate: PassRate, group: &Group) -> Option<(Answer, StopReason)> {
        let (counts, most) = (group.counts(), self.planned.most - group.skipped().min(self.planned.most));
        let contract = contract(rate, self.planned.alpha, most);
        let evidence = contract.evidence_of(counts);
        (self.e_value, self.counted) = (evidence.success.max(evidence.failure), counts.trials());
        match contract.decide_counted(counts) {
            Decision::Success => Some((Answer::Met, StopReason::Decided)),
            Decision::Failure => Some((Answer::NotMet, StopReason::Decided)),
            Decision::Futility if counts.trials() >= most => Some((Answer::Undecided, StopReason::Maximum)),
            // Without trials, futility means that the maximum is too small for an answer. The plan has already warned
            // about this, so the trials run anyway.
            Decision::Futility if counts.trials() == 0 => None,
            Decision::Futility => Some((Answer::Undecided, StopReason::Futility)),
            Decision::Continue => None,
        }
    }

    fn precision(&mut self, half_width: f64, group: &Group) -> Option<(Answer, StopReason)> {
        let counts = group.counts();
        let most = self.planned.most - group.skipped().min(self.planned.most);
        self.counted = counts.trials();
        let [low, high] = counts.confidence_sequence(self.planned.alpha);
        // The width of the interval shrinks with the square root of the number of trials, so this estimates the share
        // of the needed trials that have run. It replaces the logarithm of an e-value.
        let share = (2.0 * half_width / (high - low)).powi(2).min(1.0);
        self.e_value = (1.0 / self.planned.alpha).powf(share);
        if high - low <= 2.0 * half_width {
            return Some((Answer::Precise, StopReason::Decided));
        }
        // The interval is narrowest if all remaining trials have the same result.
        let remaining = most.saturating_sub(counts.trials());
        let is_possible = |more: Counted| {
            let mut all = counts;
            all += more;
            let [low, high] = all.confidence_sequence(self.planned.alpha);
            high - low <= 2.0 * half_width
        };
        let ends =
            [Counted { passed: remaining, ..Counted::default() }, Counted { failed: remaining, ..Counted::default() }];
        if counts.unknown > 0 && counts.trials() < most && !ends.into_iter().any(is_possible) {
            return Some((Answer::Undecided, StopReason::Futility));
        }
        (counts.trials() >= most).then_some((Answer::Undecided, StopReason::Maximum))
    }

    fn difference(&mut self, margin: f64, half_width: Option<f64>, groups: &[Group]) -> Option<(Answer, StopReason)> {
        let (rounds, pairs) = self.rounds(groups);
        let all: PairBounds = pairs.iter().copied().sum();
        let alpha = self.planned.alpha;
        let evidence = [e_difference_above(0.0, all.worst), e_difference_above(0.0, all.best.swapped())];
        (self.e_value, self.counted) = (evidence[0].max(evidence[1]), rounds);
        // A round that lost a pair to a skipped trial cannot be repeated.
        let lost = self.cases.iter().map(|case| lost_pairs(case, groups)).max().unwrap_or(0);
        let most = self.planned.most - lost.min(self.planned.most);
        let comparison = Comparison { alpha, margin, max_pairs: most };
        let decision = comparison.decide(&pairs);
        let answer = match decision {
            ComparisonDecision::Better => Answer::Better,
            ComparisonDecision::Worse => Answer::Worse,
            ComparisonDecision::Equivalent => Answer::Equivalent,
            ComparisonDecision::Futility | ComparisonDecision::Continue => Answer::Undecided,
        };
        let is_over = rounds >= most;
        if let Some(half_width) = half_width {
            let [low, high] = all.interval(alpha);
            let is_precise = high - low <= 2.0 * half_width;
            let precise = if answer == Answer::Undecided { Answer::Precise } else { answer };
            return match (is_precise, is_over) {
                (true, _) => Some((precise, StopReason::Decided)),
                (false, true) => Some((Answer::Undecided, StopReason::Maximum)),
                (false, false) => None,
            };
        }
        match decision {
            _ if answer != Answer::Undecided => Some((answer, StopReason::Decided)),
            _ if is_over => Some((answer, StopReason::Maximum)),
            // The maximum is too small, as the plan has warned.
            ComparisonDecision::Futility if rounds == 0 => None,
            ComparisonDecision::Futility => Some((answer, StopReason::Futility)),
            _ => None,
        }
    }

    /// Returns the number of complete rounds, which have one pair for each case, and each case's pairs in them.
    fn rounds(&self, groups: &[Group]) -> (u64, Vec<PairBounds>) {
        let rounds = self.cases.iter().map(|case| pairs(case, groups).count()).min().unwrap_or(0);
        let of_case = |case: &Vec<usize>| {
            let mut bounds = PairBounds::default();
            pairs(case, groups).take(rounds).for_each(|[first, second]| bounds.push(first, second));
            bounds
        };
        (rounds as u64, self.cases.iter().map(of_case).collect())
    }

    /// Returns the record of the answer. `spared` is the number of trials that need not run, followed by the number of
    /// these without the skill.
    pub(super) fn record(
        &self,
        (answer, stopped_by): (Answer, StopReason),
        details: Option<&str>,
        groups: &[Group],
        spared: [u64; 2],
    ) -> DecisionRecord {
        let PlannedDecision { question, alpha, ref arm, ref versus, ref cases, most, quarantined } = self.planned;
        let (counts, estimate, interval) = match question {
            DecisionQuestion::Difference { .. } => {
                let all: PairBounds = self.rounds(groups).1.into_iter().sum();
                let ends = all.worst.difference().zip(all.best.difference());
                let estimate = ends.map(|(min, max)| Bounds { min, max });
                let of_arm = self.cases.iter().map(|case| groups[case[0]].counts());
                let counts = of_arm.fold([0; 3], |sum, counts| {
                    [sum[0] + counts.passed, sum[1] + counts.failed, sum[2] + counts.unknown]
                });
                (counts, estimate, all.interval(alpha))
            }
            DecisionQuestion::PassRate(_) | DecisionQuestion::Precision { .. } => {
                let counts = groups[self.cases[0][0]].counts();
                let all = [counts.passed, counts.failed, counts.unknown];
                (all, counts.bounds(), counts.confidence_sequence(alpha))
            }
        };
        let case = cases.first().filter(|_| versus.is_none());
        DecisionRecord {
            question,
            suite: case.map(|(suite, _)| suite.clone()),
            case: case.map(|(_, case)| case.clone()),
            arm: arm.clone(),
            versus: versus.clone(),
            quarantined,
            answer,
            stopped_by,
            details: details.map(str::to_owned),
            trials: self.counted,
            max_trials: most,
            cases: self.cases.len() as u64,
            passed: counts[0],
            failed: counts[1],
            undecided: counts[2],
            estimate: estimate.and_then(Bounds::value),
            estimate_min: estimate.map(|estimate| estimate.min),
            estimate_max: estimate.map(|estimate| estimate.max),
            confidence_sequence: interval,
            confidence: 1.0 - alpha,
            spared: spared[0],
            spared_baseline: spared[1],
        }
    }
}

/// Returns the pairs of a case: results of trials with the same repetition under both arms. A pair with a skipped trial
/// does not count.
fn pairs<'g>(case: &[usize], groups: &'g [Group]) -> impl Iterator<Item = [Option<bool>; 2]> + use<'g> {
    let [first, second] = [case[0], case[case.len() - 1]].map(|index| groups[index].results());
    first.iter().zip(second).filter_map(|(first, second)| Some([(*first)?, (*second)?]))
}

/// Returns the number of pairs of a case that were lost because a trial was skipped.
fn lost_pairs(case: &[usize], groups: &[Group]) -> u64 {
    let [first, second] = [case[0], case[case.len() - 1]].map(|index| groups[index].results());
    first.iter().zip(second).filter(|(first, second)| first.is_none() || second.is_none()).count() as u64
}
