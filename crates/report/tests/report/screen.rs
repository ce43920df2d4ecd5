use model::{Diagnostic, Envelope, Event, Source, Span, Step};
use report::Style;

use crate::run_builder::{RunBuilder, broken, failed, id, many_jobs, one_job, passed};
use crate::{Paper, expect, plain, reported};

#[test]
fn a_single_job_is_shown_live() {
    expect("stream.txt", &reported("terminal", &one_job().events, |options| options.style.interactive = true));
}

#[test]
fn a_single_job_is_shown_in_ascii_on_request() {
    let text = reported("terminal", &one_job().events, |options| {
        options.style = Style { interactive: true, unicode: false, ..plain() };
    });
    assert!(text.is_ascii(), "{text}");
    expect("stream.ascii.txt", &text);
}

#[test]
fn many_jobs_have_one_line_each_and_failures_come_last() {
    expect("lines.txt", &reported("terminal", &many_jobs().events, |_| {}));
}

/// Returns the events of five repetitions in two jobs; those whose numbers are in `failures` failed.
fn repeated(failures: &[u64], change: impl Fn(&mut model::TrialRecord)) -> Vec<Envelope> {
    let trials: Vec<_> = (1..=5).map(|repetition| id("asks", "fake", repetition)).collect();
    let mut story = RunBuilder::new(trials.clone(), 2);
    for trial in &trials {
        story.starts(trial, &["hi"]);
        let mut record = if failures.contains(&trial.repetition) { failed(trial) } else { passed(trial) };
        change(&mut record);
        story.ends(record);
    }
    story.over();
    story.events
}

#[test]
fn repetitions_that_fail_the_same_way_are_shown_once() {
    let blocks = |text: &str| text.matches("... ✗ failed").count();
    let number = |record: &mut model::TrialRecord| record.findings[1].reason = format!("{}", record.repetition);
    let text = reported("terminal", &repeated(&[1, 2, 3, 4, 5], number), |_| {});
    assert_eq!(blocks(&text), 1, "{text}");
    assert!(text.contains("\n    5 of 5 repetitions failed the same way, also #2, #3, #4, #5\n"), "{text}");
    assert!(text.contains("0-43%"), "an interval that begins at 0 is shown as such: {text}");

    let text = reported("terminal", &repeated(&[2, 4], number), |_| {});
    assert!(text.contains("\n    2 of 5 repetitions failed the same way, also #4\n"), "{text}");
    let text = reported("terminal", &repeated(&[3], number), |_| {});
    assert!(!text.contains("the same way"), "{text}");

    let differ = |record: &mut model::TrialRecord| record.findings[0].id = format!("f{}", record.repetition);
    assert_eq!(blocks(&reported("terminal", &repeated(&[1, 2], differ), |_| {})), 2);
    let evidence = reported("terminal", &repeated(&[1, 2], number), |options| options.show_evidence = true);
    assert_eq!(blocks(&evidence), 2, "each has its own evidence");
}

#[test]
fn calls_that_an_agent_does_not_report_are_not_counted_as_none() {
    let footer = |is_unreported: bool, keeps_calls: bool| {
        let events = repeated(&[1, 2, 3, 4, 5], |record| {
            record.calls_unreported = is_unreported;
            record.tool_calls.retain(|_| keeps_calls);
        });
        let text = reported("terminal", &events, |_| {});
        text.lines().find(|line| line.starts_with("    turns 4")).map(|line| line.to_owned()).unwrap_or_default()
    };
    assert!(footer(true, false).contains(" · tools not reported · "), "{}", footer(true, false));
    assert!(footer(true, true).contains(" · at least 1 tool · "), "{}", footer(true, true));
    assert!(footer(false, false).contains(" · 0 tools · "), "{}", footer(false, false));
}

#[test]
fn trials_of_all_cases_that_broke_for_one_reason_are_shown_once() {
    let trials = ["a", "b", "c"].map(|case| id(case, "fake", 1));
    let mut story = RunBuilder::new(trials.to_vec(), 2);
    for trial in &trials {
        story.starts(trial, &["hi"]).tell(Event::TrialRetried { reason: "nobody listens".into() });
        story.ends(broken(trial));
    }
    story.over();
    let text = reported("terminal", &story.events, |_| {});
    let (trials, summary) = text.split_once('─').unwrap();
    assert_eq!(trials.matches("the model provider answered 529 (overloaded) five times").count(), 1, "{text}");
    assert!(summary.contains("(broken: the model provider answered 529 (overloaded)\n  five times)\n"), "{text}");
    assert!(text.contains("\n    2 more trials broke for the same reason: commit::b, commit::c\n"), "{text}");
    assert_eq!(text.matches("nobody listens").count(), 1, "{text}");
}

#[test]
fn the_last_line_can_be_shown_alone() {
    let paper = Paper::default();
    let mut reporter = report::last_line(report::ReporterOptions::new(paper.writer(), plain()));
    many_jobs().events.iter().for_each(|event| reporter.event(event).unwrap());
    reporter.finish().unwrap();
    let whole = reported("terminal", &many_jobs().events, |_| {});
    let line = paper.text();
    assert!(line.lines().count() == 1 && whole.contains(&format!("\n{line}")), "{line}{whole}");
}

#[test]
fn the_stream_shows_waits_and_the_size_of_omitted_results() {
    let trial = id("a", "fake", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    story
        .starts(&trial, &["hi"])
        .calls("1", "Bash", serde_json::json!({ "command": "ls" }))
        .tell(Event::Idle { idle_ms: 30_000, on: "Bash".into() })
        .answers("1", "\none\ntwo\n\nthree\n", false)
        .tell(Event::Idle { idle_ms: 30_000, on: "model".into() })
        .calls("2", "Bash", serde_json::json!({ "command": "ls" }))
        .answers("2", "bad\nworse", true);
    let text = reported("terminal", &story.events, |_| {});
    for line in ["waiting for Bash\n", "ok Bash: one (+3 lines)\n", "waiting for the model\n", "Bash: bad (+1 line)\n"]
    {
        assert!(text.contains(line), "{line}{text}");
    }
}

#[test]
fn quiet_shows_failures_and_the_summary() {
    expect("quiet.txt", &reported("terminal", &one_job().events, |options| options.quiet = true));
}

#[test]
fn colour_changes_nothing_but_colour() {
    for events in [one_job().events, many_jobs().events] {
        let plain = reported("terminal", &events, |_| {});
        let colored = reported("terminal", &events, |options| options.style.color = true);
        assert_ne!(plain, colored);
        assert_eq!(plain, without_color(&colored));
    }
}

pub fn without_color(text: &str) -> String {
    let mut plain = String::new();
    let mut parts = text.split("\u{1b}[");
    plain.push_str(parts.next().unwrap());
    for part in parts {
        plain.push_str(part.split_once('m').unwrap().1);
    }
    plain
}

#[test]
fn a_replayed_run_looks_like_a_live_one() {
    for events in [one_job().events, many_jobs().events, crate::fixture::file().events] {
        let stored: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
        let replayed: Vec<Envelope> = stored.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        for kind in report::REPORTS.iter().filter(|kind| !kind.is_directory()) {
            let (live, again) = (reported(kind.name, &events, |_| {}), reported(kind.name, &replayed, |_| {}));
            assert!(!live.is_empty());
            assert_eq!(live, again, "{}", kind.name);
        }
    }
}

#[test]
fn replies_of_code_scenarios_are_shown_from_the_first_message() {
    let trial = id("a", "fake", 1);
    for prompts in [&[][..], &["written"]] {
        let mut story = RunBuilder::new(vec![trial.clone()], 1);
        story.after(5).starts(&trial, prompts);
        let texts = prompts.iter().map(|text| (*text).to_owned()).chain(["made up".into(), "the rest".into()]);
        for (index, text) in texts.enumerate() {
            story.step(Step::UserMessage { index: index + 1, of: (index + 1).max(prompts.len()), text });
        }
        story.ends(passed(&trial)).over();
        let text = reported("terminal", &story.events, |_| {});
        let first = prompts.len() + 1;
        for line in [format!("[step {first}] \"made up\""), format!("[step {}] \"the rest\"", first + 1)] {
            assert!(text.contains(&line), "{line}: {text}");
        }
        assert_eq!(text.contains("prompt: \"written\""), !prompts.is_empty());
    }
}

#[test]
fn judgements_are_shown_with_quotes_if_evidence_is_requested() {
    let trial = id("a", "fake", 1);
    let mut record = passed(&trial);
    record.findings.truncate(1);
    record.findings[0].judged = true;
    record.findings[0].evidence = vec!["met: the agent must: be kind; \"my dear\"".into()];
    for jobs in [1, 2] {
        let mut story = RunBuilder::new(vec![trial.clone()], jobs);
        story.starts(&trial, &["hi"]).ends(record.clone()).over();
        let text = |evidence: bool| reported("terminal", &story.events, |options| options.show_evidence = evidence);
        assert!(text(true).contains("= evidence: met: the agent must: be kind; \"my dear\""), "{}", text(true));
        assert!(!text(false).contains("my dear"));
    }
}

#[test]
fn an_interrupted_run_is_incomplete() {
    let mut events = many_jobs().events;
    let cut = events.iter().position(|event| matches!(event.event, Event::TrialFinished(_))).unwrap();
    events.truncate(cut + 1);
    let text = reported("terminal", &events, |_| {});
    assert!(text.contains("trials     1 of 4 planned"), "{text}");
    assert!(text.contains("─\nINCOMPLETE  3 planned trials not finished, 1 passed, none failed\n"), "{text}");
}

#[test]
fn output_fits_a_narrow_terminal() {
    for width in [0, 1, 40, 60] {
        let text = reported("terminal", &one_job().events, |options| options.style.width = width);
        assert!(text.contains("✗ failed"), "{text}");
    }
}

#[test]
fn the_summary_of_a_run_in_which_all_trials_pass_begins_with_pass() {
    let trial = id("a", "fake", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    story.after(5).starts(&trial, &["hi"]).ends(passed(&trial)).over();
    let text = reported("terminal", &story.events, |_| {});
    assert!(text.contains("─\nPASS  1 trial passed\n  trials     1\n"), "{text}");
    assert_eq!(text.matches("PASS").count(), 1, "{text}");
}

#[test]
fn nothing_an_agent_wrote_moves_the_cursor() {
    let trial = id("a", "fake", 1);
    let mut story = RunBuilder::new(vec![trial.clone()], 1);
    let mut record = passed(&trial);
    let evil = "\u{1b}[2J\u{1b}]0;x\u{7}\u{8}evil\u{9b}1A";
    record.reason = Some(evil.into());
    record.outcome = model::Outcome::Failed;
    record.findings[0].reason = evil.into();
    record.findings[0].status = model::Status::Unmet;
    record.findings[0].actual = Some(evil.into());
    record.findings[0].evidence = vec![evil.into()];
    record.findings[0].captures =
        vec![model::Capture { field: evil.into(), value: evil.into(), shown_chars: 100, step: None }];
    record.errors = vec![evil.into()];
    story
        .starts(&trial, &[evil])
        .says(evil)
        .calls("c", evil, serde_json::json!({ "command": evil }))
        .answers("c", evil, true)
        .asks("q", evil, Some(evil))
        .ends(record.clone())
        .over();
    let mut texts = vec![reported("terminal", &story.events, |_| {})];
    texts.push(report::show(&record, &story.events, "r", &plain()));
    for text in texts {
        assert!(text.contains("evil"));
        let bad = text.chars().find(|c| c.is_control() && *c != '\n');
        assert_eq!(bad, None, "{text:?}");
    }
}

#[test]
fn a_table_is_redrawn_in_place_and_only_finished_trials_remain() {
    let (out, live) = (Paper::default(), Paper::default());
    let style = Style { interactive: true, ..plain() };
    let mut options = report::ReporterOptions::new(out.writer(), style);
    options.live = Some(live.writer());
    let mut reporter = report::find("terminal").unwrap().to_stream(options).unwrap();
    let events = many_jobs().events;
    for event in &events {
        reporter.event(event).unwrap();
    }
    reporter.finish().unwrap();
    assert_eq!(out.text().replace('\u{1b}', ""), out.text(), "only plain text remains");
    // The table shows the running trials, so there are no lines for their starts.
    let without_table = reported("terminal", &events, |_| {});
    let lines = without_table.lines().filter(|line| !line.starts_with("· started "));
    let without_starts: String = lines.map(|line| format!("{line}\n")).collect();
    assert_eq!(out.text(), without_starts, "the table is removed");
    assert!(live.text().contains("0/4 trials · 1 running"), "{:?}", live.text());
    let last = "3/4 trials · 3 passed · 1 running";
    assert!(live.text().contains(last), "{:?}", live.text());
    assert!(live.text().contains('\u{1b}'));
    let frame = live.text();
    let frame = frame.split("running").nth(1).unwrap().trim_start_matches(' ');
    assert!(frame.starts_with('\r'), "the echo of Ctrl-C does not break the last line: {frame:?}");
}

/// Returns the lines about the progress that the terminal report writes at each of the `moments`. A moment is a number
/// of events and the time in seconds since the start of the run.
fn heartbeats(events: &[Envelope], moments: &[(usize, i64)], quiet: bool) -> Vec<String> {
    let heartbeat = Paper::default();
    let mut options = report::ReporterOptions::new(Paper::default().writer(), plain());
    options.heartbeat = Some(heartbeat.writer());
    options.quiet = quiet;
    let mut reporter = report::find("terminal").unwrap().to_stream(options).unwrap();
    let mut seen = 0;
    for (until, second) in moments {
        events[seen..*until].iter().for_each(|event| reporter.event(event).unwrap());
        seen = *until;
        reporter.tick(crate::run_builder::begin() + jiff::SignedDuration::from_secs(*second)).unwrap();
    }
    heartbeat.text().lines().map(str::to_owned).collect()
}

#[test]
fn the_progress_of_a_run_is_written_once_a_minute() {
    let trials: Vec<_> = (1..=12).map(|repetition| id("asks", "fake", repetition)).collect();
    let mut story = RunBuilder::new(trials.clone(), 2);
    let took = |record: model::TrialRecord| model::TrialRecord { duration_ms: 40_000, ..record };
    story.starts(&trials[0], &["hi"]).starts(&trials[1], &["hi"]);
    story.calls("1", "Bash", serde_json::json!({ "command": "npm test" })).about(&trials[0]);
    story.after(40_000).ends(took(failed(&trials[0]))).after(20_000).starts(&trials[2], &["hi"]);
    let events = &story.events;
    let moments = [(3, 0), (3, 59), (3, 60), (4, 64), (events.len(), 119), (events.len(), 120), (events.len(), 600)];
    assert_eq!(
        heartbeats(events, &moments, false),
        [
            "… 0/12 trials · 2 running · longest: commit::asks#1 1m, commit::asks#2 1m",
            "… 1/12 trials · 1 failed · 2 running · $0.0123 · about 3m left · 1,290 tokens · longest: commit::asks#2 2m \
             (Bash \"npm test\"), commit::asks#3 1m",
            "… 1/12 trials · 1 failed · 2 running · $0.0123 · about 3m left · 1,290 tokens · longest: commit::asks#2 10m \
             (Bash \"npm test\"), commit::asks#3 9m",
        ]
    );
    assert_eq!(heartbeats(events, &moments, true), [""; 0], "quiet");
    let mut over = story.events.clone();
    over.extend(RunBuilder::new(Vec::new(), 1).over().events.pop());
    assert_eq!(heartbeats(&over, &[(over.len(), 0), (over.len(), 600)], false), [""; 0], "over");
}

#[test]
fn a_single_job_shows_its_progress_between_trials_every_ten_seconds() {
    let trials: Vec<_> = (1..=4).map(|repetition| id("asks", "fake", repetition)).collect();
    let mut story = RunBuilder::new(trials.clone(), 1);
    for trial in &trials {
        story.starts(trial, &["hi"]).after(6_000).ends(passed(trial));
    }
    story.over();
    let text = reported("terminal", &story.events, |options| options.style.interactive = true);
    let shown: Vec<&str> = text.lines().filter(|line| line.contains("/4 trials")).collect();
    assert_eq!(shown, ["  2/4 trials · 2 passed · $0.0246 · about 7s left · 2,580 tokens"]);
}

#[test]
fn the_cost_of_all_attempts_counts_and_an_unknown_part_is_marked() {
    let trials: Vec<_> = (1..=3).map(|repetition| id("asks", "fake", repetition)).collect();
    let mut story = RunBuilder::new(trials.clone(), 2);
    let mut unknown = passed(&trials[0]);
    unknown.attempts.iter_mut().for_each(|attempt| (attempt.cost_usd, attempt.usage) = (None, None));
    story.ends(model::TrialRecord { cost_usd: None, usage: None, ..unknown });
    assert_eq!(
        heartbeats(&story.events, &[(2, 0), (2, 60)], false),
        ["… 1/3 trials · 1 passed · cost unknown · about 4s left"]
    );
    let mut retried = passed(&trials[1]);
    retried.attempts.push(retried.attempts[0].clone());
    story.ends(retried);
    let lines = heartbeats(&story.events, &[(3, 0), (3, 60)], false);
    assert_eq!(lines, ["… 2/3 trials · 2 passed · $0.0246+ · about 4s left · 2,580+ tokens"]);
}

#[test]
fn the_first_of_many_failures_are_drawn_and_the_rest_counted() {
    let trials: Vec<_> = (1..=40).map(|number| id(&format!("case-{number:02}"), "fake", 1)).collect();
    let mut story = RunBuilder::new(trials.clone(), 2);
    for (index, trial) in trials.iter().enumerate() {
        story.ends(if index % 2 == 0 { crate::run_builder::broken(trial) } else { failed(trial) });
    }
    story.over();
    let text = reported("terminal", &story.events, |_| {});
    let drawn: Vec<&str> = text.lines().filter(|line| line.contains("... ")).collect();
    assert_eq!(drawn.len(), 20, "{text}");
    assert!(drawn.iter().all(|line| line.ends_with("✗ failed")), "failed trials are more important: {drawn:?}");
    assert!(drawn[0].contains("case-02") && drawn[19].contains("case-40"), "{drawn:?}");
    assert!(text.contains("\n  20 more trials did not pass: `trialrun status --all` lists them"), "{text}");
    let evidence = reported("terminal", &story.events, |options| options.show_evidence = true);
    assert_eq!(evidence.lines().filter(|line| line.contains("... ")).count(), 40, "all are drawn with evidence");
}

#[test]
fn problems_are_shown_in_the_users_source_in_order() {
    let source =
        Source::new("tests/commit.yaml", "scenario: commit\nasserions:\n  - id: é-one\n    type: tool_caled\n");
    let at = |text: &str| {
        let start = source.text.find(text).unwrap();
        source.excerpt(Span::new(start, start + text.len()))
    };
    let kind = Diagnostic::error("unknown assertion `tool_caled`")
        .at(at("tool_caled"))
        .label("no such assertion")
        .suggest(Some("tool_called"));
    let problems = [
        kind.clone(),
        Diagnostic::warning("id `é-one` is not ASCII").at(at("é-one")),
        Diagnostic::error("unknown key `asserions`").at(at("asserions")).suggest(Some("assertions")).help("see docs"),
        Diagnostic::error("cannot read the file").at(model::Excerpt::of_file("a/missing.yaml")),
        Diagnostic::error("no case is called `x`").help("there are: a, b"),
        kind,
    ];
    let mut text = report::diagnostics(&problems, &plain());
    text.push_str(&report::tally(&problems, &plain()));
    expect("diagnostics.txt", &text);
    assert_eq!(report::diagnostics(&[], &plain()), "");
    assert_eq!(report::tally(&problems[..1], &plain()), "");
}
