//! Expressions without any operator but the ends of the text. Every engine reads them alike, so none is needed: most of
//! what people expect of an answer is some words in it.

/// Words that are looked for.
pub(crate) struct Plain<'p> {
    words: &'p str,
    /// `^`
    at_start: bool,
    /// `$`
    at_end: bool,
}

impl<'p> Plain<'p> {
    /// The expression `source` with these flags, if it is as simple as that.
    pub(crate) fn of(source: &'p str, flags: &str) -> Option<Self> {
        if !flags.is_empty() {
            return None;
        }
        let (at_start, rest) = source.strip_prefix('^').map_or((false, source), |rest| (true, rest));
        let (at_end, words) = rest.strip_suffix('$').map_or((false, rest), |words| (true, words));
        words.chars().all(stands_for_itself).then_some(Self { words, at_start, at_end })
    }

    /// Whether some part of `text` matches.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match (self.at_start, self.at_end) {
            (false, false) => text.contains(self.words),
            (true, false) => text.starts_with(self.words),
            (false, true) => text.ends_with(self.words),
            (true, true) => text == self.words,
        }
    }
}

/// Whether a character means nothing else in an expression, wherever it stands. Surrogates are in no text, so a
/// character outside of the basic plane is found whole also by those who see two units in it.
fn stands_for_itself(letter: char) -> bool {
    letter.is_alphanumeric() || " _-,;:'\"!#%&@~<>=".contains(letter)
}
