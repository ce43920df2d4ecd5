//! The places where something is not as it should be: what is wrong there, the user's line, and what differs.

use model::{Excerpt, Failure, Finding};
use serde_json::Value;

use super::diagnostic::place_of;
use super::{Paint, diff, indented};
use crate::plain;

/// How many failures of one finding are drawn.
const FEW: usize = 5;
/// How many are drawn where everything is to be seen.
const MANY: usize = 20;
/// How much of a message is shown.
const MESSAGE: usize = 300;
/// How much of a value is shown.
const VALUE: usize = 160;
/// What a note is called is padded to this.
const NAME: usize = "expected:".len();

/// The failures of a finding. `counts` says whether they are why the trial did not pass, `all` whether everything is to
/// be seen.
pub(super) fn draw(finding: &Finding, counts: bool, all: bool, paint: &Paint) -> String {
    let mut text = String::new();
    let mut drawn: Option<&Excerpt> = None;
    // Where no failure knows its line, all are of the finding's.
    if finding.failures.iter().all(|failure| failure.source.is_none())
        && let Some(source) = &finding.source
    {
        text.push_str(&indented(&place_of(source, counts, paint), 2));
    }
    let most = if all { MANY } else { FEW };
    for failure in finding.failures.iter().take(most) {
        text.push_str(&heading(failure, finding, counts, paint));
        let source = failure.source.as_ref();
        // What several failures share is drawn above the first of them.
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
    let ellipsis = paint.signs().ellipsis;
    // The whole of what was looked at has no path of its own.
    let path = Some(failure.key.as_str()).filter(|key| !key.is_empty()).or(finding.key.as_deref()).unwrap_or_default();
    let path = plain::one_line(path, 120, ellipsis);
    let message = plain::folded(&failure.message, MESSAGE, ellipsis);
    let path = if path.is_empty() { path } else { format!("{}: ", paint.bold(&path)) };
    let critical = match (failure.critical, counts) {
        (false, _) => String::new(),
        (true, true) => format!(" {}", paint.red("(critical)")),
        (true, false) => " (critical)".to_owned(),
    };
    format!("{path}{message}{critical}\n")
}

/// What was asked for, what was there, and what differs, below the line that was drawn last.
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
        for (at, line) in lines.iter().enumerate() {
            let head = if at == 0 {
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

/// A value on one line, as JSON, but a regular expression as it is written.
fn value(value: &Value, most: usize, paint: &Paint) -> String {
    let ellipsis = paint.signs().ellipsis;
    match value.as_str().filter(|text| is_expression(text)) {
        Some(expression) => plain::one_line(expression, most, ellipsis),
        None => plain::one_line(&value.to_string(), most, ellipsis),
    }
}

/// Whether a text reads as a regular expression between slashes.
fn is_expression(text: &str) -> bool {
    let flags = text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/'));
    flags.is_some_and(|(source, flags)| !source.is_empty() && flags.chars().all(|flag| "dgimsuvy".contains(flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_stands_between_slashes() {
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
