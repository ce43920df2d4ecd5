//! Untrusted text for the terminal. Output of an agent or a tool may contain escape sequences that move the cursor,
//! change the title or hide text; none of them reaches the terminal.

use std::borrow::Cow;

use unicode_width::UnicodeWidthChar;

use crate::columns;

/// Formats text as one line: folds white space, cleans it, and cuts it to `most` columns.
pub(crate) fn folded(text: &str, most: usize, ellipsis: &str) -> String {
    // Far more than any line shows, so a huge text is not scanned just for its first words.
    let head = front(text, most.saturating_mul(8).max(4096));
    cut(&model::text::folded(&clean(head)), most, ellipsis, head.len() < text.len())
}

/// Formats text as one line without folding white space: cleans it, removes line ends, and cuts it to `most` columns.
pub(crate) fn one_line(text: &str, most: usize, ellipsis: &str) -> String {
    let head = front(text, most.saturating_mul(8).max(4096));
    cut(&clean(head).replace(['\n', '\t'], " "), most, ellipsis, head.len() < text.len())
}

/// Returns the first line that is not blank, like [`folded`].
pub(crate) fn first_line(text: &str, most: usize, ellipsis: &str) -> String {
    folded(text.lines().find(|line| !line.trim().is_empty()).unwrap_or(""), most, ellipsis)
}

/// Returns the number of lines after the one that [`first_line`] returns, without blank ones at the end.
pub(crate) fn more_lines(text: &str) -> usize {
    text.trim().lines().count().saturating_sub(1)
}

/// Returns all lines, cleaned, with tabs as four spaces.
pub(crate) fn lines(text: &str) -> Vec<String> {
    clean(text).lines().map(|line| line.replace('\t', "    ").trim_end().to_owned()).collect()
}

/// Returns at most `most` lines, and the number of lines omitted.
pub(crate) fn some_lines(text: &str, most: usize) -> (Vec<String>, usize) {
    let mut all = lines(text);
    let hidden = all.len().saturating_sub(most);
    all.truncate(most);
    (all, hidden)
}

/// Removes colours, and writes all other control characters except line ends and tabs, and everything else that is
/// invisible, as escapes: an escape sequence must not reach the screen, and text that differs must not look the same.
pub fn clean(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['\u{1b}', '\r']) {
        let (before, found) = rest.split_at(at);
        kept.push_str(before);
        rest = after_color(found).unwrap_or_else(|| {
            kept.push(if found.starts_with('\r') { '\n' } else { '\u{1b}' });
            found[1..].strip_prefix('\n').filter(|_| found.starts_with('\r')).unwrap_or(&found[1..])
        });
    }
    kept.push_str(rest);
    match model::text::visible(&kept) {
        Cow::Borrowed(_) => kept,
        Cow::Owned(shown) => shown,
    }
}

/// Returns the text after the colour at the start of `text`, if there is one: `ESC [ 1 ; 31 m`.
fn after_color(text: &str) -> Option<&str> {
    let numbers = text.strip_prefix("\u{1b}[")?;
    numbers.trim_start_matches(|c: char| c.is_ascii_digit() || c == ';').strip_prefix('m')
}

fn cut(text: &str, most: usize, ellipsis: &str, already: bool) -> String {
    if columns::width(text) <= most {
        return if already { format!("{text}{ellipsis}") } else { text.to_owned() };
    }
    let mut room = most.saturating_sub(columns::width(ellipsis));
    let fits = |letter: &char| {
        let taken = letter.width().unwrap_or(0);
        let fits = taken <= room;
        room -= taken.min(room);
        fits
    };
    text.chars().take_while(fits).chain(ellipsis.chars()).collect()
}

fn front(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_do_not_reach_the_screen() {
        assert_eq!(clean("\u{1b}[1;31mred\u{1b}[m x\u{8}y\u{202e}z"), "red x\\u{8}y\\u{202e}z");
        assert_eq!(clean("\u{1b}]0;title\u{7}\u{1b}[2K\u{1b}["), "\\u{1b}]0;title\\u{7}\\u{1b}[2K\\u{1b}[");
        assert_eq!(lines("a\r\nb\tc  \rd"), ["a", "b    c", "d"]);
    }

    #[test]
    fn a_line_is_cut_at_its_display_width() {
        assert_eq!(folded("漢字漢字", 8, "…"), "漢字漢字");
        assert_eq!(folded("漢字漢字", 7, "…"), "漢字漢…");
        assert_eq!(folded("漢字漢字", 6, "…"), "漢字…");
        assert_eq!(folded("ab👍👍", 5, "…"), "ab👍…");
    }

    #[test]
    fn a_line_is_cut_at_character_boundaries() {
        assert_eq!(folded("  a \n b  ", 10, "…"), "a b");
        assert_eq!(folded("ééééé", 4, "…"), "ééé…");
        assert_eq!(folded("éééé", 4, "…"), "éééé");
        assert_eq!(one_line("a  b\u{7}\nc", 20, "…"), "a  b\\u{7} c");
        assert_eq!(one_line("a  bcd", 5, "…"), "a  b…");
        assert_eq!(first_line("\n \n one\ntwo", 10, "..."), "one");
        assert_eq!(folded(&"x".repeat(10_000), 5, "…"), "xxxx…");
        assert_eq!(["", "one", "\n \n one\n\ntwo\n\n"].map(more_lines), [0, 0, 2]);
    }
}
