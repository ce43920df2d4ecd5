//! Places where runs can be recorded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::StoreError;

/// Place of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// SQLite file.
    File(PathBuf),
}

impl FromStr for Location {
    type Err = StoreError;

    /// Reads a path or a URL, such as `runs.db` or `SCHEME://host/name`. A URL with a scheme that no store of this
    /// build has is an error, not a strange path.
    fn from_str(text: &str) -> Result<Self, StoreError> {
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
        };
        match text.split_once("://") {
            // The rest of a URL may contain a password.
            Some((scheme, _)) if is_scheme(scheme) => Err(StoreError::UnknownScheme(scheme.to_owned())),
            _ => Ok(Self::File(text.into())),
        }
    }
}

impl From<&Path> for Location {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_that_no_store_has_is_rejected_without_its_password() {
        for path in ["runs.db", "/a/runs.db", "a:b", "1://x", "odd name://x"] {
            assert_eq!(path.parse::<Location>().unwrap(), Location::File(path.into()), "{path}");
        }
        let error = "postgres://user:hunter2@db/runs".parse::<Location>().unwrap_err();
        assert!(matches!(&error, StoreError::UnknownScheme(scheme) if scheme == "postgres"));
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}
