//! Paths to parts of JSON values: `a.b.0`, or `$.a["b"][0]`.

use model::stray_character;
use serde_json::Value;

/// Keys and indices in a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JsonPath {
    written: String,
    steps: Vec<String>,
}

/// Position from which a path does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Missing<'v> {
    /// The part of the path that exists, as it would be written. Empty if none of it exists.
    pub reached: String,
    /// Value at that position.
    pub there: &'v Value,
    /// The first step that does not exist.
    pub step: String,
}

impl JsonPath {
    /// Parses a path. The error describes the mistake in it.
    pub fn parse(written: &str) -> Result<Self, &'static str> {
        let mut steps = Vec::new();
        let mut rest = written.strip_prefix('$').unwrap_or(written);
        let mut is_first = true;
        while !rest.is_empty() {
            if let Some(inside) = rest.strip_prefix('[') {
                let (step, after) = bracket(inside)?;
                steps.push(step);
                rest = after;
            } else {
                let bare = match rest.strip_prefix('.') {
                    Some(bare) => bare,
                    None if is_first && !written.starts_with('$') => rest,
                    None => return Err("needs a `.` between its steps"),
                };
                let end = bare.find(['.', '[']).unwrap_or(bare.len());
                if end == 0 {
                    return Err("has a step without a name");
                }
                if bare[..end].contains(']') {
                    return Err("has a `]` without a `[`");
                }
                steps.push(bare[..end].to_owned());
                rest = &bare[end..];
            }
            is_first = false;
        }
        Ok(Self { written: written.to_owned(), steps })
    }

    /// Returns a key of the path that is probably meant otherwise: it is written as in another language for paths, and not
    /// in brackets.
    pub fn foreign_step(&self) -> Option<&str> {
        let bare = |step: &&String| {
            !self.written.contains(&format!("[\"{step}\"]")) && !self.written.contains(&format!("['{step}']"))
        };
        let is_first = |step: &str| self.steps.first().is_some_and(|first| first == step);
        let is_foreign = |step: &str| {
            stray_character(step).is_some()
                || ["@", "*", "#"].contains(&step)
                || step.parse::<i64>().is_ok_and(|number| number < 0)
                || step.contains("->")
                || step.contains(['|', '='])
                || step.starts_with(['"', '\'', '!', '^'])
                || step.ends_with(['"', '\'', '\\'])
                || (step.ends_with('?') && self.written.contains("?."))
                || step.ends_with("()")
                || (step.trim_start_matches('#').starts_with('/') && is_first(step))
        };
        self.steps.iter().filter(bare).map(String::as_str).find(|step| is_foreign(step))
    }

    /// Returns the path in the language of this module that a path in another one probably means.
    pub fn translated(&self) -> Option<String> {
        let pointer = self.written.trim_start_matches('#').strip_prefix('/').map(|rest| rest.replace('/', "."));
        let dotted = pointer.unwrap_or_else(|| self.written.replace("->", "."));
        let dotted = dotted.strip_prefix("@.").unwrap_or(&dotted);
        let plain = |step: &str| {
            let plain = stray_character(step).map_or_else(|| step.to_owned(), |(_, plain)| plain);
            plain.trim_matches(['"', '\'', '?', '!']).to_owned()
        };
        let path = Self::parse(&dotted.split('.').map(plain).collect::<Vec<_>>().join(".")).ok()?;
        (path.foreign_step().is_none() && !path.steps.is_empty()).then_some(path.written)
    }

    /// Returns the part of `value` at this path.
    pub fn find<'v>(&self, value: &'v Value) -> Result<&'v Value, Missing<'v>> {
        let mut there = value;
        for (at, step) in self.steps.iter().enumerate() {
            let next = match there {
                Value::Object(entries) => entries.get(step),
                Value::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            let Some(next) = next else {
                return Err(Missing { reached: self.steps[..at].join("."), there, step: step.clone() });
            };
            there = next;
        }
        Ok(there)
    }
}

/// Parses a step in brackets. Returns it with the rest of the path.
fn bracket(inside: &str) -> Result<(String, &str), &'static str> {
    const OPEN: &str = "has a `[` without a `]`";
    for quote in ['"', '\''] {
        if let Some(quoted) = inside.strip_prefix(quote) {
            let (step, rest) = quoted.split_once(quote).ok_or(OPEN)?;
            return Ok((step.to_owned(), rest.strip_prefix(']').ok_or(OPEN)?));
        }
    }
    let (step, rest) = inside.split_once(']').ok_or(OPEN)?;
    if step.is_empty() || !step.chars().all(|digit| digit.is_ascii_digit()) {
        return Err("has something in `[…]` that is neither an index nor in quotes");
    }
    Ok((step.to_owned(), rest))
}

impl std::fmt::Display for JsonPath {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.written)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_finds_a_part_or_reports_where_it_ends() {
        let value = json!({"a": {"b.c": [1, {"d": null}]}, "0": "zero"});
        let find = |path: &str| JsonPath::parse(path).unwrap().find(&value).cloned().map_err(|missing| missing.reached);
        assert_eq!(find("a[\"b.c\"].1.d"), Ok(json!(null)));
        assert_eq!(find("$.a['b.c'][0]"), Ok(json!(1)));
        assert_eq!((find("0"), find("$"), find("")), (Ok(json!("zero")), Ok(value.clone()), Ok(value.clone())));
        assert_eq!(find("a.x.y"), Err("a".into()));
        assert_eq!(find("a[\"b.c\"].7"), Err("a.b.c".into()));
    }

    #[test]
    fn a_path_in_another_language_is_recognised() {
        let read = |path: &str| {
            let path = JsonPath::parse(path).unwrap();
            (path.foreign_step().map(str::to_owned), path.translated())
        };
        for (path, step, translated) in [
            ("/a/b", "/a/b", Some("a.b")),
            ("#/a/0", "#/a/0", Some("a.0")),
            ("a->b", "a->b", Some("a.b")),
            (" a", " a", Some("a")),
            ("a\u{a0}b", "a\u{a0}b", Some("a b")),
            ("@.a", "@", Some("a")),
            ("a?.b", "a?", Some("a.b")),
            ("\"a\"", "\"a\"", Some("a")),
            ("a.-1", "-1", None),
            ("a.*.b", "*", None),
            ("a.length()", "length()", None),
            ("a | length", "a | length", None),
        ] {
            assert_eq!(read(path), (Some(step.to_owned()), translated.map(str::to_owned)), "{path}");
        }
        for path in [
            "a.0",
            "$",
            "@type",
            "paths./users",
            "[\"/a\"]",
            "a[\" b\"]",
            "a['*'].b",
            "is closed",
            "dc:title",
            "valid?",
            "a-b",
        ] {
            assert_eq!(read(path).0, None, "{path}");
        }
    }

    #[test]
    fn invalid_paths_are_rejected() {
        for path in ["a..b", "a.", ".", "a[", "a[x]", "a[]", "a['x]", "$a", "a[0]b", "a]"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
