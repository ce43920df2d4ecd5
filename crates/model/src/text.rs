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
pub(crate) fn is_hidden(letter: char, before: Option<char>) -> bool {
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

/// Returns the quote that is not closed in a shell `command`, if that is certain: quotes within substitutions and
/// here-documents are not followed.
pub fn open_quote(command: &str) -> Option<char> {
    if ["<<", "$(", "`", "${", "$'"].iter().any(|part| command.contains(part)) {
        return None;
    }
    let mut open = None;
    let mut is_comment = false;
    let mut before = ' ';
    let mut letters = command.chars();
    while let Some(letter) = letters.next() {
        match (open, letter) {
            _ if is_comment => is_comment = letter != '\n',
            (None | Some('"'), '\\') => drop(letters.next()),
            (None, '"' | '\'') => open = Some(letter),
            (None, '#') => is_comment = before.is_whitespace() || ";&|(".contains(before),
            (Some(quote), letter) if quote == letter => open = None,
            _ => {}
        }
        before = letter;
    }
    open
}

/// Returns `true` if nothing in `text` is visible.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|letter| letter.is_whitespace() || is_invisible(letter))
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

/// Returns a count with its noun: `1 trial`, `2 trials`.
pub fn counted(count: usize, noun: &str) -> String {
    format!("{count} {}", plural(count, noun))
}

/// Returns the form of `noun` that goes with `count`: `trial`, `trials`, `sandboxes`, `properties`.
pub fn plural(count: usize, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if count == 1 => noun.to_owned(),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ if ["s", "x", "ch", "sh"].iter().any(|end| noun.ends_with(end)) => format!("{noun}es"),
        _ => format!("{noun}s"),
    }
}

/// Returns the lowercase hexadecimal digits of `bytes`.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        // Writing to a string cannot fail.
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Quotes a word for a shell.
pub fn shell_quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Returns a word as it is written in a shell: in quotes only if it needs them.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_-./=:@%+,#".contains(letter);
    let needs_quotes = word.is_empty() || word.starts_with('#') || !word.chars().all(is_plain);
    if needs_quotes { shell_quoted(word) } else { word.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quote_that_a_command_does_not_close_is_found() {
        for (command, quote) in [
            ("echo 'a", Some('\'')),
            ("echo \"a > out", Some('"')),
            ("echo 'a' \"b\\\"", Some('"')),
            ("echo \"it's\" 'a\\' it\\'s # don't", None),
            ("a # don't\necho 'b", Some('\'')),
            ("echo a#'b'", None),
            ("cat <<EOF\nit's\nEOF", None),
            ("echo \"$(echo 'a\"b')\"", None),
        ] {
            assert_eq!(open_quote(command), quote, "{command}");
        }
    }

    #[test]
    fn a_noun_has_the_form_of_its_count() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "trial")), ["0 trials", "1 trial", "2 trials"]);
        let nouns = ["box", "branch", "retry", "reply", "key", "class"];
        assert_eq!(nouns.map(|noun| plural(2, noun)), ["boxes", "branches", "retries", "replies", "keys", "classes"]);
    }

    #[test]
    fn text_is_blank_if_nothing_of_it_is_visible() {
        assert_eq!(["", " \u{200b}\n", "\u{feff}", "\u{200b}x"].map(is_blank), [true, true, true, false]);
    }

    #[test]
    fn words_are_quoted_for_a_shell_if_they_need_it() {
        assert_eq!(["a-b#c", "it's", "", "#x"].map(shell_word), ["a-b#c", r"'it'\''s'", "''", "'#x'"]);
        assert_eq!(shell_quoted("a"), "'a'");
    }

    #[test]
    fn bytes_have_two_digits_each() {
        assert_eq!(hex(&[0, 10, 255]), "000aff");
    }

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
        for visible_text in ["👨\u{200d}👩\u{200d}👧\tç", "❤\u{fe0f}\u{200d}🔥", "می\u{200c}خواهم"] {
            assert_eq!(visible(visible_text), visible_text);
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
