//! Summaries by arm: the results of each, and the difference between the arm with the skill and the one without.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::statistics::{
    ArmStatistics, Bounds, Counted, Delta, DiscreteTest, Observation, SIGNIFICANCE, Trigger, Triggering, can_compare,
    holm_of_tests, normalised_gain,
};
use crate::{Arm, TrialRecord, WITH_SKILL, WITHOUT_SKILL};

/// Figures of one finished trial, kept small so that a million fit in memory during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct TrialFigures {
    /// Printed form of the arm.
    pub arm: Arc<str>,
    /// The arm itself.
    pub of: Arc<Arm>,
    /// Number of the repetition, from 1.
    pub repetition: u64,
    /// Outcome and usage. The suite's name and the case's id identify the case.
    pub observation: Observation<(Arc<str>, Arc<str>)>,
    /// True if the results decided how many trials ran. Intervals for a fixed number of trials would be wrong then.
    pub is_sequential: bool,
    /// Actual and expected triggering of the skill; absent if the case does not specify it.
    pub trigger: Option<Trigger>,
}

/// Observation whose case is identified by a borrowed suite name and case id.
type Seen<'a> = Observation<(&'a str, &'a str)>;

impl TrialFigures {
    /// Extracts the figures of a record.
    pub fn from_record(trial: &TrialRecord) -> Self {
        let of = Arm { agent: trial.agent.clone(), model: trial.model.clone(), variant: trial.variant.clone() };
        Self {
            arm: trial.arm.clone(),
            of: Arc::new(of),
            repetition: trial.repetition,
            is_sequential: trial.auto_trials.is_some(),
            observation: Observation::from_record(trial).of_case((trial.suite.clone(), trial.case.clone())),
            trigger: Trigger::from_record(trial),
        }
    }

    /// Returns the observation with a borrowed case key.
    fn observed(&self) -> Seen<'_> {
        let (suite, case) = &self.observation.case;
        self.observation.clone().of_case((suite, case))
    }
}

/// Summary of one arm's trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmSummary {
    /// Printed form of the arm.
    pub arm: String,
    /// Name of the agent.
    pub agent: String,
    /// Name of the model.
    pub model: Option<String>,
    /// Variant of the arm.
    pub variant: Option<String>,
    /// Statistics of its trials.
    #[serde(flatten)]
    pub statistics: ArmStatistics,
    /// Triggering of the skill; absent if no case specifies whether it should trigger.
    pub trigger: Option<Triggering>,
}

impl ArmSummary {
    /// Summarises each arm of `trials`, in order of first appearance.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a TrialFigures>) -> Vec<Self> {
        let arms = groups(trials, |trial| &*trial.arm);
        arms.into_iter().map(|(arm, trials)| Self::from_trials(arm, &trials)).collect()
    }

    fn from_trials(arm: &str, trials: &[&TrialFigures]) -> Self {
        let first = trials.first();
        let triggers: Vec<Trigger> = trials.iter().filter_map(|trial| trial.trigger).collect();
        Self {
            arm: arm.to_owned(),
            agent: first.map_or_else(String::new, |trial| trial.of.agent.clone()),
            model: first.and_then(|trial| trial.of.model.clone()),
            variant: first.and_then(|trial| trial.of.variant.clone()),
            statistics: ArmStatistics::of(trials.iter().map(|trial| &trial.observation)),
            trigger: (!triggers.is_empty()).then(|| Triggering::from_triggers(triggers)),
        }
    }

    /// Returns `true` if the arm serves only for comparison.
    pub fn is_baseline(&self) -> bool {
        self.variant.as_deref() == Some(WITHOUT_SKILL)
    }
}

/// Effect of the skill for one agent and model: with − without, paired by case.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ArmDelta {
    /// Name of the agent.
    pub agent: String,
    /// Name of the model.
    pub model: Option<String>,
    /// Printed form of the arm that has the skill.
    pub with: String,
    /// Printed form of the arm that lacks the skill.
    pub without: String,
    /// Difference between the two arms.
    #[serde(flatten)]
    pub delta: Delta,
    /// The same for each suite: a run may test several skills.
    pub suites: Vec<SuiteDelta>,
    /// Cases that have a trial in both arms and an assertion that both can meet, by suite and id.
    pub cases: Vec<CaseDelta>,
}

/// Effect of the skill in one suite.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SuiteDelta {
    /// Name of the suite.
    pub suite: String,
    /// Share of met assertions: mean of met / (met + unmet) over trials with the skill.
    pub with: Option<f64>,
    /// The same mean over trials without the skill.
    pub without: Option<f64>,
    /// Difference between the two.
    #[serde(flatten)]
    pub delta: Delta,
    /// Triggering of the skill; absent if no case specifies whether it should trigger.
    pub trigger: Option<Triggering>,
}

/// Figures of a case with the skill and without it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CaseDelta {
    /// Name of the suite.
    pub suite: String,
    /// Id of the case.
    pub case: String,
    /// Figures with the skill.
    pub with: CaseFigures,
    /// Figures without the skill.
    pub without: CaseFigures,
    /// Effect of the skill.
    pub effect: CaseEffect,
}

/// Effect of the skill on a case. In a list, effects that are more than chance come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaseEffect {
    /// A smaller share of trials passes, by more than chance.
    Harms,
    /// A larger share of trials passes, by more than chance.
    Helps,
    /// A smaller share of trials passes, which may be chance.
    FewerPassed,
    /// A larger share of trials passes, which may be chance.
    MorePassed,
    /// The same share of trials passes.
    Same,
    /// Trials that could have passed or failed decide whether the shares differ, and in which direction.
    Undecided,
}

impl CaseEffect {
    /// Returns the effect in the words of reports.
    pub fn words(self) -> &'static str {
        match self {
            Self::Harms => "harms",
            Self::Helps => "helps",
            Self::FewerPassed => "fewer passed",
            Self::MorePassed => "more passed",
            Self::Same => "same",
            Self::Undecided => "undecided",
        }
    }

    /// Returns `true` if the arms differ in the share of trials that pass.
    pub fn is_difference(self) -> bool {
        self < Self::Same
    }
}

/// Figures of a case's trials in one arm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CaseFigures {
    /// Number of trials that rates count: passed, failed, undecided, broken or stale.
    pub trials: u64,
    /// Number of trials whose first attempt passed.
    pub passed: u64,
    /// Number of trials whose first attempt failed.
    pub failed: u64,
    /// Share of met assertions: mean of met / (met + unmet) over the graded trials.
    pub pass_rate: Option<f64>,
}

impl ArmDelta {
    /// Compares every agent and model that ran both with and without the skill, in order of first appearance.
    pub fn of<'a>(trials: impl IntoIterator<Item = &'a TrialFigures>) -> Vec<Self> {
        let pairs = groups(trials, |trial| (trial.of.agent.as_str(), trial.of.model.as_deref()));
        pairs.into_iter().filter_map(|((agent, model), trials)| Self::from_pair(agent, model, &trials)).collect()
    }

    fn from_pair(agent: &str, model: Option<&str>, trials: &[&TrialFigures]) -> Option<Self> {
        let variant = |name: &str| -> Vec<&TrialFigures> {
            trials.iter().copied().filter(|trial| trial.of.variant.as_deref() == Some(name)).collect()
        };
        let (with, without) = (variant(WITH_SKILL), variant(WITHOUT_SKILL));
        Some(Self {
            agent: agent.to_owned(),
            model: model.map(str::to_owned),
            with: with.first()?.arm.to_string(),
            without: without.first()?.arm.to_string(),
            delta: Delta::between(&in_both_arms(observed(&with)), &in_both_arms(observed(&without))),
            suites: suites(&with, &without),
            cases: cases(&with, &without),
        })
    }

    /// Returns the share of the possible improvement that the skill achieved, computed from the means over the cases;
    /// see [`normalised_gain`]. `None` without a case, if the pass rates are not known, or if all trials pass in both
    /// arms.
    pub fn normalised_gain(&self) -> Option<f64> {
        let mean = |of: fn(&CaseDelta) -> &CaseFigures| {
            let shares: Option<Vec<Bounds>> = self.cases.iter().map(|case| of(case).counted().bounds()).collect();
            Bounds::mean(shares?)?.value()
        };
        normalised_gain(mean(|case| &case.without)?, mean(|case| &case.with)?)
    }
}

impl SuiteDelta {
    fn of<'a>(suite: &str, with: &[&'a TrialFigures], without: &[&'a TrialFigures]) -> Self {
        let of_suite = |trials: &[&'a TrialFigures]| -> Vec<Seen<'a>> {
            trials.iter().map(|trial| trial.observed()).filter(|trial| trial.case.0 == suite).collect()
        };
        let (with_it, without_it) = (of_suite(with), of_suite(without));
        let rate = |trials: &[Seen<'_>]| ArmStatistics::of(trials).pass_rate.map(|rate| rate.mean);
        let ours = with.iter().filter(|trial| *trial.observation.case.0 == *suite);
        let triggers: Vec<Trigger> = ours.filter_map(|trial| trial.trigger).collect();
        Self {
            suite: suite.to_owned(),
            with: rate(&with_it),
            without: rate(&without_it),
            delta: Delta::between(&in_both_arms(with_it), &in_both_arms(without_it)),
            trigger: (!triggers.is_empty()).then(|| Triggering::from_triggers(triggers)),
        }
    }
}

fn suites(with: &[&TrialFigures], without: &[&TrialFigures]) -> Vec<SuiteDelta> {
    let names: BTreeSet<&str> = with.iter().chain(without).map(|trial| &*trial.observation.case.0).collect();
    names.into_iter().map(|suite| SuiteDelta::of(suite, with, without)).collect()
}

impl CaseDelta {
    /// Returns the test of the passed trials.
    fn test(&self) -> DiscreteTest {
        DiscreteTest::of_counted([self.with.counted(), self.without.counted()])
    }

    /// Returns the effect; `is_certain` is true if a difference is more than chance.
    fn effect(&self, is_certain: bool) -> CaseEffect {
        match Counted::change(self.without.counted(), self.with.counted()) {
            Some(Ordering::Less) if is_certain => CaseEffect::Harms,
            Some(Ordering::Greater) if is_certain => CaseEffect::Helps,
            Some(Ordering::Less) => CaseEffect::FewerPassed,
            Some(Ordering::Greater) => CaseEffect::MorePassed,
            Some(Ordering::Equal) => CaseEffect::Same,
            None => CaseEffect::Undecided,
        }
    }

    /// Returns the distance between the two: the smallest possible difference in the share of passed trials plus the
    /// difference in the share of met assertions.
    pub fn distance(&self) -> f64 {
        let passes = self.with.counted().bounds().zip(self.without.counted().bounds());
        let apart = passes.map_or(0.0, |(with, without)| {
            let apart = with - without;
            0.0_f64.clamp(apart.min, apart.max).abs()
        });
        let rates = self.with.pass_rate.zip(self.without.pass_rate);
        apart + rates.map_or(0.0, |(with, without)| (with - without).abs())
    }
}

impl CaseFigures {
    fn from_trials(trials: &[Seen<'_>]) -> Self {
        let statistics = ArmStatistics::of(trials);
        Self {
            trials: statistics.trials as u64,
            passed: statistics.by_outcome.passed as u64,
            failed: statistics.by_outcome.failed as u64,
            pass_rate: statistics.pass_rate.map(|rate| rate.mean),
        }
    }

    /// Returns the trials by result.
    pub fn counted(&self) -> Counted {
        let Self { trials, passed, failed, .. } = *self;
        Counted { passed, failed, unknown: trials.saturating_sub(passed + failed) }
    }
}

fn observed<'a>(trials: &[&'a TrialFigures]) -> Vec<Seen<'a>> {
    trials.iter().map(|trial| trial.observed()).collect()
}

/// Returns the observations by the assertions that both arms can meet.
fn in_both_arms(trials: Vec<Seen<'_>>) -> Vec<Seen<'_>> {
    trials.into_iter().map(Observation::in_both_arms).collect()
}

fn cases(with: &[&TrialFigures], without: &[&TrialFigures]) -> Vec<CaseDelta> {
    let mut cases: BTreeMap<(&str, &str), [Vec<Seen<'_>>; 2]> = BTreeMap::new();
    for (index, trials) in [with, without].into_iter().enumerate() {
        for trial in in_both_arms(observed(trials)) {
            cases.entry(trial.case).or_default()[index].push(trial);
        }
    }
    let asserting = cases.into_iter().filter(|(_, trials)| can_compare(trials.iter().flatten()));
    let deltas = asserting.map(|((suite, case), [with, without])| CaseDelta {
        suite: suite.to_owned(),
        case: case.to_owned(),
        with: CaseFigures::from_trials(&with),
        without: CaseFigures::from_trials(&without),
        effect: CaseEffect::Undecided,
    });
    let mut deltas: Vec<CaseDelta> = deltas.filter(|case| case.with.trials > 0 && case.without.trials > 0).collect();
    let adjusted = holm_of_tests(&deltas.iter().map(CaseDelta::test).collect::<Vec<_>>());
    for (case, p_value) in deltas.iter_mut().zip(adjusted) {
        case.effect = case.effect(p_value < SIGNIFICANCE);
    }
    deltas
}

/// Groups `trials` by key, in order of first appearance.
fn groups<'a, K: Copy + Eq + std::hash::Hash>(
    trials: impl IntoIterator<Item = &'a TrialFigures>,
    key: impl Fn(&'a TrialFigures) -> K,
) -> Vec<(K, Vec<&'a TrialFigures>)> {
    let mut places: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(K, Vec<&TrialFigures>)> = Vec::new();
    for trial in trials {
        let key = key(trial);
        let at = *places.entry(key).or_insert(groups.len());
        if at == groups.len() {
            groups.push((key, Vec::new()));
        }
        groups[at].1.push(trial);
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Outcome::{self, Broken, Failed, Passed, Skipped};
    use crate::statistics::Chance;
    use serde_json::{Value, json};

    fn trial(agent: &str, variant: &str, case: &str, outcome: Outcome, triggered: Option<bool>) -> TrialFigures {
        let with_skill = variant == WITH_SKILL;
        TrialFigures {
            arm: format!("{agent}+{variant}").into(),
            of: Arc::new(Arm { agent: agent.into(), model: None, variant: Some(variant.into()) }),
            observation: Observation {
                pass_rate: Some(if outcome == Passed { 1.0 } else { 0.5 }),
                tokens: Some(if with_skill { 100.0 } else { 150.0 }),
                ..Observation::new(("s".into(), case.into()), outcome)
            },
            repetition: 1,
            is_sequential: false,
            trigger: with_skill.then_some(Trigger { expected: case != "control", happened: triggered }),
        }
    }

    fn both(agent: &str, case: &str, with: Outcome, without: Outcome) -> [TrialFigures; 2] {
        [trial(agent, WITH_SKILL, case, with, Some(true)), trial(agent, WITHOUT_SKILL, case, without, None)]
    }

    #[test]
    fn each_agent_has_its_own_delta_and_a_case_of_one_trial_does_not_show_an_effect() {
        let trials = [
            both("codex", "helped", Passed, Failed),
            both("codex", "harmed", Failed, Passed),
            both("codex", "same", Passed, Passed),
            both("codex", "lost", Passed, Skipped),
            both("fake", "helped", Passed, Passed),
        ]
        .concat();
        let deltas = ArmDelta::of(&trials);
        assert_eq!(deltas.iter().map(|delta| delta.agent.as_str()).collect::<Vec<_>>(), ["codex", "fake"]);
        let codex = &deltas[0];
        assert_eq!((codex.with.as_str(), codex.without.as_str()), ("codex+with_skill", "codex+without_skill"));
        assert_eq!((codex.delta.cases_paired, codex.delta.cases_unpaired), (3, 1));
        assert_eq!(codex.delta.tokens.map(|tokens| tokens.mean), Some(-50.0));
        let effects: Vec<_> = codex.cases.iter().map(|case| (case.case.as_str(), case.effect.words())).collect();
        assert_eq!(effects, [("harmed", "fewer passed"), ("helped", "more passed"), ("same", "same")]);
        assert_eq!(codex.cases.iter().map(CaseDelta::distance).collect::<Vec<_>>(), [1.5, 1.5, 0.0]);
    }

    #[test]
    fn a_skill_helps_or_harms_a_case_only_beyond_chance_and_if_an_arm_passes() {
        let case = |name: &str, with: &[Outcome], without: &[Outcome]| {
            let trials = |variant, outcomes: &[Outcome]| {
                outcomes.iter().map(|outcome| trial("codex", variant, name, *outcome, None)).collect::<Vec<_>>()
            };
            [trials(WITH_SKILL, with), trials(WITHOUT_SKILL, without)].concat()
        };
        let checks_met = |trials: Vec<TrialFigures>| {
            trials.into_iter().map(|mut trial| {
                trial.observation.pass_rate =
                    Some(if trial.of.variant.as_deref() == Some(WITH_SKILL) { 0.5 } else { 0.0 });
                trial
            })
        };
        let trials: Vec<TrialFigures> = [
            case("harmed", &[Failed; 8], &[Passed; 8]),
            case("helped", &[Passed; 8], &[Failed; 8]),
            case("may be chance", &[Passed; 3], &[Failed; 3]),
            case("undecided", &[Passed; 8], &[Outcome::Undecided; 8]),
            case("undecided but worse", &[Failed; 3], &[Passed, Passed, Outcome::Undecided]),
        ]
        .concat()
        .into_iter()
        .chain(checks_met(case("fails in both", &[Failed; 3], &[Failed; 3])))
        .collect();
        let effects: Vec<_> =
            ArmDelta::of(&trials)[0].cases.iter().map(|case| (case.case.clone(), case.effect.words())).collect();
        let expected = [
            ("fails in both", "same"),
            ("harmed", "harms"),
            ("helped", "helps"),
            ("may be chance", "more passed"),
            ("undecided", "undecided"),
            ("undecided but worse", "fewer passed"),
        ];
        assert_eq!(effects, expected.map(|(case, effect)| (case.to_owned(), effect)));
    }

    #[test]
    fn each_suite_has_its_own_delta() {
        let mut trials = both("codex", "a", Passed, Failed).to_vec();
        trials.extend(both("codex", "a", Failed, Passed).map(|mut trial| {
            trial.observation.case.0 = "t".into();
            trial.trigger = trial.trigger.map(|trigger| Trigger { happened: Some(false), ..trigger });
            trial
        }));
        let delta = &ArmDelta::of(&trials)[0];
        let figures = |suite: &SuiteDelta| {
            let gain = suite.delta.pass_rate.map(|apart| apart.mean);
            (suite.suite.clone(), suite.with, suite.without, gain, suite.trigger.as_ref().map(|trigger| trigger.hits))
        };
        assert_eq!(
            delta.suites.iter().map(figures).collect::<Vec<_>>(),
            [
                ("s".into(), Some(1.0), Some(0.5), Some(0.5), Some(1)),
                ("t".into(), Some(0.5), Some(1.0), Some(-0.5), Some(0)),
            ]
        );
        assert_eq!(delta.delta.pass_rate.map(|apart| apart.mean), Some(0.0), "the aggregate hides it");
    }

    #[test]
    fn a_single_arm_has_no_delta() {
        let alone = [trial("codex", WITH_SKILL, "a", Passed, Some(true))];
        assert_eq!(ArmDelta::of(&alone), []);
        assert_eq!(ArmSummary::of(&alone).len(), 1);
        assert_eq!((ArmDelta::of(&[]), ArmSummary::of(&[])), (Vec::new(), Vec::new()));
    }

    #[test]
    fn only_the_arm_with_the_skill_has_triggering_figures() {
        let trials = [
            trial("codex", WITH_SKILL, "a", Passed, Some(true)),
            trial("codex", WITH_SKILL, "b", Failed, Some(false)),
            trial("codex", WITH_SKILL, "control", Passed, Some(false)),
            trial("codex", WITH_SKILL, "a", Broken, None),
            trial("codex", WITHOUT_SKILL, "a", Passed, None),
        ];
        let arms = ArmSummary::of(&trials);
        let trigger = arms[0].trigger.as_ref().unwrap();
        assert_eq!((trigger.hits, trigger.misses, trigger.rejections, trigger.unknown), (1, 1, 1, 1));
        assert_eq!((arms[0].statistics.by_outcome.broken, arms[0].is_baseline()), (1, false));
        assert!(arms[1].trigger.is_none() && arms[1].is_baseline());
    }

    #[test]
    fn the_order_of_trials_affects_only_the_order_of_arms() {
        let outcomes = [Passed, Failed, Broken];
        let mut trials: Vec<TrialFigures> = (0..60)
            .flat_map(|index: usize| {
                both(["x", "y"][index % 2], &format!("{}", index % 7), outcomes[index % 3], outcomes[index % 2])
            })
            .collect();
        let sorted = |trials: &[TrialFigures]| {
            let (mut arms, mut deltas) = (ArmSummary::of(trials), ArmDelta::of(trials));
            arms.sort_by(|a, b| a.arm.cmp(&b.arm));
            deltas.sort_by(|a, b| a.with.cmp(&b.with));
            (arms, deltas)
        };
        let before = sorted(&trials);
        Chance::new(3).shuffle(&mut trials);
        assert_eq!(sorted(&trials), before);
    }

    #[test]
    fn summaries_and_deltas_round_trip_as_flat_json_objects() {
        let trials = both("codex", "a", Passed, Failed);
        let (arms, deltas) = (ArmSummary::of(&trials), ArmDelta::of(&trials));
        let json = serde_json::to_value((&arms, &deltas)).unwrap();
        assert_eq!((&json[0][0]["trials"], &json[1][0]["cases_paired"]), (&1.into(), &1.into()));
        assert_eq!(serde_json::from_value::<(Vec<ArmSummary>, Vec<ArmDelta>)>(json).unwrap(), (arms, deltas));
    }

    #[test]
    fn the_same_answers_in_both_arms_are_no_effect_of_the_skill() {
        let finding = |kind: &str, is_met: bool| {
            let status = if is_met { "met" } else { "unmet" };
            json!({
                "id": kind, "type": kind, "status": status, "score": f64::from(u8::from(is_met)), "weight": 1.0,
                "because": "",
            })
        };
        let record = |case: usize, variant: &str, findings: Vec<Value>| -> TrialRecord {
            let met = findings.iter().filter(|finding| finding["status"] == "met").count();
            let (most, outcome) = (findings.len(), if met == findings.len() { "passed" } else { "failed" });
            serde_json::from_value(json!({
                "id": "", "suite": "s", "case": case.to_string(), "arm": format!("a+{variant}"), "agent": "a",
                "variant": variant, "repetition": 1, "outcome": outcome,
                "ending": { "kind": "finished" }, "findings": findings, "input": [], "turn_count": 0, "duration_ms": 0,
                "started_at": "2026-11-21T21:48:00Z", "score": met as f64, "max_score": most as f64,
            }))
            .unwrap()
        };
        // In the arm with the skill, `should_trigger: false` adds an assertion, whether it is met or not.
        for (is_right, is_unused) in [(false, true), (true, false), (true, true)] {
            let trials: Vec<TrialFigures> = (0..6)
                .flat_map(|case| {
                    let answer = || finding("contains", is_right);
                    let with = vec![answer(), finding("skill_not_used", is_unused)];
                    [record(case, WITH_SKILL, with), record(case, WITHOUT_SKILL, vec![answer()])]
                })
                .chain([
                    record(7, WITH_SKILL, vec![finding("skill_not_used", is_unused)]),
                    record(7, WITHOUT_SKILL, Vec::new()),
                ])
                .map(|record| TrialFigures::from_record(&record))
                .collect();
            let delta = ArmDelta::of(&trials).remove(0);
            let passed = delta.delta.full_pass_rate.unwrap();
            assert_eq!(
                (passed.mean, passed.cases, delta.cases.len()),
                (Some(0.0), 6, 6),
                "the seventh asserts nothing"
            );
            assert_eq!(delta.delta.score.map(|score| score.mean), Some(Some(0.0)));
            assert_eq!(delta.delta.pass_rate.map(|rate| rate.mean), Some(0.0));
            assert_eq!(delta.delta.cases_paired, 7);
            assert!(delta.cases.iter().all(|case| case.effect == CaseEffect::Same));
        }
    }
}
