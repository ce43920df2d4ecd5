//! Reports on three agents with and without a skill, two repetitions each.

use model::statistics::Chance;
use model::{
    AgentInfo, Envelope, Event, Finding, HookKind, HookRecord, Outcome, RunRow, SideEffects, SkillInfo, Status, Tokens,
    TrialFigures, TrialId, TrialRecord, TrialRow,
};
use report::{Comparison, Details, StatusView, THRESHOLD};
use serde_json::{Value, json};

use crate::run_builder::{RUN, RunBuilder, broken, failed, id, met, passed, row, run_row, skill};
use crate::{expect, reported};

/// An agent, its model, and the letters of its trials with and without the skill.
type Agent = (&'static str, Option<&'static str>, [&'static str; 4], [&'static str; 4]);

/// The agents, each with its model and the outcomes of its trials with and without the skill, case by case: `p` for a
/// pass, `f` for a failure, `b` for a broken trial. Capital letters mean that the skill was used.
const AGENTS: [Agent; 3] = [
    ("claude-code", Some("haiku"), ["PP", "PP", "PF", "pp"], ["pf", "ff", "fp", "pp"]),
    ("codex", Some("gpt-5-mini"), ["PP", "Fp", "FF", "pP"], ["fp", "pp", "fb", "pp"]),
    ("opencode", None, ["pf", "ff", "pp", "bp"], ["pp", "ff", "fp", "pp"]),
];
const CASES: [&str; 4] = ["splits-in-two", "asks-before-push", "writes-notes", "negative-control"];

fn arm(agent: &str, model: Option<&str>, variant: &str) -> String {
    format!("{agent}{}+{variant}", model.map_or_else(String::new, |model| format!(":{model}")))
}

fn record(trial: &TrialId, agent: usize, with_skill: bool, letter: char) -> TrialRecord {
    let (name, model, ..) = AGENTS[agent];
    let mut record = match letter.to_ascii_lowercase() {
        'p' => passed(trial),
        'f' => failed(trial),
        _ => broken(trial),
    };
    record.agent = name.into();
    record.model = model.map(str::to_owned);
    record.variant = Some(if with_skill { "with_skill" } else { "without_skill" }.into());
    record.triggered = (with_skill && letter != 'b').then_some(letter.is_ascii_uppercase());
    record.should_trigger = with_skill.then_some(*trial.case != *"negative-control");
    if !with_skill {
        record.skill = None;
    }
    if record.outcome != Outcome::Broken {
        let spread = trial.repetition + trial.case.len() as u64;
        let output = if with_skill { 400 + 10 * spread } else { 700 + 20 * spread } * (agent as u64 + 1);
        let usage = Tokens { input: 214, cache_read: 1020, cache_write: 0, output, reasoning: None };
        let cost = (agent != 2).then_some(output as f64 * 1e-5);
        record.duration_ms = 9_000 + 700 * spread + if with_skill { 0 } else { 4_000 };
        (record.usage, record.cost_usd) = (Some(usage), cost);
        for attempt in &mut record.attempts {
            (attempt.usage, attempt.cost_usd) = (Some(usage), cost);
        }
    }
    record
}

/// Returns every trial with its record.
fn trials() -> Vec<(TrialId, TrialRecord)> {
    let mut trials = Vec::new();
    for (index, case) in CASES.iter().enumerate() {
        for repetition in 0..2 {
            for (agent, (name, model, with, without)) in AGENTS.iter().enumerate() {
                // The arms alternate, as they do with a seed.
                for with_skill in [agent == 1, agent != 1] {
                    let (variant, letters) =
                        if with_skill { ("with_skill", with[index]) } else { ("without_skill", without[index]) };
                    let trial = id(case, &arm(name, *model, variant), repetition + 1);
                    let letter = letters.chars().nth(repetition as usize).unwrap();
                    let record = record(&trial, agent, with_skill, letter);
                    trials.push((trial, record));
                }
            }
        }
    }
    trials
}

fn agents() -> Vec<AgentInfo> {
    let agent = |(name, model, ..): &Agent| AgentInfo {
        name: (*name).into(),
        version: Some("1.0".into()),
        model: model.map(str::to_owned),
        reasoning_effort: None,
        base_url: None,
    };
    AGENTS.iter().map(agent).collect()
}

/// Returns the events of a run of `trials` that finish in the order given by `finish`.
fn events_of(trials: &[(TrialId, TrialRecord)], finish: &[usize]) -> Vec<Envelope> {
    let ids = trials.iter().map(|(id, _)| id.clone()).collect();
    let mut story = RunBuilder::new(ids, 4);
    if let Event::RunStarted(info) = &mut story.events[0].event {
        info.agents = agents();
    }
    for (id, _) in trials {
        story.starts(id, &["/commit"]);
    }
    for at in finish {
        let (id, record) = &trials[*at];
        story.about(id).ends(record.clone());
    }
    story.after(61_000).over();
    story.events
}

pub fn run() -> Vec<Envelope> {
    let trials = trials();
    events_of(&trials, &(0..trials.len()).collect::<Vec<_>>())
}

/// Returns the summary of the run, without the lines above it.
fn closing(text: &str) -> String {
    let rule = text.lines().position(|line| line.starts_with(['─', '-'])).unwrap();
    text.lines().skip(rule).collect::<Vec<_>>().join("\n") + "\n"
}

#[test]
fn the_terminal_shows_the_effect_of_the_skill_for_each_agent() {
    for (width, name) in [(80, "arms.80.txt"), (100, "arms.txt")] {
        let text = reported("terminal", &run(), |options| options.style.width = width);
        let closing = closing(&text);
        let widest = closing.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{closing}");
        expect(name, &closing);
    }
}

/// The reports that are written at the end of a run.
const KINDS: [&str; 11] = [
    "terminal",
    "json",
    "markdown",
    "html",
    "junit",
    "junit:gitlab",
    "junit:jenkins",
    "tap",
    "ctrf",
    "gitlab",
    "plugin-eval",
];

#[test]
fn reports_are_the_same_whatever_order_trials_finish_in() {
    let trials = trials();
    let mut order: Vec<usize> = (0..trials.len()).collect();
    let planned = events_of(&trials, &order);
    // The lines about single trials are removed, because they depend on the order.
    let drawn = |events: &[Envelope], kind: &str| {
        let text = reported(kind, events, |_| {});
        if kind == "terminal" { closing(&text) } else { text }
    };
    let mut chance = Chance::new(7);
    for _ in 0..5 {
        chance.shuffle(&mut order);
        let shuffled = events_of(&trials, &order);
        for kind in KINDS {
            assert_eq!(drawn(&shuffled, kind), drawn(&planned, kind), "{kind}");
        }
    }
}

#[test]
fn the_markdown_report_contains_arms_deltas_and_failures() {
    expect("arms.md", &reported("markdown", &run(), |_| {}));
    let evidence = reported("markdown", &run(), |options| {
        options.show_evidence = true;
        options.failures_only = true;
    });
    assert!(evidence.contains("nearest: Bash(command=\"git push\")"), "{evidence}");
    assert!(!evidence.contains("\n  actual: "), "the values stand above the evidence: {evidence}");
    assert!(!evidence.contains("All 48 trials"), "{evidence}");
    assert!(evidence.matches("\n#### ").count() == 8, "each has its own evidence: {evidence}");
}

#[test]
fn colour_changes_nothing_but_colour_in_a_comparison_of_arms() {
    let colored = reported("terminal", &run(), |options| options.style.color = true);
    assert!(colored.contains("\u{1b}[1mclaude-code:haiku\u{1b}[0m"), "{colored}");
    assert_eq!(crate::screen::without_color(&colored), reported("terminal", &run(), |_| {}));
    let ascii = reported("terminal", &run(), |options| options.style.unicode = false);
    assert!(ascii.is_ascii(), "{ascii}");
}

#[test]
fn arms_fit_every_width() {
    for width in [40, 50, 60, 79, 100] {
        let text = closing(&reported("terminal", &run(), |options| options.style.width = width));
        let arms = text.lines().skip_while(|line| !line.contains("checks")).take_while(|line| !line.is_empty());
        let widest = arms.map(|line| line.chars().count()).max();
        assert!(widest <= Some(width), "{width}: {text}");
        assert!(text.contains("difference") && text.contains("recall"), "{text}");
    }
}

/// Returns the trials, with `change` applied to each.
fn changed(change: impl Fn(&mut TrialRecord)) -> Vec<(TrialId, TrialRecord)> {
    let mut trials = trials();
    trials.iter_mut().for_each(|(_, record)| change(record));
    trials
}

fn in_plan(trials: &[(TrialId, TrialRecord)]) -> Vec<Envelope> {
    events_of(trials, &(0..trials.len()).collect::<Vec<_>>())
}

#[test]
fn each_skill_of_a_run_has_its_own_effect() {
    let mut trials = trials();
    for (id, record) in &mut trials {
        if *id.case == *"writes-notes" {
            id.suite = "notes".into();
            (record.suite, record.id) = (id.suite.clone(), (&*id).into());
        }
    }
    let text = reported("terminal", &in_plan(&trials), |options| options.style.width = 80);
    let lines: Vec<&str> = text.lines().skip_while(|line| !line.starts_with("  suite ")).take(7).collect();
    expect("arms.suites.txt", &(lines.join("\n") + "\n"));
    let page = reported("markdown", &in_plan(&trials), |_| {});
    assert!(page.contains("| `notes` | `opencode` | 100.0% | 75.0% | +25.0 points | 0% |\n"), "{page}");
    let document: Value = serde_json::from_str(&reported("json", &in_plan(&trials), |_| {})).unwrap();
    assert_eq!(document["deltas"][0]["by_suite"][1]["suite"], "notes");
}

#[test]
fn a_used_skill_causes_no_warning_and_a_single_arm_has_no_difference() {
    let used = changed(|record| record.triggered = record.triggered.map(|_| true));
    assert!(!reported("terminal", &in_plan(&used), |_| {}).contains("never used"));
    let alone: Vec<_> = trials().into_iter().filter(|(_, record)| !record.is_baseline()).collect();
    let text = reported("terminal", &in_plan(&alone), |_| {});
    assert!(text.contains("opencode never used the skill in 6 trials that expected it.\n"), "{text}");
    assert!(!text.contains("difference") && !text.contains("without"), "{text}");
}

#[test]
fn a_failing_baseline_does_not_fail_the_run_and_is_not_explained() {
    let trials = changed(|record| {
        record.outcome = if record.is_baseline() { Outcome::Failed } else { Outcome::Passed };
        let status = if record.is_baseline() { Status::Unmet } else { Status::Met };
        record.findings = vec![Finding { status, ..met("a", "file_exists", "") }];
    });
    let text = reported("terminal", &in_plan(&trials), |_| {});
    assert!(text.ends_with("\nPASS  24 trials passed\n"), "a long summary repeats the verdict: {text}");
    assert_eq!(text.matches("... ✗ failed").count(), 0, "{text}");
    let page = reported("markdown", &in_plan(&trials), |_| {});
    assert!(page.starts_with("## PASS: 24 trials passed\n") && !page.contains("Did not pass"), "{page}");
    let document: Value = serde_json::from_str(&reported("json", &in_plan(&trials), |_| {})).unwrap();
    let summary = &document["summary"];
    assert_eq!((&summary["trials"], &summary["baseline"], &summary["failed"]), (&json!(24), &json!(24), &json!(0)));
    assert_eq!(document["trials"].as_array().unwrap().len(), 48);
}

#[test]
fn the_json_report_contains_arms_deltas_and_triggering() {
    let document: Value = serde_json::from_str(&reported("json", &run(), |_| {})).unwrap();
    let arms: Vec<&str> = document["arms"].as_array().unwrap().iter().map(|arm| arm["arm"].as_str().unwrap()).collect();
    assert_eq!(
        arms,
        [
            "claude-code:haiku+with_skill",
            "claude-code:haiku+without_skill",
            "codex:gpt-5-mini+with_skill",
            "codex:gpt-5-mini+without_skill",
            "opencode+with_skill",
            "opencode+without_skill",
        ],
        "in the order of the run's agents, regardless of the plan's"
    );
    let codex = &document["arms"][2];
    assert_eq!((&codex["trials"], &codex["k"], &codex["pass_at_k"]), (&json!(8), &json!(2), &json!(0.75)));
    assert_eq!(codex["pass_at_k_curve"][0], json!({ "k": 1, "value": 0.625, "min": 0.625, "max": 0.625, "cases": 4 }));
    assert_eq!(codex["trigger"]["hits"], 5);
    assert_eq!(document["arms"][3]["trigger"], Value::Null);
    assert_eq!((&document["arms"][3]["broken"], &document["arms"][4]["cost_usd"]), (&json!(1), &Value::Null));

    let delta = &document["deltas"][0];
    assert_eq!(
        (&delta["agent"], &delta["model"], &delta["pairs"]),
        (&json!("claude-code"), &json!("haiku"), &json!(4))
    );
    assert_eq!((&delta["pass_rate"], &delta["least_p_value"]), (&json!(0.1875), &json!(0.125)));
    assert_eq!(delta["by_case"][0]["with"], json!({ "trials": 2, "passed": 2, "failed": 0, "pass_rate": 1.0 }));
    assert_eq!(delta["by_case"][0]["skill"], "more_passed", "two trials are too few to say that it helps");
    assert_eq!(document["deltas"][2]["cost_usd"], Value::Null);
    let trial = &document["trials"][1];
    assert_eq!((&trial["triggered"], &trial["should_trigger"]), (&json!(true), &json!(true)));
    let schema = report::report_schema();
    crate::documents::agree(&document, &schema, &schema, "report");
}

#[test]
fn the_cost_reported_by_the_agent_is_taken_from_the_record() {
    let trial = id("a", "fake", 1);
    let cost = |change: &dyn Fn(&mut TrialRecord)| {
        let mut record = passed(&trial);
        change(&mut record);
        report::trial_json(&record)["cost_usd_cli"].clone()
    };
    assert_eq!(cost(&|_| {}), 0.0123, "of a record that has the agent's figure only");
    assert_eq!(cost(&|record| record.cost_usd_cli = Some(0.5)), 0.5);
    assert_eq!(cost(&|record| record.cost_source = Some("pricing-file".into())), Value::Null);
}

#[test]
fn hooks_are_included_in_every_report() {
    let trials = trials();
    let mut events = in_plan(&trials);
    let hook = |hook, code| HookRecord {
        hook,
        command: "./seed | tee `log`".into(),
        exit_code: Some(code),
        timed_out: false,
        error: None,
        stdout: String::new(),
        stderr: "no\n".into(),
        duration_ms: 5,
    };
    let after = |events: &mut Vec<Envelope>, trial: Option<std::sync::Arc<str>>, hook| {
        let last = events.len() - 1;
        let event = Envelope { trial, event: Event::HookFinished(hook), ..events[last].clone() };
        events.insert(last, event);
    };
    after(&mut events, Some((&trials[1].0).into()), hook(HookKind::PostGrade, 0));
    after(&mut events, Some((&trials[0].0).into()), hook(HookKind::PostGrade, 0));
    after(&mut events, None, hook(HookKind::PostRun, 3));
    let document: Value = serde_json::from_str(&reported("json", &events, |_| {})).unwrap();
    assert_eq!(document["hooks"]["post_run"][0]["exit_code"], 3);
    assert_eq!(document["hooks"]["post_grade"][0]["trial"], trials[0].0.to_string(), "in the order of the plan");
    let schema = report::report_schema();
    crate::documents::agree(&document, &schema, &schema, "report");
    let text = reported("terminal", &events, |_| {});
    assert!(text.contains("  hook       post-run `./seed | tee `log``: exit code 3\n"), "{text}");
    let page = reported("markdown", &events, |_| {});
    assert!(page.contains("- Hook: post-run `` ./seed | tee `log` ``: exit code 3\n"), "{page}");
}

/// Returns a line without its code spans.
fn without_code(line: &str) -> String {
    let line = line.replace("\\`", "");
    let Some(start) = line.find('`') else { return line };
    let ticks = line[start..].len() - line[start..].trim_start_matches('`').len();
    let fence = "`".repeat(ticks);
    let inside = &line[start + ticks..];
    // The span ends at the next run of equally many backticks.
    let mut from = 0;
    while let Some(offset) = inside[from..].find(&fence).map(|offset| offset + from) {
        let run = inside[offset..].len() - inside[offset..].trim_start_matches('`').len();
        if run == ticks {
            return format!("{}{}", &line[..start], without_code(&inside[offset + run..]));
        }
        from = offset + run;
    }
    panic!("a code span has no end: {line}");
}

#[test]
fn nothing_an_agent_wrote_breaks_the_page() {
    let evil = "x | y `z` <script>alert(1)</script>\n\n# heading\n```\n</details> @all \u{1b}[2J";
    let trial = TrialId { case: evil.into(), ..id("a", "fake", 1) };
    let mut record = failed(&trial);
    record.errors = vec![evil.into()];
    for finding in &mut record.findings {
        (finding.id, finding.reason) = (evil.into(), evil.into());
        (finding.actual, finding.evidence) = (Some(evil.into()), vec![evil.into()]);
    }
    let mut story = RunBuilder::new(vec![trial.clone(), id("b", "fake", 1)], 1);
    story.starts(&trial, &[evil]).ends(record).over();
    let page = reported("markdown", &story.events, |options| options.show_evidence = true);
    assert!(!page.contains('\u{1b}'), "{page:?}");
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        let line = line.trim_start();
        let ticks = line.len() - line.trim_start_matches('`').len();
        match fence {
            Some(open) if line == open => fence = None,
            Some(_) => {}
            None if ticks >= 4 => fence = Some(&line[..ticks]),
            None => {
                let outside = without_code(line);
                assert!(!outside.contains("<script") && !outside.contains("</details> "), "{line}\n{page}");
                assert!(!line.starts_with("# "), "{line}");
                // The row must have as many cells as the table.
                if line.starts_with("| ") && line.contains("failed") {
                    assert_eq!(line.replace("\\|", "").matches('|').count(), 8, "{line}");
                }
            }
        }
    }
    assert_eq!(fence, None);
}

#[test]
fn compare_shows_arms_and_never_reports_a_baseline_as_a_regression() {
    let rows = |trials: &[(TrialId, TrialRecord)]| -> Vec<TrialRow> {
        trials.iter().map(|(_, record)| row(record, RUN)).collect()
    };
    let figures = |trials: &[(TrialId, TrialRecord)]| -> Vec<TrialFigures> {
        trials.iter().map(|(_, record)| TrialFigures::from_record(record)).collect()
    };
    let before = changed(|record| {
        if record.is_baseline() {
            record.outcome = Outcome::Passed;
        }
    });
    let after = changed(|record| {
        if record.is_baseline() {
            (record.outcome, record.reason) = (Outcome::Failed, Some("no".into()));
        } else if record.agent == "codex" {
            (record.outcome, record.findings) = (Outcome::Passed, vec![met("a", "file_exists", "")]);
        }
        record.duration_ms += 1_000;
    });
    let newer = SkillInfo { content_hash: "ab".repeat(32), version: Some("1.3".into()), ..skill() };
    let comparison = Comparison::of(&rows(&before), &rows(&after), THRESHOLD)
        .with_arms(&figures(&before), &figures(&after), &agents())
        .with_skills(&[skill()], &[newer]);
    assert!(!comparison.has_regressions());
    assert!(comparison.cases.iter().all(|case| !case.name.contains("without_skill")));
    let style = report::Style { width: 80, ..crate::plain() };
    let comparison = comparison.with_runs(&run_row("0192ffff-0000-7d3e-9b5a-3f0c6a1e2b44"), &run_row(RUN));
    expect("compare.arms.txt", &comparison.draw(&style));
    let json = comparison.to_json()["arms"].clone();
    assert_eq!((&json[0]["arm"], &json[1]["baseline"]), (&json!("claude-code:haiku+with_skill"), &json!(true)));
    assert_eq!(comparison.to_json()["skills"][0]["changed"], true);
}

#[test]
fn a_case_of_one_run_has_no_effect_on_the_shares_of_arms() {
    let row_of_arm = |before: &[TrialRecord], after: &[TrialRecord]| {
        let rows = |records: &[TrialRecord]| records.iter().map(|record| row(record, RUN)).collect::<Vec<_>>();
        let figures = |records: &[TrialRecord]| records.iter().map(TrialFigures::from_record).collect::<Vec<_>>();
        let comparison = Comparison::of(&rows(before), &rows(after), THRESHOLD);
        let text = comparison.with_arms(&figures(before), &figures(after), &agents()).draw(&crate::plain());
        let table = text.lines().skip_while(|line| !line.contains("checks met"));
        table.skip(1).find(|line| line.contains('%')).map(str::to_owned).expect("a row")
    };
    let [only, case] = ["only", "both"].map(|case| id(case, "fake", 1));
    let (before, after) = (failed(&case), passed(&case));
    assert_eq!(
        row_of_arm(&[passed(&only), before.clone()], std::slice::from_ref(&after)),
        row_of_arm(&[before], std::slice::from_ref(&after)),
        "the shares are of the cases of their difference"
    );
}

#[test]
fn trials_in_quarantine_are_not_in_the_figures_of_arms() {
    let mut details = report::Details::default();
    for (outcome, quarantine) in [(Outcome::Passed, None), (Outcome::Failed, Some(model::Quarantine::default()))] {
        details.add(&TrialRecord { outcome, quarantine, ..passed(&id("a", "fake", 1)) });
    }
    assert_eq!(details.figures.len(), 1);
}

#[test]
fn a_renamed_arm_is_compared_if_it_is_the_only_one() {
    let of = |arm: &str, outcome: Outcome| {
        let mut record = passed(&id("a", arm, 1));
        record.variant = Some("with_skill".into());
        record.outcome = outcome;
        TrialFigures::from_record(&record)
    };
    let compared = |before: &[TrialFigures], after: &[TrialFigures]| {
        let json = Comparison::of(&[], &[], THRESHOLD).with_arms(before, after, &[]).to_json()["arms"].clone();
        let sides = |arm: &Value| (arm["arm"].clone(), !arm["before"].is_null(), !arm["after"].is_null());
        json.as_array().unwrap().iter().map(sides).collect::<Vec<_>>()
    };
    let one = [of("x:haiku+with_skill", Outcome::Passed)];
    let two = [of("x:opus+with_skill", Outcome::Failed), of("x:sonnet+with_skill", Outcome::Passed)];
    assert_eq!(compared(&one, &two[..1]), [(json!("x:opus+with_skill"), true, true)]);
    assert_eq!(
        compared(&one, &two),
        [
            (json!("x:opus+with_skill"), false, true),
            (json!("x:sonnet+with_skill"), false, true),
            (json!("x:haiku+with_skill"), true, false),
        ],
        "it is unknown which of them it was"
    );
}

#[test]
fn status_shows_arms_budgets_hooks_and_side_effects_on_remotes() {
    let mut details = Details { agents: agents(), ..Details::default() };
    let mut rows = Vec::new();
    for (index, (_, mut record)) in trials().into_iter().enumerate() {
        if index == 1 || index == 3 {
            record.side_effects = vec![SideEffects {
                remote: "https://github.com/acme/notes.git".into(),
                branches: vec![format!("feature-{index}")],
                review_requests: vec![index as u64],
                ..SideEffects::default()
            }];
        }
        if index == 1 {
            let reason = "300 output tokens used, of a budget of 200";
            record.findings.push(Finding { implicit: true, status: Status::Unmet, ..met("budget", "budget", reason) });
        }
        details.add(&record);
        rows.push(row(&record, RUN));
    }
    details.hooks = vec![HookRecord {
        hook: HookKind::PreRun,
        command: "./seed".into(),
        exit_code: None,
        timed_out: true,
        error: None,
        stdout: String::new(),
        stderr: String::new(),
        duration_ms: 2_000,
    }];
    let run = RunRow { planned: 48, finished: 48, ..run_row(RUN) };
    let now = crate::run_builder::begin();
    let view = StatusView { run: &run, trials: &rows, live: &[], alive: false, now, all: false, details: &details };
    let style = report::Style { width: 80, ..crate::plain() };
    expect("status.arms.txt", &report::status(&view, &style));
}

#[test]
fn show_displays_skill_use_and_side_effects_on_remotes() {
    let (_, mut record) = trials().into_iter().find(|(_, record)| record.triggered == Some(false)).unwrap();
    record.side_effects = vec![SideEffects {
        remote: "https://github.com/acme/notes.git".into(),
        branches: vec!["a".into(), "b".into()],
        review_requests: vec![7],
        ..SideEffects::default()
    }];
    let text = report::show(&record, &[], RUN, &crate::plain());
    assert!(text.contains("skill used      no, and it should have been\n"), "{text}");
    assert!(text.contains("\n  https://github.com/acme/notes.git: branches a, b; review request 7\n"), "{text}");
}
