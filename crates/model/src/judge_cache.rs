//! How a run uses stored judgements.

use std::str::FromStr;

use crate::named_mode;

/// How a run uses judgements from earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JudgeCache {
    /// A judgement is reused if the same trial asks the same question about the same material.
    #[default]
    Auto,
    /// The judge is always asked, and its judgements are not stored.
    Off,
    /// The judge is always asked, and its judgements replace the stored ones.
    Refresh,
    /// Like `Auto`, but all trials share judgements of the same question about the same material.
    Share,
}

impl JudgeCache {
    /// All modes, with their written names.
    pub const ALL: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("off", Self::Off), ("refresh", Self::Refresh), ("share", Self::Share)];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        named_mode::name_of(&self, &Self::ALL)
    }
}

impl FromStr for JudgeCache {
    type Err = crate::InvalidText;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        named_mode::parse(written, &Self::ALL, "a judge cache mode")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_mode_is_reported_with_a_suggestion() {
        assert_eq!("refresh".parse(), Ok(JudgeCache::Refresh));
        assert!(JudgeCache::from_str("refrsh").unwrap_err().to_string().contains("did you mean `refresh`"));
        assert!(JudgeCache::ALL.iter().all(|(name, mode)| mode.name() == *name));
    }
}
