//! How a run uses recorded model traffic.

use std::str::FromStr;

use crate::named_mode;

/// How a run uses cassettes: files with recorded answers from models.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CassetteMode {
    /// Models are asked, and nothing is recorded.
    #[default]
    Off,
    /// Models are asked, and their answers are recorded.
    Record,
    /// All answers come from cassettes. A request that is not recorded makes the trial stale.
    Replay,
    /// Recorded requests get their recorded answers. Other requests go to the model, and its answers are recorded.
    Auto,
}

impl CassetteMode {
    /// All modes, with their written names.
    pub const ALL: [(&'static str, Self); 4] =
        [("off", Self::Off), ("record", Self::Record), ("replay", Self::Replay), ("auto", Self::Auto)];

    /// Returns the written name.
    pub fn name(self) -> &'static str {
        named_mode::name_of(&self, &Self::ALL)
    }
}

impl FromStr for CassetteMode {
    type Err = crate::InvalidText;

    fn from_str(written: &str) -> Result<Self, Self::Err> {
        named_mode::parse(written, &Self::ALL, "a cassette mode")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_mode_is_an_error_with_a_suggestion() {
        assert_eq!("replay".parse(), Ok(CassetteMode::Replay));
        assert!("replays".parse::<CassetteMode>().unwrap_err().to_string().contains("did you mean `replay`?"));
        assert!(CassetteMode::ALL.iter().all(|(name, mode)| mode.name() == *name));
    }
}
