//! The two eras of the protocol.

/// Era of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Era {
    /// Until 2025-11-25: a client initialises a session before it uses it.
    Sessions,
    /// Since 2026-07-28: there are no sessions, and each request states its version and the client's capabilities.
    Stateless,
}

impl Era {
    /// All eras, oldest first.
    pub const ALL: [Self; 2] = [Self::Sessions, Self::Stateless];

    /// Returns the newest version of the protocol in this era.
    pub fn version(self) -> &'static str {
        match self {
            Self::Sessions => "2025-11-25",
            Self::Stateless => "2026-07-28",
        }
    }

    /// Returns the era of a version.
    pub fn of(version: &str) -> Self {
        // Versions are dates, so they can be compared as text.
        if version >= Self::Stateless.version() { Self::Stateless } else { Self::Sessions }
    }
}

impl std::fmt::Display for Era {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.version())
    }
}

#[cfg(test)]
mod tests {
    use super::Era;

    #[test]
    fn a_version_belongs_to_an_era() {
        for era in Era::ALL {
            assert_eq!(Era::of(era.version()), era);
        }
        assert_eq!(Era::of("2024-11-05"), Era::Sessions);
        assert_eq!(Era::of("2027-01-01"), Era::Stateless);
    }
}
