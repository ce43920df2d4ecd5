//! The whole run as one JSON document, `trialrun.report/1`. Fields may be added, but are never renamed; an unknown
//! number is `null`, never 0. The part about the run is indented for reading. Each trial takes a single line: there
//! may be thousands, with some fifty fields each, which are for programs that read line by line or the whole document.

mod arm;
mod finding;
mod reference;
mod texts;
mod trial;

use std::io::{self, BufWriter, Write};
use std::sync::Arc;

use jiff::Timestamp;
use model::{AgentInfo, Envelope, Event, Gate, HookKind, HookRecord, Outcome, RunInfo, Summary, TrialRecord};
use serde_json::{Value, json};

use crate::arms::Arms;
use crate::totals::RunTotals;
use crate::{Reporter, ReporterOptions, RunHash, format};
pub(crate) use arm::{arm, delta};

pub use reference::{comparison_schema, reference, report_schema};
use texts::Texts;
pub use trial::trial_json;
use trial::{Trial, token_usage, usage_of};

/// Name of the document's format and its version.
pub const SCHEMA: &str = "trialrun.report/1";

/// Size of the output buffer, in bytes.
const CHUNK: usize = 256 * 1024;

struct Json {
    out: Box<dyn Write + Send>,
    failures_only: bool,
    hash: RunHash,
    /// The run without its planned trials, and the totals of those that finished, once it has started.
    run: Option<(Box<RunInfo>, RunTotals)>,
    /// Number of planned trials.
    planned: usize,
    /// JSON text of each finished trial, by its position in the plan.
    trials: Texts,
    versions: Versions,
    /// Commands, each with its trial.
    hooks: Vec<(Option<Arc<str>>, HookRecord)>,
    last: Option<Timestamp>,
    over: Option<(Timestamp, u64, Option<String>)>,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Json {
        out: options.out,
        failures_only: options.failures_only,
        hash: options.hash,
        run: None,
        planned: 0,
        trials: Texts::new(options.temp.as_deref()),
        versions: Versions::default(),
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
                self.planned = info.trials.len();
                let mut without_trials = info.clone();
                without_trials.trials = Vec::new();
                self.run = Some((without_trials, RunTotals::new(info, true)));
            }
            Event::TrialFinished(record) => self.trial(record)?,
            Event::Decided(decision) => {
                if let Some((_, totals)) = &mut self.run {
                    totals.decide(decision);
                }
            }
            Event::HookFinished(hook) => self.hooks.push((envelope.trial.clone(), hook.clone())),
            Event::RunFinished { duration_ms, signal, .. } => {
                self.over = Some((envelope.at, *duration_ms, signal.clone()));
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        let Some((mut info, totals)) = self.run.take() else { return self.out.flush() };
        // Commands of one trial stay in the order in which they ran.
        self.hooks.sort_by_key(|(trial, _)| trial.as_deref().map(|trial| totals.place(trial)));
        self.versions.fill(&mut info.agents);

        let Arms { arms, deltas, is_sequential, decisions, .. } = totals.arms();
        let document = json!({
            "schema": SCHEMA,
            "run": self.described(&info),
            "summary": summary(&totals.summary(), totals.gate()),
            "arms": arms.iter().map(arm).collect::<Value>(),
            "deltas": deltas.iter().map(|one| delta(one, !is_sequential)).collect::<Value>(),
            "decisions": decisions,
            "hooks": {
                "pre_run": self.commands(HookKind::PreRun),
                "post_grade": self.commands(HookKind::PostGrade),
                "post_run": self.commands(HookKind::PostRun),
            },
            // Comes last, and is written separately.
            "trials": [],
        });
        let document = serde_json::to_string_pretty(&document)?;
        match document.strip_suffix("[]\n}") {
            Some(front) if !self.trials.is_empty() => {
                // Trials take some kilobytes each, too little for one system call per trial.
                let mut out = BufWriter::with_capacity(CHUNK, &mut self.out);
                out.write_all(front.as_bytes())?;
                let mut before = "[\n    ";
                self.trials.in_order(|text| {
                    out.write_all(std::mem::replace(&mut before, ",\n    ").as_bytes())?;
                    out.write_all(text)
                })?;
                out.write_all(b"\n  ]\n}\n")?;
                out.flush()?;
            }
            _ => writeln!(self.out, "{document}")?,
        }
        self.out.flush()
    }
}

impl Json {
    fn described(&self, info: &RunInfo) -> Value {
        let duration_ms = match (&self.over, self.last) {
            (Some((_, duration_ms, _)), _) => Some(*duration_ms),
            (None, Some(last)) => Some(format::between(info.started_at, last)),
            (None, None) => None,
        };
        let mut described = json!({
            "id": info.id,
            "label": info.label,
            "regrade_of": info.regrade_of,
            "shard": info.shard.as_ref().map(|shard| json!({ "index": shard.index, "of": shard.of })),
            "started_at": info.started_at,
            "finished_at": self.over.as_ref().map(|(at, ..)| at),
            "duration_ms": duration_ms,
            "signal": self.over.as_ref().and_then(|(.., signal)| signal.as_ref()),
            "planned": self.planned,
            "sequential": info.decisions > 0,
            "hash": self.over.as_ref().and(self.hash.get()),
            "trialrun_version": info.trialrun_version,
            "settings": info.settings,
            "agents": info.agents,
            "skills": info.skills,
        });
        if let Some(origin) = &info.origin {
            described["origin"] = json!(origin);
        }
        described
    }

    /// Returns the commands of a hook, in the order in which they ran.
    fn commands(&self, kind: HookKind) -> Value {
        let command = |(trial, hook): &(Option<Arc<str>>, HookRecord)| {
            json!({
                "trial": trial,
                "command": hook.command,
                "exit_code": hook.exit_code,
                "timed_out": hook.timed_out,
                "error": hook.error,
                "stdout": hook.stdout,
                "stderr": hook.stderr,
                "duration_ms": hook.duration_ms,
            })
        };
        self.hooks.iter().filter(|(_, hook)| hook.hook == kind).map(command).collect()
    }

    fn trial(&mut self, record: &TrialRecord) -> io::Result<()> {
        let Some((_, totals)) = &mut self.run else { return Ok(()) };
        let place = totals.add(record);
        self.versions.note(place, record);
        if self.failures_only && record.outcome == Outcome::Passed {
            return Ok(());
        }
        self.trials.add(place, &serde_json::to_vec(&Trial(record))?)
    }
}

/// Versions of the agents, which are known only after they ran. For each agent, the version that its first trial
/// reported.
#[derive(Default)]
struct Versions(Vec<(String, usize, String)>);

impl Versions {
    fn note(&mut self, place: usize, record: &TrialRecord) {
        let Some(version) = &record.agent_version else { return };
        match self.0.iter_mut().find(|(agent, ..)| *agent == record.agent) {
            Some((_, first, noted)) if place < *first => (*first, *noted) = (place, version.clone()),
            Some(_) => {}
            None => self.0.push((record.agent.clone(), place, version.clone())),
        }
    }

    fn fill(&self, agents: &mut [AgentInfo]) {
        for agent in agents.iter_mut().filter(|agent| agent.version.is_none()) {
            let noted = self.0.iter().find(|(known, ..)| *known == agent.name);
            agent.version = noted.map(|(.., version)| version.clone());
        }
    }
}

fn summary(summary: &Summary, gate: Gate) -> Value {
    json!({
        "trials": summary.trials,
        "baseline": summary.baseline,
        "passed": summary.by_outcome.passed,
        "passed_with_signs": summary.passed_with_signs,
        "failed": summary.by_outcome.failed,
        "undecided": summary.by_outcome.undecided,
        "passed_but_undecided": summary.passed_but_undecided,
        "not_judged": summary.not_judged,
        "judge_sample": summary.judge_sample.map(|sample| json!({
            "trials": sample.trials,
            "judged": sample.judged,
            "passed": sample.passed,
            "failed": sample.failed,
            "pass_rate": sample.counted().rate(),
        })),
        "broken": summary.by_outcome.broken,
        "stale": summary.by_outcome.stale,
        "skipped": summary.by_outcome.skipped,
        "cancelled": summary.by_outcome.cancelled,
        "flaky": summary.flaky,
        "quarantined": summary.quarantined,
        "decisions": summary.decisions.all,
        "decisions_not_met": summary.decisions.not_met,
        "decisions_undecided": summary.decisions.undecided,
        "trials_not_needed": summary.decisions.spared,
        "pass_rate": summary.pass_rate,
        "pass_rate_min": summary.pass_rate_min,
        "pass_rate_max": summary.pass_rate_max,
        "required_pass_rate": gate.min_pass_rate,
        "required_pass_rate_result": gate.result(summary),
        "failures_ignored": summary.exit_code() == 1 && gate.ignores_failures(summary),
        "tokens": summary.tokens.map(token_usage),
        "trials_with_tokens": summary.trials_with_tokens,
        "cost_usd": summary.cost_usd,
        "trials_with_cost": summary.trials_with_cost,
        "baseline_tokens": summary.baseline_tokens.map(token_usage),
        "baseline_cost_usd": summary.baseline_cost_usd,
        "judge_usage": usage_of(summary.judge),
        "judge_cost_usd": summary.judge.and_then(|judge| judge.cost_usd),
        "user_usage": usage_of(summary.user),
        "user_cost_usd": summary.user.and_then(|user| user.cost_usd),
    })
}

#[cfg(test)]
mod tests {
    use model::ArmSummary;
    use model::statistics::ArmStatistics;

    use super::*;

    #[test]
    fn summaries_of_runs_and_of_arms_have_a_count_for_every_outcome() {
        let run = summary(&Summary::default(), Gate::default());
        let arm = arm(&ArmSummary {
            arm: "fake".into(),
            agent: "fake".into(),
            model: None,
            variant: None,
            statistics: ArmStatistics::default(),
            trigger: None,
        });
        for outcome in Outcome::ALL {
            assert_eq!((&run[outcome.name()], &arm[outcome.name()]), (&json!(0), &json!(0)), "{}", outcome.name());
        }
    }
}
