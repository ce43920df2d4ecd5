//! Claims about strings in the answer or in a file.

use model::{Evidence, Need, Probed};

use super::files::listed;
use crate::folded;
use crate::format;
use crate::glob::Glob;
use crate::matcher::{Judgement, Matcher};
use crate::sandbox_file::too_large;
use crate::verdict::{Verdict, without_sandbox};

/// Strings that are searched, ignoring case.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    pub texts: Vec<String>,
    /// True if one of the strings is enough.
    pub is_either: bool,
    /// True if the claim is that none of the strings is present.
    pub is_negated: bool,
}

impl Texts {
    /// Returns the strings in quotes, for messages.
    pub fn describe(&self) -> String {
        let quoted: Vec<String> = self.texts.iter().map(|text| format::quoted(text)).collect();
        if self.is_either { format::any_of(&quoted) } else { format::list(&quoted) }
    }

    /// Checks `text` for the strings. `what` is its name in messages.
    fn judge(&self, what: &str, text: &str) -> Verdict {
        let (found, missing): (Vec<String>, Vec<String>) =
            self.texts.iter().cloned().partition(|wanted| folded::find(text, wanted).is_some());
        let quoted = |texts: &[String]| texts.iter().map(|text| format::quoted(text)).collect::<Vec<_>>();
        let shown = |texts: &[String]| format::list(&quoted(texts));
        let absent = |texts: &[String]| format::any_of(&quoted(texts));
        let holds = if self.is_either { !found.is_empty() } else { missing.is_empty() };
        let actual = || if text.is_empty() { "nothing".to_owned() } else { format::quoted(text) };
        match self.is_negated {
            true if found.is_empty() => Verdict::met(format!("{what} does not contain {}", absent(&self.texts))),
            true => Verdict::unmet(
                format!("{what} contains {}", shown(&found)),
                format!("no {}", absent(&self.texts)),
                shown(&found),
            ),
            false if holds => Verdict::met(format!("{what} contains {}", shown(&found))),
            false => Verdict::unmet(format!("{what} does not contain {}", absent(&missing)), self.describe(), actual()),
        }
    }
}

/// Claim about strings in the answer.
#[derive(Debug)]
pub(super) struct OutputContent {
    pub texts: Texts,
}

impl Matcher for OutputContent {
    fn judge(&self, evidence: &Evidence) -> Judgement {
        Ok(self.texts.judge("the answer", evidence.trace.answer.as_deref().unwrap_or_default()))
    }
}

/// Claim about strings in a file.
#[derive(Debug)]
pub(super) struct FileContent {
    /// Path of the file. If there is no such file, the only file whose path ends with this is used.
    pub file: String,
    pub texts: Texts,
}

impl FileContent {
    fn need(&self) -> Need {
        Need::File { path: self.file.clone() }
    }

    /// Finds the file in a subfolder whose path ends with the name, and returns its path and content.
    fn elsewhere<'e>(&self, evidence: &'e Evidence) -> Result<Option<(&'e str, Option<&'e str>)>, String> {
        let (files, clipped) = listed(evidence)?;
        let pattern = Glob::path(&format!("**/{}", self.file));
        let mut found = files.iter().filter(|file| !file.path.ends_with('/') && pattern.is_match_path(&file.path));
        match (found.next(), found.next()) {
            (Some(_), Some(_)) => Err(format!("several files are called `{}`", self.file)),
            (Some(file), None) => Ok(Some((&file.path, file.text.as_deref()))),
            (None, _) if clipped => Err("there are more files than were listed".to_owned()),
            (None, _) => Ok(None),
        }
    }
}

impl Matcher for FileContent {
    fn needs(&self) -> Vec<Need> {
        vec![self.need(), Need::Files]
    }

    fn judge(&self, evidence: &Evidence) -> Judgement {
        if let Some(verdict) = without_sandbox(evidence, &self.need()) {
            return Ok(verdict);
        }
        let path = &self.file;
        Ok(match evidence.collected.probed(&self.need()) {
            Some(Probed::File { text, clipped, size }) => {
                let verdict = self.texts.judge(&format!("`{path}`"), text);
                // If the text is found in the part that was read, the claim is decided. If not, the text may be in the
                // rest.
                let is_found = (verdict.status == model::Status::Met) != self.texts.is_negated;
                if *clipped && !is_found {
                    let reason = format!("`{path}` has {size} bytes and was not read completely");
                    return Ok(too_large(path, reason, evidence));
                }
                verdict
            }
            Some(Probed::Failed { reason }) => Verdict::undecided(format!("could not inspect `{path}`: {reason}")),
            None => Verdict::undecided(format!("`{path}` was not inspected")),
            Some(_) => match self.elsewhere(evidence)? {
                Some((path, Some(text))) => self.texts.judge(&format!("`{path}`"), text),
                Some((path, None)) => Verdict::undecided(format!("`{path}` was not read")),
                None => Verdict::unmet(
                    format!("there is no file named `{path}`"),
                    format!("a file named `{path}`"),
                    "nothing",
                ),
            },
        })
    }
}
