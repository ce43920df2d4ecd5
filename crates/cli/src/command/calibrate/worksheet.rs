//! A table of judged assertions for a human to label. It does not show the judge's verdicts, because they would
//! influence the human, and the labels would then say nothing about the judge.

use std::io::Write;
use std::path::Path;

use model::statistics::Chance;
use model::{Finding, TrialRecord};
use serde::Serialize;

use crate::error::CliError;

/// Maximum number of tool calls that are shown for a conversation.
const MAX_CALLS: usize = 50;
/// Maximum length of a tool call's arguments, in characters.
const MAX_INPUT_CHARS: usize = 200;

/// Table format, chosen by the file extension.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Csv,
    JsonLines,
}

impl Format {
    /// Returns the format for `path`.
    pub fn of(path: &Path) -> Result<Self, CliError> {
        match path.extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
            "csv" => Ok(Self::Csv),
            "jsonl" | "ndjson" => Ok(Self::JsonLines),
            _ => Err(CliError::usage(format!("cannot write labels to {}", path.display()))
                .hint("the name must end in `.csv` or `.jsonl`")),
        }
    }
}

/// A judged assertion for a human to label. Its fields are the columns of the table.
#[derive(Debug, Serialize)]
pub struct Row {
    run: String,
    trial: String,
    assertion: String,
    #[serde(rename = "type")]
    kind: String,
    question: String,
    conversation: String,
    label: String,
    note: String,
}

/// Returns a row for each judged assertion of the trial.
pub fn rows(run: &str, record: &TrialRecord) -> Vec<Row> {
    let row = |finding: &Finding| {
        let judgement = finding.judgement.as_ref()?;
        Some(Row {
            run: run.to_owned(),
            trial: record.id.to_string(),
            assertion: finding.id.clone(),
            kind: finding.kind.clone(),
            question: report::clean(&judgement.question),
            conversation: conversation(record),
            label: String::new(),
            note: String::new(),
        })
    };
    record.findings.iter().filter_map(row).collect()
}

/// Returns `count` rows in their original order, chosen at random with `seed`.
pub fn sample(rows: Vec<Row>, count: usize, seed: u64) -> Vec<Row> {
    let mut chosen: Vec<usize> = (0..rows.len()).collect();
    Chance::new(seed).shuffle(&mut chosen);
    chosen.truncate(count);
    let is_chosen = |index: &usize| chosen.contains(index);
    rows.into_iter().enumerate().filter(|(index, _)| is_chosen(index)).map(|(_, row)| row).collect()
}

/// Writes the rows as a table.
pub fn write(rows: &[Row], format: Format, out: &mut dyn Write) -> std::io::Result<()> {
    match format {
        Format::Csv => {
            let mut table = csv::Writer::from_writer(out);
            rows.iter().try_for_each(|row| table.serialize(row)).map_err(std::io::Error::other)?;
            table.flush()
        }
        Format::JsonLines => rows.iter().try_for_each(|row| {
            serde_json::to_writer(&mut *out, row)?;
            out.write_all(b"\n")
        }),
    }
}

/// Returns the messages, replies and tool calls as text.
fn conversation(record: &TrialRecord) -> String {
    let mut lines = Vec::new();
    for (index, message) in record.input.iter().enumerate() {
        lines.push(format!("user: {message}"));
        let is_last = index + 1 == record.input.len();
        if let Some(reply) = record.replies.get(index).and_then(|reply| reply.answer.as_ref()).filter(|_| !is_last) {
            lines.push(format!("agent: {reply}"));
        }
    }
    for call in record.tool_calls.iter().take(MAX_CALLS) {
        let input = call.input.to_string();
        let cut = input.char_indices().nth(MAX_INPUT_CHARS).map_or(input.len(), |(end, _)| end);
        let dots = if cut < input.len() { "…" } else { "" };
        lines.push(format!("tool call: {} {}{dots}", call.name, &input[..cut]));
    }
    if record.tool_calls.len() > MAX_CALLS {
        lines.push(format!("and {} more tool calls", record.tool_calls.len() - MAX_CALLS));
    }
    if let Some(answer) = &record.answer {
        lines.push(format!("agent: {answer}"));
    }
    report::clean(&lines.join("\n"))
}
