//! Text for display.

use std::borrow::Cow;

/// Returns `text`, with everything after its first `most` characters replaced by `…`.
pub fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns `text` with invisible characters other than white space written as escapes, such as `\u{8}`.
pub fn visible(text: &str) -> Cow<'_, str> {
    let before = |index: usize| text[..index].chars().next_back();
    if !text.char_indices().any(|(index, letter)| is_hidden(letter, before(index))) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 8);
    for (index, letter) in text.char_indices() {
        if is_hidden(letter, before(index)) {
            shown.push_str(&format!("\\u{{{:x}}}", u32::from(letter)));
        } else {
            shown.push(letter);
        }
    }
    Cow::Owned(shown)
}

/// Returns `true` if nothing is visible of a character that follows `before`. Line ends and tabs are white space.
/// Scripts and emoji need joiners and the selectors of their form, but only one after each character.
fn is_hidden(letter: char, before: Option<char>) -> bool {
    let is_of_character = |before: char| !before.is_ascii() && !is_invisible(before);
    match letter {
        '\n' | '\t' => false,
        '\u{200c}' | '\u{200d}' => !before.is_some_and(|before| is_of_character(before) || before == '\u{fe0f}'),
        '\u{fe0e}' | '\u{fe0f}' => !before.is_some_and(is_of_character),
        letter => is_invisible(letter),
    }
}

/// Returns `true` for control characters, and for characters that are not drawn: those with the property
/// `Default_Ignorable_Code_Point` of Unicode 17, line and paragraph separators, marks of annotations and the empty
/// braille pattern.
fn is_invisible(letter: char) -> bool {
    match letter {
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' => true,
        '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' => true,
        '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        letter => letter.is_control(),
    }
}

/// Returns `text` on one line: white space becomes single spaces.
pub fn folded(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns `text` on one line of at most about `most` characters.
pub fn one_line(text: &str, most: usize) -> String {
    shortened(&folded(text), most)
}

/// Returns at most `most` characters from the beginning of `text`, and `true` if it was shortened.
pub fn head(text: &str, most: usize) -> (&str, bool) {
    match text.char_indices().nth(most) {
        Some((end, _)) => (&text[..end], true),
        None => (text, false),
    }
}

/// Omits the middle of `text` if it has more than `most` characters; of the characters kept, `head` are from the
/// beginning.
pub fn middle(text: String, head: usize, most: usize) -> String {
    if text.len() <= most {
        return text;
    }
    let count = text.chars().count();
    if count <= most {
        return text;
    }
    let (front, _) = self::head(&text, head);
    let back = text.char_indices().nth(count - (most - head)).map_or("", |(start, _)| &text[start..]);
    format!("{front}\n[… {} characters omitted …]\n{back}", count - most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!([2, 3].map(|most| shortened("äöü", most)), ["äö…", "äöü"]);
        assert_eq!(one_line(" a\n\n b\tc ", 3), "a b…");
    }

    #[test]
    fn invisible_characters_are_shown_as_escapes() {
        assert_eq!(visible("a\u{202e}b\u{e0041}\u{7}\n\u{200b}"), "a\\u{202e}b\\u{e0041}\\u{7}\n\\u{200b}");
        assert_eq!(visible("\u{115f}x\u{3164}\u{fe0f}\u{2800}"), "\\u{115f}x\\u{3164}\\u{fe0f}\\u{2800}");
        assert_eq!(visible("👍\u{fe0f}\u{fe0e}\u{200d}a\u{200d}"), "👍\u{fe0f}\\u{fe0e}\\u{200d}a\\u{200d}");
        for shown in ["👨\u{200d}👩\u{200d}👧\tç", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم"] {
            assert_eq!(visible(shown), shown);
        }
    }

    #[test]
    fn text_is_cut_at_a_character_boundary_with_a_notice() {
        assert_eq!(head("äöü", 2), ("äö", true));
        assert_eq!(head("äöü", 3), ("äöü", false));
        assert_eq!(middle("äöüß€".into(), 2, 3), "äö\n[… 2 characters omitted …]\n€");
        assert_eq!(middle("äöü".into(), 2, 3), "äöü");
        assert_eq!(middle("abcdef".into(), 1, 1), "a\n[… 5 characters omitted …]\n");
    }
}
