//! Pairs of trials of the same case on both sides of a comparison.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use model::TrialRow;

use super::Dimension;
use super::preference::TrialPair;

/// Trials of one case on both sides. One side is empty if only the other has the case.
pub(super) struct Pair<'a> {
    /// `suite::case`, with the arm if a side has several.
    pub(super) name: String,
    pub(super) sides: [Vec<&'a TrialRow>; 2],
}

impl Pair<'_> {
    /// Returns the pairs of graded trials with the same repetition. Several trials with the same repetition, from
    /// different arms, are paired in the order of their ids.
    pub(super) fn trials(&self) -> Vec<TrialPair> {
        let [before, after] = self.sides.each_ref().map(|trials| {
            let mut graded: BTreeMap<u64, Vec<&TrialRow>> = BTreeMap::new();
            for trial in trials.iter().filter(|trial| trial.outcome.is_graded()) {
                graded.entry(trial.repetition).or_default().push(trial);
            }
            graded.values_mut().for_each(|trials| trials.sort_by(|one, other| one.id.cmp(&other.id)));
            graded
        });
        let both =
            before.into_iter().filter_map(|(repetition, trials)| Some((repetition, trials, after.get(&repetition)?)));
        let pair = |(repetition, before, after): (u64, Vec<&TrialRow>, &Vec<&TrialRow>)| {
            let pair = |(before, after): (&TrialRow, &&TrialRow)| TrialPair {
                case: self.name.clone(),
                repetition,
                trials: [before, after].map(|trial| (trial.run.clone(), trial.id.clone())),
            };
            before.into_iter().zip(after).map(pair).collect::<Vec<_>>()
        };
        both.flat_map(pair).collect()
    }
}

/// Trials of one side by arm.
type ByArm<'a> = BTreeMap<String, Vec<&'a TrialRow>>;

/// Pairs the trials by case. If a side has several arms of a case, trials are also paired by arm, ignoring the part of
/// the arm that `by` compares.
pub(super) fn pairs<'a>(sides: [&[&'a TrialRow]; 2], by: Dimension) -> Vec<Pair<'a>> {
    let mut cases: BTreeMap<(&str, &str), [ByArm<'a>; 2]> = BTreeMap::new();
    let mut all = [BTreeSet::new(), BTreeSet::new()];
    for (side, trials) in sides.into_iter().enumerate() {
        let mut names: HashMap<&str, String> = HashMap::new();
        for trial in trials {
            let arm = names.entry(&trial.arm).or_insert_with(|| arm(trial, by));
            let case = &mut cases.entry((&trial.suite, &trial.case)).or_default()[side];
            match case.get_mut(arm) {
                Some(trials) => trials.push(trial),
                None => _ = case.insert(arm.clone(), vec![trial]),
            }
        }
        all[side].extend(names.into_values());
    }
    let counterparts = counterparts(&all);
    let mut pairs = Vec::with_capacity(cases.len());
    for ((suite, case), [before, after]) in cases {
        let name = format!("{suite}::{case}");
        if before.len() <= 1 && after.len() <= 1 || counterparts.is_empty() {
            let all = |arms: ByArm<'a>| arms.into_values().flatten().collect();
            pairs.push(Pair { name, sides: [all(before), all(after)] });
            continue;
        }
        let mut by_arm: BTreeMap<String, [Vec<&TrialRow>; 2]> = BTreeMap::new();
        for (arm, trials) in after {
            by_arm.entry(arm).or_default()[1] = trials;
        }
        for (arm, trials) in before {
            // A case that only this side has keeps its own arm.
            let other = counterparts.get(&arm).filter(|other| by_arm.contains_key(*other));
            let arm = other.cloned().unwrap_or(arm);
            by_arm.entry(arm).or_default()[0] = trials;
        }
        pairs.extend(by_arm.into_iter().map(|(arm, sides)| Pair { name: format!("{name}@{arm}"), sides }));
    }
    pairs
}

/// Maps each arm of the first side to its counterpart in the second: the same arm, or the only other one if each side
/// has only one other. Empty if no arm has a counterpart.
fn counterparts([before, after]: &[BTreeSet<String>; 2]) -> BTreeMap<String, String> {
    let mut counterparts: BTreeMap<String, String> =
        before.intersection(after).map(|arm| (arm.clone(), arm.clone())).collect();
    let (mut were, mut are) = (before.difference(after), after.difference(before));
    if let (Some(was), None, Some(is), None) = (were.next(), were.next(), are.next(), are.next()) {
        counterparts.insert(was.clone(), is.clone());
    }
    counterparts
}

/// Returns the arm of a trial without the part that is compared.
fn arm(trial: &TrialRow, by: Dimension) -> String {
    let parts = |parts: [Option<&str>; 2]| parts.into_iter().flatten().collect::<Vec<_>>().join("+");
    match by {
        Dimension::Run => trial.arm.clone(),
        Dimension::Agent => parts([trial.model.as_deref(), trial.variant.as_deref()]),
        Dimension::Model => parts([Some(&trial.agent), trial.variant.as_deref()]),
        Dimension::Variant => {
            let cut = |variant: &String| trial.arm.strip_suffix(variant.as_str())?.strip_suffix('+');
            trial.variant.as_ref().and_then(cut).unwrap_or(&trial.arm).to_owned()
        }
    }
}
