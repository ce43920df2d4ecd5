//! Keywords that are checked here instead of by the library: patterns, formats and the keywords of ajv-keywords.

use std::sync::Arc;

use jsonschema::{Draft, Keyword, ValidationError, ValidationOptions, Validator};
use model::{Diagnostic, nearest};
use serde_json::{Map, Value};

use super::Patterns;
use super::describe::{kind_of, listed, shown};
use super::format::{FORMATS, Format, is_json_pointer};
use super::mismatch::messages;
use super::mistake::Mistake;
use super::transform::Transform;
use super::undecided::give_up;
use super::vocabulary::{EXTENSIONS, PATTERN};
use crate::value::same;

/// Returns the message for a value that violates the keyword.
pub(super) type Check = Box<dyn Fn(&Value) -> Option<String> + Send + Sync>;

/// Compiles `document`. The keywords in this module are added to those of the library.
pub(super) fn build(
    draft: Draft,
    document: &Value,
    patterns: &Arc<dyn Patterns>,
) -> Result<Validator, ValidationError<'static>> {
    let mut options = jsonschema::options().with_draft(draft).offline();
    for keyword in EXTENSIONS.split(' ').chain(["format"]) {
        options = with(options, keyword, keyword, patterns);
    }
    options = with(options, PATTERN, "pattern", patterns);
    with(options, "transform", "transform", patterns).build(document)
}

fn with<'i>(
    options: ValidationOptions<'i>,
    name: &str,
    keyword: &'static str,
    patterns: &Arc<dyn Patterns>,
) -> ValidationOptions<'i> {
    let patterns = Arc::clone(patterns);
    options.with_keyword(name, move |beside, value, _| match check(keyword, value, beside, &patterns) {
        Ok(check) => Ok(Box::new(Checked(check))),
        Err(mistake) => Err(ValidationError::schema(mistake.problem.message)),
    })
}

struct Checked(Check);

impl<'i> Keyword<'i> for Checked {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        (self.0)(value).map_or(Ok(()), |message| Err(ValidationError::custom(message)))
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        (self.0)(value).is_none()
    }
}

/// Compiles `keyword` with its `value`; `beside` is the schema that contains it.
pub(super) fn check(
    keyword: &str,
    value: &Value,
    beside: &Map<String, Value>,
    patterns: &Arc<dyn Patterns>,
) -> Result<Check, Mistake> {
    Ok(match keyword {
        "pattern" => pattern(text(keyword, value)?, "u", patterns)?,
        "regexp" => regexp(value, patterns)?,
        "format" => format(text(keyword, value)?, patterns),
        "range" | "exclusiveRange" => range(keyword, value)?,
        "patternRequired" => pattern_required(&names(keyword, value)?, patterns)?,
        "deepRequired" => deep_required(names(keyword, value)?)?,
        "uniqueItemProperties" => unique_item_properties(names(keyword, value)?),
        "allRequired" => all_required(value, beside)?,
        "anyRequired" => {
            let names = names(keyword, value)?;
            of_map(move |map| {
                let has = names.is_empty() || names.iter().any(|name| map.contains_key(name));
                unless(has, || format!("must have {}", listed(&names, "or")))
            })
        }
        "oneRequired" => {
            let names = names(keyword, value)?;
            of_map(move |map| {
                let there = names.iter().filter(|name| map.contains_key(*name)).count();
                let words = || format!("must have exactly one of {}, not {there} of them", listed(&names, "and"));
                unless(names.is_empty() || there == 1, words)
            })
        }
        "prohibited" => {
            let names = names(keyword, value)?;
            of_map(move |map| {
                let there: Vec<_> = names.iter().filter(|name| map.contains_key(*name)).collect();
                unless(there.is_empty(), || format!("must not have {}", listed(&there, "or")))
            })
        }
        "typeof" => {
            let names = choices(keyword, value, TYPES_OF)?;
            Box::new(move |value| {
                let kind = type_of(value);
                unless(names.iter().any(|name| name == kind), || {
                    format!("must be of type {}, not {kind}", listed(&names, "or"))
                })
            })
        }
        "instanceof" => {
            let names = choices(keyword, value, CLASSES)?;
            Box::new(move |value| {
                let fits = names.iter().any(|name| is_instance(value, name));
                unless(fits, || format!("must be an instance of {}, not {}", listed(&names, "or"), kind_of(value)))
            })
        }
        "transform" => transformed(value, beside, patterns)?,
        _ => limit(keyword, value, beside)?,
    })
}

/// Allowed values of `typeof`. No JSON value is `undefined`, a function or a symbol.
pub(super) const TYPES_OF: &[&str] = &["undefined", "string", "number", "object", "function", "boolean", "symbol"];

/// Allowed values of `instanceof`. JSON values can only be instances of `Object` and `Array`.
pub(super) const CLASSES: &[&str] =
    &["Object", "Array", "Function", "Number", "String", "Date", "RegExp", "Buffer", "Promise"];

fn unless(fits: bool, message: impl FnOnce() -> String) -> Option<String> {
    (!fits).then(message)
}

fn of_map(check: impl Fn(&Map<String, Value>) -> Option<String> + Send + Sync + 'static) -> Check {
    Box::new(move |value| value.as_object().and_then(&check))
}

fn of_text(check: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Check {
    Box::new(move |value| value.as_str().and_then(&check))
}

/// Returns the mistake that the value of a keyword has the wrong type.
fn wrong(keyword: &str, needs: &str, value: &Value) -> Mistake {
    Mistake::new(format!("`{keyword}` must be {needs}, not {}", kind_of(value)))
}

fn text<'v>(keyword: &str, value: &'v Value) -> Result<&'v str, Mistake> {
    value.as_str().ok_or_else(|| wrong(keyword, "a string", value))
}

fn names(keyword: &str, value: &Value) -> Result<Vec<String>, Mistake> {
    let names: Result<Vec<String>, _> = serde::Deserialize::deserialize(value);
    let names = names.map_err(|_| wrong(keyword, "a list of strings", value))?;
    let twice = names.iter().enumerate().find(|(index, name)| names[..*index].contains(name));
    match twice {
        Some((at, name)) => Err(Mistake::new(format!("`{keyword}` names `{name}` twice")).at(at)),
        None => Ok(names),
    }
}

/// Reads one name or several names, all of which must be in `known`.
fn choices(keyword: &str, value: &Value, known: &[&'static str]) -> Result<Vec<String>, Mistake> {
    let items = value.as_array().map_or_else(|| std::slice::from_ref(value), Vec::as_slice);
    items
        .iter()
        .enumerate()
        .map(|(index, item)| match item.as_str() {
            Some(name) if known.contains(&name) => Ok(name.to_owned()),
            written => {
                let message = format!("`{keyword}` must be one of {}, not {}", known.join(", "), shown(item));
                let near = written.and_then(|name| nearest(name, known.iter().copied()));
                let mistake = Mistake::from_diagnostic(Diagnostic::error(message).suggest(near));
                Err(if value.is_array() { mistake.at(index) } else { mistake })
            }
        })
        .collect()
}

/// Reports an expression that is not valid.
pub(super) fn valid_pattern(source: &str, flags: &str, patterns: &dyn Patterns) -> Result<(), Mistake> {
    let Err(why) = patterns.check(source, flags) else { return Ok(()) };
    let problem = Mistake::new(format!("/{source}/ is not a regular expression: {why}"));
    if !flags.contains('u') || patterns.check(source, &flags.replace('u', "")).is_err() {
        return Err(problem);
    }
    Err(problem.help(
        "patterns of schemas are read with the `u` flag, which allows `\\` only before letters that mean something and \
         before `^$\\.*+?()[]{}|/`",
    ))
}

/// Returns `true` if `text` matches. If that cannot be decided, the validation is undecided.
fn is_match(patterns: &dyn Patterns, source: &str, flags: &str, text: &str) -> bool {
    patterns.is_match(source, flags, text).unwrap_or_else(|why| {
        give_up(why);
        true
    })
}

fn pattern(source: &str, flags: &str, patterns: &Arc<dyn Patterns>) -> Result<Check, Mistake> {
    valid_pattern(source, flags, &**patterns)?;
    let (source, flags, patterns) = (source.to_owned(), flags.to_owned(), Arc::clone(patterns));
    Ok(of_text(move |text| {
        let words = || format!("must match /{source}/{}, not {}", flags.replace('u', ""), shown(&text.into()));
        unless(is_match(&*patterns, &source, &flags, text), words)
    }))
}

fn regexp(value: &Value, patterns: &Arc<dyn Patterns>) -> Result<Check, Mistake> {
    let written = match value {
        Value::String(text) => text.strip_prefix('/').and_then(|rest| rest.rsplit_once('/')),
        Value::Object(map) if map.keys().all(|key| ["pattern", "flags"].contains(&key.as_str())) => {
            let flags = map.get("flags").filter(|flags| !flags.is_null()).map_or(Some("u"), Value::as_str);
            map.get("pattern").and_then(Value::as_str).zip(flags)
        }
        _ => None,
    };
    let Some((source, flags)) = written.filter(|(_, flags)| flags.chars().all(|flag| "gimuy".contains(flag))) else {
        let help = "write `/expression/i`, with flags out of `gimuy`, or a map with only `pattern` and `flags`";
        return Err(Mistake::new("`regexp` must be an expression with its flags").help(help));
    };
    if flags.contains('y') {
        return Err(Mistake::new("the `y` flag has no meaning in a schema").help("begin the expression with `^`"));
    }
    // The `g` flag affects only repeated searches, and there is only one search.
    pattern(source, &flags.replace('g', ""), patterns)
}

fn pattern_required(sources: &[String], patterns: &Arc<dyn Patterns>) -> Result<Check, Mistake> {
    for (index, source) in sources.iter().enumerate() {
        valid_pattern(source, "u", &**patterns).map_err(|mistake| mistake.at(index))?;
    }
    let (sources, patterns) = (sources.to_vec(), Arc::clone(patterns));
    Ok(of_map(move |map| {
        let has = |source: &&String| map.keys().any(|name| is_match(&*patterns, source, "u", name));
        let missing = sources.iter().find(|source| !has(source));
        missing.map(|source| format!("must have a property whose name matches /{source}/"))
    }))
}

fn format(name: &str, patterns: &Arc<dyn Patterns>) -> Check {
    // An unknown format checks nothing; a warning was already given when the document was read.
    let Some(format) = Format::named(name) else { return Box::new(|_| None) };
    let fits = format.test(patterns);
    let must = match name {
        "regex" => "must be a regular expression".to_owned(),
        "byte" => "must be base64".to_owned(),
        "int32" => "must be a whole number of 32 bits".to_owned(),
        "int64" => "must be a whole number of 64 bits".to_owned(),
        other => format!("must have the `{other}` format"),
    };
    Box::new(move |value| unless(fits(value), || format!("{must}, not {}", shown(value))))
}

/// `formatMinimum` and similar keywords.
fn limit(keyword: &str, value: &Value, beside: &Map<String, Value>) -> Result<Check, Mistake> {
    let limit = text(keyword, value)?.to_owned();
    let Some(name) = beside.get("format").and_then(Value::as_str) else {
        return Err(Mistake::new(format!("`{keyword}` needs `format` in the same schema")));
    };
    // An unknown format is reported where it is written.
    let Some(format) = Format::named(name) else { return Ok(Box::new(|_| None)) };
    let Some(moment) = format.moment() else {
        let problem = Mistake::new(format!("`{keyword}` cannot be used with the `{name}` format, which has no order"));
        let ordered: Vec<&str> =
            FORMATS.iter().filter(|known| known.moment().is_some()).map(|known| known.name).collect();
        return Err(problem.help(format!("formats with an order: {}", ordered.join(", "))));
    };
    let Some(bound) = moment(&limit) else {
        return Err(Mistake::new(format!("`{keyword}` must itself have the `{name}` format")));
    };
    let (words, fits): (_, fn(f64, f64) -> bool) = match keyword {
        "formatMinimum" => ("at least", |value, bound| value >= bound),
        "formatMaximum" => ("at most", |value, bound| value <= bound),
        "formatExclusiveMinimum" => ("after", |value, bound| value > bound),
        _ => ("before", |value, bound| value < bound),
    };
    Ok(of_text(move |text| {
        unless(moment(text).is_none_or(|value| fits(value, bound)), || format!("must be {words} {limit}, not {text}"))
    }))
}

fn range(keyword: &str, value: &Value) -> Result<Check, Mistake> {
    let Ok([low, high]) = <[f64; 2] as serde::Deserialize>::deserialize(value) else {
        return Err(wrong(keyword, "a list of two numbers", value));
    };
    let exclusive = keyword == "exclusiveRange";
    if low > high || (exclusive && low == high) {
        return Err(Mistake::new(format!("the range in `{keyword}` is empty")));
    }
    let (from, to) = if exclusive { ("more than", "less than") } else { ("at least", "at most") };
    Ok(Box::new(move |value| {
        let number = value.as_f64()?;
        let fits = if exclusive { number > low && number < high } else { number >= low && number <= high };
        unless(fits, || format!("must be {from} {low} and {to} {high}, not {value}"))
    }))
}

fn all_required(value: &Value, beside: &Map<String, Value>) -> Result<Check, Mistake> {
    let wanted = value.as_bool().ok_or_else(|| wrong("allRequired", "true or false", value))?;
    let Some(properties) = beside.get("properties") else {
        return Err(Mistake::new("`allRequired` needs `properties` in the same schema"));
    };
    let names: Vec<String> =
        properties.as_object().filter(|_| wanted).into_iter().flat_map(Map::keys).cloned().collect();
    Ok(of_map(move |map| {
        let missing: Vec<_> = names.iter().filter(|name| !map.contains_key(*name)).collect();
        unless(missing.is_empty(), || format!("must have {}", listed(&missing, "and")))
    }))
}

fn deep_required(pointers: Vec<String>) -> Result<Check, Mistake> {
    for (index, pointer) in pointers.iter().enumerate() {
        steps(pointer).map_err(|mistake| mistake.at(index))?;
    }
    Ok(Box::new(move |value| {
        let missing = pointers.iter().find(|pointer| value.is_object() && value.pointer(pointer).is_none())?;
        Some(format!("must have a value at {missing}"))
    }))
}

/// Returns the steps of a pointer, which must not point to the root.
pub(super) fn steps(pointer: &str) -> Result<Vec<String>, Mistake> {
    if pointer.is_empty() || !is_json_pointer(pointer) {
        return Err(Mistake::new(format!("`{pointer}` is not a JSON pointer to a part of the value"))
            .help("write `/name/0/name`"));
    }
    Ok(pointer.split('/').skip(1).map(|step| step.replace("~1", "/").replace("~0", "~")).collect())
}

fn unique_item_properties(names: Vec<String>) -> Check {
    Box::new(move |value| {
        let items = value.as_array()?;
        let holders = || items.iter().enumerate().filter(|(_, item)| item.is_object() || item.is_array());
        names.iter().find_map(|name| {
            holders().find_map(|(at, item)| {
                let mut before = holders().take_while(|(other, _)| *other < at);
                let (twin, _) = before.find(|(_, other)| match (item.get(name), other.get(name)) {
                    (Some(one), Some(other)) => same(one, other),
                    (one, other) => one.is_none() && other.is_none(),
                })?;
                let value = item.get(name).map_or_else(|| "no value".to_owned(), shown);
                Some(format!("must have items with different `{name}`: [{twin}] and [{at}] both have {value}"))
            })
        })
    })
}

/// `transform`: transforms strings before checking the keywords that the document moved into it.
fn transformed(value: &Value, beside: &Map<String, Value>, patterns: &Arc<dyn Patterns>) -> Result<Check, Mistake> {
    let Some(schema) = value.get("schema") else {
        return Transform::read(value, beside.get("enum")).map(|_| -> Check { Box::new(|_| None) });
    };
    let transform = Transform::read(&value["steps"], schema.get("enum"))?;
    let validator = build(Draft::Draft7, schema, patterns).map_err(|error| Mistake::new(error.to_string()))?;
    Ok(Box::new(move |value| {
        let changed = value.as_str().map_or_else(|| value.clone(), |text| Value::String(transform.apply(text)));
        let found: Vec<String> = validator.iter_errors(&changed).flat_map(|error| messages(&error, &changed)).collect();
        unless(found.is_empty(), || found.join(", "))
    }))
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null | Value::Array(_) | Value::Object(_) => "object",
    }
}

fn is_instance(value: &Value, class: &str) -> bool {
    match class {
        "Object" => value.is_object() || value.is_array(),
        "Array" => value.is_array(),
        _ => false,
    }
}
