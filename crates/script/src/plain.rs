//! Expressions without operators other than anchors. They do not need an engine, because they have the same meaning in
//! all of them. Most expectations for an answer only look for a few words.

/// An expression that consists only of words and escaped characters.
pub(crate) struct Plain {
    words: String,
    /// `^`
    at_start: bool,
    /// `$`
    at_end: bool,
}

/// Characters that are literal after a backslash.
const SYNTAX: &str = "^$\\.*+?()[]{}|/";

impl Plain {
    /// Parses the expression `source` with these flags, if it is that simple.
    pub(crate) fn parse(source: &str, flags: &str) -> Option<Self> {
        if !flags.is_empty() {
            return None;
        }
        let (at_start, rest) = source.strip_prefix('^').map_or((false, source), |rest| (true, rest));
        let (at_end, rest) = rest.strip_suffix('$').map_or((false, rest), |rest| (true, rest));
        let (mut words, mut letters) = (String::with_capacity(rest.len()), rest.chars());
        while let Some(letter) = letters.next() {
            words.push(match letter {
                '\\' => letters.next().filter(|letter| SYNTAX.contains(*letter))?,
                letter => Some(letter).filter(|letter| stands_for_itself(*letter))?,
            });
        }
        Some(Self { words, at_start, at_end })
    }

    /// Returns `true` if some part of `text` matches.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match (self.at_start, self.at_end) {
            (false, false) => text.contains(&self.words),
            (true, false) => text.starts_with(&self.words),
            (false, true) => text.ends_with(&self.words),
            (true, true) => text == self.words,
        }
    }
}

/// Returns `true` if a character is literal at every position in an expression. Texts do not contain surrogates, so a
/// character outside the basic plane is always found as a whole, even by engines that use two units for it.
fn stands_for_itself(letter: char) -> bool {
    letter.is_alphanumeric() || " _-,;:'\"!#%&@~<>=".contains(letter)
}
