//! Abridged diff for display: the changes with a little context.

use model::Segment;

use super::{Diff, Kind, Part};

/// Number of characters shown on each side of a change.
const AROUND: usize = 32;
/// Number of lines shown on each side of a change if lines are compared.
const LINES_AROUND: usize = 2;
/// Divisor of the limit that gives the maximum length of one change, so that both a removal and the addition that
/// replaces it are visible.
const SHARE: usize = 3;
/// Marker of omitted text.
const CUT: &str = "…";

/// Returns the changes in `diff` with a little context, in at most `limit` characters. Unchanged text is cut where it
/// is far from changes, a long change is cut in the middle, and the rest is omitted when the limit is reached. Each
/// omission is marked with `…`. Returns nothing if there are no changes.
pub fn drawn(diff: &Diff, limit: usize) -> Vec<Segment> {
    if !diff.has_changes() {
        return Vec::new();
    }
    let mut drawing = Drawing { segments: Vec::new(), left: limit };
    let last = diff.parts.len() - 1;
    for (index, part) in diff.parts.iter().enumerate() {
        let (kind, text) = match (part.added, part.removed) {
            (true, _) => (model::Part::Extra, shortened(&part.value, (limit / SHARE).max(1))),
            (_, true) => (model::Part::Missing, shortened(&part.value, (limit / SHARE).max(1))),
            _ => (model::Part::Same, context(part, diff.kind, index == 0, index == last)),
        };
        let text = if diff.kind == Kind::Json && index < last { format!("{text}\n") } else { text };
        if !drawing.put(kind, &text) {
            break;
        }
    }
    drawing.segments
}

struct Drawing {
    segments: Vec<Segment>,
    /// Number of characters that are left.
    left: usize,
}

impl Drawing {
    /// Adds `text`, and returns true if all of it fits. Otherwise, its beginning and `…` fill the remaining space.
    fn put(&mut self, part: model::Part, text: &str) -> bool {
        let length = text.chars().take(self.left.saturating_add(1)).count();
        let fits = length <= self.left;
        let text = if fits { text.to_owned() } else { beginning(text, self.left) };
        self.left -= length.min(self.left);
        if !text.is_empty() {
            self.segments.push(Segment { part, text });
        } else if !fits {
            self.mark_cut();
        }
        fits
    }

    /// Marks an omission even if there is no space for the marker.
    fn mark_cut(&mut self) {
        let Some(last) = self.segments.last_mut() else { return };
        if !last.text.ends_with(CUT) {
            last.text.pop();
            last.text.push_str(CUT);
        }
    }
}

/// Returns the first characters of `text` and `…`, with a total length of `length`.
fn beginning(text: &str, length: usize) -> String {
    match length.checked_sub(CUT.chars().count()) {
        None => String::new(),
        Some(kept) => text.chars().take(kept).chain(CUT.chars()).collect(),
    }
}

/// Returns `text` in at most `length` characters, omitting its middle if necessary.
fn shortened(text: &str, length: usize) -> String {
    if text.chars().nth(length).is_none() {
        return text.to_owned();
    }
    let kept = length.saturating_sub(CUT.chars().count());
    let (head, tail) = (kept - kept / 2, kept / 2);
    format!("{}{CUT}{}", &text[..after_chars(text, head)], &text[before_chars(text, tail)..])
}

/// Returns the part of unchanged text that is near a change.
fn context(part: &Part, kind: Kind, is_first: bool, is_last: bool) -> String {
    let text = part.value.as_str();
    let lines = kind == Kind::Lines;
    let head = match (is_first, lines) {
        (true, _) => 0,
        (_, true) => after_lines(text, LINES_AROUND),
        (_, false) => after_chars(text, AROUND),
    };
    let tail = match (is_last, lines) {
        (true, _) => text.len(),
        (_, true) => before_lines(text, LINES_AROUND),
        (_, false) => before_chars(text, AROUND),
    };
    if head >= tail {
        return text.to_owned();
    }
    let end = if lines && !is_last { "\n" } else { "" };
    format!("{}{CUT}{end}{}", &text[..head], &text[tail..])
}

/// Returns the byte offset of the end of the first `count` characters.
fn after_chars(text: &str, count: usize) -> usize {
    text.char_indices().nth(count).map_or(text.len(), |(offset, _)| offset)
}

/// Returns the byte offset of the start of the last `count` characters.
fn before_chars(text: &str, count: usize) -> usize {
    count.checked_sub(1).map_or(text.len(), |last| text.char_indices().rev().nth(last).map_or(0, |(offset, _)| offset))
}

/// Returns the byte offset of the end of the first `count` lines.
fn after_lines(text: &str, count: usize) -> usize {
    let last = count.checked_sub(1);
    last.map_or(0, |last| text.match_indices('\n').nth(last).map_or(text.len(), |(offset, _)| offset + 1))
}

/// Returns the byte offset of the start of the last `count` lines.
fn before_lines(text: &str, count: usize) -> usize {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let last = count.checked_sub(1);
    last.map_or(text.len(), |last| body.rmatch_indices('\n').nth(last).map_or(0, |(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use super::super::{Options, diff};
    use super::*;

    fn of(expected: &str, actual: &str, kind: Kind, limit: usize) -> String {
        let mark = |segment: &Segment| match segment.part {
            model::Part::Same => segment.text.clone(),
            model::Part::Missing => format!("[-{}-]", segment.text),
            model::Part::Extra => format!("{{+{}+}}", segment.text),
        };
        drawn(&diff(expected, actual, Some(kind), &Options::default()), limit).iter().map(mark).collect()
    }

    #[test]
    fn equal_texts_produce_an_empty_diff() {
        assert_eq!(of("a", "a", Kind::Chars, 100), "");
    }

    #[test]
    fn text_far_from_a_change_is_omitted() {
        let words = |count| "word ".repeat(count);
        let (expected, actual) =
            (format!("{}red {}", words(20), words(20)), format!("{}blue {}", words(20), words(20)));
        assert_eq!(
            of(&expected, &actual, Kind::Words, 500),
            "…d word word word word word word [-red-]{+blue+} word word word word word word w…"
        );
        assert_eq!(of("a red b", "a blue b", Kind::Words, 500), "a [-red-]{+blue+} b");
    }

    #[test]
    fn line_diffs_omit_whole_lines() {
        let expected: String = (1..=12).map(|number| format!("line {number}\n")).collect();
        let actual = expected.replace("line 6\n", "line six\n").replace("line 12\n", "");
        assert_eq!(
            of(&expected, &actual, Kind::Lines, 500),
            "…\nline 4\nline 5\n[-line 6\n-]{+line six\n+}line 7\nline 8\n…\nline 10\nline 11\n[-line 12\n-]"
        );
        let actual = expected.replace("line 1\n", "");
        assert_eq!(of(&expected, &actual, Kind::Lines, 500), "[-line 1\n-]line 2\nline 3\n…");
    }

    #[test]
    fn a_long_change_leaves_room_for_the_next_one() {
        let (expected, actual) = ("a".repeat(100), "b".repeat(100));
        assert_eq!(of(&expected, &actual, Kind::Chars, 15), "[-aa…aa-]{+bb…bb+}");
        assert_eq!(of("日本語日本語日本語", "x", Kind::Chars, 9), "[-日…語-]{+x+}");
    }

    #[test]
    fn omitted_text_is_marked() {
        assert_eq!(of("a1b2c3d4", "a5b6c7d8", Kind::Chars, 5), "a[-1-]{+5+}b[-…-]");
        assert_eq!(of("abcd-", "abcd", Kind::Chars, 4), "abc…");
        assert_eq!(of("a", "b", Kind::Chars, 0), "");
    }

    #[test]
    fn each_json_leaf_has_its_own_line() {
        assert_eq!(of("{\"a\":1,\"b\":2}", "{\"a\":3}", Kind::Json, 500), "[-a: 1\n-]{+a: 3\n+}[-b: 2-]");
    }
}
