//! Claims that files exist, or that they were created, changed or deleted.

use model::{Change, Evidence, FoundFile, Need, Probed};

use super::FileEvent;
use crate::format;
use crate::glob::Glob;
use crate::matcher::{Judgement, Matcher};
use crate::skill_use::without_installed;
use crate::verdict::{Verdict, without_sandbox};

/// Number of paths that a finding shows.
const SHOWN: usize = 10;

/// Claim about files.
#[derive(Debug, Clone)]
pub(super) struct FilesClaim {
    pub what: FileEvent,
    /// Paths with wildcards, in any folder. If empty, any file.
    pub names: Vec<String>,
    /// True if one of the paths is enough.
    pub is_either: bool,
    /// True if the paths are relative to the root only.
    pub is_at_root: bool,
    /// True if the claim is negated.
    pub is_negated: bool,
}

impl FilesClaim {
    /// Returns the name of the method, for reports.
    pub fn method(&self) -> &'static str {
        match (self.what, self.is_negated) {
            (FileEvent::Exist, false) => "file_exists",
            (FileEvent::Exist, true) => "file_not_exists",
            (FileEvent::Created, false) => "file_created",
            (FileEvent::Created, true) => "file_not_created",
            (FileEvent::Written, false) => "file_written",
            (FileEvent::Written, true) => "file_not_written",
            (FileEvent::Modified | FileEvent::Changed, false) => "file_changed",
            (FileEvent::Modified | FileEvent::Changed, true) => "file_unchanged",
            (FileEvent::Deleted, false) => "file_deleted",
            (FileEvent::Deleted, true) => "file_not_deleted",
        }
    }

    /// Returns the names, for messages.
    pub fn about(&self) -> Option<String> {
        let names: Vec<String> = self.names.iter().map(|name| format!("`{name}`")).collect();
        let joined = if self.is_either { names.join(" or ") } else { format::list(&names) };
        (!names.is_empty()).then_some(joined)
    }

    fn describe(&self) -> String {
        self.about().unwrap_or_else(|| "files".to_owned())
    }

    /// Returns the pattern of the files and directories that `name` refers to.
    fn meant(&self, name: &str) -> Glob {
        let is_at_root = self.is_at_root || name.starts_with("./");
        if is_at_root { Glob::path(name) } else { Glob::path(&format!("**/{name}")) }
    }

    /// Returns a file that `name` refers to, or the directory that it refers to.
    fn find<'p>(&self, name: &str, paths: &[&'p str]) -> Option<&'p str> {
        let folders = |path: &'p str| path.match_indices('/').map(move |(offset, _)| &path[..offset]);
        let meant = self.meant(name);
        let file = paths.iter().copied().find(|path| meant.is_match_path(path));
        file.or_else(|| paths.iter().copied().flat_map(folders).find(|folder| meant.is_match_path(folder)))
    }
}

impl Matcher for FilesClaim {
    fn needs(&self) -> Vec<Need> {
        vec![Need::Files]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        if let Some(verdict) = without_sandbox(evidence, &Need::Files) {
            return Ok(verdict);
        }
        match (self.what, self.names.is_empty()) {
            (FileEvent::Exist, _) => {
                let (files, clipped) = self.listed(evidence)?;
                Ok(self.exist(&files, clipped))
            }
            (_, true) => Ok(self.any_became(evidence)),
            (..) => self.became(evidence),
        }
    }
}

/// Returns the listed files without those of installed skills, and `true` if there are more. The error says why they could
/// not be listed.
pub(super) fn listed(evidence: &Evidence) -> Result<(Vec<&FoundFile>, bool), String> {
    let collected = &evidence.collected;
    match collected.probed(&Need::Files) {
        Some(Probed::Files { files, clipped }) => Ok((without_installed(files, &collected.files_changed), *clipped)),
        Some(Probed::Failed { reason }) => Err(format!("the files cannot be listed: {reason}")),
        _ => Err("the files were not listed".to_owned()),
    }
}

impl FilesClaim {
    /// Returns the listed files. Those of installed skills count only if the claim names such a folder itself.
    fn listed<'e>(&self, evidence: &'e Evidence) -> Result<(Vec<&'e FoundFile>, bool), String> {
        let (own, clipped) = listed(evidence)?;
        let names_hidden = self.names.iter().any(|name| name.trim_start_matches("./").starts_with('.'));
        match evidence.collected.probed(&Need::Files) {
            Some(Probed::Files { files, .. }) if names_hidden => Ok((files.iter().collect(), clipped)),
            _ => Ok((own, clipped)),
        }
    }

    fn exist(&self, files: &[&FoundFile], clipped: bool) -> Verdict {
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let found: Vec<Option<&str>> = self.names.iter().map(|name| self.find(name, &paths)).collect();
        let there: Vec<String> = found.iter().flatten().map(|path| format!("`{path}`")).collect();
        let missing: Vec<String> = self.missing(&found);
        let holds = if self.is_either { !there.is_empty() } else { missing.is_empty() };
        match self.is_negated {
            true if !there.is_empty() => {
                let shown = format::list(&there);
                Verdict::unmet(format!("{shown} exists"), format!("no {}", self.describe()), shown)
            }
            false if holds => Verdict::met(format!("found {}", format::list(&there))),
            _ if clipped => Verdict::undecided("there are more files than were listed"),
            true => Verdict::met(format!("there is no {}", missing.join(" and no "))),
            false => {
                let shown = missing.join(" and no ");
                Verdict::unmet(format!("there is no {shown}"), format!("a file {}", self.describe()), "nothing")
                    .evidence(self.near(&paths))
            }
        }
    }

    /// Returns the names that have no match.
    fn missing(&self, found: &[Option<&str>]) -> Vec<String> {
        let missing = self.names.iter().zip(found).filter(|(_, found)| found.is_none());
        missing.map(|(name, _)| format!("`{name}`")).collect()
    }

    /// Returns a hint if a file's path is similar to a name without a match.
    fn near(&self, paths: &[&str]) -> Option<String> {
        let near = model::nearest(self.names.first()?, paths.iter().copied())?;
        Some(format!("similar path: `{near}`"))
    }

    /// Returns `true` if the claim is about this kind of change.
    fn is_about(&self, change: Change) -> bool {
        match self.what {
            FileEvent::Exist => false,
            FileEvent::Created => change == Change::Added,
            FileEvent::Written => change != Change::Deleted,
            FileEvent::Modified => change != Change::Added,
            FileEvent::Changed => true,
            FileEvent::Deleted => change == Change::Deleted,
        }
    }

    /// Judges a claim about any file.
    fn any_became(&self, evidence: &Evidence) -> Verdict {
        let changes = &evidence.collected.files_changed;
        let found: Vec<String> = changes
            .iter()
            .filter(|file| self.is_about(file.change))
            .map(|file| describe_change(&file.path, file.change))
            .collect();
        let wanted = match self.is_negated {
            true => format!("no file {}", self.verb()),
            false => format!("a {} file", self.verb()),
        };
        match (found.first(), self.is_negated) {
            (None, true) => Verdict::met(format!("no file was {}", self.verb())),
            (None, false) => Verdict::unmet(format!("no file was {}", self.verb()), wanted, "none"),
            (Some(first), false) => Verdict::met(first.clone()).evidence(format::few(found, SHOWN)),
            (Some(first), true) => {
                let reason = format::count(found.len(), "file");
                let actual = first.clone();
                Verdict::unmet(format!("{reason} {}", self.verb()), wanted, actual)
                    .evidence(format::few(found.into_iter().skip(1).collect(), SHOWN))
            }
        }
    }

    /// Judges a claim about named files.
    fn became(&self, evidence: &Evidence) -> Judgement {
        let changes = &evidence.collected.files_changed;
        let about: Vec<&str> =
            changes.iter().filter(|file| self.is_about(file.change)).map(|file| file.path.as_str()).collect();
        let found: Vec<Option<&str>> = self.names.iter().map(|name| self.find(name, &about)).collect();
        let there: Vec<String> = found.iter().flatten().map(|path| format!("`{path}`")).collect();
        let missing = self.missing(&found);
        let verb = self.verb();
        if self.is_negated {
            if let Some(path) = there.first() {
                let reason = format!("{path} was {verb}");
                return Ok(Verdict::unmet(reason, format!("{} not {verb}", self.describe()), path.clone()));
            }
            return self.still_there(evidence);
        }
        let holds = if self.is_either { !there.is_empty() } else { missing.is_empty() };
        if holds {
            return Ok(Verdict::met(format!("{} {} {verb}", format::list(&there), was(there.len()))));
        }
        let every: Vec<&str> = changes.iter().map(|file| file.path.as_str()).collect();
        let other = self.names.iter().zip(&found).filter(|(_, found)| found.is_none());
        let other: Vec<String> =
            other.filter_map(|(name, _)| self.find(name, &every)).map(|path| self.other(changes, path)).collect();
        let actual = other.first().cloned().or_else(|| self.old(evidence)).unwrap_or_else(|| "nothing".to_owned());
        let reason = format!("{} {} not {verb}", format::list(&missing), was(missing.len()));
        Ok(Verdict::unmet(reason, format!("{} {verb}", self.describe()), actual))
    }

    /// Checks that a file that must not change exists at all. If it does not, its name is most likely misspelt.
    fn still_there(&self, evidence: &Evidence) -> Judgement {
        let reason = format!("{} {} not {}", self.describe(), was(self.names.len()), self.verb());
        if !matches!(self.what, FileEvent::Modified | FileEvent::Changed) {
            return Ok(Verdict::met(reason));
        }
        let (files, clipped) = self.listed(evidence)?;
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let found: Vec<Option<&str>> = self.names.iter().map(|name| self.find(name, &paths)).collect();
        Ok(match self.missing(&found).as_slice() {
            [] => Verdict::met(reason),
            _ if clipped => Verdict::undecided("there are more files than were listed"),
            missing => {
                let shown = missing.join(" and no ");
                Verdict::unmet(format!("there is no {shown}, and there was none"), self.describe(), "nothing")
                    .evidence(self.near(&paths))
            }
        })
    }

    /// Describes another change to the file at `path`.
    fn other(&self, changes: &[model::FileChange], path: &str) -> String {
        let change = changes.iter().find(|file| file.path == path).map_or(Change::Modified, |file| file.change);
        describe_change(path, change)
    }

    /// Describes a file that the claim refers to and that is unchanged.
    fn old(&self, evidence: &Evidence) -> Option<String> {
        let (files, _) = self.listed(evidence).ok()?;
        let paths: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        let found = self.names.iter().find_map(|name| self.find(name, &paths))?;
        Some(format!("`{found}` already existed and is unchanged"))
    }

    fn verb(&self) -> &'static str {
        match self.what {
            FileEvent::Exist | FileEvent::Created => "created",
            FileEvent::Written => "written",
            FileEvent::Modified => "modified",
            FileEvent::Changed => "changed",
            FileEvent::Deleted => "deleted",
        }
    }
}

fn was(count: usize) -> &'static str {
    if count == 1 { "was" } else { "were" }
}

fn describe_change(path: &str, change: Change) -> String {
    let how = match change {
        Change::Added => "is new",
        Change::Modified => "was changed",
        Change::Deleted => "was deleted",
    };
    format!("`{path}` {how}")
}
