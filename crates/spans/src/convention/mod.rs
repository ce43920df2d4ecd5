//! Conventions for the attributes of spans, one file each. A library may follow several of them on the same span.

mod adk;
mod ai_sdk;
mod gen_ai;
mod open_inference;
mod open_llmetry;

use crate::reading::Reading;
use crate::span::Span;

/// Reads a span by a convention; `None` if it does not follow it.
type Read = fn(&Span) -> Option<Reading>;

/// All conventions, with their names. If a span follows several, what an earlier one says counts.
const CONVENTIONS: [(&str, Read); 5] = [
    ("OpenInference", open_inference::read),
    ("OpenTelemetry GenAI", gen_ai::read),
    ("AI SDK", ai_sdk::read),
    ("OpenLLMetry", open_llmetry::read),
    ("ADK", adk::read),
];

/// Reads a span by all conventions. Returns `None` if it follows none of them.
pub(crate) fn read(span: &Span) -> Option<Reading> {
    let mut whole = Reading::default();
    for (name, read) in CONVENTIONS {
        if let Some(reading) = read(span) {
            whole.conventions.push(name);
            whole.complete(reading);
        }
    }
    whole.kind.is_some().then_some(whole)
}
