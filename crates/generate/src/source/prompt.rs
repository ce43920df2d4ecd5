//! A system prompt in a text file.

use std::path::Path;

use model::Diagnostic;

use super::{Found, has_extension, text};

/// Maximum size of a prompt, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

pub(super) fn read(path: &Path, shown: &str) -> Option<Found> {
    if !has_extension(path, &["md", "markdown", "txt"]) {
        return None;
    }
    let failed = |error: std::io::Error| vec![Diagnostic::error(format!("cannot read `{shown}`: {error}"))];
    Some(files::read_named_text(path, LARGEST).map(|prompt| text::read(&prompt, shown, 1)).map_err(failed))
}
