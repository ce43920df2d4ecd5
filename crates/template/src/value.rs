//! Values during the evaluation of a template, and their formatting.

use std::cell::RefCell;
use std::fmt::Write as _;
use std::rc::Rc;

use model::{Node, NodeKind};

use crate::error::TemplateError;
use crate::limit;
use crate::number::Number;

/// Names and values, in order.
pub(crate) type Entries = Vec<(Rc<str>, Value)>;

/// A value. Collections are shared, so that copies are cheap.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Null,
    Bool(bool),
    Number(Number),
    Text(Rc<str>),
    List(Rc<List>),
    Map(Rc<Map>),
    /// The only mutable value, created by `namespace()`.
    Namespace(Rc<RefCell<Entries>>),
    Function(Function),
}

/// Callable value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Function {
    Global(&'static str),
    /// Index of a macro.
    Macro(usize),
}

#[derive(Debug)]
pub(crate) struct List {
    pub(crate) items: Vec<Value>,
    depth: u16,
}

#[derive(Debug)]
pub(crate) struct Map {
    pub(crate) entries: Entries,
    depth: u16,
}

impl Map {
    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.entries.iter().find(|(name, _)| **name == *key).map(|(_, value)| value)
    }
}

impl Value {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    pub(crate) fn count(count: usize) -> Self {
        Self::Number(Number::from_usize(count))
    }

    /// Creates a list. Returns an error if it is too long, too deep or contains a namespace.
    pub(crate) fn list(items: Vec<Value>) -> Result<Self, TemplateError> {
        if items.len() > limit::ITEMS {
            return Err(TemplateError::new(format!("a list may have at most {} items", limit::ITEMS)));
        }
        let depth = depth_above(&mut items.iter())?;
        Ok(Self::List(Rc::new(List { items, depth })))
    }

    /// Creates a map with unique keys. Returns an error if it is too large, too deep or contains a namespace.
    pub(crate) fn map(entries: Entries) -> Result<Self, TemplateError> {
        let depth = depth_above(&mut entries.iter().map(|(_, value)| value))?;
        Ok(Self::Map(Rc::new(Map { entries, depth })))
    }

    pub(crate) fn from_node(node: &Node) -> Result<Self, TemplateError> {
        Ok(match &node.kind {
            NodeKind::Null => Self::Null,
            NodeKind::Bool(value) => Self::Bool(*value),
            NodeKind::Number(value) => Self::Number(Number::from_json(value)),
            NodeKind::String(value) => Self::text(value),
            NodeKind::List(items) => Self::list(items.iter().map(Self::from_node).collect::<Result<_, _>>()?)?,
            NodeKind::Map(entries) => {
                let entry = |(key, value): &(model::Spanned<String>, Node)| {
                    Ok((key.value.as_str().into(), Self::from_node(value)?))
                };
                Self::map(entries.iter().map(entry).collect::<Result<_, _>>()?)?
            }
        })
    }

    /// Returns the type of a value with its article, for messages.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "an empty value (null)",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::Text(_) => "text",
            Self::List(_) => "a list",
            Self::Map(_) => "a map",
            Self::Namespace(_) => "a namespace",
            Self::Function(_) => "a function",
        }
    }

    /// Returns `true` if a condition with this value is true: it is not null, false, 0 or empty.
    pub(crate) fn is_true(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(value) => value.as_double() != 0.0 && !value.as_double().is_nan(),
            Self::Text(text) => !text.is_empty(),
            Self::List(list) => !list.items.is_empty(),
            Self::Map(map) => !map.entries.is_empty(),
            Self::Namespace(entries) => !entries.borrow().is_empty(),
            Self::Function(_) => true,
        }
    }

    /// Returns the member with that name in a map or namespace. Other values have no members.
    pub(crate) fn member(&self, name: &str) -> Option<Value> {
        let find =
            |entries: &Entries| entries.iter().find(|(known, _)| **known == *name).map(|(_, value)| value.clone());
        match self {
            Self::Map(map) => find(&map.entries),
            Self::Namespace(entries) => find(&entries.borrow()),
            _ => None,
        }
    }

    /// Returns `true` if it has members.
    pub(crate) fn is_map(&self) -> bool {
        matches!(self, Self::Map(_) | Self::Namespace(_))
    }

    /// Returns the entries of a map or namespace.
    pub(crate) fn entries(&self) -> Option<Entries> {
        match self {
            Self::Map(map) => Some(map.entries.clone()),
            Self::Namespace(entries) => Some(entries.borrow().clone()),
            _ => None,
        }
    }

    /// Formats the value for a string: null as nothing, lists joined by commas, maps as compact JSON.
    pub(crate) fn print(&self, out: &mut String) -> Result<(), TemplateError> {
        match self {
            Self::Null => Ok(()),
            Self::Bool(value) => push(out, if *value { "true" } else { "false" }),
            Self::Number(value) => push(out, &value.to_string()),
            Self::Text(text) => push(out, text),
            Self::List(list) => join(&list.items, ",", out),
            Self::Map(_) | Self::Namespace(_) => self.print_json(&Style::COMPACT, 0, out),
            Self::Function(_) => {
                Err(TemplateError::new("a function cannot be converted to text").help("call it, with `()`"))
            }
        }
    }

    /// Returns the text of [`Value::print`].
    pub(crate) fn to_text(&self) -> Result<Rc<str>, TemplateError> {
        if let Self::Text(text) = self {
            return Ok(Rc::clone(text));
        }
        let mut out = String::new();
        self.print(&mut out)?;
        Ok(out.into())
    }

    /// Formats the value as JSON. `depth` is the current indentation level.
    pub(crate) fn print_json(&self, style: &Style, depth: usize, out: &mut String) -> Result<(), TemplateError> {
        match self {
            Self::Null => push(out, "null"),
            Self::Bool(_) => self.print(out),
            Self::Number(value) if value.to_json().is_some() => push(out, &value.to_string()),
            Self::Number(_) => push(out, "null"),
            Self::Text(text) => push(out, &quoted(text)),
            Self::List(list) => {
                let print = |item: &Value, out: &mut String| item.print_json(style, depth + 1, out);
                style.collection(['[', ']'], &list.items, depth, out, print)
            }
            Self::Map(map) => style.map(&map.entries, depth, out),
            Self::Namespace(entries) => style.map(&entries.borrow(), depth, out),
            Self::Function(_) => Err(TemplateError::new("a function cannot be written as JSON")),
        }
    }

    /// Returns the number of steps needed to read it.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Text(text) => text.len() / limit::BYTES_A_STEP,
            Self::List(list) => list.items.len() / limit::VALUES_A_STEP,
            Self::Map(map) => map.entries.len() / limit::VALUES_A_STEP,
            Self::Namespace(entries) => entries.borrow().len() / limit::VALUES_A_STEP,
            _ => 0,
        }
    }

    fn depth(&self) -> Result<u16, TemplateError> {
        match self {
            Self::List(list) => Ok(list.depth),
            Self::Map(map) => Ok(map.depth),
            // It could contain itself.
            Self::Namespace(_) => Err(TemplateError::new("a namespace cannot be put into another value")),
            _ => Ok(0),
        }
    }
}

fn depth_above(items: &mut dyn Iterator<Item = &Value>) -> Result<u16, TemplateError> {
    let mut depth = 0;
    for item in items {
        depth = depth.max(item.depth()?);
    }
    if depth >= limit::DATA {
        return Err(TemplateError::new(format!("lists and maps may be nested at most {} deep", limit::DATA)));
    }
    Ok(depth + 1)
}

/// Layout of JSON.
pub(crate) struct Style {
    pub(crate) comma: &'static str,
    pub(crate) colon: &'static str,
    /// Number of spaces per level, or 0 for a single line.
    pub(crate) indent: usize,
}

impl Style {
    /// Layout `{"a":1}`.
    pub(crate) const COMPACT: Self = Self { comma: ",", colon: ":", indent: 0 };

    fn map(&self, entries: &[(Rc<str>, Value)], depth: usize, out: &mut String) -> Result<(), TemplateError> {
        self.collection(['{', '}'], entries, depth, out, |(key, value), out| {
            push(out, &quoted(key))?;
            push(out, self.colon)?;
            value.print_json(self, depth + 1, out)
        })
    }

    fn collection<T>(
        &self,
        brackets: [char; 2],
        items: &[T],
        depth: usize,
        out: &mut String,
        print: impl Fn(&T, &mut String) -> Result<(), TemplateError>,
    ) -> Result<(), TemplateError> {
        out.push(brackets[0]);
        for (index, item) in items.iter().enumerate() {
            if index > 0 {
                push(out, if self.indent > 0 { "," } else { self.comma })?;
            }
            self.new_line(depth + 1, out)?;
            print(item, out)?;
        }
        self.new_line(depth, out)?;
        out.push(brackets[1]);
        Ok(())
    }

    fn new_line(&self, depth: usize, out: &mut String) -> Result<(), TemplateError> {
        if self.indent == 0 {
            return Ok(());
        }
        let width = self.indent.saturating_mul(depth);
        within(out.len().saturating_add(width))?;
        let _ = write!(out, "\n{:width$}", "");
        Ok(())
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Writes the strings of `items`, separated by `separator`.
pub(crate) fn join(items: &[Value], separator: &str, out: &mut String) -> Result<(), TemplateError> {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            push(out, separator)?;
        }
        item.print(out)?;
    }
    Ok(())
}

/// Appends a string, within the limit on the length of strings.
pub(crate) fn push(out: &mut String, text: &str) -> Result<(), TemplateError> {
    within(out.len().saturating_add(text.len()))?;
    out.push_str(text);
    Ok(())
}

/// Returns an error if a string must not be that long.
pub(crate) fn within(length: usize) -> Result<(), TemplateError> {
    if length > limit::TEXT {
        return Err(TemplateError::new(format!("the text is longer than {} MiB", limit::TEXT >> 20)));
    }
    Ok(())
}
