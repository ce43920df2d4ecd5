//! A table of judged assertions for a human to label. It does not show the judge's verdicts, because they would
//! influence the human, and the labels would then say nothing about the judge.

use std::io::Write;
use std::path::Path;

use grade::shown_to_judge;
use model::statistics::Chance;
use model::{Finding, Judgement, Step, TrialRecord};
use runner::RecordedEvidence;
use serde::Serialize;

use crate::error::CliError;

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

/// Returns a row for each judged assertion of the trial. People label exactly what the judge saw.
pub fn rows(run: &str, record: &TrialRecord, evidence: &RecordedEvidence) -> Vec<Row> {
    let row = |finding: &Finding| {
        let judgement = finding.judgement.as_ref()?;
        Some(Row {
            run: run.to_owned(),
            trial: record.id.to_string(),
            assertion: finding.id.clone(),
            kind: finding.kind.clone(),
            question: report::clean(&judgement.question),
            conversation: report::clean(&shown_to_judge(
                &evidence_then(evidence, judgement).into_evidence(record),
                judgement,
            )),
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

/// Returns the evidence when it was judged: code may judge before the conversation ends.
fn evidence_then(evidence: &RecordedEvidence, judgement: &Judgement) -> RecordedEvidence {
    let mut messages = 0;
    let is_seen = |step: &&Step| {
        messages += u64::from(matches!(step, Step::UserMessage { .. }));
        // Older records do not have the number.
        judgement.messages == 0 || messages <= judgement.messages
    };
    RecordedEvidence { steps: evidence.steps.iter().take_while(is_seen).cloned().collect(), ..evidence.clone() }
}
