//! The comparison as text for the terminal.

use std::cmp::Ordering;

use model::statistics::{Counted, WithinMargin, wilson};
use model::{Outcome, Part, RunRow, Segment, Status};

use super::case::Side;
use super::evidence::{Call, Evidence, Flip};
use super::rounds::sum;
use super::totals::{self, Plot, Total};
use super::{CaseChange, Change, Comparison, Dimension, SmallRegressions, quarantine, stopping, test_files, variants};
use crate::align::Row;
use crate::columns;
use crate::decisions;
use crate::format::{counted, elapsed, in_parentheses, money, number, range, share, timestamp};
use crate::terminal::arms::folded;
use crate::terminal::grid::{Cell, CellStyle, Grid};
use crate::terminal::{Paint, Style, diff};
use crate::verdict::UNLIKELY;

/// Maximum number of changes of each kind that are listed.
const LISTED: usize = 10;
/// Maximum number of flipped assertions listed for a case.
const FLIPS: usize = 5;
/// Number of tool calls before and after the first divergence.
const AROUND: (usize, usize) = (2, 5);
/// Maximum width of a sentence, which is wrapped.
const SENTENCE: usize = 1000;
/// Explains the intervals.
const INTERVAL: &str =
    "95% interval: where the true difference for other cases like these probably is; there may be none if 0 is in it.";
/// Explains the p-values in the sentence.
const P_VALUE: &str =
    "p: how likely so large a difference would be if nothing had changed; below 0.05, chance is unlikely.";
/// Maximum width of a reason.
const REASON: usize = 160;

impl Comparison {
    /// Returns the comparison as text: the result in a sentence, the differences in settings, the figures, regressions
    /// and other changes.
    pub fn draw(&self, style: &Style) -> String {
        let paint = Paint::new(*style);
        let mut text = folded(&paint.folded(&self.sentence(), SENTENCE), &paint, Paint::bold);
        text.push('\n');
        if let Some(sentence) = self.margin_sentence() {
            text.push_str(&folded(&paint.folded(&sentence, SENTENCE), &paint, Paint::bold));
        }
        if let Some(sentence) = self.preference_sentence() {
            text.push_str(&folded(&paint.folded(&sentence, SENTENCE), &paint, Paint::bold));
        }
        self.sides(&paint).iter().for_each(|side| text.push_str(&format!("  {}\n", paint.dim(side))));
        text.push_str(&self.differences(&paint));
        text.push_str(&self.figures(&paint));
        text.push_str(&self.arms.draw(&paint));
        text.push_str(&self.stopping(&paint));
        text.push_str(&self.draw_preference(&paint));
        let width = columns::widest(self.cases.iter().map(|case| &case.name)).min(56);
        for (heading, cases) in self.groups() {
            text.push_str(&format!("\n{}\n", paint.bold(&format!("{heading} ({})", cases.len()))));
            for case in cases.iter().take(LISTED) {
                text.push_str(&case.draw(width, &paint));
            }
            if cases.len() > LISTED {
                let more = format!("and {}", self.more(cases.len() - LISTED));
                text.push_str(&format!("  {}\n", paint.dim(&more)));
            }
        }
        let same = self.cases.iter().filter(|case| case.change == Change::Same);
        let (same, skipped): (Vec<_>, Vec<_>) = same.partition(|case| case.gain().is_some());
        text.push('\n');
        for (cases, what) in [(same, "unchanged"), (skipped, "skipped on both sides")] {
            if !cases.is_empty() {
                text.push_str(&format!("  {} {what}\n", counted(cases.len(), "case")));
            }
        }
        for note in self.notes() {
            text.push_str(&folded(&paint.folded(&note, SENTENCE), &paint, Paint::dim));
        }
        text
    }

    /// Says how many cases are not listed, and which command shows them.
    pub(super) fn more(&self, count: usize) -> String {
        let count = number(count as u64);
        let by = match self.by {
            Dimension::Run => None,
            Dimension::Agent => Some("agent"),
            Dimension::Model => Some("model"),
            Dimension::Variant => Some("variant"),
        };
        match (&self.runs, by) {
            (None, _) => format!("{count} more"),
            (Some(runs), None) => {
                format!(
                    "{count} more: `trialrun compare {} {} --format html > comparison.html`",
                    runs[0].short, runs[1].short
                )
            }
            (Some(runs), Some(by)) => {
                format!("{count} more: `trialrun compare {} --by {by} --format html > comparison.html`", runs[0].short)
            }
        }
    }

    /// Names the runs, or the values that are compared.
    fn sides(&self, paint: &Paint) -> Vec<String> {
        let lines = match (&self.runs, &self.names) {
            (Some(runs), _) if self.by == Dimension::Run => {
                let line = |(name, run): (&str, &RunRow)| {
                    let label = in_parentheses(run.label.as_deref());
                    format!("{name:<6}  {}{label}  {}", run.id, timestamp(run.started_at))
                };
                ["before", "after"].into_iter().zip(runs.iter()).map(line).collect()
            }
            (runs, Some([before, after])) => {
                let run = runs.as_ref().map_or_else(String::new, |runs| format!(" in run {}", runs[0].id));
                vec![format!("{before} {} {after}{run}", paint.symbols().arrow)]
            }
            _ => Vec::new(),
        };
        lines.iter().map(|line| paint.one_line(line, 200)).collect()
    }

    /// Returns the decisions about the number of trials. The text begins with an empty line, unless there are none.
    fn stopping(&self, paint: &Paint) -> String {
        let sentences: String =
            self.decision_sentences().iter().map(|sentence| folded(sentence, paint, Paint::bold)).collect();
        let gap = if sentences.is_empty() { "" } else { "\n" };
        format!("{gap}{sentences}{}", self.decisions.draw(self.short_names(), paint))
    }

    /// Returns a sentence for each decision about two arms.
    pub(crate) fn decision_sentences(&self) -> Vec<String> {
        self.decisions.sentences((self.by == Dimension::Run).then(|| self.short_names()))
    }

    /// Returns the decisions about cases as rows of text, below a row of headings.
    pub(crate) fn decision_rows(&self, paint: &Paint) -> Vec<[String; 6]> {
        self.decisions.rows(self.short_names(), paint)
    }

    /// Returns the arms as rows of text, below a row of headings.
    pub(crate) fn arm_rows(&self) -> Vec<[String; 10]> {
        self.arms.rows()
    }

    /// Describes the two sides, and the settings and skills that differ.
    pub(crate) fn sides_and_differences(&self, paint: &Paint) -> Vec<String> {
        self.sides(paint).into_iter().chain(self.changed_settings(paint)).collect()
    }

    /// Returns the differences between the runs: test files first, then settings and skills.
    pub(super) fn changed_settings(&self, paint: &Paint) -> Vec<String> {
        let settings = self.settings.iter().map(|change| change.describe(paint));
        test_files::describe(&self.test_files).into_iter().chain(settings).chain(self.changed_skills(paint)).collect()
    }

    fn changed_skills(&self, paint: &Paint) -> impl Iterator<Item = String> {
        self.skills.iter().filter(|skill| skill.has_changed()).map(move |skill| skill.describe(paint))
    }

    /// Returns the figures as rows of text, below a row of headings.
    pub(crate) fn table_rows(&self) -> Vec<[String; 6]> {
        let [before, after] = self.short_names().map(str::to_owned);
        let heads = ["in both".into(), before, after, "difference".into(), "95% interval".into(), "cases".into()];
        let row = |total: &Total| {
            let cases = number(total.cases as u64);
            let [before, after] = [total.side(0), total.side(1)];
            [total.name.into(), before, after, total.change(), total.interval(), cases]
        };
        let rows = self.totals.iter().map(row);
        if self.totals.is_empty() { Vec::new() } else { std::iter::once(heads).chain(rows).collect() }
    }

    /// Returns the differences of the figures to draw, in the order of the rows.
    pub(crate) fn plots(&self) -> Vec<Option<Plot>> {
        self.totals.iter().map(Total::plot).collect()
    }

    fn differences(&self, paint: &Paint) -> String {
        let tests = test_files::describe(&self.test_files).map(|line| paint.folded(&line, SENTENCE));
        let tests = tests.map_or_else(String::new, |line| folded(&line, paint, Paint::yellow));
        let settings = self.settings.iter().map(|change| change.describe(paint)).chain(self.changed_skills(paint));
        tests + &settings.map(|line| format!("  {line}\n")).collect::<String>()
    }

    fn figures(&self, paint: &Paint) -> String {
        if self.totals.is_empty() {
            return String::new();
        }
        let mut rows = self.table_rows().into_iter();
        let heads = rows.next().unwrap_or_default().map(|head| paint.folded(&head, 24));
        let ranks = [0, 0, 0, 0, 2, 1];
        let columns: Vec<(&str, u8)> = heads.iter().map(String::as_str).zip(ranks).collect();
        let mut grid = Grid::new(&columns);
        for (total, row) in self.totals.iter().zip(rows) {
            let style = match total.p_value.is_some_and(|p_value| p_value < UNLIKELY) {
                true if total.mean.min > 0.0 => CellStyle::Green,
                true if total.mean.max < 0.0 => CellStyle::Red,
                _ => CellStyle::Plain,
            };
            let [name, before, after, change, interval, cases] = row;
            let change = Cell::new(change, style);
            grid.row([name.into(), before.into(), after.into(), change, interval.into(), cases.into()]);
        }
        format!("\n{}", grid.draw(paint))
    }

    /// Returns notes: how to read the figures, which cases are not compared, and which regressions the exit code
    /// ignores.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        let has_interval = self.totals.iter().any(|total| total.ci95.is_some());
        let has_p_value = self.sentence().contains("(p ") && !self.is_sequential;
        let reading: Vec<&str> = [(has_interval, INTERVAL), (has_p_value, P_VALUE)]
            .iter()
            .filter(|(is, _)| *is)
            .map(|(_, note)| *note)
            .collect();
        if !reading.is_empty() {
            notes.push(reading.join(" "));
        }
        if self.is_sequential {
            notes.push(format!("{} {}", decisions::NOTE, stopping::ROUNDS));
        }
        let [before, after] = self.short_names();
        let [missing, added] = self.unpaired();
        let mut left_out: Vec<String> = [(missing, before), (added, after)]
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, side)| format!("{} only in {side}", counted(*count, "case")))
            .collect();
        left_out.extend((!self.quarantined.is_empty()).then(|| quarantine::describe(&self.quarantined)));
        left_out.extend(variants::describe(&self.about_skill));
        if !left_out.is_empty() {
            notes.push(format!("Not compared: {}.", left_out.join(", ")));
        }
        for (lacking, name) in totals::one_sided(&self.cases).iter().zip([before, after]) {
            if !lacking.is_empty() {
                let (what, them) = (lacking.join(" and "), if lacking[..] == ["cost"] { "it" } else { "them" });
                notes.push(format!("Not compared: {what}; {name} does not have {them} for all trials of any case."));
            }
        }
        if self.names.as_ref().is_some_and(|names| names.iter().all(|name| variants::ARMS.contains(&&**name))) {
            notes.push(variants::NOTE.to_owned());
        }
        if self.is_incomplete() {
            let is_worse = self.has_regressed() || self.within_margin() == Some(WithinMargin::Refuted);
            notes.push(match is_worse {
                true => "The comparison is incomplete, but the missing results cannot change its answer.".to_owned(),
                false => "The comparison is incomplete (exit code 3).".to_owned(),
            });
        }
        if self.has_regressions() && !self.has_regressed() {
            let threshold = self.threshold_in_points();
            notes.push(match self.small_regressions() {
                SmallRegressions::Certain => {
                    format!("Regressions within the threshold of {threshold} points do not fail the comparison.")
                }
                SmallRegressions::Mixed => format!(
                    "Regressions that may be chance, or are within the threshold of {threshold} points, do not fail the \
                     comparison; more trials of each case reduce chance."
                ),
                SmallRegressions::Uncertain => {
                    "Regressions that may be chance do not fail the comparison; more trials of each case reduce chance."
                        .to_owned()
                }
            });
        }
        if self.counts_any && self.has_regressed() {
            notes.push("Every regression fails the comparison, also one that may be chance.".to_owned());
        }
        notes
    }
}

impl CaseChange {
    fn draw(&self, width: usize, paint: &Paint) -> String {
        let mark = match self.change {
            Change::Regressed if self.is_confirmed => paint.red(paint.mark(Outcome::Failed)),
            Change::Regressed => paint.yellow(paint.mark(Outcome::Failed)),
            Change::Fixed | Change::Improved => paint.green(paint.mark(Outcome::Passed)),
            _ => paint.yellow("~"),
        };
        let (figures, reason) = self.figures(paint);
        let name = columns::padded(&paint.folded(&self.name, 120), width);
        let mut text = format!("  {mark} {name}  {figures}");
        if self.change != Change::Changed {
            text.push_str(&format!("  {}", paint.dim(&reason)));
        }
        text.push('\n');
        match &self.evidence {
            Some(evidence) => {
                let drawn = evidence.draw(paint);
                // Trials that did not run have nothing to show.
                if !drawn.trim().is_empty() {
                    if !self.is_single() {
                        text.push_str(&format!("      {}\n", paint.dim("one trial of each side:")));
                    }
                    text.push_str(&drawn);
                }
            }
            None => {
                let reason = self.after.reason.as_ref().filter(|_| self.change == Change::Regressed);
                let line = |reason: &String| format!("      {}\n", paint.dim(&paint.folded(reason, REASON)));
                text.push_str(&reason.map_or_else(String::new, line));
            }
        }
        text
    }

    /// Returns the passed trials of both sides, and what caused the change.
    pub(crate) fn figures(&self, paint: &Paint) -> (String, String) {
        let arrow = paint.symbols().arrow;
        (format!("{} {arrow} {}", self.before.describe(), self.after.describe()), self.reason(arrow))
    }

    /// Returns what caused the change: the confidence in the difference of passes, or the scores.
    fn reason(&self, arrow: &str) -> String {
        let (before, after) = (&self.before.results, &self.after.results);
        match (self.paired().change(), before.score(), after.score()) {
            (Some(Ordering::Equal), Some(before), Some(after)) => {
                format!("score {} {arrow} {}", share(before), share(after))
            }
            _ => self.confidence(),
        }
    }

    /// Describes the confidence that the numbers allow.
    fn confidence(&self) -> String {
        if self.is_single() {
            return "n = 1: no interval".into();
        }
        if self.is_sequential {
            let interval = |side: &Side| range(sum(side.in_order.iter()).confidence_sequence(UNLIKELY));
            return format!("95% at any time: {} and {}", interval(&self.before), interval(&self.after));
        }
        // Covers all possible results of trials without one.
        let interval = |counts: Counted| {
            let [low, _] = wilson(counts.passed, counts.trials());
            let [_, high] = wilson(counts.passed + counts.unknown, counts.trials());
            [low, high]
        };
        let (before, after) = (interval(self.before.results.counts), interval(self.after.results.counts));
        format!("95%: {} and {}", range(before), range(after))
    }
}

impl Evidence {
    /// Formats the assertions whose results differ, with both reasons.
    pub(crate) fn flips(&self, paint: &Paint) -> String {
        let mut text = String::new();
        let mut line = |line: &str| text.push_str(&format!("      {line}\n"));
        for flip in self.flips.iter().take(FLIPS) {
            line(&flip.head(self.trials[1].1.is_graded(), paint));
            for (side, result) in ["before", "after "].iter().zip(&flip.sides) {
                if let Some((_, reason)) = result {
                    line(&paint.dim(&format!("  {side} {}", paint.folded(reason, REASON))));
                }
            }
        }
        if self.flips.len() > FLIPS {
            line(&paint.dim(&format!("and {} more", counted(self.flips.len() - FLIPS, "assertion"))));
        }
        text
    }

    fn draw(&self, paint: &Paint) -> String {
        let mut text = self.flips(paint);
        let mut line = |line: &str| text.push_str(&format!("      {line}\n"));
        if !self.answers.is_empty() {
            line("answer");
            diff::draw(&self.answers, paint).iter().for_each(|text| line(&format!("  {text}")));
        }
        if let Some(first) = self.divergence {
            line(&self.calls_head(first));
            diff::draw(&self.calls_around(first, paint), paint).iter().for_each(|text| line(&format!("  {text}")));
        }
        line(&paint.dim(&self.usage(paint)));
        text
    }

    /// Says where the tool calls differ.
    pub(crate) fn calls_head(&self, first: usize) -> String {
        let [before, after] = self.calls.each_ref().map(Vec::len);
        let same = match first {
            0 => "the first ones differ".to_owned(),
            1 => "the first is the same, then they differ".to_owned(),
            _ => format!("the first {first} are the same, then they differ"),
        };
        format!("tool calls: {before} before, {after} after; {same}")
    }

    /// Returns the tool calls around the first divergence.
    pub(crate) fn calls_around(&self, first: usize, paint: &Paint) -> Vec<Segment> {
        let end = self.rows.len().min(first + AROUND.1);
        let mut segments = self.calls_of(&self.rows[first.saturating_sub(AROUND.0)..end], paint);
        let rest = self.rows.len() - end;
        if rest > 0 {
            segments.push(Segment { part: Part::Same, text: format!("{} {rest} more\n", paint.symbols().ellipsis) });
        }
        segments
    }

    /// Returns the tool calls of both trials in `rows`.
    pub(crate) fn calls_of(&self, rows: &[Row], paint: &Paint) -> Vec<Segment> {
        let mut segments: Vec<Segment> = Vec::new();
        let mut push = |part: Part, call: &Call| {
            segments.push(Segment { part, text: format!("{}\n", call.describe(paint)) });
        };
        for row in rows {
            let [before, after] = [row.0.map(|at| &self.calls[0][at]), row.1.map(|at| &self.calls[1][at])];
            match (before, after) {
                (Some(call), _) if self.is_same(*row) => push(Part::Same, call),
                _ => {
                    before.into_iter().for_each(|call| push(Part::Missing, call));
                    after.into_iter().for_each(|call| push(Part::Extra, call));
                }
            }
        }
        segments
    }

    /// Formats time, tokens and cost of both trials.
    pub(crate) fn usage(&self, paint: &Paint) -> String {
        let arrow = paint.symbols().arrow;
        let [(was_ms, was_tokens, was_cost), (ms, tokens, cost)] = &self.usage;
        let part = |name: &str, before: Option<String>, after: Option<String>| {
            let or_unknown = |value: Option<String>| value.unwrap_or_else(|| "n/a".to_owned());
            let is_known = before.is_some() || after.is_some();
            is_known.then(|| format!("{name} {} {arrow} {}", or_unknown(before), or_unknown(after)))
        };
        let parts = [
            part("agent time", was_ms.map(elapsed), ms.map(elapsed)),
            part("tokens", was_tokens.map(number), tokens.map(number)),
            part("cost", was_cost.map(money), cost.map(money)),
        ];
        paint.join(&parts.into_iter().flatten().collect::<Vec<_>>())
    }
}

impl Call {
    /// Formats the call as `Bash git status`.
    pub(crate) fn describe(&self, paint: &Paint) -> String {
        paint.folded(&format!("{} {}", self.name, self.input), REASON)
    }
}

impl Flip {
    /// Formats the results as `met → unmet`.
    pub(crate) fn results(&self, paint: &Paint) -> String {
        let [before, after] = self.sides.each_ref().map(|side| match side {
            None => "not checked",
            Some((Status::Met, _)) => "met",
            Some((Status::Unmet, _)) => "unmet",
            Some((Status::Undecided, _)) => "undecided",
        });
        format!("{before} {} {after}", paint.symbols().arrow)
    }

    /// `is_graded` is `false` if the result of the second trial says nothing about the agent.
    fn head(&self, is_graded: bool, paint: &Paint) -> String {
        let status = self.sides[1].as_ref().filter(|_| is_graded);
        let mark = status.map_or_else(|| "-".into(), |(status, _)| paint.status(*status));
        format!("{mark} {}  {}", paint.folded(&self.name, 80), self.results(paint))
    }
}
