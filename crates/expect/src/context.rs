//! The `ctx` of four-parameter operators: plain data, and pure functions on it that a host binds to its scripts.
//!
//! The data is a JSON map, so that it can be passed to a script, changed there, and sent back with a request.

use std::borrow::Cow;

use model::decode::Problems;
use serde_json::{Map, Value, json};

use crate::found::{Flaw, Found, Pass};
use crate::host::Naming;
use crate::path;
use crate::returned;
use crate::rule::Scope;
use crate::rules::{Rules, Strict};
use crate::source_location::SourceLocation;
use crate::strategy::{self, Strategy};
use crate::value;
use crate::weight::{Budget, Shares};

/// Returns the `ctx` of an expression.
pub(crate) fn of(at: &Scope<'_>) -> Value {
    let rules = at.run.rules;
    json!({
        "key": at.key,
        "threshold": at.threshold,
        "isKeyPresent": at.present,
        "scoring": rules.scoring,
        "maxScore": rules.budget.max_score,
        "passScore": rules.pass_score,
        "unassignedWeight": rules.budget.unassigned,
        "strict": rules.strict.to_json(),
    })
}

/// Returns the current position and options as data.
pub(crate) fn to_json(at: &Scope<'_>, strategy: Strategy, operator: &str, naming: &Naming, mut values: Value) -> Value {
    let naming = match naming {
        Naming::Virtual => Value::Bool(true),
        Naming::Physical => Value::Bool(false),
        Naming::Template(template) => Value::from(&**template),
    };
    let shares = match at.run.rules.budget.shares {
        Shares::Guessed => Value::Bool(true),
        Shares::Never => Value::Bool(false),
        Shares::Always => "force".into(),
    };
    if let Value::Object(map) = &mut values {
        map.insert("data".into(), at.run.data.variables.clone());
        map.insert("input".into(), at.run.data.input.clone().unwrap_or_default());
        map.insert("strategy".into(), strategy.name().into());
        map.insert("operator".into(), operator.into());
        map.insert("naming".into(), naming);
        map.insert("autoConfidence".into(), shares);
        map.insert("allocatedScore".into(), at.run.rules.budget.max_score.into());
        map.insert("isCriticalBranch".into(), at.critical.into());
    }
    values
}

/// Restores the position and options from data that a script returned. Missing values are taken from `above`.
pub(crate) fn at<'a>(context: &Value, above: &Scope<'a>) -> Scope<'a> {
    let key = context.get("key").and_then(Value::as_str).unwrap_or(&above.key).to_owned();
    let threshold = match context.get("threshold") {
        Some(threshold) => threshold.as_f64(),
        None => above.threshold,
    };
    let critical = above.critical || context.get("isCriticalBranch").is_some_and(value::truthy);
    let present = context.get("isKeyPresent").map_or(above.present, value::truthy);
    Scope { key, threshold, critical, present, ..above.below("") }
}

/// Returns the rules for a context from a script: those of the case, with the operator's overrides.
pub(crate) fn rules<'r>(context: &Value, rules: &'r Rules, problems: &mut Problems) -> Cow<'r, Rules> {
    let strict = match context.get("strict") {
        Some(strict) if *strict != rules.strict.to_json() => Strict::read(&value::node_of(strict), problems),
        _ => rules.strict,
    };
    let diff_permissive = context.get("diffPermissive").and_then(Value::as_bool).or(rules.diff_permissive);
    let budget = Budget { shares: rules.budget.shares, ..budget(context, rules.budget) };
    if (strict, diff_permissive, budget) == (rules.strict, rules.diff_permissive, rules.budget) {
        return Cow::Borrowed(rules);
    }
    Cow::Owned(Rules { strict, diff_permissive, budget, ..rules.clone() })
}

/// Implements `ctx.createSubContext(path, overrides)`.
pub fn sub(context: &Value, path: &str, overrides: Option<&Value>) -> Value {
    let mut map = context.as_object().cloned().unwrap_or_default();
    let key = path::below(text(context, "key"), path);
    map.insert("key".into(), key.into());
    if let Some(Value::Object(overrides)) = overrides {
        map.extend(overrides.clone());
    }
    Value::Object(map)
}

/// Implements `ctx.createChildContext(keyOrIndex, count, overrides)`.
pub fn child(context: &Value, key: &Value, count: usize, overrides: Option<&Value>) -> Value {
    let name = value::text(key);
    let operator = text(context, "operator");
    let step = match context.get("naming") {
        Some(Value::Bool(false)) => format!("[{name}]"),
        _ if count <= 1 => String::new(),
        Some(Value::String(template)) => {
            let index = key.as_u64().unwrap_or_default();
            fill(template, &[("key", &name), ("index", &index), ("count", &count), ("operator", &operator)])
        }
        _ => format!("{operator}[{name}]"),
    };
    sub(context, &step, overrides)
}

/// Implements `ctx.distribute(items)`. Each item is a weight, null for no weight, a map with a `value`, or an
/// expectation with a `$score`.
pub fn distribute(context: &Value, weights: &[Value]) -> Value {
    let number = |score: &Value| score.as_f64().or_else(|| score.get("value")?.as_f64());
    let weight = |item: &Value| {
        let of_item = || item.get("$score").or_else(|| item.get("$meta")?.get("score")).and_then(number);
        number(item).or_else(of_item)
    };
    let weights: Vec<Option<f64>> = weights.iter().map(weight).collect();
    strategy(context).distribute(&budget(context, Budget::default()), &weights).into_iter().map(Value::from).collect()
}

/// Implements `ctx.aggregate(results, weights)`.
pub fn aggregate(context: &Value, results: &[Value], weights: &[Value]) -> Value {
    let place = SourceLocation::nowhere();
    let weights = weights.iter().take(results.len());
    let shares: Vec<f64> = weights.map(|weight| weight.as_f64().unwrap_or_default()).collect();
    let results: Vec<Found> = results.iter().map(|result| found(result, &place)).collect();
    let whole = match strategy(context) {
        Strategy::Max => strategy::best(results, &shares, &place),
        weighted => weighted.aggregate(results, &shares, &place),
    };
    result_json(whole, text(context, "key"))
}

/// Converts a result to JSON for scripts.
pub(crate) fn result_json(found: Found, key: &str) -> Value {
    let failures: Vec<Value> = found.flaws.iter().map(|flaw| flaw_json(flaw, key)).collect();
    let mut result = Map::new();
    result.insert("score".into(), found.score.into());
    result.insert("pass".into(), (found.pass == Pass::Yes).into());
    result.insert("failures".into(), failures.into());
    result.insert("details".into(), found.details.iter().map(detail_json).collect());
    for (name, value) in [("title", found.title), ("dimension", found.dimension)] {
        if let Some(value) = value {
            result.insert(name.into(), value.into());
        }
    }
    if found.critical {
        result.insert("critical".into(), true.into());
    }
    Value::Object(result)
}

/// Converts a mismatch to JSON for scripts.
fn flaw_json(flaw: &Flaw, key: &str) -> Value {
    json!({
        "key": flaw.key.as_deref().unwrap_or(key),
        "message": flaw.message,
        "expected": flaw.expected,
        "actual": flaw.actual,
        "critical": flaw.critical,
    })
}

fn detail_json(detail: &model::Detail) -> Value {
    json!({
        "key": detail.key,
        "title": detail.title,
        "dimension": detail.dimension,
        "critical": detail.critical,
        "weight": detail.weight,
        "score": detail.score,
        "pass": detail.status == model::Status::Met,
        "details": detail.details.iter().map(detail_json).collect::<Vec<_>>(),
    })
}

/// Converts a result from a script back.
fn found(result: &Value, place: &SourceLocation) -> Found {
    let score = result.get("score").and_then(Value::as_f64).unwrap_or_default();
    let text = |key: &str| result.get(key).and_then(Value::as_str).map(str::to_owned);
    let list = |key: &str| result.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    Found {
        score,
        most: score,
        pass: Pass::from_bool(result.get("pass").is_some_and(value::truthy)),
        flaws: list("failures").iter().map(|failure| returned::flaw(failure, false, place)).collect(),
        details: returned::details(list("details")),
        title: text("title"),
        dimension: text("dimension"),
        critical: result.get("critical").is_some_and(value::truthy),
        place: None,
    }
}

fn strategy(context: &Value) -> Strategy {
    Strategy::named(text(context, "strategy")).unwrap_or_default()
}

fn budget(context: &Value, usual: Budget) -> Budget {
    let number = |key: &str, usual: f64| context.get(key).and_then(Value::as_f64).unwrap_or(usual);
    Budget {
        max_score: number("maxScore", usual.max_score),
        unassigned: number("unassignedWeight", usual.unassigned),
        shares: match context.get("autoConfidence") {
            Some(Value::Bool(false)) => Shares::Never,
            Some(Value::String(word)) if word == "force" => Shares::Always,
            _ => Shares::Guessed,
        },
    }
}

fn text<'v>(context: &'v Value, key: &str) -> &'v str {
    context.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Returns `template` with each `$name` replaced.
fn fill(template: &str, values: &[(&str, &dyn std::fmt::Display)]) -> String {
    let mut filled = String::new();
    let mut rest = template;
    while let Some(offset) = rest.find('$') {
        filled.push_str(&rest[..offset]);
        let after = &rest[offset + 1..];
        let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        match values.iter().find(|(name, _)| *name == &after[..end]) {
            Some((_, value)) => filled.push_str(&value.to_string()),
            None => filled.push_str(&rest[offset..=offset + end]),
        }
        rest = &after[end..];
    }
    filled + rest
}
