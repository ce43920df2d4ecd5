//! Masks secrets in streams. A model's text arrives in pieces, each in its own frame, and a secret may be split
//! between two frames.

use std::collections::BTreeMap;
use std::ops::Range;

use model::foreign_json;
use serde_json::Value;

use super::{Extent, MASKED, Mask};

/// One string in a frame.
struct Piece {
    /// Index of its line, and of the text within the line.
    place: (usize, usize),
    /// Its range in the joined text of its path.
    range: Range<usize>,
}

/// All strings at the same path in their frames, joined in order.
#[derive(Default)]
struct Joined {
    text: String,
    pieces: Vec<Piece>,
}

impl Mask {
    /// Masks secrets in `text` that are split between frames. `text` has a JSON frame on each line. Returns `None` if
    /// there are none.
    pub(super) fn frames(&self, text: &str) -> Option<String> {
        text.lines().nth(1)?;
        let mut frames: Vec<(&str, Option<Value>)> = text.lines().map(frame).collect();
        if frames.iter().filter(|(_, value)| value.is_some()).count() < 2 {
            return None;
        }
        let mut joined: BTreeMap<String, Joined> = BTreeMap::new();
        for (line, (_, value)) in frames.iter_mut().enumerate() {
            let mut number = 0;
            let mut add = |path: &str, text: &mut String| {
                let joined = joined.entry(path.to_owned()).or_default();
                let start = joined.text.len();
                joined.text.push_str(text);
                joined.pieces.push(Piece { place: (line, number), range: start..joined.text.len() });
                number += 1;
            };
            value.iter_mut().for_each(|value| each_text(value, &mut String::new(), &mut add));
        }
        let hidden: Vec<(usize, usize)> = joined.values().flat_map(|joined| self.cut(joined)).collect();
        if hidden.is_empty() {
            return None;
        }
        let mut masked = String::with_capacity(text.len());
        for (line, (whole, (before, value))) in text.lines().zip(&mut frames).enumerate() {
            let mut number = 0;
            let mut is_hidden = false;
            let mut hide = |_: &str, text: &mut String| {
                if hidden.contains(&(line, number)) {
                    MASKED.clone_into(text);
                    is_hidden = true;
                }
                number += 1;
            };
            value.iter_mut().for_each(|value| each_text(value, &mut String::new(), &mut hide));
            match value {
                Some(value) if is_hidden => masked.push_str(&format!("{before}{value}")),
                _ => masked.push_str(whole),
            }
            masked.push('\n');
        }
        if !text.ends_with('\n') {
            masked.pop();
        }
        Some(masked)
    }

    /// Returns the places of the pieces that hold part of a secret that is not contained in any single piece.
    fn cut(&self, joined: &Joined) -> Vec<(usize, usize)> {
        if joined.pieces.len() < 2 {
            return Vec::new();
        }
        let found = self.find(joined.text.as_bytes(), Extent::All);
        let overlaps = |piece: &Piece, secret: &Range<usize>| {
            piece.range.start < secret.end && secret.start < piece.range.end && !piece.range.is_empty()
        };
        let mut places = Vec::new();
        for secret in &found {
            let parts: Vec<&Piece> = joined.pieces.iter().filter(|piece| overlaps(piece, secret)).collect();
            if parts.len() > 1 {
                places.extend(parts.iter().map(|piece| piece.place));
            }
        }
        places
    }
}

/// Splits a line into the text before its JSON, such as `data: `, and the parsed JSON.
fn frame(line: &str) -> (&str, Option<Value>) {
    let start = line.find(['{', '[']).filter(|start| *start <= "data: ".len()).unwrap_or(line.len());
    let (before, json) = line.split_at(start);
    match foreign_json::parse(json) {
        Ok(value) => (before, Some(value)),
        Err(_) => (before, None),
    }
}

/// Calls `visit` with the path and the text of each string in `value`.
fn each_text(value: &mut Value, path: &mut String, visit: &mut impl FnMut(&str, &mut String)) {
    let len = path.len();
    match value {
        Value::String(text) => visit(path, text),
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                path.push_str(&format!("/{index}"));
                each_text(item, path, visit);
                path.truncate(len);
            }
        }
        Value::Object(entries) => {
            for (key, entry) in entries {
                path.push('/');
                path.push_str(key);
                each_text(entry, path, visit);
                path.truncate(len);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
