//! Scripts for tests, read from YAML with all locations. Supports only the YAML used in tests: no anchors and no
//! tags.

use std::sync::Arc;

use granit_parser::{Event, Parser, ScalarStyle};
use model::{Node, NodeKind, Source, Span, Spanned};

use crate::Script;

/// Parses `text` into a tree.
pub(crate) fn node(path: &str, text: &str) -> Node {
    let source = Source::new(path, text);
    let mut parser = Parser::new_from_str(text);
    let mut next = move || {
        loop {
            let (event, span) = parser.next().expect("the text ends too early").expect("the text is not YAML");
            let range = span.byte_range().unwrap_or_default();
            match event {
                Event::StreamStart | Event::DocumentStart(..) | Event::Comment(..) => {}
                event => return (event, Span::new(range.start, range.end)),
            }
        }
    };
    let first = next();
    value(first, &mut next, &source)
}

/// Parses the script in `text`.
pub(crate) fn script(text: &str) -> Arc<Script> {
    Arc::new(Script::from_node(&node("s.yaml", text)).unwrap_or_else(|problems| panic!("{problems:#?}")))
}

type Placed<'t> = (Event<'t>, Span);

fn value<'t>((event, span): Placed<'t>, next: &mut dyn FnMut() -> Placed<'t>, source: &Arc<Source>) -> Node {
    let kind = match event {
        Event::Scalar(text, ScalarStyle::Plain, ..) => match serde_json::from_str(&text) {
            Ok(serde_json::Value::Bool(value)) => NodeKind::Bool(value),
            Ok(serde_json::Value::Number(value)) => NodeKind::Number(value),
            Ok(serde_json::Value::Null) => NodeKind::Null,
            _ => NodeKind::String(text.into_owned()),
        },
        Event::Scalar(text, ..) => NodeKind::String(text.into_owned()),
        Event::SequenceStart(..) => {
            let mut items = Vec::new();
            loop {
                match next() {
                    (Event::SequenceEnd, _) => break NodeKind::List(items),
                    item => items.push(value(item, next, source)),
                }
            }
        }
        Event::MappingStart(..) => {
            let mut entries = Vec::new();
            loop {
                match next() {
                    (Event::MappingEnd, _) => break NodeKind::Map(entries),
                    (Event::Scalar(key, ..), place) => {
                        let first = next();
                        entries.push((Spanned::new(key.into_owned(), place), value(first, next, source)));
                    }
                    other => panic!("no key: {other:?}"),
                }
            }
        }
        other => panic!("not written for {other:?}"),
    };
    Node { kind, span, tag: None, source: Arc::clone(source) }
}
