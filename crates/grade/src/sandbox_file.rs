//! Sandbox files that assertions are about.

use expect::SourceLocation;
use model::{Evidence, Need, Probed};

use crate::glob::has_alternatives;
use crate::reading::{Reading, stray_character};
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

/// Adds a warning about a path of one file that looks like a pattern.
fn warn_about_pattern(path: &str, place: &SourceLocation, reading: &mut Reading<'_>) {
    if !path.contains(['*', '?']) {
        return;
    }
    let message = "`path` is the path of one file, in which `*` and `?` are ordinary characters";
    let problem = model::Diagnostic::warning(message).at(place.excerpt());
    let has_patterns = reading.fields.known().any(|key| key == "created");
    reading.problems.push(match has_patterns {
        true => problem.help("add `created: true` to match the files that the agent created with a pattern"),
        false => problem.help("write the path of one file"),
    });
}

/// Reads a `path` in the working directory, which may be a pattern for paths. Reports one that nothing in there can have,
/// because what forbids such a file could never fail.
pub(crate) fn read_inside(reading: &mut Reading<'_>) -> Option<(String, SourceLocation)> {
    let (path, place) = reading.required_text("path")?;
    // Patterns for any folder may begin with a slash.
    let is_absolute = path.starts_with('/') && !path.starts_with("/**");
    let variable = path.strip_prefix('$').and_then(|rest| rest.chars().next());
    let is_variable = variable.is_some_and(|first| first == '{' || first.is_ascii_uppercase())
        || (path.starts_with('%') && path.contains("%/"));
    let problem = if is_absolute || path.starts_with('~') || path.contains("://") || is_variable {
        Some("must be relative to the working directory")
    } else if path.split('/').any(|part| part == "..") {
        Some("cannot leave the working directory")
    } else if path.contains('\0') || path.trim_matches(['.', '/']).is_empty() {
        Some("is not the name of a file")
    } else {
        None
    };
    if let Some(reason) = problem {
        reading.problems.push(model::Diagnostic::error(format!("`path` {reason}")).at(place.excerpt()));
        return None;
    }
    let fixtures = reading.context.case.map(|case| &case.fixtures);
    let is_fixture = fixtures.is_some_and(|fixtures| fixtures.files().any(|file| file.path == path));
    let doubt = if is_fixture {
        None
    } else if let Some(stray) = stray_character(&path) {
        Some(stray)
    } else if path.starts_with('^') || path.contains('|') || path.contains("\\.") {
        let message = format!("`{path}` is not read as a regular expression");
        Some(model::Diagnostic::warning(message).help("write the path of each file in an assertion of its own"))
    } else if path.contains('\\') {
        let message = format!("`{path}` has a `\\`, which does not separate folders here");
        Some(model::Diagnostic::warning(message).suggest(Some(&path.replace("\\ ", " ").replace('\\', "/"))))
    } else if has_alternatives(&path) {
        let message = format!("`{path}` is read as one path, without alternatives");
        Some(model::Diagnostic::warning(message).help("write an assertion for each"))
    } else {
        None
    };
    let doubt = doubt.map(|doubt| model::Diagnostic { severity: model::Severity::Warning, ..doubt });
    reading.problems.extend(doubt.map(|doubt| doubt.at(place.excerpt())));
    Some((path, place))
}

/// Reports a path of a folder where that of a file is needed.
pub(crate) fn is_folder(path: &str, place: &SourceLocation, help: &str, reading: &mut Reading<'_>) -> bool {
    let is_folder = path.ends_with('/');
    if is_folder {
        let message = format!("`{path}` is a folder, and the assertion is about a file");
        reading.problems.push(model::Diagnostic::error(message).at(place.excerpt()).help(help));
    }
    is_folder
}

impl SandboxFile {
    /// Reads the `path` field of an assertion about a file, which must be inside the working directory.
    pub fn read(reading: &mut Reading<'_>) -> Option<Self> {
        let file = Self::read_path(reading)?;
        let help = "a command can check a folder: `test -d PATH`";
        (!is_folder(&file.path, &file.place, help, reading)).then_some(file)
    }

    /// Like [`read`](Self::read), but the path may be that of a folder.
    pub fn read_path(reading: &mut Reading<'_>) -> Option<Self> {
        let known = reading.problems.len();
        let (path, place) = read_inside(reading)?;
        if reading.problems.len() == known {
            warn_about_pattern(&path, &place, reading);
        }
        Some(Self { path, place })
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
