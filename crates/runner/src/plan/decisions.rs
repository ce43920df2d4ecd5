//! Questions that decide how many planned trials run: a required pass rate, a precision, or a comparison of two arms.

use std::collections::HashMap;
use std::sync::Arc;

use model::statistics::{
    Comparison, ComparisonDecision, Contract, PairBounds, SIGNIFICANCE, fewest, sequential_trials_for_precision,
};
use model::{AutoTrials, DecisionQuestion, Diagnostic, MOST_TRIALS, PassRate};

use super::request::PlanRequest;
use super::trial::{PlannedCase, PlannedTrial};

/// Largest difference between pass rates that does not matter in a comparison.
const MARGIN: f64 = 0.05;

/// Question whose answer decides how many planned trials run.
#[derive(Debug, Clone)]
pub struct PlannedDecision {
    /// Question.
    pub question: DecisionQuestion,
    /// Largest acceptable probability of a wrong answer.
    pub alpha: f64,
    /// Arm that the question is about.
    pub arm: Arc<str>,
    /// Arm that it is compared with.
    pub versus: Option<Arc<str>>,
    /// Suite and id of each case: one, or all cases that both arms run.
    pub cases: Vec<(Arc<str>, Arc<str>)>,
    /// Maximum number of trials for each case and arm.
    pub most: u64,
    /// True if the case is quarantined.
    pub quarantined: bool,
}

/// Trials of one case under one arm.
struct Group<'t> {
    first: &'t PlannedTrial,
    auto: AutoTrials,
    is_compared: bool,
}

/// Returns the questions for the `trials` whose number is not fixed, and adjusts these trials: each gets the rule that
/// decides its number, and trials that no question needs are removed.
pub(super) fn decisions(
    trials: &mut Vec<PlannedTrial>,
    request: &PlanRequest<'_>,
    problems: &mut Vec<Diagnostic>,
) -> Vec<PlannedDecision> {
    let settings = request.settings;
    if trials.iter().all(|trial| trial.auto.is_none()) {
        if settings.arms.precision.is_some() && !trials.is_empty() {
            problems.push(
                Diagnostic::error("`precision` needs a number of trials that is not fixed")
                    .help("set `trials` to `auto:MAX`"),
            );
        }
        return Vec::new();
    }
    // A case that cannot be loaded or is skipped always has one result.
    let cannot_run = |trial: &PlannedTrial| trial.case.skip.is_some() || !trial.case.broken.is_empty();
    let mut groups: Vec<Group<'_>> = Vec::new();
    let planned = std::mem::take(trials);
    for trial in planned.iter().filter(|trial| trial.repetition == 1 && !cannot_run(trial)) {
        if let Some(auto) = trial.auto {
            groups.push(Group { first: trial, auto, is_compared: false });
        }
    }
    let mut decisions = comparisons(&mut groups, settings.precision());
    if let (false, Some((k, n))) = (decisions.is_empty(), request.selection.shard) {
        problems.push(
            Diagnostic::error(format!("the shard {k}/{n} cannot be combined with a comparison of `auto` trials"))
                .help("a shard does not know the results of the others: run the comparison in one piece"),
        );
    }
    let mut autos: HashMap<[Arc<str>; 3], AutoTrials> = HashMap::new();
    for group in &mut groups {
        let own = own_decisions(group, settings.defaults.pass_rate, settings.precision());
        if own.is_empty() && !group.is_compared {
            continue;
        }
        autos.insert(group.first.group(), group.auto);
        decisions.extend(own);
    }
    problems.extend(hopeless(&decisions, &groups));
    let mut changed: HashMap<[Arc<str>; 3], Arc<PlannedCase>> = HashMap::new();
    trials.extend(planned.into_iter().filter_map(|mut trial| {
        let auto = autos.get(&trial.group()).copied();
        let is_kept = trial.auto.is_none() || auto.is_some() || trial.repetition == 1;
        if trial.auto == auto || !is_kept {
            return is_kept.then_some(trial);
        }
        let with_auto = || Arc::new(PlannedCase { auto, ..PlannedCase::clone(&trial) });
        trial.of = Arc::clone(changed.entry(trial.group()).or_insert_with(with_auto));
        Some(trial)
    }));
    decisions
}

/// Returns the questions about one case under one arm.
fn own_decisions(group: &mut Group<'_>, of_project: Option<PassRate>, precision: Option<f64>) -> Vec<PlannedDecision> {
    let case = &group.first.case;
    if group.first.is_baseline() {
        return Vec::new();
    }
    let precise = precision.filter(|_| !group.is_compared);
    let required = case.pass_rate.or(of_project);
    let required = required.or((!group.is_compared && precise.is_none()).then_some(PassRate::DEFAULT));
    group.auto.pass_rate = required;
    let questions = [
        required.map(DecisionQuestion::PassRate),
        precise.map(|half_width| DecisionQuestion::Precision { half_width }),
    ];
    let decision = |question| PlannedDecision {
        question,
        alpha: SIGNIFICANCE,
        arm: Arc::clone(&group.first.arm_name),
        versus: None,
        cases: vec![(Arc::clone(&group.first.suite), Arc::clone(&group.first.case_id))],
        most: group.auto.most,
        quarantined: case.quarantine.is_some(),
    };
    questions.into_iter().flatten().map(decision).collect()
}

/// Returns the comparisons: each agent with and without the skill, or otherwise the first arm with every other arm.
/// Quarantined cases are not compared. Several comparisons share the probability of a wrong answer (Bonferroni).
fn comparisons(groups: &mut [Group<'_>], precision: Option<f64>) -> Vec<PlannedDecision> {
    let mut pairs: Vec<([usize; 2], [Arc<str>; 2])> = Vec::new();
    let mut by_case: HashMap<usize, Vec<usize>> = HashMap::new();
    for (index, group) in groups.iter().enumerate().filter(|(_, group)| group.first.case.quarantine.is_none()) {
        by_case.entry(group.first.position).or_default().push(index);
    }
    let mut cases: Vec<Vec<usize>> = by_case.into_values().collect();
    cases.sort_unstable();
    for case in cases {
        let (baseline, tested): (Vec<usize>, Vec<usize>) =
            case.iter().partition(|index| groups[**index].first.is_baseline());
        let of_agent = |one: usize, other: usize| {
            let [one, other] = [one, other].map(|index| groups[index].first);
            (&one.arm.agent, &one.arm.model, &one.argument) == (&other.arm.agent, &other.arm.model, &other.argument)
        };
        let found: Vec<[usize; 2]> = match baseline.is_empty() {
            false => {
                let without = |with: usize| baseline.iter().copied().find(|without| of_agent(with, *without));
                tested.iter().filter_map(|with| Some([*with, without(*with)?])).collect()
            }
            true => tested
                .split_first()
                .map_or_else(Vec::new, |(first, others)| others.iter().map(|other| [*first, *other]).collect()),
        };
        pairs.extend(found.into_iter().map(|pair| (pair, pair.map(|index| Arc::clone(&groups[index].first.arm_name)))));
    }
    let mut decisions: Vec<PlannedDecision> = Vec::new();
    for (pair, [arm, versus]) in pairs {
        let first = groups[pair[0]].first;
        let case = (Arc::clone(&first.suite), Arc::clone(&first.case_id));
        let most = pair.iter().map(|index| groups[*index].auto.most).min().unwrap_or(0);
        pair.iter().for_each(|index| groups[*index].is_compared = true);
        let same = |known: &&mut PlannedDecision| known.arm == arm && known.versus.as_ref() == Some(&versus);
        match decisions.iter_mut().find(same) {
            Some(known) => {
                known.cases.push(case);
                known.most = known.most.min(most);
            }
            None => decisions.push(PlannedDecision {
                question: DecisionQuestion::Difference { margin: MARGIN, half_width: precision },
                alpha: SIGNIFICANCE,
                arm,
                versus: Some(versus),
                cases: vec![case],
                most,
                quarantined: false,
            }),
        }
    }
    let share = SIGNIFICANCE / decisions.len().max(1) as f64;
    decisions.iter_mut().for_each(|decision| decision.alpha = share);
    decisions
}

/// Returns a warning for each question whose maximum is too small for an answer, at the case that sets it.
fn hopeless(decisions: &[PlannedDecision], groups: &[Group<'_>]) -> Vec<Diagnostic> {
    let mut warnings: Vec<Diagnostic> = Vec::new();
    for decision in decisions {
        let Some((what, needed)) = needed(decision) else { continue };
        if needed.is_some_and(|needed| needed <= decision.most) {
            continue;
        }
        let (unit, best) = match decision.question {
            DecisionQuestion::Difference { .. } => ("pair", "if the arms differ in all of them"),
            _ => ("trial", "if all of them pass"),
        };
        let takes = needed.map_or_else(
            || format!("more than 100,000 {unit}s"),
            |needed| format!("at least {needed} {unit}s, {best}"),
        );
        let most = model::text::counted(usize::try_from(decision.most).unwrap_or(usize::MAX), unit);
        let most = if unit == "pair" { format!("{most} of each case") } else { most };
        let warning = Diagnostic::warning(format!("at most {most} cannot show {what}: this takes {takes}"))
            .help("raise the maximum: set `trials` to `auto:MAX`");
        let is_asked =
            |trial: &PlannedTrial| decision.cases.contains(&(Arc::clone(&trial.suite), Arc::clone(&trial.case_id)));
        let own = groups.iter().map(|group| group.first).find(|first| first.case.trials.is_some() && is_asked(first));
        if !warnings.iter().any(|known| known.message == warning.message) {
            warnings.push(match own {
                Some(first) => warning.at(first.case.source.clone()),
                None => warning,
            });
        }
    }
    warnings
}

/// Describes what a decision should show, with the smallest number of trials or pairs of each case that can show it.
fn needed(decision: &PlannedDecision) -> Option<(String, Option<u64>)> {
    match decision.question {
        DecisionQuestion::PassRate(rate) => {
            let contract = contract(rate, decision.alpha, decision.most);
            let is_enough = |trials: u64| contract.evidence(trials, 0).success >= contract.enough();
            let what =
                format!("a pass rate of {} with a tolerance of {}", percent(rate.at_least), percent(rate.tolerance));
            Some((what, fewest(MOST_TRIALS, is_enough)))
        }
        DecisionQuestion::Precision { half_width } => {
            let what = format!("a pass rate to within {}", percent(half_width));
            Some((what, sequential_trials_for_precision(half_width, 1.0, decision.alpha)))
        }
        DecisionQuestion::Difference { half_width: Some(_), .. } => None,
        DecisionQuestion::Difference { margin, half_width: None } => {
            let none = vec![PairBounds::default(); decision.cases.len()];
            let can_decide = |max_pairs: u64| {
                let comparison = Comparison { alpha: decision.alpha, margin, max_pairs };
                comparison.decide(&none) != ComparisonDecision::Futility
            };
            let versus = decision.versus.as_deref().unwrap_or_default();
            let what = format!("a difference between {} and {versus}", decision.arm);
            Some((what, fewest(MOST_TRIALS, can_decide)))
        }
    }
}

fn percent(share: f64) -> String {
    format!("{} %", (share * 1e4).round() / 100.0)
}

/// Creates the test for a required pass rate with at most `most` trials.
pub(crate) fn contract(rate: PassRate, alpha: f64, most: u64) -> Contract {
    Contract { at_least: rate.at_least, indifference: rate.tolerance, alpha, max_trials: most }
}
