//! The `transform` keyword: changes a string before the other keywords in its schema are checked.

use model::{Diagnostic, nearest};
use serde_json::Value;

use super::describe::shown;
use super::mistake::Mistake;

/// Transformations by their names in ajv-keywords.
const STEPS: &[(&str, Step)] = &[
    ("trimStart", |text, _| text.trim_start().to_owned()),
    ("trimEnd", |text, _| text.trim_end().to_owned()),
    ("trimLeft", |text, _| text.trim_start().to_owned()),
    ("trimRight", |text, _| text.trim_end().to_owned()),
    ("trim", |text, _| text.trim().to_owned()),
    ("toLowerCase", |text, _| text.to_lowercase()),
    ("toUpperCase", |text, _| text.to_uppercase()),
    (TO_ENUM_CASE, |text, options| {
        let lower = text.to_lowercase();
        options.iter().find(|option| option.to_lowercase() == lower).map_or_else(|| text.to_owned(), String::clone)
    }),
];

/// Transformation that replaces the text with the option that differs from it only in case.
const TO_ENUM_CASE: &str = "toEnumCase";

/// Transformation of a string; the options are those in `enum`.
type Step = fn(&str, &[String]) -> String;

/// A list of changes.
pub(super) struct Transform {
    steps: Vec<Step>,
    options: Vec<String>,
}

impl Transform {
    /// Reads the value of `transform`, and the value of `enum` in the same schema.
    pub(super) fn read(value: &Value, options: Option<&Value>) -> Result<Self, Mistake> {
        let items = value.as_array().ok_or_else(|| {
            Mistake::new(format!("`transform` must be a list of transformations, not {}", shown(value)))
        })?;
        let steps = items.iter().enumerate().map(|(index, item)| {
            let known = item.as_str().and_then(|name| STEPS.iter().find(|(known, _)| *known == name));
            known.map(|(_, step)| *step).ok_or_else(|| {
                let names: Vec<&str> = STEPS.iter().map(|(name, _)| *name).collect();
                let near = item.as_str().and_then(|name| nearest(name, names.iter().copied()));
                let problem = Diagnostic::error(format!("there is no transformation {}", shown(item))).suggest(near);
                Mistake::from_diagnostic(problem.help(format!("known transformations: {}", names.join(", ")))).at(index)
            })
        });
        let steps = steps.collect::<Result<_, _>>()?;
        let mut found: Vec<String> = Vec::new();
        if items.iter().any(|item| item == TO_ENUM_CASE) {
            let options = options.and_then(Value::as_array);
            let options = options.ok_or_else(|| Mistake::new("`toEnumCase` needs `enum` in the same schema"))?;
            for option in options.iter().filter_map(Value::as_str) {
                if found.iter().any(|other| other.to_lowercase() == option.to_lowercase()) {
                    return Err(Mistake::new("`toEnumCase` needs options that differ by more than case"));
                }
                found.push(option.to_owned());
            }
        }
        Ok(Self { steps, options: found })
    }

    /// Returns the changed text.
    pub(super) fn apply(&self, text: &str) -> String {
        self.steps.iter().fold(text.to_owned(), |text, step| step(&text, &self.options))
    }
}
