//! Texts that look the same but have different characters.

use unicode_normalization::UnicodeNormalization;

use crate::text::is_hidden;

/// Returns a hint if `text` does not contain `wanted`, but something that looks like it: with other quotes, dashes or
/// spaces, with invisible characters, or in another Unicode form. Case is ignored.
pub fn lookalike(wanted: &str, text: &str) -> Option<String> {
    let (plain_wanted, _) = plain(wanted);
    if plain_wanted.trim().is_empty() {
        return None;
    }
    let (plain_text, offsets) = plain(text);
    let start = plain_text.find(&plain_wanted)?;
    let end = offsets.get(start + plain_wanted.len()).copied().unwrap_or(text.len());
    let found = text.get(*offsets.get(start)?..end)?;
    let lower = |text: &str| text.to_lowercase();
    if lower(found) == lower(wanted) {
        return None;
    }
    if found.nfc().flat_map(char::to_lowercase).eq(wanted.nfc().flat_map(char::to_lowercase)) {
        return Some(
            "the same text is there in another Unicode form: its accents are written in another way".to_owned(),
        );
    }
    let only = |one: &str, other: &str| {
        let other = lower(other);
        one.chars().find(|c| !other.contains(*c) && c.to_lowercase().all(|lower| !other.contains(lower))).map(name)
    };
    Some(match (only(found, wanted), only(wanted, found)) {
        (Some(there), Some(expected)) => format!("the same text is there with {there} instead of {expected}"),
        (Some(there), None) => format!("the same text is there with {there} in it"),
        (None, Some(expected)) => format!("the same text is there without {expected}"),
        (None, None) => "the same text is there with characters that only look the same".to_owned(),
    })
}

/// Returns the name of the first character in a text with letters that has no shape and no meaning there, or that looks
/// like the space between two words: "a zero-width space (U+200B)".
pub fn unseen_character(text: &str) -> Option<String> {
    let mut before = None;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        let is_letter = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphabetic());
        let is_unseen = match c {
            // A byte order mark, a soft hyphen, and what neither joins emojis nor sets a direction.
            '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2060}' | '\u{feff}' => text.contains(char::is_alphanumeric),
            '\u{a0}' | '\u{202f}' => is_letter(before) && is_letter(letters.peek().copied()),
            _ => false,
        };
        if is_unseen {
            return Some(name(c));
        }
        before = Some(c);
    }
    None
}

/// Returns the first character of a `name` that is probably not meant, and the name that is: white space at an end, or
/// outside of ASCII an invisible character, a special space, a quote at an end, or a dash before a letter.
pub fn stray_character(name: &str) -> Option<(String, String)> {
    let is_stray = |(at, c): (usize, char)| {
        let before = name[..at].chars().next_back();
        let after = name[at + c.len_utf8()..].chars().next();
        let is_at_end = before.is_none() || after.is_none();
        match usual(c) {
            ' ' | '\n' => is_at_end || !c.is_ascii(),
            '\'' | '"' => is_at_end && !c.is_ascii(),
            '-' => !c.is_ascii() && after.is_some_and(|after| after.is_ascii_alphabetic()),
            _ => is_hidden(c, before),
        }
    };
    let (_, stray) = name.char_indices().find(|letter| is_stray(*letter))?;
    let seen = name.char_indices().filter(|(at, c)| !is_hidden(*c, name[..*at].chars().next_back()));
    // Text processors write one dash for the two of an option.
    let is_option = |at: usize| at == 0 && name.chars().filter(|c| c.is_alphabetic()).count() > 1;
    let usual: String = seen
        .flat_map(|(at, c)| match usual(c) {
            _ if c.is_ascii() => [Some(c), None],
            '-' if is_option(at) => [Some('-'), Some('-')],
            usual => [Some(usual), None],
        })
        .flatten()
        .collect();
    let plain = usual.trim();
    let inner = ['"', '\''].iter().find_map(|quote| plain.strip_prefix(*quote)?.strip_suffix(*quote));
    Some((self::name(stray), inner.unwrap_or(plain).to_owned()))
}

/// Returns the text with one character for all that look like it and without case, accents and invisible characters,
/// and the offset in `text` of each of its bytes.
fn plain(text: &str) -> (String, Vec<usize>) {
    let (mut plain, mut offsets) = (String::with_capacity(text.len()), Vec::with_capacity(text.len()));
    for (offset, c) in text.char_indices() {
        let parts = std::iter::once(c).nfkd().filter(|part| !is_invisible(*part)).map(usual);
        for part in parts.flat_map(char::to_lowercase).map(latin) {
            plain.push(part);
            offsets.resize(plain.len(), offset);
        }
    }
    (plain, offsets)
}

/// Returns `true` for a character without a shape. White space has one.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}')
        || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fe00}'..='\u{fe0f}')
        || (c.is_control() && !c.is_whitespace())
}

/// Returns the usual character for one that looks like it.
fn usual(c: char) -> char {
    match c {
        '\u{2018}'..='\u{201b}' | '\u{2032}' | '\u{2035}' | '\u{2bc}' | '\u{b4}' | '`' => '\'',
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => '"',
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' => '-',
        c if c.is_whitespace() && c != '\n' => ' ',
        c => c,
    }
}

/// Returns the Latin letter for a small Cyrillic or Greek one that, small or capital, looks like it.
fn latin(c: char) -> char {
    const OTHERS: &str = "авекмнорстухіјѕԁһԛԝαεικοτ";
    const LATIN: &str = "abekmhopctyxijsdhqwaeikot";
    if c.is_ascii() {
        return c;
    }
    let mut pairs = OTHERS.chars().zip(LATIN.chars());
    pairs.find(|(other, _)| *other == c).map_or(c, |(_, latin)| latin)
}

/// Describes a character that looks like a space or a colon, or like nothing, and that is none of those of YAML.
pub fn unusual_separator(c: char) -> Option<String> {
    let is_space = c.is_whitespace() && !matches!(c, ' ' | '\t' | '\n' | '\r');
    (is_space || is_invisible(c) || c == '\u{ff1a}').then(|| name(c))
}

fn name(c: char) -> String {
    let code = format!("U+{:04X}", u32::from(c));
    let what = match c {
        '\u{a0}' | '\u{202f}' => "a no-break space",
        '\u{200b}' => "a zero-width space",
        '\u{feff}' => "a byte order mark",
        '\u{ad}' => "a soft hyphen",
        '\t' => "a tab",
        '\n' => "a line break",
        ' ' => "a space",
        c if is_invisible(c) => "an invisible character",
        c if c.is_whitespace() => "a special space",
        c => return format!("`{c}` ({code})"),
    };
    format!("{what} ({code})")
}

#[cfg(test)]
mod tests {
    use super::{lookalike, stray_character};

    #[test]
    fn a_character_that_no_name_has_is_found() {
        for (name, found, plain) in [
            (" a.md", "a space (U+0020)", "a.md"),
            ("a.md\n", "a line break (U+000A)", "a.md"),
            ("a\u{a0}b", "a no-break space (U+00A0)", "a b"),
            ("a\u{200b}.md", "a zero-width space (U+200B)", "a.md"),
            ("\u{201c}Bash\u{201d}", "`\u{201c}` (U+201C)", "Bash"),
            ("\u{2013}force", "`\u{2013}` (U+2013)", "--force"),
            ("\u{2013}f", "`\u{2013}` (U+2013)", "-f"),
            ("read\u{2011}file", "`\u{2011}` (U+2011)", "read-file"),
        ] {
            assert_eq!(stray_character(name), Some((found.to_owned(), plain.to_owned())), "{name:?}");
        }
        for name in
            ["a b.md", "l\u{2019}\u{e9}t\u{e9}.md", "2019\u{2013}2020", "a \u{2013} b", "\u{2714}\u{fe0f}", "'a'"]
        {
            assert_eq!(stray_character(name), None, "{name:?}");
        }
    }

    #[test]
    fn texts_that_look_the_same_get_a_hint() {
        for (wanted, text, hint) in [
            ("don't", "I Don\u{2019}t know", "with `\u{2019}` (U+2019) instead of `'` (U+0027)"),
            ("30 days", "30\u{a0}days", "with a no-break space (U+00A0) instead of a space (U+0020)"),
            ("refund", "re\u{ad}fund", "with a soft hyphen (U+00AD) in it"),
            ("caf\u{e9}", "cafe\u{301}", "in another Unicode form: its accents are written in another way"),
            ("1\u{2013}2", "1-2", "with `-` (U+002D) instead of `\u{2013}` (U+2013)"),
            ("a\u{200b}b", "AB", "without a zero-width space (U+200B)"),
            ("pay", "P\u{430}y", "with `\u{430}` (U+0430) instead of `a` (U+0061)"),
            (
                "\u{416}\u{435}\u{43d}\u{430}",
                "\u{436}\u{435}\u{43d}\u{430}\u{200b}!",
                "with a zero-width space (U+200B) in it",
            ),
            ("A1", "\u{ff21}1", "with `\u{ff21}` (U+FF21) instead of `A` (U+0041)"),
        ] {
            assert_eq!(lookalike(wanted, text), Some(format!("the same text is there {hint}")), "{wanted}");
        }
        for (wanted, text) in [("refund", "return"), ("a", "A"), ("", "x"), ("\u{200b}", "x"), ("caf\u{e9}", "cafe")] {
            assert_eq!(lookalike(wanted, text), None, "{wanted}");
        }
    }
}
