//! White space as defined by ECMAScript, and its distribution over the parts of a word diff.

use super::Part;

/// Returns `true` if `\s` matches the character.
pub(super) fn is_space(c: char) -> bool {
    // Unicode's White_Space contains NEXT LINE, where ECMAScript's contains the byte order mark.
    c == '\u{feff}' || (c.is_whitespace() && c != '\u{85}')
}

/// Trims white space from both ends.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(is_space)
}

fn leading(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(is_space).len()]
}

fn trailing(text: &str) -> &str {
    &text[text.trim_end_matches(is_space).len()..]
}

/// Parts between two unchanged parts.
#[derive(Default)]
struct Gap {
    before: Option<usize>,
    removed: Option<usize>,
    added: Option<usize>,
    after: Option<usize>,
}

/// Removes duplicate white space. Adjacent words share the white space between them, so it is in two parts wherever
/// something changes. Afterwards it is in only one: in the unchanged part as far as it is the same in both texts,
/// otherwise in the change.
pub(super) fn share(parts: &mut [Part]) {
    let mut gap = Gap::default();
    for index in 0..parts.len() {
        if parts[index].added {
            gap.added = Some(index);
        } else if parts[index].removed {
            gap.removed = Some(index);
        } else {
            gap.after = Some(index);
            gap.close(parts);
            gap = Gap { before: Some(index), ..Gap::default() };
        }
    }
    gap.close(parts);
}

impl Gap {
    fn close(&self, parts: &mut [Part]) {
        match (self.removed, self.added) {
            (Some(removed), Some(added)) => self.close_replaced(parts, removed, added),
            (None, Some(added)) => self.close_added(parts, added),
            (Some(removed), None) => self.close_removed(parts, removed),
            (None, None) => {}
        }
    }

    /// Moves the common beginning of both changes to the previous part, and their common end to the next part.
    fn close_replaced(&self, parts: &mut [Part], removed: usize, added: usize) {
        let (old_text, new_text) = (parts[removed].value.clone(), parts[added].value.clone());
        let (mut old, mut new) = (old_text.as_str(), new_text.as_str());
        if let Some(before) = self.before {
            let shared = common_start(leading(old), leading(new));
            swap_end(&mut parts[before].value, leading(new), &new[..shared]);
            (old, new) = (&old[shared..], &new[shared..]);
        }
        if let Some(after) = self.after {
            // A change that consists only of white space may have lost it already.
            let shared = common_end(trailing(old), trailing(new));
            let (old_end, new_end) = (old.len() - shared, new.len() - shared);
            swap_start(&mut parts[after].value, trailing(&new_text), &new[new_end..]);
            (old, new) = (&old[..old_end], &new[..new_end]);
        }
        (parts[removed].value, parts[added].value) = (old.to_owned(), new.to_owned());
    }

    /// Keeps the white space at the end of every part.
    fn close_added(&self, parts: &mut [Part], added: usize) {
        if self.before.is_some() {
            drop_start(&mut parts[added].value);
        }
        if let Some(after) = self.after {
            drop_start(&mut parts[after].value);
        }
    }

    /// Keeps the white space of the new text in the unchanged parts, and removes it from the removed part.
    fn close_removed(&self, parts: &mut [Part], removed: usize) {
        let text = parts[removed].value.clone();
        let left = match (self.before, self.after) {
            (Some(before), Some(after)) => {
                let space = leading(&parts[after].value).to_owned();
                let first = common_start(&space, leading(&text));
                let text = &text[first..];
                let last = common_end(&space[first..], trailing(text));
                let (to_before, to_after) = space.split_at(space.len() - last);
                swap_start(&mut parts[after].value, &space, to_after);
                swap_end(&mut parts[before].value, &space, to_before);
                text[..text.len() - last].to_owned()
            }
            (None, Some(after)) => {
                let shared = overlap(trailing(&text), leading(&parts[after].value));
                text[..text.len() - shared].to_owned()
            }
            (Some(before), None) => {
                let shared = overlap(trailing(&parts[before].value), leading(&text));
                text[shared..].to_owned()
            }
            (None, None) => text,
        };
        parts[removed].value = left;
    }
}

fn drop_start(text: &mut String) {
    text.drain(..leading(text).len());
}

/// Replaces `old` with `new` at the end of `text`.
fn swap_end(text: &mut String, old: &str, new: &str) {
    if text.ends_with(old) {
        text.truncate(text.len() - old.len());
        text.push_str(new);
    }
}

/// Replaces `old` with `new` at the start of `text`.
fn swap_start(text: &mut String, old: &str, new: &str) {
    if text.starts_with(old) {
        text.replace_range(..old.len(), new);
    }
}

/// Returns the length of the common beginning, in bytes.
fn common_start(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).map(|(c, _)| c.len_utf8()).sum()
}

/// Returns the length of the common end, in bytes.
fn common_end(left: &str, right: &str) -> usize {
    let ends = left.chars().rev().zip(right.chars().rev());
    ends.take_while(|(left, right)| left == right).map(|(c, _)| c.len_utf8()).sum()
}

/// Returns the length in bytes of the longest suffix of `left` that is a prefix of `right`.
fn overlap(left: &str, right: &str) -> usize {
    // For each position in `right`, the length of the prefix that ends there (Knuth, Morris and Pratt).
    let (left, right) = (left.as_bytes(), right.as_bytes());
    let mut borders = vec![0; right.len()];
    let extend = |borders: &[usize], mut matched: usize, byte: u8| {
        while matched > 0 && (matched == right.len() || right[matched] != byte) {
            matched = borders[matched - 1];
        }
        matched + usize::from(right.get(matched) == Some(&byte))
    };
    for index in 1..right.len() {
        borders[index] = extend(&borders, borders[index - 1], right[index]);
    }
    left.iter().fold(0, |matched, byte| extend(&borders, matched, *byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn white_space_is_defined_as_in_javascript() {
        for c in ['\t', '\n', '\u{b}', '\u{c}', '\r', ' ', '\u{a0}', '\u{1680}', '\u{2003}', '\u{2028}', '\u{feff}'] {
            assert!(is_space(c), "{c:?}");
        }
        for c in ['\u{85}', '\u{180e}', '\u{200b}', 'a', '\u{1c}'] {
            assert!(!is_space(c), "{c:?}");
        }
    }

    #[test]
    fn the_longest_overlap_is_found() {
        assert_eq!(overlap(" \n ", " \n\t"), 1);
        assert_eq!(overlap("\n  ", "  \n"), 2);
        assert_eq!(overlap("  ", " "), 1);
        assert_eq!(overlap("", " "), 0);
        assert_eq!(overlap("\t", " "), 0);
        assert_eq!(overlap("\u{2003}", "\u{2003}"), 3);
        assert_eq!(overlap("\u{2003}", "\u{2002}"), 0);
    }

    proptest::proptest! {
        #[test]
        fn an_overlap_matches_brute_force(left in "[ \n\t]{0,12}", right in "[ \n\t]{0,12}") {
            let tried = (0..=right.len()).rev().find(|length| left.ends_with(&right[..*length]));
            proptest::prop_assert_eq!(Some(overlap(&left, &right)), tried);
        }
    }
}
