//! Reads human labels of judged assertions from a table.

use std::collections::HashMap;
use std::path::Path;

use model::decode::{Fields, Problems};
use model::{Diagnostic, Excerpt, Node, NodeKind};

/// Accepted labels in lower case, each with its meaning.
const MARKS: [(&str, bool); 10] = [
    ("met", true),
    ("unmet", false),
    ("pass", true),
    ("fail", false),
    ("yes", true),
    ("no", false),
    ("true", true),
    ("false", false),
    ("1", true),
    ("0", false),
];

/// Name of the column that contains the labels.
const LABEL: &str = "label";

/// Label that a human gave to one assertion of one trial.
#[derive(Debug, Clone)]
pub struct Label {
    /// Run of the trial, as written; absent if the table has no such column.
    pub run: Option<String>,
    /// Id of the trial, as reports print it.
    pub trial: String,
    /// Id of the assertion.
    pub assertion: String,
    /// True if the human labelled the assertion as met.
    pub is_met: bool,
    /// The human's reason.
    pub note: Option<String>,
    /// Location of the row.
    pub source: Excerpt,
}

/// Labels from a table.
#[derive(Debug, Default)]
pub struct Labels {
    /// Rows with a label.
    pub rows: Vec<Label>,
    /// Number of rows without a label.
    pub unlabelled: u64,
}

/// Reads the table at `path`: CSV, TSV, JSON lines, JSON or YAML. Messages call it `shown`.
pub fn read(path: &Path, shown: &str) -> Result<Labels, Problems> {
    let rows = suite::read_table(path, shown)?;
    let mut problems = Problems::new();
    let mut labels = Labels::default();
    match rows.first() {
        None => problems.push(
            Diagnostic::error("the table has no rows")
                .at(Excerpt::of_file(shown))
                .help("`trialrun calibrate FILE --export RUN` writes a table to label"),
        ),
        Some(first) if rows.iter().all(|row| row.get(LABEL).is_none()) => problems.push(no_label(first)),
        Some(_) => rows.iter().for_each(|row| labels.add(row, &mut problems)),
    }
    let mut known: HashMap<(&Option<String>, &str, &str), &Label> = HashMap::new();
    for label in &labels.rows {
        if let Some(first) = known.insert((&label.run, &label.trial, &label.assertion), label) {
            let message = format!("`{}` of {} is labelled twice", label.assertion, label.trial);
            let help = format!("the first label is at {}", first.source);
            problems.push(Diagnostic::error(message).at(label.source.clone()).help(help));
        }
    }
    if problems.is_empty() { Ok(labels) } else { Err(problems) }
}

impl Labels {
    fn add(&mut self, row: &Node, problems: &mut Problems) {
        let Some(mut fields) = Fields::of(row, "a row", problems) else { return };
        let run = fields.any_text("run", problems).filter(|run| !run.is_empty());
        let trial = fields.required_text("trial", problems);
        let assertion = fields.required_text("assertion", problems);
        let note = fields.any_text("note", problems).filter(|note| !note.trim().is_empty());
        let Some(written) = fields.get(LABEL).and_then(written) else {
            self.unlabelled += 1;
            return;
        };
        let mark = MARKS.iter().find(|(name, _)| *name == written.to_lowercase());
        let Some((_, is_met)) = mark else {
            let near = model::nearest(&written, MARKS.iter().map(|(name, _)| *name));
            let problem = row.error(format!("`{written}` is not a label"));
            problems.push(problem.suggest(near).help("write `met` or `unmet`; leave it empty to skip the row"));
            return;
        };
        let (Some(trial), Some(assertion)) = (trial, assertion) else { return };
        self.rows.push(Label { run, trial, assertion, is_met: *is_met, note, source: row.excerpt() });
    }
}

/// Returns a cell as text, or `None` if it is empty.
fn written(node: &Node) -> Option<String> {
    let text = match &node.kind {
        NodeKind::String(text) => text.trim().to_owned(),
        NodeKind::Bool(value) => value.to_string(),
        NodeKind::Number(number) => number.to_string(),
        NodeKind::Null => return None,
        _ => node.kind_name().to_owned(),
    };
    (!text.is_empty()).then_some(text)
}

fn no_label(first: &Node) -> Diagnostic {
    let columns = match &first.kind {
        NodeKind::Map(entries) => entries.iter().map(|(name, _)| format!("`{}`", name.value)).collect::<Vec<_>>(),
        _ => return first.error(format!("a row must be a map, not {}", first.kind_name())),
    };
    let problem = first.error(format!("the table has no column `{LABEL}`"));
    problem.help(format!("its columns are {}; `trial`, `assertion` and `{LABEL}` are required", columns.join(", ")))
}
