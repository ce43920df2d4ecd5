//! A system prompt in a text file.

use std::path::Path;

use model::Diagnostic;

use super::{ReadResult, Reading, SourceFile, has_extension, text};
use crate::profile::{Evidence, Fact, Profile};

/// Maximum size of a prompt, in bytes.
const LARGEST: u64 = 4 * 1024 * 1024;

pub(super) fn read(path: &Path, shown: &str) -> Option<ReadResult> {
    has_extension(path, &["md", "markdown", "txt", "prompt"]).then(|| read_any(path, shown))
}

/// Returns the facts in the prompt at `path`, which may have any file name. It is shown as `shown`.
pub(super) fn read_any(path: &Path, shown: &str) -> ReadResult {
    let failed = |error: std::io::Error| vec![Diagnostic::error(format!("cannot read `{shown}`: {error}"))];
    let prompt = files::read_named_text(path, LARGEST).map_err(failed)?;
    let profile = facts(&prompt, shown);
    Ok(Reading { files: vec![SourceFile { name: shown.to_owned(), text: prompt }], ..Reading::from(profile) })
}

/// Returns the facts in a prompt.
pub(super) fn facts(prompt: &str, shown: &str) -> Profile {
    let mut profile = text::read(prompt, shown, 1);
    if !prompt.trim().is_empty() {
        let first = prompt.lines().next().unwrap_or_default();
        profile.prompts.push(Fact::new(prompt.trim(), Evidence::in_file(shown, 1, first)));
    }
    profile
}
