//! Suites with scripted agents, and one table of their results: `specimens/expected.yaml`. All outputs of a run are
//! compared with it: the exit code, the terminal, the JSON report, the event stream, the history, and the replay,
//! which must equal the live report byte for byte.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]
#![allow(clippy::print_stdout, reason = "a test says what it counted")]

#[path = "specimens_manual.rs"]
mod manual;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::panic::AssertUnwindSafe;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use testkit::{Project, Ran};

/// Expected result of a specimen. Whatever is omitted must be absent.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    /// Additional arguments of `run`.
    #[serde(default)]
    args: Vec<String>,
    exit: i32,
    /// One outcome, or one for each trial.
    outcome: Value,
    fault: Option<String>,
    ending: Option<String>,
    /// Part of the reason.
    #[serde(rename = "because")]
    reason: Option<String>,
    /// All findings in order, including implicit ones.
    #[serde(default)]
    findings: Map<String, Value>,
    #[serde(default)]
    warnings: Vec<String>,
    turns: u64,
    /// All calls in order; not checked if omitted.
    calls: Option<Vec<String>>,
    #[serde(default)]
    questions: Map<String, Value>,
    tokens: Option<u64>,
}

impl Expected {
    fn outcomes(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().expect("an outcome").to_owned();
        self.outcome.as_array().map_or_else(|| vec![text(&self.outcome)], |all| all.iter().map(text).collect())
    }
}

const SECRET: &str = "dummy-planted-key";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../specimens").canonicalize().unwrap()
}

fn table() -> BTreeMap<String, Expected> {
    let file = folder().join("expected.yaml");
    let node = suite::read_document(&file, "expected.yaml").unwrap_or_else(|problems| panic!("{problems:#?}"));
    serde_json::from_value(node.to_json()).unwrap_or_else(|error| panic!("expected.yaml: {error}"))
}

/// Returns a project that contains all specimens.
fn project() -> Project {
    let project = Project::new(env!("CARGO_BIN_EXE_trialrun")).env("ANTHROPIC_API_KEY", SECRET);
    copy(&folder(), &project.dir());
    project
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else if entry.path().extension().is_none_or(|extension| extension != "txt") {
            fs::copy(entry.path(), to).unwrap();
        }
    }
    let words = from.join("references/words.txt");
    if words.exists() {
        fs::copy(&words, to.join("references/words.txt")).unwrap();
    }
}

/// Returns the stems of the specimens, which are the files that are suites.
fn stems() -> BTreeSet<String> {
    let files = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let stems = files.filter_map(|file| file.strip_suffix(".yaml").map(str::to_owned));
    stems.filter(|stem| !stem.contains(['.', '_']) && !["trialrun", "expected"].contains(&stem.as_str())).collect()
}

#[test]
fn every_specimen_is_in_the_table_and_has_an_expected_text() {
    let table: BTreeSet<String> = table().into_keys().collect();
    assert_eq!(table, stems());
    let texts = fs::read_dir(folder()).unwrap().filter_map(|entry| {
        let path = entry.unwrap().path();
        let is_text = path.extension().is_some_and(|extension| extension == "txt");
        is_text.then(|| path.file_stem().unwrap().to_string_lossy().into_owned())
    });
    assert_eq!(texts.collect::<BTreeSet<_>>(), table, "TRIALRUN_UPDATE_EXPECTED=1 writes them");
}

#[test]
fn every_specimen_has_its_expected_result_in_every_output() {
    let table = table();
    all_hold(&table.iter().collect::<Vec<_>>(), hold);
}

/// Checks every specimen with `hold`, several at the same time.
#[track_caller]
fn all_hold<E: Sync>(specimens: &[(&String, &E)], hold: impl Fn(&str, &E) + Sync) {
    let (queue, wrong) = (Mutex::new(specimens.iter()), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some((stem, expected)) = { queue.lock().unwrap().next() } {
                    if std::panic::catch_unwind(AssertUnwindSafe(|| hold(stem, expected))).is_err() {
                        wrong.lock().unwrap().push(*stem);
                    }
                }
            });
        }
    });
    let wrong = wrong.into_inner().unwrap();
    println!("{} specimens, {} not as expected", specimens.len(), wrong.len());
    assert!(wrong.is_empty(), "not as expected: {wrong:?}");
}

/// Runs a specimen and checks all outputs.
fn hold(stem: &str, expected: &Expected) {
    let project = project();
    let suite = format!("{stem}.yaml");
    let mut arguments = vec!["run", &suite, "--report", "terminal"];
    arguments.extend(
        ["json=live.json", "jsonl=live.jsonl", "html=live.html"].iter().flat_map(|report| ["--report", report]),
    );
    arguments.extend(expected.args.iter().map(String::as_str));
    let live = project.run(&arguments);
    assert_eq!(live.code, expected.exit, "{stem}: {}", live.output());
    assert_eq!(live.err, "", "{stem}");
    let report: Value = serde_json::from_str(&project.read("live.json")).unwrap();

    holds_report(stem, expected, &report);
    holds_events(stem, &report, &project.read("live.jsonl"));
    holds_terminal(stem, expected, &live);
    holds_replay(stem, &project, &live);
    assert!(project.run(&["report", "--format", "html"]).exits(0).out == project.read("live.html"), "{stem}: html");
    holds_history(stem, &project, &report);
    assert_eq!(project.left_over(), Vec::<String>::new(), "{stem} leaves something behind");
}

fn holds_report(stem: &str, expected: &Expected, report: &Value) {
    let trials = report["trials"].as_array().unwrap();
    let outcomes: Vec<&str> = trials.iter().map(|trial| trial["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, expected.outcomes(), "{stem}: {trials:#?}");
    let summary = &report["summary"];
    for outcome in ["passed", "failed", "undecided", "broken", "skipped", "cancelled"] {
        let counted = outcomes.iter().filter(|one| **one == outcome).count();
        let quarantined = summary["quarantined"][outcome].as_u64().unwrap_or(0);
        assert_eq!(summary[outcome].as_u64().unwrap() + quarantined, counted as u64, "{stem}: {outcome}");
    }
    assert_eq!(summary["quarantined"] != json!({}), trials[0]["quarantine"].is_object(), "{stem}");
    let rate = |passed: u64, failed: u64| (passed + failed > 0).then(|| passed as f64 / (passed + failed) as f64);
    let is_known = ["undecided", "broken"].iter().all(|outcome| summary[outcome] == 0);
    let expected_rate = rate(summary["passed"].as_u64().unwrap(), summary["failed"].as_u64().unwrap());
    let expected_rate = expected_rate.filter(|_| is_known);
    assert_eq!(summary["pass_rate"].as_f64(), expected_rate, "{stem}");

    let trial = &trials[0];
    assert_eq!(trial["fault"].as_str(), expected.fault.as_deref(), "{stem}: component at fault");
    assert_eq!(trial["ending"]["kind"].as_str(), expected.ending.as_deref(), "{stem}: ending");
    match (&expected.reason, trial["because"].as_str()) {
        (Some(wanted), Some(because)) if because.contains(wanted.as_str()) => {}
        (None, None) => {}
        (wanted, because) => panic!("{stem}: because {because:?}, not {wanted:?}"),
    }
    let findings = trial["findings"].as_array().unwrap();
    let found: Vec<(&str, &Value)> =
        findings.iter().map(|found| (found["id"].as_str().unwrap(), &found["status"])).collect();
    let wanted: Vec<(&str, &Value)> = expected.findings.iter().map(|(id, status)| (id.as_str(), status)).collect();
    assert_eq!(found, wanted, "{stem}: {findings:#?}");
    assert_eq!(trial["warnings"], json!(expected.warnings), "{stem}");
    assert_eq!(trial["turn_count"], expected.turns, "{stem}: turns");
    assert_eq!(trial["usage"]["total"].as_u64(), expected.tokens, "{stem}: tokens");
    if let Some(wanted) = &expected.calls {
        let call = |call: &Value| {
            let failed = if call["is_error"] == true { " !err" } else { "" };
            format!("{}{failed}", call["name"].as_str().unwrap())
        };
        let calls: Vec<String> = trial["tool_calls"].as_array().unwrap().iter().map(call).collect();
        assert_eq!(&calls, wanted, "{stem}");
    }
    let questions = trial["questions"].as_array().unwrap();
    let asked: Vec<(&str, &Value)> =
        questions.iter().map(|asked| (asked["question"].as_str().unwrap(), &asked["answer"])).collect();
    let wanted: Vec<(&str, &Value)> = expected.questions.iter().map(|(text, answer)| (text.as_str(), answer)).collect();
    assert_eq!(asked, wanted, "{stem}");
    // A wrong total would be wrong in all outputs.
    if let (Some(score), Some(most)) = (trial["score"].as_f64(), trial["max_score"].as_f64()) {
        let weight = |wanted: fn(&Value) -> bool| -> f64 {
            findings
                .iter()
                .filter(|found| wanted(&found["status"]))
                .map(|found| found["weight"].as_f64().unwrap())
                .sum()
        };
        assert_eq!(score, weight(|status| status == "met"), "{stem}: score");
        assert_eq!(most, weight(|status| status != "undecided"), "{stem}: maximum score");
    }
}

/// Checks that the stream is numbered without gaps, is complete, and has the same outcomes as the report.
fn holds_events(stem: &str, report: &Value, stream: &str) {
    let events: Vec<Value> = stream.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>(), "{stem}");
    assert!(events.iter().all(|event| event["run"] == report["run"]["id"]), "{stem}");
    let of = |kind: &str| events.iter().filter(|event| event["event"]["type"] == kind).collect::<Vec<_>>();
    assert_eq!(events[0]["event"]["type"], "run_started", "{stem}");
    assert_eq!(events.last().unwrap()["event"]["type"], "run_finished", "{stem}");
    assert_eq!(of("run_finished")[0]["event"]["summary"]["passed"], report["summary"]["passed"], "{stem}");
    let finished: BTreeMap<&str, &Value> = of("trial_finished")
        .into_iter()
        .map(|event| (event["trial"].as_str().unwrap(), &event["event"]["outcome"]))
        .collect();
    let reported: BTreeMap<&str, &Value> = report["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| (trial["id"].as_str().unwrap(), &trial["outcome"]))
        .collect();
    assert_eq!(finished, reported, "{stem}");
    assert_eq!(of("trial_finished").len(), reported.len(), "{stem}");
}

fn holds_terminal(stem: &str, expected: &Expected, live: &Ran) {
    let marks = [("passed", "✓"), ("failed", "✗"), ("undecided", "?"), ("broken", "!")];
    // A single trial is shown as it happens; with several, each has a line.
    let is_single = expected.outcomes().len() == 1;
    let says = |line: &str, mark: &str, word: &str| match is_single {
        true => line.contains(&format!("... {mark} {word}")),
        false => line.starts_with(&format!("{mark} {word}")),
    };
    let verdict =
        |line: &str| marks.iter().find(|(outcome, mark)| says(line, mark, outcome) || says(line, mark, "passed,"));
    let outcomes: Vec<&str> = live.out.lines().filter_map(verdict).map(|(outcome, _)| *outcome).collect();
    assert_eq!(outcomes, expected.outcomes(), "{stem}: {}", live.out);
    assert!(!live.out.contains('\u{1b}'), "{stem}: colours without a terminal");

    let text = timeless(&live.out);
    let file = folder().join(format!("{stem}.txt"));
    if std::env::var_os("TRIALRUN_UPDATE_EXPECTED").is_some() {
        fs::write(&file, &text).unwrap();
        return;
    }
    let known = fs::read_to_string(&file).unwrap_or_default();
    assert!(known == text, "{stem}.txt is not as expected.\n--- expected\n{known}\n--- actual\n{text}");
}

/// Returns `text` without the parts that differ between runs: times, ids, paths.
fn timeless(text: &str) -> String {
    let id = regex::Regex::new(r"\b[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\b").unwrap();
    let sandbox = regex::Regex::new(r"/[^\s`]*/trialrun-([a-z-]+)-\d+-[0-9a-f]+\b").unwrap();
    let clock = regex::Regex::new(r"(?m)^ +(?:\d+ms|\d+\.\ds|\d+m\d\ds) ").unwrap();
    let duration = regex::Regex::new(r"(?m)^([✓✗?!] [a-z ]*[a-z]) +(?:\d+ms|\d+\.\ds|\d+m\d\ds)  ").unwrap();
    let time = regex::Regex::new(r"\b(?:\d+ms|\d+\.\ds|\d+m\d\ds)\b").unwrap();
    let waited = regex::Regex::new(r"a request for \d+\.\d s").unwrap();
    let text = text.replace(env!("CARGO_PKG_VERSION"), "VERSION");
    let text = id.replace_all(&text, "RUN");
    let text = sandbox.replace_all(&text, "SANDBOX-$1");
    let text = waited.replace_all(&text, "a request for TIME");
    let text = clock.replace_all(&text, "   TIME ");
    let text = duration.replace_all(&text, "$1  TIME  ");
    time.replace_all(&text, "TIME").into_owned()
}

fn holds_replay(stem: &str, project: &Project, live: &Ran) {
    for (format, written) in
        [("json", project.read("live.json")), ("jsonl", project.read("live.jsonl")), ("terminal", live.out.clone())]
    {
        let replayed = project.run(&["report", "latest", "--format", format]).exits(0);
        assert!(
            replayed.out == written,
            "{stem}: the replay as {format} differs: {}\n--- live\n{written}",
            replayed.output()
        );
    }
}

fn holds_history(stem: &str, project: &Project, report: &Value) {
    let history = project.run(&["history", "--cases", "--json"]).exits(0).json();
    let outcomes = |value: &Value, key: &str| -> BTreeMap<String, (Value, Value)> {
        let rows = value.as_array().unwrap().iter();
        rows.map(|row| {
            let tokens = if key == "trial" { row["tokensTotal"].clone() } else { row["usage"]["total"].clone() };
            (row[key].as_str().unwrap().to_owned(), (row["outcome"].clone(), tokens))
        })
        .collect()
    };
    assert_eq!(outcomes(&history, "trial"), outcomes(&report["trials"], "id"), "{stem}");
    let status = project.run(&["status"]).exits(0);
    let all = report["trials"].as_array().unwrap().len();
    assert!(status.out.contains(&format!("{all} of {all} trial")), "{stem}: {}", status.output());
}

#[test]
fn parallel_and_sequential_runs_have_the_same_results() {
    let project = project();
    let table = table();
    let plain: Vec<(&String, &Expected)> = table.iter().filter(|(_, expected)| expected.args.is_empty()).collect();
    let suites: Vec<String> = plain.iter().map(|(stem, _)| format!("{stem}.yaml")).collect();
    let mut arguments = vec!["run", "--jobs", "4", "--report", "terminal", "--report", "json=live.json"];
    arguments.extend(suites.iter().map(String::as_str));
    let live = project.run(&arguments).exits(1);
    let report: Value = serde_json::from_str(&project.read("live.json")).unwrap();
    let outcomes: Vec<(&str, &str)> = report["trials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|trial| (trial["case"].as_str().unwrap(), trial["outcome"].as_str().unwrap()))
        .collect();
    let wanted: Vec<(&str, &str)> =
        plain.iter().map(|(stem, expected)| (stem.as_str(), expected.outcome.as_str().unwrap())).collect();
    assert_eq!(outcomes, wanted);
    for (stem, outcome) in wanted {
        let name = format!("{stem}::{stem}");
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let lines: Vec<Vec<String>> = live.out.lines().map(words).collect();
        let count = |is: &dyn Fn(&[String]) -> bool| lines.iter().filter(|line| is(line)).count();
        let ends = count(&|line| line.get(1).is_some_and(|word| word == outcome) && line.get(3) == Some(&name));
        let says = |word: &str| word == outcome || (outcome == "undecided" && word == "passed,");
        let reasons = count(&|line| line.first() == Some(&name) && line.get(3).is_some_and(|word| says(word)));
        assert_eq!(ends, 1, "{stem}: {}", live.out);
        assert_eq!(reasons, usize::from(outcome != "passed"), "{stem}: {}", live.out);
    }
    assert_eq!(project.run(&["report", "latest", "--format", "json"]).out, project.read("live.json"));
    assert_eq!(project.run(&["report"]).out, live.out);
    assert_eq!(project.left_over(), Vec::<String>::new());
}

#[test]
fn repetitions_show_how_often_a_case_passes() {
    let project = project();
    let report = project.report(&["repeated.yaml", "--agent", "recorded:repeated.answers.jsonl"], 1);
    let arm = &report["arms"][0];
    let rate = |key: &str| arm[key].as_f64().unwrap();
    assert_eq!((arm["trials"].as_u64(), arm["k"].as_u64()), (Some(4), Some(4)));
    assert_eq!((rate("full_pass_rate"), rate("pass_at_k"), rate("pass_hat_k")), (0.75, 1.0, 0.0));
    // Half of the third trial's assertions are unmet; implicit findings count only if they are unmet.
    assert!((arm["pass_rate"]["mean"].as_f64().unwrap() - 7.0 / 8.0).abs() < 1e-9, "{arm:#}");
    assert_eq!(report["summary"]["trials_with_cost"], 3);
    assert!((report["summary"]["cost_usd"].as_f64().unwrap() - 0.004).abs() < 1e-9);
}

#[test]
fn a_secret_written_into_a_file_appears_nowhere() {
    let project = project();
    let fake = |id: &str, rest: &str| {
        project.write(&format!("{id}.yaml"), &format!("scenario: {id}\nsystem_prompt: x\nagent: fake\n{rest}"));
    };
    let asserts = format!("assertions: [{{ id: a, type: output_contains, pattern: \"not {SECRET}\" }}]\n");
    fake("said", &format!("user_prompt: \"The key is {SECRET}.\"\n{asserts}"));
    fake("gave", &format!("user_prompt: \"!error bad key {SECRET}\"\n"));
    fake("built", &format!("fixtures: {{ setup_commands: [\"echo {SECRET} >&2; exit 1\"] }}\n"));
    for suite in ["said.yaml", "gave.yaml", "built.yaml"] {
        let reports = ["--report", "terminal", "--report", "json=live.json", "--report", "jsonl=live.jsonl"];
        let ran = project.run(&[&["run", suite][..], &reports].concat());
        for (source, text) in
            [("terminal", ran.out), ("json", project.read("live.json")), ("jsonl", project.read("live.jsonl"))]
        {
            assert!(text.contains("[masked]"), "{suite}: {source}: {text}");
            assert!(!text.contains(SECRET), "{suite}: {source}: {text}");
        }
    }
}

#[test]
fn a_secret_from_the_machine_appears_nowhere() {
    let project = project();
    let live = project
        .run(&[
            "run",
            "secret.yaml",
            "--report",
            "terminal",
            "--report",
            "json=live.json",
            "--report",
            "jsonl=live.jsonl",
        ])
        .exits(1);
    let mut texts = vec![("the terminal".to_owned(), live.out), ("the error output".to_owned(), live.err)];
    for arguments in [
        &["show", "secret"][..],
        &["show", "secret", "--json"],
        &["status"],
        &["history", "--cases", "--json"],
        &["config", "--json"],
    ] {
        let ran = project.run(arguments).exits(0);
        texts.push((arguments.join(" "), ran.out + &ran.err));
    }
    let masked = texts.iter().filter(|(_, text)| text.contains("[masked]")).count();
    assert!(masked >= 3, "the agent did not even print it");
    for (source, text) in texts {
        assert!(!text.contains(SECRET), "{source}: {text}");
    }
    let mut files = vec![project.dir().join("live.json"), project.dir().join("live.jsonl")];
    files.extend(fs::read_dir(project.dir().join(".trialrun")).unwrap().map(|entry| entry.unwrap().path()));
    assert!(files.iter().any(|file| file.ends_with("runs.db")));
    for file in files {
        let bytes = fs::read(&file).unwrap();
        let found = bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!found, "{}", file.display());
    }
    // The events are compressed in the record, so they are checked in a replay.
    let replayed = project.run(&["report", "latest", "--format", "jsonl"]).exits(0);
    assert!(replayed.out.contains("[masked]") && !replayed.out.contains(SECRET));
}
