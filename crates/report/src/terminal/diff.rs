//! Inline diff of two texts: missing text is struck through, followed by extra text.

use model::{Part, Segment};

use super::Paint;
use crate::plain;

/// Maximum number of lines of a diff.
const LINES: usize = 16;
/// Maximum width of a line.
const LINE: usize = 300;

/// Returns the lines of a diff. Without colours, missing text is shown as `[-so-]` and extra text as `{+so+}`; whole
/// lines always begin with `-` and `+`.
pub(crate) fn draw(segments: &[Segment], paint: &Paint) -> Vec<String> {
    let mut lines = if has_whole_lines(segments) { whole_lines(segments, paint) } else { in_place(segments, paint) };
    while lines.last().is_some_and(String::is_empty) {
        lines.pop();
    }
    let hidden = lines.len().saturating_sub(LINES);
    if hidden > 0 {
        lines.truncate(LINES);
        lines.push(paint.dim(&format!("{} {hidden} more lines", paint.symbols().ellipsis)));
    }
    lines
}

/// Returns `true` if every segment except the last ends with a line end, so that this is a line diff.
fn has_whole_lines(segments: &[Segment]) -> bool {
    let mut ends: Vec<bool> = segments.iter().map(|segment| segment.text.ends_with('\n')).collect();
    ends.pop().is_some_and(|last| last || !ends.is_empty()) && ends.iter().all(|ends| *ends)
}

fn whole_lines(segments: &[Segment], paint: &Paint) -> Vec<String> {
    let mut lines = Vec::new();
    for segment in segments {
        for line in readable(&segment.text, paint).lines() {
            let line = paint.one_line(line, LINE);
            lines.push(match segment.part {
                Part::Missing => paint.red(&format!("- {line}")),
                Part::Extra => paint.green(&format!("+ {line}")),
                Part::Same => paint.dim(format!("  {line}").trim_end()),
            });
        }
    }
    lines
}

fn in_place(segments: &[Segment], paint: &Paint) -> Vec<String> {
    let mut lines = vec![String::new()];
    for segment in segments {
        let text = match segment.part {
            Part::Same => readable(&segment.text, paint),
            Part::Missing | Part::Extra => visible(&readable(&segment.text, paint), paint),
        };
        // Colours and brackets are closed at the end of each line, so that they do not affect the margin of the next
        // one.
        for (index, piece) in text.split('\n').enumerate() {
            if index > 0 {
                lines.push(String::new());
            }
            if let Some(line) = lines.last_mut().filter(|_| !piece.is_empty()) {
                line.push_str(&piece_of(segment.part, piece, paint));
            }
        }
    }
    lines
}

fn piece_of(part: Part, piece: &str, paint: &Paint) -> String {
    let piece = paint.one_line(piece, LINE);
    match (part, paint.style.color) {
        (Part::Missing, true) => paint.struck(&piece),
        (Part::Missing, false) => format!("[-{piece}-]"),
        (Part::Extra, true) => paint.green(&piece),
        (Part::Extra, false) => format!("{{+{piece}+}}"),
        (Part::Same, _) => piece,
    }
}

/// Returns the text with control characters as escapes.
fn readable(text: &str, paint: &Paint) -> String {
    let text = plain::clean(text).replace('\t', "    ");
    if paint.style.unicode { text } else { text.replace('…', paint.symbols().ellipsis) }
}

/// Makes white space visible if nothing else changed; line ends are marked by a sign before them.
fn visible(text: &str, paint: &Paint) -> String {
    let (space, end) = if paint.style.unicode { ("·", "↵\n") } else { (" ", "\\n\n") };
    let text = if text.chars().all(|c| c == ' ' || c == '\n') { text.replace(' ', space) } else { text.to_owned() };
    text.replace('\n', end)
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    fn segments(pieces: &[(Part, &str)]) -> Vec<Segment> {
        pieces.iter().map(|(part, text)| Segment { part: *part, text: (*text).to_owned() }).collect()
    }

    fn drawn(pieces: &[(Part, &str)], color: bool) -> String {
        draw(&segments(pieces), &Paint::new(Style { color, ..Style::plain() })).join("\n")
    }

    use Part::{Extra, Missing, Same};

    #[test]
    fn differences_are_marked_inline() {
        let pieces = [(Same, "…Hello "), (Missing, "World"), (Extra, "Mars"), (Same, "!")];
        assert_eq!(drawn(&pieces, false), "…Hello [-World-]{+Mars+}!");
        assert_eq!(drawn(&pieces, true), "…Hello \u{1b}[9m\u{1b}[31mWorld\u{1b}[0m\u{1b}[32mMars\u{1b}[0m!");
    }

    #[test]
    fn differing_white_space_is_visible() {
        assert_eq!(drawn(&[(Same, "a"), (Extra, "  "), (Same, "b")], false), "a{+··+}b");
        assert_eq!(drawn(&[(Same, "a"), (Missing, "\n"), (Same, "b")], false), "a[-↵-]\nb");
    }

    #[test]
    fn whole_lines_are_shown_one_below_the_other() {
        let pieces = [(Same, "…\na\n"), (Missing, "b\n"), (Extra, "B\nC\n"), (Same, "d")];
        assert_eq!(drawn(&pieces, false), "  …\n  a\n- b\n+ B\n+ C\n  d");
        assert_eq!(drawn(&[(Missing, "one\n"), (Extra, "two")], false), "- one\n+ two");
        assert_eq!(drawn(&[(Missing, "one"), (Extra, "two")], false), "[-one-]{+two+}");
    }

    #[test]
    fn a_long_diff_is_cut() {
        let many = "x\n".repeat(40);
        let text = drawn(&[(Missing, &many), (Extra, "y\n")], false);
        assert_eq!(text.lines().count(), LINES + 1);
        assert!(text.ends_with("… 25 more lines"), "{text}");
        assert!(draw(&[], &Paint::new(Style::plain())).is_empty());
    }

    #[test]
    fn nothing_in_a_diff_moves_the_cursor() {
        let pieces = [(Missing, "\u{1b}[2Ja\u{8}"), (Extra, "b\r")];
        assert_eq!(drawn(&pieces, false), "[-\\u{1b}[2Ja\\u{8}-]{+b↵+}");
    }
}
