//! Finished trials in the order of the plan. Reports in the formats of other tools are written from them at the end of
//! the run.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;
use model::statistics::Counted;
use model::{
    AttemptRecord, DecisionRecord, Envelope, Event, Excerpt, Finding, Gate, Outcome, RunInfo, Status, Summary,
    TrialRecord,
};

use crate::format::counted;
use crate::places::Places;
use crate::terminal::{Style, counts, fault_name, result};
use crate::{Reporter, ReporterOptions, decisions, format, plain, totals};

/// Maximum length of a reason, in columns.
const REASON: usize = 1000;
/// Maximum size of the text about a trial, in bytes. Readers of these files limit the size of the whole file.
const TEXT: usize = 16 * 1024;

/// A finished run, with its finished trials.
pub(crate) struct FinishedRun {
    pub(crate) info: Box<RunInfo>,
    /// Time of the last event.
    pub(crate) ended_at: Timestamp,
    /// Signal that stopped the run.
    pub(crate) signal: Option<String>,
    /// Number of planned trials that did not finish.
    pub(crate) unfinished: usize,
    /// Finished trials, in the order of the plan.
    pub(crate) trials: Vec<FinishedTrial>,
    /// Totals of all finished trials, including those that the report leaves out.
    pub(crate) summary: Summary,
    /// Trials of each suite by the result that rates count.
    pub(crate) counted: BTreeMap<String, Counted>,
    duration_ms: Option<u64>,
}

/// Result of a trial in the terms that other test tools use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TestResult {
    Passed,
    /// An assertion does not hold.
    Failed,
    /// The trial is broken, which says nothing about the agent.
    Error,
    /// The trial does not count: it is undecided, skipped or cancelled, or it did not pass but belongs to the baseline
    /// or to a quarantined case.
    Skipped,
}

/// A finished trial, without its conversation.
pub(crate) struct FinishedTrial {
    /// Printed id: `suite::case@arm#1`.
    pub(crate) id: Arc<str>,
    pub(crate) suite: String,
    pub(crate) case: String,
    pub(crate) arm: String,
    pub(crate) repetition: u64,
    pub(crate) agent: String,
    pub(crate) model: Option<String>,
    pub(crate) is_baseline: bool,
    pub(crate) outcome: Outcome,
    pub(crate) result: TestResult,
    pub(crate) flaky: bool,
    /// Description of the quarantine, if the case is in one.
    pub(crate) quarantine: Option<String>,
    /// Kind of a result that is not a pass, in a word: the type of an assertion, the component at fault, or the
    /// outcome.
    pub(crate) kind: String,
    /// Reason in one line; empty if the trial passed.
    pub(crate) reason: String,
    /// The trial as the terminal shows it; empty if the trial passed.
    pub(crate) text: String,
    /// Assertions that made the trial fail, or left it undecided.
    pub(crate) unmet: Vec<UnmetCheck>,
    /// File that contains the case, and its line.
    pub(crate) place: Option<Location>,
    /// All attempts except the last.
    pub(crate) earlier: Vec<EarlierAttempt>,
    pub(crate) started_at: Timestamp,
    pub(crate) duration_ms: u64,
    pub(crate) score: Option<[f64; 2]>,
    pub(crate) tokens: Option<u64>,
    pub(crate) cost_usd: Option<f64>,
}

/// Assertion that does not hold or could not be decided.
pub(crate) struct UnmetCheck {
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) reason: String,
    /// Location of the assertion, or else of the case.
    pub(crate) place: Option<Location>,
    pub(crate) is_critical: bool,
}

/// Attempt that was followed by another one.
pub(crate) struct EarlierAttempt {
    pub(crate) outcome: Outcome,
    pub(crate) reason: String,
    pub(crate) duration_ms: u64,
}

/// Location in a file of the user's repository.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Location {
    /// Path from the root of the repository.
    pub(crate) file: String,
    /// Line, from 1, if it is known.
    pub(crate) line: Option<usize>,
}

impl FinishedRun {
    /// Returns the duration in milliseconds.
    pub(crate) fn duration_ms(&self) -> u64 {
        self.duration_ms.unwrap_or_else(|| format::between(self.info.started_at, self.ended_at))
    }

    /// Returns the conditions under which failed trials do not fail the run.
    pub(crate) fn gate(&self) -> Gate {
        Gate::from_settings(&self.info.settings)
    }

    /// Returns the pass rate of a suite, or its bounds, by name.
    pub(crate) fn pass_rate(counted: Counted) -> Vec<(&'static str, f64)> {
        let Some(bounds) = counted.bounds() else { return Vec::new() };
        let rate = bounds.value().map(|rate| ("pass_rate", rate));
        rate.into_iter().chain([("pass_rate_min", bounds.min), ("pass_rate_max", bounds.max)]).collect()
    }

    /// Returns the trials of each suite, with the suites in the order of the plan.
    pub(crate) fn suites(&self) -> Vec<(&str, Vec<&FinishedTrial>)> {
        let mut suites: Vec<(&str, Vec<&FinishedTrial>)> = Vec::new();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        for trial in &self.trials {
            let number = *numbers.entry(&trial.suite).or_insert(suites.len());
            if number == suites.len() {
                suites.push((&trial.suite, Vec::new()));
            }
            suites[number].1.push(trial);
        }
        suites
    }
}

impl FinishedTrial {
    pub(crate) fn from_record(record: &TrialRecord, folder: &Path) -> Self {
        let place = record.file.as_ref().map(|file| Location { file: in_repository(folder, file), line: record.line });
        let unmet: Vec<UnmetCheck> = unmet(record)
            .map(|finding| UnmetCheck {
                id: name(&finding.id),
                kind: name(&finding.kind),
                reason: one_line(&finding.reason),
                place: finding
                    .source
                    .as_ref()
                    .map(|source| Location::from_excerpt(source, folder))
                    .or_else(|| place.clone()),
                is_critical: !finding.failed_critical.is_empty(),
            })
            .collect();
        let result = TestResult::from_record(record);
        let kind = match record.outcome {
            _ if record.is_baseline() => "baseline",
            _ if record.quarantine.is_some() => "quarantined",
            Outcome::Failed => unmet.first().map_or("failed", |check| &check.kind),
            Outcome::Broken => record.fault.map_or("broken", fault_name),
            outcome => outcome.name(),
        };
        let attempts = record.attempts.split_last().map_or(&[][..], |(_, earlier)| earlier);
        Self {
            id: name(&record.id).into(),
            suite: name(&record.suite),
            case: name(&record.case),
            arm: name(&record.arm),
            repetition: record.repetition,
            agent: name(&record.agent),
            model: record.model.as_deref().map(name),
            is_baseline: record.is_baseline(),
            outcome: record.outcome,
            result,
            flaky: record.flaky,
            quarantine: record.quarantine.as_ref().map(|quarantine| one_line(&quarantine.describe())),
            kind: kind.to_owned(),
            reason: if result == TestResult::Passed { String::new() } else { reason(record) },
            text: if result == TestResult::Passed { String::new() } else { text(record) },
            unmet,
            place,
            earlier: attempts.iter().map(EarlierAttempt::from_attempt).collect(),
            started_at: record.started_at,
            duration_ms: record.duration_ms,
            score: record.score.zip(record.max_score).map(<[f64; 2]>::from),
            tokens: record.spent().tokens.map(|tokens| tokens.total()),
            cost_usd: record.spent().cost_usd,
        }
    }

    /// Converts a decision into the form of a trial: the pass rate of a case, or the comparison of two arms.
    fn from_decision(decision: &DecisionRecord, run: &FinishedRun) -> Self {
        let of_case = |trial: &&Self| {
            let case = decision.suite.as_deref().zip(decision.case.as_deref());
            case.is_some_and(|(suite, case)| (name(suite), name(case)) == (trial.suite.clone(), trial.case.clone()))
        };
        let first = run.trials.iter().find(of_case).or_else(|| run.trials.first());
        let outcome = decisions::outcome(decision);
        let result = match outcome {
            Outcome::Failed if !decision.quarantined => TestResult::Failed,
            Outcome::Passed => TestResult::Passed,
            _ => TestResult::Skipped,
        };
        let question = if decision.versus.is_some() { "comparison" } else { "pass rate" };
        let sentence = one_line(&decisions::sentence(decision));
        let is_passed = result == TestResult::Passed;
        Self {
            id: name(&format!("{} ({question})", decisions::name(decision, true))).into(),
            suite: name(decision.suite.as_deref().or(first.map(|trial| trial.suite.as_str())).unwrap_or("comparisons")),
            case: name(&format!("{} ({question})", decision.case.as_deref().unwrap_or("all cases"))),
            arm: name(&decision.arm),
            repetition: 0,
            agent: first.map(|trial| trial.agent.clone()).unwrap_or_default(),
            model: first.and_then(|trial| trial.model.clone()),
            is_baseline: false,
            outcome,
            result,
            flaky: false,
            quarantine: decision.quarantined.then(|| "quarantined".to_owned()),
            kind: question.replace(' ', "_"),
            reason: if is_passed { String::new() } else { sentence.clone() },
            text: if is_passed { String::new() } else { format!("{sentence}\n") },
            unmet: Vec::new(),
            place: first.filter(|_| decision.case.is_some()).and_then(|trial| trial.place.clone()),
            earlier: Vec::new(),
            started_at: run.ended_at,
            duration_ms: 0,
            score: None,
            tokens: None,
            cost_usd: None,
        }
    }

    /// Converts what a run lacks, because it was killed or merged without a shard, into the form of a broken trial.
    /// Readers of these files would otherwise see only the trials that finished.
    fn from_missing(run: &FinishedRun) -> Option<Self> {
        let unfinished =
            (run.unfinished > 0).then(|| format!("{} not finished", counted(run.unfinished, "planned trial")));
        let shards = run.info.missing_shards.as_ref().map(totals::without_shards);
        let missing: Vec<String> = unfinished.into_iter().chain(shards).collect();
        let reason = format!("the run is incomplete: {}", missing.join(", "));
        (!missing.is_empty()).then(|| Self {
            id: "run (all trials finished)".into(),
            suite: "run".to_owned(),
            case: "all trials finished".to_owned(),
            arm: String::new(),
            repetition: 0,
            agent: String::new(),
            model: None,
            is_baseline: false,
            outcome: Outcome::Broken,
            result: TestResult::Error,
            flaky: false,
            quarantine: None,
            kind: "incomplete".to_owned(),
            text: format!("{reason}\n"),
            reason,
            unmet: Vec::new(),
            place: None,
            earlier: Vec::new(),
            started_at: run.ended_at,
            duration_ms: 0,
            score: None,
            tokens: None,
            cost_usd: None,
        })
    }

    /// Returns a unique name within the suite: `case@arm#1`, `case (pass rate)@arm` for a decision, or a fact about the
    /// run.
    pub(crate) fn name(&self) -> String {
        match self.repetition {
            0 if self.arm.is_empty() => self.case.clone(),
            0 => format!("{}@{}", self.case, self.arm),
            repetition => format!("{}@{}#{repetition}", self.case, self.arm),
        }
    }

    /// Describes each attempt except the last, one line each.
    pub(crate) fn describe_attempts(&self) -> String {
        let lines = self.earlier.iter().enumerate().map(|(index, attempt)| {
            let reason = if attempt.reason.is_empty() { String::new() } else { format!(": {}", attempt.reason) };
            format!("attempt {} {}{reason}\n", index + 1, attempt.outcome.name())
        });
        lines.collect()
    }
}

impl TestResult {
    fn from_record(record: &TrialRecord) -> Self {
        match record.outcome {
            Outcome::Passed => Self::Passed,
            // The baseline is expected to fail without the skill.
            _ if record.is_baseline() || record.quarantine.is_some() => Self::Skipped,
            // The pass rate of the case decides instead, and is reported as a result of its own.
            Outcome::Failed | Outcome::Broken if record.is_sample() => Self::Skipped,
            Outcome::Failed => Self::Failed,
            Outcome::Broken => Self::Error,
            Outcome::Undecided | Outcome::Stale | Outcome::Skipped | Outcome::Cancelled => Self::Skipped,
        }
    }
}

impl EarlierAttempt {
    fn from_attempt(attempt: &AttemptRecord) -> Self {
        Self {
            outcome: attempt.outcome,
            reason: attempt.reason.as_deref().map(one_line).unwrap_or_default(),
            duration_ms: attempt.duration_ms,
        }
    }
}

impl Location {
    pub(crate) fn from_excerpt(source: &Excerpt, folder: &Path) -> Self {
        // An excerpt without text refers to the whole file.
        let line = (!source.text.is_empty()).then_some(source.line);
        Self { file: in_repository(folder, &source.file), line }
    }
}

/// Returns the path of `file` relative to the root of the repository, where `folder` is the current directory. An
/// absolute path stays as it is.
pub(crate) fn in_repository(folder: &Path, file: &str) -> String {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.components().next_back().is_some_and(|last| last != Component::ParentDir) => {
                path.pop();
            }
            part => path.push(part),
        }
    }
    name(&path.to_string_lossy())
}

fn is_passed(decision: &DecisionRecord) -> bool {
    decisions::outcome(decision) == Outcome::Passed
}

/// Returns the findings that made the trial fail, or left it undecided.
fn unmet(record: &TrialRecord) -> impl Iterator<Item = &Finding> {
    let status = if record.outcome == Outcome::Failed { Status::Unmet } else { Status::Undecided };
    record.findings.iter().filter(move |finding| finding.status == status && counts(finding, record))
}

/// Returns the reason in one line, including why the trial does not count.
fn reason(record: &TrialRecord) -> String {
    let reason = match (unmet(record).next(), &record.reason) {
        (Some(finding), _) if record.outcome == Outcome::Failed => format!("{}: {}", finding.id, finding.reason),
        (_, Some(reason)) => reason.clone(),
        _ => String::new(),
    };
    let mut words = Vec::new();
    if record.is_baseline() {
        words.push("without the skill, for comparison only");
    } else if record.is_sample() && record.outcome != Outcome::Passed {
        words.push("counts for the pass rate of its case");
    }
    let quarantine = record.quarantine.as_ref().map(model::Quarantine::describe);
    words.extend(quarantine.as_deref());
    if !words.is_empty() || matches!(record.outcome, Outcome::Undecided | Outcome::Stale | Outcome::Cancelled) {
        words.push(record.outcome.name());
    }
    words.extend(Some(reason.as_str()).filter(|reason| !reason.is_empty()));
    one_line(&words.join(": "))
}

/// Returns the trial as the terminal shows it, cut to a size that every reader accepts.
fn text(record: &TrialRecord) -> String {
    let text = clean(&result(record, &Style::plain()));
    let shown = &text[..text.floor_char_boundary(TEXT)];
    if shown.len() < text.len() { format!("{shown}…\n") } else { text }
}

/// Removes colours and code points that XML forbids, and writes other characters that are not text as escapes: control
/// characters, marks that change the direction of writing, and what only some readers treat as a line end.
pub(crate) fn clean(text: &str) -> String {
    plain::clean(text).replace(['\u{fffe}', '\u{ffff}'], "").replace('\t', "    ")
}

/// Returns a name as one line.
fn name(text: &str) -> String {
    clean(text).replace('\n', " ")
}

fn one_line(text: &str) -> String {
    plain::folded(&clean(text), REASON, "…")
}

/// Writes a finished run in the format of another tool.
pub(crate) type Format = fn(&FinishedRun, &mut dyn Write) -> io::Result<()>;

struct BufferedReporter {
    out: Box<dyn Write + Send>,
    format: Format,
    folder: PathBuf,
    failures_only: bool,
    run: Option<FinishedRun>,
    /// Position of each trial in the plan.
    places: Places,
    trials: Vec<(usize, FinishedTrial)>,
    decisions: Vec<DecisionRecord>,
}

/// Opens a report that is written in one piece at the end of the run.
pub(crate) fn open(options: ReporterOptions, format: Format) -> Box<dyn Reporter> {
    Box::new(BufferedReporter {
        out: options.out,
        format,
        folder: options.folder,
        failures_only: options.failures_only,
        run: None,
        places: Places::default(),
        trials: Vec::new(),
        decisions: Vec::new(),
    })
}

impl Reporter for BufferedReporter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        if let Event::RunStarted(info) = &envelope.event {
            self.places = Places::new(&info.trials);
            self.run = Some(FinishedRun {
                info: info.clone(),
                ended_at: envelope.at,
                signal: None,
                unfinished: info.trials.len(),
                trials: Vec::new(),
                summary: Summary::default(),
                counted: BTreeMap::new(),
                duration_ms: None,
            });
        }
        let Some(run) = &mut self.run else { return Ok(()) };
        run.ended_at = envelope.at;
        match &envelope.event {
            Event::TrialFinished(record) => {
                run.unfinished = run.unfinished.saturating_sub(1);
                run.summary.add(record);
                if !record.is_baseline() && record.quarantine.is_none() {
                    run.counted.entry(name(&record.suite)).or_default().add(record.first_outcome());
                }
                if !self.failures_only || record.outcome != Outcome::Passed {
                    let place = self.places.of(&record.id);
                    self.trials.push((place, FinishedTrial::from_record(record, &self.folder)));
                }
            }
            Event::Decided(decision) => {
                let spared = usize::try_from(decision.spared).unwrap_or(usize::MAX);
                run.unfinished = run.unfinished.saturating_sub(spared);
                self.decisions.push(DecisionRecord::clone(decision));
            }
            Event::RunFinished { duration_ms, signal, .. } => {
                run.signal.clone_from(signal);
                run.duration_ms = Some(*duration_ms);
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(mut run) = self.run.take() {
            self.trials.sort_by_key(|(place, _)| *place);
            run.trials.extend(self.trials.drain(..).map(|(_, trial)| trial));
            let decided = self.decisions.iter().filter(|decision| !self.failures_only || !is_passed(decision));
            let decided: Vec<FinishedTrial> =
                decided.map(|decision| FinishedTrial::from_decision(decision, &run)).collect();
            run.trials.extend(decided);
            run.trials.extend(FinishedTrial::from_missing(&run));
            (self.format)(&run, &mut self.out)?;
        }
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_relative_to_the_root_of_the_repository() {
        let path = |file| in_repository(Path::new("packages/bot"), file);
        assert_eq!(path("tests/a.yaml"), "packages/bot/tests/a.yaml");
        assert_eq!([path("./a.yaml"), path("../b.yaml")], ["packages/bot/a.yaml", "packages/b.yaml"]);
        assert_eq!([path("../../../x.yaml"), path("/x/../y.yaml")], ["../x.yaml", "/y.yaml"]);
        assert_eq!(in_repository(Path::new(""), "a.yaml"), "a.yaml");
    }

    #[test]
    fn control_characters_are_shown_in_text() {
        let text = "a\u{0}\u{1b}[31mb\u{fffe}\u{ffff}\u{202e}\tc\u{2028}d\u{85}é👍";
        assert_eq!(clean(text), "a\\u{0}b\\u{202e}    c\\u{2028}d\\u{85}é👍");
    }
}
