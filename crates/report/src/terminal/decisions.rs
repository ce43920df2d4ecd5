//! The table of decisions about pass rates.

use model::{DecisionRecord, Outcome, StopReason};

use super::Paint;
use super::grid::{Cell, CellStyle, Grid};
use crate::counts::share;
use crate::decisions::{by_urgency, has_arms, name, noted_answer, outcome, passed, required};
use crate::format::{number, range};

/// Maximum width of a case name.
const NAME: usize = 44;
/// Maximum number of decisions in the table.
const ROWS: usize = 50;

/// Returns the table of decisions about cases. It begins with an empty line, unless it is empty. Comparisons are not in
/// the table: they are sentences.
pub(crate) fn table(decisions: &[DecisionRecord], paint: &Paint) -> String {
    first_rows(decisions, ROWS, paint)
}

/// Returns the table with at most `most` rows.
pub(crate) fn first_rows(decisions: &[DecisionRecord], most: usize, paint: &Paint) -> String {
    let has_arms = has_arms(decisions);
    let shown = by_urgency(decisions);
    if shown.is_empty() {
        return String::new();
    }
    let mut grid = Grid::new(&[
        ("pass rate", 0),
        ("required", 3),
        ("result", 0),
        ("decided after", 0),
        ("passed", 1),
        ("rate", 2),
        ("95%", 0),
    ])
    .left(4);
    for decision in shown.iter().take(most) {
        let style = match outcome(decision) {
            _ if decision.quarantined => CellStyle::Dim,
            Outcome::Failed => CellStyle::Red,
            Outcome::Undecided => CellStyle::Bold,
            _ => CellStyle::Green,
        };
        let after = format!("{} of {}", number(decision.trials), number(decision.max_trials));
        let is_decided = decision.stopped_by == StopReason::Decided;
        grid.row([
            paint.folded(&name(decision, has_arms), NAME).into(),
            required(decision).into(),
            Cell::new(noted_answer(decision), style),
            if is_decided { after.into() } else { Cell::new(format!("no ({after})"), CellStyle::Dim) },
            passed(decision).into(),
            share(decision.counted()).into(),
            range(decision.confidence_sequence).into(),
        ]);
    }
    let mut text = format!("\n{}", grid.draw(paint));
    if shown.len() > most {
        let more = format!("and {} more; the JSON report has all", number((shown.len() - most) as u64));
        text.push_str(&format!("  {}\n", paint.dim(&more)));
    }
    text
}
