//! Diagnostics and findings, drawn with the user's line, a caret and a label.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Element, Group, Level, Origin, Renderer, Snippet};
use model::{Diagnostic, Excerpt, Finding, Severity, Status};

use super::{Paint, Style};
use crate::format::counted;
use crate::plain;

/// Maximum number of lines of a long text below a finding.
const LINES: usize = 12;
/// Maximum width of such a line.
const LINE: usize = 300;

/// Formats all problems in the style of compilers, sorted by file and location. Ends with a line end unless there are
/// none.
pub fn diagnostics(problems: &[Diagnostic], style: &Style) -> String {
    let renderer = renderer(style);
    let mut text = String::new();
    for problem in distinct(problems) {
        if !text.is_empty() {
            text.push('\n');
        }
        let level = match problem.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let mut group = level.primary_title(&problem.message).elements(Vec::<Element<'_>>::new());
        if let Some(source) = &problem.source {
            group = draw(group, source, problem.label.as_deref());
        }
        group = group.elements(problem.help.iter().map(|help| Level::HELP.message(help)));
        text.push_str(renderer.render(&[group]).trim_end());
        text.push('\n');
    }
    text
}

/// Formats the line below several problems: `2 errors, 1 warning`. Empty for a single one.
pub fn tally(problems: &[Diagnostic], style: &Style) -> String {
    let problems = distinct(problems);
    if problems.len() < 2 {
        return String::new();
    }
    let errors = problems.iter().filter(|problem| problem.is_error()).count();
    let warnings = problems.len() - errors;
    let count = match (errors, warnings) {
        (errors, 0) => counted(errors, "error"),
        (0, warnings) => counted(warnings, "warning"),
        (errors, warnings) => format!("{}, {}", counted(errors, "error"), counted(warnings, "warning")),
    };
    format!("\n{}\n", Paint::new(*style).bold(&count))
}

/// Returns each problem once: if several suites read a file, each of them reports its problems.
pub(crate) fn distinct(problems: &[Diagnostic]) -> Vec<&Diagnostic> {
    let mut distinct: Vec<&Diagnostic> = problems.iter().collect();
    distinct.sort_by(|a, b| place(a).cmp(&place(b)).then(b.severity.cmp(&a.severity)));
    let mut kept: Vec<&Diagnostic> = Vec::with_capacity(distinct.len());
    for problem in distinct {
        // Problems are sorted by location, so only the most recent ones can be equal to this one.
        let same_place = kept.iter().rev().take_while(|other| place(other) == place(problem));
        if !same_place.into_iter().any(|other| *other == problem) {
            kept.push(problem);
        }
    }
    kept
}

/// Returns the details below a finding's own line: where the assertion was written, the expected and the actual value.
/// Empty if there are no details. A finding that does not count is drawn as a note.
pub(crate) fn finding(finding: &Finding, counts: bool, paint: &Paint) -> String {
    let (level, label) = match finding.status {
        Status::Met => (Level::NOTE, format!("`{}` holds", finding.kind)),
        Status::Unmet => (Level::ERROR, format!("`{}` does not hold", finding.kind)),
        Status::Undecided => (Level::WARNING, format!("`{}` cannot be decided", finding.kind)),
    };
    let level = if counts { level } else { Level::NOTE };
    let mut notes: Vec<(&str, String)> = Vec::new();
    let mut note = |name: &'static str, text: &str| {
        if !text.trim().is_empty() {
            notes.push((name, shortened(text, paint)));
        }
    };
    note("expected", finding.expected.as_deref().unwrap_or(""));
    note("actual", finding.actual.as_deref().unwrap_or(""));
    note("error", finding.error.as_deref().filter(|error| *error != finding.reason).unwrap_or(""));
    note("evidence", &finding.evidence.join("\n"));
    note("cached", &cached(finding).unwrap_or_default());
    // Names are padded to one width to align the expected and the actual value.
    let width = notes.iter().map(|(name, _)| name.len()).max().unwrap_or(0);

    let Some(source) = &finding.source else {
        let mut text = String::new();
        for (name, note) in notes {
            for (index, line) in note.lines().enumerate() {
                let name = if index == 0 { format!("{name}:") } else { String::new() };
                text.push_str(format!("= {name:<0$} {line}", width + 1).trim_end());
                text.push('\n');
            }
        }
        return text;
    };
    let group = draw(Group::with_level(level), source, Some(&label)).elements(notes.iter().map(|(name, note)| {
        let padding = " ".repeat(width - name.len());
        let note = note.replace('\n', &format!("\n{padding}"));
        Level::NOTE.with_name(Some(*name)).message(format!("{padding}{note}"))
    }));
    let mut text = renderer(&paint.style).render(&[group]).trim_end().to_owned();
    text.push('\n');
    text
}

/// Describes how many of the judges' answers came from the cache, if any did.
fn cached(finding: &Finding) -> Option<String> {
    let judgement = finding.judgement.as_ref().filter(|judgement| judgement.cached > 0)?;
    Some(match judgement.asked {
        1 => "the judgement is from the cache".to_owned(),
        asked => format!("{} of {asked} judgements are from the cache", judgement.cached),
    })
}

/// Returns the user's line with the location underlined, without a label.
pub(super) fn place_of(source: &Excerpt, counts: bool, paint: &Paint) -> String {
    let level = if counts { Level::ERROR } else { Level::NOTE };
    let mut text = renderer(&paint.style).render(&[draw(Group::with_level(level), source, None)]).trim_end().to_owned();
    text.push('\n');
    text
}

fn renderer(style: &Style) -> Renderer {
    let renderer = if style.color { Renderer::styled() } else { Renderer::plain() };
    renderer.decor_style(DecorStyle::Ascii).term_width(style.width.clamp(40, 100))
}

fn draw<'a>(group: Group<'a>, source: &'a Excerpt, label: Option<&'a str>) -> Group<'a> {
    if source.text.is_empty() {
        return group.element(Origin::path(&*source.file).line(source.line).char_column(source.column));
    }
    let byte =
        |characters: usize| source.text.char_indices().nth(characters).map_or(source.text.len(), |(offset, _)| offset);
    let first = source.column.saturating_sub(1 + source.skipped);
    let start = byte(first);
    let end = byte(first + source.length.max(1)).max(start);
    let annotation = AnnotationKind::Primary.span(start..end).label(label);
    if source.skipped > 0 {
        // Without the beginning of the line, the column cannot be computed from the text.
        let origin = Origin::path(&*source.file).line(source.line).char_column(source.column);
        let line = Snippet::source(&source.text).line_start(source.line).annotation(annotation);
        return group.element(origin).element(line);
    }
    group.element(Snippet::source(&source.text).line_start(source.line).path(&*source.file).annotation(annotation))
}

fn shortened(text: &str, paint: &Paint) -> String {
    let ellipsis = paint.symbols().ellipsis;
    let (mut lines, hidden) = plain::some_lines(text.trim_end(), LINES);
    for line in &mut lines {
        if line.chars().count() > LINE {
            *line = line.chars().take(LINE).chain(ellipsis.chars()).collect();
        }
    }
    if hidden > 0 {
        lines.push(format!("{ellipsis} {} more", counted(hidden, "line")));
    }
    lines.join("\n")
}

fn place(problem: &Diagnostic) -> (&str, usize, usize) {
    problem.source.as_ref().map_or(("", 0, 0), |source| (&*source.file, source.line, source.column))
}
