//! Replaces values in answers that arrive in chunks. A model's text is spread over many events of a stream, so a value
//! may begin in one event and end in another.

use std::collections::HashMap;

use serde_json::Value;

use crate::exchange::Chunk;
use crate::values::Values;

/// Fields that show to which part of the answer the text of an event belongs.
const PLACES: [&str; 5] = ["type", "index", "output_index", "content_index", "item_id"];

/// Returns the chunks with values replaced by names. Chunks of an event stream are regrouped into whole events.
pub(crate) fn named(chunks: Vec<Chunk>, is_event_stream: bool, values: &Values) -> Vec<Chunk> {
    if is_event_stream {
        return events_named(events(chunks), values);
    }
    let after_ms = chunks.iter().map(|chunk| chunk.after_ms).sum();
    let text: String = chunks.into_iter().map(|chunk| chunk.text).collect();
    let text = values.named_in(&text).unwrap_or(text);
    vec![Chunk { after_ms, text }]
}

/// Returns the texts of an answer as its reader sees them. In a stream, the texts of the events are joined.
pub(crate) fn texts(chunks: &[Chunk], is_event_stream: bool) -> Vec<String> {
    let whole: String = chunks.iter().map(|chunk| chunk.text.as_str()).collect();
    if !is_event_stream {
        return vec![whole];
    }
    let data: Vec<Option<Value>> = events(chunks.to_vec()).iter().map(|event| data_of(&event.text)).collect();
    let text = |(number, pointer): &Leaf| data[*number].as_ref()?.pointer(pointer)?.as_str();
    let joined = places(&data).into_values().map(|leaves| leaves.iter().filter_map(text).collect());
    joined.chain([whole]).collect()
}

/// Regroups chunks at the ends of events. Text after the last event becomes a chunk of its own.
fn events(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let mut events = Vec::new();
    let (mut open, mut waited) = (String::new(), 0);
    for Chunk { after_ms, text } in chunks {
        waited += after_ms;
        open.push_str(&text);
        while let Some(end) = end_of_event(&open) {
            let rest = open.split_off(end);
            events.push(Chunk { after_ms: std::mem::take(&mut waited), text: std::mem::replace(&mut open, rest) });
        }
    }
    if !open.is_empty() {
        events.push(Chunk { after_ms: waited, text: open });
    }
    events
}

/// Returns the length of the first event, including the empty line after it.
fn end_of_event(text: &str) -> Option<usize> {
    let ends = ["\n\n", "\r\n\r\n"].into_iter().filter_map(|end| text.find(end).map(|at| at + end.len()));
    ends.min()
}

/// Position of a text: the number of the event, and the JSON pointer in its data.
type Leaf = (usize, String);

fn events_named(mut events: Vec<Chunk>, values: &Values) -> Vec<Chunk> {
    let mut data: Vec<Option<Value>> = events.iter().map(|event| data_of(&event.text)).collect();
    let texts = places(&data);
    let mut changed = vec![false; events.len()];
    for leaves in texts.values() {
        for (number, pointer, text) in renamed(leaves, &data, values) {
            if let Some(leaf) = data[number].as_mut().and_then(|event| event.pointer_mut(&pointer)) {
                (*leaf, changed[number]) = (Value::String(text), true);
            }
        }
    }
    for (number, event) in events.iter_mut().enumerate() {
        match &data[number] {
            Some(data) if changed[number] => event.text = with_data(&event.text, data),
            Some(_) => {}
            None => event.text = values.named_in(&event.text).unwrap_or_else(|| event.text.clone()),
        }
    }
    events
}

/// Returns the positions of all texts, grouped by the part of the answer to which they belong.
fn places(data: &[Option<Value>]) -> HashMap<String, Vec<Leaf>> {
    let mut texts: HashMap<String, Vec<Leaf>> = HashMap::new();
    for (number, event) in data.iter().enumerate().filter_map(|(number, event)| Some((number, event.as_ref()?))) {
        let part: Vec<String> = PLACES.iter().map(|field| event[*field].to_string()).collect();
        leaves(event, "", &mut |pointer| {
            let key = format!("{}{pointer}", part.join(" "));
            texts.entry(key).or_default().push((number, pointer.to_owned()));
        });
    }
    texts
}

/// Returns the `leaves` whose text changes, with the new text. They are searched as one text, and a name is inserted
/// where its value begins.
fn renamed(leaves: &[Leaf], data: &[Option<Value>], values: &Values) -> Vec<(usize, String, String)> {
    let text = |(number, pointer): &Leaf| data[*number].as_ref()?.pointer(pointer)?.as_str();
    let whole: String = leaves.iter().filter_map(text).collect();
    let ranges = values.found_in(&whole);
    let (mut begin, mut renamed) = (0, Vec::new());
    for leaf in leaves {
        let Some(old) = text(leaf) else { continue };
        let end = begin + old.len();
        let mut text = String::new();
        let mut at = begin;
        for (range, name) in &ranges {
            if range.end <= begin || range.start >= end {
                continue;
            }
            if range.start >= begin {
                text.push_str(&whole[at..range.start]);
                text.push_str(name);
            }
            at = range.end.min(end);
        }
        text.push_str(&whole[at..end]);
        if text != old {
            renamed.push((leaf.0, leaf.1.clone(), text));
        }
        begin = end;
    }
    renamed
}

/// Returns the data of an event, or `None` if it is not JSON.
fn data_of(event: &str) -> Option<Value> {
    let mut lines = event.lines().filter_map(|line| line.strip_prefix("data:"));
    let data = lines.next()?;
    if lines.next().is_some() {
        return None;
    }
    serde_json::from_str(data.trim_start()).ok()
}

/// Returns the event with its data replaced.
fn with_data(event: &str, data: &Value) -> String {
    let lines = event.split_inclusive('\n').map(|line| match line.starts_with("data:") {
        true => format!("data: {data}{}", &line[line.trim_end_matches(['\r', '\n']).len()..]),
        false => line.to_owned(),
    });
    lines.collect()
}

/// Calls `see` with the JSON pointer of each string.
fn leaves(value: &Value, pointer: &str, see: &mut dyn FnMut(&str)) {
    match value {
        Value::String(_) => see(pointer),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(at, item)| leaves(item, &format!("{pointer}/{at}"), see));
        }
        Value::Object(fields) => {
            for (key, field) in fields {
                leaves(field, &format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1")), see);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
