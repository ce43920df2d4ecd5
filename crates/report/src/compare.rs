//! Comparison of two runs, or of two parts of one run.

mod arms;
mod case;
mod draw;
mod evidence;
mod margin;
mod markdown;
mod pairs;
mod preference;
mod quarantine;
mod rounds;
mod sequential;
mod settings;
mod skills;
mod stopping;
mod test_files;
mod totals;
mod variants;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use model::statistics::WithinMargin;
use model::{
    AgentInfo, DecisionRecord, Outcome, RunInfo, RunRow, SkillInfo, TrialFigures, TrialRecord, TrialRow, WITH_SKILL,
    WITHOUT_SKILL,
};
use serde_json::{Value, json};

use crate::arms::without_variant;
use crate::format::gain;
use crate::names::is_baseline;
use crate::verdict::{self, Decision, PairedCase, SKILL, Words};
use arms::ArmChanges;
use case::Side;
pub use case::{CaseChange, Change};
pub(crate) use evidence::{Evidence, line_diff};
use margin::Margin;
use preference::Preferences;
pub use preference::TrialPair;
use settings::SettingChange;
use skills::SkillChange;
use stopping::Decisions;
use test_files::TestFileChange;
pub(crate) use totals::Plot;
use totals::Total;

/// Largest drop in a mean score, or in the share of passed trials, that is not a regression, as a share of the
/// maximum.
pub const THRESHOLD: f64 = 0.05;

/// The property in which the two sides of a comparison differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dimension {
    /// The run.
    Run,
    /// The agent.
    Agent,
    /// The model.
    Model,
    /// The variant: with the skill or without it.
    Variant,
}

/// Comparison of two sides, case by case.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The cases: regressions first, and within each kind the largest changes first.
    pub cases: Vec<CaseChange>,
    by: Dimension,
    /// Agent and model whose variants are compared, if the run has several.
    agent: Option<String>,
    /// Names of the two sides, if these differ.
    names: Option<[String; 2]>,
    /// The compared runs; twice the same run if parts of one run are compared.
    runs: Option<Box<[RunRow; 2]>>,
    decision: Decision,
    /// Largest drop that is not a regression.
    threshold: f64,
    margin: Option<Margin>,
    /// Pairs of trials that a judge can compare directly.
    trial_pairs: Vec<TrialPair>,
    preferences: Option<Box<Preferences>>,
    /// Names of the cases that are not compared because they are in quarantine on at least one side.
    quarantined: BTreeSet<String>,
    /// Those of them that are in quarantine on the second side only.
    newly_quarantined: quarantine::Moved,
    /// Those that are in quarantine on the first side only, and have trials on the second.
    released: quarantine::Moved,
    /// Cases that assert only whether the skill is used, which the arm without it cannot meet.
    about_skill: BTreeSet<String>,
    /// Number of trials in which the agent should have used the skill, if it never did.
    unused: Option<u64>,
    totals: Vec<Total>,
    arms: ArmChanges,
    /// Decisions of the runs about the number of trials.
    decisions: Decisions,
    skills: Vec<SkillChange>,
    settings: Vec<SettingChange>,
    test_files: Vec<TestFileChange>,
    /// True if the results decided how many trials of a run took place.
    is_sequential: bool,
    /// True if a regression counts even if it may be chance or is within the threshold.
    counts_any: bool,
}

impl Comparison {
    /// Compares the finished trials of two runs. A case that has a single arm in each run is compared across arms. A
    /// mean score may drop by `threshold`, a share from 0 to 1. Baseline trials are omitted, because they are not
    /// under test. Cases that are in quarantine in one run are omitted from both.
    pub fn of(before: &[TrialRow], after: &[TrialRow], threshold: f64) -> Self {
        let [were, are] = [before, after].map(|trials| quarantine::cases(trials.iter()));
        let quarantined = were.union(&are).copied().collect();
        let [before, after] =
            [before, after].map(|trials| trials.iter().filter(|trial| !is_baseline(trial)).collect::<Vec<&TrialRow>>());
        let moved = |cases: &quarantine::Cases<'_>| quarantine::Moved::of(cases, [&before, &after]);
        let newly_quarantined = moved(&are.difference(&were).copied().collect());
        let released = moved(&were.difference(&are).copied().collect());
        let [before, after] = [before, after].map(|mut trials| {
            trials.retain(|trial| !quarantine::contains(&quarantined, trial));
            trials
        });
        let comparison = Self::between([&before, &after], Dimension::Run, threshold);
        Self { quarantined: quarantine::names(&quarantined), newly_quarantined, released, ..comparison }
    }

    /// Compares the trials of one run by agent or model: each value with the first one, if they have a case in common.
    /// The values are in the order of the run's agents. Baseline trials are omitted.
    pub fn by(trials: &[TrialRow], agents: &[AgentInfo], by: Dimension, threshold: f64) -> Vec<Self> {
        let quarantined = quarantine::cases(trials.iter());
        let is_compared = |trial: &&TrialRow| !is_baseline(trial) && !quarantine::contains(&quarantined, trial);
        let position = |trial: &TrialRow| {
            let known = |agent: &AgentInfo| agent.name == trial.agent && agent.model == trial.model;
            agents.iter().position(known).unwrap_or(agents.len())
        };
        let mut values: Vec<(String, usize, Vec<&TrialRow>)> = Vec::new();
        for trial in trials.iter().filter(is_compared) {
            let value = value(trial, by);
            match values.iter_mut().find(|(known, ..)| *known == value) {
                Some((_, first, trials)) => {
                    *first = position(trial).min(*first);
                    trials.push(trial);
                }
                None => values.push((value, position(trial), vec![trial])),
            }
        }
        values.sort_by(|a, b| (a.1, &a.0).cmp(&(b.1, &b.0)));
        let Some(((first, _, before), others)) = values.split_first() else { return Vec::new() };
        let compared = |(name, _, after): &(String, _, Vec<&TrialRow>)| {
            let comparison = Self::between([before, after], by, threshold);
            let (names, quarantined) = (Some([first.clone(), name.clone()]), quarantine::names(&quarantined));
            Self { names, quarantined, ..comparison }
        };
        others.iter().map(compared).filter(|comparison| comparison.cases.iter().any(CaseChange::is_paired)).collect()
    }

    /// Compares the trials of one run with the skill with those without it, for each agent and model that has both.
    /// Only what both arms can meet is compared: `figures`, those of the run's trials, leave out assertions about the
    /// use of the skill.
    pub fn by_variant(
        trials: &[TrialRow],
        figures: &[TrialFigures],
        agents: &[AgentInfo],
        threshold: f64,
    ) -> Vec<Self> {
        let quarantined = quarantine::cases(trials.iter());
        let (rows, about_skill) = variants::shared(trials, figures);
        let pair_of = |trial: &TrialRow| {
            let known = |agent: &AgentInfo| agent.name == trial.agent && agent.model == trial.model;
            (agents.iter().position(known).unwrap_or(agents.len()), without_variant(&trial.arm).to_owned())
        };
        let mut arms: BTreeMap<(usize, String), [Vec<&TrialRow>; 3]> = BTreeMap::new();
        for trial in rows.iter().filter(|trial| !quarantine::contains(&quarantined, trial)) {
            if let Some(at) = variants::ARMS.iter().position(|arm| trial.variant.as_deref() == Some(*arm)) {
                arms.entry(pair_of(trial)).or_default()[at].push(trial);
            }
        }
        let is_alone = arms.len() == 1;
        let mut comparisons = Vec::new();
        for ((_, agent), trials) in &arms {
            // With the whole plug-in and without it, then what its skills do and what the rest of it does.
            for (before, after) in [(0, 2), (0, 1), (1, 2)] {
                if trials[before].is_empty() || trials[after].is_empty() {
                    continue;
                }
                let names = [variants::ARMS[before], variants::ARMS[after]];
                comparisons.push(Self {
                    names: Some(names.map(str::to_owned)),
                    quarantined: quarantine::names(&quarantined),
                    about_skill: about_skill.clone(),
                    unused: variants::unused(figures, agent).filter(|_| (before, after) == (0, 2)),
                    agent: (!is_alone).then(|| agent.clone()),
                    ..Self::between([&trials[before], &trials[after]], Dimension::Variant, threshold)
                });
            }
        }
        comparisons
    }

    fn between(sides: [&[&TrialRow]; 2], by: Dimension, threshold: f64) -> Self {
        let pairs = pairs::pairs(sides, by);
        let mut cases: Vec<CaseChange> = pairs.iter().map(|pair| CaseChange::of(pair, threshold)).collect();
        confirm(&mut cases, threshold);
        cases.sort_by(|a, b| {
            let certainty = (a.change, !a.is_confirmed).cmp(&(b.change, !b.is_confirmed));
            certainty.then_with(|| b.size().total_cmp(&a.size())).then_with(|| a.name.cmp(&b.name))
        });
        let decision = Decision::of(&cases.iter().map(CaseChange::paired).collect::<Vec<_>>());
        Self {
            by,
            agent: None,
            names: None,
            runs: None,
            quarantined: BTreeSet::new(),
            newly_quarantined: quarantine::Moved::default(),
            released: quarantine::Moved::default(),
            about_skill: BTreeSet::new(),
            unused: None,
            totals: totals::of(&cases, &decision),
            decision,
            threshold,
            margin: None,
            trial_pairs: pairs.iter().flat_map(pairs::Pair::trials).collect(),
            preferences: None,
            cases,
            arms: ArmChanges::default(),
            decisions: Decisions::default(),
            skills: Vec::new(),
            settings: Vec::new(),
            test_files: Vec::new(),
            is_sequential: false,
            counts_any: false,
        }
    }

    /// Counts every regression, even if it may be chance or is within the threshold.
    pub fn counting_any(self) -> Self {
        Self { counts_any: true, ..self }
    }

    /// Replaces tests and intervals that are valid only for a fixed number of trials.
    fn sequential(mut self) -> Self {
        if !std::mem::replace(&mut self.is_sequential, true) {
            sequential::confirm(&mut self.cases, self.threshold);
            self.decision = self.decision.sequential(sequential::same_cases_p_value(&self.cases));
            let passed = sequential::interval(&self.cases);
            self.totals.iter_mut().for_each(|total| total.sequential(passed));
            self.margin = self.margin.map(|margin| margin.sequential(&self.cases));
            self.preferences = self.preferences.map(|preferences| Box::new(preferences.sequential()));
        }
        self
    }

    /// Adds the runs. Their labels become the names of the sides, if they differ.
    pub fn with_runs(mut self, before: &RunRow, after: &RunRow) -> Self {
        if self.by == Dimension::Run
            && let (Some(was), Some(is)) = (&before.label, &after.label)
            && was != is
        {
            self.names = Some([was.clone(), is.clone()]);
        }
        self.runs = Some(Box::new([before.clone(), after.clone()]));
        let mut compared = if before.sequential || after.sequential { self.sequential() } else { self };
        if after.regrade_of.as_ref() == Some(&before.id) {
            confirm_all(&mut compared.cases);
            compared.decision = compared.decision.exact();
        }
        compared
    }

    /// Returns the path of its page on a server: that of both runs, or of the one run whose parts are compared. It names the
    /// runs by their ids, so that the page stays the same after further runs with these labels.
    pub fn page_path(&self) -> Option<String> {
        let [before, after] = &**self.runs.as_ref()?;
        Some(match before.id == after.id {
            true => format!("/runs/{}/", before.id),
            false => format!("/compare/{}/{}", before.id, after.id),
        })
    }

    /// Adds the answer to whether the second side is worse than the first by more than `margin`, a share from 0 to 1.
    pub fn with_margin(mut self, margin: f64) -> Self {
        let answer = Margin::of(&self.cases, margin);
        self.margin = Some(if self.is_sequential { answer.sequential(&self.cases) } else { answer });
        self
    }

    /// Returns that answer, if it was asked for.
    pub fn within_margin(&self) -> Option<WithinMargin> {
        self.margin.as_ref().map(|margin| margin.verdict)
    }

    /// Returns that answer in one sentence.
    pub(crate) fn margin_sentence(&self) -> Option<String> {
        self.margin.as_ref().map(Margin::sentence)
    }

    /// Adds the differences of the arms, including the baseline. Arms are listed in the order of `agents`, those of the
    /// second run.
    pub fn with_arms(mut self, before: &[TrialFigures], after: &[TrialFigures], agents: &[AgentInfo]) -> Self {
        self.arms = ArmChanges::between(before, after, agents);
        self
    }

    /// Adds the decisions of both runs about the number of trials. If parts of one run are compared, `before` is empty.
    pub fn with_decisions(mut self, before: &[DecisionRecord], after: &[DecisionRecord]) -> Self {
        self.decisions = Decisions::new(before, after);
        self
    }

    /// Adds the differences of the skills.
    pub fn with_skills(mut self, before: &[SkillInfo], after: &[SkillInfo]) -> Self {
        self.skills = skills::changes(before, after);
        self
    }

    /// Adds the differences of test files, agents and settings.
    pub fn with_settings(mut self, before: &RunInfo, after: &RunInfo) -> Self {
        self.test_files = test_files::changes(before, after);
        self.settings = settings::changes(before, after);
        if before.decisions + after.decisions > 0 { self.sequential() } else { self }
    }

    /// Adds the evidence for at most `most` changed cases, in order. `read` takes a run and ids of its trials, and
    /// returns their records in the same order.
    ///
    /// # Errors
    /// Returns the first error from `read`.
    pub fn with_evidence<E>(
        mut self,
        most: usize,
        mut read: impl FnMut(&str, &[&str]) -> Result<Vec<TrialRecord>, E>,
    ) -> Result<Self, E> {
        let mut cases: Vec<&mut CaseChange> =
            self.cases.iter_mut().filter(|case| case.change.is_change()).take(most).collect();
        let mut records = |side: fn(&CaseChange) -> &Side| {
            let shown: Vec<&(String, String)> = cases.iter().filter_map(|case| side(case).shown.as_ref()).collect();
            let Some((run, _)) = shown.first() else { return Ok(Vec::new()) };
            read(run, &shown.iter().map(|(_, trial)| trial.as_str()).collect::<Vec<_>>())
        };
        let (before, after) = (records(|case| &case.before)?, records(|case| &case.after)?);
        for (case, (before, after)) in cases.iter_mut().zip(before.iter().zip(&after)) {
            case.evidence = Some(Box::new(Evidence::of(before, after)));
        }
        Ok(self)
    }

    /// Returns the trials of the cases that are shown with their evidence: for each side its name, the run and the
    /// trial.
    pub fn detailed_trials(&self) -> impl Iterator<Item = [(&str, &str, &str); 2]> {
        let [before, after] = self.short_names();
        self.cases.iter().filter(|case| case.evidence.is_some()).filter_map(move |case| {
            let [(run, trial), (later_run, later)] = case.trials()?;
            Some([(before, run, trial), (after, later_run, later)])
        })
    }

    /// Returns `true` if the second side is worse by more than chance and the threshold: over all cases, or in one
    /// case judged by its own trials. If the second run regraded the evidence of the first one, nothing is chance. If
    /// every regression counts, a single one is enough.
    pub fn has_regressed(&self) -> bool {
        self.is_regression(&self.decision, &self.cases)
    }

    fn is_regression(&self, decision: &Decision, cases: &[CaseChange]) -> bool {
        let is_regression =
            |case: &CaseChange| case.change == Change::Regressed && (case.is_confirmed || self.counts_any);
        decision.is_lower_by(self.threshold) || cases.iter().any(is_regression)
    }

    /// Returns `true` if the second side would be worse if all its trials without a result had failed.
    fn may_have_regressed(&self) -> bool {
        let mut cases: Vec<CaseChange> = self.cases.iter().map(|case| case.at_worst(self.threshold)).collect();
        let decide = |cases: &[CaseChange]| Decision::of(&cases.iter().map(CaseChange::paired).collect::<Vec<_>>());
        let decision = if self.decision.is_exact() {
            confirm_all(&mut cases);
            decide(&cases).exact()
        } else if self.is_sequential {
            sequential::confirm(&mut cases, self.threshold);
            decide(&cases).sequential(sequential::same_cases_p_value(&cases))
        } else {
            confirm(&mut cases, self.threshold);
            decide(&cases)
        };
        self.is_regression(&decision, &cases)
    }

    /// Returns `true` if a case passes less often, or has a lower score, than before, even if that may be chance.
    pub fn has_regressions(&self) -> bool {
        self.cases.iter().any(|case| case.change == Change::Regressed)
    }

    /// Returns `true` if the comparison cannot answer what it was asked: no case has a result on both sides, one that
    /// has a result on the first side broke, is undecided or was cancelled on the second, or the trials of the second
    /// side without a result decide whether there is a regression.
    pub fn is_incomplete(&self) -> bool {
        let has_result = |case: &CaseChange| case.before.results.decided() > 0 && case.after.results.decided() > 0;
        let is_lost = |case: &CaseChange| {
            case.paired().lost_its_result()
                && case.after.results.by_outcome.sum(|outcome| outcome != Outcome::Skipped) > 0
        };
        let is_open = |case: &CaseChange| case.is_paired() && case.after.results.is_open();
        !self.cases.iter().any(has_result)
            || self.cases.iter().any(is_lost)
            || !self.has_regressed() && self.cases.iter().any(is_open) && self.may_have_regressed()
    }

    /// Returns the result: how the second side differs from the first, what happened to cases that do not show it, and
    /// how certain it is.
    pub fn sentence(&self) -> String {
        let cases: Vec<PairedCase<'_>> = self.cases.iter().map(CaseChange::paired).collect();
        let mut left_out = Vec::new();
        left_out.extend(self.newly_quarantined.describe("newly in quarantine"));
        left_out.extend(self.released.describe("no longer in quarantine"));
        let decide = |words: &Words<'_>| {
            let sentence = self.decision.sentence(words, &cases, &left_out, self.unused);
            let agent = self.agent.as_ref().map_or_else(String::new, |agent| format!("{agent}: "));
            format!("{agent}{sentence}{}", self.below_threshold())
        };
        if self.is_with_and_without_skill() {
            return decide(&SKILL);
        }
        let Some([before, after]) = &self.names else {
            return decide(&Words {
                better: "The second run is better",
                worse: "The second run is worse",
                question: "whether the second run is better or worse",
                after: "in it",
                before: "in the first",
                sides: ["the first run", "the second run"],
                has_gain: false,
            });
        };
        let preposition = if matches!(self.by, Dimension::Run | Dimension::Variant) { "in" } else { "with" };
        decide(&Words {
            better: &format!("{after} is better than {before}"),
            worse: &format!("{after} is worse than {before}"),
            question: &format!("whether {after} is better or worse than {before}"),
            after: &format!("{preposition} {after}"),
            before: &format!("{preposition} {before}"),
            sides: [before, after],
            has_gain: false,
        })
    }

    /// Returns `true` if the first side lacks the skill or plug-in that the second one has.
    fn is_with_and_without_skill(&self) -> bool {
        let is_pair = |[before, after]: &[String; 2]| before == WITHOUT_SKILL && after == WITH_SKILL;
        self.by == Dimension::Variant && self.names.as_ref().is_some_and(is_pair)
    }

    /// Returns the result in a word or two.
    pub(crate) fn word(&self) -> &'static str {
        let cases: Vec<PairedCase<'_>> = self.cases.iter().map(CaseChange::paired).collect();
        if self.unused.is_some() { "CANNOT TELL" } else { self.decision.word(&cases) }
    }

    /// Says that a certain difference is too small to be a regression; otherwise empty.
    fn below_threshold(&self) -> String {
        let is_worse_in_a_case = || self.cases.iter().any(|case| case.is_certain() && case.change == Change::Regressed);
        if self.has_regressed() || !(self.decision.is_lower_by(0.0) || is_worse_in_a_case()) {
            return String::new();
        }
        let points = self.threshold_in_points();
        format!(" It is not a regression, because it is within the threshold of {points} points.")
    }

    fn threshold_in_points(&self) -> String {
        gain(self.threshold).trim_start_matches('+').to_owned()
    }

    /// Returns the comparison as JSON, without the schema.
    pub fn to_json(&self) -> Value {
        json!({
            "verdict": self.sentence(),
            "result": self.word().to_lowercase().replace(' ', "_"),
            "regressed": self.has_regressed(),
            "sequential": self.is_sequential,
            "no_worse_than": self.margin.as_ref().map(Margin::to_json),
            "preference": self.preference_to_json(),
            "incomplete": self.is_incomplete(),
            "agent": self.agent,
            "same_cases_p_value": self.decision.same_cases_p_value,
            "other_cases_p_value": self.decision.passed.filter(|_| !self.is_sequential).map(|passed| passed.p_value),
            "before": self.side_to_json(0),
            "after": self.side_to_json(1),
            "threshold": self.threshold,
            "totals": totals::to_json(&self.totals),
            "test_files": test_files::to_json(&self.test_files),
            "settings": settings::to_json(&self.settings),
            "cases": self.cases.iter().map(CaseChange::to_json).collect::<Value>(),
            "quarantined": self.quarantined,
            "newly_quarantined": self.newly_quarantined.names,
            "about_skill_only": self.about_skill,
            "arms": self.arms.to_json(),
            "decisions": self.decisions.to_json(self.runs.as_deref()),
            "skills": skills::to_json(&self.skills),
        })
    }

    /// Returns the run of a side, or the value that is compared.
    fn side_to_json(&self, side: usize) -> Value {
        match (&self.runs, &self.names) {
            (Some(runs), _) if self.by == Dimension::Run => json!(runs[side]),
            (_, Some(names)) => json!(names[side]),
            _ => Value::Null,
        }
    }

    /// Returns short names of both sides for headings.
    pub(crate) fn short_names(&self) -> [&str; 2] {
        match &self.names {
            Some([before, after]) => [before, after],
            None => ["before", "after"],
        }
    }

    /// Counts the cases that only one of the sides has.
    fn unpaired(&self) -> [usize; 2] {
        [Change::Missing, Change::Added].map(|change| self.cases.iter().filter(|case| case.change == change).count())
    }

    /// Returns why the regressed cases that are not confirmed are not.
    fn small_regressions(&self) -> SmallRegressions {
        let regressed = || self.cases.iter().filter(|case| case.change == Change::Regressed && !case.is_confirmed);
        match (regressed().any(CaseChange::is_certain), regressed().all(CaseChange::is_certain)) {
            (true, true) => SmallRegressions::Certain,
            (true, false) => SmallRegressions::Mixed,
            (false, _) => SmallRegressions::Uncertain,
        }
    }

    /// Returns the groups of cases to show, each with its heading. Changes that may be chance are separate.
    pub(crate) fn groups(&self) -> Vec<(&'static str, Vec<&CaseChange>)> {
        let of = |change: Change, is_confirmed: bool| -> Vec<&CaseChange> {
            let is_meant = |case: &&CaseChange| case.change == change && case.is_confirmed == is_confirmed;
            self.cases.iter().filter(is_meant).collect()
        };
        // A sentence that says "worse" must not appear above a heading that says "chance".
        let regressed = of(Change::Regressed, false);
        let passes_less = |case: &&CaseChange| case.paired().change() == Some(Ordering::Less);
        let uncertain = match self.decision.is_lower_by(self.threshold) {
            true if regressed.iter().all(passes_less) => "passing less often; each alone may be chance",
            true => "regressed; each alone may be chance",
            false => match self.small_regressions() {
                SmallRegressions::Certain => "regressed, but within the threshold",
                SmallRegressions::Mixed => "regressed, may be chance or within the threshold",
                SmallRegressions::Uncertain => "regressed, may be chance",
            },
        };
        let groups = vec![
            ("regressed", of(Change::Regressed, true)),
            (uncertain, regressed),
            ("fixed", of(Change::Fixed, true)),
            ("fixed, may be chance", of(Change::Fixed, false)),
            ("improved score", of(Change::Improved, false)),
            ("may have changed: results are missing", of(Change::Changed, false)),
        ];
        groups.into_iter().filter(|(_, cases)| !cases.is_empty()).collect()
    }
}

/// Reason why regressions do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SmallRegressions {
    /// None is chance, but all are within the threshold.
    Certain,
    /// Some are within the threshold, others may be chance.
    Mixed,
    /// They may be chance.
    Uncertain,
}

/// Tests each case by its own trials.
fn confirm(cases: &mut [CaseChange], threshold: f64) {
    let tests = verdict::tests(&cases.iter().map(CaseChange::paired).collect::<Vec<_>>());
    for (case, test) in cases.iter_mut().zip(tests) {
        case.confirm(test, threshold);
    }
}

/// Confirms every change of a case, because none can be chance.
fn confirm_all(cases: &mut [CaseChange]) {
    for case in cases {
        case.test = None;
        case.is_confirmed = matches!(case.change, Change::Regressed | Change::Fixed);
    }
}

/// Returns the value of a trial that is compared.
fn value(trial: &TrialRow, by: Dimension) -> String {
    match by {
        Dimension::Run => trial.run.clone(),
        // Without a model, an arm is named after the agent with its argument, such as a file of recorded answers.
        Dimension::Agent if trial.model.is_none() => without_variant(&trial.arm).to_owned(),
        Dimension::Agent => trial.agent.clone(),
        Dimension::Model => trial.model.clone().unwrap_or_else(|| "default model".to_owned()),
        Dimension::Variant => trial.variant.clone().unwrap_or_else(|| "no variant".to_owned()),
    }
}
