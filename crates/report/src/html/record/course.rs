//! The course of a pass rate over runs, drawn.

use std::cmp::Ordering;

use super::frame::encoded;
use crate::counts::{described, share};
use crate::format::{range, timestamp};
use crate::html::text::text;
use crate::trend::TrendRow;

/// Size of the drawing and its margins, in pixels.
const WIDTH: f64 = 900.0;
const HEIGHT: f64 = 160.0;
const LEFT: f64 = 60.0;
const MARGIN: f64 = 10.0;

/// Draws the pass rates of runs, which are newest first, with their intervals. A rate that is not known exactly has
/// only an interval. Each point is a link to its run. Returns nothing for less than two runs.
pub(super) fn course(rows: &[TrendRow<'_>]) -> String {
    if rows.len() < 2 {
        return String::new();
    }
    let step = (WIDTH - LEFT - 2.0 * MARGIN) / (rows.len() - 1) as f64;
    let x = |at: usize| LEFT + MARGIN + step * at as f64;
    let y = |rate: f64| MARGIN + (1.0 - rate.clamp(0.0, 1.0)) * (HEIGHT - 2.0 * MARGIN);
    let mut html = format!(
        "<svg class=\"course\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"Pass rate of {} runs, oldest \
         first; the table has the figures\">",
        rows.len()
    );
    for mark in [0.0, 0.5, 1.0] {
        let at = y(mark);
        html.push_str(&format!(
            "<line class=\"axis\" x1=\"{LEFT}\" x2=\"{WIDTH}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text class=\"label\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{:.0}%</text>",
            LEFT - 6.0,
            at + 4.0,
            mark * 100.0
        ));
    }
    let mut line = String::new();
    let mut points = String::new();
    for (at, row) in rows.iter().rev().enumerate() {
        let x = x(at);
        if let Some([low, high]) = row.interval {
            let (low, high) = (y(low), y(high));
            points.push_str(&format!(
                "<line class=\"range\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{low:.1}\" y2=\"{high:.1}\"/>"
            ));
        }
        let Some(rate) = row.counts.bounds().and_then(|bounds| bounds.value()) else { continue };
        line.push_str(&format!("{x:.1},{:.1} ", y(rate)));
        let class = match row.change {
            Some(Ordering::Less) => "worse",
            Some(Ordering::Greater) => "better",
            _ => "mean",
        };
        points.push_str(&format!(
            "<a href=\"/runs/{}/\"><circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{:.1}\" r=\"4\"><title>{}</title>\
             </circle></a>",
            encoded(&row.run.id),
            y(rate),
            text(&title(row))
        ));
    }
    html + &format!("<polyline class=\"line\" points=\"{}\"/>{points}</svg>\n", line.trim_end())
}

/// Describes a point.
fn title(row: &TrendRow<'_>) -> String {
    let name = row.run.label.as_deref().unwrap_or(&row.run.short);
    let interval = row.interval.map_or_else(String::new, |interval| format!(", 95 % interval {}", range(interval)));
    let (started, passed, rate) = (timestamp(row.run.started_at), described(row.counts), share(row.counts));
    format!("{name}, {started}: {passed} passed, {rate}{interval}")
}
