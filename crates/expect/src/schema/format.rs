//! Formats of ajv-formats, with their complete checks.

use std::cmp::Ordering;

use super::{internet, temporal};

/// Format and its name.
pub(super) struct Format {
    pub(super) name: &'static str,
    pub(super) test: Test,
    /// Order of two texts. Only a format with an order can have limits.
    pub(super) order: Option<fn(&str, &str) -> Option<Ordering>>,
}

/// Test of a format.
pub(super) enum Test {
    /// No test. The format is a hint for people.
    None,
    /// Test of texts.
    Text(fn(&str) -> bool),
    /// Test of numbers.
    Number(fn(f64) -> bool),
    /// Texts that must be regular expressions.
    Pattern,
}

const fn text(name: &'static str, test: fn(&str) -> bool) -> Format {
    Format { name, test: Test::Text(test), order: None }
}

const fn ordered(name: &'static str, test: fn(&str) -> bool, order: fn(&str, &str) -> Option<Ordering>) -> Format {
    Format { name, test: Test::Text(test), order: Some(order) }
}

const fn number(name: &'static str, test: fn(f64) -> bool) -> Format {
    Format { name, test: Test::Number(test), order: None }
}

const fn hint(name: &'static str) -> Format {
    Format { name, test: Test::None, order: None }
}

pub(super) const FORMATS: &[Format] = &[
    ordered("date", temporal::is_date, temporal::compare_dates),
    ordered("time", temporal::is_time, temporal::compare_times),
    ordered("date-time", temporal::is_date_time, temporal::compare_date_times),
    ordered("iso-time", temporal::is_iso_time, temporal::compare_iso_times),
    ordered("iso-date-time", temporal::is_iso_date_time, temporal::compare_date_times),
    text("duration", temporal::is_duration),
    text("uri", internet::is_uri),
    text("uri-reference", internet::is_uri_reference),
    text("uri-template", internet::is_uri_template),
    text("url", internet::is_url),
    text("email", internet::is_email),
    text("hostname", internet::is_hostname),
    text("ipv4", internet::is_ipv4),
    text("ipv6", internet::is_ipv6),
    Format { name: "regex", test: Test::Pattern, order: None },
    text("uuid", internet::is_uuid),
    text("json-pointer", internet::is_json_pointer),
    text("json-pointer-uri-fragment", internet::is_json_pointer_uri_fragment),
    text("relative-json-pointer", internet::is_relative_json_pointer),
    text("byte", internet::is_base64),
    number("int32", |value| value.fract() == 0.0 && (-2_147_483_648.0..=2_147_483_647.0).contains(&value)),
    number("int64", |value| value.fract() == 0.0),
    hint("float"),
    hint("double"),
    hint("password"),
    hint("binary"),
];

/// Returns the format called `name`.
pub(super) fn format(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name)
}
