//! A comparison as a static page, with the style of the report and without scripts.

use model::{PairJudgement, Part, Segment, Status};

use super::page;
use crate::compare::{Comparison, Evidence, TrialPair};
use crate::plain;
use crate::terminal::{Paint, Style};

/// Maximum number of characters of a reason.
const REASON: usize = 1000;
/// Maximum number of lines of a diff.
const LINES: usize = 200;

/// Returns a page with the comparisons, one after the other.
pub fn comparison_page(comparisons: &[Comparison]) -> String {
    let body: String = comparisons.iter().map(comparison).collect();
    page::without_scripts("Comparison", &body)
}

fn comparison(comparison: &Comparison) -> String {
    let paint = Paint::new(Style::plain());
    let mut html = format!("<h1 class=\"verdict\">{}</h1>\n", text(&comparison.sentence()));
    if let Some(sentence) = comparison.margin_sentence() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", text(&sentence)));
    }
    if let Some(sentence) = comparison.preference_sentence() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", text(&sentence)));
    }
    html.push_str(&list("muted", &comparison.sides_and_differences(&paint)));
    html.push_str(&table(&comparison.table_rows()));
    html.push_str(&table(&comparison.arm_rows()));
    html.push_str(&list("verdict", &comparison.decision_sentences()));
    html.push_str(&table(&comparison.decision_rows(&paint)));
    html.push_str(&preference(comparison));
    for (heading, cases) in comparison.groups() {
        html.push_str(&format!("<section><h2>{} ({})</h2>\n", text(heading), cases.len()));
        for case in cases {
            let (figures, reason) = case.figures(&paint);
            let head = format!(
                "<code>{}</code> {} <span class=\"muted\">{}</span>",
                text(&case.name),
                text(&figures),
                marked(&reason)
            );
            html.push_str(&match case.evidence() {
                Some(evidence) => {
                    format!(
                        "<details class=\"finding\"><summary>{head}</summary>{}</details>\n",
                        details(evidence, &paint)
                    )
                }
                None => format!("<div class=\"finding\">{head}</div>\n"),
            });
        }
        html.push_str("</section>\n");
    }
    html.push_str(&list("muted", &comparison.notes()));
    html
}

/// Returns the figures of the preference, and the cases that have one with all their pairs.
fn preference(comparison: &Comparison) -> String {
    let Some(criterion) = comparison.criterion() else { return String::new() };
    let row = |(name, value): &(String, String)| {
        format!("<tr><th scope=\"row\">{}</th><td>{}</td></tr>\n", text(name), text(value))
    };
    let rows: String = comparison.preference_rows().iter().map(row).collect();
    let criterion = text(criterion);
    let mut html = format!(
        "<section class=\"wide\"><h2>preference</h2>\n<p>{criterion}</p>\n<table><tbody>{rows}</tbody></table></section>\n"
    );
    for problem in comparison.preference_problems() {
        html.push_str(&format!("<p><b>{}</b></p>\n", marked(&problem)));
    }
    for (heading, cases) in comparison.preference_groups() {
        html.push_str(&format!("<section><h2>{} ({})</h2>\n", text(&heading), cases.len()));
        for case in cases {
            let head = format!("<code>{}</code> {}", text(&case.name), text(&case.figures()));
            let pair = |(pair, judgement): &(TrialPair, PairJudgement)| {
                let (preferred, repetition) = (comparison.preferred(judgement.preference), pair.repetition);
                let reason = plain::folded(&judgement.reason, REASON, "…");
                let (preferred, reason) = (text(&preferred), marked(&reason));
                format!("<div>#{repetition} <b>{preferred}</b> <span class=\"muted\">{reason}</span></div>\n")
            };
            let pairs: String = case.pairs.iter().map(pair).collect();
            html.push_str(&format!("<details class=\"finding\"><summary>{head}</summary>{pairs}</details>\n"));
        }
        html.push_str("</section>\n");
    }
    html.push_str(&list("muted", comparison.preference_note().as_slice()));
    html
}

fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let mut html = String::new();
    for (index, row) in rows.iter().enumerate() {
        let Some((name, cells)) = row.split_first() else { continue };
        let tag = if index == 0 { "th" } else { "td" };
        let labelled = |(cell, label): (&String, &String)| {
            format!("<{tag} class=\"number\" data-label=\"{}\">{}</{tag}>", text(label), text(cell))
        };
        let cells = cells.iter().zip(rows[0].iter().skip(1)).map(labelled);
        let row = format!("<tr><th scope=\"row\">{}</th>{}</tr>", text(name), cells.collect::<String>());
        html.push_str(&if index == 0 { format!("<thead>{row}</thead>\n<tbody>") } else { row + "\n" });
    }
    if html.is_empty() {
        html
    } else {
        format!("<section class=\"wide\"><table class=\"stack\">{html}</tbody></table></section>\n")
    }
}

fn details(evidence: &Evidence, paint: &Paint) -> String {
    let mut html = String::new();
    for flip in &evidence.flips {
        let class = match flip.sides[1] {
            Some((Status::Met, _)) => "met",
            Some((Status::Unmet, _)) => "unmet",
            _ => "undecided",
        };
        let (name, results) = (text(&flip.name), text(&flip.results(paint)));
        html.push_str(&format!("<div class=\"{class}\"><span class=\"sign\">●</span>{name} <b>{results}</b></div>\n"));
        for (side, result) in ["before", "after"].iter().zip(&flip.sides) {
            if let Some((_, reason)) = result {
                let reason = marked(&plain::folded(reason, REASON, "…"));
                html.push_str(&format!("<div class=\"muted\">{side}: {reason}</div>\n"));
            }
        }
    }
    if !evidence.answers.is_empty() {
        html.push_str(&format!("<h3>Answer</h3>{}", diff(&evidence.answers)));
    }
    if let Some(first) = evidence.divergence {
        let (head, calls) = (text(&evidence.calls_head(first)), diff(&evidence.calls_of(&evidence.rows, paint)));
        html.push_str(&format!("<h3>{head}</h3>{calls}"));
    }
    format!("{html}<p class=\"usage\">{}</p>", text(&evidence.usage(paint)))
}

fn diff(segments: &[Segment]) -> String {
    let lines: Vec<(Part, &str)> =
        segments.iter().flat_map(|segment| segment.text.lines().map(|line| (segment.part, line))).collect();
    let mut html = String::from("<pre class=\"diff\">");
    for (part, line) in lines.iter().take(LINES) {
        let (class, sign) = match part {
            Part::Same => ("", ' '),
            Part::Missing => ("removed", '-'),
            Part::Extra => ("added", '+'),
        };
        html.push_str(&format!("<span class=\"line {class}\">{sign}{}</span>", text(line)));
    }
    if lines.len() > LINES {
        html.push_str(&format!("… {} more lines", lines.len() - LINES));
    }
    html + "</pre>\n"
}

fn list(class: &str, lines: &[String]) -> String {
    let items: String = lines.iter().map(|line| format!("<p>{}</p>\n", marked(line))).collect();
    if items.is_empty() { items } else { format!("<section class=\"{class}\">{items}</section>\n") }
}

/// Returns a message in which the parts between backticks are marked up as code.
fn marked(message: &str) -> String {
    let parts: Vec<&str> = message.split('`').collect();
    let is_paired = parts.len() % 2 == 1;
    let part = |(index, part): (usize, &&str)| match index % 2 {
        1 if is_paired => format!("<code>{}</code>", text(part)),
        1 => format!("`{}", text(part)),
        _ if index > 0 && !is_paired => format!("`{}", text(part)),
        _ => text(part),
    };
    parts.iter().enumerate().map(part).collect()
}

/// Returns text to show verbatim, without control characters.
fn text(text: &str) -> String {
    plain::clean(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
