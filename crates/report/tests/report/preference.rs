//! Preferences of a judge between the sides of a comparison.

use model::{AuxiliaryUsage, Outcome, PairJudgement, Preference, RunRow, Tokens, TrialRow};
use report::{Comparison, THRESHOLD, TrialPair};
use serde_json::{Value, json};

use crate::run_builder::{RUN, id, passed, row, run_row};
use crate::{expect, plain};

const OLD: &str = "0192ffff-0000-7d3e-9b5a-3f0c6a1e2b44";

/// Returns the trials of cases with this number of repetitions each.
fn trials(cases: usize, repetitions: u64, run: &str) -> Vec<TrialRow> {
    let of_case = |case: usize| {
        (1..=repetitions).map(move |repetition| row(&passed(&id(&format!("case-{case:02}"), "fake", repetition)), run))
    };
    (0..cases).flat_map(of_case).collect()
}

fn judgement(preference: Preference) -> PairJudgement {
    let reason = match preference {
        Preference::Before => "`first` names the <date>; second does not.",
        Preference::After => "second names the number of days; first does not.",
        Preference::Tie => "Both name it.",
        Preference::PositionTie => "first reads better.",
        Preference::Undecided => "the judge fake did not return a verdict: busy",
    };
    let tokens = Some(Tokens { input: 100, output: 10, ..Tokens::default() });
    PairJudgement {
        preference,
        reason: reason.into(),
        usage: AuxiliaryUsage { requests: 2, cached: 0, tokens, cost_usd: Some(0.001) },
        asked: true,
    }
}

/// Returns the comparison in which the judge's preferences are those in `preferences`, one word per case: `a` after,
/// `b` before, `t` tie, `p` tie by position, `u` undecided, `s` tie without a judge, `e` nothing to judge.
fn compared(preferences: &str) -> Comparison {
    let cases: Vec<&str> = preferences.split(' ').collect();
    let repetitions = cases[0].len() as u64;
    let comparison =
        Comparison::of(&trials(cases.len(), repetitions, OLD), &trials(cases.len(), repetitions, RUN), THRESHOLD);
    let letters = cases.concat();
    let of = |letter: char| match letter {
        'a' => Preference::After,
        'b' => Preference::Before,
        't' => Preference::Tie,
        'p' => Preference::PositionTie,
        _ => Preference::Undecided,
    };
    let pairs = comparison.trial_pairs().to_vec();
    assert_eq!(pairs.len(), letters.len());
    let judgement = |letter: char| match letter {
        's' => PairJudgement::without_judge(
            Preference::Tie,
            "both trials have the same answers, tool calls and names of changed files",
        ),
        'e' => PairJudgement::without_judge(Preference::Undecided, "neither trial left anything to judge"),
        letter => judgement(of(letter)),
    };
    let judged = pairs.into_iter().zip(letters.chars()).map(|(pair, letter)| (pair, judgement(letter))).collect();
    comparison.with_preferences("Which answer is clearer?", "fake", judged)
}

fn labelled(run: &str, label: &str) -> RunRow {
    RunRow { label: Some(label.into()), ..run_row(run) }
}

fn preference(comparison: &Comparison) -> Value {
    comparison.to_json()["preference"].clone()
}

#[test]
fn the_preference_is_shown_in_every_format() {
    let comparison = compared("aat aaa aaa ata bat aab ttt upp aat aaa aaa bbt");
    let comparison = comparison.with_runs(&labelled(OLD, "main"), &labelled(RUN, "branch"));
    expect("compare.preference.txt", &comparison.draw(&plain()));
    expect("compare.preference.md", &comparison.to_markdown(65_000));
    expect("compare.preference.html", &crate::compare::shown_without_scripts(&comparison));
    let json = preference(&comparison);
    let counts = ["pairs", "before", "after", "ties", "position_ties", "undecided", "cases"].map(|key| &json[key]);
    assert_eq!(counts, [&json!(36), &json!(4), &json!(21), &json!(10), &json!(2), &json!(1), &json!(12)]);
    assert_eq!((&json["requests"], &json["tokens"], &json["warning"]), (&json!(72), &json!(3960), &Value::Null));
    let first = &json["judged"][2];
    assert_eq!((&first["repetition"], &first["preference"]), (&json!(3), &json!("tie")));
    assert_eq!(first["before"], "commit::case-00@fake#3");
    assert!(!comparison.has_regressed() && !comparison.lacks_preference());
}

#[test]
fn the_sentence_matches_the_pairs() {
    for (preferences, sentence) in [
        ("a a a a a a", "the second run is preferred; it won 6 of 6 pairs and lost 0 (unlikely to be chance)."),
        (
            "b b b b b b b t",
            "the first run is preferred; it won 7 of 8 pairs and lost 0, with 1 tie (unlikely to be chance).",
        ),
        (
            "a a a",
            "cannot tell yet whether the second run is preferred to the first run; it won 3 of 3 pairs and lost 0. To tell, \
             about 6 cases that differ like these would be enough, instead of 3.",
        ),
        (
            "aaaaaaaaaa",
            "cannot tell yet whether the second run is preferred to the first run; it won 10 of 10 pairs and lost 0. To \
             tell, about 6 cases that differ like these would be enough, instead of 1.",
        ),
        (
            "a b u",
            "cannot tell yet whether the second run is preferred to the first run; it won 1 of 2 pairs that were decided \
             and lost 1.",
        ),
        (
            "a a a a a a u u u u u",
            "the second run is preferred; it won 6 of 6 pairs that were decided and lost 0 (unlikely to be chance).",
        ),
        (
            "a a a a a a u u u u u u",
            "cannot tell yet whether the second run is preferred to the first run; it won 6 of 6 pairs that were decided \
             and lost 0. The undecided pairs could reverse this.",
        ),
        ("t t", "neither side is preferred; both pairs are ties."),
        ("t u", "neither side is preferred; the only pair that was decided is a tie."),
        ("s u", "cannot tell which side is preferred, because the judge decided none of 1 pair that needed it."),
        ("e u", "cannot tell which side is preferred, because the judge decided none of 1 pair that needed it."),
        ("e e", "cannot tell which side is preferred, because every pair left nothing to judge."),
        ("e s", "neither side is preferred; the only pair that was decided is a tie."),
        ("t", "neither side is preferred; the only pair is a tie."),
        ("p p t", "neither side is preferred; all 3 pairs are ties, 2 of them by position."),
        ("u u", "cannot tell which side is preferred, because the judge decided none of 2 pairs."),
    ] {
        assert_eq!(preference(&compared(preferences))["sentence"], sentence, "{preferences}");
    }
    assert!(compared("u u").lacks_preference() && !compared("u t").lacks_preference());
    assert!(compared("u s").lacks_preference() && !compared("s s").lacks_preference());
    assert!(compared("u e").lacks_preference() && !compared("e e").lacks_preference());
    assert!(!compared("u s").draw(&plain()).contains("win rate of"));
}

#[test]
fn a_pair_that_needed_no_judge_is_not_called_judged() {
    // Long lines are folded.
    let drawn = |preferences: &str| {
        let text = compared(preferences).draw(&plain());
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let some = drawn("ss at");
    for part in [
        "compared 4 pairs, 2 of them without a judge",
        "fake: 4 requests",
        "the same answers, tool calls and names of changed files is a tie, without a judge. The judge sees a pair twice",
    ] {
        assert!(some.contains(part), "{part}: {some}");
    }
    let none = drawn("s s s");
    for part in ["3 pairs, 3 of them without a judge", "fake: not asked", "is a tie, without a judge."] {
        assert!(none.contains(part), "{part}: {none}");
    }
    assert!(!none.contains("twice") && !none.contains("no request"), "{none}");
}

#[test]
fn the_case_is_the_unit_of_the_interval_and_the_test() {
    let figures = |preferences: &str| {
        let json = preference(&compared(preferences));
        (json["win_rate"].clone(), json["ci95"].clone(), json["p_value"].clone(), json["cases"].clone())
    };
    let (rate, ci95, p_value, _) = figures("a a a a a a b");
    assert!((rate.as_f64().unwrap() - 6.0 / 7.0).abs() < 1e-12);
    assert_eq!(p_value, json!(0.125));
    // Five pairs that agree in each case say no more about other cases than one.
    assert_eq!(figures("aaaaa aaaaa aaaaa aaaaa aaaaa aaaaa bbbbb"), (rate, ci95, p_value, json!(7)));
    let (rate, ci95, p_value, _) = figures("ab tt ab");
    assert_eq!((rate, p_value), (json!(0.5), json!(1.0)));
    let ends: Vec<f64> = ci95.as_array().unwrap().iter().map(|end| end.as_f64().unwrap()).collect();
    assert!(ends[0] > 0.0 && ends[0] < 0.5 && (ends[0] + ends[1] - 1.0).abs() < 1e-9, "{ends:?}");
    // Undecided pairs are in no rate.
    assert_eq!(figures("a a a a a a u").0, json!(1.0));
    assert_eq!(figures("aaaa"), (json!(1.0), Value::Null, json!(1.0), json!(1)));
    assert_eq!(figures("u"), (Value::Null, Value::Null, Value::Null, json!(0)));
}

#[test]
fn sides_that_change_places_have_the_opposite_result() {
    for preferences in ["aat bta aaa", "bbb bbb bat ttt"] {
        let swapped: String = preferences
            .chars()
            .map(|letter| match letter {
                'a' => 'b',
                'b' => 'a',
                other => other,
            })
            .collect();
        let (straight, swapped) = (preference(&compared(preferences)), preference(&compared(&swapped)));
        let rate = |json: &Value| json["win_rate"].as_f64().unwrap();
        assert!((rate(&straight) + rate(&swapped) - 1.0).abs() < 1e-12);
        assert_eq!(straight["p_value"], swapped["p_value"]);
    }
}

#[test]
fn a_judge_that_follows_the_position_is_reported() {
    let warning = |preferences: &str| preference(&compared(preferences))["warning"].clone();
    let text = warning("p p p p p p p p p p");
    let text = text.as_str().unwrap();
    assert!(text.starts_with("Warning: in 10 of 10 pairs, the judge chose the same position"), "{text}");
    assert!(text.ends_with("Use a stronger judge or a more specific criterion."), "{text}");
    assert_eq!(warning("p p p p p p p p p"), Value::Null, "too few pairs");
    assert_eq!(warning("p p p a a a a a t t"), Value::Null, "30 % is allowed");
    assert!(warning("p p p p a a a a t t").is_string());
    let drawn = compared("p p p p p p p p p p").draw(&plain());
    assert!(drawn.contains("neither side is preferred; all 10 pairs are ties, 10 of them by position."), "{drawn}");
    assert!(drawn.contains("Warning: in 10 of 10 pairs"), "{drawn}");
}

#[test]
fn trials_are_paired_by_case_and_repetition_if_both_are_graded() {
    let (mut before, mut after) = (trials(2, 3, OLD), trials(2, 2, RUN));
    before[1].outcome = Outcome::Broken;
    after[2].outcome = Outcome::Undecided;
    let comparison = Comparison::of(&before, &after, THRESHOLD);
    let pairs: Vec<(&str, u64)> =
        comparison.trial_pairs().iter().map(|pair| (pair.case.as_str(), pair.repetition)).collect();
    assert_eq!(pairs, [("commit::case-00", 1), ("commit::case-01", 1), ("commit::case-01", 2)]);
    let TrialPair { trials: [(run, _), (other, trial)], .. } = &comparison.trial_pairs()[2];
    assert_eq!((run.as_str(), other.as_str(), trial.as_str()), (OLD, RUN, "commit::case-01@fake#2"));
    let none = Comparison::of(&before, &[], THRESHOLD).with_preferences("Which?", "fake", Vec::new());
    assert!(preference(&none)["sentence"].as_str().unwrap().contains("no case has a graded trial on both sides"));
    assert!(!none.lacks_preference());
}

#[test]
fn a_sample_is_named_as_one() {
    let comparison = Comparison::of(&trials(40, 1, OLD), &trials(40, 1, RUN), THRESHOLD);
    let judged = comparison.trial_pairs()[..10].iter().map(|pair| (pair.clone(), judgement(Preference::After)));
    let judged = judged.collect();
    let drawn = comparison.with_preferences("Which?", "fake", judged).draw(&plain());
    assert!(drawn.contains("10 pairs, a random sample of 40"), "{drawn}");
}

#[test]
fn the_sides_of_a_skill_are_named_in_words() {
    let variant = |variant: &str| -> Vec<TrialRow> {
        let with = |trial: TrialRow| TrialRow { variant: Some(variant.into()), arm: format!("a+{variant}"), ..trial };
        trials(6, 1, RUN).into_iter().map(with).collect()
    };
    let rows = [variant(model::WITHOUT_SKILL), variant(model::WITH_SKILL)].concat();
    let comparison = Comparison::by_variant(&rows, &[], &[], THRESHOLD).remove(0);
    let judged = comparison.trial_pairs().iter().map(|pair| (pair.clone(), judgement(Preference::After))).collect();
    let sentence = preference(&comparison.with_preferences("Which?", "fake", judged))["sentence"].clone();
    assert_eq!(
        sentence,
        "the side with the skill is preferred; it won 6 of 6 pairs and lost 0 (unlikely to be chance)."
    );
}

#[test]
fn a_run_that_stopped_because_of_its_results_has_no_interval() {
    let stopped = RunRow { sequential: true, ..run_row(RUN) };
    let json = preference(&compared("a a a a a a a").with_runs(&run_row(OLD), &stopped));
    assert_eq!((&json["win_rate"], &json["ci95"], &json["p_value"]), (&json!(1.0), &Value::Null, &Value::Null));
}
