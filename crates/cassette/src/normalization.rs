//! Normalises requests: removes differences between two runs of the same trial that are not real changes.
//!
//! Values that an answer may repeat, such as a directory or a commit id, are replaced by names. Ids are numbered in the
//! order in which they appear in a request. Each request contains the whole conversation before it, so a value keeps
//! its name in all requests of a conversation.

use std::borrow::Cow;
use std::collections::BTreeSet;

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use mask::Mask;
use model::RequestRule;
use regex::{Captures, Regex};
use serde_json::{Map, Value};

use crate::values::{Values, name};

/// Fields that contain the conversation. They are compared last.
pub(crate) const HISTORY: [&str; 2] = ["messages", "input"];

/// Ids that consist of letters and digits.
const IDS: &str =
    r"(?P<uuid>[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)|(?P<hex>\b[0-9a-f]{7,64}\b)";
/// Ids in git's output that consist of digits only.
const NUMBERS: &str = r"(?P<before>\[[\w./-]+(?: \([a-z-]+\))? |\bcommit |\.\.|\bindex )(?P<number>[0-9]{7,40})\b";
/// Times and durations in tool output.
const CLOCK: &str =
    r"\b\d+(?:\.\d+)? ?(?:ms|µs|ns|s|secs?|seconds?)\b|\b\d+m\d+(?:\.\d+)?s\b|\b\d{1,2}:\d{2}:\d{2}(?:\.\d+)?\b";

/// Rules for the requests of one trial.
pub struct Normalizer {
    rules: Vec<RequestRule>,
    replaced: Vec<(Regex, &'static str)>,
    places: Vec<(String, String)>,
    known: Option<Regex>,
    /// The known values in tool results, where ids can be numbers. One expression, because ids are numbered in the
    /// order in which they appear.
    known_in_results: Option<Regex>,
    /// Times, which are replaced only in tool results.
    clock: Option<Regex>,
    mask: Mask,
}

impl Default for Normalizer {
    /// Creates a normaliser that knows nothing about the trial.
    fn default() -> Self {
        Self::new(&[], &[], &[])
    }
}

impl Normalizer {
    /// Creates the rules for one trial. `places` are the trial's directories and their names. `dates` are the current
    /// date and the date of the recording. These dates and the days before and after them are ignored, in every form in
    /// which programs write them.
    pub fn new(rules: &[RequestRule], places: &[(String, &str)], dates: &[Date]) -> Self {
        let replaced = rules.iter().filter_map(|change| match change {
            RequestRule::Replace(pattern, with) => Some((Regex::new(pattern).ok()?, *with)),
            _ => None,
        });
        let mut places: Vec<(String, String)> = places
            .iter()
            .filter(|(place, _)| place.len() > 1 && place.starts_with('/'))
            .map(|(place, named)| (place.clone(), name(named)))
            .collect();
        // A directory inside another one must be replaced first.
        places.sort_by_key(|(place, _)| std::cmp::Reverse(place.len()));
        let replaced = replaced.collect();
        let days = days(dates);
        let known = known_values(&places, &days);
        let known_in_results = Regex::new(&format!("{known}|{NUMBERS}")).ok();
        let known = Regex::new(&known).ok();
        let clock = Regex::new(&clock_values(&days)).ok();
        Self { rules: rules.to_vec(), replaced, places, known, known_in_results, clock, mask: Mask::default() }
    }

    /// Adds the secrets of the run, so that they are never recorded. The same request must look the same in every
    /// trial, so the mask does not remember earlier texts.
    pub fn masking(self, mask: &Mask) -> Self {
        Self { mask: mask.forgetful(), ..self }
    }

    /// Returns the normalised request, and the values that were replaced.
    pub(crate) fn request(&self, mut body: Value) -> (Value, Values) {
        self.rules.iter().for_each(|rule| apply(rule, &mut body));
        let mut values = Values::new(&self.places);
        match &mut body {
            Value::Object(fields) => {
                // The conversation is normalised last, so that its values do not change the numbering of the other
                // ones.
                for is_history in [false, true] {
                    let fields = fields.iter_mut().filter(|(key, _)| HISTORY.contains(&key.as_str()) == is_history);
                    fields.for_each(|(_, field)| self.walk(field, false, &mut values));
                }
            }
            other => self.walk(other, false, &mut values),
        }
        (body, values)
    }

    fn walk(&self, value: &mut Value, in_result: bool, values: &mut Values) {
        match value {
            Value::String(text) => {
                if let Some(new) = self.text(text, in_result, values) {
                    *text = new;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.walk(item, in_result, values)),
            Value::Object(fields) => {
                let in_result = in_result || is_tool_result(fields);
                fields.values_mut().for_each(|field| self.walk(field, in_result, values));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns the normalised text, or `None` if nothing changes.
    fn text(&self, text: &str, in_result: bool, values: &mut Values) -> Option<String> {
        let mut new = self.mask.text(text);
        for (pattern, with) in &self.replaced {
            if let Cow::Owned(replaced) = pattern.replace_all(&new, *with) {
                new = replaced.into();
            }
        }
        if let Some(known) = if in_result { &self.known_in_results } else { &self.known }
            && let Cow::Owned(replaced) = known.replace_all(&new, |found: &Captures<'_>| self.named(found, values))
        {
            new = replaced.into();
        }
        if let Some(clock) = self.clock.as_ref().filter(|_| in_result)
            && let Cow::Owned(replaced) = clock.replace_all(&new, name("time"))
        {
            new = replaced.into();
        }
        match new {
            Cow::Owned(new) => Some(new),
            Cow::Borrowed(_) => None,
        }
    }

    /// Returns the name that replaces a matched value.
    fn named(&self, found: &Captures<'_>, values: &mut Values) -> String {
        let text = &found[0];
        if found.name("uuid").is_some() {
            return values.numbered_name("uuid", text);
        }
        if let Some(number) = found.name("number") {
            return format!("{}{}", &found["before"], values.numbered_name("hash", number.as_str()));
        }
        if found.name("hex").is_some() {
            let has = |of: fn(&u8) -> bool| text.as_bytes().iter().any(of);
            // A word without digits is not an id, so it is compared. So is a number, unless it is part of an id that is
            // known: one id in 300 begins with twelve digits.
            let is_id = has(u8::is_ascii_digit) && (has(u8::is_ascii_alphabetic) || values.has_beginning(text));
            return if is_id { values.numbered_name("hash", text) } else { text.to_owned() };
        }
        let place = self.places.iter().find(|(place, _)| place == text);
        place.map_or_else(|| name("today"), |(_, named)| named.clone())
    }
}

/// Returns `true` if the object contains the result of a tool call, in the format of any vendor.
fn is_tool_result(fields: &Map<String, Value>) -> bool {
    let text = |key: &str| fields.get(key).and_then(Value::as_str).unwrap_or_default();
    text("type") == "tool_result" || text("type").ends_with("_call_output") || text("role") == "tool"
}

/// Returns each date with the days before and after it, because an agent may work in another time zone.
fn days(dates: &[Date]) -> Vec<Date> {
    let around = |day: &Date| [Some(*day), day.checked_add(1.day()).ok(), day.checked_sub(1.day()).ok()];
    dates.iter().flat_map(around).flatten().collect()
}

/// Returns a regular expression that matches the directories, the dates and ids.
fn known_values(places: &[(String, String)], days: &[Date]) -> String {
    let mut parts: Vec<String> = places.iter().map(|(place, _)| format!(r"{}\b", regex::escape(place))).collect();
    let mut forms: Vec<String> =
        days.iter().copied().flat_map(written).map(|written| regex::escape(&written)).collect();
    if !forms.is_empty() {
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        let years: BTreeSet<String> = days.iter().map(|day| day.year().to_string()).collect();
        let years = years.into_iter().collect::<Vec<_>>().join("|");
        let (time, zone) = (
            r"(?:(?:T|,? +|, at )\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?(?: ?[AP]M)?)?",
            r"(?: ?(?:Z\b|UTC\b|[+-]\d{2}:?\d{2}\b))?",
        );
        parts.push(format!(r"\b(?:{}){time}(?: (?:{years})\b)?{zone}", forms.join("|")));
    }
    parts.push(IDS.to_owned());
    parts.join("|")
}

/// Returns a regular expression that matches times, and Unix timestamps around the given days.
fn clock_values(days: &[Date]) -> String {
    let million = |day: &Date| {
        let midnight = day.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second();
        Some([midnight / 1_000_000, (midnight + 86_400) / 1_000_000])
    };
    let millions: BTreeSet<i64> = days.iter().filter_map(million).flatten().collect();
    if millions.is_empty() {
        return CLOCK.to_owned();
    }
    let millions = millions.iter().map(ToString::to_string).collect::<Vec<_>>().join("|");
    format!(r"{CLOCK}|\b(?:{millions})\d{{6}}(?:\.\d+|\d{{3}})?\b")
}

/// Returns a date in all the forms in which programs write it.
fn written(date: Date) -> impl Iterator<Item = String> {
    const FORMS: [&str; 14] = [
        "%Y-%m-%d",
        "%Y/%m/%d",
        "%m/%d/%Y",
        "%-m/%-d/%Y",
        "%d.%m.%Y",
        "%-d.%-m.%Y",
        "%A, %B %-d, %Y",
        "%B %-d, %Y",
        "%a %b %d %Y",
        "%a %b %e",
        "%a, %d %b %Y",
        "%-d %B %Y",
        "%d %b %Y",
        "%b %e",
    ];
    FORMS.into_iter().map(move |form| date.strftime(form).to_string())
}

/// Applies a rule that changes the structure of a request.
fn apply(change: &RequestRule, body: &mut Value) {
    match change {
        RequestRule::Remove(pointer) => {
            if let Some((parent, key)) = pointer.rsplit_once('/')
                && let Some(Value::Object(fields)) = body.pointer_mut(parent)
            {
                fields.shift_remove(key);
            }
        }
        RequestRule::RemoveField(field) => remove_field(body, field),
        RequestRule::RemoveItems(pointer, start) => {
            if let Some(Value::Array(items)) = body.pointer_mut(pointer) {
                let text = |item: &Value| item["text"].as_str().unwrap_or_default().to_owned();
                items.retain(|item| !text(item).starts_with(start));
            }
        }
        RequestRule::Sort(pointer, field) => {
            if let Some(Value::Array(items)) = body.pointer_mut(pointer) {
                items.sort_by_cached_key(|item| item.pointer(field).map(ToString::to_string));
            }
        }
        RequestRule::Replace(..) => {}
    }
}

fn remove_field(value: &mut Value, field: &str) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| remove_field(item, field)),
        Value::Object(fields) => {
            fields.shift_remove(field);
            fields.values_mut().for_each(|value| remove_field(value, field));
        }
        _ => {}
    }
}
