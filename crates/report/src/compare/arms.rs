//! Comparison of the arms of two runs: after − before, paired by case.

use std::collections::BTreeMap;
use std::sync::Arc;

use model::statistics::{Counted, Delta, Difference, Observation};
use model::{AgentInfo, ArmSummary, SKILLS_ONLY, TrialFigures, WITH_SKILL, WITHOUT_SKILL};
use serde_json::{Value, json};

use super::rounds::Rounds;
use crate::arms::{Arms, without_intervals, without_test, without_variant};
use crate::counts::described;
use crate::format::{gain, gains, money, percent, range, rounded, seconds, share, signed};
use crate::terminal::Paint;
use crate::terminal::arms::{possible_points, verdict};
use crate::terminal::grid::{Cell, CellStyle, Grid};

/// Maximum width of an arm's name.
const NAME: usize = 44;

/// Column headings, and the order in which columns are omitted in a narrow terminal.
const HEADS: [(&str, u8); 10] = [
    ("checks met", 0),
    ("before", 0),
    ("after", 0),
    ("change", 0),
    ("95%", 2),
    ("cases", 1),
    ("passed", 3),
    ("time", 4),
    ("tokens", 6),
    ("cost", 5),
];
/// The same if the results of a run decided how many trials ran.
const SEQUENTIAL_HEADS: [(&str, u8); 10] = [
    ("passed", 0),
    ("before", 0),
    ("95%", 2),
    ("after", 0),
    ("95%", 3),
    ("change", 0),
    ("95%", 1),
    ("time", 4),
    ("tokens", 6),
    ("cost", 5),
];

/// The arms of two runs, those of the second run first.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ArmChanges {
    arms: Vec<ArmChange>,
    /// True if the results of a run decided how many trials ran.
    is_sequential: bool,
}

/// An arm in both runs, or in one of them.
#[derive(Debug, Clone, PartialEq)]
struct ArmChange {
    before: Option<ArmSummary>,
    after: Option<ArmSummary>,
    /// Share of met assertions before and after.
    checks: [Option<f64>; 2],
    /// Difference of the second run's arm from the first one's.
    delta: Delta,
    /// Figures that stay valid if the results decide how many trials run.
    sequences: Sequences,
}

/// Outcomes of an arm in both runs, with confidence sequences of the pass rates and of their difference.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sequences {
    counts: [Counted; 2],
    rates: [Option<[f64; 2]>; 2],
    difference: Option<[f64; 2]>,
}

impl Sequences {
    fn between(before: &[&TrialFigures], after: &[&TrialFigures]) -> Self {
        let count = |trials: &[&TrialFigures]| Counted::of(trials.iter().map(|trial| trial.observation.first));
        let [was, is] = [before, after].map(|trials| Rounds::of(trials.iter().copied()));
        Self {
            counts: [count(before), count(after)],
            rates: [was.confidence_sequence(), is.confidence_sequence()],
            difference: is.difference(&was),
        }
    }

    fn to_json(&self) -> Value {
        let [before, after] = self.rates;
        json!({ "before": before, "after": after, "difference": self.difference })
    }
}

/// Pairs the arms of two runs, those of the second run first. Arms with different names are paired if each is the only
/// remaining arm of its variant in its run.
fn pairs(
    before: &[TrialFigures],
    after: &[TrialFigures],
    agents: &[AgentInfo],
) -> Vec<(Option<ArmSummary>, Option<ArmSummary>)> {
    let mut were = Arms::of(before, agents).arms;
    let are = Arms::of(after, agents).arms;
    let mut pairs: Vec<(Option<ArmSummary>, Option<ArmSummary>)> = Vec::new();
    for arm in are {
        let at = were.iter().position(|was| was.arm == arm.arm);
        pairs.push((at.map(|at| were.remove(at)), Some(arm)));
    }
    for variant in [None, Some(WITH_SKILL), Some(SKILLS_ONLY), Some(WITHOUT_SKILL)] {
        let of = |arm: &ArmSummary| arm.variant.as_deref() == variant;
        let left: Vec<usize> = (0..were.len()).filter(|at| of(&were[*at])).collect();
        let mut new = pairs.iter_mut().filter(|(was, now)| was.is_none() && now.as_ref().is_some_and(of));
        if let ([at], Some(pair), None) = (&left[..], new.next(), new.next()) {
            pair.0 = Some(were.remove(*at));
        }
    }
    pairs.extend(were.into_iter().map(|was| (Some(was), None)));
    pairs
}

impl ArmChanges {
    /// Returns the differences of the arms of two runs.
    pub(super) fn between(before: &[TrialFigures], after: &[TrialFigures], agents: &[AgentInfo]) -> Self {
        let is_sequential = before.iter().chain(after).any(|trial| trial.is_sequential);
        let of =
            |arm: &Option<ArmSummary>, trials| arm.as_ref().map_or_else(Vec::new, |arm| trials_of(&arm.arm, trials));
        let change = |(was, now): (Option<ArmSummary>, Option<ArmSummary>)| {
            let (trials_before, trials_after) = (of(&was, before), of(&now, after));
            let mut change = ArmChange {
                checks: checks([&trials_before, &trials_after]),
                delta: Delta::between(&observations(&trials_after), &observations(&trials_before)),
                sequences: Sequences::between(&trials_before, &trials_after),
                before: was,
                after: now,
            };
            if is_sequential {
                // These are valid only for a fixed number of trials.
                change.before.iter_mut().chain(&mut change.after).for_each(without_intervals);
                without_test(&mut change.delta);
            }
            change
        };
        Self { arms: pairs(before, after, agents).into_iter().map(change).collect(), is_sequential }
    }

    fn heads(&self) -> [(&'static str, u8); 10] {
        if self.is_sequential { SEQUENTIAL_HEADS } else { HEADS }
    }

    fn cells(&self, arm: &ArmChange, name: String) -> [Cell; 10] {
        if self.is_sequential { arm.sequential_cells(name) } else { arm.cells(name) }
    }

    /// Returns an empty line and the table of arms, or an empty text without arms.
    pub(super) fn draw(&self, paint: &Paint) -> String {
        if self.arms.is_empty() {
            return String::new();
        }
        let mut grid = Grid::new(&self.heads());
        let mut agent = String::new();
        for arm in &self.arms {
            let name = arm.name();
            let short = without_variant(&name);
            let row = match arm.variant() {
                Some(variant) => {
                    if short != agent {
                        short.clone_into(&mut agent);
                        grid.heading(paint.folded(short, NAME));
                    }
                    format!("  {variant}")
                }
                None => paint.folded(&name, NAME),
            };
            grid.row(self.cells(arm, row));
        }
        format!("\n{}", grid.draw(paint))
    }

    /// Returns the arms as rows of text, below a row of headings.
    pub(super) fn rows(&self) -> Vec<[String; 10]> {
        if self.arms.is_empty() {
            return Vec::new();
        }
        let row = |arm: &ArmChange| self.cells(arm, arm.name()).map(Cell::into_text);
        let heads = self.heads().map(|(head, _)| head.to_owned());
        std::iter::once(heads).chain(self.arms.iter().map(row)).collect()
    }

    /// Returns the arms as JSON.
    pub(super) fn to_json(&self) -> Value {
        let one = |arm: &ArmChange| {
            let mut delta = json!(arm.delta);
            if self.is_sequential {
                // The results decided how many trials ran, so this p-value is not valid.
                let p_values = delta.as_object_mut().into_iter().flat_map(serde_json::Map::values_mut);
                p_values.filter_map(|figure| figure.get_mut("p_value")).for_each(|p_value| *p_value = Value::Null);
            }
            json!({
                "arm": arm.name(), "baseline": arm.is_baseline(), "before": arm.before, "after": arm.after,
                "delta": delta, "confidence_sequences": self.is_sequential.then(|| arm.sequences.to_json()),
            })
        };
        self.arms.iter().map(one).collect()
    }
}

fn trials_of<'t>(arm: &str, trials: &'t [TrialFigures]) -> Vec<&'t TrialFigures> {
    trials.iter().filter(|trial| *trial.arm == *arm).collect()
}

fn observations(trials: &[&TrialFigures]) -> Vec<Observation<(Arc<str>, Arc<str>)>> {
    trials.iter().map(|trial| trial.observation.clone()).collect()
}

/// Returns the share of met assertions on both sides: the mean over trials of the cases that have one on both sides, as
/// in their difference, or over all trials of each side if they have no such case in common.
fn checks(sides: [&[&TrialFigures]; 2]) -> [Option<f64>; 2] {
    let [before, after] = sides.map(|trials| {
        let mut by_case: BTreeMap<&(Arc<str>, Arc<str>), Vec<f64>> = BTreeMap::new();
        for trial in trials.iter().map(|trial| &trial.observation).filter(|trial| trial.is_graded()) {
            if let Some(rate) = trial.pass_rate {
                by_case.entry(&trial.case).or_default().push(rate);
            }
        }
        by_case
    });
    let is_paired = before.keys().any(|case| after.contains_key(case));
    [(&before, &after), (&after, &before)].map(|(own, other)| {
        let counted = own.iter().filter(|(case, _)| !is_paired || other.contains_key(*case));
        let rates: Vec<f64> = counted.flat_map(|(_, rates)| rates).copied().collect();
        (!rates.is_empty()).then(|| rates.iter().sum::<f64>() / rates.len() as f64)
    })
}

impl ArmChange {
    fn one(&self) -> Option<&ArmSummary> {
        self.after.as_ref().or(self.before.as_ref())
    }

    fn name(&self) -> String {
        self.one().map_or_else(String::new, |arm| arm.arm.clone())
    }

    fn is_baseline(&self) -> bool {
        self.one().is_some_and(ArmSummary::is_baseline)
    }

    /// Returns "with skill", "skills only" or "without", if the arm has a variant.
    fn variant(&self) -> Option<&'static str> {
        match self.one()?.variant.as_deref() {
            Some(WITH_SKILL) => Some("with skill"),
            Some(SKILLS_ONLY) => Some("skills only"),
            Some(WITHOUT_SKILL) => Some("without"),
            _ => None,
        }
    }

    fn cells(&self, name: String) -> [Cell; 10] {
        let unknown = || Cell::new("n/a", CellStyle::Dim);
        let [before, after] = self.checks.map(|share| share.map_or_else(unknown, |share| percent(share).into()));
        let of = |difference: Option<Difference>, shown: &dyn Fn(f64) -> String| {
            difference.map_or_else(unknown, |difference| shown(difference.mean).into())
        };
        let apart = self.delta.pass_rate;
        // A change in the arm without the skill is not caused by the skill.
        let style = |apart: &Difference| if self.is_baseline() { CellStyle::Plain } else { verdict(apart) };
        [
            name.into(),
            before,
            after,
            apart.map_or_else(unknown, |apart| Cell::new(format!("{} pts", gain(apart.mean)), style(&apart))),
            apart.and_then(|apart| apart.ci95).map_or_else(Cell::default, |ends| gains(ends).into()),
            apart.map_or_else(Cell::default, |apart| apart.cases.to_string().into()),
            possible_points(self.delta.full_pass_rate),
            of(self.delta.duration_s, &|time| signed(time, seconds)),
            of(self.delta.tokens, &|tokens| signed(tokens, rounded)),
            of(self.delta.cost_usd, &|cost| signed(cost, money)),
        ]
    }
    /// Returns the cells if the results of a run decided how many trials ran: passed trials and confidence sequences.
    fn sequential_cells(&self, name: String) -> [Cell; 10] {
        let [before, after] = [0, 1].map(|side| {
            let counts = self.sequences.counts[side];
            counts.bounds().map_or_else(
                || Cell::new("n/a", CellStyle::Dim),
                |rate| format!("{} {:>4}", described(counts), share(rate)).into(),
            )
        });
        let [was, is] = self.sequences.rates.map(|rate| rate.map_or_else(Cell::default, |ends| range(ends).into()));
        let [.., time, tokens, cost] = self.cells(String::new());
        let difference = self.sequences.difference;
        let style = match difference {
            _ if self.is_baseline() => CellStyle::Plain,
            Some([low, _]) if low > 0.0 => CellStyle::Green,
            Some([_, high]) if high < 0.0 => CellStyle::Red,
            _ => CellStyle::Bold,
        };
        let change = Cell::new(possible_points(self.delta.full_pass_rate).into_text(), style);
        let interval = difference.map_or_else(Cell::default, |ends| gains(ends).into());
        [name.into(), before, was, after, is, change, interval, time, tokens, cost]
    }
}
