//! Messages for parser errors.

use granit_parser::ErrorKind;
use model::{Diagnostic, Source, Span};

/// Returns a clearer message for a parser error whose own message is not helpful, and a way to fix it.
pub(super) fn explain(kind: &ErrorKind) -> (Option<&'static str>, Option<&'static str>) {
    match kind {
        ErrorKind::TabInBlockIndentation | ErrorKind::TabInIndentation | ErrorKind::TabNotAllowed => {
            (Some("a tab in the indentation"), Some("YAML is indented with spaces"))
        }
        ErrorKind::UnknownAnchor => (
            Some("an alias to an anchor that is not defined above it"),
            Some("put the text in quotes if it is not an alias"),
        ),
        ErrorKind::UnclosedFlowCollection { open: '{' } => (Some("this `{` is never closed"), None),
        ErrorKind::UnclosedFlowCollection { .. } => (Some("this `[` is never closed"), None),
        ErrorKind::UnclosedQuotedScalar => (Some("a quote is never closed"), None),
        ErrorKind::InvalidQuotedScalarIndent => (
            Some("a quoted string continues on a line that is not indented"),
            Some("is the closing quote missing on the line above?"),
        ),
        ErrorKind::MappingValueNotAllowed => (
            Some("a `:` that does not start a value"),
            Some("put a string that contains `: ` in quotes, and check the indentation of this line and the one above"),
        ),
        ErrorKind::InvalidColonPlacement => {
            (Some("a `:` in the wrong place"), Some("is a `[` or `{` above not closed?"))
        }
        ErrorKind::ExpectedBlockMappingKey => {
            (Some("expected a key here"), Some("its indentation does not match any map above"))
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            (Some("expected `- ` here"), Some("only further items of the list can follow here"))
        }
        ErrorKind::ExpectedFlowMappingSeparator => (Some("expected `,` or `}`"), None),
        ErrorKind::ExpectedFlowSequenceSeparator => (Some("expected `,` or `]`"), None),
        ErrorKind::UnexpectedEofFlowSequence
        | ErrorKind::UnexpectedEofFlowMapping
        | ErrorKind::UnexpectedEofImplicitFlowMapping => {
            (Some("an item is missing here"), Some("remove the comma, or write the item"))
        }
        ErrorKind::MisplacedFlowCollectionEnd => (Some("a closing bracket without an opening one"), None),
        ErrorKind::UnknownQuotedScalarEscape => (
            Some("an escape that YAML does not have, in double quotes"),
            Some("double the backslash, or use single quotes, which keep it as it is"),
        ),
        ErrorKind::InvalidTrailingDoubleQuotedScalar | ErrorKind::InvalidTrailingSingleQuotedScalar => {
            (Some("text after the closing quote"), None)
        }
        ErrorKind::UnexpectedCharacter { character } if character.is_control() => (
            Some("a control character, which YAML does not allow"),
            Some("remove it, or write it as an escape in double quotes, such as `\\u001b`"),
        ),
        ErrorKind::UnexpectedCharacter { .. } => (None, Some("put the text in quotes")),
        ErrorKind::SimpleKeyExpected | ErrorKind::InvalidSimpleKey => (Some("expected `key: value`"), None),
        ErrorKind::CommentInterceptedScalar => (
            Some("this line continues the text above, which a comment has ended"),
            Some("give it the indentation of the line above, or move the comment to a line before the text"),
        ),
        ErrorKind::ExpectedDocumentStart => (
            Some("this line is not part of what is above it"),
            Some("give it the indentation of the first line of the file"),
        ),
        ErrorKind::RecursionLimitExceeded => (Some("nested too deeply"), None),
        ErrorKind::CommentNotSeparated => (Some("a comment needs a space before `#`"), None),
        _ => (None, None),
    }
}

/// Returns the problem with its place if the parser points to something else than the mistake, or the text at `at` says
/// more than the error.
pub(super) fn located(kind: &ErrorKind, text: &str, at: usize) -> Option<(Diagnostic, Span)> {
    let (before, rest) = text.split_at_checked(at)?;
    match kind {
        ErrorKind::InvalidQuotedScalarIndent if rest.trim().is_empty() => {
            let quote = open_quote(before)?;
            Some((Diagnostic::error("a quote is never closed"), Span::new(quote, quote + 1)))
        }
        ErrorKind::ExpectedBlockSequenceEntry => {
            let key = rest.lines().next()?.split_once(':')?.0.trim_end();
            let is_key = key.starts_with(char::is_alphanumeric)
                && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-'));
            let problem = Diagnostic::error(format!("`{key}` has the indentation of the list above, not of its items"));
            let problem = problem.help("give it the indentation of the other keys of the item, if it belongs to it");
            is_key.then(|| (problem, Span::new(at, at + key.len())))
        }
        _ => None,
    }
}

/// Returns the last quote in `text` that opens a string, or an earlier one on its line that is not closed.
fn open_quote(text: &str) -> Option<usize> {
    let is_opening = |at: &usize| text[..*at].is_empty() || text[..*at].ends_with([' ', '\t', '\n', '[', '{', '(']);
    let last = text.rmatch_indices(['"', '\'']).map(|(at, _)| at).find(is_opening)?;
    let start = text[..last].rfind('\n').map_or(0, |end| end + 1);
    let mut closed = start;
    for (at, quote) in text[start..last].match_indices(['"', '\'']).map(|(at, quote)| (start + at, quote)) {
        if at < closed || !is_opening(&at) {
            continue;
        }
        match text[at + 1..].find(quote) {
            Some(end) => closed = at + end + 2,
            None => return Some(at),
        }
    }
    Some(last)
}

/// Returns the offset of the next line in `text` that is neither empty nor a comment, without its indentation.
pub(super) fn next_line(text: &str) -> usize {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let content = line.trim_start();
        if offset > 0 && !content.is_empty() && !content.starts_with('#') {
            return offset + line.len() - content.len();
        }
        offset += line.len();
    }
    0
}

/// Reports a JSON error in `text`, which starts at the byte `start` of `source`.
pub(super) fn json_error(source: &Source, start: usize, text: &str, error: &serde_json::Error) -> Diagnostic {
    let line_start = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    json_problem(source, error, start + line_start + error.column().saturating_sub(1))
}

pub(super) fn json_problem(source: &Source, error: &serde_json::Error, index: usize) -> Diagnostic {
    let full = error.to_string();
    let message = full.rfind(" at line ").map_or(full.as_str(), |cut| &full[..cut]);
    let before = source.text.get(..index).and_then(|before| before.strip_suffix('\n')).unwrap_or_default();
    if message.starts_with("control character")
        && let Some(quote) = before.rfind(['"', '\n']).filter(|at| before[*at..].starts_with('"'))
    {
        let problem = Diagnostic::error("not valid JSON: this string does not end on its line");
        return problem.at(source.excerpt(Span::new(quote, before.len()))).help("is its closing quote missing?");
    }
    let mut problem =
        Diagnostic::error(format!("not valid JSON: {message}")).at(source.excerpt(Span::new(index, index)));
    let rest = source.text.get(index..).unwrap_or_default();
    let follows_comma = source.text.get(..index).is_some_and(|before| before.trim_end().ends_with(','));
    if rest.starts_with(['/', '#']) {
        problem = problem.help("JSON does not allow comments");
    } else if rest.starts_with('\'') {
        problem = problem.help("JSON has only double quotes");
    } else if message == "trailing characters" && rest.starts_with(['{', '[']) {
        problem = problem.help("a JSON file has one value; a file with one in each line ends in `.jsonl`");
    } else if message.contains("trailing comma") || (rest.starts_with(['}', ']']) && follows_comma) {
        problem = problem.help("JSON does not allow a comma after the last item");
    } else if ["True", "False", "None"].iter().any(|word| rest.starts_with(word)) {
        problem = problem.help("write `true`, `false` or `null`");
    } else if message == "key must be a string" {
        problem = problem.help("put the key in double quotes");
    } else if source.text.starts_with(char::is_alphabetic) && source.text.contains(": ") {
        problem = problem.help("the name of a file with YAML must end in `.yaml`");
    }
    problem
}
