//! String literals from source code, with the source line of each part.

/// Text of one or more string literals.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Literal {
    /// Text after escapes are decoded.
    pub text: String,
    /// Positions in the text at which a new source line begins, each with the line number, from 1.
    lines: Vec<(usize, usize)>,
}

impl Literal {
    /// Creates a literal without escapes that begins on `line`.
    pub fn raw(written: &str, line: usize) -> Self {
        let breaks = written.match_indices('\n').enumerate();
        let further = breaks.map(|(count, (at, _))| (at + 1, line + count + 1));
        Self { text: written.to_owned(), lines: std::iter::once((0, line)).chain(further).collect() }
    }

    /// Creates a literal with escapes that begins on `line`. Unknown escapes are omitted.
    pub fn escaped(written: &str, line: usize) -> Self {
        let mut literal = Self { text: String::with_capacity(written.len()), lines: vec![(0, line)] };
        let mut line = line;
        let mut letters = written.chars().peekable();
        while let Some(letter) = letters.next() {
            let mut push = |letter: char| literal.text.push(letter);
            match letter {
                '\n' => {
                    line += 1;
                    push('\n');
                    literal.lines.push((literal.text.len(), line));
                }
                '\\' => match letters.next() {
                    Some('n') => push('\n'),
                    Some('t') => push('\t'),
                    Some('r' | '0') => {}
                    // The text continues on the next line, after its indentation.
                    Some('\n') => {
                        line += 1;
                        while letters.next_if(|letter| matches!(letter, ' ' | '\t')).is_some() {}
                        literal.lines.push((literal.text.len(), line));
                    }
                    Some(code @ ('x' | 'u' | 'U')) => literal.text.extend(character(code, &mut letters)),
                    Some(letter) => push(letter),
                    None => {}
                },
                _ => push(letter),
            }
        }
        literal
    }

    /// Adds another literal after this one, separated by `separator`.
    pub fn append(&mut self, other: &Self, separator: &str) {
        if !self.lines.is_empty() {
            self.text.push_str(separator);
        }
        let start = self.text.len();
        self.lines.extend(other.lines.iter().map(|(at, line)| (start + at, *line)));
        self.text.push_str(&other.text);
    }

    /// Returns the source line of the text at byte `at`.
    pub fn line_at(&self, at: usize) -> usize {
        let after = self.lines.partition_point(|(start, _)| *start <= at);
        self.lines.get(after.saturating_sub(1)).map_or(1, |(_, line)| *line)
    }

    /// Removes the indentation that all lines after the first share.
    pub fn dedented(&self) -> Self {
        let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
        let further = self.text.split('\n').skip(1).filter(|line| !line.trim().is_empty());
        let Some(indent) = further.map(indent_of).min().filter(|indent| *indent > 0) else { return self.clone() };
        let mut found = Self::default();
        let mut start = 0;
        for (number, line) in self.text.split('\n').enumerate() {
            if number > 0 {
                found.text.push('\n');
            }
            let removed = indent_of(line).min(indent);
            let within = self.lines.iter().filter(|(at, _)| (start..=start + line.len()).contains(at));
            let begun = found.text.len();
            found.lines.extend(within.map(|(at, line)| (begun + (at - start).saturating_sub(removed), *line)));
            found.text.push_str(&line[removed..]);
            start += line.len() + 1;
        }
        found
    }
}

/// Reads the digits of `\x41`, `é`, `\u{e9}` and `\U000000e9`.
fn character(code: char, letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<char> {
    let is_braced = letters.next_if_eq(&'{').is_some();
    let most = match code {
        _ if is_braced => 6,
        'x' => 2,
        'u' => 4,
        _ => 8,
    };
    let mut digits = String::new();
    while digits.len() < most
        && let Some(digit) = letters.next_if(char::is_ascii_hexdigit)
    {
        digits.push(digit);
    }
    if is_braced {
        letters.next_if_eq(&'}');
    }
    u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_part_of_a_string_has_its_source_line() {
        let literal = Literal::escaped("one\\ntwo\nthree \\\n   four\\u0021", 7);
        assert_eq!(literal.text, "one\ntwo\nthree four!");
        let line = |part: &str| literal.line_at(literal.text.find(part).unwrap());
        assert_eq!((line("one"), line("two"), line("three"), line("four")), (7, 7, 8, 9));
    }

    #[test]
    fn indentation_is_removed_and_lines_stay() {
        let literal = Literal::raw("You sell.\n        Never lie.\n          - at all\n", 3).dedented();
        assert_eq!(literal.text, "You sell.\nNever lie.\n  - at all\n");
        assert_eq!(literal.line_at(literal.text.find("Never").unwrap()), 4);
        assert_eq!(literal.line_at(literal.text.find("- at").unwrap()), 5);
    }

    #[test]
    fn joined_strings_keep_their_lines() {
        let mut literal = Literal::raw("a", 1);
        literal.append(&Literal::raw("b", 5), " ");
        assert_eq!((literal.text.as_str(), literal.line_at(0), literal.line_at(2)), ("a b", 1, 5));
    }
}
