//! Two trials side by side, aligned, with the first difference marked.

use model::{Envelope, TrialRecord};

use super::steps::{ShownStep, steps};
use super::{block, heading};
use crate::align::{Row, align, divergence, is_same, side_by_side};
use crate::columns::{padded, width};
use crate::compare::Evidence;
use crate::format::counted;
use crate::plain;
use crate::terminal::{Paint, Style, diff};

/// Maximum number of steps that are shown.
const STEPS: usize = 200;

/// Formats two trials side by side: assertions with different results, the steps with their first difference, the
/// answers, and time, tokens and cost. Each trial is given as its record, its events and the id of its run.
pub fn show_two(trials: [(&TrialRecord, &[Envelope], &str); 2], style: &Style) -> String {
    let paint = Paint::new(*style);
    // Colours within a step would obscure which steps differ.
    let plain = Paint::new(Style { color: false, ..*style });
    let [(left, _, _), (right, _, _)] = trials;
    let evidence = Evidence::of(left, right);
    let column = (paint.width().saturating_sub(11)) / 2;
    let line = |number: &str, cells: [String; 2]| {
        format!("  {number:>3}  {} {} {}", padded(&cells[0], column), paint.symbols().bar, cells[1])
    };
    let mut text = String::new();
    let mut push = |line: &str| text.push_str(&format!("{}\n", line.trim_end()));
    push(&line("", trials.map(|(record, ..)| paint.folded(&record.id, column))));
    push(&line("", trials.map(|(_, _, run)| paint.folded(&format!("run {run}"), column))));
    push(&line("", trials.map(|(record, ..)| record.outcome.name().to_owned())));

    let shown = trials.map(|(record, events, _)| -> Vec<ShownStep> {
        steps(record, events, &plain).into_iter().filter(|step| step.same.is_some()).collect()
    });
    let keys = shown.each_ref().map(|steps| steps.iter().map(|step| step.same.as_deref()).collect::<Vec<_>>());
    let rows = side_by_side(&align(&keys[0], &keys[1]));
    let first = divergence(&rows, &keys[0], &keys[1]);
    let about = match first {
        None => format!("steps: the same {} in both", counted(rows.len(), "step")),
        Some(first) => format!("steps: first difference in row {}", first + 1),
    };
    text.push_str(&heading(&about, &paint));
    for (index, row) in rows.iter().take(STEPS).enumerate() {
        if Some(index) == first {
            let rule = paint.symbols().rule.repeat(4);
            let label = format!("{rule} first difference ");
            let rest = paint.symbols().rule.repeat((2 * column + 8).saturating_sub(width(&label)));
            text.push_str(&format!("  {}\n", paint.yellow(&format!("{label}{rest}"))));
        }
        let drawn = line(&(index + 1).to_string(), cells(*row, &shown, column, &paint));
        let is_same = is_same(*row, &keys[0], &keys[1]);
        let drawn = drawn.trim_end();
        text.push_str(&format!("{}\n", if is_same { paint.dim(drawn) } else { drawn.to_owned() }));
    }
    if rows.len() > STEPS {
        text.push_str(&format!("  {}\n", paint.dim(&format!("({} more rows)", rows.len() - STEPS))));
    }
    if !evidence.flips.is_empty() {
        text.push_str(&heading("assertions with different results", &paint));
        text.push_str(&evidence.flips(&paint));
    }
    if !evidence.answers.is_empty() {
        text.push_str(&heading("answer", &paint));
        diff::draw(&evidence.answers, &paint).iter().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text.push_str(&format!("\n  {}\n", evidence.usage(&paint)));
    text
}

/// Formats the steps of a row, one line each.
fn cells((left, right): Row, shown: &[Vec<ShownStep>; 2], column: usize, paint: &Paint) -> [String; 2] {
    let cell = |side: usize, at: Option<usize>| {
        let step = at.and_then(|index| shown[side].get(index));
        step.map_or_else(String::new, |step| {
            let body = plain::first_line(&step.body, column, paint.symbols().ellipsis);
            paint.folded(&format!("{} {body}", step.head), column)
        })
    };
    [cell(0, left), cell(1, right)]
}

/// Formats the step with that number, counted from 1, in full.
///
/// # Errors
/// Returns the number of steps if there is no step with that number.
pub fn show_step(record: &TrialRecord, events: &[Envelope], number: usize, style: &Style) -> Result<String, usize> {
    let paint = Paint::new(*style);
    let steps = steps(record, events, &paint);
    let step = number.checked_sub(1).and_then(|index| steps.get(index)).ok_or(steps.len())?;
    let mut text = format!("{}\n  {}\n", paint.bold(&format!("{} step {number}", record.id)), step.head);
    for part in [&step.body, &step.input] {
        text.push_str(&block(part, usize::MAX, &paint));
    }
    Ok(text)
}
