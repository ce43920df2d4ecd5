//! `dataset`: cases from the datasets of other tools. The file names the dataset, its format and what is asserted,
//! because a dataset alone asserts nothing. docs/coming-from-inspect.md and docs/coming-from-deepeval.md describe what is
//! honoured.

mod conversation;
mod deepeval;
mod inspect;
mod metric;
mod scorer;

use std::path::Path;
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{AssertionSpec, Case, Diagnostic, Node, NodeKind, nearest};

use self::metric::Metric;
use self::scorer::Scorer;
use super::foreign::{Names, Reading};
use super::scenario::{refuse_tags, with_common_fields};
use super::{Format, SuiteFile};
use crate::document::{self, Language};
use crate::library::Library;

/// The `dataset` format.
pub const DATASET: Format = Format {
    name: NAME,
    tool: None,
    mark: "a map with `dataset`, a file of inspect or DeepEval, and its `format`",
    fails_alone: true,
    is_meant,
    resembles: recognises,
    recognises,
    read,
};

/// Name of the format.
const NAME: &str = "dataset";

fn is_meant(text: &str) -> bool {
    match super::json_keys(text) {
        Some(keys) => keys.contains(&"dataset") && keys.contains(&"format"),
        None => text.lines().any(|line| line.starts_with("dataset:")),
    }
}

/// Format of a dataset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Dialect {
    Inspect,
    DeepEval,
}

/// Formats of datasets with their names.
const DIALECTS: [(&str, Dialect); 2] = [("inspect", Dialect::Inspect), ("deepeval", Dialect::DeepEval)];

/// Keys of what is asserted.
const ASSERTED: [&str; 2] = ["metrics", "scorers"];

/// What is asserted about each row.
enum Asserted {
    Scorers(Vec<Scorer>),
    Metrics(Vec<Metric>),
}

/// What is known about all rows.
struct Shared {
    case: Case,
    system_prompt: Option<String>,
    asserted: Asserted,
    /// Names of the columns that samples of inspect have, if they differ.
    columns: Vec<(String, Vec<String>)>,
    /// True if an answer may name several choices.
    multiple_correct: bool,
    /// True if everything that is asserted could be read.
    is_read: bool,
}

fn recognises(file: &SuiteFile<'_>) -> bool {
    let is_list = |key: &&str| file.root.get(key).is_some_and(|value| matches!(value.kind, NodeKind::List(_)));
    let is_suite = || file.root.get("format").is_some() || ASSERTED.iter().any(is_list);
    file.root.get(NAME).is_some_and(|dataset| dataset.as_str().is_some()) && is_suite() || is_misspelt(file.root)
}

/// Returns `true` if the format and what is asserted are those of such a suite, and only the key of the dataset is
/// misspelt.
fn is_misspelt(root: &Node) -> bool {
    let NodeKind::Map(entries) = &root.kind else { return false };
    let texts = entries.iter().filter(|(_, value)| value.as_str().is_some());
    let names = texts.map(|(name, _)| name.value.as_str()).filter(|name| *name != "format");
    let dialect = root.get("format").and_then(Node::as_str);
    DIALECTS.iter().any(|(name, _)| dialect == Some(*name))
        && ASSERTED.iter().any(|key| root.get(key).is_some())
        && nearest(NAME, names).is_some()
}

fn read(file: &SuiteFile<'_>, library: &Library, problems: &mut Problems) -> Vec<Arc<Case>> {
    refuse_tags(file.root, problems);
    let Some(mut fields) = Fields::of(file.root, "the suite", problems) else { return Vec::new() };
    let dataset = fields.required_text("dataset", problems);
    let dialect = match fields.choice("format", &DIALECTS, problems) {
        Some(dialect) => dialect,
        // What else the file says has a meaning only in a known format.
        None if fields.get("format").is_some() => return Vec::new(),
        None => {
            let (name, dialect) = DIALECTS[usize::from(file.root.get("scorers").is_none())];
            let problem = file.root.error("the suite has no `format`").of_missing(&["format"]);
            problems.push(problem.help(format!("write `format: {name}`")));
            dialect
        }
    };
    let case = with_common_fields(Case::new(NAME, file.root.excerpt()), &mut fields, file, library, problems);
    let system_prompt = fields.any_text("system_prompt", problems);
    let mut own = Reading::new(file.path, library);
    let (asserted, columns, multiple_correct) = match dialect {
        Dialect::DeepEval => (Asserted::Metrics(own.metrics(&mut fields)), Vec::new(), false),
        Dialect::Inspect => {
            let scorers = Asserted::Scorers(own.scorers(&mut fields));
            let multiple = fields.boolean("multiple_correct", problems).unwrap_or_default();
            (scorers, fields.get("fields").map(|node| columns(node, problems)).unwrap_or_default(), multiple)
        }
    };
    problems.append(&mut own.found);
    let place = fields.get("dataset");
    fields.finish(problems);
    let is_read = !problems.iter().any(Diagnostic::is_error);
    let (Some(dataset), Some(place)) = (dataset, place) else { return Vec::new() };
    let mut reading = Reading::new(file.path, library);
    let path = reading.path_of(&dataset);
    library.use_table(&path);
    let shared = Shared { case, system_prompt, asserted, columns, multiple_correct, is_read };
    let rows = rows(&mut reading, &dataset, place);
    let mut names = Names::default();
    let mut cases = Vec::with_capacity(rows.len());
    let whole = std::mem::take(&mut reading.found);
    for (index, row) in rows.iter().enumerate() {
        let mut case = match dialect {
            Dialect::Inspect => reading.sample(row, index, &shared, &mut names),
            Dialect::DeepEval => reading.golden(row, index, &shared, &mut names),
        };
        case.fails_alone = true;
        let found = std::mem::take(&mut reading.found);
        let stands_alone = |problem: &&Diagnostic| !found.iter().any(|cause| problem.follows_from(cause));
        case.broken.extend(found.iter().filter(stands_alone).cloned());
        case.table = Some(row.excerpt());
        cases.push(Arc::new(case));
    }
    problems.extend(whole);
    problems.append(&mut names.twins);
    if cases.is_empty() && problems.is_empty() {
        problems.push(place.error(format!("`{dataset}` has no rows")));
    }
    let format = if dialect == Dialect::Inspect { "inspect" } else { "deepeval" };
    library.cover(own.coverage(&library.shown(file.path), format));
    library.cover(reading.coverage(&library.shown(&path), format));
    cases
}

/// Reads the rows of a dataset.
fn rows(reading: &mut Reading<'_>, written: &str, place: &Node) -> Vec<Node> {
    let Some(source) = reading.open(written, place) else { return Vec::new() };
    let ending = Path::new(written).extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_lowercase();
    match ending.as_str() {
        "csv" => document::read_csv(&source, b',', &mut reading.found),
        "tsv" => document::read_csv(&source, b'\t', &mut reading.found),
        "jsonl" | "ndjson" => document::read_json_lines(&source, &mut reading.found),
        "json" | "yaml" | "yml" => {
            let language = if ending == "json" { Language::Json } else { Language::Yaml };
            let Some(root) = document::read(&source, language, &mut reading.found) else { return Vec::new() };
            let rows = root.get("goldens").or_else(|| root.get("samples")).unwrap_or(&root);
            match &rows.kind {
                NodeKind::List(items) => items.clone(),
                _ => {
                    let problem = rows.error(format!("a dataset must be a list, not {}", rows.kind_name()));
                    reading.found.push(problem);
                    Vec::new()
                }
            }
        }
        _ => {
            let problem = place.error(format!("the dataset `{written}` must be JSON, JSON lines, CSV or YAML"));
            reading.found.push(problem);
            Vec::new()
        }
    }
}

/// Reads the names of the columns that have the fields of a sample.
fn columns(node: &Node, problems: &mut Problems) -> Vec<(String, Vec<String>)> {
    let Some(mut fields) = Fields::of(node, "`fields`", problems) else { return Vec::new() };
    let mut columns = Vec::new();
    for key in ["input", "target", "choices", "id", "sandbox", "files", "setup", "description"] {
        columns.extend(fields.text(key, problems).map(|column| (key.to_owned(), vec![column])));
    }
    columns.extend(fields.texts("metadata", problems).map(|names| ("metadata".to_owned(), names)));
    fields.finish(problems);
    columns
}

/// Returns the case of a row with what holds for all.
fn completed(case: Case, shared: &Shared, assertions: Vec<AssertionSpec>) -> Case {
    let own = case.system_prompt;
    let prompts: Vec<String> = shared.system_prompt.iter().cloned().chain(own).collect();
    Case {
        id: case.id,
        source: case.source,
        description: case.description.or_else(|| shared.case.description.clone()),
        messages: case.messages,
        user: case.user,
        fixtures: case.fixtures,
        broken: case.broken,
        expected: case.expected,
        system_prompt: (!prompts.is_empty()).then(|| prompts.join("\n\n")),
        assertions,
        ..shared.case.clone()
    }
}

/// Returns the text that a scalar is; none for null, lists and maps.
fn plain(node: &Node) -> Option<String> {
    match &node.kind {
        NodeKind::String(text) => Some(text.clone()),
        NodeKind::Number(_) | NodeKind::Bool(_) => Some(node.to_json().to_string()),
        _ => None,
    }
}

/// Returns the value that a cell of a table has as JSON, if it is JSON.
fn parsed(node: &Node) -> Option<Node> {
    match &node.kind {
        NodeKind::String(text) => {
            let value = serde_json::from_str(text).ok()?;
            Some(at(node, &value))
        }
        NodeKind::Map(_) | NodeKind::List(_) => Some(node.clone()),
        _ => None,
    }
}

/// Creates a node for a value, with every part at the place of another node.
fn at(place: &Node, value: &serde_json::Value) -> Node {
    fn moved(node: Node, place: &Node) -> Node {
        let kind = match node.kind {
            NodeKind::List(items) => NodeKind::List(items.into_iter().map(|item| moved(item, place)).collect()),
            NodeKind::Map(entries) => NodeKind::Map(
                entries
                    .into_iter()
                    .map(|(key, value)| (model::Spanned::new(key.value, place.span), moved(value, place)))
                    .collect(),
            ),
            other => other,
        };
        super::foreign::at(place, kind)
    }
    moved(Node::from_json(value, &place.source), place)
}
