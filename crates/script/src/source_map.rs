//! Maps positions in the text that the engine ran to positions in the text that the user wrote.

use oxc_sourcemap::SourceMap;

/// Line and column, both 0-based. The column is in UTF-16 units, as in source maps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Position {
    pub line: u32,
    pub column: u32,
}

/// Origins of the pieces of a transformed text, sorted by their positions in it.
#[derive(Debug, Default)]
pub(crate) struct Mapping(Vec<(Position, Position)>);

impl Mapping {
    pub fn new(map: &SourceMap<'_>) -> Self {
        let mut pieces: Vec<_> = map
            .get_tokens()
            .filter(|token| token.get_source_id().is_some())
            .map(|token| {
                (
                    Position { line: token.get_dst_line(), column: token.get_dst_col() },
                    Position { line: token.get_src_line(), column: token.get_src_col() },
                )
            })
            .collect();
        pieces.sort_by_key(|(generated, _)| *generated);
        Self(pieces)
    }

    /// Returns the origin of `generated`: that of the nearest preceding piece on its line.
    pub fn original(&self, generated: Position) -> Option<Position> {
        let after = self.0.partition_point(|(at, _)| *at <= generated);
        let (at, from) = self.0.get(after.checked_sub(1)?)?;
        (at.line == generated.line).then_some(*from)
    }
}

/// Returns the byte offset in `text` that is `column` bytes into `line`, or the end of the line if it is shorter.
pub(crate) fn byte(text: &str, line: u32, column: u32) -> usize {
    let start = line_start(text, line);
    let rest = &text[start..];
    let length = rest.find('\n').unwrap_or(rest.len());
    text.floor_char_boundary(start + length.min(column as usize))
}

/// Converts the byte offset `at` in `text`, which is on `line`, to a source map position.
pub(crate) fn position(text: &str, line: u32, index: usize) -> Position {
    let before = &text[line_start(text, line)..index];
    let units: usize = before.chars().map(char::len_utf16).sum();
    Position { line, column: u32::try_from(units).unwrap_or(u32::MAX) }
}

fn line_start(text: &str, line: u32) -> usize {
    let Some(above) = (line as usize).checked_sub(1) else { return 0 };
    text.match_indices('\n').nth(above).map_or(text.len(), |(end, _)| end + 1)
}

/// Returns the byte offset of `position` in `text`, or the end of the line if it is shorter.
pub(crate) fn offset(text: &str, position: Position) -> usize {
    let start = line_start(text, position.line);
    let mut units = 0;
    for (offset, c) in text[start..].char_indices() {
        if units >= position.column || c == '\n' {
            return start + offset;
        }
        units += u32::try_from(c.len_utf16()).unwrap_or(1);
    }
    text.len()
}

/// Returns the byte range of the word that begins at `start`, or of the single character there.
pub(crate) fn word(text: &str, start: usize) -> model::Span {
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '$').unwrap_or(rest.len());
    let length = if length == 0 { rest.chars().next().map_or(0, char::len_utf8) } else { length };
    model::Span::new(start, start + length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_maps_to_a_byte_on_its_line() {
        let at = |line, column| offset("ab\né😀x\n", Position { line, column });
        assert_eq!((at(0, 1), at(0, 9), at(1, 0), at(1, 1), at(1, 3), at(7, 0)), (1, 2, 3, 5, 9, 11));
    }

    #[test]
    fn byte_offsets_become_utf_16_columns_on_the_same_line() {
        let text = "x\né😀y\n";
        assert_eq!(
            (byte(text, 1, 0), byte(text, 1, 6), byte(text, 1, 3), byte(text, 1, 99), byte(text, 9, 9)),
            (2, 8, 4, 9, 10)
        );
        assert_eq!(position(text, 1, 8), Position { line: 1, column: 3 });
    }

    #[test]
    fn a_whole_word_is_underlined() {
        assert_eq!(word("a.foo_1(x)", 2), model::Span::new(2, 7));
        assert_eq!(word("(é", 0), model::Span::new(0, 1));
        assert_eq!(word("a", 5), model::Span::new(5, 5));
    }
}
