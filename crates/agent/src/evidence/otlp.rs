//! Spans of instrumented agents, in the JSON form of the OpenTelemetry protocol: one export request, or one on each line,
//! as the collector's file exporter writes them. Each trace is a conversation.

use std::collections::HashMap;

use model::{Diagnostic, Ending, Source, Span as Place};
use serde_json::{Map, Value};
use spans::{Span, TraceId, trace_from_spans};

use crate::conversation::Conversation;
use crate::json_lines::JsonLines;

/// Returns `true` if `document` is an export request with spans.
pub(super) fn is_request(document: &Map<String, Value>) -> bool {
    document.get("resourceSpans").or_else(|| document.get("resource_spans")).is_some_and(Value::is_array)
}

/// Reads the requests in `lines`.
pub(super) fn read_lines(lines: &mut JsonLines<'_>) -> Vec<Conversation> {
    let mut spans: Vec<(Span, Place)> = Vec::new();
    while let Some(line) = lines.next() {
        if !is_request(&line.value) {
            // The same file may have logs and metrics, which are requests of other kinds.
            continue;
        }
        let text = &lines.source.text[line.span.start()..line.span.end()];
        match spans::read_json(text.as_bytes()) {
            Ok(read) => spans.extend(read.into_iter().map(|span| (span, line.span))),
            Err(reason) => lines.problems.push(unreadable(lines.source, line.span, &reason)),
        }
    }
    conversations(lines.source, spans)
}

/// Reads a request that is a whole document.
pub(super) fn read_document(source: &Source, _document: &Value, problems: &mut Vec<Diagnostic>) -> Vec<Conversation> {
    match spans::read_json(source.text.as_bytes()) {
        Ok(read) => conversations(source, read.into_iter().map(|span| (span, Place::default())).collect()),
        Err(reason) => {
            problems.push(unreadable(source, Place::default(), &reason));
            Vec::new()
        }
    }
}

fn unreadable(source: &Source, place: Place, reason: &str) -> Diagnostic {
    Diagnostic::error(format!("the spans cannot be read: {reason}")).at(source.excerpt(place))
}

/// Returns a conversation for each trace, in the order in which they began. Traces without requests to models and calls
/// of tools belong to other programs.
fn conversations(source: &Source, spans: Vec<(Span, Place)>) -> Vec<Conversation> {
    let mut traces: HashMap<TraceId, (Place, Vec<Span>)> = HashMap::new();
    for (span, place) in spans {
        traces.entry(span.trace.clone()).or_insert_with(|| (place, Vec::new())).1.push(span);
    }
    let mut traces: Vec<(TraceId, (Place, Vec<Span>))> = traces.into_iter().collect();
    let began = |spans: &[Span]| spans.iter().map(|span| span.start_ns).min();
    traces.sort_by(|(id, (_, one)), (other_id, (_, other))| (began(one), &id.0).cmp(&(began(other), &other_id.0)));
    let read = traces.into_iter().filter_map(|(id, (place, spans))| conversation(source, &id, place, &spans));
    read.collect()
}

fn conversation(source: &Source, id: &TraceId, place: Place, spans: &[Span]) -> Option<Conversation> {
    let seen = trace_from_spans(spans);
    if seen.steps.is_empty() && seen.model_requests == 0 {
        return None;
    }
    let mut read = Conversation::default();
    read.user(seen.question.unwrap_or_default());
    seen.steps.into_iter().for_each(|step| read.push(step));
    read.session_id = Some(id.0.iter().map(|byte| format!("{byte:02x}")).collect());
    (read.usage, read.model, read.answer) = (seen.usage, seen.model, seen.answer);
    if let Some(reason) = seen.incomplete {
        read.is_incomplete(source, place, reason);
    }
    seen.notes.into_iter().for_each(|note| read.note(source, place, note));
    let root = spans.iter().find(|span| span.parent.is_none());
    if let Some(error) = root.and_then(|root| root.error.as_ref()) {
        let reason = if error.is_empty() { "its span ended with an error" } else { error.as_str() };
        read.ending = Ending::GaveUp { reason: reason.to_owned() };
    }
    read.close();
    Some(read)
}
