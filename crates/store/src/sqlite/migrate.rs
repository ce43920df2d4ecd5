//! Determines the format of a database file only from its first bytes, and the migration steps that it lacks.

use std::io::{ErrorKind, Read};
use std::path::Path;

/// Content of a file's first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Header {
    /// The file does not exist or is empty, so a database can be created there.
    Absent,
    /// A database with this format number and application id.
    Database { version: u32, mark: u32 },
    /// Any other content.
    Foreign,
}

/// Reads a file's first bytes. Opening the file as a database could already change it.
pub(super) fn header(path: &Path) -> std::io::Result<Header> {
    let mut file = match path.canonicalize().and_then(|path| files::open(&path)) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Header::Absent),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::with_capacity(100);
    file.by_ref().take(100).read_to_end(&mut bytes)?;
    let number =
        |index: usize| bytes.get(index..index + 4).and_then(|four| four.try_into().ok()).map(u32::from_be_bytes);
    Ok(match (number(60), number(68)) {
        _ if bytes.is_empty() => Header::Absent,
        (Some(version), Some(mark)) if bytes.starts_with(b"SQLite format 3\0") => Header::Database { version, mark },
        _ => Header::Foreign,
    })
}

/// Returns the migration steps that a database with format `found` lacks; `None` if its format is newer than all
/// steps.
pub(super) fn pending(found: u32, steps: &'static [&'static str]) -> Option<&'static [&'static str]> {
    steps.get(usize::try_from(found).ok()?..)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_gets_missing_migrations_and_a_newer_one_gets_none() {
        const STEPS: &[&str] = &["one", "two"];
        assert_eq!(pending(0, STEPS), Some(STEPS));
        assert_eq!(pending(1, STEPS), Some(&STEPS[1..]));
        assert_eq!(pending(2, STEPS), Some(&[] as &[&str]));
        assert_eq!(pending(3, STEPS), None);
    }

    #[test]
    fn a_text_file_is_not_a_database() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("runs.db");
        assert_eq!(header(&path).unwrap(), Header::Absent);
        std::fs::write(&path, "hello").unwrap();
        assert_eq!(header(&path).unwrap(), Header::Foreign);
        std::fs::write(&path, "").unwrap();
        assert_eq!(header(&path).unwrap(), Header::Absent);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert_eq!(header(&path).unwrap_err().to_string(), "it is not a regular file");
    }
}
