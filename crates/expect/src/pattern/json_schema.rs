//! A JSON Schema to which the value must conform.

use std::sync::Arc;

use super::json_text;
use crate::host::Host;
use crate::prelude::*;
use crate::schema::{Patterns, Schema};

/// Compiled schema.
#[derive(Debug)]
pub struct JsonSchema {
    /// The schema.
    pub schema: Schema,
    /// Source position.
    pub place: SourceLocation,
}

impl Rule for JsonSchema {
    fn judge(&self, actual: Option<&Value>, _at: &Scope<'_>) -> Found {
        let Some(present) = actual else {
            return Found::flawed(Flaw::new(&self.place, "there is no value to check against the schema"));
        };
        match self.schema.validate(present) {
            Ok(errors) if errors.is_empty() => Found::full(),
            Ok(errors) => {
                let messages: Vec<String> = errors.iter().map(ToString::to_string).collect();
                let remark = json_text::remark(actual);
                let message = format!("the value does not match the schema: {}{remark}", messages.join("; "));
                Found::flawed(Flaw::new(&self.place, message).actual(actual))
            }
            Err(undecided) => Found::unknown(Flaw::new(&self.place, undecided.to_string()).actual(actual)),
        }
    }
}

/// Regular expressions of the host, for use in schemas.
#[derive(Debug)]
pub struct HostPatterns(pub Arc<dyn Host>);

impl Patterns for HostPatterns {
    fn check(&self, source: &str, flags: &str) -> Result<(), String> {
        self.0.regex(source, flags).map(|_| ()).map_err(|invalid| invalid.message)
    }

    fn is_match(&self, source: &str, flags: &str, text: &str) -> Result<bool, String> {
        self.0.regex(source, flags).map_err(|invalid| invalid.message)?.is_match(text)
    }
}
