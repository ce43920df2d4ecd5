//! The comparison as Markdown for a comment on a pull request.

use model::{Part, Segment};

use super::evidence::Evidence;
use super::{CaseChange, Comparison};
use crate::markdown::escape::{block, plain_code, text};
use crate::terminal::{Paint, Style};

/// Maximum number of changes of each kind that are listed.
const LISTED: usize = 20;
/// Number of bytes that the items of a comparison leave for the lines below them.
const REST: usize = 2_000;
/// Maximum number of lines of a diff.
const LINES: usize = 12;
/// Maximum number of characters of a reason.
const REASON: usize = 200;

impl Comparison {
    /// Returns the comparison as Markdown of about `most` bytes; the evidence for each case is folded. If there is no
    /// room for it, the case is only listed, or only counted.
    pub fn to_markdown(&self, most: usize) -> String {
        let most = most.saturating_sub(REST);
        let paint = Paint::new(Style::plain());
        let mut page = format!("**{}**\n\n", text(&self.sentence(), 1000));
        if let Some(sentence) = self.margin_sentence() {
            page.push_str(&format!("{}\n\n", text(&sentence, 1000)));
        }
        if let Some(sentence) = self.preference_sentence() {
            page.push_str(&format!("{}\n\n", text(&sentence, 1000)));
        }
        let differences = self.changed_settings(&paint);
        for difference in &differences {
            page.push_str(&format!("- {}\n", text(difference, REASON)));
        }
        if !differences.is_empty() {
            page.push('\n');
        }
        page.push_str(&table(&self.table_rows()));
        page.push_str(&self.arms_and_decisions(&paint));
        page.push_str(&self.preference_to_markdown(most / 2));
        for (heading, cases) in self.groups() {
            page.push_str(&format!("\n**{heading} ({})**\n\n", cases.len()));
            let mut listed = 0;
            for case in cases.iter().take(LISTED) {
                let [short, long] = case.to_markdown(&paint);
                let room = most.saturating_sub(page.len());
                let Some(item) = [long, short].into_iter().find(|item| item.len() <= room) else { break };
                page.push_str(&item);
                listed += 1;
            }
            if cases.len() > listed {
                page.push_str(&format!("- and {}\n", self.more(cases.len() - listed)));
            }
        }
        let notes = self.notes();
        if !notes.is_empty() {
            page.push_str(&format!("\n{}\n", text(&notes.join(" "), 1000)));
        }
        page
    }

    /// Returns the tables of arms and of decisions about the number of trials, each after an empty line.
    fn arms_and_decisions(&self, paint: &Paint) -> String {
        let sentences = self.decision_sentences().into_iter().map(|sentence| format!("- {}\n", text(&sentence, 1000)));
        let parts = [table(&self.arm_rows()), sentences.collect(), table(&self.decision_rows(paint))];
        parts.iter().filter(|part| !part.is_empty()).map(|part| format!("\n{part}")).collect()
    }
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut table = String::new();
    for (at, row) in rows.iter().enumerate() {
        table.push_str(&format!("| {} |\n", row.each_ref().map(|cell| text(cell, 80)).join(" | ")));
        if at == 0 {
            table.push_str(&format!("| --- |{}\n", " --: |".repeat(N - 1)));
        }
    }
    table
}

impl CaseChange {
    /// Returns the case as a list item: once without and once with its evidence.
    fn to_markdown(&self, paint: &Paint) -> [String; 2] {
        let (figures, reason) = self.figures(paint);
        let reason = text(&reason, REASON);
        let item = format!("- {} {figures} ({reason})\n", plain_code(&self.name, 120));
        let summary = if self.is_single() { "what changed" } else { "what changed, in one trial of each side" };
        let evidence = self.evidence.as_ref().map(|evidence| evidence.to_markdown(summary, paint));
        let whole = format!("{item}{}", evidence.unwrap_or_default());
        [item, whole]
    }
}

impl Evidence {
    fn to_markdown(&self, summary: &str, paint: &Paint) -> String {
        let mut body = String::new();
        for flip in self.flips.iter().take(5) {
            body.push_str(&format!("  - {} {}\n", plain_code(&flip.name, 80), flip.results(paint)));
            for (side, result) in ["before", "after"].iter().zip(&flip.sides) {
                if let Some((_, reason)) = result {
                    body.push_str(&format!("    - {side}: {}\n", text(reason, REASON)));
                }
            }
        }
        if !self.answers.is_empty() {
            body.push_str(&format!("\n  answer\n\n{}", fenced(&self.answers)));
        }
        if let Some(first) = self.divergence {
            let calls = fenced(&self.calls_around(first, paint));
            body.push_str(&format!("\n  {}\n\n{calls}", self.calls_head(first)));
        }
        format!("  <details><summary>{summary}</summary>\n\n{body}\n  {}\n  </details>\n", self.usage(paint))
    }
}

/// Returns a diff as a fenced block.
fn fenced(segments: &[Segment]) -> String {
    let mut lines = String::new();
    for segment in segments {
        let sign = match segment.part {
            Part::Same => ' ',
            Part::Missing => '-',
            Part::Extra => '+',
        };
        for line in segment.text.lines() {
            let line = crate::plain::one_line(line, REASON, "…");
            lines.push_str(format!("{sign} {line}").trim_end());
            lines.push('\n');
        }
    }
    block(&lines, 2, LINES).replacen("text", "diff", 1)
}
