//! The remote that agents push to.

use std::fmt::{self, Display};
use std::str::FromStr;

use crate::{InvalidText, nearest};

/// Remote of a trial with a source repository.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum RemoteMode {
    /// A copy of the source repository that only this trial uses, with a stand-in for the service that hosts it.
    #[default]
    Isolated,
    /// The source repository itself.
    Real,
}

impl RemoteMode {
    /// All modes, with their names.
    pub const NAMED: [(&'static str, Self); 2] = [("isolated", Self::Isolated), ("real", Self::Real)];
}

impl Display for RemoteMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Isolated => "isolated",
            Self::Real => "real",
        })
    }
}

impl FromStr for RemoteMode {
    type Err = InvalidText;

    fn from_str(written: &str) -> Result<Self, InvalidText> {
        let found = Self::NAMED.iter().find(|(name, _)| *name == written);
        found.map(|(_, mode)| *mode).ok_or_else(|| {
            let near = nearest(written, Self::NAMED.iter().map(|(name, _)| *name));
            let near = near.map(|name| format!(" (did you mean `{name}`?)")).unwrap_or_default();
            let reason = format!("`{written}` is not a kind of remote{near}; write `isolated` or `real`");
            InvalidText::new(written, reason)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_is_written_as_it_is_parsed() {
        for (name, mode) in RemoteMode::NAMED {
            assert_eq!((name.parse(), mode.to_string().as_str()), (Ok(mode), name));
        }
        assert!("reel".parse::<RemoteMode>().unwrap_err().to_string().contains("did you mean `real`?"));
    }
}
