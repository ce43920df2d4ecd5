//! Wildcard patterns for paths, and for names that are not paths.

/// True if all of `text` matches `pattern`, where `*` matches any letters, `?` matches one letter and `[a-z]` one of
/// those. A `/` is a letter like any other.
pub(crate) fn matches(pattern: &str, text: &str) -> bool {
    let parts = parts(pattern);
    let letters: Vec<char> = text.chars().collect();
    let (mut part, mut letter) = (0, 0);
    // The last star, and the end of its match. If nothing else matches, the star takes one letter more.
    let mut star: Option<(usize, usize)> = None;
    while letter < letters.len() {
        match parts.get(part) {
            Some(Part::Any) => {
                star = Some((part, letter));
                part += 1;
            }
            Some(found) if found.is(letters[letter]) => {
                part += 1;
                letter += 1;
            }
            _ => match star {
                Some((at, reached)) => {
                    star = Some((at, reached + 1));
                    part = at + 1;
                    letter = reached + 1;
                }
                None => return false,
            },
        }
    }
    parts[part..].iter().all(|part| matches!(part, Part::Any))
}

/// True if `path` matches `pattern`, component by component: `*` does not match a `/`, and `**` matches any number of
/// directories, including none.
pub(crate) fn matches_path(pattern: &str, path: &str) -> bool {
    let names: Vec<&str> = path.split('/').filter(|name| !name.is_empty()).collect();
    // `reached[n]` is true if the parts so far match the first `n` names of the path.
    let mut reached = vec![false; names.len() + 1];
    reached[0] = true;
    for part in pattern.split('/').filter(|part| !part.is_empty() && *part != ".") {
        let mut next = vec![false; names.len() + 1];
        for at in 0..=names.len() {
            next[at] = match part {
                "**" => reached[at] || (at > 0 && next[at - 1]),
                part => at > 0 && reached[at - 1] && matches(part, names[at - 1]),
            };
        }
        reached = next;
    }
    reached.last().copied().unwrap_or_default()
}

/// Part of a pattern.
enum Part {
    Letter(char),
    One,
    Any,
    Of { ranges: Vec<(char, char)>, is_not: bool },
}

impl Part {
    fn is(&self, letter: char) -> bool {
        match self {
            Self::Letter(wanted) => *wanted == letter,
            Self::One => true,
            Self::Any => false,
            Self::Of { ranges, is_not } => ranges.iter().any(|(from, to)| (*from..=*to).contains(&letter)) != *is_not,
        }
    }
}

fn parts(pattern: &str) -> Vec<Part> {
    let letters: Vec<char> = pattern.chars().collect();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let part = match letters[at] {
            '*' => Part::Any,
            '?' => Part::One,
            '[' => match class(&letters[at + 1..]) {
                Some((part, length)) => {
                    at += length;
                    part
                }
                None => Part::Letter('['),
            },
            letter => Part::Letter(letter),
        };
        parts.push(part);
        at += 1;
    }
    parts
}

/// Parses a class after its `[`, up to its `]`. Returns it with its length, or `None` if it is not closed.
fn class(letters: &[char]) -> Option<(Part, usize)> {
    let is_not = matches!(letters.first(), Some('!' | '^'));
    let start = usize::from(is_not);
    // A bracket in first position is literal.
    let end = letters.iter().enumerate().skip(start + 1).find(|(_, letter)| **letter == ']')?.0;
    let mut ranges = Vec::new();
    let mut at = start;
    while at < end {
        match letters.get(at + 1..=at + 2) {
            Some(['-', to]) if at + 2 < end => {
                ranges.push((letters[at], *to));
                at += 3;
            }
            _ => {
                ranges.push((letters[at], letters[at]));
                at += 1;
            }
        }
    }
    Some((Part::Of { ranges, is_not }, end + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_letters() {
        for (pattern, text, expected) in [
            ("feat/*", "feat/a/b", true),
            ("feat/*", "feature/a", false),
            ("*a*b", "xxaxxab", true),
            ("*a*b", "xxaxxabc", false),
            ("v?.[0-9]", "v1.2", true),
            ("v?.[!0-9]", "v1.2", false),
            ("[]a]", "]", true),
            ("[a", "[a", true),
            ("", "", true),
            ("", "a", false),
            ("é?", "éü", true),
        ] {
            assert_eq!(matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!matches(&"*a".repeat(200), &"a".repeat(190)), "stars do not explode");
    }

    #[test]
    fn a_star_ends_at_a_slash_and_two_do_not() {
        for (pattern, path, expected) in [
            ("src/*.py", "src/app.py", true),
            ("src/*.py", "src/a/app.py", false),
            ("src/**/*.py", "src/a/b/app.py", true),
            ("src/**/*.py", "src/app.py", true),
            ("**", "a/b", true),
            ("**/app.py", "src/app.py", true),
            ("./a", "a", true),
            ("a", "b/a", false),
            ("data/", "data", true),
        ] {
            assert_eq!(matches_path(pattern, path), expected, "{pattern} {path}");
        }
    }
}
