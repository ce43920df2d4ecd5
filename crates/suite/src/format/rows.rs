//! `cases`: rows of data. A file that has them is read once per row, and its templates are filled in from the columns.

mod placeholder;

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use model::decode::{self, Problems};
use model::{Case, Diagnostic, DiagnosticKind, Excerpt, Node, NodeKind, Source};
use template::{Ambient, Variables, may_be_template};

pub use self::placeholder::other_placeholder;
use self::placeholder::{explain_placeholders, report_open_braces, report_other_placeholders};
use super::SuiteFile;
use crate::document::{self, Language};
use crate::library::Library;
use crate::path;

/// Key of the rows.
pub const CASES: &str = "cases";

/// Columns that can name a row, in order of precedence. Without any of them, the first column names it.
const NAMING: [&str; 3] = ["id", "name", "title"];

/// Maximum length of a row's name in characters.
const MAX_NAME_LEN: usize = 60;

/// A row of data.
pub struct Row {
    /// Name, unique among the rows.
    pub name: String,
    /// Map from columns to values.
    pub values: Node,
}

/// Format whose files can have rows.
pub struct CaseReader {
    /// Keys for the id of the case, in order of precedence.
    pub id: &'static [&'static str],
    /// `true` if a mistake breaks only the cases that it affects.
    pub fails_alone: bool,
    /// Reads the case of a file without rows.
    pub read: fn(&SuiteFile<'_>, &Library, &mut Problems) -> Option<Case>,
}

impl CaseReader {
    /// Reads the case in `file`, or one case per row.
    ///
    /// The case for a row is called `ID [ROW]`, or just `ID` if the id contains a template.
    pub fn cases(&self, file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
        let Some(table) = file.root.get(CASES) else {
            let mut found = Problems::new();
            let case = (self.read)(file, library, &mut found);
            if found.iter().any(|problem| problem.means(CASES)) {
                // What the rows would fill follows from the misspelt key.
                found.retain(|problem| !is_about_value(problem));
            } else {
                problems.extend(unfilled(file, library));
            }
            problems.extend(found);
            return case.into_iter().map(Arc::new).collect();
        };
        let root = without(file.root, CASES);
        let id = self.id.iter().find_map(|key| file.root.get(key)?.as_str());
        let is_named = id.is_some_and(|id| may_be_template(id) && (id.contains("}}") || id.contains("%}")));
        let known = problems.len();
        let rows = read(table, file.directory(), library, problems);
        report_open_braces(&root, &rows, problems);
        report_other_placeholders(&root, &rows, problems);
        if problems.len() == known && !rows.is_empty() && !may_be_template(&file.root.source.text) {
            let problem =
                table.warning(format!("no template uses a column of `{CASES}`, so each row is the same test"));
            problems.push(problem.help("write `{{ COLUMN }}` where the value of a column belongs"));
        }
        let mut cases = Vec::with_capacity(rows.len());
        let mut reported = Reported::default();
        for (index, row) in rows.iter().enumerate() {
            let ambient = Ambient { now_ms: library.now_ms, seed: index as u64, ..Ambient::default() };
            let variables = Variables::new().layer(&row.values).ambient(ambient);
            let mut found = Problems::new();
            let root = template::resolve(&root, &variables, &mut found);
            explain_placeholders(file.root, &mut found);
            let mut of_case = Problems::new();
            let case = (self.read)(&SuiteFile { path: file.path, root: &root }, library, &mut of_case);
            // A template that cannot be filled in often has the wrong type too.
            of_case.retain(|problem| !found.iter().any(|template| line(template) == line(problem)));
            found.extend(of_case);
            // A column that a row does not have is one mistake, however often it is used.
            let mut unknown = HashSet::new();
            found.retain(|problem| match &problem.kind {
                DiagnosticKind::UnknownVariable(name) => unknown.insert(name.clone()),
                _ => true,
            });
            cases.extend(case.map(|mut case| {
                if !is_named {
                    case.id = format!("{} [{}]", case.id, row.name);
                }
                let place = row.values.excerpt();
                case.table = (place.file != case.source.file).then_some(place);
                (index, case)
            }));
            reported.add(index, found);
        }
        if let Some(problem) = without_header(table, &root, &rows) {
            reported.problems.retain(|(other, _)| !matches!(other.kind, DiagnosticKind::UnknownVariable(_)));
            problems.push(problem);
        }
        for (problem, affected) in reported.problems {
            let is_everywhere = affected.len() == rows.len();
            if let Some(misspelt) = misspelt_column(&problem, &rows, &affected).filter(|_| !is_everywhere) {
                problems.push(misspelt);
                continue;
            }
            if is_everywhere && !is_about_value(&problem) {
                problems.push(problem);
                continue;
            }
            let number = with_point(&problem.message).filter(|_| !problem.message.contains("a whole number"));
            let problem = number.into_iter().fold(problem, |problem, number| problem.help(format!("write `{number}`")));
            let problem = problem.help(in_rows(&rows, &affected));
            if !is_everywhere && self.fails_alone && problem.is_error() {
                let is_affected = |(index, _): &&mut (usize, Case)| affected.binary_search(index).is_ok();
                cases.iter_mut().filter(is_affected).for_each(|(_, case)| case.broken.push(problem.clone()));
            } else {
                problems.push(problem);
            }
        }
        cases.into_iter().map(|(_, case)| Arc::new(case)).collect()
    }
}

/// Returns the problem with a file whose templates use no column of its table: the table has no line with the names of
/// its columns.
fn without_header(table: &Node, root: &Node, rows: &[Row]) -> Option<Diagnostic> {
    let NodeKind::Map(columns) = &rows.first()?.values.kind else { return None };
    let format = TableFormat::from_path(Path::new(table.as_str()?))?;
    let mut placeholders = Vec::new();
    collect_placeholders(root, &mut placeholders);
    let near = |name: &str| model::nearest(name, columns.iter().map(|(column, _)| &*column.value));
    let has_capitals = |(_, name): &(&Node, &str)| {
        near(name).is_some_and(|column| column != *name && column.eq_ignore_ascii_case(name))
    };
    let are_capitals =
        placeholders.iter().all(has_capitals) && placeholders.iter().any(|(_, name)| *name != placeholders[0].1);
    let is_like = |(_, name): &(&Node, &str)| near(name).is_some() && !are_capitals;
    if !matches!(format, TableFormat::Delimited(_)) || placeholders.is_empty() || placeholders.iter().any(is_like) {
        return None;
    }
    let (first, _) = columns.first()?;
    let mut wanted: Vec<&str> = Vec::new();
    for (_, name) in placeholders {
        if !wanted.contains(&name) {
            wanted.push(name);
        }
    }
    let names = |names: &[&str]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let own: Vec<&str> = columns.iter().map(|(column, _)| &*column.value).collect();
    let what = if wanted.len() == 1 { "column" } else { "columns" };
    let problem = Diagnostic::error(format!("the table has no {what} {}, only {}", names(&wanted), names(&own)));
    let problem = problem.at(rows.first()?.values.source.excerpt(first.span));
    Some(problem.help(match are_capitals {
        true => "names are compared with their capitals",
        false => "the first line of a table has the names of its columns",
    }))
}

/// Returns the problem at a row whose column is misspelt, and not those of the others, in place of `problem` with a
/// template that uses the column.
fn misspelt_column(problem: &Diagnostic, rows: &[Row], affected: &[usize]) -> Option<Diagnostic> {
    let DiagnosticKind::UnknownVariable(name) = &problem.kind else { return None };
    let row = &rows.get(*affected.first()?)?.values;
    let NodeKind::Map(columns) = &row.kind else { return None };
    let others = || rows.iter().enumerate().filter(|(index, _)| affected.binary_search(index).is_err());
    let is_own = |column: &str| others().all(|(_, other)| other.values.get(column).is_none());
    let is_misspelt = |column: &str| model::nearest(column, [&**name]).is_some() && is_own(column);
    let (column, _) = columns.iter().find(|(column, _)| is_misspelt(&column.value))?;
    let message = format!("this row has no `{name}`, but `{}`", column.value);
    let problem = Diagnostic::error(message).at(row.source.excerpt(column.span));
    Some(problem.suggest(Some(name)))
}

/// Returns a warning about the first placeholder in a file without rows that is the name of a column of a table in the
/// same folder: the line that names the table is probably missing. Other placeholders may be meant for the agent.
fn unfilled(file: &SuiteFile<'_>, library: &Library) -> Option<Diagnostic> {
    let mut placeholders = Vec::new();
    collect_placeholders(file.root, &mut placeholders);
    if placeholders.is_empty() {
        return None;
    }
    let entries = std::fs::read_dir(file.directory()).ok()?.flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    let tables = paths.iter().filter_map(|path| {
        let format = TableFormat::from_path(path).filter(|format| !matches!(format, TableFormat::Document(_)))?;
        let source = document::open(path, &library.shown(path)).ok()?;
        let rows = format.rows(&source, &mut Problems::new())?;
        Some((path.file_name()?.to_str()?, rows.into_iter().next()?))
    });
    for (table, row) in tables {
        if let Some((node, name)) = placeholders.iter().find(|(_, name)| row.get(name).is_some()) {
            let problem = node.warning(format!("nothing fills `{{{{ {name} }}}}`: the file has no `{CASES}`"));
            return Some(problem.help(format!("for one case per row of the table, write `{CASES}: {table}`")));
        }
    }
    None
}

/// Adds the placeholders in `node` that consist of a name, each with the string that contains it.
fn collect_placeholders<'n>(node: &'n Node, found: &mut Vec<(&'n Node, &'n str)>) {
    match &node.kind {
        NodeKind::String(text) => {
            let inside = text.split("{{").skip(1).filter_map(|rest| Some(rest.split_once("}}")?.0.trim()));
            let is_name =
                |name: &&str| !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
            found.extend(inside.filter(is_name).map(|name| (node, name)));
        }
        NodeKind::List(items) => items.iter().for_each(|item| collect_placeholders(item, found)),
        NodeKind::Map(entries) => entries.iter().for_each(|(_, value)| collect_placeholders(value, found)),
        _ => {}
    }
}

/// Problems found in the cases for rows, without duplicates, with the indexes of the affected rows.
#[derive(Default)]
struct Reported {
    problems: Vec<(Diagnostic, Vec<usize>)>,
    /// Index of each problem, by its location and message.
    places: HashMap<String, usize>,
}

impl Reported {
    fn add(&mut self, row: usize, problems: Problems) {
        for problem in problems {
            let at = *self.places.entry(without_value(&problem)).or_insert(self.problems.len());
            match self.problems.get_mut(at) {
                Some((_, rows)) if rows.last() == Some(&row) => {}
                Some((_, rows)) => rows.push(row),
                None => self.problems.push((problem, vec![row])),
            }
        }
    }
}

/// Returns what the problems with the different values of one template have in common.
fn without_value(problem: &Diagnostic) -> String {
    let text = problem.to_string();
    match text.rsplit_once(", not `") {
        Some((before, _)) if is_about_value(problem) => before.to_owned(),
        _ => text,
    }
}

fn line(problem: &Diagnostic) -> Option<(&str, usize)> {
    problem.source.as_ref().map(|place| (&*place.file, place.line))
}

/// Returns `true` for a problem at a template that was filled in. What is wrong may be the value in the table.
fn is_about_value(problem: &Diagnostic) -> bool {
    let is_template = |place: &Excerpt| may_be_template(&place.text);
    problem.message.contains(", not ") && problem.source.as_ref().is_some_and(is_template)
}

/// Returns the decimal number that `message` shows with a comma, with a point.
fn with_point(message: &str) -> Option<String> {
    let number = message.rsplit_once("not `")?.1.strip_suffix('`')?.replacen(',', ".", 1);
    (message.contains(',') && number.contains('.') && number.parse::<f64>().is_ok()).then_some(number)
}

/// Says which rows are affected.
fn in_rows(rows: &[Row], affected: &[usize]) -> String {
    let first = affected.first().and_then(|index| rows.get(*index));
    let first = first.map(|row| format!("row `{}` ({})", row.name, row.values.excerpt())).unwrap_or_default();
    match affected.len() {
        0 | 1 if rows.len() < 2 => format!("with {first}"),
        0 | 1 => format!("only with {first}"),
        2 => format!("with {first} and another one"),
        count => format!("with {first} and {} others", count - 1),
    }
}

/// Reads the rows: those in the file that `table` names, relative to `directory`, or those in `table` itself.
pub fn read(table: &Node, directory: &Path, library: &Library, problems: &mut Problems) -> Vec<Row> {
    let before = problems.len();
    let rows = match &table.kind {
        NodeKind::String(_) => of_file(table, directory, library, problems).unwrap_or_default(),
        NodeKind::List(items) => items.clone(),
        _ => {
            let kind = table.kind_name();
            problems.push(table.error(format!("`{CASES}` must be the name of a file or a list of maps, not {kind}")));
            Vec::new()
        }
    };
    let rows = rows.into_iter().filter(|row| is_map(row, problems)).collect::<Vec<_>>();
    if rows.is_empty() && problems.len() == before {
        problems.push(table.error(format!("`{CASES}` has no rows, so nothing would run")));
    }
    let mut taken = HashSet::with_capacity(rows.len());
    let mut named = Vec::with_capacity(rows.len());
    for (index, values) in rows.into_iter().enumerate() {
        let number = (index + 1).to_string();
        let mut name = name(&values).unwrap_or_else(|| number.clone());
        if taken.contains(&name) {
            let numbered = format!("{name} ({number})");
            problems.extend(twin(&values, &named, &name, &numbered));
            name = numbered;
        }
        while !taken.insert(name.clone()) {
            name.push('\'');
        }
        named.push(Row { name, values });
    }
    named
}

/// Returns a warning about a row with the name of an earlier one, if it is written to name the row.
fn twin(values: &Node, earlier: &[Row], name: &str, numbered: &str) -> Option<Diagnostic> {
    let place = NAMING.iter().find_map(|key| values.get(key).filter(|node| text(node).is_some()))?;
    let first = earlier.iter().find(|row| row.name == name)?;
    let problem = place.warning(format!("a second row is called `{name}`, so its case is called `{numbered}`"));
    let problem = problem.of(DiagnosticKind::TakenId);
    Some(problem.help(format!("the first is at {}; give each row a unique name", first.values.excerpt())))
}

fn is_map(row: &Node, problems: &mut Problems) -> bool {
    let is_map = matches!(row.kind, NodeKind::Map(_));
    if !is_map {
        problems.push(row.error(format!("a row of `{CASES}` must be a map, not {}", row.kind_name())));
    }
    is_map
}

/// Reads the rows in the file that `table` names.
fn of_file(table: &Node, directory: &Path, library: &Library, problems: &mut Problems) -> Option<Vec<Node>> {
    let written = decode::text(table, &format!("`{CASES}`"), problems)?;
    let path = path::resolve(directory, &written);
    library.use_table(&path);
    let Some(format) = TableFormat::from_path(&path) else {
        problems.push(table.error(format!("`{written}` is not a table in a known format")).help(TABLE_NAMES));
        return None;
    };
    let source = match document::open(&path, &library.shown(&path)) {
        Ok(source) => source,
        Err(problem) if document::guess(&path).is_some() => {
            problems.push(*problem);
            return None;
        }
        Err(problem) => {
            let help = format!("`{CASES}` is relative to the directory of this file");
            let problem = table.error(format!("`{written}`: {}", problem.message));
            problems.push(problem.suggest(path::near(&path, &written).as_deref()).help(help));
            return None;
        }
    };
    format.rows(&source, problems)
}

/// Help text about the names of table files.
const TABLE_NAMES: &str = "the name ends in `.csv`, `.tsv`, `.jsonl`, `.json` or `.yaml`";

/// Format of a table, chosen by the file extension.
#[derive(Clone, Copy)]
enum TableFormat {
    Delimited(u8),
    JsonLines,
    Document(Language),
}

impl TableFormat {
    fn from_path(path: &Path) -> Option<Self> {
        match path.extension()?.to_str()?.to_ascii_lowercase().as_str() {
            "csv" => Some(Self::Delimited(b',')),
            "tsv" => Some(Self::Delimited(b'\t')),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            _ => Language::from_path(path).map(Self::Document),
        }
    }

    /// Parses the rows in `source`, or returns `None` if there are problems.
    fn rows(self, source: &Arc<Source>, problems: &mut Problems) -> Option<Vec<Node>> {
        let before = problems.len();
        let rows = match self {
            Self::Delimited(delimiter) => document::read_csv(source, delimiter, problems),
            Self::JsonLines => document::read_json_lines(source, problems),
            Self::Document(language) => {
                let root = document::read(source, language, problems)?;
                match root.kind {
                    NodeKind::List(items) => items,
                    _ => {
                        problems.push(root.error(format!("a table is a list of maps, not {}", root.kind_name())));
                        return None;
                    }
                }
            }
        };
        (problems.len() == before).then_some(rows)
    }
}

/// Reads the rows of the table at `path`: CSV, TSV, JSON lines, JSON or YAML. Messages call it `shown`.
///
/// # Errors
/// Returns all problems with the file and its syntax.
pub fn read_table(path: &Path, shown: &str) -> Result<Vec<Node>, Problems> {
    let format = TableFormat::from_path(path).ok_or_else(|| {
        let problem = Diagnostic::error("this is not a table in a known format").at(Excerpt::of_file(shown));
        vec![problem.help(TABLE_NAMES)]
    })?;
    let source = document::open(path, shown).map_err(|problem| vec![*problem])?;
    let mut problems = Problems::new();
    format.rows(&source, &mut problems).ok_or(problems)
}

/// Returns the name of a row: the value of the column that names it, as one line.
fn name(values: &Node) -> Option<String> {
    let NodeKind::Map(entries) = &values.kind else { return None };
    let naming = NAMING.iter().find_map(|key| text(values.get(key)?));
    let name = naming.or_else(|| text(&entries.first()?.1))?;
    let name: String = name.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    let name = name.trim();
    let short = || name.chars().take(MAX_NAME_LEN - 1).chain(['…']).collect();
    Some(if name.chars().count() > MAX_NAME_LEN { short() } else { name.to_owned() })
}

/// Returns the text of a value that can name a row.
fn text(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::String(text) if !text.trim().is_empty() => Some(text.clone()),
        NodeKind::Number(number) => Some(number.to_string()),
        NodeKind::Bool(value) => Some(value.to_string()),
        _ => None,
    }
}

/// Returns the map `root` without the entry under `key`.
fn without(root: &Node, key: &str) -> Node {
    let mut root = root.clone();
    if let NodeKind::Map(entries) = &mut root.kind {
        entries.retain(|(name, _)| name.value != key);
    }
    root
}
