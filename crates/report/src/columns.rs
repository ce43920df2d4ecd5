//! Widths on a terminal, where a CJK character or an emoji takes two columns.

use unicode_width::UnicodeWidthStr;

/// Returns the number of columns that `text` takes.
pub fn width(text: &str) -> usize {
    UnicodeWidthStr::width(text)
}

/// Returns the number of columns that the widest of `texts` takes.
pub fn widest<T: AsRef<str>>(texts: impl IntoIterator<Item = T>) -> usize {
    texts.into_iter().map(|text| width(text.as_ref())).max().unwrap_or(0)
}

/// Pads `text` with spaces to `columns`.
pub fn padded(text: &str, columns: usize) -> String {
    format!("{text}{:1$}", "", columns.saturating_sub(width(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wide_characters_take_two_columns_and_combining_marks_take_none() {
        assert_eq!(["é", "e\u{301}", "漢字", "👍🏽", "한글", "…"].map(width), [1, 1, 4, 2, 4, 1]);
        assert_eq!(widest(["abc", "漢字", ""]), 4);
        assert_eq!(padded("漢字", 6), "漢字  ");
        assert_eq!(padded("too long", 3), "too long");
    }
}
