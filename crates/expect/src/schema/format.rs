//! The formats of ajv-formats, with their full checks.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use regex::{Captures, Regex};
use serde_json::Value;

use super::{Patterns, temporal};

/// Format and its name.
pub(super) struct Format {
    pub(super) name: &'static str,
    test: Test,
}

/// The check of a format.
enum Test {
    /// No check: the format is only a hint for readers.
    Hint,
    /// A test of strings.
    Text(fn(&str) -> bool),
    /// A regular expression for strings, case-insensitive for ASCII letters, and a condition on its captures.
    Shape(&'static str, fn(&Captures<'_>) -> bool),
    /// Strings must be points in time. Later ones have greater numbers, which is needed for keywords that set limits.
    Moment(fn(&str) -> Option<f64>),
    /// A test of numbers.
    Number(fn(f64) -> bool),
    /// Strings must be regular expressions.
    Pattern,
}

const fn format(name: &'static str, test: Test) -> Format {
    Format { name, test }
}

const fn shape(name: &'static str, shape: &'static str) -> Format {
    format(name, Test::Shape(shape, |_| true))
}

const fn moment(name: &'static str, moment: fn(&str) -> Option<f64>) -> Format {
    format(name, Test::Moment(moment))
}

/// The part of a URI after its scheme: a host in brackets or any path, then query and fragment.
macro_rules! behind_scheme {
    () => {
        concat!(
            r"(?://(?:(?:[\w.~!$&'()*+,;=:-]|%[0-9a-f]{2})*@)?\[(?:v[0-9a-f]+\.[\w.~!$&'()*+,;=:-]+|(?<six>[0-9a-f:.]+))\]",
            r"(?::\d*)?(?:/(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)?|(?:[\w.~!$&'()*+,;=:@/-]|%[0-9a-f]{2})*)",
            r"(?:\?(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?(?:#(?:[\w.~!$&'()*+,;=:@/?-]|%[0-9a-f]{2})*)?$"
        )
    };
}

pub(super) const FORMATS: &[Format] = &[
    moment("date", temporal::date),
    moment("time", temporal::time),
    moment("date-time", temporal::date_time),
    moment("iso-time", temporal::iso_time),
    moment("iso-date-time", temporal::iso_date_time),
    format(
        "duration",
        Test::Shape(r"^(?-i:P(?:\d+W|(?:\d+Y)?(?:\d+M)?(?:\d+D)?(?:T(?:\d+H)?(?:\d+M)?(?:\d+S)?)?))$", |found| {
            !found[0].ends_with(['P', 'T'])
        }),
    ),
    format("uri", Test::Shape(concat!(r"^[a-z][a-z0-9+.-]*:", behind_scheme!()), is_absolute)),
    format("uri-reference", Test::Shape(concat!(r"^(?:[a-z][a-z0-9+.-]*:)?", behind_scheme!()), has_valid_host)),
    shape(
        "uri-template",
        concat!(
            r#"^(?:(?u:[^\x00-\x20"'<>%\\^`{|}])|%[0-9a-f]{2}|\{[+#./;?&=,!@|]?"#,
            r"(?:\w|%[0-9a-f]{2})+(?::[1-9]\d{0,3}|\*)?(?:,(?:\w|%[0-9a-f]{2})+(?::[1-9]\d{0,3}|\*)?)*\})*$"
        ),
    ),
    format(
        "url",
        Test::Shape(
            concat!(
                r"^(?:https?|ftp)://(?u:(?:\S+@)?(?:(?<four>[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+)|",
                r"(?:[a-z0-9\x{a1}-\x{ffff}]+(?:-[a-z0-9\x{a1}-\x{ffff}]+)*\.)+[a-z\x{a1}-\x{ffff}]{2,})",
                r"(?::[0-9]{2,5})?(?:/\S*)?)$"
            ),
            |found| found.name("four").is_none_or(|host| is_public(host.as_str())),
        ),
    ),
    shape(
        "email",
        r"^[\w!#$%&'*+/=?^`{|}~-]+(?:\.[\w!#$%&'*+/=?^`{|}~-]+)*@(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]*[a-z0-9])?$",
    ),
    format(
        "hostname",
        Test::Shape(
            r"^((?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)*[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\.?$",
            |found| found[1].len() <= 253,
        ),
    ),
    format("ipv4", Test::Text(|text| text.parse::<Ipv4Addr>().is_ok())),
    format("ipv6", Test::Text(|text| text.parse::<Ipv6Addr>().is_ok())),
    format("regex", Test::Pattern),
    shape("uuid", r"^(?:urn:uuid:)?[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$"),
    format("json-pointer", Test::Text(is_json_pointer)),
    shape("json-pointer-uri-fragment", r"^#(?:/(?:[\w.!$&'()*+,;:=@-]|%[0-9a-f]{2}|~[01])*)*$"),
    shape("relative-json-pointer", r"^(?:0|[1-9]\d*)(?:#|(?:/(?:(?u:[^~/])|~[01])*)*)$"),
    shape("byte", r"^(?:[a-z0-9+/]{4})*(?:[a-z0-9+/]{2}==|[a-z0-9+/]{3}=)?$"),
    format(
        "int32",
        Test::Number(|value| value.fract() == 0.0 && (-2_147_483_648.0..=2_147_483_647.0).contains(&value)),
    ),
    format("int64", Test::Number(|value| value.fract() == 0.0)),
    format("float", Test::Hint),
    format("double", Test::Hint),
    format("password", Test::Hint),
    format("binary", Test::Hint),
];

/// Formats from the standard and from OpenAPI that are not checked, listed so that they are not mistaken for
/// misspellings.
const UNCHECKED: &str = "\
    cuid ulid urn idn-email idn-hostname iri iri-reference int8 int16 uint8 uint16 uint32 uint64 base64url \
    decimal float32 float64";

impl Format {
    /// Returns the format called `name`.
    pub(super) fn named(name: &str) -> Option<&'static Self> {
        FORMATS.iter().find(|format| format.name == name)
    }

    /// Returns the format of which the unknown `name` is probably a misspelling.
    pub(super) fn nearest(name: &str) -> Option<&'static str> {
        model::nearest(name, FORMATS.iter().map(|format| format.name))
            .filter(|_| !UNCHECKED.split(' ').any(|known| known == name))
    }

    /// Returns the check for values; values of any other type always pass.
    pub(super) fn test(&self, patterns: &Arc<dyn Patterns>) -> Box<dyn Fn(&Value) -> bool + Send + Sync> {
        match self.test {
            Test::Hint => Box::new(|_| true),
            Test::Text(test) => Box::new(move |value| value.as_str().is_none_or(test)),
            Test::Moment(moment) => Box::new(move |value| value.as_str().is_none_or(|text| moment(text).is_some())),
            Test::Number(test) => Box::new(move |value| value.as_f64().is_none_or(test)),
            Test::Shape(shape, condition) => {
                let shape = Regex::new(&format!("(?i-u){shape}")).ok();
                let fits = move |text: &str| {
                    shape.as_ref().and_then(|shape| shape.captures(text)).is_some_and(|found| condition(&found))
                };
                Box::new(move |value| value.as_str().is_none_or(&fits))
            }
            Test::Pattern => {
                let patterns = Arc::clone(patterns);
                let fits = move |text: &str| !ends_as_in_other_dialects(text) && patterns.check(text, "").is_ok();
                Box::new(move |value| value.as_str().is_none_or(&fits))
            }
        }
    }

    /// Reads a string as a point in time, which is possible only in formats for dates and times.
    pub(super) fn moment(&self) -> Option<fn(&str) -> Option<f64>> {
        if let Test::Moment(moment) = self.test { Some(moment) } else { None }
    }
}

/// Returns `true` if the text is empty or a JSON pointer such as `/name/0`.
pub(super) fn is_json_pointer(text: &str) -> bool {
    (text.is_empty() || text.starts_with('/')) && text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']))
}

fn has_valid_host(found: &Captures<'_>) -> bool {
    found.name("six").is_none_or(|host| host.as_str().parse::<Ipv6Addr>().is_ok())
}

/// Returns `true` if the part between the scheme and the query is not empty.
fn is_absolute(found: &Captures<'_>) -> bool {
    let rest = found[0].split_once(':').map_or("", |(_, rest)| rest);
    !rest.is_empty() && !rest.starts_with(['?', '#']) && has_valid_host(found)
}

fn is_public(host: &str) -> bool {
    let Ok(address) = host.parse::<Ipv4Addr>() else { return false };
    let [first, _, _, last] = address.octets();
    let private = first == 10 || first == 127 || address.is_link_local() || address.is_private();
    (1..=223).contains(&first) && (1..=254).contains(&last) && !private
}

/// Returns `true` if the expression contains `\Z`, which is the letter `Z` in ECMAScript and almost certainly a
/// mistake.
fn ends_as_in_other_dialects(source: &str) -> bool {
    source.match_indices("\\Z").any(|(offset, _)| offset > 0 && !source[..offset].ends_with('\\'))
}
