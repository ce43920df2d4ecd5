//! Takes evidence away from runs at random and reports them again. Bounds may only get wider, they must contain the
//! values of the complete run, no verdict may improve, and all formats must count the same trials.

use std::collections::BTreeMap;

use model::statistics::Chance;
use model::{
    AttemptRecord, Ending, Envelope, Event, Finding, Gate, Outcome, OutcomeRule, Status, Summary, TrialId, TrialRecord,
    TrialRow, WITH_SKILL, WITHOUT_SKILL,
};
use report::{Comparison, THRESHOLD};
use serde_json::{Value, json};

use crate::reported;
use crate::run_builder::{RunBuilder, id, met, passed, row};

const CASES: [&str; 4] = ["asks", "writes", "pushes", "reads"];
const REPETITIONS: u64 = 8;
/// Number of runs from which evidence is taken away, and how often from each.
const ROUNDS: (u64, usize) = (4, 3);

/// Evidence that a trial may lack.
#[derive(Debug, Clone, Copy)]
enum Lost {
    Judge,
    Calls,
    Reply,
    Network,
    Usage,
    Price,
    /// Everything, because the trial broke.
    Trial,
    /// The attempts after the first one.
    Rerun,
}

const LOSSES: [Lost; 8] =
    [Lost::Judge, Lost::Calls, Lost::Reply, Lost::Network, Lost::Usage, Lost::Price, Lost::Trial, Lost::Rerun];

/// A trial with complete evidence, and its failed first attempt if it was run again.
struct CompleteTrial {
    id: TrialId,
    record: TrialRecord,
    first: Option<TrialRecord>,
}

/// Returns the findings of an attempt. Each assertion needs other evidence.
fn findings(holds: [bool; 5]) -> Vec<Finding> {
    let kinds = ["contains", "tool_called", "quality", "no_egress", "budget"];
    let finding = |(kind, holds): (&str, bool)| Finding {
        status: if holds { Status::Met } else { Status::Unmet },
        score: Some(f64::from(u8::from(holds))),
        judged: kind == "quality",
        implicit: kind == "budget",
        ..met(kind, kind, "it was looked at")
    };
    kinds.into_iter().zip(holds).map(finding).collect()
}

/// Computes everything that follows from the findings.
fn grade(record: &mut TrialRecord) {
    record.outcome = Outcome::of(&record.findings, &Ending::Finished, &OutcomeRule { scoring: None, not: false });
    record.reason = (record.outcome != Outcome::Passed).then(|| "an assertion".to_owned());
    let scored = || record.findings.iter().filter_map(|one| Some((one.weight, one.score?)));
    record.score = Some(scored().map(|(weight, score)| weight * score).sum());
    record.max_score = Some(scored().map(|(weight, _)| weight).sum());
    record.flaky &= record.outcome == Outcome::Passed;
    let attempt = attempt(record);
    match record.attempts.last_mut() {
        Some(last) => *last = attempt,
        None => record.attempts = vec![attempt],
    }
}

fn attempt(record: &TrialRecord) -> AttemptRecord {
    AttemptRecord {
        outcome: record.outcome,
        reason: record.reason.clone(),
        met_share: record.met_share(),
        score: record.score_bounds(),
        triggered: record.triggered,
        usage: record.attempts.last().and_then(|last| last.usage),
        cost_usd: record.attempts.last().and_then(|last| last.cost_usd),
        ..AttemptRecord::default()
    }
}

fn graded(id: &TrialId, variant: &str, holds: [bool; 5]) -> TrialRecord {
    let mut record = TrialRecord { variant: Some(variant.to_owned()), findings: findings(holds), ..passed(id) };
    match variant {
        WITHOUT_SKILL => record.skill = None,
        _ => (record.should_trigger, record.triggered) = (Some(*id.case != *"reads"), Some(holds[1])),
    }
    grade(&mut record);
    record
}

/// Returns a run of both arms with complete evidence.
fn complete_run(chance: &mut Chance) -> Vec<CompleteTrial> {
    let [with, without] = [0.5, 0.9].map(|least| least + (1.0 - least) * chance.unit());
    let mut trials = Vec::new();
    for case in CASES {
        for repetition in 1..=REPETITIONS {
            for (variant, likely) in [(WITH_SKILL, with), (WITHOUT_SKILL, without * 0.9)] {
                let id = id(case, &format!("claude-code:sonnet+{variant}"), repetition);
                let mut draw = || [(); 5].map(|()| chance.unit() < likely);
                let (once, again) = (graded(&id, variant, draw()), graded(&id, variant, [true; 5]));
                let is_rerun = once.outcome == Outcome::Failed && chance.unit() < 0.3;
                trials.push(match is_rerun {
                    true => {
                        let attempts = [&once, &again].map(attempt).to_vec();
                        let record = TrialRecord { flaky: true, attempts, ..again };
                        CompleteTrial { id, record, first: Some(once) }
                    }
                    false => CompleteTrial { id, record: once, first: None },
                });
            }
        }
    }
    trials
}

/// Returns the record of a trial that lacks evidence.
fn without(trial: &CompleteTrial, losses: &[Lost]) -> TrialRecord {
    let mut record = trial.record.clone();
    for lost in losses {
        let mut undecide = |kind: &str| {
            for finding in record.findings.iter_mut().filter(|finding| finding.kind == kind) {
                *finding = Finding {
                    judged: finding.judged,
                    implicit: finding.implicit,
                    ..Finding::undecided(kind, kind, finding.weight, None, "the evidence is missing")
                };
            }
        };
        match lost {
            Lost::Judge => undecide("quality"),
            Lost::Calls => {
                undecide("tool_called");
                record.tool_calls.clear();
                record.triggered = None;
            }
            Lost::Reply => {
                undecide("contains");
                (record.answer, record.replies) = (None, Vec::new());
            }
            Lost::Network => {
                undecide("no_egress");
                record.egress.clear();
            }
            Lost::Usage => {
                undecide("budget");
                record.usage = None;
                record.attempts.iter_mut().for_each(|attempt| attempt.usage = None);
            }
            Lost::Price => {
                undecide("budget");
                record.cost_usd = None;
                record.attempts.iter_mut().for_each(|attempt| attempt.cost_usd = None);
            }
            Lost::Rerun => {
                if let Some(first) = &trial.first {
                    record = first.clone();
                }
            }
            Lost::Trial => {
                let reason = "the provider answered 529".to_owned();
                let broken = AttemptRecord { outcome: Outcome::Broken, ..AttemptRecord::default() };
                let earlier = record.attempts.len().saturating_sub(1);
                record.attempts.truncate(earlier);
                record.attempts.push(broken);
                let (usage, cost_usd, score, max_score) = (None, None, None, None);
                let ending = Some(Ending::ProviderFailed { reason: reason.clone() });
                record = TrialRecord {
                    outcome: Outcome::Broken,
                    reason: Some(reason),
                    flaky: false,
                    findings: Vec::new(),
                    ending,
                    usage,
                    cost_usd,
                    score,
                    max_score,
                    ..record
                };
                return record;
            }
        }
        grade(&mut record);
    }
    record
}

/// Returns the events of a run in which a share of 60 % must pass.
fn events(trials: &[CompleteTrial], records: &[TrialRecord]) -> Vec<Envelope> {
    let mut story = RunBuilder::new(trials.iter().map(|trial| trial.id.clone()).collect(), 4);
    if let Event::RunStarted(info) = &mut story.events[0].event {
        info.settings.insert("min_pass_rate".to_owned(), json!(0.6));
    }
    for (trial, record) in trials.iter().zip(records) {
        story.starts(&trial.id, &["/commit"]).after(10).ends(record.clone());
    }
    story.after(500).over();
    story.events
}

/// A run in every format.
struct Reports {
    json: Value,
    markdown: String,
    terminal: String,
    html: Value,
    ctrf: Value,
    junit: quick_junit::Report,
    tap: String,
}

impl Reports {
    fn of(events: &[Envelope]) -> Self {
        let text = |kind: &str| reported(kind, events, |_| {});
        let html = text("html");
        let index = html.split_once("id=\"index\">").unwrap().1.split_once("</script>").unwrap().0;
        Self {
            json: serde_json::from_str(&text("json")).unwrap(),
            markdown: text("markdown"),
            terminal: text("terminal"),
            html: serde_json::from_str(index).unwrap(),
            ctrf: serde_json::from_str(&text("ctrf")).unwrap(),
            junit: quick_junit::Report::deserialize_from_str(&text("junit")).unwrap(),
            tap: text("tap"),
        }
    }

    /// Returns the word at the beginning of the verdict.
    fn word(&self) -> &str {
        let word = self.markdown.strip_prefix("## ").unwrap().split(':').next().unwrap();
        assert_eq!(self.html["run"]["result"], word);
        assert!(self.terminal.contains(&format!("\n{word}  ")), "{word}: {}", self.terminal);
        word
    }

    /// Returns the sentences about the skill.
    fn sentences(&self) -> String {
        let sentences = self.html["verdicts"].as_array().unwrap().iter().filter_map(Value::as_str);
        sentences.collect::<Vec<_>>().join("\n")
    }

    /// Returns a line of a text that begins with `start`, without the beginning.
    fn line<'t>(text: &'t str, start: &str) -> Option<&'t str> {
        text.lines().find_map(|line| line.trim_start().strip_prefix(start)).map(str::trim)
    }

    /// Checks that all formats count the same trials and show the same rates and durations.
    fn agree(&self, trials: usize) {
        let summary = &self.json["summary"];
        let counted = summary["trials"].as_u64().unwrap() as usize;
        assert_eq!(counted + summary["baseline"].as_u64().unwrap() as usize, trials);
        for (text, start) in [(&self.markdown, "- Trials: "), (&self.terminal, "trials ")] {
            let line = Self::line(text, start).unwrap();
            assert_eq!(line.split([',', ' ']).next().unwrap(), counted.to_string(), "{line}");
        }
        let extra = &self.ctrf["results"]["summary"]["extra"];
        assert_eq!(extra["trials"], summary["trials"]);
        assert_eq!(extra["requiredPassRateResult"], summary["required_pass_rate_result"]);
        let required = " the required 60%";
        assert!(self.tap.contains(required) && self.html["run"]["because"].as_str().unwrap().contains(required));
        let listed = [
            self.json["trials"].as_array().unwrap().len(),
            self.html["trials"].as_array().unwrap().len(),
            self.ctrf["results"]["tests"].as_array().unwrap().len(),
            self.junit.test_suites.iter().map(|suite| suite.test_cases.len()).sum(),
            self.tap.lines().filter(|line| line.starts_with("ok ") || line.starts_with("not ok ")).count(),
        ];
        assert_eq!(listed, [trials; 5]);

        let rate = |start| Self::line(&self.markdown, start).map(str::to_owned);
        // Rows have at least two spaces after their names. A line of the folded verdict may begin with the same words.
        assert_eq!(rate("- Trials passed: ").as_deref(), Self::line(&self.terminal, "pass rate  "));
        assert_eq!(rate("- Required pass rate: ").as_deref(), Self::line(&self.terminal, "required   "));
        assert_eq!(rate("- Cost: ").as_deref(), Self::line(&self.terminal, "cost "));
        for key in ["pass_rate_min", "pass_rate_max"] {
            assert_eq!(self.ctrf["results"]["summary"]["extra"][key], summary[key]);
            let properties = &self.junit.test_suites[0].properties;
            let property = properties.iter().find(|property| property.name.as_str() == key).unwrap();
            assert_eq!(Some(property.value.as_str().parse().unwrap()), summary[key].as_f64());
        }
        let is_known = summary["pass_rate_min"] == summary["pass_rate_max"];
        assert_eq!(summary["pass_rate"].is_null(), !is_known);
        let duration = self.json["run"]["duration_ms"].as_u64().unwrap();
        assert_eq!(self.html["run"]["duration_ms"].as_u64(), Some(duration));
        assert_eq!(self.ctrf["results"]["summary"]["duration"].as_u64(), Some(duration));
        assert_eq!(self.junit.time.unwrap().as_millis() as u64, duration);
    }

    /// Returns every figure that has bounds, and its interval.
    fn bounds(&self) -> BTreeMap<String, [f64; 2]> {
        let mut found = BTreeMap::new();
        for part in ["summary", "arms", "deltas"] {
            collect(part, &self.json[part], &mut found);
        }
        found
    }
}

/// Finds `NAME_min` with `NAME_max`, `min` with `max`, and the intervals of such figures.
fn collect(path: &str, value: &Value, found: &mut BTreeMap<String, [f64; 2]>) {
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| collect(&format!("{path}[{at}]"), item, found));
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                let of = |other: String| fields.get(&other).and_then(Value::as_f64);
                let max = if key == "min" {
                    of("max".into())
                } else {
                    key.strip_suffix("min").and_then(|name| of(format!("{name}max")))
                };
                if let (Some(min), Some(max)) = (field.as_f64().filter(|_| key.ends_with("min")), max) {
                    found.insert(format!("{path}.{key}"), [min, max]);
                }
                let interval = key.strip_suffix("_ci95").map(|name| format!("{name}_min"));
                let is_bounded = interval.is_some_and(|min| fields.contains_key(&min));
                let is_nested = key == "ci95" && fields.contains_key("min");
                if let Some([low, high]) = field.as_array().map(Vec::as_slice).filter(|_| is_bounded || is_nested) {
                    found.insert(format!("{path}.{key}"), [low.as_f64().unwrap(), high.as_f64().unwrap()]);
                }
                collect(&format!("{path}.{key}"), field, found);
            }
        }
        _ => {}
    }
}

fn rows(records: &[TrialRecord], run: &str) -> Vec<TrialRow> {
    records.iter().map(|record| row(record, run)).collect()
}

/// Returns `true` if a conclusion that is drawn with less evidence is also drawn with all of it.
fn is_justified(less: &str, all: &str, conclusion: &str) -> bool {
    !less.contains(conclusion) || all.contains(conclusion)
}

#[test]
fn less_evidence_widens_every_figure_and_improves_no_verdict() {
    let gate = Gate { min_pass_rate: Some(0.6), no_fail_on_assertions: false };
    let (seeds, times) = ROUNDS;
    for seed in 0..seeds {
        let mut chance = Chance::new(seed);
        let (before, trials) = (complete_run(&mut chance), complete_run(&mut chance));
        let before: Vec<TrialRecord> = before.into_iter().map(|trial| trial.record).collect();
        let complete: Vec<TrialRecord> = trials.iter().map(|trial| trial.record.clone()).collect();
        let all = Reports::of(&events(&trials, &complete));
        all.agree(trials.len());
        let compared = |records: &[TrialRecord]| Comparison::of(&rows(&before, "a"), &rows(records, "b"), THRESHOLD);
        let all_compared = compared(&complete);

        for _ in 0..times {
            // Sometimes little is missing, sometimes a kind of evidence is missing in most trials.
            let (share, favourite) = (chance.unit().powi(2), LOSSES[chance.below(8) as usize]);
            let records: Vec<TrialRecord> = trials
                .iter()
                .map(|trial| {
                    let mut losses: Vec<Lost> = Vec::new();
                    losses.extend((chance.unit() < share).then_some(favourite));
                    losses.extend((chance.unit() < 0.1).then(|| LOSSES[chance.below(8) as usize]));
                    without(trial, &losses)
                })
                .collect();
            let less = Reports::of(&events(&trials, &records));
            less.agree(trials.len());
            let about = format!("seed {seed}, {favourite:?} in {share:.2}");

            let (narrow, wide) = (all.bounds(), less.bounds());
            assert!(narrow.len() > 40, "{narrow:?}");
            for (name, [low, high]) in &narrow {
                let [lowest, highest] = wide.get(name).unwrap_or_else(|| panic!("{about}: {name} is missing"));
                let is_wider = *lowest <= low + 1e-9 && *highest >= high - 1e-9;
                assert!(is_wider, "{about}: {name} was {low} to {high}, and is {lowest} to {highest}");
            }

            let (summary, complete) = (Summary::of(&records), Summary::of(&complete));
            let word = match gate.exit_code(&summary) {
                0 => "PASS",
                1 => "FAIL",
                _ => "INCOMPLETE",
            };
            assert_eq!(less.word(), word, "{about}");
            assert!(word != "PASS" || all.word() == "PASS", "{about}: {word}, {}", all.word());
            assert!(
                word != "FAIL" || summary.by_outcome.failed <= complete.by_outcome.failed + complete.flaky,
                "{about}"
            );
            for result in ["met", "not_met"] {
                let of = |reports: &Reports| reports.json["summary"]["required_pass_rate_result"] == result;
                assert!(!of(&less) || of(&all), "{about}: {result}");
            }

            let (delta, of_all) = (&less.json["deltas"][0], &all.json["deltas"][0]);
            let p_value = |delta: &Value| delta["full_pass_rate_p_value"].as_f64().unwrap();
            assert!(p_value(delta) >= p_value(of_all) - 1e-9, "{about}: {delta:#}");
            let cases = |delta: &Value| -> Vec<String> {
                let cases = delta["by_case"].as_array().unwrap().iter();
                cases.map(|case| case["skill"].as_str().unwrap().to_owned()).collect()
            };
            for (less, all) in cases(delta).iter().zip(cases(of_all)) {
                let direction = |effect: &str| match effect {
                    "helps" | "more_passed" => 1,
                    "harms" | "fewer_passed" => -1,
                    _ => 0,
                };
                let is_certain = |effect: &str| matches!(effect, "helps" | "harms");
                assert!(less == "undecided" || direction(less) == direction(&all), "{about}: {less}, {all}");
                assert!(!is_certain(less) || is_certain(&all), "{about}: {less}, {all}");
            }
            let (said, said_of_all) = (less.sentences(), all.sentences());
            for conclusion in ["The skill helps", "The skill harms", "No difference worth"] {
                assert!(is_justified(&said, &said_of_all, conclusion), "{about}: {said}\n{said_of_all}");
            }
            let compared = compared(&records);
            assert!(!compared.has_regressed() || all_compared.has_regressed(), "{about}: {}", compared.sentence());
            for conclusion in
                ["The second run is worse", "The second run is better", "No case changed", "No difference worth"]
            {
                let [said, said_of_all] = [&compared, &all_compared].map(Comparison::sentence);
                assert!(is_justified(&said, &said_of_all, conclusion), "{about}: {said}\n{said_of_all}");
            }
        }
    }
}
