//! A Markdown page for pull requests: the summary of the run, its arms, the effect of the skill on each agent, how
//! often the skill was triggered, and the failures with their reasons and locations. Untrusted text is escaped.

pub(crate) mod escape;
mod failure;
mod tables;

use std::io::{self, Write};

use jiff::Timestamp;
use model::{Envelope, Event, HookRecord, Outcome, RunInfo, SkillInfo, Status, Summary, TrialRecord};

use crate::arms::Arms;
use crate::format::{between, cached, counted, elapsed, model_usage, money, number, percent, timestamp};
use crate::names::{Names, is_skill};
use crate::score;
use crate::terminal::arms::{count_notes, warnings};
use crate::terminal::{at_least, cost, known, needs_reason, pass_rates};
use crate::totals::{self, RunTotals};
use crate::{Reporter, ReporterOptions};
use escape::{code, text};
use failure::Section;

/// Maximum number of trials that get their own section, because pages of pull requests are limited in size.
const SECTIONS: usize = 50;
/// Maximum number of trials that are listed.
const TRIALS: usize = 200;
/// Maximum number of signs of tampering listed for a trial.
const SIGNS: usize = 3;
/// Maximum number of skills that are named.
const SKILLS: usize = 20;
/// Maximum number of bytes of a page: a comment on a pull request can hold 65,536 characters.
const BYTES: usize = 65_000;
/// Number of bytes that lists leave for the lines after them.
const REST: usize = 500;

struct Markdown {
    out: Box<dyn Write + Send>,
    failures_only: bool,
    evidence: bool,
    run: Option<Run>,
}

/// State of a run in progress.
struct Run {
    info: RunInfo,
    names: Names,
    totals: RunTotals,
    last: Timestamp,
    over: Option<(u64, Option<String>)>,
    sections: Vec<Section>,
    /// Row of each trial, with its position in the plan.
    trials: Vec<(usize, String)>,
    /// Warnings of trials, with their positions in the plan.
    warnings: Vec<(usize, String)>,
    hooks: Vec<HookRecord>,
}

pub(crate) fn open(options: ReporterOptions) -> Box<dyn Reporter> {
    Box::new(Markdown {
        out: options.out,
        failures_only: options.failures_only || options.quiet,
        evidence: options.show_evidence,
        run: None,
    })
}

impl Reporter for Markdown {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        if let Event::RunStarted(info) = &envelope.event {
            self.run = Some(Run::new(info));
            return Ok(());
        }
        let Some(run) = &mut self.run else { return Ok(()) };
        run.last = envelope.at;
        match &envelope.event {
            Event::TrialFinished(record) => run.trial(record, self.evidence, !self.failures_only),
            Event::HookFinished(hook) if envelope.trial.is_none() && !hook.succeeded() => run.hooks.push(hook.clone()),
            Event::Decided(decision) => run.totals.decide(decision),
            Event::RunFinished { duration_ms, signal, .. } => run.over = Some((*duration_ms, signal.clone())),
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if let Some(run) = self.run.take() {
            self.out.write_all(run.page().as_bytes())?;
        }
        self.out.flush()
    }
}

impl Run {
    fn new(info: &RunInfo) -> Self {
        Self {
            names: Names::new(&info.trials),
            totals: RunTotals::new(info, true),
            last: info.started_at,
            info: info.clone(),
            over: None,
            sections: Vec::new(),
            trials: Vec::new(),
            warnings: Vec::new(),
            hooks: Vec::new(),
        }
    }

    fn trial(&mut self, record: &TrialRecord, evidence: bool, is_listed: bool) {
        let place = self.totals.add(record);
        // The baseline is expected to fail without the skill.
        if needs_reason(record.outcome) && !record.is_baseline() {
            self.sections.push(Section::new(record, place, &self.names, evidence));
        }
        let name = escape::plain_code(&self.names.of_record(record), 200);
        let warned = record.warnings.iter().map(|warning| (place, format!("- {name}: {}\n", text(warning, 1000))));
        self.warnings.extend(warned);
        let signs = record.integrity.iter().take(SIGNS);
        let signs = signs.map(|sign| (place, format!("- {name}: integrity: {}\n", text(&sign.to_string(), 1000))));
        self.warnings.extend(signs);
        if is_listed {
            self.trials.push((place, row(record, &self.names)));
        }
    }

    fn page(mut self) -> String {
        let summary = self.totals.summary();
        let arms = self.totals.arms();
        let mut page = self.head(&summary);
        page.push_str(&tables::decisions(&self.totals.decisions()));
        page.push_str(&figures(&arms));
        let room = |page: &str| BYTES.saturating_sub(page.len());
        page.push_str(&self.failures(room(&page)));
        page.push_str(&self.warned(room(&page)));
        page.push_str(&self.list(room(&page)));
        page
    }

    /// Returns the section with the trials' warnings, in at most `room` bytes.
    fn warned(&mut self, room: usize) -> String {
        if self.warnings.is_empty() || room < REST {
            return String::new();
        }
        self.warnings.sort_by_key(|(place, _)| *place);
        let mut page = String::from("\n### Warnings\n\n");
        let lines = self.warnings.iter().take(SECTIONS).map(|(_, line)| line.as_str());
        let listed = push_all(&mut page, room, lines);
        if self.warnings.len() > listed {
            page.push_str(&format!("\nand {} more\n", self.warnings.len() - listed));
        }
        page
    }

    fn head(&self, summary: &Summary) -> String {
        let signal = self.over.as_ref().and_then(|(_, signal)| signal.as_deref());
        let verdict = self.totals.verdict(signal);
        let mut page = format!("## {}: {}\n\n", verdict.word, text(&verdict.reason, 600));
        let skills: Vec<&SkillInfo> = self.info.skills.iter().filter(|skill| is_skill(&skill.name)).collect();
        for skill in skills.iter().take(SKILLS) {
            let version = skill.version.as_ref().map_or_else(String::new, |version| format!(" {}", text(version, 40)));
            let hash: String = skill.content_hash.chars().take(12).collect();
            page.push_str(&format!("- Skill: {}{version} ({})\n", code(&skill.name, 80), code(&hash, 12)));
        }
        if skills.len() > SKILLS {
            page.push_str(&format!("- and {}\n", counted(skills.len() - SKILLS, "more skill")));
        }
        let (trials, baseline) = self.totals.counted();
        page.push_str(&format!("- Trials: {trials}{baseline}\n"));
        page.push_str(&format!("- Outcomes: {}\n", outcomes(summary)));
        for (name, rate) in pass_rates(summary, &self.totals.gate()) {
            let name = match name {
                "pass rate" => "Trials passed",
                "required" => "Required pass rate",
                _ => "Sample for the judge",
            };
            page.push_str(&format!("- {name}: {rate}\n"));
        }
        let duration = self.over.as_ref().map(|(duration_ms, _)| *duration_ms);
        let duration = duration.unwrap_or_else(|| between(self.info.started_at, self.last));
        page.push_str(&format!("- Duration: {}\n- Tokens: {}\n", elapsed(duration), tokens(summary)));
        page.push_str(&format!("- Cost: {}\n", cost(summary)));
        for (name, took) in [("Judge", &summary.judge), ("Simulated users", &summary.user)] {
            page.push_str(&took.as_ref().map_or_else(String::new, |took| format!("- {name}: {}\n", model_usage(took))));
        }
        if let Some(used) = self.totals.cassettes() {
            page.push_str(&format!("- Cassettes: {}\n", text(&used, 400)));
        }
        for hook in &self.hooks {
            let command = escape::plain_code(&hook.command, 120);
            page.push_str(&format!("- Hook: {} {command}: {}\n", hook.hook.name(), text(&hook.describe(), 200)));
        }
        let label = self.info.label.as_ref().map_or_else(String::new, |label| format!(" ({})", text(label, 80)));
        let began = timestamp(self.info.started_at);
        let version = text(&self.info.trialrun_version, 40);
        page.push_str(&format!("- Run: {}{label}, {began}, trialrun {version}\n", code(&self.info.id, 80)));
        page
    }

    /// Returns the sections about trials that did not pass, in at most `room` bytes. Repetitions with the same result
    /// share one section.
    fn failures(&mut self, room: usize) -> String {
        if self.sections.is_empty() || room < REST {
            return String::new();
        }
        self.sections.sort_by_key(|section| section.place);
        let mut groups: Vec<(&Section, Vec<u64>)> = Vec::new();
        for section in &self.sections {
            let same = |(first, _): &&mut (&Section, Vec<u64>)| first.alike.is_some() && first.alike == section.alike;
            match groups.iter_mut().find(same) {
                Some((_, others)) => others.push(section.repetition),
                None => groups.push((section, Vec::new())),
            }
        }
        let mut page = String::from("\n### Did not pass\n");
        let sections = groups.iter().take(SECTIONS).map(|(section, others)| {
            let text = format!("\n#### {}\n\n{}", escape::plain_code(&section.name, 200), section.text);
            if others.is_empty() {
                return text;
            }
            let numbers: Vec<String> = others.iter().map(u64::to_string).collect();
            format!("{text}- The same in repetition {}.\n", numbers.join(", "))
        });
        let listed = push_all(&mut page, room, sections);
        if groups.len() > listed {
            page.push_str(&format!("\nand {} more\n", groups.len() - listed));
        }
        page
    }

    /// Returns the collapsed list of all trials, in at most `room` bytes.
    fn list(&mut self, room: usize) -> String {
        if self.trials.is_empty() || room < REST {
            return String::new();
        }
        self.trials.sort_by_key(|(place, _)| *place);
        let all = if self.trials.len() > 1 { "All " } else { "" };
        let mut page = format!(
            "\n<details>\n<summary>{all}{}</summary>\n\n| Trial | Outcome | Checks | Skill used | Time (s) | \
             Tokens | Cost (USD) |\n| --- | --- | --- | --- | --- | --- | --- |\n",
            counted(self.trials.len(), "trial")
        );
        let listed = push_all(&mut page, room, self.trials.iter().take(TRIALS).map(|(_, row)| row.as_str()));
        if self.trials.len() > listed {
            page.push_str(&format!("\nand {} more\n", number((self.trials.len() - listed) as u64)));
        }
        page.push_str("\n</details>\n");
        page
    }
}

/// Appends the items that fit into `room` bytes, and returns their number.
fn push_all(part: &mut String, room: usize, items: impl Iterator<Item = impl AsRef<str>>) -> usize {
    let mut listed = 0;
    for item in items {
        let item = item.as_ref();
        if part.len() + item.len() + REST > room {
            break;
        }
        part.push_str(item);
        listed += 1;
    }
    listed
}

/// Returns all figures about arms.
fn figures(arms: &Arms) -> String {
    if arms.arms.is_empty() {
        return String::new();
    }
    let verdicts: String = arms.verdicts().map(|verdict| format!("\n**{}**\n", text(&verdict, 1000))).collect();
    let mut page = format!("{verdicts}\n{}", tables::arms(&arms.arms));
    if !arms.deltas.is_empty() {
        page.push_str(&format!("\n{}", tables::deltas(arms)));
    }
    let notes: Vec<String> = warnings(arms).into_iter().chain(count_notes(arms, true)).collect();
    for note in notes {
        page.push_str(&format!("\n> {}\n", text(&note, 1000)));
    }
    if arms.has_suites() {
        page.push_str(&format!("\n### Suites\n\n{}", tables::suites(arms)));
    }
    if arms.triggering().next().is_some() {
        page.push_str(&format!("\n### Triggering\n\n{}", tables::triggering(arms)));
    }
    let cases = tables::cases(&arms.deltas);
    if !cases.is_empty() {
        page.push_str(&format!("\n### Cases that differ with the skill\n\n{cases}"));
    }
    page
}

fn outcomes(summary: &Summary) -> String {
    let counts = summary.by_outcome;
    let mut parts = vec![format!("{} passed", number(counts.passed as u64))];
    let others = counts.occurring().filter(|(outcome, _)| *outcome != Outcome::Passed);
    let others = others.flat_map(|(outcome, count)| match outcome {
        Outcome::Undecided => [
            (count - summary.passed_but_undecided, outcome.name()),
            (summary.passed_but_undecided, "passed except for undecided assertions"),
        ],
        _ => [(count, outcome.name()), (0, "")],
    });
    for (count, what) in
        others.chain([(summary.flaky, "flaky"), (summary.passed_with_signs, "passed with signs of tampering")])
    {
        if count > 0 {
            parts.push(format!("{} {what}", number(count as u64)));
        }
    }
    parts.extend(totals::quarantined(summary));
    parts.join(", ")
}

fn tokens(summary: &Summary) -> String {
    let Some(tokens) = &summary.tokens else { return "n/a".to_owned() };
    let share = cached(tokens).map(|share| format!("{} of the input cached", percent(share)));
    let notes: Vec<String> = share.into_iter().chain(known(summary, summary.trials_with_tokens)).collect();
    let tokens = at_least(number(tokens.total()), summary, summary.trials_with_tokens);
    if notes.is_empty() { tokens } else { format!("{tokens} ({})", notes.join("; ")) }
}

fn row(record: &TrialRecord, names: &Names) -> String {
    let written =
        |status: Status| record.findings.iter().filter(move |found| found.status == status && !found.implicit);
    let (met, unmet) = (written(Status::Met).count(), written(Status::Unmet).count());
    let open = written(Status::Undecided).count();
    let open = if open > 0 { format!(", {open} undecided") } else { String::new() };
    let outcome = match record.outcome {
        Outcome::Passed if record.flaky => "passed (flaky)".to_owned(),
        _ => score::outcome(record),
    };
    let outcome = if record.quarantine.is_some() { format!("{outcome} (quarantined)") } else { outcome };
    let spent = record.spent();
    let cells = [
        code(&names.of_record(record), 200),
        outcome,
        format!("{met}/{}{open}", met + unmet),
        record.triggered.map_or("", |triggered| if triggered { "yes" } else { "no" }).to_owned(),
        format!("{:.1}", record.duration_ms as f64 / 1000.0),
        spent.tokens.map_or_else(|| "n/a".to_owned(), |tokens| number(tokens.total())),
        spent.cost_usd.map_or_else(|| "n/a".to_owned(), |cost| money(cost).trim_start_matches('$').to_owned()),
    ];
    format!("| {} |\n", cells.join(" | "))
}
