//! Comparison of runs, and of parts of one run.

use model::statistics::Bounds;
use model::{AgentInfo, ArmSummary, CallRecord, Outcome, RunRow, TrialFigures, TrialRecord, TrialRow};
use report::{Change, Comparison, Dimension, THRESHOLD};
use serde_json::{Value, json};

use crate::run_builder::{RUN, failed, id, passed, row, run_row};
use crate::{expect, plain};

const OLD: &str = "0192ffff-0000-7d3e-9b5a-3f0c6a1e2b44";

#[test]
fn compare_lists_regressions_first_with_their_confidence() {
    let case = |name: &str, repetition: u64, outcome: Outcome, run: &str| {
        let trial = id(name, "fake", repetition);
        let mut row = row(&if outcome == Outcome::Failed { failed(&trial) } else { passed(&trial) }, run);
        row.outcome = outcome;
        row
    };
    let (mut before, mut after) = (Vec::new(), Vec::new());
    for (name, a, b) in [
        ("once-broke", "p", "f"),
        ("better", "f", "p"),
        ("same", "p", "p"),
        ("same-failure", "f", "f"),
        ("gone", "p", ""),
        ("new", "", "p"),
        ("lost-its-verdict", "p", "b"),
        ("often", "pppp", "pppf"),
        ("surely-worse", "pppppppp", "ffffffff"),
    ] {
        for (rows, outcomes, run) in [(&mut before, a, OLD), (&mut after, b, RUN)] {
            for (index, outcome) in outcomes.chars().enumerate() {
                let outcome = match outcome {
                    'p' => Outcome::Passed,
                    'f' => Outcome::Failed,
                    _ => Outcome::Broken,
                };
                rows.push(case(name, index as u64 + 1, outcome, run));
            }
        }
    }
    let comparison = Comparison::of(&before, &after, THRESHOLD);
    assert!(comparison.has_regressions() && comparison.has_regressed());
    let comparison = comparison.with_runs(&run_row(OLD), &run_row(RUN));
    expect("compare.txt", &comparison.draw(&plain()));
    assert_eq!(comparison.to_json()["cases"][0]["more_than_chance"], true);
    assert!(!Comparison::of(&before, &before, THRESHOLD).has_regressions());
    assert!(Comparison::of(&[], &[], THRESHOLD).cases.is_empty());
}

#[test]
fn many_cases_are_compared_and_summed_up() {
    let one = passed(&id("one", "fake", 1));
    let records: Vec<TrialRecord> =
        (0..20_000).map(|n| TrialRecord { case: format!("case-{n}").into(), ..one.clone() }).collect();
    let rows: Vec<TrialRow> = records.iter().map(|record| row(record, RUN)).collect();
    assert_eq!(Comparison::of(&rows, &rows, THRESHOLD).cases.len(), records.len());
    let figures: Vec<TrialFigures> = records.iter().map(TrialFigures::from_record).collect();
    let arms = ArmSummary::of(&figures);
    assert_eq!((arms.len(), arms[0].statistics.trials), (1, records.len()));
    let at_k = arms[0].statistics.at_k().map(|(at, hat)| (at.value, hat.value));
    assert_eq!(at_k, Some((Some(1.0), Some(1.0))));
}

#[test]
fn runs_of_one_arm_each_are_compared_across_arms() {
    let rows = |arm: &str| [row(&passed(&id("a", arm, 1)), arm)];
    assert_eq!(Comparison::of(&rows("x"), &rows("y"), THRESHOLD).cases[0].name, "commit::a");
    // A different arm in another case does not prevent it.
    let with_another = |arm: &str, other: &str| [rows(arm), [row(&passed(&id("b", other, 1)), arm)]].concat();
    let names: Vec<String> = Comparison::of(&with_another("x", "m"), &with_another("y", "m"), THRESHOLD)
        .cases
        .into_iter()
        .map(|case| case.name)
        .collect();
    assert_eq!(names, ["commit::a", "commit::b"]);
    let both = [rows("x"), rows("y")].concat();
    let names: Vec<String> = Comparison::of(&both, &both, THRESHOLD).cases.into_iter().map(|case| case.name).collect();
    assert_eq!(names, ["commit::a@x", "commit::a@y"]);
}

#[test]
fn a_case_that_only_one_side_has_keeps_its_arm() {
    let rows = |case: &str, arms: &[&str], run: &str| -> Vec<TrialRow> {
        arms.iter().map(|arm| row(&passed(&id(case, arm, 1)), run)).collect()
    };
    let before = rows("a", &["x", "y"], OLD);
    let after = rows("b", &["x", "z"], RUN);
    let names: Vec<String> =
        Comparison::of(&before, &after, THRESHOLD).cases.into_iter().map(|case| case.name).collect();
    assert_eq!(names, ["commit::b@x", "commit::b@z", "commit::a@x", "commit::a@y"]);
}

#[test]
fn a_score_may_fall_by_no_more_than_is_allowed() {
    let scored = |outcome: Outcome, score: f64, max: f64, run: &str| {
        let score_bounds = Some(Bounds::exact(score / max));
        [TrialRow { score_bounds, outcome, ..row(&failed(&id("scored", "fake", 1)), run) }]
    };
    let change = |outcome, before: (f64, f64), after: (f64, f64), threshold| {
        let (a, b) = (scored(outcome, before.0, before.1, OLD), scored(outcome, after.0, after.1, RUN));
        let comparison = Comparison::of(&a, &b, threshold);
        assert!(!comparison.has_regressed(), "one case is not enough");
        (comparison.cases[0].change, comparison.draw(&plain()))
    };
    let (fell, drawn) = change(Outcome::Failed, (3.0, 4.0), (2.0, 4.0), THRESHOLD);
    assert_eq!(fell, Change::Regressed);
    assert!(drawn.contains("score 75% -> 50%") || drawn.contains("score 75% → 50%"), "{drawn}");
    assert_eq!(change(Outcome::Failed, (3.0, 4.0), (2.0, 4.0), 0.25).0, Change::Same);
    assert_eq!(change(Outcome::Failed, (2.0, 4.0), (3.0, 4.0), 0.05).0, Change::Improved);
    // Scores are compared as shares of their maximum: the case has more points now, but is not worse.
    assert_eq!(change(Outcome::Passed, (1.0, 1.0), (4.0, 4.0), 0.0).0, Change::Same);
    assert_eq!(change(Outcome::Passed, (1.0, 1.0), (0.96, 1.0), THRESHOLD).0, Change::Same);
}

/// Rows of cases, separated by blanks if they have several trials: `p` passed, `f` failed, `u` undecided.
fn outcomes(outcomes: &str, run: &str) -> Vec<TrialRow> {
    let cases: Vec<&str> = match outcomes.contains(' ') {
        true => outcomes.split(' ').collect(),
        false => outcomes.split_terminator("").skip(1).collect(),
    };
    let trials = |(index, case): (usize, &str)| {
        let row = |(repetition, outcome): (u64, char)| {
            let outcome = match outcome {
                'p' => Outcome::Passed,
                'f' => Outcome::Failed,
                _ => Outcome::Undecided,
            };
            TrialRow { outcome, ..row(&passed(&id(&format!("case-{index:02}"), "fake", repetition)), run) }
        };
        (1..).zip(case.chars()).map(row).collect::<Vec<_>>()
    };
    cases.into_iter().enumerate().flat_map(trials).collect()
}

#[test]
fn a_comparison_begins_with_a_sentence_and_decides() {
    let open = "Cannot tell yet whether the second run is better or worse: ";
    let both = |answer: &str| format!("These cases: {answer}. Other cases like them: {answer}");
    let six = "to tell, about 6 cases that differ like these would be enough, instead of";
    for (before, after, regressed, sentence) in [
        (
            "pppppppp",
            "ffffffpp",
            true,
            format!(
                "The second run is worse: 2 of 8 cases passed in it, 8 of 8 in the first. {}.",
                both("unlikely to be chance (p 0.031)")
            ),
        ),
        (
            "fffffffffffp",
            "pppppppppppp",
            false,
            format!(
                "The second run is better: 12 of 12 cases passed in it, 1 of 12 in the first. {}.",
                both("almost certainly not chance (p <0.001)")
            ),
        ),
        (
            "ppp",
            "ppf",
            false,
            format!(
                "{open}2 of 3 cases passed in it, 3 of 3 in the first; case commit::case-02 failed in the second run and \
                 passed in the first run, with one trial each. {}; {six} 1.",
                both("may be chance (p 1)")
            ),
        ),
        ("pfp", "pfp", false, "No case changed: 2 of 3 cases passed in both.".to_owned()),
        (
            "ppppff",
            "ffpppp",
            false,
            format!(
                "{open}4 of 6 cases passed in it, 4 of 6 in the first; 2 cases failed in the second run and passed in the \
                 first run, with one trial each; 2 cases passed in the second run and failed in the first run. Other cases \
                 like these: the true difference is probably between -94 and +94 points."
            ),
        ),
        (
            "pppppppp",
            "uuuuuuuu",
            false,
            "Nothing was compared: no case has a result on both sides; 8 cases have no result in the second run (8 \
             undecided)."
                .to_owned(),
        ),
        (
            "",
            "p",
            false,
            "Nothing was compared: the two sides have no case in common; case commit::case-00 is only in the second run."
                .to_owned(),
        ),
        (
            "ppp ppp ppp ppp ppp ppp",
            "ppp fff ppp fff fff ppp",
            true,
            format!(
                "The second run is worse: in 6 cases, 50% of trials passed in it (9 of 18), 100% in the first (18 of 18). \
                 These cases: almost certainly not chance (p <0.001). Other cases like them: may be chance (p 0.25); \
                 {six} 3."
            ),
        ),
        (
            "ppp ppp ppp",
            "fuu fuu ppp",
            false,
            format!(
                "{open}in 3 cases, 33% to 78% of trials passed in it (3 to 7 of 9), 100% in the first (9 of 9); 4 of 9 \
                 trials of the second run have no result (4 undecided). {}; {six} 2.",
                both("may be chance (p 0.5)")
            ),
        ),
    ] {
        let comparison = Comparison::of(&outcomes(before, OLD), &outcomes(after, RUN), THRESHOLD);
        assert_eq!((comparison.sentence(), comparison.has_regressed()), (sentence, regressed), "{before} {after}");
    }
}

#[test]
fn a_comparison_is_incomplete_if_a_case_lost_its_result() {
    let is_incomplete = |before: &str, after: &str| {
        Comparison::of(&outcomes(before, OLD), &outcomes(after, RUN), THRESHOLD).is_incomplete()
    };
    assert!(!is_incomplete("pp", "pf") && !is_incomplete("pp pp", "pu pp"), "each case has a result");
    assert!(is_incomplete("pp", "pu") && is_incomplete("pp", "uu"), "a judge was not available");
    assert!(!is_incomplete("pu", "pu"), "the first side has no result either");
    assert!(is_incomplete("", "p") && Comparison::of(&[], &[], THRESHOLD).is_incomplete(), "nothing was compared");
    assert!(is_incomplete("ppppp p", "puuuu p"), "it would be a regression if the four had failed");
    assert!(!is_incomplete("ppppp p", "ppppu p"), "one failure may be chance");
    assert!(!is_incomplete("puuuu p", "ppppp p"), "results of the first side are missing");
    let worse = Comparison::of(&outcomes("pppppp p", OLD), &outcomes("ffffff u", RUN), THRESHOLD);
    let notes = worse.draw(&plain()).split_whitespace().collect::<Vec<_>>().join(" ");
    let note = "The comparison is incomplete, but the missing results cannot change its answer.";
    assert!(worse.has_regressed() && worse.is_incomplete() && notes.contains(note), "{notes}");
}

#[test]
fn figures_that_only_one_side_has_are_named_as_not_compared() {
    let rows = |run: &str, cost_usd: Option<f64>| -> Vec<TrialRow> {
        outcomes("p p", run).into_iter().map(|row| TrialRow { cost_usd, ..row }).collect()
    };
    let notes = |before: Option<f64>, after: Option<f64>| {
        let drawn = Comparison::of(&rows(OLD, before), &rows(RUN, after), THRESHOLD).draw(&plain());
        drawn.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert!(notes(Some(0.1), None).contains("Not compared: cost; after does not have it for all trials"));
    assert!(notes(None, Some(0.1)).contains("Not compared: cost; before does not have it for all trials"));
    assert!(!notes(Some(0.1), Some(0.2)).contains("Not compared") && !notes(None, None).contains("Not compared"));
    let nothing = Comparison::of(&outcomes("u u", OLD), &outcomes("p p", RUN), THRESHOLD).draw(&plain());
    assert!(nothing.contains("Nothing was compared") && !nothing.contains("agent time per trial"), "{nothing}");
}

#[test]
fn a_comparison_that_counts_every_regression_says_so_everywhere() {
    let flat = |comparison: &Comparison| {
        let drawn = comparison.draw(&plain());
        drawn.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let small = [outcomes(&format!("{} p", "p".repeat(300)), OLD), {
        outcomes(&format!("{}{} p", "p".repeat(288), "f".repeat(12)), RUN)
    }];
    let chance = [outcomes("pp p", OLD), outcomes("pf p", RUN)];
    for ([before, after], heading, note) in [
        (&small, "regressed, but within the threshold (1)", "Regressions within the threshold of 5 points do not fail"),
        (&chance, "regressed, may be chance (1)", "Regressions that may be chance do not fail the comparison"),
    ] {
        let comparison = Comparison::of(before, after, THRESHOLD);
        let drawn = flat(&comparison);
        assert!(drawn.contains(heading) && drawn.contains(note), "{drawn}");
        assert_eq!((comparison.has_regressed(), &comparison.to_json()["regressed"]), (false, &json!(false)));
        let any = comparison.counting_any();
        let drawn = flat(&any);
        assert!(!drawn.contains("do not fail") && !drawn.contains("It is not a regression"), "{drawn}");
        assert!(drawn.contains("Every regression fails the comparison"), "{drawn}");
        assert_eq!((any.has_regressed(), &any.to_json()["regressed"]), (true, &json!(true)));
    }
    let same = Comparison::of(&chance[0], &chance[0], THRESHOLD).counting_any();
    assert!(!same.has_regressed() && !flat(&same).contains("Every regression"));
}

#[test]
fn an_undecided_assertion_makes_no_side_worse() {
    // One assertion of four fails, and the judge did not decide another: the score is 2/4 to 3/4.
    let scored = |outcome: Outcome, least: f64, most: f64, run: &str| -> Vec<TrialRow> {
        let row = |row| TrialRow { outcome, score_bounds: Some(Bounds { min: least, max: most }), ..row };
        outcomes("pppppppp", run).into_iter().map(row).collect()
    };
    let before = scored(Outcome::Failed, 0.75, 0.75, OLD);
    for after in [scored(Outcome::Failed, 0.5, 0.75, RUN), scored(Outcome::Undecided, 0.75, 1.0, RUN)] {
        let comparison = Comparison::of(&before, &after, 0.0);
        assert!(
            !comparison.has_regressed() && !comparison.sentence().contains("worse: the"),
            "{}",
            comparison.sentence()
        );
        assert!(comparison.cases.iter().all(|case| case.change == Change::Changed));
    }
    assert_eq!(
        Comparison::of(&before, &scored(Outcome::Failed, 0.5, 0.75, RUN), THRESHOLD).sentence(),
        "No case passes more or less often: 0 of 8 cases passed in both; the mean score is 50% to 75% in it, 75% in the \
         first, because assertions are undecided."
    );
    let worse = Comparison::of(&before, &scored(Outcome::Failed, 0.5, 0.5, RUN), THRESHOLD);
    assert!(worse.has_regressed(), "{}", worse.sentence());

    // Two of eight cases are broken on both sides, and could have made up for a small loss of the others.
    let with_two_broken = |score: f64, run: &str| {
        let mut rows = scored(Outcome::Failed, score, score, run);
        for row in &mut rows[6..] {
            (row.outcome, row.score_bounds) = (Outcome::Broken, None);
        }
        rows
    };
    let lost = Comparison::of(&with_two_broken(0.75, OLD), &with_two_broken(0.5, RUN), 0.0);
    assert!(!lost.has_regressed() && lost.sentence().starts_with("Cannot tell yet"), "{}", lost.sentence());
}

#[test]
fn a_small_loss_in_many_cases_is_below_the_threshold() {
    let before = outcomes(&"p".repeat(400), OLD);
    let after = outcomes(&format!("{}{}", "f".repeat(12), "p".repeat(388)), RUN);
    let comparison = Comparison::of(&before, &after, THRESHOLD);
    let end = " It is not a regression, because it is within the threshold of 5 points.";
    assert!(!comparison.has_regressed() && comparison.sentence().ends_with(end), "{}", comparison.sentence());
    let strict = Comparison::of(&before, &after, 0.01);
    assert!(
        strict.has_regressed() && strict.sentence().starts_with("The second run is worse: "),
        "{}",
        strict.sentence()
    );
}

#[test]
fn every_regression_against_the_same_evidence_counts() {
    let (before, after) = (outcomes("pp", OLD), outcomes("pf", RUN));
    let comparison = Comparison::of(&before, &after, THRESHOLD);
    let regraded = RunRow { regrade_of: Some(OLD.into()), ..run_row(RUN) };
    assert!(!comparison.clone().with_runs(&run_row(OLD), &run_row(RUN)).has_regressed());
    let regrade = comparison.with_runs(&run_row(OLD), &regraded);
    assert!(regrade.has_regressed());
    assert_eq!(
        regrade.sentence(),
        "The second run is worse: 1 of 2 cases passed in it, 2 of 2 in the first. Both grade the same evidence, so no \
         difference is chance."
    );
}

#[test]
fn one_run_is_compared_by_model_and_by_agent() {
    let agent = |name: &str, model: &str| AgentInfo {
        name: name.into(),
        version: None,
        model: Some(model.into()),
        reasoning_effort: None,
        base_url: None,
    };
    let agents = [agent("codex", "small"), agent("chat", "small"), agent("codex", "large"), agent("codex", "huge")];
    let rows: Vec<TrialRow> = agents
        .iter()
        .flat_map(|agent| {
            let model = agent.model.clone().unwrap_or_default();
            ["a", "b"].map(|case| TrialRow {
                agent: agent.name.clone(),
                model: Some(model.clone()),
                ..row(&passed(&id(case, &format!("{}:{model}", agent.name), 1)), RUN)
            })
        })
        .collect();
    let names = |by: Dimension, rows: &[TrialRow]| -> Vec<(Value, Value, Vec<String>)> {
        Comparison::by(rows, &agents, by, THRESHOLD)
            .iter()
            .map(|each| {
                let paired = each.cases.iter().filter(|case| case.change == Change::Same);
                let json = each.to_json();
                (json["before"].clone(), json["after"].clone(), paired.map(|case| case.name.clone()).collect())
            })
            .collect()
    };
    let cases = |names: [&str; 2]| names.map(str::to_owned).to_vec();
    assert_eq!(
        names(Dimension::Model, &rows),
        [
            (json!("small"), json!("large"), cases(["commit::a@codex", "commit::b@codex"])),
            (json!("small"), json!("huge"), cases(["commit::a@codex", "commit::b@codex"])),
        ],
        "each with the first, and only trials of the same agent"
    );
    let one_agent: Vec<TrialRow> = rows.iter().filter(|row| row.agent == "codex").cloned().collect();
    assert_eq!(
        names(Dimension::Model, &one_agent)[0],
        (json!("small"), json!("large"), cases(["commit::a", "commit::b"]))
    );
    assert_eq!(
        names(Dimension::Agent, &rows),
        [(json!("codex"), json!("chat"), cases(["commit::a@small", "commit::b@small"]))]
    );
    assert!(Comparison::by(&rows[..2], &agents, Dimension::Model, THRESHOLD).is_empty(), "there is only one");
}

#[test]
fn a_run_is_compared_by_variant_in_the_words_of_a_skill() {
    let rows: Vec<TrialRow> = [("with_skill", Outcome::Passed), ("without_skill", Outcome::Failed)]
        .iter()
        .flat_map(|(variant, outcome)| {
            (0..8).map(move |index| TrialRow {
                variant: Some((*variant).into()),
                outcome: *outcome,
                ..row(&passed(&id(&index.to_string(), &format!("chat+{variant}"), 1)), RUN)
            })
        })
        .collect();
    let comparisons = Comparison::by_variant(&rows, &[], &[], THRESHOLD);
    assert_eq!(comparisons.len(), 1);
    assert_eq!(
        comparisons[0].sentence(),
        "The skill helps: 8 of 8 cases passed with it, 0 of 8 without. This is 100% of the possible improvement. These \
         cases: very unlikely to be chance (p 0.008). Other cases like them: very unlikely to be chance (p 0.008)."
    );
}

#[test]
fn the_parts_of_a_plugin_are_compared_with_each_other() {
    let arms = [("with_skill", Outcome::Passed), ("skills_only", Outcome::Failed), ("without_skill", Outcome::Failed)];
    let rows: Vec<TrialRow> = arms
        .iter()
        .flat_map(|(variant, outcome)| {
            (0..8).map(move |index| TrialRow {
                variant: Some((*variant).into()),
                outcome: *outcome,
                ..row(&passed(&id(&index.to_string(), &format!("chat+{variant}"), 1)), RUN)
            })
        })
        .collect();
    let comparisons = Comparison::by_variant(&rows, &[], &[], THRESHOLD);
    let sentences: Vec<String> = comparisons.iter().map(Comparison::sentence).collect();
    let starts = [
        "The skill helps: 8 of 8 cases passed with it, 0 of 8 without.",
        "No case changed: ",
        "with_skill is better than skills_only: 8 of 8 cases passed in with_skill, 0 of 8 in skills_only.",
    ];
    assert_eq!(sentences.len(), 3);
    for (sentence, start) in sentences.iter().zip(starts) {
        assert!(sentence.starts_with(start), "{sentence}");
    }
}

#[test]
fn a_comparison_shows_what_changed_in_a_case_in_every_format() {
    let (good, bad) = (passed(&id("once", "fake", 1)), failed(&id("once", "fake", 1)));
    let call = |command: &str| CallRecord { input: json!({ "command": command }), ..good.tool_calls[0].clone() };
    let good = TrialRecord { tool_calls: ["git status", "git diff", "git commit"].map(call).into(), ..good };
    let bad = TrialRecord {
        tool_calls: ["git status", "git push <x>"].map(call).into(),
        answer: Some("Pushed.\n<script>alert(1)</script>".into()),
        ..bad
    };
    let labelled = |run: &str, label: &str| RunRow { label: Some(label.into()), ..run_row(run) };
    let comparison = Comparison::of(&[row(&good, OLD)], &[row(&bad, RUN)], THRESHOLD)
        .with_runs(&labelled(OLD, "main"), &labelled(RUN, "branch"))
        .with_skills(&[crate::run_builder::skill()], &[])
        .with_evidence(5, |run, _| Ok::<_, ()>(vec![if run == OLD { good.clone() } else { bad.clone() }]))
        .unwrap();
    expect("compare.evidence.txt", &comparison.draw(&plain()));
    expect("compare.evidence.md", &comparison.to_markdown(65_000));
    let page = shown_without_scripts(&comparison);
    expect("compare.evidence.html", &page);
    assert!(!page.contains("<script"), "nothing in the data is executed");
    let json = comparison.to_json();
    assert_eq!(json["cases"][0]["evidence"]["first_divergence"], 1);
    assert_eq!(json["cases"][0]["evidence"]["flips"][0]["after"]["status"], "unmet");
}

/// Returns what the page of a comparison shows without scripts.
pub fn shown_without_scripts(comparison: &Comparison) -> String {
    let page = report::comparison_page(std::slice::from_ref(comparison), &[], std::path::Path::new(""), None).unwrap();
    let page = String::from_utf8(page).unwrap();
    let (_, main) = page.split_once("<main ").unwrap();
    format!("<main {}</main>\n", main.split_once("</main>").unwrap().0)
}

#[test]
fn the_page_of_a_comparison_links_to_its_trials() {
    let trial = id("once", "fake", 1);
    let events = |record: TrialRecord| {
        let mut story = crate::run_builder::RunBuilder::new(vec![trial.clone()], 1);
        story.starts(&trial, &["hi"]).ends(record).over();
        story.events
    };
    let (good, bad) = (passed(&trial), failed(&trial));
    let comparison = Comparison::of(&[row(&good, OLD)], &[row(&bad, RUN)], THRESHOLD)
        .with_evidence(5, |run, _| Ok::<_, ()>(vec![if run == OLD { good.clone() } else { bad.clone() }]))
        .unwrap();
    let named: Vec<_> = comparison.detailed_trials().flatten().collect();
    assert_eq!(named, [("before", OLD, "commit::once@fake#1"), ("after", RUN, "commit::once@fake#1")]);
    let trials: Vec<_> = [(OLD, &good), (RUN, &bad)]
        .iter()
        .map(|(run, record)| report::ComparedTrial::of("side", run, &events((*record).clone())).unwrap().unwrap())
        .collect();
    let page = report::comparison_page(&[comparison], &trials, std::path::Path::new(""), None).unwrap();
    let page = String::from_utf8(page).unwrap();
    let of = |run: &str| format!("{run}%2Fcommit%3A%3Aonce%40fake%231");
    assert!(page.contains(&format!("<a href=\"#/compare/{}/{}\">side by side</a>", of(OLD), of(RUN))), "{page}");
    assert!(page.contains("<script type=\"text/plain\" id=\"t1\">"));
}

#[test]
fn markdown_of_many_changes_fits_a_comment() {
    let (good, bad) = (passed(&id("once", "fake", 1)), failed(&id("once", "fake", 1)));
    let bad = TrialRecord { answer: Some("long line of text ".repeat(40) + "\n" + &"x\n".repeat(500)), ..bad };
    let comparison = Comparison::of(&outcomes(&"p".repeat(300), OLD), &outcomes(&"f".repeat(300), RUN), THRESHOLD)
        .with_evidence(20, |run, ids| Ok::<_, ()>(vec![if run == OLD { good.clone() } else { bad.clone() }; ids.len()]))
        .unwrap();
    let page = comparison.to_markdown(65_000);
    assert!(page.len() < 65_000 && page.contains("and 280 more"), "{}", page.len());
    // Without room for the evidence, the cases are listed; without room for all of them, the rest is counted.
    for (most, evidence, more) in [(20_000, true, "and 280 more"), (3_000, false, "and 2")] {
        let page = comparison.to_markdown(most);
        assert!(page.len() <= most && page.contains(more), "{page}");
        assert_eq!(page.contains("<details>"), evidence, "{page}");
    }
    assert!(comparison.draw(&plain()).contains("\n  and 290 more\n"));
}

#[test]
fn cases_in_quarantine_are_named_and_do_not_decide() {
    let quarantined = |rows: Vec<TrialRow>, cases: usize| -> Vec<TrialRow> {
        rows.into_iter().enumerate().map(|(index, row)| TrialRow { quarantined: index < cases, ..row }).collect()
    };
    let (before, after) = (outcomes("ppppppppp", OLD), outcomes("fffffffpp", RUN));
    assert!(Comparison::of(&before, &after, THRESHOLD).has_regressed());
    // It is enough if the case is in quarantine on one side.
    for (before, after) in
        [(before.clone(), quarantined(after.clone(), 7)), (quarantined(before.clone(), 7), after.clone())]
    {
        let comparison = Comparison::of(&before, &after, THRESHOLD);
        assert!(!comparison.has_regressed() && !comparison.has_regressions());
        let change = if after[0].quarantined { "newly" } else { "no longer" };
        let change = format!("7 cases are {change} in quarantine (7 failed; before: 7 passed)");
        assert_eq!(comparison.sentence(), format!("No compared case changed: 2 of 2 cases passed in both; {change}."));
        let note = "Not compared: 7 cases in quarantine (commit::case-00, commit::case-01, commit::case-02, \
                    commit::case-03, commit::case-04, 2 more).";
        let drawn = comparison.draw(&plain());
        assert!(drawn.split_whitespace().collect::<Vec<_>>().join(" ").contains(note), "{drawn}");
        assert!(comparison.to_markdown(65_000).contains("7 cases in quarantine"));
        assert_eq!(comparison.to_json()["quarantined"].as_array().unwrap().len(), 7);
        assert_eq!(comparison.to_json()["cases"].as_array().unwrap().len(), 2);
    }
    let models = |outcomes: Vec<TrialRow>, model: &str| {
        let of = |row| TrialRow { model: Some(model.to_owned()), ..row };
        outcomes.into_iter().map(of).collect::<Vec<_>>()
    };
    let both = [models(before, "haiku"), models(quarantined(after, 7), "opus")].concat();
    let by_model = &Comparison::by(&both, &[], Dimension::Model, THRESHOLD)[0];
    assert!(!by_model.has_regressions() && by_model.to_json()["quarantined"].as_array().unwrap().len() == 7);
}

#[test]
fn a_margin_is_shown_refuted_or_left_open() {
    let rows = |passes: usize, cases: usize, trials: u64, run: &str| -> Vec<TrialRow> {
        let trial = |index: usize, repetition: u64| {
            let trial = id(&format!("case-{index}"), "fake", repetition);
            row(&if index < passes { passed(&trial) } else { failed(&trial) }, run)
        };
        (0..cases).flat_map(|index| (1..=trials).map(move |repetition| trial(index, repetition))).collect()
    };
    for (passes, cases, trials, verdict, sentence) in [
        ([60, 60], 60, 1, "shown", "No worse by more than 5 points: the true difference is probably above -4 points."),
        (
            [3, 3],
            3,
            40,
            "shown",
            "No worse by more than 5 points in these cases: the true difference is probably above -3 points.",
        ),
        ([20, 5], 20, 1, "refuted", "Worse by more than 5 points: the true difference is probably below -54 points."),
        (
            [10, 10],
            10,
            1,
            "open",
            "Cannot tell yet whether it is worse by more than 5 points: the true difference may be as low as -23 points. \
             More cases or trials narrow this down.",
        ),
    ] {
        let [before, after] = passes;
        let (before, after) = (rows(before, cases, trials, OLD), rows(after, cases, trials, RUN));
        let comparison = Comparison::of(&before, &after, THRESHOLD);
        assert_eq!((comparison.within_margin(), &comparison.to_json()["no_worse_than"]), (None, &Value::Null));
        let comparison = comparison.with_margin(0.05);
        let json = comparison.to_json();
        assert_eq!(
            (&json["no_worse_than"]["verdict"], &json["no_worse_than"]["sentence"]),
            (&json!(verdict), &json!(sentence))
        );
        let shown = comparison.draw(&plain());
        assert!(shown.replace("\n    ", " ").contains(sentence), "{shown}");
        assert!(comparison.to_markdown(60_000).contains("by more than 5 points"));
    }
    let none = Comparison::of(&[], &[], THRESHOLD).with_margin(0.05);
    assert!(none.to_json()["no_worse_than"]["sentence"].as_str().unwrap().ends_with("too few cases with a result."));
}

#[test]
fn the_p_values_of_many_cases_are_adjusted() {
    let rows = |passes: [u64; 3], run: &str| -> Vec<TrialRow> {
        let case = |(index, passes): (usize, u64)| {
            (1..=5).map(move |repetition| {
                let trial = id(&format!("case-{index}"), "fake", repetition);
                row(&if repetition <= passes { passed(&trial) } else { failed(&trial) }, run)
            })
        };
        passes.into_iter().enumerate().flat_map(case).collect()
    };
    let comparison = Comparison::of(&rows([5, 5, 3], OLD), &rows([0, 0, 3], RUN), THRESHOLD);
    let json = comparison.to_json();
    let close = |value: &Value, expected: f64| (value.as_f64().unwrap() - expected).abs() < 1e-4;
    // Two cases with p = 2/252 each; the third cannot reach 5 % divided by three, so it does not count.
    for (case, factor) in [(0, 2.0), (1, 2.0)] {
        assert!(close(&json["cases"][case]["p_value"], 2.0 / 252.0), "{}", json["cases"]);
        assert!(close(&json["cases"][case]["adjusted_p_value"], factor * 2.0 / 252.0), "{}", json["cases"]);
        assert_eq!(json["cases"][case]["more_than_chance"], true);
    }
}
