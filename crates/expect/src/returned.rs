//! Return values of scripts: a boolean, a score, a message, or a whole result.

use model::{Detail, Status};
use serde_json::{Map, Value};

use crate::found::{Flaw, Found, Pass};
use crate::rule::Scope;
use crate::source_location::SourceLocation;
use crate::truncated_value::truncated;
use crate::value;
use crate::weight::NOISE;

/// Reads the return value of a script. `expected` is the expected value that was passed to the script.
pub fn read(
    returned: Option<&Value>,
    expected: Option<&Value>,
    actual: Option<&Value>,
    at: &Scope<'_>,
    place: &SourceLocation,
) -> Found {
    let mut found = match returned {
        Some(Value::Bool(true)) => return Found::full(),
        Some(Value::Bool(false)) => failed(place, None),
        Some(Value::String(message)) => failed(place, Some(message.as_str()).filter(|message| !message.is_empty())),
        Some(Value::Number(number)) => confidence(number.as_f64().unwrap_or_default(), at, place),
        Some(Value::Object(result)) => of_map(result, at, place),
        other => open(place, format!("the answer is {}, which is not a result", value::kind(other)), at),
    };
    for flaw in &mut found.flaws {
        if flaw.expected.is_none() {
            flaw.expected = expected.cloned();
        }
        if flaw.actual.is_none() {
            flaw.actual = actual.map(truncated);
        }
    }
    found
}

/// Returns the result for a score. It passes if it reaches the threshold. Without a threshold, it passes unless it is
/// 0.
pub fn confidence(score: f64, at: &Scope<'_>, place: &SourceLocation) -> Found {
    let score = if score.is_nan() { 0.0 } else { score.clamp(0.0, 1.0) };
    let mut found = Found::scored(score, Pass::from_bool(passes(score, at)));
    if found.pass == Pass::No {
        found.flaws.push(Flaw::new(place, below(score, at)));
    }
    found
}

fn passes(score: f64, at: &Scope<'_>) -> bool {
    match at.threshold {
        Some(threshold) => score >= threshold - NOISE,
        None => score > 0.0,
    }
}

fn below(score: f64, at: &Scope<'_>) -> String {
    match at.threshold {
        Some(threshold) => below_threshold(score, threshold),
        None => "a confidence of 0".into(),
    }
}

/// Returns the message for a score below the threshold.
pub fn below_threshold(score: f64, threshold: f64) -> String {
    format!("a confidence of {score:.2} is below the threshold {threshold}")
}

fn failed(place: &SourceLocation, message: Option<&str>) -> Found {
    Found::flawed(match message {
        Some(message) => Flaw::new(place, message),
        None => Flaw { message: None, ..Flaw::new(place, "") },
    })
}

/// Returns the result for a return value without a verdict: a mismatch, or undecided if a mismatch would count as a
/// success.
fn open(place: &SourceLocation, message: String, at: &Scope<'_>) -> Found {
    if at.negated { Found::unknown(Flaw::new(place, message)) } else { failed(place, Some(&message)) }
}

/// Reads `{score, pass, message, title, dimension, critical, details, failures}`. Each key is optional, but there must
/// be a `score`, a `pass` or `failures`.
fn of_map(result: &Map<String, Value>, at: &Scope<'_>, place: &SourceLocation) -> Found {
    let number = result.get("score").and_then(Value::as_f64);
    let failures = result.get("failures").and_then(Value::as_array);
    let pass = result.get("pass").filter(|pass| !pass.is_null());
    if number.is_none() && pass.is_none() && failures.is_none() {
        return open(place, "the result has neither `score` nor `pass`".into(), at);
    }
    let score = number.unwrap_or_default().clamp(0.0, 1.0);
    let holds = match pass {
        Some(pass) => value::truthy(pass),
        None => number.is_some() && passes(score, at) || number.is_none() && at.threshold.is_none(),
    };
    let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let critical = result.get("critical").is_some_and(value::truthy);
    let mut found = Found::scored(score, Pass::from_bool(holds));
    found.title = text("title");
    found.dimension = text("dimension");
    found.critical = critical;
    found.details = result.get("details").and_then(Value::as_array).map(|list| details(list)).unwrap_or_default();
    // Failures of a value that passes are ignored.
    let flaws = failures.into_iter().flatten().filter(|_| !holds);
    found.flaws = flaws.map(|failure| flaw(failure, critical, place)).collect();
    if !holds && found.flaws.is_empty() {
        let message = text("message").or_else(|| (pass.is_none()).then(|| below(score, at)));
        found.flaws.push(Flaw { message, critical, ..Flaw::new(place, "") });
    }
    if found.dimension.is_some() && found.details.is_empty() {
        found.details.push(Detail {
            key: at.key.clone(),
            title: None,
            dimension: found.dimension.clone(),
            critical: false,
            weight: 1.0,
            score,
            status: found.pass.status(),
            passed_over: false,
            details: Vec::new(),
        });
    }
    found
}

/// Reads a failure that a script returned.
pub fn flaw(failure: &Value, critical: bool, place: &SourceLocation) -> Flaw {
    let text = |key: &str| failure.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    Flaw {
        key: text("key").map(str::to_owned),
        message: text("message").map(str::to_owned),
        expected: failure.get("expected").cloned(),
        actual: failure.get("actual").cloned(),
        critical: critical || failure.get("critical").is_some_and(value::truthy),
        ..Flaw::new(place, "")
    }
}

/// Reads the details that a script returned.
pub fn details(list: &[Value]) -> Vec<Detail> {
    let number = |value: &Value, key: &str| value.get(key).and_then(Value::as_f64);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).map(str::to_owned);
    list.iter()
        .map(|detail| Detail {
            key: text(detail, "key").unwrap_or_default(),
            title: text(detail, "title"),
            dimension: text(detail, "dimension"),
            critical: detail.get("critical").is_some_and(value::truthy),
            weight: number(detail, "weight").unwrap_or(1.0),
            score: number(detail, "score").unwrap_or_default().clamp(0.0, 1.0),
            status: if detail.get("pass").is_some_and(value::truthy) { Status::Met } else { Status::Unmet },
            passed_over: false,
            details: detail
                .get("details")
                .and_then(Value::as_array)
                .map(|list| self::details(list))
                .unwrap_or_default(),
        })
        .collect()
}
