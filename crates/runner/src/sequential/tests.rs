use std::path::Path;

use model::statistics::Chance;
use model::{Case, Excerpt, PassRate, Skill, Subject, Suite, Trials, UserMessage};

use super::*;
use crate::plan::{ArmSettings, Defaults, Plan, PlanRequest, Settings, plan};
use crate::select::Selection;

fn case(id: &str) -> Case {
    Case { messages: vec![UserMessage::text("go")], ..Case::new(id, Excerpt::of_file("case.yaml")) }
}

/// Returns a case that compares the agent with and without a skill.
fn compared(id: &str) -> Case {
    let skill = Skill { name: "s".into(), ..Skill::default() };
    Case { subject: Subject::Installed(Arc::new(skill)), ..case(id) }
}

fn settings(most: u64, precision: Option<f64>) -> Settings {
    Settings {
        arms: ArmSettings {
            agents: vec!["fake".into()],
            trials: Some(Trials::Auto { most }),
            precision,
            baseline: Some(true),
            ..ArmSettings::default()
        },
        defaults: Defaults::default(),
        ..Settings::default()
    }
}

/// Returns the plan and the messages that it caused.
fn planned(cases: Vec<Case>, settings: &Settings, selection: &Selection) -> (Plan, Vec<String>) {
    let cases = cases.into_iter().map(Arc::new).collect();
    let suites = [Suite { name: "suite".into(), path: "case.yaml".into(), format: "scenario", cases }];
    let (plan, problems) = plan(&PlanRequest {
        suites: &suites,
        settings,
        selection,
        read_script: Arc::new(|_: &Path| Err(Vec::new())),
        cwd: Path::new("/"),
        modules: script::Library::new(),
    });
    let messages = problems.iter().map(|problem| problem.message.clone());
    (plan, messages.filter(|message| !message.contains("has no assertions")).collect())
}

fn started(plan: Plan) -> Sequential {
    Sequential::new(plan.trials, plan.decisions, &[])
}

fn result(trial: &PlannedTrial, outcome: Outcome) -> TrialResult {
    TrialResult { group: trial.group(), repetition: trial.repetition, outcome, cost_usd: None }
}

/// Runs `jobs` trials at a time. `outcome` decides the outcome of each, and `seed` the order in which they finish.
/// Returns the decisions and the number of trials that ran.
fn run(
    sequential: &mut Sequential,
    jobs: usize,
    seed: u64,
    outcome: impl Fn(&PlannedTrial) -> Outcome,
) -> (Vec<DecisionRecord>, u64) {
    let (mut chance, mut running, mut decisions, mut ran) = (Chance::new(seed), Vec::new(), Vec::new(), 0);
    loop {
        while running.len() < jobs
            && let Some(trial) = sequential.take()
        {
            running.push(trial);
            ran += 1;
        }
        if running.is_empty() {
            return (decisions, ran);
        }
        let trial = running.swap_remove(chance.below(running.len() as u64) as usize);
        decisions.extend(sequential.finished(&result(&trial, outcome(&trial))));
    }
}

/// Returns the outcome for a case that is good or bad, or that passes two times out of three.
fn by_name(trial: &PlannedTrial) -> Outcome {
    match &*trial.case_id {
        "good" => Outcome::Passed,
        "flaky" if trial.repetition % 3 != 2 => Outcome::Passed,
        _ => Outcome::Failed,
    }
}

#[test]
fn each_case_stops_when_it_is_decided() {
    let cases = || ["good", "bad", "flaky"].map(case).to_vec();
    let (plan, messages) = planned(cases(), &settings(40, None), &Selection::default());
    assert_eq!((plan.trials.len(), plan.decisions.len(), messages), (120, 3, Vec::<String>::new()));
    let (mut decisions, ran) = run(&mut started(plan), 1, 1, by_name);
    decisions.sort_by_key(|decision| decision.case.clone());
    let described = |decision: &DecisionRecord| (decision.answer, decision.stopped_by, decision.trials);
    let found: Vec<_> = decisions.iter().map(described).collect();
    assert_eq!(found[0], (Answer::NotMet, StopReason::Decided, 2));
    assert_eq!((found[1].0, found[1].1), (Answer::NotMet, StopReason::Decided));
    assert_eq!(found[2], (Answer::Met, StopReason::Decided, 20));
    assert_eq!(ran, decisions.iter().map(|decision| decision.trials).sum::<u64>(), "nothing ran in vain");
    assert_eq!(decisions.iter().map(|decision| decision.spared).sum::<u64>(), 120 - ran);
    assert!(decisions[2].confidence_sequence[0] > 0.75 && decisions[2].confidence_sequence[1] == 1.0);
}

#[test]
fn parallel_trials_lead_to_the_same_decisions() {
    let decided = |jobs, seed| {
        let cases = ["good", "bad", "flaky"].map(case).to_vec();
        let (plan, _) = planned(cases, &settings(40, None), &Selection::default());
        let mut decisions = run(&mut started(plan), jobs, seed, by_name).0;
        decisions.sort_by_key(|decision| decision.case.clone());
        // The number of trials that ran unnecessarily may differ.
        decisions.iter_mut().for_each(|decision| decision.spared = 0);
        decisions
    };
    let alone = decided(1, 0);
    for seed in 0..20 {
        assert_eq!(decided(8, seed), alone);
    }
}

#[test]
fn results_after_a_trial_that_still_runs_do_not_count() {
    let (plan, _) = planned(vec![case("a")], &settings(40, None), &Selection::default());
    let mut sequential = started(plan);
    let trials: Vec<_> = (0..4).filter_map(|_| sequential.take()).collect();
    for trial in &trials[1..] {
        assert!(sequential.finished(&result(trial, Outcome::Failed)).is_empty());
    }
    let decided = sequential.finished(&result(&trials[0], Outcome::Failed));
    assert_eq!((decided[0].answer, decided[0].trials), (Answer::NotMet, 2), "the others no longer matter");
    assert!(sequential.take().is_none());
}

#[test]
fn trials_without_a_result_count_against_every_answer_until_there_are_too_many() {
    let run_with = |outcome: &dyn Fn(u64) -> Outcome| {
        let (plan, _) = planned(vec![case("a")], &settings(40, None), &Selection::default());
        let (mut decisions, ran) = run(&mut started(plan), 1, 0, |trial| outcome(trial.repetition));
        let decision = decisions.remove(0);
        (decision.answer, decision.stopped_by, ran)
    };
    for lost in [Outcome::Broken, Outcome::Undecided, Outcome::Stale] {
        let mostly_failed = |repetition: u64| if repetition == 2 { lost } else { Outcome::Failed };
        assert_eq!(run_with(&mostly_failed), (Answer::NotMet, StopReason::Decided, 4), "{lost:?}");
        assert_eq!(run_with(&|_| lost), (Answer::Undecided, StopReason::Broken, 5), "{lost:?}");
        let every_second = |repetition: u64| if repetition.is_multiple_of(2) { lost } else { Outcome::Passed };
        let (answer, stopped_by, ran) = run_with(&every_second);
        assert_eq!((answer, stopped_by), (Answer::Undecided, StopReason::Futility), "{lost:?}");
        assert!(ran < 20, "{lost:?}: {ran}");
        // If the lost trials had failed, the rate would be too low.
        let hidden = |repetition: u64| if repetition <= 7 { lost } else { Outcome::Passed };
        assert_ne!(run_with(&hidden).0, Answer::Met, "{lost:?}");
    }
    let (plan, _) = planned(vec![case("a")], &settings(400, Some(0.05)), &Selection::default());
    let outcome = |trial: &PlannedTrial| match trial.repetition % 2 {
        0 => Outcome::Undecided,
        _ => Outcome::Passed,
    };
    let (decisions, ran) = run(&mut started(plan), 1, 0, outcome);
    assert_eq!((decisions[0].answer, decisions[0].stopped_by), (Answer::Undecided, StopReason::Futility));
    assert!(ran < 100, "{ran}");
    assert_eq!((decisions[0].estimate, decisions[0].estimate_max), (None, Some(1.0)));
}

#[test]
fn undecided_trials_delay_the_decision() {
    let outcome = |trial: &PlannedTrial| if trial.repetition == 1 { Outcome::Undecided } else { Outcome::Passed };
    let (plan, _) = planned(vec![case("a")], &settings(60, None), &Selection::default());
    let (decisions, _) = run(&mut started(plan), 1, 0, outcome);
    assert_eq!((decisions[0].answer, decisions[0].trials, decisions[0].undecided), (Answer::Met, 31, 1));
}

#[test]
fn a_comparison_decides_in_complete_rounds_and_spares_the_rest_of_both_arms() {
    let cases = || ["a", "b", "c"].map(compared).to_vec();
    let helps = |trial: &PlannedTrial| if trial.is_baseline() { Outcome::Failed } else { Outcome::Passed };
    let decided = |jobs, seed| {
        let (plan, messages) = planned(cases(), &settings(40, None), &Selection::default());
        assert_eq!((plan.decisions.len(), messages), (1, Vec::<String>::new()));
        let mut sequential = started(plan);
        let (mut decisions, ran) = run(&mut sequential, jobs, seed, helps);
        assert_eq!(decisions.len(), 1);
        (decisions.remove(0), ran)
    };
    let (decision, ran) = decided(1, 0);
    assert_eq!((decision.answer, decision.cases), (Answer::Better, 3));
    assert_eq!((ran, decision.spared), (6 * decision.trials, 240 - ran));
    assert_eq!(decision.spared_baseline * 2, decision.spared);
    let (other, _) = decided(8, 3);
    assert_eq!((other.answer, other.trials), (decision.answer, decision.trials));
    assert_eq!(other.confidence_sequence, decision.confidence_sequence);
}

#[test]
fn two_agents_are_compared_with_each_other_and_a_required_rate_is_tested_too() {
    let settings = Settings {
        arms: ArmSettings { agents: vec!["fake".into(), "recorded:x".into()], ..settings(40, None).arms },
        ..Settings::default()
    };
    let one = Case { pass_rate: Some(PassRate::at_least(0.5)), ..case("a") };
    let (plan, _) = planned(vec![one, case("b")], &settings, &Selection::default());
    let described = |decision: &PlannedDecision| (decision.versus.is_some(), decision.cases.len());
    assert_eq!(plan.decisions.iter().map(described).collect::<Vec<_>>(), [(true, 2), (false, 1), (false, 1)]);
    let sharded = Selection { shard: Some((1, 1)), ..Selection::default() };
    let (_, messages) = planned(vec![case("b")], &settings, &sharded);
    let refused = "the shard 1/1 cannot be combined with a comparison of `auto` trials";
    assert_eq!(messages.last().map(String::as_str), Some(refused));
}

#[test]
fn a_precision_stops_when_the_interval_is_narrow_enough() {
    let (plan, _) = planned(vec![case("good")], &settings(400, Some(0.05)), &Selection::default());
    let (decisions, _) = run(&mut started(plan), 4, 0, by_name);
    let [low, high] = decisions[0].confidence_sequence;
    assert_eq!((decisions[0].answer, decisions[0].stopped_by), (Answer::Precise, StopReason::Decided));
    assert!(high - low <= 0.1 && decisions[0].trials < 120, "{decisions:?}");
    let (_, messages) = planned(vec![case("a")], &settings(10, Some(0.05)), &Selection::default());
    assert!(messages[0].starts_with("at most 10 trials cannot show a pass rate to within 5 %"), "{messages:?}");
}

#[test]
fn a_maximum_that_is_too_small_for_an_answer_causes_a_warning() {
    let (_, messages) = planned(vec![case("a"), case("b")], &settings(10, None), &Selection::default());
    let expected = "at most 10 trials cannot show a pass rate of 90 % with a tolerance of 10 %: this takes at least 20 \
                    trials, if all of them pass";
    assert_eq!(messages, [expected]);
    let two = ArmSettings { agents: vec!["fake".into(), "recorded:x".into()], ..settings(5, None).arms };
    let two = Settings { arms: two, ..Settings::default() };
    let (plan, messages) = planned(vec![case("a")], &two, &Selection::default());
    let expected = "at most 5 pairs of each case cannot show a difference between fake and recorded:x: this takes at least \
                    8 pairs, if the arms differ in all of them";
    assert_eq!(messages.last().map(String::as_str), Some(expected));
    let (decisions, ran) = run(&mut started(plan), 1, 0, by_name);
    assert_eq!((decisions[0].answer, decisions[0].trials, ran), (Answer::Undecided, 1, 2));
    let fixed = Settings { arms: ArmSettings { trials: None, ..settings(1, Some(0.1)).arms }, ..Settings::default() };
    let (_, messages) = planned(vec![case("a")], &fixed, &Selection::default());
    assert_eq!(messages, ["`precision` needs a number of trials that is not fixed"]);
}

#[test]
fn a_resumed_run_continues_with_the_results_of_its_first_part() {
    let new = || planned(vec![case("good")], &settings(40, None), &Selection::default()).0;
    let earlier: Vec<TrialResult> = new().trials[..19].iter().map(|trial| result(trial, Outcome::Passed)).collect();
    let rest = || new().trials.split_off(19);
    let mut sequential = Sequential::new(rest(), new().decisions, &earlier);
    assert!(sequential.answered().is_empty());
    let (decisions, ran) = run(&mut sequential, 1, 0, by_name);
    assert_eq!((decisions[0].answer, decisions[0].trials, ran), (Answer::Met, 20, 1));
    let all: Vec<TrialResult> = new().trials[..20].iter().map(|trial| result(trial, Outcome::Passed)).collect();
    let mut sequential = Sequential::new(new().trials.split_off(20), new().decisions, &all);
    assert_eq!(sequential.answered()[0].answer, Answer::Met);
    assert!(sequential.take().is_none());
}

#[test]
fn open_questions_are_undecided_when_the_run_ends() {
    let (plan, _) = planned(vec![case("a")], &settings(40, None), &Selection::default());
    let mut sequential = started(plan);
    let first = sequential.take().unwrap();
    sequential.finished(&result(&first, Outcome::Passed));
    let open = sequential.close_all(StopReason::Budget, Some("too expensive"));
    assert_eq!((open[0].answer, open[0].stopped_by, open[0].spared), (Answer::Undecided, StopReason::Budget, 39));
    assert_eq!(open[0].details.as_deref(), Some("too expensive"));
    assert!(sequential.take().is_none());
}

#[test]
fn the_next_trial_goes_to_the_cheapest_decision() {
    let (plan, _) = planned(["dear", "cheap"].map(case).to_vec(), &settings(40, None), &Selection::default());
    let mut sequential = started(plan);
    for cost in [5.0, 0.1] {
        let trial = sequential.take().unwrap();
        sequential.finished(&TrialResult { cost_usd: Some(cost), ..result(&trial, Outcome::Passed) });
    }
    let next: Vec<_> = (0..3).map(|_| sequential.take().unwrap().case_id.to_string()).collect();
    assert_eq!(next, ["cheap"; 3]);
}

#[test]
fn recorded_trials_are_decided_by_their_new_results() {
    let (plan, _) = planned(vec![case("a")], &settings(40, None), &Selection::default());
    let records: Vec<TrialRecord> =
        plan.trials[..3].iter().map(|trial| crate::trial::cancelled(trial, "not run")).collect();
    let mut sequential = Sequential::of_recorded(&records.iter().collect::<Vec<_>>());
    assert!(sequential.take().is_none());
    assert!(sequential.finished(&result(&plan.trials[0], Outcome::Passed)).is_empty());
    let open = sequential.close_all(StopReason::Stopped, None);
    assert_eq!(open[0].details.as_deref(), Some("no further trial is recorded"));
}
