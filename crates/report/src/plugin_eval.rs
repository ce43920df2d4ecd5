//! The result file of `claude plugin eval`, as JSON. Broken and undecided trials have an `error` and are not part of the
//! scores there; the other tool counts them as 0.

use std::io::{self, Write};
use std::sync::Arc;

use model::{Envelope, Event, Finding, Outcome, RunInfo, SKILLS_ONLY, Status, TrialRecord, WITHOUT_SKILL};
use serde_json::{Value, json};

use crate::places::Places;
use crate::{Reporter, ReporterOptions};

/// Version of the format.
const SCHEMA_VERSION: u64 = 1;

struct PluginEvalReporter {
    out: Box<dyn Write + Send>,
    info: Option<Box<RunInfo>>,
    places: Places,
    duration_ms: u64,
    is_partial: bool,
    cases: Vec<CaseRuns>,
}

/// Finished trials of a case.
struct CaseRuns {
    suite: Arc<str>,
    case: Arc<str>,
    dir: String,
    prompt: String,
    max_turns: u64,
    timeout_ms: u64,
    with: Vec<Run>,
    without: Vec<Run>,
    /// Trials with only the skills of the plug-in, an arm that the format does not have.
    skills_only: Vec<Run>,
}

/// A finished trial.
struct Run {
    json: Value,
    /// `None` if the trial is broken, undecided or did not run.
    score: Option<f64>,
    has_passed: bool,
    cost_usd: f64,
    /// Position in the plan.
    place: usize,
}

/// Opens the report.
pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(PluginEvalReporter {
        out: options.out,
        info: None,
        places: Places::default(),
        duration_ms: 0,
        is_partial: true,
        cases: Vec::new(),
    })
}

impl Reporter for PluginEvalReporter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match &envelope.event {
            Event::RunStarted(info) => {
                self.places = Places::new(&info.trials);
                self.info = Some(info.clone());
            }
            Event::TrialFinished(record) => self.add(record),
            Event::RunFinished { duration_ms, signal, .. } => {
                (self.duration_ms, self.is_partial) = (*duration_ms, signal.is_some());
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(info) = self.info.take() else { return Ok(()) };
        for case in self.cases.iter_mut().filter(|case| case.with.is_empty()) {
            case.with = std::mem::take(&mut case.skills_only);
        }
        self.cases.iter_mut().for_each(CaseRuns::sort);
        self.cases.sort_by_key(CaseRuns::place);
        let document = self.document(&info);
        serde_json::to_writer_pretty(&mut self.out, &document)?;
        writeln!(self.out)?;
        self.out.flush()
    }
}

impl PluginEvalReporter {
    fn add(&mut self, record: &TrialRecord) {
        let known = self.cases.iter().position(|case| case.suite == record.suite && case.case == record.case);
        let index = known.unwrap_or_else(|| {
            let dir = record.file.as_deref().and_then(|file| file.rsplit_once('/')).map_or("", |(dir, _)| dir);
            self.cases.push(CaseRuns {
                suite: Arc::clone(&record.suite),
                case: Arc::clone(&record.case),
                dir: dir.to_owned(),
                prompt: record.input.first().cloned().unwrap_or_default(),
                max_turns: record.limits.max_turns,
                timeout_ms: record.limits.timeout_ms,
                with: Vec::new(),
                without: Vec::new(),
                skills_only: Vec::new(),
            });
            self.cases.len() - 1
        });
        let case = &mut self.cases[index];
        let arm = match record.variant.as_deref() {
            Some(WITHOUT_SKILL) => &mut case.without,
            Some(SKILLS_ONLY) => &mut case.skills_only,
            _ => &mut case.with,
        };
        arm.push(Run::of(record, self.places.of(&record.id)));
    }

    fn document(&self, info: &RunInfo) -> Value {
        let has_baseline = self.cases.iter().any(|case| !case.without.is_empty());
        let runs = || self.cases.iter().flat_map(|case| case.with.iter().chain(&case.without));
        let scores = self.cases.iter().filter_map(|case| mean(case.with.iter().filter_map(|run| run.score)));
        let deltas = self.cases.iter().filter_map(CaseRuns::delta);
        let rates = self.cases.iter().filter_map(|case| pass_rate(&case.with));
        let claude =
            info.agents.iter().find(|agent| agent.name == "claude-code").and_then(|agent| agent.version.clone());
        let mut aggregates = json!({
            "casesTotal": self.cases.len(),
            "casesPassed": self.cases.iter().filter(|case| case.has_passed()).count(),
        });
        set(&mut aggregates, "overallScore", mean(scores));
        set(&mut aggregates, "overallPassRate", mean(rates));
        set(&mut aggregates, "meanDelta", mean(deltas));
        json!({
            "schemaVersion": SCHEMA_VERSION,
            "claudeVersion": claude,
            "startedAt": info.started_at.to_string(),
            "durationSeconds": self.duration_ms / 1000,
            "costUsd": runs().map(|run| run.cost_usd).sum::<f64>() + 0.0,
            "partial": self.is_partial,
            "suite": {
                "ablation": if has_baseline { "with-without" } else { "none" },
                "threshold": 1,
            },
            "cases": self.cases.iter().map(CaseRuns::document).collect::<Vec<_>>(),
            "aggregates": aggregates,
        })
    }
}

/// Sets a number that may be unknown.
fn set(map: &mut Value, key: &str, value: Option<f64>) {
    if let Some(value) = value {
        map[key] = json!(value);
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (count, sum) = values.fold((0_u32, 0.0), |(count, sum), value| (count + 1, sum + value));
    (count > 0).then(|| sum / f64::from(count))
}

/// Returns the share of passed runs among those with a score.
fn pass_rate(runs: &[Run]) -> Option<f64> {
    mean(runs.iter().filter(|run| run.score.is_some()).map(|run| f64::from(u8::from(run.has_passed))))
}

impl CaseRuns {
    fn sort(&mut self) {
        self.with.sort_by_key(|run| run.place);
        self.without.sort_by_key(|run| run.place);
    }

    fn place(&self) -> usize {
        let first = [&self.with, &self.without].map(|runs| runs.first().map_or(usize::MAX, |run| run.place));
        first[0].min(first[1])
    }

    fn score(runs: &[Run]) -> Option<f64> {
        mean(runs.iter().filter_map(|run| run.score))
    }

    fn delta(&self) -> Option<f64> {
        Some(Self::score(&self.with)? - Self::score(&self.without)?)
    }

    /// Returns `true` if every run with the plug-in has a score, and all of them the full one.
    fn has_passed(&self) -> bool {
        !self.with.is_empty() && self.with.iter().all(|run| run.has_passed)
    }

    fn document(&self) -> Value {
        let of = |runs: &[Run]| runs.iter().map(|run| run.json.clone()).collect::<Vec<_>>();
        let mut arms = json!({ "with": of(&self.with) });
        let mut aggregates = json!({});
        set(&mut aggregates, "score", Self::score(&self.with));
        set(&mut aggregates, "passRate", pass_rate(&self.with));
        if !self.without.is_empty() {
            arms["without"] = json!(of(&self.without));
            set(&mut aggregates, "scoreWithout", Self::score(&self.without));
            set(&mut aggregates, "passRateWithout", pass_rate(&self.without));
            set(&mut aggregates, "delta", self.delta());
        }
        json!({
            "name": self.case,
            "dir": self.dir,
            "promptMarkdown": self.prompt,
            "runsPerCase": self.with.len(),
            "timeoutSeconds": self.timeout_ms / 1000,
            "maxTurns": self.max_turns,
            "arms": arms,
            "aggregates": aggregates,
        })
    }
}

impl Run {
    fn of(record: &TrialRecord, place: usize) -> Self {
        let findings: Vec<&Finding> = record.findings.iter().filter(|finding| !finding.implicit).collect();
        let is_scored = matches!(record.outcome, Outcome::Passed | Outcome::Failed);
        let all: f64 = findings.iter().map(|finding| finding.weight).sum();
        let met = findings.iter().filter(|finding| finding.status == Status::Met);
        let met: f64 = met.map(|finding| finding.weight).sum();
        let score = (is_scored && all > 0.0).then(|| met / all);
        let has_passed = record.outcome == Outcome::Passed;
        let cost_usd = record.cost_usd.unwrap_or_default();
        let judge_cost = record.judge.and_then(|judge| judge.cost_usd).unwrap_or_default();
        let graders = findings.iter().map(|finding| {
            json!({
                "name": finding.id,
                "passed": finding.status == Status::Met,
                "weight": finding.weight,
                "explanation": finding.reason,
                "withOnly": finding.weight == 0.0,
                "scored": finding.weight > 0.0,
            })
        });
        let error = record.reason.as_deref().filter(|_| !is_scored);
        let json = json!({
            // A sum of nothing is negative zero.
            "score": score.unwrap_or_default() + 0.0,
            "passed": has_passed,
            "turns": record.turn_count,
            "costUsd": cost_usd,
            "judgeCostUsd": judge_cost,
            "durationSeconds": record.duration_ms / 1000,
            "startedAt": record.started_at.to_string(),
            "error": error.map(|reason| format!("{}: {reason}", record.outcome.name())),
            "skippedPaidGraders": false,
            "graders": graders.collect::<Vec<_>>(),
        });
        Self { json, score, has_passed, cost_usd: cost_usd + judge_cost, place }
    }
}
