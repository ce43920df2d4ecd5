//! Intervals of differences, drawn as the scripts draw them.

use super::text::text;
use crate::compare::Plot;

/// Size of a drawing and its margin, in pixels.
const WIDTH: f64 = 180.0;
const HEIGHT: f64 = 18.0;
const MARGIN: f64 = 5.0;

/// Draws a difference with its interval and a mark at no difference. `label` says the same in words.
pub(super) fn interval(plot: Plot, label: &str) -> String {
    let Plot { mean, range: [low, high], end } = plot;
    let x = |value: f64| MARGIN + (value.clamp(-end, end) + end) / (2.0 * end) * (WIDTH - 2.0 * MARGIN);
    let mean = mean.map_or_else(String::new, |mean| {
        format!("<circle class=\"mean\" cx=\"{:.1}\" cy=\"{}\" r=\"4\"/>", x(mean), HEIGHT / 2.0)
    });
    let (from, to, zero, middle) = (x(low), x(high), x(0.0), HEIGHT / 2.0);
    format!(
        "<svg class=\"plot delta\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" role=\"img\" \
         aria-label=\"{}\"><line class=\"axis\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{middle}\" y2=\"{middle}\"/>\
         <line class=\"mark\" x1=\"{zero:.1}\" x2=\"{zero:.1}\" y1=\"2\" y2=\"16\"/>\
         <rect class=\"range\" x=\"{from:.1}\" y=\"6\" width=\"{:.1}\" height=\"6\" rx=\"3\"/>\
         {mean}</svg>",
        text(label),
        x(-end),
        x(end),
        (to - from).max(1.0),
    )
}
