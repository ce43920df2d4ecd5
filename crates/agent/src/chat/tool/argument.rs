//! Reads the arguments of a call. Errors are messages for the model that name the wrong argument.

use model::nearest;
use serde_json::{Map, Value};

/// Prefix of the message for a model that called a tool with arguments that its schema does not allow.
pub(in crate::chat) const INVALID: &str = "Invalid arguments";

/// Arguments of a call. Names and required arguments are checked against the tool's schema.
#[derive(Debug)]
pub(super) struct Arguments {
    given: Map<String, Value>,
}

impl Arguments {
    /// Accepts `input` if it has all arguments that `schema` requires and no unknown ones. `null` counts as absent.
    pub(super) fn parse(input: Value, schema: &Value) -> Result<Self, String> {
        let mut given = match input {
            Value::Object(given) => given,
            other => return Err(format!("Invalid arguments: they must be an object, not {}", display(&other))),
        };
        given.retain(|_, value| !value.is_null());
        let known = || schema["properties"].as_object().into_iter().flat_map(|map| map.keys()).map(String::as_str);
        if let Some(odd) = given.keys().find(|key| !known().any(|name| name == *key)) {
            let hint = match nearest(odd, known()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known are: {}", known().collect::<Vec<_>>().join(", ")),
            };
            return Err(format!("Invalid arguments: unknown `{odd}`; {hint}"));
        }
        let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for name in required {
            if !given.contains_key(name) {
                return Err(format!("Invalid arguments: `{name}` is missing"));
            }
        }
        Ok(Self { given })
    }

    /// Takes an optional string.
    pub(super) fn text(&mut self, name: &str) -> Result<Option<String>, String> {
        match self.given.remove(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(name, "a string", &other)),
        }
    }

    /// Takes a required string.
    pub(super) fn required(&mut self, name: &str) -> Result<String, String> {
        self.text(name)?.ok_or_else(|| format!("Invalid arguments: `{name}` is missing"))
    }

    /// Takes a boolean; `false` if absent.
    pub(super) fn flag(&mut self, name: &str) -> Result<bool, String> {
        match self.given.remove(name) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(flag),
            Some(other) => Err(wrong(name, "true or false", &other)),
        }
    }

    /// Takes an integer of at least `least`.
    pub(super) fn count(&mut self, name: &str, least: u64) -> Result<Option<u64>, String> {
        let Some(value) = self.given.remove(name) else { return Ok(None) };
        let count = match &value {
            Value::Number(number) => model::decode::as_whole(number).filter(|count| *count >= least),
            _ => None,
        };
        match count {
            Some(count) => Ok(Some(count)),
            None => Err(wrong(name, &format!("a whole number of at least {least}"), &value)),
        }
    }

    /// Takes one of `choices`; the first one if absent.
    pub(super) fn choice(&mut self, name: &str, choices: &[&'static str]) -> Result<&'static str, String> {
        let Some(written) = self.text(name)? else { return Ok(choices.first().copied().unwrap_or_default()) };
        let found = choices.iter().find(|choice| **choice == written).copied();
        found.ok_or_else(|| {
            format!("Invalid arguments: `{name}` must be one of {}, not `{written}`", choices.join(", "))
        })
    }

    /// Takes any value.
    pub(super) fn value(&mut self, name: &str) -> Option<Value> {
        self.given.remove(name)
    }
}

fn wrong(name: &str, wanted: &str, value: &Value) -> String {
    format!("Invalid arguments: `{name}` must be {wanted}, not {}", display(value))
}

fn display(value: &Value) -> String {
    let whole = value.to_string();
    match model::text::head(&whole, 60) {
        (head, true) => format!("{head}…"),
        (whole, false) => whole.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(input: Value) -> Result<Arguments, String> {
        let schema = json!({
            "properties": {"file_path": {}, "limit": {}, "all": {}},
            "required": ["file_path"],
        });
        Arguments::parse(input, &schema)
    }

    #[test]
    fn missing_unknown_and_mistyped_arguments_are_reported_by_name() {
        assert_eq!(of(json!([])).unwrap_err(), "Invalid arguments: they must be an object, not []");
        assert_eq!(of(json!({"file_path": null})).unwrap_err(), "Invalid arguments: `file_path` is missing");
        let odd = of(json!({"file_path": "a", "limits": 1})).unwrap_err();
        assert_eq!(odd, "Invalid arguments: unknown `limits`; did you mean `limit`?");
        let mut arguments = of(json!({"file_path": 5, "limit": 0, "all": "yes"})).unwrap();
        assert_eq!(
            arguments.required("file_path").unwrap_err(),
            "Invalid arguments: `file_path` must be a string, not 5"
        );
        assert!(
            arguments.count("limit", 1).unwrap_err().contains("`limit` must be a whole number of at least 1, not 0")
        );
        assert!(arguments.flag("all").unwrap_err().contains("`all` must be true or false, not \"yes\""));
    }

    #[test]
    fn absent_arguments_get_their_defaults() {
        let mut arguments = of(json!({"file_path": "a", "limit": 2.0})).unwrap();
        assert_eq!(arguments.count("limit", 1), Ok(Some(2)));
        assert_eq!(arguments.flag("all"), Ok(false));
        assert_eq!(arguments.choice("mode", &["x", "y"]), Ok("x"));
    }
}
