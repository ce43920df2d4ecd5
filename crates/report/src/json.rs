//! The whole run as one JSON document, `trialrun.report/1`. Fields are added, never renamed; an unknown number is
//! `null`, never 0. What is told of the run is laid out for reading, and each trial stands on a line of its own: there may
//! be thousands of them, of half a hundred fields each, which are for programs that read lines or the whole.

mod arm;
mod finding;
mod hook;
mod reference;
mod schema;
mod trial;

use std::collections::HashMap;
use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use jiff::Timestamp;
use model::{
    AgentInfo, Aside, Envelope, Event, HookRecord, Outcome, RunInfo, SkillInfo, Summary, Tokens, TrialFigures,
    TrialRecord,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::arms::Arms;
use crate::{Opening, Reporter, figure};
use arm::{Arm, Delta};
use hook::{Hooks, Ran};

pub use reference::reference;
pub use schema::report_schema;
pub use trial::trial_json;
use trial::{Trial, Used};

/// Names the document's form and its version.
pub const SCHEMA: &str = "trialrun.report/1";

/// How much is written at a time, in bytes.
const CHUNK: usize = 256 * 1024;

struct Json {
    out: Box<dyn Write + Send>,
    failures_only: bool,
    info: Option<RunInfo>,
    trials: Trials,
    hooks: Vec<Ran>,
    last: Option<Timestamp>,
    over: Option<(Timestamp, u64, Option<String>)>,
}

pub(crate) fn open(opening: Opening) -> Box<dyn Reporter> {
    Box::new(Json {
        out: opening.out,
        failures_only: opening.failures_only,
        info: None,
        trials: Trials::default(),
        hooks: Vec::new(),
        last: None,
        over: None,
    })
}

impl Reporter for Json {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        self.last = Some(envelope.at);
        match &envelope.event {
            Event::RunStarted(info) => {
                self.trials.expect(info.trials.len());
                self.info = Some((**info).clone());
            }
            Event::TrialFinished(record) => self.trial((**record).clone())?,
            Event::HookFinished(hook) => self.hook(envelope.trial.clone(), hook.clone()),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.over = Some((envelope.at, *duration_ms, signal.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    fn take(&mut self, envelope: Arc<Envelope>) -> io::Result<()> {
        match Arc::try_unwrap(envelope) {
            Ok(Envelope { at, event: Event::TrialFinished(record), .. }) => {
                self.last = Some(at);
                self.trial(*record)
            }
            Ok(other) => self.event(&other),
            Err(shared) => self.event(&shared),
        }
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some(mut info) = self.info.take() else { return self.out.flush() };
        let places: HashMap<String, usize> =
            info.trials.iter().enumerate().map(|(place, id)| (id.to_string(), place)).collect();
        let place = |id: &str| places.get(id).copied().unwrap_or(usize::MAX);
        let (trials, texts) = std::mem::take(&mut self.trials).in_order(|trial| place(&trial.id));
        // Those of one trial stay in the order in which they ran.
        self.hooks.sort_by_key(|ran| ran.trial.as_deref().map(place));

        // An agent's version is known only after it was spoken to.
        for agent in info.agents.iter_mut().filter(|agent| agent.version.is_none()) {
            let told = trials.iter().filter(|trial| trial.agent == agent.name);
            agent.version = told.filter_map(|trial| trial.agent_version.clone()).next();
        }

        let summary = Summary::of(&trials);
        let figures: Vec<TrialFigures> = trials.iter().map(TrialFigures::of).collect();
        let Arms { arms, deltas } = Arms::of(&figures, &info.agents);
        let document = Document {
            schema: SCHEMA,
            run: Run {
                id: &info.id,
                label: info.label.as_deref(),
                regrade_of: info.regrade_of.as_deref(),
                started_at: info.started_at,
                finished_at: self.over.as_ref().map(|(at, _, _)| *at),
                duration_ms: match (&self.over, self.last) {
                    (Some((_, duration_ms, _)), _) => Some(*duration_ms),
                    (None, Some(last)) => Some(figure::between(info.started_at, last)),
                    (None, None) => None,
                },
                signal: self.over.as_ref().and_then(|(_, _, signal)| signal.as_deref()),
                planned: info.trials.len(),
                trialrun_version: &info.trialrun_version,
                settings: &info.settings,
                agents: &info.agents,
                skills: &info.skills,
            },
            summary: Counts::of(&summary),
            arms: arms.iter().map(Arm::of).collect(),
            deltas: deltas.iter().map(Delta::of).collect(),
            hooks: Hooks::of(&self.hooks),
            trials: [],
        };
        let document = serde_json::to_string_pretty(&document)?;
        match document.strip_suffix("[]\n}") {
            Some(front) if !texts.is_empty() => {
                // Trials are some kilobytes each: too short to be handed to the system one by one.
                let mut out = BufWriter::with_capacity(CHUNK, &mut self.out);
                out.write_all(front.as_bytes())?;
                let mut before = "[\n    ";
                for text in texts {
                    out.write_all(before.as_bytes())?;
                    out.write_all(&text)?;
                    before = ",\n    ";
                }
                out.write_all(b"\n  ]\n}\n")?;
                out.flush()?;
            }
            _ => writeln!(self.out, "{document}")?,
        }
        self.out.flush()
    }
}

impl Json {
    fn hook(&mut self, trial: Option<String>, hook: HookRecord) {
        self.hooks.push(Ran { trial, hook });
    }

    fn trial(&mut self, record: TrialRecord) -> io::Result<()> {
        let is_shown = !self.failures_only || record.outcome != Outcome::Passed;
        self.trials.add(record, is_shown)
    }
}

/// Finished trials: what the document says of each, written while the run goes on, and what the figures are made of.
#[derive(Default)]
struct Trials {
    /// Each with its text; none where it is not shown.
    all: Vec<(TrialRecord, Option<Box<[u8]>>)>,
    /// The text that is being written; one is about as long as the other.
    text: Vec<u8>,
}

impl Trials {
    /// Makes room: a list of thousands that grows is copied again and again.
    fn expect(&mut self, more: usize) {
        self.all.reserve(more);
    }

    fn add(&mut self, mut record: TrialRecord, is_shown: bool) -> io::Result<()> {
        self.text.clear();
        if is_shown {
            serde_json::to_writer(&mut self.text, &Trial::of(&record))?;
        }
        strip(&mut record);
        self.all.push((record, is_shown.then(|| self.text.as_slice().into())));
        Ok(())
    }

    /// The trials in the order of their places, and the texts of those that are shown.
    fn in_order(mut self, place: impl Fn(&TrialRecord) -> usize) -> (Vec<TrialRecord>, Vec<Box<[u8]>>) {
        self.all.sort_by_cached_key(|(trial, _)| place(trial));
        let (trials, texts): (Vec<_>, Vec<_>) = self.all.into_iter().unzip();
        (trials, texts.into_iter().flatten().collect())
    }
}

/// Takes away what is large and in no figure: it is written down already.
fn strip(record: &mut TrialRecord) {
    for finding in &mut record.findings {
        finding.because = String::new();
        finding.evidence = Vec::new();
        (finding.expected, finding.actual, finding.source) = (None, None, None);
        (finding.details, finding.failures, finding.captures) = (Vec::new(), Vec::new(), Vec::new());
    }
    (record.answer, record.result, record.expected, record.vars) = (None, None, None, None);
    (record.input_value, record.script, record.skill) = (None, None, None);
    (record.input, record.tools, record.tool_calls, record.questions) = Default::default();
    (record.files_changed, record.errors, record.warnings) = Default::default();
    record.settings = Map::new();
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    run: Run<'a>,
    summary: Counts,
    arms: Vec<Arm<'a>>,
    deltas: Vec<Delta<'a>>,
    hooks: Hooks<'a>,
    /// Last, and written by itself.
    trials: [Value; 0],
}

#[derive(Serialize)]
struct Run<'a> {
    id: &'a str,
    label: Option<&'a str>,
    regrade_of: Option<&'a str>,
    started_at: Timestamp,
    finished_at: Option<Timestamp>,
    duration_ms: Option<u64>,
    signal: Option<&'a str>,
    planned: usize,
    trialrun_version: &'a str,
    settings: &'a Map<String, Value>,
    agents: &'a [AgentInfo],
    skills: &'a [SkillInfo],
}

#[derive(Serialize)]
struct Counts {
    trials: usize,
    baseline: usize,
    passed: usize,
    failed: usize,
    undecided: usize,
    broken: usize,
    skipped: usize,
    cancelled: usize,
    flaky: usize,
    pass_rate: Option<f64>,
    tokens: Option<Used>,
    cost_usd: Option<f64>,
    trials_with_cost: usize,
    baseline_tokens: Option<Used>,
    baseline_cost_usd: Option<f64>,
    judge_usage: Option<Used>,
    judge_cost_usd: Option<f64>,
    user_usage: Option<Used>,
    user_cost_usd: Option<f64>,
}

impl Counts {
    fn of(summary: &Summary) -> Self {
        Self {
            trials: summary.trials,
            baseline: summary.baseline,
            passed: summary.passed,
            failed: summary.failed,
            undecided: summary.undecided,
            broken: summary.broken,
            skipped: summary.skipped,
            cancelled: summary.cancelled,
            flaky: summary.flaky,
            pass_rate: summary.pass_rate,
            tokens: summary.tokens.as_ref().map(Used::of),
            cost_usd: summary.cost_usd,
            trials_with_cost: summary.trials_with_cost,
            baseline_tokens: summary.baseline_tokens.as_ref().map(Used::of),
            baseline_cost_usd: summary.baseline_cost_usd,
            judge_usage: used_aside(summary.judge),
            judge_cost_usd: summary.judge.and_then(|judge| judge.cost_usd),
            user_usage: used_aside(summary.user),
            user_cost_usd: summary.user.and_then(|user| user.cost_usd),
        }
    }
}

/// The tokens of what was asked of models beside the agent's.
fn used_aside(aside: Option<Aside>) -> Option<Used> {
    aside?.tokens.as_ref().map(Used::of)
}

impl Used {
    fn of(tokens: &Tokens) -> Self {
        Self {
            input: tokens.input,
            cache_read: tokens.cache_read,
            cache_write: tokens.cache_write,
            output: tokens.output,
            reasoning: tokens.reasoning,
            total: tokens.total(),
        }
    }
}
