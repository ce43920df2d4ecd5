//! YAML scalars according to the core schema.

use model::NodeKind;
use serde_json::Number;

/// Parses a plain scalar according to the core schema, or returns the reason why it cannot be read.
pub(super) fn plain(written: &str) -> Result<NodeKind, String> {
    Ok(match written {
        "" | "~" | "null" | "Null" | "NULL" => NodeKind::Null,
        "true" | "True" | "TRUE" => NodeKind::Bool(true),
        "false" | "False" | "FALSE" => NodeKind::Bool(false),
        _ => match number(written) {
            Some(Ok(number)) => NodeKind::Number(number),
            Some(Err(Unreadable::NotJson)) => return Err(format!("`{written}` is a number that JSON does not have")),
            Some(Err(Unreadable::TooLong)) => {
                return Err(format!("`{written}` is an integer of more than 64 bits, which would be rounded"));
            }
            None => NodeKind::String(written.to_owned()),
        },
    })
}

/// Parses a scalar with one of YAML's own tags.
pub(super) fn core_tagged(core: &str, written: &str) -> Result<NodeKind, String> {
    let kind = plain(written)?;
    let fits = match (core, &kind) {
        ("null", NodeKind::Null) | ("bool", NodeKind::Bool(_)) | ("float", NodeKind::Number(_)) => true,
        ("int", NodeKind::Number(number)) => !number.is_f64(),
        _ => false,
    };
    if fits { Ok(kind) } else { Err(format!("`{written}` is not a valid !!{core}")) }
}

/// Reason why a number cannot be read.
enum Unreadable {
    /// JSON does not have it, such as infinity.
    NotJson,
    /// It is an integer of more than 64 bits.
    TooLong,
}

/// Parses a number: `None` if `written` is not a number, an error if it cannot be represented.
fn number(written: &str) -> Option<Result<Number, Unreadable>> {
    let unsigned = written.strip_prefix(['-', '+']).unwrap_or(written);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(written, ".nan" | ".NaN" | ".NAN") {
        return Some(Err(Unreadable::NotJson));
    }
    // Most texts start with a letter, and this check alone rules them out.
    if !unsigned.starts_with(|first: char| first.is_ascii_digit() || first == '.') {
        return None;
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = written.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|digit| digit.is_digit(radix));
            return all.then(|| u64::from_str_radix(digits, radix).map(Number::from).map_err(|_| Unreadable::TooLong));
        }
    }
    match written.parse::<u64>().map(Number::from).or_else(|_| written.parse::<i64>().map(Number::from)) {
        Ok(whole) => Some(Ok(whole)),
        Err(_) if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) => {
            Some(Err(Unreadable::TooLong))
        }
        Err(_) => Some(Number::from_f64(written.parse().ok()?).ok_or(Unreadable::NotJson)),
    }
}
