//! Places where runs can be recorded.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::database_url::{SCHEMES, Settings, SettingsError};

/// Place of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Location {
    /// SQLite file.
    File(PathBuf),
    /// PostgreSQL database.
    Postgres(Box<Settings>),
}

/// Reason why a text does not name a place for a record. It never contains the text, which may contain a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LocationError {
    /// No store of this build has this URL scheme.
    #[error("trialrun has no store for `{0}://`; a record is an SQLite file, given by its path, or `postgres://…`")]
    UnknownScheme(String),
    /// A URL of a database has too few slashes.
    #[error("a URL has two slashes after the colon: write `{0}://…`, or `./{0}:…` for a path")]
    OneSlash(String),
    /// The URL of a database cannot be used.
    #[error(transparent)]
    Url(#[from] SettingsError),
}

impl FromStr for Location {
    type Err = LocationError;

    /// Reads a path or a URL, such as `runs.db` or `postgres://host/name`. A URL with a scheme that no store of this
    /// build has is an error, not a strange path.
    fn from_str(text: &str) -> Result<Self, LocationError> {
        let is_scheme = |scheme: &str| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
                && scheme.chars().all(|char| char.is_ascii_alphanumeric() || "+-.".contains(char))
        };
        match text.split_once("://") {
            Some((scheme, _)) if SCHEMES.contains(&scheme) => Ok(Self::Postgres(Box::new(Settings::from_url(text)?))),
            // The rest of a URL may contain a password.
            Some((scheme, _)) if is_scheme(scheme) => Err(LocationError::UnknownScheme(scheme.to_owned())),
            _ if let Some(scheme) = scheme_with_one_slash(text) => Err(LocationError::OneSlash(scheme.to_owned())),
            _ => Ok(Self::File(text.into())),
        }
    }
}

/// Returns the scheme of a text such as `postgres:/name`, which is hardly a path.
fn scheme_with_one_slash(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once(":/").or_else(|| text.split_once(':'))?;
    let is_database = SCHEMES.contains(&scheme) || ["mariadb", "mysql", "sqlite", "sqlite3"].contains(&scheme);
    is_database.then_some(scheme)
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
            Self::Postgres(settings) => settings.fmt(f),
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
        for (typed, scheme) in
            [("postgres:/runs", "postgres"), ("postgresql:db/runs", "postgresql"), ("mysql:/x", "mysql")]
        {
            let error = typed.parse::<Location>().unwrap_err();
            assert_eq!(error, LocationError::OneSlash(scheme.to_owned()));
        }
        let error = "mysql://user:hunter2@db/runs".parse::<Location>().unwrap_err();
        assert!(matches!(&error, LocationError::UnknownScheme(scheme) if scheme == "mysql"));
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }

    #[test]
    fn the_place_of_a_database_is_shown_without_its_password() {
        let location: Location = "postgres://ann:hunter2@db/runs".parse().unwrap();
        assert_eq!(location.to_string(), "postgres://ann@db/runs");
        assert!(!format!("{location:?}").contains("hunter2"));
    }
}
