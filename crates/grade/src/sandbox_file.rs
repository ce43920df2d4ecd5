//! Sandbox files that assertions are about.

use expect::SourceLocation;
use model::{Evidence, Need, Probed};

use crate::reading::Reading;
use crate::verdict::{Verdict, without_sandbox};

/// File that an assertion reads.
#[derive(Debug, Clone)]
pub(crate) struct SandboxFile {
    /// Path relative to the working directory, with `/`.
    pub path: String,
    /// Source position of the path.
    pub place: SourceLocation,
}

/// Result of looking at the file.
pub(crate) enum FileProbe<'e> {
    /// The file does not exist.
    Nothing,
    /// A file: its size, the text that was read, and `true` if the text is incomplete.
    File(u64, &'e str, bool),
    /// Something other than a file, described in words.
    Other(&'static str),
}

impl FileProbe<'_> {
    /// Describes what was found.
    pub fn describe(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::File(size, ..) => format!("a file of {size} bytes"),
            Self::Other(what) => (*what).to_owned(),
        }
    }
}

/// Returns the verdict on the file at `path`, of which `reason` says that it was not read completely. An agent must not
/// take its trials out of the rates with a file that is too large.
pub(crate) fn too_large(path: &str, reason: String, evidence: &Evidence) -> Verdict {
    match evidence.collected.files_changed.iter().any(|file| file.path == path.trim_start_matches("./")) {
        true => Verdict::unmet(reason, "a file that can be read completely", "the agent's file is larger"),
        false => Verdict::undecided(reason),
    }
}

/// Describes a path that looks like a pattern.
fn not_a_pattern(reading: &Reading<'_>, place: &SourceLocation) -> model::Diagnostic {
    let message = "`path` is the path of one file, in which `*` and `?` are ordinary characters";
    let problem = model::Diagnostic::warning(message).at(place.excerpt());
    match reading.fields.known().any(|key| key == "created") {
        true => problem.help("add `created: true` to match the files that the agent created with a pattern"),
        false => problem.help("write the path of one file"),
    }
}

impl SandboxFile {
    /// Reads the `path` field of an assertion about a file, which must be inside the working directory.
    pub fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let file = Self::read_path(reading)?;
        if file.path.ends_with('/') {
            let problem =
                model::Diagnostic::error(format!("`{}` is a folder, and the assertion is about a file", file.path));
            reading
                .problems
                .push(problem.at(file.place.excerpt()).help("a command can check a folder: `test -d PATH`"));
            return None;
        }
        Some(file)
    }

    /// Like [`read`](Self::read), but the path may be that of a folder.
    pub fn read_path(reading: &mut Reading<'_>) -> Option<Self> {
        let (path, place) = reading.required_text("path")?;
        let reason = if path.starts_with('/') || path.starts_with('~') {
            "must be relative to the working directory"
        } else if path.split('/').any(|part| part == "..") {
            "cannot leave the working directory"
        } else if path.contains('\0') || path.trim_matches(['.', '/']).is_empty() {
            "is not the name of a file"
        } else {
            if path.contains(['*', '?']) {
                reading.problems.push(not_a_pattern(reading, &place));
            }
            return Some(Self { path, place });
        };
        reading.problems.push(model::Diagnostic::error(format!("`path` {reason}")).at(place.excerpt()));
        None
    }

    /// Returns the probe that it needs.
    pub fn need(&self) -> Need {
        Need::File { path: self.path.clone() }
    }

    /// Returns what was found. The error is the verdict if the file could not be read.
    pub fn probe<'e>(&self, evidence: &'e Evidence) -> Result<FileProbe<'e>, Box<Verdict>> {
        let unknown = |reason: String| Box::new(Verdict::undecided(reason).place(&self.place));
        if let Some(verdict) = without_sandbox(evidence, &self.need()) {
            return Err(Box::new(verdict.place(&self.place)));
        }
        let path = &self.path;
        match evidence.collected.probed(&self.need()) {
            None => Err(unknown(format!("`{path}` was not inspected"))),
            Some(Probed::Nothing) => Ok(FileProbe::Nothing),
            Some(Probed::File { size, text, clipped }) => Ok(FileProbe::File(*size, text, *clipped)),
            Some(Probed::Directory) => Ok(FileProbe::Other("a directory")),
            Some(Probed::Special) => Ok(FileProbe::Other("neither a file nor a directory")),
            Some(Probed::Outside) => Ok(FileProbe::Other("a link out of the working directory")),
            Some(Probed::Failed { reason }) => Err(unknown(format!("could not inspect `{path}`: {reason}"))),
            Some(Probed::Ran { .. } | Probed::Files { .. } | Probed::Lost { .. }) => {
                Err(unknown(format!("something other than `{path}` was inspected")))
            }
        }
    }
}
