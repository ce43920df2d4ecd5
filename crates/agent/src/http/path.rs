//! Path to an answer's text: the subset of JSONPath without searches and filters.

use std::fmt;

use serde_json::Value;

/// A path such as `$.choices[0].message.content`.
#[derive(Debug, Clone)]
pub(super) struct JsonPath {
    text: String,
    steps: Vec<PathStep>,
}

#[derive(Debug, Clone, PartialEq)]
enum PathStep {
    Name(String),
    /// Index, counted from the end if it is negative.
    At(i64),
    /// All elements.
    All,
}

const FORMS: &str = "paths are written like `$.data.reply`, `choices[0].text`, `[-1]['a key']`, `content[*].text`";

impl JsonPath {
    /// Parses `text`; returns an error message if it is invalid.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let wrong = |what: &str| format!("{what}; {FORMS}");
        let mut rest = text.trim();
        let mut steps = Vec::new();
        rest = match rest.strip_prefix('$') {
            Some(after) if after.is_empty() || after.starts_with(['.', '[']) => after,
            _ if rest.starts_with('[') => rest,
            _ => {
                let (step, after) = name(rest).ok_or_else(|| wrong("a path must begin with a name"))?;
                steps.push(step);
                after
            }
        };
        while !rest.is_empty() {
            let (step, after) = match rest.strip_prefix('.') {
                Some(after) if after.starts_with('.') => return Err(wrong("`..` is not supported")),
                Some(after) => match after.strip_prefix('*') {
                    Some(after) => (PathStep::All, after),
                    None => name(after).ok_or_else(|| wrong("`.` must be followed by a name"))?,
                },
                None => bracketed(rest).ok_or_else(|| wrong(&format!("cannot parse `{rest}`")))?,
            };
            steps.push(step);
            rest = after;
        }
        Ok(Self { text: text.to_owned(), steps })
    }

    /// Returns all values in `value` that the path selects.
    pub(super) fn find<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        let mut found = vec![value];
        for step in &self.steps {
            found = found.into_iter().flat_map(|value| step.from(value)).collect();
        }
        found.retain(|value| !value.is_null());
        found
    }
}

impl fmt::Display for JsonPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl PathStep {
    fn from<'v>(&self, value: &'v Value) -> Vec<&'v Value> {
        match (self, value) {
            (Self::Name(name), _) => value.get(name).into_iter().collect(),
            (Self::At(at), Value::Array(items)) => {
                let at = usize::try_from(*at).ok().or_else(|| items.len().checked_sub(at.unsigned_abs() as usize));
                at.and_then(|index| items.get(index)).into_iter().collect()
            }
            (Self::All, Value::Array(items)) => items.iter().collect(),
            (Self::All, Value::Object(entries)) => entries.values().collect(),
            _ => Vec::new(),
        }
    }
}

/// Parses a name without brackets, and returns the rest of the text.
fn name(text: &str) -> Option<(PathStep, &str)> {
    let end = text.find(['.', '[']).unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    let is_name = !name.is_empty()
        && name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '$' | '@'))
        && !name.starts_with('@');
    is_name.then(|| (PathStep::Name(name.to_owned()), rest))
}

/// Parses a step in brackets, and returns the rest of the text.
fn bracketed(text: &str) -> Option<(PathStep, &str)> {
    let inside = text.strip_prefix('[')?;
    if let Some(quote) = inside.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let (name, rest) = inside.get(1..)?.split_once(quote)?;
        return Some((PathStep::Name(name.to_owned()), rest.strip_prefix(']')?));
    }
    let (written, rest) = inside.split_once(']')?;
    let step = match written.trim() {
        "*" => PathStep::All,
        number => PathStep::At(number.parse().ok()?),
    };
    Some((step, rest))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_path_selects_the_expected_values() {
        let value = json!({"a": {"b c": [1, 2, {"d": "x"}]}, "e": [{"t": "1"}, {"t": "2"}], "n": null});
        for (path, found) in [
            ("$.a['b c'][0]", vec![json!(1)]),
            ("a[\"b c\"][-1].d", vec![json!("x")]),
            ("$.e[*].t", vec![json!("1"), json!("2")]),
            ("$['e'][1].*", vec![json!("2")]),
            ("$.a.b", vec![]),
            ("$.e[-3]", vec![]),
            ("$.n", vec![]),
            ("$", vec![value.clone()]),
        ] {
            assert_eq!(JsonPath::parse(path).unwrap().find(&value), found.iter().collect::<Vec<_>>(), "{path}");
        }
        assert_eq!(JsonPath::parse("[0]").unwrap().find(&json!([7])), [&json!(7)]);
    }

    #[test]
    fn invalid_paths_are_rejected() {
        for path in ["", "$..a", "$.", "a b", "$[?(@.x)]", "a[", "a['b]", "a[1:2]", "a[x]", "$.a[0]b", "json=>json.x"] {
            assert!(JsonPath::parse(path).is_err(), "{path}");
        }
    }
}
