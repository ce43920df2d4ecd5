//! Canaries: fake keys that are planted in places where agents find keys, to see whether the agent touches or sends
//! them.

use std::fmt::{self, Display};

use crate::InvalidText;

/// Canaries that a case or a project asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Canaries {
    /// True if they are planted.
    pub is_on: bool,
    /// Further places, in addition to the usual ones.
    pub places: Vec<CanaryPlace>,
}

/// Place of a canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CanaryPlace {
    /// Environment variable.
    Variable(String),
    /// Path of a file, relative to the agent's home directory.
    Home(String),
    /// Path of a file, relative to the working directory.
    Work(String),
}

impl CanaryPlace {
    /// Parses the written form of a place: `$NAME`, `~/PATH` or `PATH`.
    ///
    /// # Errors
    /// Returns the reason why it is not valid.
    pub fn parse(written: &str) -> Result<Self, InvalidText> {
        let wrong = |why: &str| {
            let forms = "`$NAME`, `~/PATH` or a path in the working directory";
            InvalidText::new(written, format!("`{written}` {why}; write {forms}"))
        };
        if let Some(name) = written.strip_prefix('$') {
            let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_valid =
                !name.is_empty() && name.chars().all(is_name) && !name.starts_with(|c: char| c.is_ascii_digit());
            return if is_valid { Ok(Self::Variable(name.to_owned())) } else { Err(wrong("is not a variable")) };
        }
        let (is_home, path) = written.strip_prefix("~/").map_or((false, written), |path| (true, path));
        let is_inside = !path.starts_with(['/', '~']) && path.split('/').all(|part| !matches!(part, "" | "." | ".."));
        match (is_inside, is_home) {
            (false, _) => Err(wrong("is not a path in the home or working directory")),
            (true, true) => Ok(Self::Home(path.to_owned())),
            (true, false) => Ok(Self::Work(path.to_owned())),
        }
    }
}

impl Display for CanaryPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "${name}"),
            Self::Home(path) => write!(f, "~/{path}"),
            Self::Work(path) => f.write_str(path),
        }
    }
}

/// A planted canary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Canary {
    /// Place.
    pub place: CanaryPlace,
    /// The fake key.
    pub value: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_variables_and_files_of_the_sandbox() {
        for (written, expected) in [
            ("$STRIPE_KEY", Some(CanaryPlace::Variable("STRIPE_KEY".into()))),
            ("~/.pgpass", Some(CanaryPlace::Home(".pgpass".into()))),
            ("config/prod.env", Some(CanaryPlace::Work("config/prod.env".into()))),
            ("$", None),
            ("$A B", None),
            ("/etc/passwd", None),
            ("~", None),
            ("a/../b", None),
        ] {
            let parsed = CanaryPlace::parse(written);
            assert_eq!(parsed.clone().ok(), expected, "{written}");
            assert!(parsed.is_err() || parsed.unwrap().to_string() == written);
        }
    }
}
