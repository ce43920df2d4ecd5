//! Determines which changes a list of allowed changes covers.

use serde_json::Value;

use super::spaces::trimmed;
use super::{Diff, Part};
use crate::value::same;

/// Pattern for a string: an exact string, or an expression that the caller evaluates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern<R> {
    /// An exact text.
    Text(String),
    /// An expression.
    Regex(R),
}

/// A part that may or must occur in a diff. Absent fields are not compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Item<R> {
    /// Text of the part.
    pub value: Option<Pattern<R>>,
    /// Path of the leaf, in JSON.
    pub path: Option<Pattern<R>>,
    /// Value of the leaf, in JSON.
    pub val: Option<Value>,
    /// True if only the actual text has the part.
    pub added: Option<bool>,
    /// True if only the expected text has the part.
    pub removed: Option<bool>,
    /// True if at least one part must be covered by this item.
    pub required: bool,
}

impl<R> Default for Item<R> {
    fn default() -> Self {
        Self { value: None, path: None, val: None, added: None, removed: None, required: false }
    }
}

/// Result of applying a list of items to a diff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coverage {
    /// For each item, true if it covers some part, changed or not.
    pub covered: Vec<bool>,
    /// Indices in [`Diff::parts`] of the changes that no item covers.
    pub uncovered: Vec<usize>,
    /// Indices of the items that should have covered a part and did not: the required ones, or all of them if strict.
    pub missed: Vec<usize>,
    /// True if uncovered changes are an error: unless permissive, and always if strict. "No other changes" is then
    /// scored like another item.
    pub closed: bool,
}

impl Coverage {
    /// Returns `true` if the diff meets the requirements of the items.
    pub fn passes(&self) -> bool {
        self.missed.is_empty() && (!self.closed || self.uncovered.is_empty())
    }
}

/// Determines which parts of `diff` the `items` cover. One item may cover several parts, and several items may cover
/// the same part.
///
/// `permissive` allows changes that no item covers. `strict` overrides it, and requires every item to cover a part.
/// `matches` evaluates an expression on a string.
///
/// An item covers a part if all its fields agree with the part. The text of an item is compared with the part after
/// trimming white space from both. An expression is tried on the part, on the part without its last line end, and on
/// the part without white space at both ends. An item with `added` or `removed` never covers a part that both texts
/// have. An item with neither can cover such a part.
///
/// # Errors
///
/// Returns the first error from `matches`.
pub fn cover<R, E>(
    diff: &Diff,
    items: &[Item<R>],
    permissive: bool,
    strict: bool,
    matches: &mut dyn FnMut(&R, &str) -> Result<bool, E>,
) -> Result<Coverage, E> {
    let mut covered = vec![false; items.len()];
    let mut uncovered = Vec::new();
    for (index, part) in diff.parts.iter().enumerate() {
        let mut accounted = !part.is_change();
        for (item, covered) in items.iter().zip(&mut covered) {
            // A part that is already covered matters only to items that have not covered anything yet.
            if (accounted && *covered) || !item.covers(part, matches)? {
                continue;
            }
            *covered = true;
            accounted = true;
        }
        if !accounted {
            uncovered.push(index);
        }
    }
    let wanted = items.iter().zip(&covered).enumerate();
    let missed = wanted.filter(|(_, (item, covered))| !**covered && (strict || item.required));
    let missed = missed.map(|(at, _)| at).collect();
    Ok(Coverage { covered, uncovered, missed, closed: strict || !permissive })
}

impl<R> Item<R> {
    fn covers<E>(&self, part: &Part, matches: &mut dyn FnMut(&R, &str) -> Result<bool, E>) -> Result<bool, E> {
        let wants_change = self.added == Some(true) || self.removed == Some(true);
        let flags_agree = self.added.is_none_or(|added| added == part.added)
            && self.removed.is_none_or(|removed| removed == part.removed);
        if (wants_change && !part.is_change()) || !flags_agree {
            return Ok(false);
        }
        if let Some(val) = &self.val
            && !part.val.as_ref().is_some_and(|leaf| same(val, leaf))
        {
            return Ok(false);
        }
        if let Some(path) = &self.path
            && !path_agrees(path, part, self.value.is_some(), matches)?
        {
            return Ok(false);
        }
        match &self.value {
            None => Ok(true),
            Some(value) => text_agrees(value, &part.value, matches),
        }
    }
}

/// Returns `true` if the path agrees. A part of plain text has no path; then the text decides, if one is given.
fn path_agrees<R, E>(
    path: &Pattern<R>,
    part: &Part,
    has_text: bool,
    matches: &mut dyn FnMut(&R, &str) -> Result<bool, E>,
) -> Result<bool, E> {
    match (path, &part.path) {
        (_, None) => Ok(has_text),
        (Pattern::Text(wanted), Some(found)) => Ok(wanted == found),
        (Pattern::Regex(wanted), Some(found)) => matches(wanted, found),
    }
}

fn text_agrees<R, E>(
    wanted: &Pattern<R>,
    found: &str,
    matches: &mut dyn FnMut(&R, &str) -> Result<bool, E>,
) -> Result<bool, E> {
    let expression = match wanted {
        Pattern::Text(text) => return Ok(trimmed(text) == trimmed(found)),
        Pattern::Regex(expression) => expression,
    };
    let line = found.strip_suffix('\n').map_or(found, |line| line.strip_suffix('\r').unwrap_or(line));
    let forms = [found, line, trimmed(found)];
    for (index, form) in forms.iter().enumerate() {
        if !forms[..index].contains(form) && matches(expression, form)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{Kind, Options, diff};
    use super::*;

    /// Tests whether a string occurs in another. The string `?` causes an error.
    fn found_in(wanted: &&'static str, text: &str) -> Result<bool, &'static str> {
        if *wanted == "?" { Err("no answer") } else { Ok(text.contains(wanted)) }
    }

    fn of(expected: &str, actual: &str, kind: Kind) -> Diff {
        diff(expected, actual, Some(kind), &Options::default())
    }

    fn covered(diff: &Diff, items: &[Item<&'static str>]) -> Coverage {
        cover(diff, items, false, false, &mut found_in).unwrap()
    }

    fn text(value: &str) -> Item<&'static str> {
        Item { value: Some(Pattern::Text(value.to_owned())), ..Item::default() }
    }

    fn added(item: Item<&'static str>) -> Item<&'static str> {
        Item { added: Some(true), ..item }
    }

    fn removed(item: Item<&'static str>) -> Item<&'static str> {
        Item { removed: Some(true), ..item }
    }

    fn required(item: Item<&'static str>) -> Item<&'static str> {
        Item { required: true, ..item }
    }

    #[test]
    fn changes_that_no_item_covers_fail_unless_permissive() {
        let found = of("the red fox", "the brown fox", Kind::Words);
        let both = covered(&found, &[added(text("brown")), removed(text("red"))]);
        assert!(both.passes() && both.covered == [true, true] && both.closed);
        let one = [added(text("brown"))];
        let coverage = covered(&found, &one);
        assert_eq!((coverage.passes(), coverage.uncovered.as_slice()), (false, &[1][..]));
        let coverage = cover(&found, &one, true, false, &mut found_in).unwrap();
        assert!(coverage.passes() && !coverage.closed && coverage.uncovered == [1]);
    }

    #[test]
    fn strict_overrides_permissive_and_requires_every_item() {
        let found = of("abc", "abXc", Kind::Chars);
        let items = [added(text("X")), removed(text("Y"))];
        assert!(covered(&found, &items).passes());
        let coverage = cover(&found, &items, true, true, &mut found_in).unwrap();
        assert_eq!((coverage.passes(), coverage.missed.as_slice(), coverage.closed), (false, &[1][..], true));
        let coverage = cover(&found, &[], true, true, &mut found_in).unwrap();
        assert!(!coverage.passes(), "X is uncovered");
    }

    #[test]
    fn a_required_item_must_cover_something() {
        let found = of("abc", "abc", Kind::Chars);
        assert!(covered(&found, &[added(text("X"))]).passes());
        assert_eq!(covered(&found, &[added(text("")), required(added(text("X")))]).missed, [1]);
    }

    #[test]
    fn an_item_without_flags_covers_common_parts() {
        let found = of("abc", "abXc", Kind::Chars);
        assert!(covered(&found, &[required(text("ab")), required(text("X"))]).passes());
        let not_added = Item { added: Some(false), ..text("ab") };
        assert!(covered(&found, &[not_added]).covered[0]);
        assert!(!covered(&found, &[added(text("ab"))]).covered[0]);
    }

    #[test]
    fn a_string_matches_the_part_its_line_or_its_trimmed_form() {
        let found = of("1\n", "1\n  two\r\n", Kind::Lines);
        for wanted in ["  two\r\n", "  two", "two", "two\n", " two "] {
            assert!(covered(&found, &[text(wanted)]).passes(), "{wanted:?}");
        }
        for wanted in ["tw", "", "t wo"] {
            assert!(!covered(&found, &[text(wanted)]).passes(), "{wanted:?}");
        }
        let expression = Item { value: Some(Pattern::Regex("tw")), ..Item::default() };
        assert!(covered(&found, &[expression]).passes());
    }

    #[test]
    fn a_leaf_is_identified_by_its_path_and_its_value() {
        let found = of(r#"{"a":2,"b":{"c":[1]}}"#, r#"{"a":1,"b":{"c":[3]}}"#, Kind::Json);
        let at = |path: &str| Item { path: Some(Pattern::Text(path.to_owned())), ..Item::default() };
        let holding = |path: &str, val: Value| Item { val: Some(val), ..at(path) };
        let below = Item { path: Some(Pattern::Regex("b.")), ..Item::default() };
        assert!(covered(&found, &[at("a"), below.clone()]).passes());
        assert!(covered(&found, &[added(holding("a", json!(1.0))), removed(holding("a", json!(2))), below]).passes());
        assert_eq!(covered(&found, &[added(holding("a", json!(2)))]).covered, [false]);
        let written = Item { value: Some(Pattern::Text("a: 1".to_owned())), ..at("a") };
        assert_eq!(covered(&found, &[written]).uncovered.len(), 3);
        let anywhere = Item { val: Some(json!(3)), ..Item::default() };
        assert_eq!(covered(&found, &[anywhere]).uncovered.len(), 3);
    }

    #[test]
    fn a_path_covers_plain_text_only_if_the_item_has_text() {
        let found = of("abc", "abXc", Kind::Chars);
        let path = Some(Pattern::Text("a".to_owned()));
        assert!(!covered(&found, &[Item { path: path.clone(), ..Item::default() }]).passes());
        assert!(covered(&found, &[Item { path, ..text("X") }]).passes());
        let held = Item { val: Some(json!("X")), ..Item::default() };
        assert!(!covered(&found, &[held]).passes());
    }

    #[test]
    fn an_undecidable_expression_is_an_error() {
        let found = of("abc", "abXc", Kind::Chars);
        let endless = Item { value: Some(Pattern::Regex("?")), ..Item::default() };
        assert_eq!(cover(&found, &[endless], false, false, &mut found_in), Err("no answer"));
    }
}
