//! The preference as text for the terminal, and as Markdown.

use super::CasePreference;
use crate::columns;
use crate::compare::Comparison;
use crate::markdown::escape::{plain_code, text};
use crate::terminal::Paint;
use crate::terminal::arms::folded;

/// Maximum number of cases of each group that are listed.
const LISTED: usize = 10;
/// The same for Markdown.
const LISTED_IN_MARKDOWN: usize = 20;
/// Maximum width of a value or a reason.
const VALUE: usize = 300;
/// Maximum width of the name of a case.
const NAME: usize = 56;
/// Maximum width of a note, which is wrapped.
const NOTE: usize = 1000;

impl Comparison {
    /// Returns the preference as text: the figures, the cases with a preference, and the notes. Empty if none was asked
    /// for.
    pub(in crate::compare) fn draw_preference(&self, paint: &Paint) -> String {
        let Some(criterion) = self.criterion() else { return String::new() };
        let rows = self.preference_rows();
        let mut out = format!("\n{}\n", paint.bold("preference"));
        out.push_str(&folded(&paint.folded(criterion, NOTE), paint, |_, line| line.to_owned()));
        let width = columns::widest(rows.iter().map(|(name, _)| name)).min(NAME);
        for (name, value) in &rows {
            let name = columns::padded(&paint.folded(name, NAME), width);
            out.push_str(&format!("  {}  {}\n", paint.dim(&name), paint.folded(value, VALUE)));
        }
        let groups = self.preference_groups();
        let cases = groups.iter().flat_map(|(_, cases)| cases.iter().map(|case| &case.name));
        let width = columns::widest(cases).min(NAME);
        for (heading, cases) in &groups {
            let heading = format!("{} ({})", paint.folded(heading, NAME), cases.len());
            out.push_str(&format!("\n{}\n", paint.bold(&heading)));
            for case in cases.iter().take(LISTED) {
                out.push_str(&case.draw(width, paint));
            }
            if cases.len() > LISTED {
                let more = format!("and {} more, which the HTML page shows", cases.len() - LISTED);
                out.push_str(&format!("  {}\n", paint.dim(&more)));
            }
        }
        out.push('\n');
        for problem in self.preference_problems() {
            out.push_str(&folded(&paint.folded(&problem, NOTE), paint, Paint::yellow));
        }
        if let Some(note) = self.preference_note() {
            out.push_str(&folded(&paint.folded(&note, NOTE), paint, Paint::dim));
        }
        out
    }

    /// Returns the preference as Markdown. Cases are listed as far as `most` bytes allow.
    pub(in crate::compare) fn preference_to_markdown(&self, most: usize) -> String {
        let Some(criterion) = self.criterion() else { return String::new() };
        let mut page = format!("\n**preference**\n\n{}\n\n| | |\n| --- | --- |\n", text(criterion, NOTE));
        for (name, value) in &self.preference_rows() {
            page.push_str(&format!("| {} | {} |\n", text(name, 80), text(value, VALUE)));
        }
        for (heading, cases) in self.preference_groups() {
            page.push_str(&format!("\n**{} ({})**\n\n", text(&heading, 80), cases.len()));
            let mut listed = 0;
            for case in cases.iter().take(LISTED_IN_MARKDOWN) {
                let item = case.to_markdown();
                if page.len() + item.len() > most {
                    break;
                }
                page.push_str(&item);
                listed += 1;
            }
            if cases.len() > listed {
                page.push_str(&format!("- and {} more\n", cases.len() - listed));
            }
        }
        for note in self.preference_problems().into_iter().chain(self.preference_note()) {
            page.push_str(&format!("\n{}\n", text(&note, NOTE)));
        }
        page
    }
}

impl CasePreference {
    fn draw(&self, width: usize, paint: &Paint) -> String {
        let name = columns::padded(&paint.folded(&self.name, 120), width);
        let mut out = format!("  {name}  {}\n", self.figures());
        if let Some(reason) = self.reason() {
            out.push_str(&format!("      {}\n", paint.dim(&paint.folded(&reason, VALUE))));
        }
        out
    }

    fn to_markdown(&self) -> String {
        let item = format!("- {} {}\n", plain_code(&self.name, 120), self.figures());
        match self.reason() {
            Some(reason) => format!("{item}  - {}\n", text(&reason, VALUE)),
            None => item,
        }
    }

    /// Returns the judge's reason for one pair, with its repetition if there are several pairs.
    fn reason(&self) -> Option<String> {
        let (pair, judgement) = self.example()?;
        Some(match self.pairs.len() {
            1 => judgement.reason.clone(),
            _ => format!("#{}: {}", pair.repetition, judgement.reason),
        })
    }
}
