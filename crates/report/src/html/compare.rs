//! A comparison as a page like that of a run. Its overview is complete without scripts, which only open its trials.

use std::io;
use std::path::Path;

use model::{PairJudgement, Part, Segment, Status};

use super::compared::{self, ComparedTrial};
use super::page::{self, Source};
use super::plot;
use super::record::encoded;
use super::text::{marked, text};
use crate::compare::{CaseChange, Comparison, Evidence, Plot, TrialPair};
use crate::plain;
use crate::terminal::{Paint, Style};

/// Maximum number of characters of a reason.
const REASON: usize = 1000;
/// Maximum number of lines of a diff.
const LINES: usize = 200;

/// Returns a page with the comparisons, one after the other, and with the trials that it links to. `folder` is the folder
/// of the current directory in its repository, and `record` the address of the list of runs, if a server has one.
///
/// # Errors
/// Returns an error if a trial cannot be serialised.
pub fn comparison_page(
    comparisons: &[Comparison],
    trials: &[ComparedTrial],
    folder: &Path,
    record: Option<&str>,
) -> io::Result<Vec<u8>> {
    let body: String = comparisons.iter().map(|each| comparison(each, trials)).collect();
    let mut html = Vec::new();
    page::start(&mut html, &compared::index(trials, folder, record)?, &body, Source::File)?;
    for (number, trial) in trials.iter().enumerate() {
        page::chunk(&mut html, number, trial.chunk())?;
    }
    page::end(&mut html)?;
    Ok(html)
}

/// Returns the content security policy of the page from [`comparison_page`].
pub fn comparison_policy() -> String {
    page::policy(Source::File)
}

/// Returns links to the trials that illustrate the change of a case, if the page has them.
fn links(case: &CaseChange, [before, after]: [&str; 2], trials: &[ComparedTrial]) -> String {
    let Some([(run, trial), (later_run, later)]) = case.trials() else { return String::new() };
    let has = |run: &str, id: &str| trials.iter().any(|trial| trial.is(run, id));
    if !has(run, trial) || !has(later_run, later) {
        return String::new();
    }
    let [one, other] = [(run, trial), (later_run, later)].map(|(run, id)| encoded(&ComparedTrial::key(run, id)));
    let [before, after] = [text(before), text(after)];
    format!(
        " · <a href=\"#/trial/{one}\">{before}</a> · <a href=\"#/trial/{other}\">{after}</a> · \
         <a href=\"#/compare/{one}/{other}\">side by side</a>"
    )
}

fn comparison(comparison: &Comparison, trials: &[ComparedTrial]) -> String {
    let paint = Paint::new(Style::plain());
    let word = comparison.word();
    let class = match word {
        "BETTER" => "PASS",
        "WORSE" => "FAIL",
        "CANNOT TELL" | "NOTHING COMPARED" => "INCOMPLETE",
        _ => "",
    };
    let sentence = text(&comparison.sentence());
    let (head, rest) = sentence.split_once(". ").map_or((&*sentence, ""), |(head, rest)| (head, rest));
    let head = head.trim_end_matches('.');
    // The word in front of it says so already.
    let head = match word {
        "CANNOT TELL" => ["Cannot tell yet ", "Cannot tell "].iter().find_map(|known| head.strip_prefix(known)),
        _ => None,
    }
    .unwrap_or(head);
    let mut html = format!("<h1 class=\"verdict\"><span class=\"result {class}\">{word}</span> {head}.</h1>\n");
    if !rest.is_empty() {
        html.push_str(&format!("<p class=\"verdict\">{rest}</p>\n"));
    }
    if let Some(sentence) = comparison.margin_sentence() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", text(&sentence)));
    }
    if let Some(sentence) = comparison.preference_sentence() {
        html.push_str(&format!("<p class=\"verdict\">{}</p>\n", text(&sentence)));
    }
    html.push_str(&list("muted", &comparison.sides_and_differences(&paint)));
    html.push_str(&table(&comparison.table_rows(), &comparison.plots()));
    html.push_str(&table(&comparison.arm_rows(), &[]));
    html.push_str(&list("verdict", &comparison.decision_sentences()));
    html.push_str(&table(&comparison.decision_rows(&paint), &[]));
    html.push_str(&preference(comparison));
    for (heading, cases) in comparison.groups() {
        html.push_str(&format!("<section><h2>{} ({})</h2>\n", text(heading), cases.len()));
        for case in cases {
            let (figures, reason) = case.figures(&paint);
            let head = format!(
                "<code>{}</code> {} <span class=\"muted\">{}</span>{}",
                text(&case.name),
                text(&figures),
                marked(&reason),
                links(case, comparison.short_names(), trials)
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

/// Heading of the column in which intervals are drawn.
const INTERVAL: &str = "95% interval";

/// Returns a table. The rows after the first have the `plots`.
fn table<const N: usize>(rows: &[[String; N]], plots: &[Option<Plot>]) -> String {
    let mut html = String::new();
    for (index, row) in rows.iter().enumerate() {
        let Some((name, cells)) = row.split_first() else { continue };
        let tag = if index == 0 { "th" } else { "td" };
        let plot = index.checked_sub(1).and_then(|row| plots.get(row).copied().flatten());
        let labelled = |(cell, label): (&String, &String)| {
            let drawn = plot.filter(|_| label == INTERVAL).map_or_else(String::new, |plot| plot::interval(plot, cell));
            format!("<{tag} class=\"number\" data-label=\"{}\">{drawn}{}</{tag}>", text(label), text(cell))
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
