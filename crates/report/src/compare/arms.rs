//! Comparison of the arms of two runs: after − before, paired by case.

use std::sync::Arc;

use model::statistics::{Delta, Difference, Observation};
use model::{AgentInfo, ArmSummary, TrialFigures, WITH_SKILL, WITHOUT_SKILL};
use serde_json::{Value, json};

use crate::arms::{Arms, without_variant};
use crate::format::{gain, gains, money, p_value, percent, rounded, seconds, signed};
use crate::terminal::Paint;
use crate::terminal::arms::{too_few, verdict};
use crate::terminal::grid::{Cell, CellStyle, Grid};

/// Maximum width of an arm's name.
const NAME: usize = 44;

/// An arm in both runs, or in one of them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ArmChange {
    before: Option<ArmSummary>,
    after: Option<ArmSummary>,
    /// Difference of the second run's arm from the first one's.
    delta: Delta,
}

/// Returns each arm of two runs, those of the second run first. Arms with different names are paired if each is the
/// only remaining arm of its variant in its run.
pub(super) fn changes(before: &[TrialFigures], after: &[TrialFigures], agents: &[AgentInfo]) -> Vec<ArmChange> {
    // These tests are valid only for a fixed number of trials.
    if before.iter().chain(after).any(|trial| trial.is_sequential) {
        return Vec::new();
    }
    let mut were = Arms::of(before, agents).arms;
    let are = Arms::of(after, agents).arms;
    let mut pairs: Vec<(Option<ArmSummary>, Option<ArmSummary>)> = Vec::new();
    for arm in are {
        let at = were.iter().position(|was| was.arm == arm.arm);
        pairs.push((at.map(|at| were.remove(at)), Some(arm)));
    }
    for variant in [None, Some(WITH_SKILL), Some(WITHOUT_SKILL)] {
        let of = |arm: &ArmSummary| arm.variant.as_deref() == variant;
        let left: Vec<usize> = (0..were.len()).filter(|at| of(&were[*at])).collect();
        let mut new = pairs.iter_mut().filter(|(was, now)| was.is_none() && now.as_ref().is_some_and(of));
        if let ([at], Some(pair), None) = (&left[..], new.next(), new.next()) {
            pair.0 = Some(were.remove(*at));
        }
    }
    pairs.extend(were.into_iter().map(|was| (Some(was), None)));
    let of = |arm: &Option<ArmSummary>, trials: &[TrialFigures]| -> Vec<Observation<(Arc<str>, Arc<str>)>> {
        let ours = trials.iter().filter(|trial| arm.as_ref().is_some_and(|arm| *arm.arm == *trial.arm));
        ours.map(|trial| trial.observation.clone()).collect()
    };
    let change = |(was, now): (Option<ArmSummary>, Option<ArmSummary>)| ArmChange {
        delta: Delta::between(&of(&now, after), &of(&was, before)),
        before: was,
        after: now,
    };
    pairs.into_iter().map(change).collect()
}

/// Returns the table of arms. It begins with an empty line, unless there are no arms.
pub(super) fn draw(arms: &[ArmChange], paint: &Paint) -> String {
    if arms.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&[
        ("checks met", 0),
        ("before", 0),
        ("after", 0),
        ("change", 0),
        ("95%", 3),
        ("p", 2),
        ("n", 1),
        ("time", 4),
        ("tokens", 6),
        ("cost", 5),
    ]);
    let mut agent = String::new();
    for arm in arms {
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
        grid.row(arm.cells(row));
    }
    let mut text = format!("\n{}", grid.draw(paint));
    if let Some(note) = too_few(arms.iter().filter_map(|arm| arm.delta.pass_rate)) {
        text.push_str(&format!("  {}\n", paint.yellow(&note)));
    }
    text
}

/// Returns the arms as JSON.
pub(super) fn to_json(arms: &[ArmChange]) -> Value {
    arms.iter()
        .map(|arm| {
            json!({
                "arm": arm.name(), "baseline": arm.is_baseline(),
                "before": arm.before, "after": arm.after, "delta": arm.delta,
            })
        })
        .collect()
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

    /// Returns "with skill" or "without", if the arm has a variant.
    fn variant(&self) -> Option<&'static str> {
        match self.one()?.variant.as_deref() {
            Some(WITH_SKILL) => Some("with skill"),
            Some(WITHOUT_SKILL) => Some("without"),
            _ => None,
        }
    }

    fn cells(&self, name: String) -> [Cell; 10] {
        let unknown = || Cell::new("n/a", CellStyle::Dim);
        let rate = |arm: &Option<ArmSummary>| {
            let rate = arm.as_ref().and_then(|arm| arm.statistics.pass_rate);
            rate.map_or_else(unknown, |rate| percent(rate.mean).into())
        };
        let of = |difference: Option<Difference>, shown: &dyn Fn(f64) -> String| {
            difference.map_or_else(unknown, |difference| shown(difference.mean).into())
        };
        let apart = self.delta.pass_rate;
        // A change in the arm without the skill is not caused by the skill.
        let style = |apart: &Difference| if self.is_baseline() { CellStyle::Plain } else { verdict(apart) };
        [
            name.into(),
            rate(&self.before),
            rate(&self.after),
            apart.map_or_else(unknown, |apart| Cell::new(format!("{} pts", gain(apart.mean)), style(&apart))),
            apart.and_then(|apart| apart.ci95).map_or_else(Cell::default, |ends| gains(ends).into()),
            apart.map_or_else(Cell::default, |apart| p_value(apart.p_value).into()),
            apart.map_or_else(Cell::default, |apart| apart.cases.to_string().into()),
            of(self.delta.duration_s, &|time| signed(time, seconds)),
            of(self.delta.tokens, &|tokens| signed(tokens, rounded)),
            of(self.delta.cost_usd, &|cost| signed(cost, money)),
        ]
    }
}
