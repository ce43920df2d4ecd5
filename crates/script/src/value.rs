//! Values that are exchanged between Rust and scripts.

use std::fmt;
use std::sync::Arc;

use serde_json::Number;

/// A value that is passed between Rust and a script. It is copied: neither side sees later changes made by the other.
///
/// A value that is returned from a script is converted: a `Date` becomes its ISO text, a `Map` a map, a `Set` or a
/// typed array a list, an error its `name` and `message`, and an object with `toJSON` the result of that method.
/// Symbols become undefined. A big integer becomes a number if it fits, otherwise text.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum Value {
    /// `undefined`.
    #[default]
    Undefined,
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, including `NaN` and the infinities.
    Number(f64),
    /// Text. An unpaired surrogate becomes U+FFFD.
    String(String),
    /// An array.
    List(Vec<Value>),
    /// The own enumerable properties of an object, in order.
    Map(Vec<(String, Value)>),
    /// A regular expression.
    Regex {
        /// `RegExp.prototype.source`.
        source: String,
        /// `RegExp.prototype.flags`.
        flags: String,
    },
    /// A function of a script. Only the runtime that it came from can call it.
    Function(Function),
    /// A function of the program, called synchronously. Only passed from Rust to scripts.
    Native(Native),
    /// A request to the host, which answers later. Only passed from Rust to scripts.
    HostFunction(HostFunction),
}

/// Handle to a script's function, which is kept by its [`Runtime`](crate::Runtime): plain data.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    pub(crate) runtime: u64,
    pub(crate) index: u32,
    pub(crate) name: Arc<str>,
    pub(crate) length: usize,
}

impl Function {
    /// Returns its name, which may be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the number of declared parameters before the first one that has a default value or is a rest parameter.
    pub fn length(&self) -> usize {
        self.length
    }
}

/// Rust implementation of a [`Native`]. If it returns an error, this is the message of the exception that is thrown.
pub type NativeFunction = dyn Fn(&[Value]) -> Result<Value, String> + Send + Sync;

/// Pure function of the program that a script can call.
#[derive(Clone)]
pub struct Native {
    /// Name that scripts see.
    pub name: Arc<str>,
    /// Implementation.
    pub function: Arc<NativeFunction>,
    /// Arguments that come before those of the script.
    pub bound: Vec<Value>,
}

impl Native {
    /// Creates a function called `name`.
    pub fn new(
        name: impl Into<Arc<str>>,
        function: impl Fn(&[Value]) -> Result<Value, String> + Send + Sync + 'static,
    ) -> Self {
        Self { name: name.into(), function: Arc::new(function), bound: Vec::new() }
    }

    /// Sets arguments that come before those of the script.
    pub fn bind(mut self, bound: Vec<Value>) -> Self {
        self.bound = bound;
        self
    }
}

impl fmt::Debug for Native {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Native").field("name", &self.name).field("bound", &self.bound).finish_non_exhaustive()
    }
}

impl PartialEq for Native {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.function, &other.function) && self.name == other.name && self.bound == other.bound
    }
}

/// A function whose calls are requests to the host. Each call returns a promise that the host settles.
#[derive(Debug, Clone, PartialEq)]
pub struct HostFunction {
    /// Name of the request, and of the function in scripts.
    pub name: Arc<str>,
    /// Arguments that come before those of the script.
    pub bound: Vec<Value>,
}

impl HostFunction {
    /// Creates a function for requests called `name`.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self { name: name.into(), bound: Vec::new() }
    }

    /// Sets arguments that come before those of the script.
    pub fn bind(mut self, bound: Vec<Value>) -> Self {
        self.bound = bound;
        self
    }
}

/// A request from a script to the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Id that the answer must name.
    pub id: u64,
    /// Name of the [`HostFunction`] that was called.
    pub name: Arc<str>,
    /// The bound arguments, followed by those of the script.
    pub arguments: Vec<Value>,
}

/// Step of a path into a value: see [`Runtime::at`](crate::Runtime::at).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A property of an object, or an export of a module.
    Name(String),
    /// An item of a list.
    Index(usize),
}

impl From<&str> for Key {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for Key {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for Key {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

/// Largest integer up to which JavaScript numbers are exact.
const SAFE: f64 = 9_007_199_254_740_991.0;

impl Value {
    /// Converts the value to JSON. Entries that are undefined or functions are omitted from maps and become null in
    /// lists. At the top level they become null, and so do `NaN` and the infinities. A regular expression becomes the
    /// text of its literal.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Undefined | Self::Null | Self::Function(_) | Self::Native(_) | Self::HostFunction(_) => {
                serde_json::Value::Null
            }
            Self::Bool(value) => serde_json::Value::Bool(*value),
            Self::Number(value) => number(*value),
            Self::String(text) => serde_json::Value::String(text.clone()),
            Self::List(items) => serde_json::Value::Array(items.iter().map(Self::to_json).collect()),
            Self::Map(entries) => serde_json::Value::Object(
                entries
                    .iter()
                    .filter(|(_, value)| !value.is_undefined() && !value.is_callable())
                    .map(|(key, value)| (key.clone(), value.to_json()))
                    .collect(),
            ),
            Self::Regex { source, flags } => serde_json::Value::String(format!("/{source}/{flags}")),
        }
    }

    /// Returns `true` if it is `undefined`.
    pub fn is_undefined(&self) -> bool {
        matches!(self, Self::Undefined)
    }

    /// Returns `true` if a script could call it.
    pub fn is_callable(&self) -> bool {
        matches!(self, Self::Function(_) | Self::Native(_) | Self::HostFunction(_))
    }

    /// Returns `true` if it is truthy in JavaScript.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Undefined | Self::Null => false,
            Self::Bool(value) => *value,
            Self::Number(value) => *value != 0.0 && !value.is_nan(),
            Self::String(text) => !text.is_empty(),
            _ => true,
        }
    }

    /// Returns the text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::String(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number, if it is one.
    pub fn as_number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the boolean, if it is one.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// Returns the value under `key`, if this is a map that has it.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Self::Map(entries) => entries.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// Returns the type of a value with its article, for messages: "a string", "a list".
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Undefined => "undefined",
            Self::Null => "null",
            Self::Bool(_) => "a boolean",
            Self::Number(_) => "a number",
            Self::String(_) => "a string",
            Self::List(_) => "a list",
            Self::Map(_) => "an object",
            Self::Regex { .. } => "a regular expression",
            Self::Function(_) | Self::Native(_) | Self::HostFunction(_) => "a function",
        }
    }
}

fn number(value: f64) -> serde_json::Value {
    if value.fract() == 0.0 && value.abs() <= SAFE {
        #[allow(clippy::cast_possible_truncation)]
        return serde_json::Value::Number(Number::from(value as i64));
    }
    Number::from_f64(value).map_or(serde_json::Value::Null, serde_json::Value::Number)
}

impl From<&serde_json::Value> for Value {
    fn from(value: &serde_json::Value) -> Self {
        match value {
            serde_json::Value::Null => Self::Null,
            serde_json::Value::Bool(value) => Self::Bool(*value),
            serde_json::Value::Number(value) => Self::Number(value.as_f64().unwrap_or(f64::NAN)),
            serde_json::Value::String(text) => Self::String(text.clone()),
            serde_json::Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => {
                Self::Map(entries.iter().map(|(key, value)| (key.clone(), Self::from(value))).collect())
            }
        }
    }
}

impl From<serde_json::Value> for Value {
    fn from(value: serde_json::Value) -> Self {
        match value {
            serde_json::Value::String(text) => Self::String(text),
            serde_json::Value::Array(items) => Self::List(items.into_iter().map(Self::from).collect()),
            serde_json::Value::Object(entries) => {
                Self::Map(entries.into_iter().map(|(key, value)| (key, Self::from(value))).collect())
            }
            plain => Self::from(&plain),
        }
    }
}

macro_rules! from {
    ($($given:ty => $variant:ident),+) => {$(
        impl From<$given> for Value {
            fn from(given: $given) -> Self {
                Self::$variant(given)
            }
        }
    )+};
}

from!(
    bool => Bool, f64 => Number, String => String, Vec<Value> => List, Native => Native, HostFunction => HostFunction
);

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::String(text.to_owned())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_round_trips_unchanged() {
        let value = json!({"a": [1, -2.5, true, null, "x"], "b": {"c": {}}, "big": 9_007_199_254_740_991_i64});
        assert_eq!(Value::from(&value).to_json(), value);
        assert_eq!(Value::from(value.clone()).to_json(), value);
    }

    #[test]
    fn values_that_json_cannot_represent_are_omitted_or_null() {
        let asks = Value::from(HostFunction::new("x"));
        let map = Value::Map(vec![
            ("u".into(), Value::Undefined),
            ("f".into(), asks.clone()),
            ("n".into(), Value::Number(f64::NAN)),
            ("r".into(), Value::Regex { source: "a".into(), flags: "i".into() }),
        ]);
        assert_eq!(map.to_json(), json!({"n": null, "r": "/a/i"}));
        assert_eq!(Value::List(vec![Value::Undefined, asks]).to_json(), json!([null, null]));
    }

    #[test]
    fn truthiness_follows_javascript() {
        for value in [Value::Undefined, Value::Null, false.into(), 0.0.into(), f64::NAN.into(), "".into()] {
            assert!(!value.is_truthy(), "{value:?}");
        }
        for value in [true.into(), (-1.0).into(), " ".into(), Value::List(vec![]), Value::Map(vec![])] {
            assert!(value.is_truthy(), "{value:?}");
        }
    }
}
