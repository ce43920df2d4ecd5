//! Compares two texts using a diff and a list of allowed changes.

use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Node, NodeKind, Segment, rounded_number};
use serde_json::Value;

use crate::diff::{self, Coverage, Item, KINDS, Kind, Options};
use crate::found::{Flaw, Found, Pass};
use crate::host::{Host, Pattern};
use crate::meta::Meta;
use crate::notation::{REGEX_TAG, split_regex};
use crate::quick_score::QuickScore;
use crate::rules::Rules;
use crate::source_location::SourceLocation;
use crate::value;

/// Comparison of texts. By default, the kind of diff is chosen automatically, and no change is allowed.
#[derive(Debug, Clone, Default)]
pub struct TextDiff {
    kind: Option<Kind>,
    options: Options,
    items: Option<Arc<Vec<Allowed>>>,
    permissive: Option<bool>,
}

/// A change that is allowed or required.
#[derive(Debug)]
struct Allowed {
    item: Item<Arc<dyn Pattern>>,
    meta: Meta,
    written: String,
    place: SourceLocation,
}

impl TextDiff {
    /// Reads the value of `diff` in a case: `true`, a kind, a list of changes, or a map with `type`, `items`,
    /// `permissive` and the options of the kinds. Returns `None` for `false` or null.
    pub fn read(node: &Node, host: &Arc<dyn Host>, problems: &mut Problems) -> Option<Self> {
        match &node.kind {
            NodeKind::Bool(false) | NodeKind::Null => None,
            NodeKind::Bool(true) => Some(Self::default()),
            NodeKind::String(_) => {
                let kind = model::decode::choice(node, "`diff`", KINDS, problems)?;
                Some(Self { kind, ..Self::default() })
            }
            NodeKind::List(_) => Some(Self::default().with_items(node, host, problems).with_kind_of_items()),
            NodeKind::Map(_) => {
                let mut fields = Fields::of(node, "`diff`", problems)?;
                let diff = Self::from_fields(&mut fields, host, problems);
                fields.finish(problems);
                Some(diff)
            }
            NodeKind::Number(_) => {
                let message = format!("`diff` must be true, a kind, a list or a map, not {}", node.kind_name());
                problems.push(node.error(message));
                None
            }
        }
    }

    /// Reads the fields that a `diff` map and the operand of `$diff` have in common.
    pub fn from_fields(fields: &mut Fields<'_>, host: &Arc<dyn Host>, problems: &mut Problems) -> Self {
        let kind = fields.choice("type", KINDS, problems);
        let options = Options::read(fields, problems);
        let permissive = fields.boolean("permissive", problems);
        let diff = Self { kind: kind.flatten(), options, items: None, permissive };
        match fields.get("items") {
            Some(items) if kind.is_some() => diff.with_items(items, host, problems),
            Some(items) => diff.with_items(items, host, problems).with_kind_of_items(),
            None => diff,
        }
    }

    /// Returns the comparison with missing settings taken from the case: the kind, the changes, `permissive` and the
    /// options.
    pub fn or(self, case: Option<&Self>) -> Self {
        let Some(case) = case else { return self };
        Self {
            kind: self.kind.or(case.kind),
            items: self.items.or_else(|| case.items.clone()),
            permissive: self.permissive.or(case.permissive),
            options: if self.options == Options::default() { case.options.clone() } else { self.options },
        }
    }

    fn with_items(self, node: &Node, host: &Arc<dyn Host>, problems: &mut Problems) -> Self {
        let NodeKind::List(items) = &node.kind else {
            problems.push(node.error(format!("the changes must be a list, not {}", node.kind_name())));
            return self;
        };
        let items = items.iter().filter_map(|item| Allowed::read(item, host, problems)).collect();
        Self { items: Some(Arc::new(items)), ..self }
    }

    /// Returns the comparison with the default kind for its list of changes: characters, or JSON if only the leaves of
    /// JSON can have them.
    fn with_kind_of_items(self) -> Self {
        let items = self.items.as_deref().map(Vec::as_slice).unwrap_or_default();
        let items = || items.iter().map(|allowed| &allowed.item);
        let may_be_leaf = |item: &Item<_>| item.path.is_some() || item.val.is_some();
        // If a part of a text has the value of a change, its path does not count.
        let is_leaf = |item: &Item<_>| item.val.is_some() || (item.path.is_some() && item.value.is_none());
        let is_json = items().all(may_be_leaf) && items().any(is_leaf);
        Self { kind: Some(if is_json { Kind::Json } else { Kind::Chars }), ..self }
    }

    /// Compares `actual`, which is trimmed, with `expected`. Line breaks around the expected text are ignored, and so
    /// is the break at the end of a last line. Changes may be listed with or without these breaks. If `quiet` is true,
    /// no difference is computed for reports.
    pub fn judge(&self, actual: &str, expected: &str, rules: &Rules, quiet: bool, place: &SourceLocation) -> Found {
        let inner = without_outer_breaks(expected);
        let is_of_lines = self.kind.unwrap_or_else(|| diff::auto(inner, actual)) == Kind::Lines;
        let compare = |actual: &str, expected: &str| self.compare(actual, expected, rules, quiet, place);
        if self.items.is_none() || (inner == expected && !is_of_lines) {
            return compare(actual, inner);
        }
        let as_written = compare(actual, expected);
        if as_written.pass != Pass::No {
            return as_written;
        }
        let inner =
            if is_of_lines { compare(&format!("{actual}\n"), &format!("{inner}\n")) } else { compare(actual, inner) };
        if inner.pass == Pass::No && inner.score < as_written.score { as_written } else { inner }
    }

    /// Returns the score of `actual`, which is trimmed, if it certainly equals or differs from `expected`. With listed
    /// changes, the score depends on all differences.
    pub fn quick_score(&self, actual: &str, expected: &str) -> Option<QuickScore> {
        if self.items.is_some() || self.options != Options::default() {
            return None;
        }
        if actual == expected {
            return Some(QuickScore::from_bool(true));
        }
        let is_json = self.kind.unwrap_or_else(|| diff::auto(expected, actual)) == Kind::Json;
        let is_visible = |c: &char| !c.is_whitespace();
        let differ = || actual.chars().filter(is_visible).ne(expected.chars().filter(is_visible));
        (!is_json && differ()).then(|| QuickScore::from_bool(false))
    }

    fn compare(&self, actual: &str, expected: &str, rules: &Rules, quiet: bool, place: &SourceLocation) -> Found {
        let differ = |segments: Vec<Segment>| {
            let expected = Value::from(expected);
            let flaw = Flaw::new(place, format!("expected {}", value::shown(Some(&expected)))).diff(segments);
            Found::flawed(flaw.expected(expected).actual(Some(&actual.into())))
        };
        // If the texts differ, so do their characters. The diff is not computed if it is not needed.
        let plain = self.items.is_none() && self.options == Options::default();
        let kind = self.kind.unwrap_or_else(|| diff::auto(expected, actual));
        if quiet && plain && kind == Kind::Chars && actual != expected {
            return differ(Vec::new());
        }
        let diff = diff::diff(expected, actual, self.kind, &self.options);
        if diff.kind == Kind::Json && actual != expected && (self.items.is_some() || !diff.has_changes()) {
            // Two numbers of more than 64 bits can be different though their known digits are the same.
            let rounded = |text: &str| serde_json::from_str(text).ok().filter(|json| rounded_number(json).is_some());
            if let (Some(_), Some(read)) = (rounded(expected), rounded(actual)) {
                return Found::rounded(Some(&read), place);
            }
        }
        match &self.items {
            Some(items) => {
                let flaw = |message: String| {
                    let flaw = Flaw::new(place, message).expected(expected.into()).actual(Some(&actual.into()));
                    flaw.diff(draw(&diff, quiet))
                };
                self.with_allowed(&diff, items, rules, place, &flaw)
            }
            None if diff.has_changes() => differ(draw(&diff, quiet)),
            None => Found::full(),
        }
    }

    /// Judges `diff` according to the allowed changes. `flaw` creates a mismatch with a message.
    fn with_allowed(
        &self,
        diff: &diff::Diff,
        allowed: &[Allowed],
        rules: &Rules,
        place: &SourceLocation,
        flaw: &dyn Fn(String) -> Flaw,
    ) -> Found {
        let permissive = self.permissive.or(rules.diff_permissive).unwrap_or_default();
        let items: Vec<Item<Arc<dyn Pattern>>> = allowed.iter().map(|allowed| allowed.item.clone()).collect();
        let mut matches = |pattern: &Arc<dyn Pattern>, text: &str| pattern.is_match(text);
        let coverage = match diff::cover(diff, &items, permissive, rules.strict.diff, &mut matches) {
            Ok(coverage) => coverage,
            Err(stopped) => return Found::unknown(Flaw::new(place, stopped)),
        };
        let mut found = Found::scored(score(allowed, &coverage, rules), Pass::from_bool(coverage.passes()));
        if !coverage.passes() {
            found.flaws.push(flaw(reason(allowed, &coverage)));
        }
        for (allowed, covered) in allowed.iter().zip(&coverage.covered) {
            let is_penalty = allowed.meta.weight.is_some_and(|weight| weight < 0.0);
            if allowed.meta.critical && *covered == is_penalty {
                let message = allowed.meta.title.clone().unwrap_or_else(|| {
                    let how = if is_penalty { "exists but must not" } else { "is missing" };
                    format!("the change {} {how}", allowed.written)
                });
                found.pass = Pass::No;
                found.flaws.push(Flaw { critical: true, place: allowed.place.clone(), ..flaw(message) });
            }
        }
        found
    }
}

/// Returns the difference between two texts for reports, or nothing if it is not needed.
fn draw(diff: &diff::Diff, quiet: bool) -> Vec<Segment> {
    /// Maximum length of a stored diff, in characters.
    const MAX_DIFF_CHARS: usize = 2_000;
    if quiet { Vec::new() } else { diff::drawn(diff, MAX_DIFF_CHARS) }
}

/// Removes the line breaks around `text`, because a text block in a file ends with an unintended line break.
fn without_outer_breaks(text: &str) -> &str {
    let (start, end) = (text.trim_start(), text.trim_end());
    let begins_with_one = text[..text.len() - start.len()].contains('\n');
    let ends_in_one = text[end.len()..].contains('\n');
    let text = if ends_in_one { end } else { text };
    if begins_with_one { text.trim_start() } else { text }
}

/// Returns the score for the covered items and for the absence of other changes.
fn score(allowed: &[Allowed], coverage: &Coverage, rules: &Rules) -> f64 {
    let mut weights: Vec<Option<f64>> = allowed.iter().map(|allowed| allowed.meta.weight).collect();
    if coverage.closed {
        weights.push(None);
    }
    if weights.is_empty() {
        return 1.0;
    }
    let shares = rules.budget.together(&weights);
    let covered = coverage.covered.iter().copied().chain(coverage.closed.then_some(coverage.uncovered.is_empty()));
    shares.iter().zip(covered).filter(|(_, covered)| *covered).map(|(share, _)| share).sum()
}

fn reason(allowed: &[Allowed], coverage: &Coverage) -> String {
    let mut reasons = Vec::new();
    if coverage.closed && !coverage.uncovered.is_empty() {
        reasons.push("there are changes that are not listed".to_owned());
    }
    if !coverage.missed.is_empty() {
        let missed =
            coverage.missed.iter().filter_map(|index| allowed.get(*index)).map(|allowed| allowed.written.as_str());
        reasons.push(format!("listed changes are missing: {}", missed.collect::<Vec<_>>().join(", ")));
    }
    reasons.join("; ")
}

impl Allowed {
    fn read(node: &Node, host: &Arc<dyn Host>, problems: &mut Problems) -> Option<Self> {
        let meta = Meta::read(node, true, problems);
        let mut fields = Fields::of(node, "a listed change", problems)?;
        let mut item = Item::default();
        let mut written = String::new();
        if let Some(value) = fields.get("value").filter(|value| !matches!(value.kind, NodeKind::Null)) {
            written = value::shown(Some(&value.to_json()));
            item.value = pattern(value, host, problems);
        }
        if let Some(path) = fields.get("path") {
            written = format!("{} {written}", value::shown(Some(&path.to_json()))).trim_end().to_owned();
            item.path = pattern(path, host, problems);
        }
        item.val = fields.get("val").map(Node::to_json);
        item.added = fields.boolean("added", problems);
        item.removed = fields.boolean("removed", problems);
        item.required = fields.boolean("required", problems).unwrap_or_default();
        for known in crate::meta::SHORTHANDS.iter().chain([&crate::meta::CONTAINER]) {
            fields.get(known);
        }
        fields.finish(problems);
        let sign = match (item.added, item.removed) {
            (Some(true), _) => "+",
            (_, Some(true)) => "-",
            _ => "",
        };
        Some(Self { item, meta, written: format!("{sign}{written}"), place: SourceLocation::from_node(node) })
    }
}

/// Reads a string or a regular expression. Any other value is converted to JSON.
fn pattern(node: &Node, host: &Arc<dyn Host>, problems: &mut Problems) -> Option<diff::Pattern<Arc<dyn Pattern>>> {
    let json = node.to_json();
    let text = value::text(&json);
    let tagged = node.tag.as_deref() == Some(REGEX_TAG);
    let regex = split_regex(&text).or_else(|| tagged.then_some((&*text, "")));
    let Some((source, flags)) = regex else { return Some(diff::Pattern::Text(text.into_owned())) };
    match host.regex(source, flags) {
        Ok(pattern) => Some(diff::Pattern::Regex(pattern)),
        Err(invalid) => {
            problems.push(invalid.diagnostic(node));
            None
        }
    }
}
