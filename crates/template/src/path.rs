//! Paths into values: `users[0].profile`, `a["b"]`.

use std::borrow::Cow;

use model::{Node, NodeKind};

use crate::error::TemplateError;

/// Step of a path.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    Name(String),
    /// Index. Negative values count from the end.
    Position(i64),
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Position(position) => write!(f, "{position}"),
        }
    }
}

/// Parses `text` as a path. Returns `None` if it is not a path, although it may still be an expression.
pub(crate) fn parse(text: &str) -> Option<Vec<Key>> {
    let mut keys = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        if let Some(inside) = rest.strip_prefix('[') {
            let (key, after) = bracket(inside)?;
            keys.push(key);
            rest = after;
            continue;
        }
        let named = if keys.is_empty() { rest } else { rest.strip_prefix('.')? };
        let end = named.find(['.', '[', ']']).unwrap_or(named.len());
        let name = &named[..end];
        if name.is_empty() || name.trim() != name {
            return None;
        }
        keys.push(Key::Name(name.to_owned()));
        rest = &named[end..];
    }
    (!keys.is_empty()).then_some(keys)
}

/// Parses the content after a `[`, up to its `]`. Returns it with the rest.
fn bracket(inside: &str) -> Option<(Key, &str)> {
    if let Some(quote) = inside.chars().next().filter(|first| matches!(first, '\'' | '"')) {
        let (name, after) = inside[1..].split_once(quote)?;
        let after = after.strip_prefix(']')?;
        return (!name.contains('\\')).then(|| (Key::Name(name.to_owned()), after));
    }
    let (digits, after) = inside.split_once(']')?;
    let (sign, digits) = digits.strip_prefix('-').map_or((1, digits), |digits| (-1, digits));
    let position = digits.parse::<u32>().ok().filter(|_| digits.starts_with(|first: char| first.is_ascii_digit()))?;
    Some((Key::Position(sign * i64::from(position)), after))
}

/// Formats a path: `users[0].name`.
pub(crate) fn written(keys: &[Key]) -> String {
    let mut path = String::new();
    for key in keys {
        match key {
            Key::Position(position) => path.push_str(&format!("[{position}]")),
            Key::Name(name) if path.is_empty() => path.push_str(name),
            Key::Name(name) => path.push_str(&format!(".{name}")),
        }
    }
    path
}

/// Returns the part of `node` at `key`: stored in it, or derived from it.
pub(crate) fn child<'a>(node: &'a Node, key: &Key) -> Option<Cow<'a, Node>> {
    let derived = |kind| Cow::Owned(Node { kind, span: node.span, tag: None, source: node.source.clone() });
    let count = |count: usize| Some(derived(NodeKind::Number(count.into())));
    match (&node.kind, key) {
        (NodeKind::Map(_), _) => node.get(&key.to_string()).map(Cow::Borrowed),
        (NodeKind::List(items), Key::Name(name)) if name == "length" => count(items.len()),
        (NodeKind::String(text), Key::Name(name)) if name == "length" => count(length(text)),
        (NodeKind::List(items), _) => items.get(index(key, items.len())?).map(Cow::Borrowed),
        (NodeKind::String(text), _) => {
            let found = text.chars().nth(index(key, length(text))?)?;
            Some(derived(NodeKind::String(found.to_string())))
        }
        _ => None,
    }
}

/// Returns `key`, which exists in `node`, in the only form for its part: an index from the start, or a name.
pub(crate) fn canonical(node: &Node, key: &Key) -> Key {
    let position = match &node.kind {
        NodeKind::List(items) => index(key, items.len()).and_then(|index| i64::try_from(index).ok()),
        _ => None,
    };
    position.map_or_else(|| Key::Name(key.to_string()), Key::Position)
}

/// Returns the length of a string in Unicode code points, which indices also count.
pub(crate) fn length(text: &str) -> usize {
    text.chars().count()
}

fn index(key: &Key, length: usize) -> Option<usize> {
    let position = match key {
        Key::Position(position) => *position,
        Key::Name(name) => i64::from(name.parse::<u32>().ok()?),
    };
    place(position, length)
}

/// Converts an index that may count from the end to one from the start.
pub(crate) fn place(position: i64, length: usize) -> Option<usize> {
    let length = i64::try_from(length).ok()?;
    let index = if position < 0 { position + length } else { position };
    (0..length).contains(&index).then_some(usize::try_from(index).ok()?)
}

/// Returns the error if `key` does not exist in `node`, which is called `name`.
pub(crate) fn missing(node: &Node, name: &str, key: &Key) -> TemplateError {
    let is_position = matches!(key, Key::Position(_));
    match &node.kind {
        NodeKind::Map(entries) => {
            let error = TemplateError::missing(format!("`{name}` has no member `{key}`"));
            error.suggest("members", &key.to_string(), entries.iter().map(|(key, _)| key.value.as_str()))
        }
        NodeKind::List(items) if is_position => {
            let error = TemplateError::missing(format!("`{name}` has no item {key}: its length is {}", items.len()));
            error.help("the first item is 0, the last is -1")
        }
        NodeKind::String(text) if is_position => {
            TemplateError::missing(format!("`{name}` has no character {key}: its length is {}", length(text)))
        }
        NodeKind::Null => TemplateError::missing(format!("`{name}` is null, so it has no member `{key}`")),
        _ => TemplateError::missing(format!("`{name}` is {}, so it has no member `{key}`", node.kind_name())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_survives_parsing_and_formatting() {
        for path in ["a", "users[0].profile", "a.b.c", "名字", "user-name"] {
            assert_eq!(written(&parse(path).unwrap()), path);
        }
        assert_eq!(written(&parse("a[\"b\"].c['d e']").unwrap()), "a.b.c.d e");
    }

    #[test]
    fn invalid_paths_are_not_parsed() {
        for text in [
            "", "a.", ".a", "a..b", "a[", "a[]", "a[b]", "a[--1]", "a[-+1]", "a[+1]", "a[-]", "a['b'", "a]b", "a[0]b",
            "a .b",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
