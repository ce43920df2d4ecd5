//! Keywords that are checked here and not by the library: patterns, formats and those of ajv-keywords.

use std::cell::RefCell;
use std::cmp::Ordering;
use std::sync::Arc;

use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::Value;

use super::format::{Format, Test};
use super::mismatch::{counted, kind_of, listed, must_be_one_of, shown};
use super::vocabulary::Dialect;
use super::{Patterns, Undecided};

/// Requirement of a keyword on a value.
pub(super) enum Check {
    /// `pattern`, `regexp`
    Pattern {
        source: String,
        flags: String,
    },
    Format(&'static Format),
    /// `formatMinimum` and so on: the allowed orders, and the words for them.
    FormatLimit {
        format: &'static Format,
        limit: String,
        allowed: &'static [Ordering],
        words: &'static str,
    },
    /// `range`, `exclusiveRange`
    Range {
        low: f64,
        high: f64,
        exclusive: bool,
    },
    AllRequired(Vec<String>),
    AnyRequired(Vec<String>),
    OneRequired(Vec<String>),
    Prohibited(Vec<String>),
    DeepRequired(Vec<String>),
    PatternRequired(Vec<String>),
    UniqueItemProperties(Vec<String>),
    /// `typeof`
    TypeOf(Vec<String>),
    /// `instanceof`
    InstanceOf(Vec<String>),
    /// `enum` together with `transform`
    Enum(Vec<Value>),
    /// `minLength` together with `transform`
    MinLength(usize),
    /// `maxLength` together with `transform`
    MaxLength(usize),
    /// A reference to the meta-schema.
    Dialect(Dialect),
}

/// Check, with the transformations of a text before it.
pub(super) struct Rule {
    pub(super) check: Check,
    pub(super) transforms: Vec<Transform>,
    /// Options of `toEnumCase`.
    pub(super) cases: Vec<String>,
}

/// Transformation of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Transform {
    TrimStart,
    TrimEnd,
    Trim,
    ToLowerCase,
    ToUpperCase,
    /// Replaces the text with the option that only differs in case.
    ToEnumCase,
}

/// User's keywords that are checked here.
const CHECKED: &[&str] = &[
    "pattern",
    "regexp",
    "format",
    "formatMinimum",
    "formatMaximum",
    "formatExclusiveMinimum",
    "formatExclusiveMaximum",
    "range",
    "exclusiveRange",
    "allRequired",
    "anyRequired",
    "oneRequired",
    "prohibited",
    "deepRequired",
    "patternRequired",
    "uniqueItemProperties",
    "typeof",
    "instanceof",
    "enum",
    "minLength",
    "maxLength",
    "$ref",
];

/// Returns the name of `keyword` for the library. The library has no keyword of that name, so that none of its own
/// checks apply.
pub(super) fn library_name(keyword: &str) -> String {
    format!("check:{keyword}")
}

/// Registers `rules` with the library. The value of such a keyword is an index into them.
pub(super) fn register<'i>(
    mut options: ValidationOptions<'i>,
    rules: &Arc<[Rule]>,
    patterns: &Arc<dyn Patterns>,
) -> ValidationOptions<'i> {
    for keyword in CHECKED {
        let (rules, patterns) = (Arc::clone(rules), Arc::clone(patterns));
        options = options.with_keyword(library_name(keyword), move |_, index, _| {
            let at = index.as_u64().and_then(|at| usize::try_from(at).ok()).filter(|at| *at < rules.len());
            let at = at.ok_or_else(|| ValidationError::schema("no such check"))?;
            Ok(Box::new(Applied { rules: Arc::clone(&rules), at, patterns: Arc::clone(&patterns) }))
        });
    }
    options
}

struct Applied {
    rules: Arc<[Rule]>,
    at: usize,
    patterns: Arc<dyn Patterns>,
}

impl Applied {
    fn judge(&self, value: &Value) -> Result<(), String> {
        let outcome = self.rules.get(self.at).map_or(Ok(Ok(())), |rule| rule.judge(value, &*self.patterns));
        outcome.unwrap_or_else(|Undecided(why)| {
            UNDECIDED.with_borrow_mut(|undecided| _ = undecided.get_or_insert(why));
            Ok(())
        })
    }
}

impl<'i> Keyword<'i> for Applied {
    fn validate(&self, value: &'i Value) -> Result<(), ValidationError<'i>> {
        self.judge(value).map_err(ValidationError::custom)
    }

    fn is_valid(&self, value: &'i Value) -> bool {
        self.judge(value).is_ok()
    }
}

thread_local! {
    /// Undecided check. The library has no way to return it, so it is passed around the library.
    static UNDECIDED: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `validation`. Its result is invalid if a check could not be decided.
pub(super) fn watched<T>(validation: impl FnOnce() -> T) -> Result<T, Undecided> {
    UNDECIDED.with_borrow_mut(|undecided| *undecided = None);
    let result = validation();
    match UNDECIDED.with_borrow_mut(Option::take) {
        None => Ok(result),
        Some(why) => Err(Undecided(why)),
    }
}

impl Rule {
    /// Judges `value`. The inner error is the requirement that it does not meet.
    fn judge(&self, value: &Value, patterns: &dyn Patterns) -> Result<Result<(), String>, Undecided> {
        match value {
            Value::String(text) if !self.transforms.is_empty() => {
                let changed = self.transforms.iter().fold(text.clone(), |text, step| step.apply(&text, &self.cases));
                self.check.judge(&Value::String(changed), patterns)
            }
            _ => self.check.judge(value, patterns),
        }
    }
}

impl Check {
    /// Judges `value`. The inner error is the requirement that it does not meet.
    fn judge(&self, value: &Value, patterns: &dyn Patterns) -> Result<Result<(), String>, Undecided> {
        let outcome = match (self, value) {
            (Self::Pattern { source, flags }, Value::String(text)) => {
                let fits = patterns.is_match(source, flags, text).map_err(Undecided)?;
                unless(fits, || format!("must match /{source}/{}, not {}", flags.replace('u', ""), shown(value)))
            }
            (Self::Format(format), _) => unless(fits_format(format, value, patterns), || {
                format!("{}, not {}", must_be(format.name), shown(value))
            }),
            (Self::FormatLimit { format, limit, allowed, words }, Value::String(text)) => {
                let order = format.order.and_then(|order| order(text, limit));
                unless(order.is_none_or(|order| allowed.contains(&order)), || {
                    format!("must be {words} {limit}, not {text}")
                })
            }
            (Self::Range { low, high, exclusive }, Value::Number(number)) => in_range(number, *low, *high, *exclusive),
            (Self::AllRequired(names), Value::Object(map)) => {
                let missing: Vec<&str> =
                    names.iter().map(String::as_str).filter(|name| !map.contains_key(*name)).collect();
                unless(missing.is_empty(), || format!("must have {}", listed(&missing, "and")))
            }
            (Self::AnyRequired(names), Value::Object(map)) => {
                let has = names.is_empty() || names.iter().any(|name| map.contains_key(name));
                unless(has, || format!("must have {}", listed(names, "or")))
            }
            (Self::OneRequired(names), Value::Object(map)) => {
                let there = names.iter().filter(|name| map.contains_key(*name)).count();
                let words = || format!("must have exactly one of {}, not {there} of them", listed(names, "and"));
                unless(names.is_empty() || there == 1, words)
            }
            (Self::Prohibited(names), Value::Object(map)) => {
                let there: Vec<&str> =
                    names.iter().map(String::as_str).filter(|name| map.contains_key(*name)).collect();
                unless(there.is_empty(), || format!("must not have {}", listed(&there, "or")))
            }
            (Self::DeepRequired(pointers), Value::Object(_)) => {
                let missing = pointers.iter().find(|pointer| value.pointer(pointer).is_none());
                missing.map_or(Ok(()), |pointer| Err(format!("must have something at {pointer}")))
            }
            (Self::PatternRequired(sources), Value::Object(map)) => {
                return pattern_required(sources, map, patterns);
            }
            (Self::UniqueItemProperties(names), Value::Array(items)) => unique_item_properties(names, items),
            (Self::TypeOf(names), _) => {
                let kind = type_of(value);
                unless(names.iter().any(|name| name == kind), || {
                    format!("must be of type {}, not {kind}", listed(names, "or"))
                })
            }
            (Self::InstanceOf(names), _) => {
                let fits = names.iter().any(|name| is_instance(value, name));
                unless(fits, || format!("must be an instance of {}, not {}", listed(names, "or"), kind_of(value)))
            }
            (Self::Enum(options), _) => {
                let there = options.iter().any(|option| same(option, value));
                unless(there, || format!("{}, not {}", must_be_one_of(options), shown(value)))
            }
            (Self::MinLength(least), Value::String(text)) => {
                let length = text.chars().count();
                unless(length >= *least, || format!("must have at least {}, not {length}", characters(*least)))
            }
            (Self::MaxLength(most), Value::String(text)) => {
                let length = text.chars().count();
                unless(length <= *most, || format!("must have at most {}, not {length}", characters(*most)))
            }
            (Self::Dialect(dialect), _) => {
                unless(dialect.is_schema(value), || format!("must be a schema of {}", dialect.name()))
            }
            _ => Ok(()),
        };
        Ok(outcome)
    }
}

fn unless(fits: bool, must: impl FnOnce() -> String) -> Result<(), String> {
    if fits { Ok(()) } else { Err(must()) }
}

fn must_be(format: &str) -> String {
    match format {
        "regex" => "must be a regular expression".to_owned(),
        "byte" => "must be base64".to_owned(),
        "int32" => "must be a whole number of 32 bits".to_owned(),
        "int64" => "must be a whole number of 64 bits".to_owned(),
        other => format!("must have the format `{other}`"),
    }
}

fn fits_format(format: &Format, value: &Value, patterns: &dyn Patterns) -> bool {
    match (&format.test, value) {
        (Test::Text(test), Value::String(text)) => test(text),
        (Test::Number(test), Value::Number(number)) => number.as_f64().is_none_or(test),
        (Test::Pattern, Value::String(text)) => !ends_as_in_other_dialects(text) && patterns.check(text, "").is_ok(),
        _ => true,
    }
}

fn in_range(number: &serde_json::Number, low: f64, high: f64, exclusive: bool) -> Result<(), String> {
    let Some(value) = number.as_f64() else { return Ok(()) };
    let fits = if exclusive { value > low && value < high } else { value >= low && value <= high };
    let (from, to) = if exclusive { ("more than", "less than") } else { ("at least", "at most") };
    unless(fits, || format!("must be {from} {low} and {to} {high}, not {number}"))
}

fn pattern_required(
    sources: &[String],
    map: &serde_json::Map<String, Value>,
    patterns: &dyn Patterns,
) -> Result<Result<(), String>, Undecided> {
    for source in sources {
        let mut unknown = None;
        let mut found = false;
        for name in map.keys() {
            match patterns.is_match(source, "u", name) {
                Ok(fits) => found |= fits,
                Err(why) => unknown = Some(why),
            }
            if found {
                break;
            }
        }
        match (found, unknown) {
            (true, _) => {}
            (false, Some(why)) => return Err(Undecided(why)),
            (false, None) => return Ok(Err(format!("must have a property whose name matches /{source}/"))),
        }
    }
    Ok(Ok(()))
}

fn unique_item_properties(names: &[String], items: &[Value]) -> Result<(), String> {
    let holders = || items.iter().enumerate().filter(|(_, item)| item.is_object() || item.is_array());
    for name in names {
        for (at, item) in holders() {
            let twin = holders().take_while(|(other, _)| *other < at).find(|(_, other)| {
                match (item.get(name), other.get(name)) {
                    (Some(one), Some(other)) => same(one, other),
                    (one, other) => one.is_none() && other.is_none(),
                }
            });
            if let Some((twin, _)) = twin {
                let value = item.get(name).map_or_else(|| "no value".to_owned(), shown);
                return Err(format!("must have items with different `{name}`: [{twin}] and [{at}] both have {value}"));
            }
        }
    }
    Ok(())
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "boolean",
        Value::Null | Value::Array(_) | Value::Object(_) => "object",
    }
}

fn is_instance(value: &Value, name: &str) -> bool {
    match name {
        "Object" => value.is_object() || value.is_array(),
        "Array" => value.is_array(),
        _ => false,
    }
}

fn characters(count: usize) -> String {
    counted(count as u64, "character")
}

/// True if the expression has a `\Z`, which ECMAScript takes for a literal `Z`. No user means that.
fn ends_as_in_other_dialects(source: &str) -> bool {
    source.match_indices("\\Z").any(|(at, _)| at > 0 && !source[..at].ends_with('\\'))
}

impl Transform {
    pub(super) const NAMES: &[(&'static str, Self)] = &[
        ("trimStart", Self::TrimStart),
        ("trimEnd", Self::TrimEnd),
        ("trimLeft", Self::TrimStart),
        ("trimRight", Self::TrimEnd),
        ("trim", Self::Trim),
        ("toLowerCase", Self::ToLowerCase),
        ("toUpperCase", Self::ToUpperCase),
        ("toEnumCase", Self::ToEnumCase),
    ];

    fn apply(self, text: &str, cases: &[String]) -> String {
        match self {
            Self::TrimStart => text.trim_start().to_owned(),
            Self::TrimEnd => text.trim_end().to_owned(),
            Self::Trim => text.trim().to_owned(),
            Self::ToLowerCase => text.to_lowercase(),
            Self::ToUpperCase => text.to_uppercase(),
            Self::ToEnumCase => {
                let lower = text.to_lowercase();
                cases.iter().find(|case| case.to_lowercase() == lower).map_or_else(|| text.to_owned(), String::clone)
            }
        }
    }
}

/// True if two values are equal as JSON: `1` and `1.0` are the same number.
pub(super) fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => left == right || left.as_f64() == right.as_f64(),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(left, right)| same(left, right))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left.iter().all(|(key, left)| right.get(key).is_some_and(|right| same(left, right)))
        }
        _ => left == right,
    }
}
