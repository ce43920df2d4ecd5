//! Notation for regular expressions, schemas and functions in an expectation.

/// Tag of a regular expression.
pub const REGEX_TAG: &str = "!re";
/// Tag of a JSON Schema.
pub const SCHEMA_TAG: &str = "!json-schema";
/// Tag of a function in a module. The text identifies the function to the host.
pub const FUNCTION_TAG: &str = "!function";

/// Splits `/source/flags` into the source and the flags, if `text` has that form.
pub fn split_regex(text: &str) -> Option<(&str, &str)> {
    let (source, flags) = text.strip_prefix('/')?.rsplit_once('/')?;
    (!source.is_empty() && model::flags_problem(flags).is_none()).then_some((source, flags))
}
