//! One run on one screen: its progress or its result.

use std::collections::{BTreeSet, HashSet};

use jiff::Timestamp;
use model::{
    AgentInfo, Answer, DecisionRecord, Ending, Finding, Gate, HookRecord, Lease, LiveTrial, Outcome, OutcomeCounts,
    RunRow, SideEffects, Status, Tokens, TrialFigures, TrialRecord, TrialRow,
};

use crate::arms::Arms;
use crate::format::{between, cached, counted, elapsed, in_parentheses, money, number, percent, span, timestamp};
use crate::names::is_baseline;
use crate::terminal::{Paint, Style, arms, decisions, doing, run_verdict};
use crate::totals::{EndedRun, Verdict, first_reason, without_result};
use crate::{merged_side_effects, score, show};

/// Maximum number of lines of each kind, unless all are requested.
const MAX_LINES: usize = 20;

/// Input of `status`.
pub struct StatusView<'a> {
    /// The run.
    pub run: &'a RunRow,
    /// Finished trials of the run.
    pub trials: &'a [TrialRow],
    /// Trials that have started and have no outcome yet.
    pub live: &'a [LiveTrial],
    /// `true` if the process that owns the run still exists. Ignored if the run is over.
    pub alive: bool,
    /// The current time.
    pub now: Timestamp,
    /// `true` to list everything.
    pub all: bool,
    /// Details that the lists do not contain; empty if the run is too large to be read completely.
    pub details: &'a Details,
}

impl StatusView<'_> {
    /// Returns the maximum number of lines of each kind.
    fn most(&self) -> usize {
        if self.all { usize::MAX } else { MAX_LINES }
    }
}

/// Details of a run that the lists do not contain.
#[derive(Debug, Clone, Default)]
pub struct Details {
    /// Agents of the run, in the order in which their arms are shown.
    pub agents: Vec<AgentInfo>,
    /// Figures for each finished trial, except trials of quarantined cases.
    pub figures: Vec<TrialFigures>,
    /// Trials that exceeded a budget: their printed ids, each with a description.
    pub over_budget: Vec<(String, String)>,
    /// Side effects on remotes, trial by trial.
    pub side_effects: Vec<SideEffects>,
    /// Reasons why trials have no result, each once.
    pub without_result: BTreeSet<String>,
    /// Commands that ran before and after the run and its trials.
    pub hooks: Vec<HookRecord>,
    /// Decisions about the number of trials.
    pub decisions: Vec<DecisionRecord>,
    /// Conditions under which failed trials do not fail the run.
    pub gate: Gate,
}

impl Details {
    /// Adds a finished trial.
    pub fn add(&mut self, record: &TrialRecord) {
        self.figures.extend(record.quarantine.is_none().then(|| TrialFigures::from_record(record)));
        self.over_budget.extend(over_budget(record).into_iter().map(|reason| (record.id.to_string(), reason)));
        self.side_effects.extend(record.side_effects.iter().cloned());
        self.without_result.extend(without_result(record).map(str::to_owned));
    }
}

/// Returns the budgets that a trial exceeded, whether this failed the trial or only caused a warning.
fn over_budget(record: &TrialRecord) -> Vec<String> {
    let is_budget = |found: &Finding| found.is_about_budget() || found.kind == "turn_budget";
    let unmet = record.findings.iter().filter(|found| found.status == Status::Unmet && is_budget(found));
    let warned = record.warnings.iter().filter(|warning| warning.contains("of a budget of"));
    unmet.map(|found| found.reason.clone()).chain(warned.cloned()).collect()
}

/// Formats the current state of the run.
pub fn status(view: &StatusView<'_>, style: &Style) -> String {
    let paint = Paint::new(*style);
    let mut trials: Vec<&TrialRow> = view.trials.iter().collect();
    trials.sort_by(|a, b| a.id.cmp(&b.id));

    let run = view.run;
    let label = in_parentheses(run.label.as_deref());
    let mut text = verdict(view, &paint);
    text.push_str(&format!("run {}{label}\n", paint.bold(&run.id)));
    text.push_str(&format!("  {}\n", state(view, &paint)));
    text.push_str(&format!("  {}\n", paint.join(&counts(view, &paint))));
    for line in took(view.trials) {
        text.push_str(&format!("  {line}\n"));
    }

    if !view.live.is_empty() {
        let (heading, now) =
            if view.alive { ("running", view.now) } else { ("interrupted before an outcome", last(view)) };
        text.push_str(&format!("\n{}\n", paint.bold(heading)));
        for trial in view.live.iter().take(view.most()) {
            let line = waits(trial, now, view.alive, &paint);
            text.push_str(&format!("  {:>6}  {}  {line}\n", elapsed(between(trial.since, now)), trial.id));
        }
        text.push_str(&more(view.live.len(), view.most(), &paint));
    }

    text.push_str(&arm_tables(view, &paint));

    // The baseline is expected to fail without the skill.
    let mut noted: Vec<&&TrialRow> = trials
        .iter()
        .filter(|trial| trial.outcome == Outcome::Failed || trial.outcome.is_unknown())
        .filter(|trial| !is_baseline(trial))
        .collect();
    let unsuccessful = noted.len();
    let met: HashSet<[&str; 3]> = high_enough(view.details).collect();
    noted.retain(|trial| !met.contains(&[&*trial.suite, &*trial.case, &*trial.arm]));
    let of_met = unsuccessful - noted.len();
    noted.sort_by_key(|trial| (trial.quarantined, trial.outcome != Outcome::Failed));
    if !noted.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("did not pass")));
        for trial in noted.iter().take(view.most()) {
            let reason = trial
                .reason
                .as_deref()
                .map_or_else(String::new, |reason| format!("\n      {}", paint.dim(&paint.folded(reason, 160))));
            let mark =
                paint.as_outcome(trial.outcome, &format!("{} {:<9}", paint.mark(trial.outcome), trial.outcome.name()));
            let score = score::partial(trial.outcome, trial.score, trial.max_score);
            let score = score.map_or_else(String::new, |score| paint.dim(&format!("  score {score}")));
            let quarantined = if trial.quarantined { paint.dim("  quarantined") } else { String::new() };
            text.push_str(&format!("  {mark} {}{score}{quarantined}{reason}\n", trial.id));
        }
        text.push_str(&more(noted.len(), view.most(), &paint));
    }
    if of_met > 0 {
        let trials = counted(of_met, "trial");
        text.push_str(&format!(
            "\n{}\n",
            paint.dim(&format!("{trials} of cases with a high enough pass rate did not pass"))
        ));
    }
    text.push_str(&over(view, &paint));
    text.push_str(&hooks(view, &paint));
    text.push_str(&left_over(view, &paint));
    text
}

/// Returns the suite, the case and the arm of each pass rate that is high enough.
fn high_enough(details: &Details) -> impl Iterator<Item = [&str; 3]> {
    let met = details.decisions.iter().filter(|decision| decision.answer == Answer::Met);
    met.filter_map(|decision| Some([decision.suite.as_deref()?, decision.case.as_deref()?, &*decision.arm]))
}

/// Returns the verdict on a run that is over.
fn verdict(view: &StatusView<'_>, paint: &Paint) -> String {
    let run = view.run;
    let Some(summary) = run.summary.as_ref().filter(|_| run.finished_at.is_some()) else {
        return String::new();
    };
    let reasons = |outcome: Outcome| {
        let trials = view.trials.iter().filter(move |trial| trial.outcome == outcome);
        trials.map(|trial| trial.reason.as_deref()).collect::<BTreeSet<_>>()
    };
    let (not_started, skipped) = (reasons(Outcome::Cancelled), reasons(Outcome::Skipped));
    let stopped = Ending::Cancelled.describe();
    let is_not_started = |reason: &&str| *reason != stopped;
    let verdict = Verdict::of(&EndedRun {
        summary,
        planned: run.planned,
        decisions: &view.details.decisions,
        not_started: first_reason(not_started.iter().flatten().copied().find(is_not_started).into_iter()),
        skipped: first_reason(skipped.iter().flatten().copied()),
        without_result: first_reason(view.details.without_result.iter().map(String::as_str)),
        gate: view.details.gate,
        signal: run.signal.as_deref(),
        missing_shards: run.missing_shards.as_ref(),
    });
    run_verdict(&verdict, paint)
}

/// Returns the verdict on a run, as in the first lines of [`status`]; empty for a run that has not ended.
pub fn status_verdict(view: &StatusView<'_>, style: &Style) -> String {
    verdict(view, &Paint::new(*style))
}

/// Returns the tables of arms, if there is something to compare.
fn arm_tables(view: &StatusView<'_>, paint: &Paint) -> String {
    let details = view.details;
    let all = Arms::of(&details.figures, &details.agents).with_decisions(&details.decisions);
    let decided = match view.all {
        true => decisions::first_rows(&details.decisions, usize::MAX, paint),
        false => decisions::table(&details.decisions, paint),
    };
    if all.arms.len() < 2 && all.arms.iter().all(|arm| arm.variant.is_none()) {
        return decided;
    }
    decided + &arms::tables(&all, paint) + &arms::notes(&all, paint)
}

fn over(view: &StatusView<'_>, paint: &Paint) -> String {
    let mut lines: Vec<(&str, String)> = Vec::new();
    for (trial, reason) in &view.details.over_budget {
        lines.push((trial, reason.clone()));
    }
    for trial in view.trials.iter().filter(|trial| trial.over_budget()) {
        if let (Some(tokens), Some(budget)) = (trial.tokens, trial.token_budget)
            && !lines.iter().any(|(known, _)| *known == trial.id)
        {
            let (used, budget) = (number(tokens.total()), number(budget as u64));
            lines.push((&trial.id, format!("{used} tokens used, of a budget of {budget}")));
        }
    }
    if lines.is_empty() {
        return String::new();
    }
    lines.sort();
    let mut text = format!("\n{}\n", paint.bold("over budget"));
    for (trial, reason) in lines.iter().take(view.most()) {
        let reason = paint.folded(reason, 160);
        text.push_str(&format!("  {} {trial}\n      {}\n", paint.yellow("!"), paint.dim(&reason)));
    }
    text + &more(lines.len(), view.most(), paint)
}

/// Returns the number of commands that ran, and of those that failed.
fn hooks(view: &StatusView<'_>, paint: &Paint) -> String {
    let hooks = &view.details.hooks;
    if hooks.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.bold("hooks"));
    let failed: Vec<&HookRecord> = hooks.iter().filter(|hook| !hook.succeeded()).collect();
    text.push_str(&format!("  {} ran, {} failed\n", number(hooks.len() as u64), number(failed.len() as u64)));
    for hook in failed.iter().take(view.most()) {
        let how = format!("{} `{}`: {}", hook.hook.name(), hook.command, hook.describe());
        let how = paint.folded(&how, 160);
        text.push_str(&format!("  {} {how}\n", paint.red(paint.mark(Outcome::Failed))));
    }
    text + &more(failed.len(), view.most(), paint)
}

/// Returns the side effects on remotes, and the command that removes them.
fn left_over(view: &StatusView<'_>, paint: &Paint) -> String {
    let left = &view.details.side_effects;
    if left.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{}\n", paint.bold("left on remotes"));
    for effects in merged_side_effects(left) {
        text.push_str(&format!("  {}\n", paint.folded(&show::remote(&effects), 400)));
    }
    text + &format!("  {}\n", paint.dim(&format!("trialrun cleanup {}", view.run.short)))
}

fn state(view: &StatusView<'_>, paint: &Paint) -> String {
    let run = view.run;
    match (run.finished_at, view.alive) {
        (Some(_), _) => {
            let length = run.duration_ms.map_or_else(String::new, |ms| format!(" after {}", elapsed(ms)));
            match &run.signal {
                Some(signal) => {
                    paint.yellow(&format!("stopped by {signal}{length}, started {}", timestamp(run.started_at)))
                }
                None => format!("finished{length}, started {}", timestamp(run.started_at)),
            }
        }
        (None, true) => {
            let owner = run.lease.as_ref().map_or_else(String::new, |lease| format!(" in {}", lease.owner));
            paint.cyan(&format!("running for {}{owner}", elapsed(between(run.started_at, view.now))))
        }
        (None, false) => {
            let last = |lease: &Lease| format!(": {} last wrote {}", lease.owner, timestamp(lease.renewed_at));
            let last = run.lease.as_ref().map_or_else(String::new, last);
            paint.yellow(&format!("interrupted{last}, started {}", timestamp(run.started_at)))
        }
    }
}

fn counts(view: &StatusView<'_>, paint: &Paint) -> Vec<String> {
    let run = view.run;
    // A cancelled trial has an outcome, but did not finish.
    let cancelled = view.trials.iter().filter(|trial| trial.outcome == Outcome::Cancelled).count();
    let finished = number(run.finished.saturating_sub(cancelled) as u64);
    let mut parts = vec![format!("{finished} of {} finished", counted(run.needed(), "trial"))];
    let is_counted = |trial: &&TrialRow| !is_baseline(trial) && !trial.quarantined;
    let under_test = || view.trials.iter().filter(is_counted);
    let flaky = under_test().filter(|trial| trial.flaky).count();
    for (outcome, count) in OutcomeCounts::of(under_test().map(|trial| trial.outcome)).occurring() {
        let note = match outcome {
            Outcome::Passed if flaky > 0 => format!(" ({} flaky)", number(flaky as u64)),
            _ => String::new(),
        };
        parts.push(paint.as_outcome(outcome, &format!("{count} {}{note}", outcome.name())));
    }
    let baseline = view.trials.iter().filter(|trial| is_baseline(trial)).count();
    if baseline > 0 {
        parts.push(paint.dim(&format!("{} without the skill", number(baseline as u64))));
    }
    let quarantined = view.trials.len() - baseline - under_test().count();
    if quarantined > 0 {
        parts.push(paint.yellow(&format!("{} quarantined", number(quarantined as u64))));
    }
    parts
}

/// Returns the tokens of all trials, with the share of the input that came from a cache, and their cost.
fn took(trials: &[TrialRow]) -> [String; 2] {
    // A sum without some of the trials is a lower limit.
    let limit = |known: usize| match known < trials.len() {
        true => ("at least ", format!(" ({known} of {} trials known)", trials.len())),
        false => ("", String::new()),
    };
    let known: Vec<Tokens> = trials.iter().filter_map(|trial| trial.tokens).collect();
    let mut tokens = Tokens::default();
    known.iter().for_each(|more| tokens += *more);
    let mut costs: Vec<f64> = trials.iter().filter_map(|trial| trial.cost_usd).collect();
    costs.sort_unstable_by(f64::total_cmp);
    let share = cached(&tokens).map_or_else(String::new, |share| format!(", {} of the input cached", percent(share)));
    [
        match known.len() {
            0 => "tokens n/a".into(),
            known => {
                let (at_least, known) = limit(known);
                format!("{at_least}{} tokens{share}{known}", number(tokens.total()))
            }
        },
        match costs.len() {
            0 => "cost n/a".into(),
            known => {
                let (at_least, known) = limit(known);
                format!("cost {at_least}{}{known}", money(costs.iter().sum()))
            }
        },
    ]
}

fn waits(trial: &LiveTrial, now: Timestamp, alive: bool, paint: &Paint) -> String {
    let verb = if alive { "waits for" } else { "waited for" };
    let mut parts = Vec::new();
    match (&trial.waiting_on, trial.waiting_since) {
        (Some(on), since) => {
            let since = since.map_or_else(String::new, |since| format!(" ({})", span(between(since, now))));
            parts.push(format!("{verb} {on}{since}"));
        }
        (None, _) => parts.push("started".into()),
    }
    if let Some(what) = trial.last_step.as_ref().and_then(|step| doing(step, paint)) {
        let ago = trial.last_step_at.map_or_else(String::new, |at| format!(" {} ago", span(between(at, now))));
        parts.push(format!("{what}{ago}"));
    }
    if trial.attempt > 1 {
        parts.push(format!("attempt {}", trial.attempt));
    }
    paint.dim(&paint.join(&parts))
}

/// Returns the time of the last activity of a run that was interrupted.
fn last(view: &StatusView<'_>) -> Timestamp {
    let last_event =
        view.live.iter().flat_map(|trial| [Some(trial.since), trial.waiting_since, trial.last_step_at]).flatten();
    last_event.chain(view.trials.iter().map(TrialRow::finished_at)).max().unwrap_or(view.run.started_at)
}

fn more(count: usize, most: usize, paint: &Paint) -> String {
    if count <= most {
        return String::new();
    }
    format!("  {}\n", paint.dim(&format!("and {} more: `trialrun status --all`", number((count - most) as u64))))
}
