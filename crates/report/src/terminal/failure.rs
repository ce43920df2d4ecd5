//! Failures of a finding: the message, the user's line, and the difference.

use model::{Excerpt, Failure, Finding};
use serde_json::Value;

use super::diagnostic::place_of;
use super::{Paint, Style, diff, indented};

/// Maximum number of failures of one finding.
const MAX_PER_FINDING: usize = 5;
/// Maximum number of failures when everything is shown.
const MAX_FAILURES: usize = 20;
/// Maximum length of a message.
const MESSAGE: usize = 300;
/// Maximum length of a value.
const VALUE: usize = 160;
/// Width to which the names of notes are padded.
const NAME: usize = "expected:".len();

/// Formats mismatches that do not belong to a trial.
pub fn mismatches(failures: &[Failure], style: &Style) -> String {
    let finding = Finding { failures: failures.to_vec(), ..Finding::default() };
    draw(&finding, true, true, &Paint::new(*style))
}

/// Formats the failures of a finding. `counts` is `true` if they are a reason why the trial did not pass; `all` is
/// `true` to show everything.
pub(super) fn draw(finding: &Finding, counts: bool, all: bool, paint: &Paint) -> String {
    let mut text = String::new();
    let mut drawn: Option<&Excerpt> = None;
    // If no failure has its own location, all of them have the finding's location.
    if finding.failures.iter().all(|failure| failure.source.is_none())
        && let Some(source) = &finding.source
    {
        text.push_str(&indented(&place_of(source, counts, paint), 2));
    }
    let most = if all { MAX_FAILURES } else { MAX_PER_FINDING };
    for failure in finding.failures.iter().take(most) {
        text.push_str(&heading(failure, finding, counts, paint));
        let source = failure.source.as_ref();
        // A line that several failures share is drawn once, above the first of them.
        let is_new = drawn != source;
        let place = source.filter(|_| is_new);
        let mut below = place.map_or_else(String::new, |source| place_of(source, counts, paint));
        below.push_str(&notes(failure, is_new, paint));
        text.push_str(&indented(&below, 2));
        drawn = source;
    }
    let hidden = finding.failures.len().saturating_sub(most);
    if hidden > 0 {
        text.push_str(&format!("{}\n", paint.dim(&format!("and {hidden} more; the record has all"))));
    }
    text
}

fn heading(failure: &Failure, finding: &Finding, counts: bool, paint: &Paint) -> String {
    // The path of the root value is empty.
    let path = Some(failure.key.as_str()).filter(|key| !key.is_empty()).or(finding.key.as_deref()).unwrap_or_default();
    let path = paint.one_line(path, 120);
    let message = paint.folded(&failure.message, MESSAGE);
    let path = if path.is_empty() { path } else { format!("{}: ", paint.bold(&path)) };
    let critical = match (failure.critical, counts) {
        (false, _) => String::new(),
        (true, true) => format!(" {}", paint.red("(critical)")),
        (true, false) => " (critical)".to_owned(),
    };
    format!("{path}{message}{critical}\n")
}

/// Returns the expected and the actual value and their difference, to go below the last line drawn.
fn notes(failure: &Failure, is_new: bool, paint: &Paint) -> String {
    let mut notes: Vec<(&str, Vec<String>)> = Vec::new();
    notes.extend(failure.expected.as_ref().map(|expected| ("expected", vec![value(expected, VALUE, paint)])));
    match &failure.actual {
        Some(actual) => notes.push(("actual", vec![value(actual, VALUE, paint)])),
        None if failure.expected.is_some() => notes.push(("actual", vec![paint.dim("nothing")])),
        None => {}
    }
    let diff = diff::draw(&failure.diff, paint);
    if !diff.is_empty() {
        notes.push(("diff", diff));
    }
    let line = failure.source.as_ref().filter(|source| !source.text.is_empty());
    let margin = line.map_or(0, |source| source.line.to_string().len() + 1);
    let margin = " ".repeat(margin);
    let mut text = String::new();
    if !notes.is_empty() && is_new && line.is_some() {
        text.push_str(&format!("{margin}{}\n", paint.gutter("|")));
    }
    for (name, lines) in notes {
        let colon = format!("{:<1$}", ":", NAME - name.len());
        for (index, line) in lines.iter().enumerate() {
            let head = if index == 0 {
                format!("{margin}{} {}{colon}", paint.gutter("="), paint.bold(name))
            } else {
                format!("{margin}  {}", " ".repeat(NAME))
            };
            text.push_str(format!("{head} {line}").trim_end());
            text.push('\n');
        }
    }
    text
}

/// Formats a value on one line as JSON; a regular expression as it is written.
fn value(value: &Value, most: usize, paint: &Paint) -> String {
    match value.as_str().filter(|text| is_expression(text)) {
        Some(expression) => paint.one_line(expression, most),
        None => paint.one_line(&value.to_string(), most),
    }
}

/// Returns `true` if the text is a regular expression between slashes.
fn is_expression(text: &str) -> bool {
    let flags = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    flags.is_some_and(|(source, flags)| {
        !source.is_empty() && flags.chars().all(|flag| model::REGEX_FLAGS.contains(flag))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_regular_expression_is_enclosed_in_slashes() {
        assert_eq!(
            ["/a/", "/\\d/gi", "//", "/usr/bin", "a/b/", "/"].map(is_expression),
            [true, true, false, false, false, false]
        );
    }

    #[test]
    fn a_value_is_drawn_on_one_line() {
        let drawn = |given: Value| value(&given, 12, &Paint::new(super::super::Style::plain()));
        assert_eq!(drawn("a  \"b\"\n".into()), r#""a  \"b\"\n""#);
        assert_eq!(drawn("/^\\d{5}$/".into()), r"/^\d{5}$/");
        assert_eq!(drawn(serde_json::json!({ "a": [1, null] })), r#"{"a":[1,nul…"#);
    }
}
