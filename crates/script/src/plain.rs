//! Expressions without operators other than anchors. They do not need an engine, because they have the same meaning in
//! all of them. Most expectations for an answer only look for a few words.

/// An expression that consists only of words.
pub(crate) struct Plain<'p> {
    words: &'p str,
    /// `^`
    at_start: bool,
    /// `$`
    at_end: bool,
}

impl<'p> Plain<'p> {
    /// Parses the expression `source` with these flags, if it is that simple.
    pub(crate) fn parse(source: &'p str, flags: &str) -> Option<Self> {
        if !flags.is_empty() {
            return None;
        }
        let (at_start, rest) = source.strip_prefix('^').map_or((false, source), |rest| (true, rest));
        let (at_end, words) = rest.strip_suffix('$').map_or((false, rest), |words| (true, words));
        words.chars().all(stands_for_itself).then_some(Self { words, at_start, at_end })
    }

    /// Returns `true` if some part of `text` matches.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match (self.at_start, self.at_end) {
            (false, false) => text.contains(self.words),
            (true, false) => text.starts_with(self.words),
            (false, true) => text.ends_with(self.words),
            (true, true) => text == self.words,
        }
    }
}

/// Returns `true` if a character is literal at every position in an expression. Texts do not contain surrogates, so a
/// character outside the basic plane is always found as a whole, even by engines that use two units for it.
fn stands_for_itself(letter: char) -> bool {
    letter.is_alphanumeric() || " _-,;:'\"!#%&@~<>=".contains(letter)
}
