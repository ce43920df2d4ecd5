//! Scores without explanations, with which the nearest of many values is found quickly.

/// Score of a value without an explanation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct QuickScore {
    /// The score; a value with a lower one than 1 does not match.
    pub score: f64,
    /// True if there is a mismatch that does not reduce the score.
    pub firm: bool,
}

impl QuickScore {
    /// Returns the score of a value that matches or does not.
    pub fn from_bool(matches: bool) -> Self {
        Self { score: f64::from(u8::from(matches)), firm: false }
    }

    /// Returns the mean of the scores of parts, or a full match if there are none. It is `None` if one of them is.
    pub fn mean(parts: impl ExactSizeIterator<Item = Option<Self>>) -> Option<Self> {
        let count = parts.len();
        let mut whole = Self { score: 0.0, firm: false };
        for part in parts {
            let part = part?;
            whole.score += part.score;
            whole.firm |= part.firm;
        }
        Some(if count == 0 { Self::from_bool(true) } else { Self { score: whole.score / count as f64, ..whole } })
    }

    /// Returns `true` if the value matches.
    pub fn matches(self) -> bool {
        self.score >= 1.0 && !self.firm
    }

    /// Returns `true` if the value is nearer to a match than one with the score `other`.
    pub fn is_nearer(self, other: Self) -> bool {
        self.score > other.score || (self.score == other.score && other.firm && !self.firm)
    }
}
