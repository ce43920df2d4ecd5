//! Compares two texts by a diff and a list of allowed changes.

use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Node, NodeKind, Part, Segment};
use serde_json::Value;

use crate::compile::{Compiler, REGEX_TAG, refused, split_regex};
use crate::diff::{self, Coverage, Item, KINDS, Kind, Options};
use crate::found::{Flaw, Found, Pass};
use crate::host::Pattern;
use crate::matcher::At;
use crate::meta::Meta;
use crate::place::Place;
use crate::value;

/// Comparison of texts. By default, the kind of diff is chosen automatically, and no change is allowed.
#[derive(Debug, Clone, Default)]
pub struct TextDiff {
    kind: Option<Kind>,
    options: Options,
    items: Option<Arc<Vec<Allowed>>>,
    permissive: Option<bool>,
}

/// Change that is allowed or required.
#[derive(Debug)]
struct Allowed {
    item: Item<Arc<dyn Pattern>>,
    meta: Meta,
    written: String,
    place: Place,
}

impl TextDiff {
    /// Reads the value of `diff` in a case: `true`, a kind, a list of changes, or a map of `type`, `items`,
    /// `permissive` and the options of the kinds. Returns `None` for `false` or null.
    pub fn read(node: &Node, compiler: &mut Compiler<'_>) -> Option<Self> {
        match &node.kind {
            NodeKind::Bool(false) | NodeKind::Null => None,
            NodeKind::Bool(true) => Some(Self::default()),
            NodeKind::String(_) => {
                let kind = model::decode::choice(node, "`diff`", KINDS, compiler.problems)?;
                Some(Self { kind, ..Self::default() })
            }
            NodeKind::List(_) => Some(Self { kind: Some(Kind::Chars), ..Self::default() }.with_items(node, compiler)),
            NodeKind::Map(_) => {
                let mut problems = Problems::new();
                let read = Fields::of(node, "`diff`", &mut problems).map(|mut fields| {
                    let diff = Self::of_fields(&mut fields, compiler);
                    fields.finish(&mut problems);
                    diff
                });
                compiler.problems.extend(problems);
                read
            }
            NodeKind::Number(_) => {
                compiler.problems.push(
                    node.error(format!("`diff` must be true, a kind, a list or a map, not {}", node.kind_name())),
                );
                None
            }
        }
    }

    /// Reads the fields that a `diff` map and the operand of `$diff` have in common.
    pub fn of_fields(fields: &mut Fields<'_>, compiler: &mut Compiler<'_>) -> Self {
        let kind = fields.choice("type", KINDS, compiler.problems);
        let options = Options::read(fields, compiler.problems);
        let permissive = fields.boolean("permissive", compiler.problems);
        let diff = Self { kind: kind.flatten(), options, items: None, permissive };
        match fields.get("items") {
            // With a list of changes, the default kind is characters.
            Some(items) => {
                let kind = if kind.is_some() { diff.kind } else { Some(Kind::Chars) };
                Self { kind, ..diff }.with_items(items, compiler)
            }
            None => diff,
        }
    }

    /// Returns the comparison with absent settings taken from the case: the kind, the changes, `permissive` and the
    /// options.
    pub fn or(self, case: Option<&Self>) -> Self {
        let Some(case) = case else { return self };
        let says_kind = self.kind.is_some();
        Self {
            kind: if says_kind { self.kind } else { case.kind },
            items: self.items.or_else(|| case.items.clone()),
            permissive: self.permissive.or(case.permissive),
            options: if self.options == Options::default() { case.options.clone() } else { self.options },
        }
    }

    fn with_items(self, node: &Node, compiler: &mut Compiler<'_>) -> Self {
        let NodeKind::List(items) = &node.kind else {
            compiler.problems.push(node.error(format!("the changes must be a list, not {}", node.kind_name())));
            return self;
        };
        let items = items.iter().filter_map(|item| Allowed::read(item, compiler)).collect();
        Self { items: Some(Arc::new(items)), ..self }
    }

    /// Compares `actual`, which is trimmed, with `expected`. Line breaks around the expected text do not count, and
    /// neither does the break at the end of a last line. Changes may be listed with these breaks or without.
    pub fn judge(&self, actual: &str, expected: &str, at: &At<'_>, place: &Place) -> Found {
        let inner = without_outer_breaks(expected);
        let is_of_lines = self.kind.unwrap_or_else(|| diff::auto(inner, actual)) == Kind::Lines;
        if self.items.is_none() || (inner == expected && !is_of_lines) {
            return self.compare(actual, inner, at, place);
        }
        let as_written = self.compare(actual, expected, at, place);
        if as_written.pass != Pass::No {
            return as_written;
        }
        let inner = if is_of_lines {
            self.compare(&format!("{actual}\n"), &format!("{inner}\n"), at, place)
        } else {
            self.compare(actual, inner, at, place)
        };
        if inner.pass == Pass::No && inner.score < as_written.score { as_written } else { inner }
    }

    fn compare(&self, actual: &str, expected: &str, at: &At<'_>, place: &Place) -> Found {
        let differ = |segments: Vec<Segment>| {
            let expected = Value::from(expected);
            let flaw = Flaw::new(place, format!("expected {}", value::shown(Some(&expected)))).diff(segments);
            Found::flawed(flaw.expected(expected).actual(Some(&actual.into())))
        };
        // If the texts differ, so do their characters. The diff is not computed if it is not needed.
        let plain = self.items.is_none() && self.options == Options::default();
        let kind = self.kind.unwrap_or_else(|| diff::auto(expected, actual));
        if at.quiet && plain && kind == Kind::Chars && actual != expected {
            return differ(Vec::new());
        }
        let diff = diff::diff(expected, actual, self.kind, &self.options);
        match &self.items {
            Some(items) => self.with_allowed(&diff, items, (actual, expected), at, place),
            None if diff.has_changes() => differ(drawn(&diff, at)),
            None => Found::full(),
        }
    }

    fn with_allowed(
        &self,
        diff: &diff::Diff,
        allowed: &[Allowed],
        (actual, expected): (&str, &str),
        at: &At<'_>,
        place: &Place,
    ) -> Found {
        let permissive = self.permissive.or(at.run.rules.diff_permissive).unwrap_or_default();
        let items: Vec<Item<Arc<dyn Pattern>>> = allowed.iter().map(|allowed| allowed.item.clone()).collect();
        let mut matches = |pattern: &Arc<dyn Pattern>, text: &str| pattern.is_match(text);
        let coverage = match diff::cover(diff, &items, permissive, at.run.rules.strict.diff, &mut matches) {
            Ok(coverage) => coverage,
            Err(stopped) => return Found::unknown(Flaw::new(place, stopped)),
        };
        let mut found = Found::scored(score(allowed, &coverage, at), Pass::of(coverage.passes()));
        let flaw = |message: String| {
            let flaw = Flaw::new(place, message).expected(expected.into()).actual(Some(&actual.into()));
            flaw.diff(drawn(diff, at))
        };
        if !coverage.passes() {
            found.flaws.push(flaw(because(allowed, &coverage)));
        }
        for (allowed, covered) in allowed.iter().zip(&coverage.covered) {
            let is_penalty = allowed.meta.weight.is_some_and(|weight| weight < 0.0);
            if allowed.meta.critical && *covered == is_penalty {
                let message = allowed.meta.title.clone().unwrap_or_else(|| {
                    let how = if is_penalty { "is there and must not be" } else { "is not there" };
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
fn drawn(diff: &diff::Diff, at: &At<'_>) -> Vec<Segment> {
    /// Maximum length of a stored diff, in characters.
    const MOST: usize = 2_000;
    let segment = |segment: diff::Segment| Segment {
        part: match segment.change {
            diff::Change::Equal => Part::Same,
            diff::Change::Removed => Part::Missing,
            diff::Change::Added => Part::Extra,
        },
        text: segment.text,
    };
    if at.quiet { Vec::new() } else { diff::drawn(diff, MOST).into_iter().map(segment).collect() }
}

/// Removes the line breaks around `text`, because a text block in a file ends with a line break that is not intended.
fn without_outer_breaks(text: &str) -> &str {
    let (start, end) = (text.trim_start(), text.trim_end());
    let begins_with_one = text[..text.len() - start.len()].contains('\n');
    let ends_in_one = text[end.len()..].contains('\n');
    let text = if ends_in_one { end } else { text };
    if begins_with_one { text.trim_start() } else { text }
}

/// Returns the score of the covered items and of the absence of other changes.
fn score(allowed: &[Allowed], coverage: &Coverage, at: &At<'_>) -> f64 {
    let mut weights: Vec<Option<f64>> = allowed.iter().map(|allowed| allowed.meta.weight).collect();
    if coverage.closed {
        weights.push(None);
    }
    if weights.is_empty() {
        return 1.0;
    }
    let shares = at.run.rules.budget.together(&weights);
    let covered = coverage.covered.iter().copied().chain(coverage.closed.then_some(coverage.uncovered.is_empty()));
    shares.iter().zip(covered).filter(|(_, covered)| *covered).map(|(share, _)| share).sum()
}

fn because(allowed: &[Allowed], coverage: &Coverage) -> String {
    let mut told = Vec::new();
    if coverage.closed && !coverage.uncovered.is_empty() {
        told.push("there are changes that are not listed".to_owned());
    }
    if !coverage.missed.is_empty() {
        let missed = coverage.missed.iter().filter_map(|at| allowed.get(*at)).map(|allowed| allowed.written.as_str());
        told.push(format!("listed changes are missing: {}", missed.collect::<Vec<_>>().join(", ")));
    }
    told.join("; ")
}

impl Allowed {
    fn read(node: &Node, compiler: &mut Compiler<'_>) -> Option<Self> {
        let meta = Meta::read(node, true, compiler.problems);
        let mut fields = Fields::of(node, "a listed change", compiler.problems)?;
        let mut item = Item::default();
        let mut written = String::new();
        if let Some(value) = fields.get("value").filter(|value| !matches!(value.kind, NodeKind::Null)) {
            written = value::shown(Some(&value.to_json()));
            item.value = pattern(value, compiler);
        }
        if let Some(path) = fields.get("path") {
            written = format!("{} {written}", value::shown(Some(&path.to_json()))).trim_end().to_owned();
            item.path = pattern(path, compiler);
        }
        item.val = fields.get("val").map(Node::to_json);
        item.added = fields.boolean("added", compiler.problems);
        item.removed = fields.boolean("removed", compiler.problems);
        item.required = fields.boolean("required", compiler.problems).unwrap_or_default();
        for known in crate::meta::SHORTHANDS.iter().chain([&crate::meta::CONTAINER]) {
            fields.get(known);
        }
        fields.finish(compiler.problems);
        let sign = match (item.added, item.removed) {
            (Some(true), _) => "+",
            (_, Some(true)) => "-",
            _ => "",
        };
        Some(Self { item, meta, written: format!("{sign}{written}"), place: Place::of(node) })
    }
}

/// Reads a text or a regular expression. Any other value is converted to JSON.
fn pattern(node: &Node, compiler: &mut Compiler<'_>) -> Option<diff::Pattern<Arc<dyn Pattern>>> {
    let json = node.to_json();
    let text = value::text(&json);
    let tagged = node.tag.as_deref() == Some(REGEX_TAG);
    let regex = split_regex(&text).or_else(|| tagged.then_some((&*text, "")));
    let Some((source, flags)) = regex else { return Some(diff::Pattern::Text(text.into_owned())) };
    match compiler.host.regex(source, flags) {
        Ok(pattern) => Some(diff::Pattern::Regex(pattern)),
        Err(invalid) => {
            compiler.problems.push(refused(node, &invalid));
            None
        }
    }
}

/// Returns the text of a value for a diff, trimmed like every compared text.
pub fn text_of(actual: Option<&Value>) -> Option<&str> {
    match actual {
        Some(Value::String(text)) => Some(text.trim()),
        _ => None,
    }
}
