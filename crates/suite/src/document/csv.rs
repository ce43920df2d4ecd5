//! CSV (RFC 4180) with a header: one map per row, from the column names to the texts of the cells.

use std::collections::HashSet;
use std::sync::Arc;

use model::decode::Problems;
use model::{Diagnostic, Node, NodeKind, Severity, Source, Span, Spanned};

/// Parses `source`, whose cells are separated by `delimiter`. Blank lines are skipped. A row with too few or too many
/// cells is reported and omitted.
pub fn read_csv(source: &Arc<Source>, delimiter: u8, problems: &mut Problems) -> Vec<Node> {
    let text = source.text.as_str();
    let mut reader =
        csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text.as_bytes());
    let mut header: Option<Vec<Spanned<String>>> = None;
    let mut rows = Vec::new();
    let mut record = csv::StringRecord::new();
    loop {
        let start = position(&reader);
        match reader.read_record(&mut record) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                problems.push(
                    Diagnostic::error(format!("not valid CSV: {error}")).at(source.excerpt(Span::new(start, start))),
                );
                break;
            }
        }
        let span = trimmed(text, start, position(&reader));
        let at = |message: String| Diagnostic::error(message).at(source.excerpt(span));
        let is_last = position(&reader) >= text.len();
        if has_open_quote(source.text.get(span.start()..span.end()).unwrap_or_default(), is_last) {
            problems.push(
                at("a quote is opened and never closed".to_owned()).help("a quote inside of quotes is doubled: `\"\"`"),
            );
            break;
        }
        let Some(columns) = &header else {
            if let Some(problem) = other_delimiter(&record, delimiter, &at) {
                problems.push(problem);
                break;
            }
            header = Some(columns(&record, span, &at, problems));
            continue;
        };
        let is_complete = record.len() == columns.len();
        if let Some(mut problem) =
            misplaced_quote(source.text.get(span.start()..span.end()).unwrap_or_default(), delimiter, &at)
        {
            // The row can be read, but hardly as it is meant.
            problem.severity = if is_complete { Severity::Warning } else { Severity::Error };
            problems.push(problem);
            if !is_complete {
                continue;
            }
        }
        if columns.len() > 1 && record.iter().map(str::trim).eq(columns.iter().map(|column| &*column.value)) {
            let problem = Diagnostic::warning("this row repeats the names of the columns");
            problems.push(problem.at(source.excerpt(span)).help("remove the row"));
        }
        if !is_complete {
            let (cells, expected) = (model::text::counted(record.len(), "cell"), columns.len());
            let problem = at(format!("the row has {cells}, but the header has {expected}"));
            problems.push(match decimal_comma(&record, delimiter, expected) {
                Some(number) => problem.help(format!(
                    "if `{number}` is one number, write `{}`, or put it in quotes",
                    number.replace(',', ".")
                )),
                None if record.len() < expected => problem.help("a cell may be empty, but its delimiter must be there"),
                None => problem.help("put a cell that contains the delimiter in double quotes"),
            });
            continue;
        }
        let cell =
            |text: &str| Node { kind: NodeKind::String(text.to_owned()), span, tag: None, source: Arc::clone(source) };
        let entries = columns.iter().cloned().zip(record.iter().map(cell)).collect();
        rows.push(Node { kind: NodeKind::Map(entries), span, tag: None, source: Arc::clone(source) });
    }
    rows
}

fn position(reader: &csv::Reader<&[u8]>) -> usize {
    usize::try_from(reader.position().byte()).unwrap_or(usize::MAX)
}

/// Delimiters, with their names.
const DELIMITERS: [(u8, &str); 4] = [(b',', "commas"), (b'\t', "tabs"), (b';', "semicolons"), (b'|', "`|`")];

/// Reports a header that is a single cell in which another delimiter separates the names.
fn other_delimiter(
    record: &csv::StringRecord,
    delimiter: u8,
    at: &impl Fn(String) -> Diagnostic,
) -> Option<Diagnostic> {
    let only = record.get(0).filter(|_| record.len() == 1)?;
    let name = |wanted: u8| DELIMITERS.iter().find(|(known, _)| *known == wanted).map(|(_, name)| *name);
    let (_, found) = DELIMITERS.iter().find(|(other, _)| *other != delimiter && only.as_bytes().contains(other))?;
    let expected = name(delimiter)?;
    let message = format!("the columns are separated by {found}, but those of such a file by {expected}");
    let problem = at(message).help(format!("save the file with {expected} between the columns"));
    Some(match *found {
        "tabs" => problem.help("or call it `NAME.tsv`"),
        "commas" => problem.help("or call it `NAME.csv`"),
        _ => problem,
    })
}

/// Returns a number with a decimal comma that explains why `record` has more than `expected` cells.
fn decimal_comma(record: &csv::StringRecord, delimiter: u8, expected: usize) -> Option<String> {
    let is_digits = |cell: &str| !cell.is_empty() && cell.bytes().all(|byte| byte.is_ascii_digit());
    let cells: Vec<&str> = record.iter().map(str::trim).collect();
    let is_number = |pair: &&[&str]| is_digits(pair[0].trim_start_matches('-')) && is_digits(pair[1]);
    let first = cells.windows(2).find(is_number).filter(|_| delimiter == b',' && cells.len() > expected)?;
    Some(first.join(","))
}

/// Returns the location of the record in `text[start..end]` without the surrounding line breaks.
fn trimmed(text: &str, start: usize, end: usize) -> Span {
    let record = text.get(start..end).unwrap_or_default();
    let start = start + (record.len() - record.trim_start_matches(['\r', '\n']).len());
    let end = start + text.get(start..end).unwrap_or_default().trim_end_matches(['\r', '\n']).len();
    Span::new(start, end)
}

/// Returns `true` if a quote in a record is never closed: the parser then treats the rest of the file as one cell.
fn has_open_quote(record: &str, is_last: bool) -> bool {
    (is_last || record.contains('\n')) && record.matches('"').count() % 2 == 1
}

/// Returns the offset of the quote in `inside` that ends a cell. Two quotes are one character of the cell.
fn closing_quote(inside: &str) -> Option<usize> {
    let mut from = 0;
    loop {
        let at = from + inside.get(from..)?.find('"')?;
        match inside.get(at + 1..)?.starts_with('"') {
            true => from = at + 2,
            false => return Some(at),
        }
    }
}

/// Returns the problem with the first cell in `record` whose quotes do not surround all of it.
fn misplaced_quote(record: &str, delimiter: u8, at: &impl Fn(String) -> Diagnostic) -> Option<Diagnostic> {
    let delimiter = char::from(delimiter);
    let mut rest = record;
    loop {
        let cell = rest.trim_start_matches(|letter| letter == ' ' || letter == '\t' && delimiter != '\t');
        let Some(inside) = cell.strip_prefix('"') else {
            rest = rest.split_once(delimiter)?.1;
            continue;
        };
        let end = closing_quote(inside)?;
        let after = inside.get(end + 1..)?;
        let (tail, next) = after.split_once(delimiter).map_or((after, None), |(tail, next)| (tail, Some(next)));
        let is_blank = tail.trim().is_empty();
        if cell.len() < rest.len() && is_blank {
            let quoted = &inside[..end];
            let problem = at(format!("a space is before the quotes of `{quoted}`, so they are part of the cell"));
            return Some(problem.help("remove the space"));
        }
        if cell.len() == rest.len() && !tail.is_empty() {
            let problem = at(format!("`{tail}` after the closing quote is part of the cell"));
            let whole = "put the whole cell in quotes, and double each quote in it: `\"\"`";
            return Some(problem.help(if is_blank { "remove it" } else { whole }));
        }
        rest = next?;
    }
}

/// Returns the names of the columns, and reports empty and repeated ones.
fn columns(
    record: &csv::StringRecord,
    span: Span,
    at: &impl Fn(String) -> Diagnostic,
    problems: &mut Problems,
) -> Vec<Spanned<String>> {
    let mut known = HashSet::new();
    for (number, name) in record.iter().map(str::trim).enumerate() {
        if name.is_empty() {
            problems.push(
                at(format!("column {} has no name", number + 1))
                    .help("the first row contains the names of the columns"),
            );
        } else if !known.insert(name) {
            problems.push(at(format!("two columns are called `{name}`")));
        }
    }
    record.iter().map(|name| Spanned::new(name.trim().to_owned(), span)).collect()
}
