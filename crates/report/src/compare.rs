//! Comparison of two runs.

mod arms;
mod skills;

use std::cmp::Ordering;
use std::collections::BTreeMap;

use model::{AgentInfo, Outcome, RunRow, SkillInfo, TrialFigures, TrialRow, statistics};

use crate::columns;
use crate::counts::Counts;
use crate::format::{counted, elapsed, in_parentheses, money, number, percent, range, timestamp};
use crate::names::{Names, is_baseline};
use crate::terminal::{Paint, Style};
use arms::ArmChange;
use skills::SkillChange;

/// Change of a case between two runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It passes less often, or its score fell by more than the threshold.
    Regressed,
    /// It passes more often.
    Fixed,
    /// It passes as often, and its score rose by more than the threshold.
    Improved,
    /// It has a verdict in only one of the runs, or its outcome without a verdict differs.
    Changed,
    /// It passes as often and its score is about the same.
    Same,
    /// Only the second run has it.
    Added,
    /// Only the first run has it.
    Missing,
}

/// A case in both runs.
#[derive(Debug, Clone, PartialEq)]
pub struct CaseChange {
    /// `suite::case`, with the arm if there are several.
    pub name: String,
    /// Change of the case.
    pub change: Change,
    before: Side,
    after: Side,
}

/// Trials of one case in one run.
#[derive(Debug, Clone, Default, PartialEq)]
struct Side {
    counts: Counts,
    trials: u64,
    outcomes: Vec<Outcome>,
    because: Option<String>,
    /// Sum of the scores, each as a share of its maximum, and number of the trials.
    scores: (f64, u64),
}

/// Maximum fall of a mean score, as a share of its maximum, that is not a regression.
pub const THRESHOLD: f64 = 0.05;

/// Tolerance for rounding errors in a sum of scores.
const NOISE: f64 = 1e-9;

/// Comparison of two runs, case by case.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The cases, regressions first.
    pub cases: Vec<CaseChange>,
    before: Totals,
    after: Totals,
    arms: Vec<ArmChange>,
    skills: Vec<SkillChange>,
}

#[derive(Debug, Clone, Default, PartialEq)]
struct Totals {
    counts: Counts,
    trials: usize,
    tokens: Option<u64>,
    cost_usd: Option<f64>,
    costs: usize,
    time_ms: u64,
}

impl Comparison {
    /// Compares the finished trials of two runs. A case that has a single arm in each run is compared across arms. A
    /// mean score may fall by `threshold`, a share from 0 to 1. Baseline trials, without the skill, are left out,
    /// because they are not under test.
    pub fn of(before: &[TrialRow], after: &[TrialRow], threshold: f64) -> Self {
        let under_test = |trials: &[TrialRow]| -> Vec<TrialRow> {
            trials.iter().filter(|trial| !is_baseline(trial)).cloned().collect()
        };
        let (before, after) = (&*under_test(before), &*under_test(after));
        let arms = [Names::of_rows(before), Names::of_rows(after)];
        let name = |trial: &TrialRow| {
            let by_arm = arms.iter().any(|names| names.has_arms(&trial.suite, &trial.case));
            let arm = if by_arm { format!("@{}", trial.arm) } else { String::new() };
            format!("{}::{}{arm}", trial.suite, trial.case)
        };
        let mut sides: BTreeMap<String, [Side; 2]> = BTreeMap::new();
        for (at, trials) in [before, after].into_iter().enumerate() {
            for trial in trials {
                sides.entry(name(trial)).or_default()[at].add(trial);
            }
        }
        let mut cases: Vec<CaseChange> = sides
            .into_iter()
            .map(|(name, mut sides)| {
                sides.iter_mut().for_each(|side| side.outcomes.sort_by_key(|outcome| outcome.name()));
                let [before, after] = sides;
                CaseChange { name, change: change(&before, &after, threshold), before, after }
            })
            .collect();
        cases.sort_by(|a, b| a.change.cmp(&b.change).then_with(|| a.name.cmp(&b.name)));
        let (before, after) = (Totals::of(before), Totals::of(after));
        Self { cases, before, after, arms: Vec::new(), skills: Vec::new() }
    }

    /// Adds the differences of the arms, including the baseline. Arms are listed in the order of `agents`, those of the
    /// second run.
    pub fn with_arms(mut self, before: &[TrialFigures], after: &[TrialFigures], agents: &[AgentInfo]) -> Self {
        self.arms = arms::changes(before, after, agents);
        self
    }

    /// Adds the differences of the skills.
    pub fn with_skills(mut self, before: &[SkillInfo], after: &[SkillInfo]) -> Self {
        self.skills = skills::changes(before, after);
        self
    }

    /// Returns each arm with its figures in both runs and their difference, as JSON.
    pub fn arms_to_json(&self) -> serde_json::Value {
        arms::to_json(&self.arms)
    }

    /// Returns each skill before and after, as JSON.
    pub fn skills_to_json(&self) -> serde_json::Value {
        skills::to_json(&self.skills)
    }

    /// Returns each case with its change, as JSON.
    pub fn to_json(&self) -> serde_json::Value {
        let side = |side: &Side| {
            serde_json::json!({
                "trials": side.trials, "decided": side.counts.passed + side.counts.failed, "passed": side.counts.passed,
                "undecided": side.counts.undecided, "score": side.score(), "because": side.because,
            })
        };
        self.cases
            .iter()
            .map(|case| {
                serde_json::json!({
                    "name": case.name, "change": case.change, "before": side(&case.before), "after": side(&case.after),
                })
            })
            .collect()
    }

    /// Returns `true` if a case passes less often, or has a lower score, than before.
    pub fn has_regressions(&self) -> bool {
        self.cases.iter().any(|case| case.change == Change::Regressed)
    }

    /// Returns the comparison as text: regressions, fixed cases, other changes, and counts of the rest.
    pub fn draw(&self, before: &RunRow, after: &RunRow, style: &Style) -> String {
        let paint = Paint::new(*style);
        let arrow = paint.symbols().arrow;
        let mut text = String::new();
        for (name, run) in [("before", before), ("after", after)] {
            let label = in_parentheses(run.label.as_deref());
            let line = format!("{name:<6}  {}{label}  {}", run.id, timestamp(run.started_at));
            text.push_str(&format!("{}\n", paint.dim(&line)));
        }
        let width = columns::widest(self.cases.iter().map(|case| &case.name)).min(56);
        for (change, heading) in [
            (Change::Regressed, "regressed"),
            (Change::Fixed, "fixed"),
            (Change::Improved, "improved"),
            (Change::Changed, "changed"),
            (Change::Added, "only after"),
            (Change::Missing, "only before"),
        ] {
            let cases: Vec<&CaseChange> = self.cases.iter().filter(|case| case.change == change).collect();
            if cases.is_empty() {
                continue;
            }
            text.push_str(&format!("\n{}\n", paint.bold(&format!("{heading} ({})", cases.len()))));
            for case in cases {
                text.push_str(&case.draw(width, &paint));
            }
        }
        text.push_str(&arms::draw(&self.arms, &paint));
        text.push_str(&skills::draw(&self.skills, &paint));
        let same = self.cases.iter().filter(|case| case.change == Change::Same).count();
        text.push_str(&format!("\n{} as before\n", counted(same, "case")));

        let (a, b) = (&self.before, &self.after);
        let rate = |totals: &Totals| format!("{} {}", totals.counts.describe(), totals.counts.share());
        let cost = |totals: &Totals| match totals.cost_usd {
            None => "n/a".into(),
            Some(cost) if totals.costs < totals.trials => {
                format!("{} ({} of {} known)", money(cost), totals.costs, totals.trials)
            }
            Some(cost) => money(cost),
        };
        let tokens = |totals: &Totals| totals.tokens.map_or_else(|| "n/a".into(), number);
        for (name, before, after) in [
            ("passed", rate(a), rate(b)),
            ("tokens", tokens(a), tokens(b)),
            ("cost", cost(a), cost(b)),
            ("agent time", elapsed(a.time_ms), elapsed(b.time_ms)),
        ] {
            text.push_str(&format!("  {} {before} {arrow} {after}\n", paint.dim(&format!("{name:<7}"))));
        }
        text
    }
}

impl CaseChange {
    fn draw(&self, width: usize, paint: &Paint) -> String {
        let arrow = paint.symbols().arrow;
        let mark = match self.change {
            Change::Regressed => paint.red(paint.mark(Outcome::Failed)),
            Change::Fixed | Change::Improved => paint.green(paint.mark(Outcome::Passed)),
            Change::Changed => paint.yellow("~"),
            Change::Added => "+".into(),
            Change::Missing | Change::Same => "-".into(),
        };
        let figures = match self.change {
            Change::Added => self.after.describe(),
            Change::Missing => self.before.describe(),
            _ => format!("{} {arrow} {}", self.before.describe(), self.after.describe()),
        };
        let mut line = format!("  {mark} {}  {figures}", columns::padded(&self.name, width));
        if matches!(self.change, Change::Regressed | Change::Fixed | Change::Improved) {
            line.push_str(&format!("  {}", paint.dim(&self.reason(arrow))));
        }
        line.push('\n');
        if let Some(because) = self.after.because.as_ref().filter(|_| self.change == Change::Regressed) {
            let because = paint.folded(because, 160);
            line.push_str(&format!("      {}\n", paint.dim(&because)));
        }
        line
    }

    /// Returns the reason for the change: the confidence in the difference of passes, or the scores.
    fn reason(&self, arrow: &str) -> String {
        match (Counts::change(&self.before.counts, &self.after.counts), self.before.score(), self.after.score()) {
            (Some(Ordering::Equal), Some(before), Some(after)) => {
                format!("score {} {arrow} {}", percent(before), percent(after))
            }
            _ => self.confidence(),
        }
    }

    /// Describes the confidence that the numbers allow.
    fn confidence(&self) -> String {
        let (before, after) = (&self.before.counts, &self.after.counts);
        if before.graded() == 1 && after.graded() == 1 {
            return "one trial each: no interval".into();
        }
        // Covers all possible outcomes of undecided trials.
        let interval = |counts: &Counts| {
            let [low, _] = statistics::wilson(counts.passed, counts.graded());
            let [_, high] = statistics::wilson(counts.passed + counts.undecided, counts.graded());
            [low, high]
        };
        let (a, b) = (interval(before), interval(after));
        let apart = a[1] < b[0] || b[1] < a[0];
        let verdict = if apart { "the intervals are apart" } else { "may be chance" };
        format!("95%: {} and {}, {verdict}", range(a), range(b))
    }
}

impl Side {
    fn add(&mut self, trial: &TrialRow) {
        self.trials += 1;
        self.counts.add(trial.outcome);
        if let (Outcome::Passed | Outcome::Failed, Some(score), Some(most)) =
            (trial.outcome, trial.score, trial.max_score.filter(|most| *most > 0.0))
        {
            self.scores = (self.scores.0 + score / most, self.scores.1 + 1);
        }
        if trial.outcome != Outcome::Passed && self.because.is_none() {
            self.because.clone_from(&trial.because);
        }
        self.outcomes.push(trial.outcome);
    }

    /// Returns the mean score of the decided trials, as a share of the maximum.
    fn score(&self) -> Option<f64> {
        let (sum, trials) = self.scores;
        (trials > 0).then(|| sum / trials as f64)
    }

    /// Returns the outcome of a single trial, or the number that passed of the graded ones.
    fn describe(&self) -> String {
        let ungraded = self.trials - self.counts.graded();
        match self.outcomes[..] {
            [only] => only.name().to_owned(),
            _ if ungraded > 0 => format!("{} ({ungraded} without a verdict)", self.counts.describe()),
            _ => self.counts.describe(),
        }
    }
}

impl Totals {
    fn of(trials: &[TrialRow]) -> Self {
        let mut totals = Self { trials: trials.len(), ..Self::default() };
        for trial in trials {
            totals.counts.add(trial.outcome);
            totals.time_ms += trial.agent_ms.unwrap_or(0);
            if let Some(tokens) = trial.tokens {
                *totals.tokens.get_or_insert_default() += tokens.total();
            }
            if let Some(cost) = trial.cost_usd {
                *totals.cost_usd.get_or_insert_default() += cost;
                totals.costs += 1;
            }
        }
        totals
    }
}

fn change(before: &Side, after: &Side, threshold: f64) -> Change {
    match (before.trials, after.trials) {
        (0, _) => Change::Added,
        (_, 0) => Change::Missing,
        _ => match Counts::change(&before.counts, &after.counts) {
            None if before.outcomes == after.outcomes => Change::Same,
            None => Change::Changed,
            Some(Ordering::Less) => Change::Regressed,
            Some(Ordering::Greater) => Change::Fixed,
            Some(Ordering::Equal) => match before.score().zip(after.score()).map(|(before, after)| after - before) {
                Some(gain) if gain < -threshold - NOISE => Change::Regressed,
                Some(gain) if gain > threshold + NOISE => Change::Improved,
                _ => Change::Same,
            },
        },
    }
}
