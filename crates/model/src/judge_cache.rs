//! Use of stored judgements.

use std::str::FromStr;

use crate::nearest;

/// Use of the judgements of earlier runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum JudgeCache {
    /// Judgements of earlier runs are used if the same trial asks the same question about the same material.
    #[default]
    Auto,
    /// Every question is asked, and no judgement is stored.
    Off,
    /// Every question is asked, and the judgements replace stored ones.
    Refresh,
    /// Like `Auto`, and all trials share the judgements of the same question about the same material.
    Share,
}

impl JudgeCache {
    /// All modes, with their written names.
    pub const ALL: [(&'static str, Self); 4] =
        [("auto", Self::Auto), ("off", Self::Off), ("refresh", Self::Refresh), ("share", Self::Share)];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, mode)| *mode == self).map_or("auto", |(name, _)| name)
    }
}

impl FromStr for JudgeCache {
    type Err = String;

    fn from_str(written: &str) -> Result<Self, String> {
        let found = Self::ALL.iter().find(|(name, _)| *name == written);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let near = nearest(written, Self::ALL.iter().map(|(name, _)| *name));
            let near = near.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
            format!("`{written}` is not a mode of the cache{near}; write `auto`, `off`, `refresh` or `share`")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_mode_is_reported_with_a_suggestion() {
        assert_eq!("refresh".parse(), Ok(JudgeCache::Refresh));
        assert!(JudgeCache::from_str("refrsh").unwrap_err().contains("did you mean `refresh`"));
        assert!(JudgeCache::ALL.iter().all(|(name, mode)| mode.name() == *name));
    }
}
