//! What a claim says to be in the answer, or in a file.

use model::{Evidence, Need, Probed};

use super::files::listed;
use super::is_of_skill;
use crate::assertion::Matcher;
use crate::folded;
use crate::glob;
use crate::verdict::Verdict;
use crate::words;

/// Texts that are looked for, in whatever case.
#[derive(Debug, Clone)]
pub(super) struct Texts {
    pub texts: Vec<String>,
    /// Whether one of them is enough.
    pub is_either: bool,
    /// Whether none of them may be there.
    pub is_negated: bool,
}

impl Texts {
    /// The texts, in quotes.
    pub fn told(&self) -> String {
        let quoted: Vec<String> = self.texts.iter().map(|text| words::quoted(text)).collect();
        if self.is_either { quoted.join(" or ") } else { words::list(&quoted) }
    }

    /// Whether `text`, which is called `what`, has them.
    fn judge(&self, what: &str, text: &str) -> Verdict {
        let (found, missing): (Vec<String>, Vec<String>) =
            self.texts.iter().cloned().partition(|wanted| folded::find(text, wanted).is_some());
        let shown = |texts: &[String]| words::list(&texts.iter().map(|text| words::quoted(text)).collect::<Vec<_>>());
        let holds = if self.is_either { !found.is_empty() } else { missing.is_empty() };
        let actual = || if text.is_empty() { "nothing".to_owned() } else { words::quoted(text) };
        match self.is_negated {
            true if found.is_empty() => Verdict::met(format!("{what} does not have {}", self.told())),
            true => {
                Verdict::unmet(format!("{what} has {}", shown(&found)), format!("no {}", self.told()), shown(&found))
            }
            false if holds => Verdict::met(format!("{what} has {}", shown(&found))),
            false => Verdict::unmet(format!("{what} does not have {}", shown(&missing)), self.told(), actual()),
        }
    }
}

/// Texts in the answer.
#[derive(Debug)]
pub(super) struct OutputContent {
    pub texts: Texts,
}

impl Matcher for OutputContent {
    fn judge(&self, evidence: &Evidence) -> Verdict {
        self.texts.judge("the answer", evidence.trace.answer.as_deref().unwrap_or_default())
    }
}

/// Texts in a file.
#[derive(Debug)]
pub(super) struct FileContent {
    /// Its path; if there is nothing, the one file that ends like it.
    pub file: String,
    pub texts: Texts,
    /// The skill whose own files do not count.
    pub skill: Option<String>,
}

impl FileContent {
    fn need(&self) -> Need {
        Need::File { path: self.file.clone() }
    }

    /// A file somewhere below whose path ends like that, and what is in it.
    fn elsewhere<'e>(&self, evidence: &'e Evidence) -> Result<Option<(&'e str, Option<&'e str>)>, String> {
        let (files, clipped) = listed(evidence)?;
        let pattern = format!("**/{}", self.file);
        let is_meant = |path: &str| !is_of_skill(path, self.skill.as_deref()) && glob::matches_path(&pattern, path);
        let mut found = files.iter().filter(|file| !file.path.ends_with('/') && is_meant(&file.path));
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

    fn judge(&self, evidence: &Evidence) -> Verdict {
        if evidence.collected.sandbox.is_none() {
            return Verdict::undecided("the agent worked in no sandbox");
        }
        let path = &self.file;
        match evidence.collected.probed(&self.need()) {
            Some(Probed::File { text, clipped, size }) => {
                let verdict = self.texts.judge(&format!("`{path}`"), text);
                // What is found is found; what is not may be in the rest.
                let is_found = (verdict.status == model::Status::Met) != self.texts.is_negated;
                if *clipped && !is_found {
                    return Verdict::undecided(format!("`{path}` has {size} bytes, and not all of them were read"));
                }
                verdict
            }
            Some(Probed::Failed { because }) => Verdict::undecided(format!("cannot look at `{path}`: {because}")),
            None => Verdict::undecided(format!("nobody looked for `{path}`")),
            Some(_) => match self.elsewhere(evidence) {
                Ok(Some((path, Some(text)))) => self.texts.judge(&format!("`{path}`"), text),
                Ok(Some((path, None))) => Verdict::undecided(format!("`{path}` was not read")),
                Ok(None) => Verdict::unmet(format!("there is no file `{path}`"), format!("a file `{path}`"), "nothing"),
                Err(because) => Verdict::undecided(because),
            },
        }
    }
}
