//! Checks of files in the sandbox, whose paths may be patterns.

use model::decode::Problems;
use model::{Evidence, FoundFile, Need, Node, Probed};

use super::{Held, Text, flag, text};
use crate::glob::Glob;
use crate::verdict::NO_SANDBOX;

/// Number of paths that a reason names.
const SHOWN: usize = 5;

/// Condition on the files that match a pattern.
#[derive(Debug)]
pub(super) struct Files {
    path: String,
    globs: Vec<Glob>,
    /// True if the path has no wildcards.
    is_plain: bool,
    rule: Rule,
}

#[derive(Debug)]
enum Rule {
    /// There is such a file, or there is none.
    Exist(bool),
    /// One of the files has the text, or none has it.
    Have(Text),
}

impl Files {
    pub(super) fn read(node: &Node, problems: &mut Problems) -> Option<Self> {
        let path = text(node, "path")?.trim_start_matches("./").to_owned();
        let has_text = ["contains", "matches", "equals"].iter().any(|key| node.get(key).is_some());
        let rule = match has_text {
            true => Rule::Have(Text::read(node, problems)?),
            false => Rule::Exist(!flag(node, "not")),
        };
        let is_plain = !path.contains(['*', '?', '[', '{']);
        let globs = alternatives(&path).iter().map(|path| Glob::path(path)).collect();
        Some(Self { path, globs, is_plain, rule })
    }

    pub(super) fn need(&self) -> Need {
        match self.is_plain {
            true => Need::File { path: self.path.clone() },
            false => Need::Files,
        }
    }

    pub(super) fn test(&self, evidence: &Evidence) -> Result<Held, String> {
        let path = &self.path;
        let found: Vec<(&str, Option<&str>)> = match evidence.collected.probed(&self.need()) {
            Some(Probed::Lost { reason }) => return Ok(Held::plain(false, reason.clone())),
            None if evidence.collected.sandbox.is_none() => return Err(NO_SANDBOX.to_owned()),
            Some(Probed::Nothing | Probed::Directory | Probed::Special | Probed::Outside) => Vec::new(),
            Some(Probed::File { text, clipped, .. }) => vec![(path.as_str(), (!clipped).then_some(text.as_str()))],
            Some(Probed::Files { files, clipped }) => {
                let is_match = |file: &&FoundFile| {
                    !file.path.ends_with('/') && self.globs.iter().any(|glob| glob.is_match_path(&file.path))
                };
                let found: Vec<_> =
                    files.iter().filter(is_match).map(|file| (file.path.as_str(), file.text.as_deref())).collect();
                if found.is_empty() && *clipped {
                    return Err("there are too many files to list".to_owned());
                }
                found
            }
            Some(Probed::Failed { reason }) => return Err(format!("could not inspect `{path}`: {reason}")),
            _ => return Err(format!("`{path}` was not inspected")),
        };
        let names: Vec<String> = found.iter().map(|(name, _)| format!("`{name}`")).collect();
        let names = crate::format::few(names, SHOWN).join(", ");
        match &self.rule {
            Rule::Exist(is_wanted) => {
                let reason = match found.is_empty() {
                    true => format!("there is no file `{path}`"),
                    false => format!("{names} exists"),
                };
                Ok(Held::plain(found.is_empty() != *is_wanted, reason))
            }
            // The path is probably misspelt.
            Rule::Have(_) if found.is_empty() => Ok(Held::plain(false, format!("there is no file `{path}`"))),
            Rule::Have(text) => {
                let mut unread = None;
                for (name, content) in &found {
                    let Some(content) = content else {
                        unread = Some(*name);
                        continue;
                    };
                    if text.is_in(content)? {
                        return Ok(Held::plain(text.is_wanted, format!("`{name}` {}", text.says(true))));
                    }
                }
                match unread {
                    Some(name) => Err(format!("`{name}` was not read completely")),
                    None => Ok(Held::plain(!text.is_wanted, format!("{names} {}", text.says(false)))),
                }
            }
        }
    }
}

/// Returns the patterns that `pattern` stands for: `{a,b}.md` is `a.md` or `b.md`.
fn alternatives(pattern: &str) -> Vec<String> {
    let Some((front, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let Some((choices, end)) = rest.split_once('}').filter(|(choices, _)| choices.contains(',')) else {
        return vec![pattern.to_owned()];
    };
    choices.split(',').flat_map(|choice| alternatives(&format!("{front}{choice}{end}"))).take(100).collect()
}
