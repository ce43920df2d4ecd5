//! The agent's changes to files.

use model::{CallRecord, Envelope, Event, Part, TrialRecord};
use serde_json::Value;

use super::{changed, heading};
use crate::compare::line_diff;
use crate::plain;
use crate::terminal::{Paint, Style};

/// Formats the changes to files: the recorded patch, or else the changed files and the edits found in tool calls.
pub fn show_diff(record: &TrialRecord, events: &[Envelope], style: &Style) -> String {
    let paint = Paint::new(*style);
    let collected = events.iter().rev().find_map(|envelope| match &envelope.event {
        Event::Collected(collected) => Some(collected),
        _ => None,
    });
    let patch = collected.and_then(|collected| collected.patch.as_deref());
    if let Some(patch) = patch.filter(|patch| !patch.trim().is_empty()) {
        return plain::lines(patch).iter().map(|line| patch_line(line, &paint) + "\n").collect();
    }
    let mut text = String::new();
    for call in &record.tool_calls {
        let path = call.input.get("file_path").and_then(Value::as_str);
        let edits = edits(call);
        if let (Some(path), false) = (path, edits.is_empty()) {
            text.push_str(&heading(&paint.folded(path, 400), &paint));
            edits.iter().for_each(|(old, new)| text.push_str(&lines(old, new, &paint)));
        }
    }
    let files: String = record.files_changed.iter().map(|file| changed(file, &paint)).collect();
    match (files.is_empty(), text.is_empty()) {
        (true, true) => match collected.map(|collected| collected.sandbox.is_some()) {
            Some(true) => "the trial left no changed files in its working directory\n".to_owned(),
            Some(false) => "the trial had no working directory, so its changes to files are not known\n".to_owned(),
            None => "the trial ended before its files were compared, so its changes to them are not known\n".to_owned(),
        },
        (false, true) => format!("{files}  {}\n", paint.dim("(the record has no patch of these files)")),
        _ => format!("{files}{}{text}", heading("edits by tool calls", &paint).trim_start()),
    }
}

fn patch_line(line: &str, paint: &Paint) -> String {
    match line.as_bytes().first() {
        Some(b'+') if !line.starts_with("+++") => paint.green(line),
        Some(b'-') if !line.starts_with("---") => paint.red(line),
        Some(b'@') => paint.cyan(line),
        Some(b' ') | None => line.to_owned(),
        _ => paint.bold(line),
    }
}

/// Returns the old and new texts that a call writes.
fn edits(call: &CallRecord) -> Vec<(&str, &str)> {
    match call.name.as_str() {
        "Write" => str_of(&call.input, "content").map(|content| ("", content)).into_iter().collect(),
        "MultiEdit" => {
            let edits = call.input.get("edits").and_then(Value::as_array);
            edits.into_iter().flatten().filter_map(edit).collect()
        }
        _ => edit(&call.input).into_iter().collect(),
    }
}

fn edit(input: &Value) -> Option<(&str, &str)> {
    Some((str_of(input, "old_string")?, str_of(input, "new_string")?))
}

fn str_of<'a>(input: &'a Value, key: &str) -> Option<&'a str> {
    input.get(key)?.as_str()
}

fn lines(old: &str, new: &str, paint: &Paint) -> String {
    let mut text = String::new();
    for segment in line_diff(old, new) {
        for line in segment.text.lines() {
            let line = match segment.part {
                Part::Missing => paint.red(&format!("-{line}")),
                Part::Extra => paint.green(&format!("+{line}")),
                Part::Same => format!(" {line}"),
            };
            text.push_str(&format!("{}\n", line.trim_end()));
        }
    }
    text
}
