//! Sources of facts.

mod code;
mod configuration;
mod directory;
mod manifest;
pub(crate) mod openapi;
mod prompt;
mod secret;
mod skill;
mod text;
mod tool_list;

use std::path::{Path, PathBuf};

use mask::Mask;
use model::Diagnostic;

use crate::profile::{Profile, ToolFact};

/// Contents of a source, or the problems with it.
type ReadResult = Result<Reading, Vec<Diagnostic>>;

/// A kind of source.
pub struct Source {
    /// Name for messages.
    pub name: &'static str,
    /// Returns the facts in the file or folder at `path`, which is shown as `shown`; `None` if it is another kind of
    /// source.
    read: fn(&Path, &str) -> Option<ReadResult>,
}

/// All kinds of sources; the first one that recognises a path reads it.
pub static SOURCES: &[Source] = &[
    Source { name: "a folder with a SKILL.md", read: skill::read },
    Source { name: "an OpenAPI document", read: openapi::read },
    Source { name: "a list of tools, as in MCP or OpenAI", read: tool_list::read },
    Source { name: "a prompt in a .md or .txt file", read: prompt::read },
    Source { name: "a file with source code", read: directory::read_file },
    Source { name: "a folder with source code", read: directory::read },
];

/// Content of a source.
#[derive(Debug, Default)]
struct Reading {
    profile: Profile,
    /// Files that a model may also read.
    files: Vec<SourceFile>,
    /// Secrets in the files.
    secrets: Vec<String>,
    problems: Vec<Diagnostic>,
}

impl From<Profile> for Reading {
    fn from(profile: Profile) -> Self {
        Self { profile, ..Self::default() }
    }
}

/// A text file from a source, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// Path as the user would write it.
    pub name: String,
    /// Content. Its lines are those of the file, except where secrets are removed.
    pub text: String,
}

/// Facts from sources, without secrets.
#[derive(Debug, Default)]
pub struct Sources {
    /// Facts.
    pub profile: Profile,
    /// Text files of the sources.
    pub files: Vec<SourceFile>,
    /// Problems.
    pub problems: Vec<Diagnostic>,
    /// Mask that also covers the secrets in the sources.
    pub mask: Mask,
}

/// Returns the facts in all `paths` and `prompts`, each given with the path to show. A prompt may have any file name.
/// Secrets are removed: those that `mask` knows, and those found in the sources.
pub fn discover(paths: &[(PathBuf, String)], prompts: &[(PathBuf, String)], mask: &Mask) -> Sources {
    let mut sources = Sources::default();
    let mut secrets = Vec::new();
    let all = prompts.iter().map(|prompt| (prompt, true)).chain(paths.iter().map(|path| (path, false)));
    for ((path, shown), is_prompt) in all {
        if !path.exists() {
            sources.problems.push(Diagnostic::error(format!("`{shown}` does not exist")));
            continue;
        }
        let found = match is_prompt {
            true => Some(prompt::read_any(path, shown)),
            false => SOURCES.iter().find_map(|source| (source.read)(path, shown)),
        };
        match found {
            Some(Ok(found)) => {
                sources.problems.extend(found.problems);
                if found.profile.is_empty() {
                    sources.problems.push(Diagnostic::warning(format!("nothing was found in `{shown}`")));
                }
                sources.profile.merge(found.profile);
                sources.files.extend(found.files);
                secrets.extend(found.secrets);
            }
            Some(Err(errors)) => sources.problems.extend(errors),
            None => {
                let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
                let problem = Diagnostic::error(format!("`{shown}` is not a source of facts about an agent"));
                sources.problems.push(problem.help(format!("sources: {}", names.join(", "))));
            }
        }
    }
    sources.mask = secret::masking(mask, &secrets);
    sources.profile.change_texts(|text| sources.mask.string(text));
    sources.files.iter_mut().for_each(|file| file.text = secret::masked(&file.text, &sources.mask));
    sources
}

/// Returns the facts in a text, such as instructions, which is shown as `shown`.
pub(crate) fn read_text(text: &str, shown: &str) -> Profile {
    text::read(text, shown, 1)
}

/// Returns the tool that a JSON definition describes, which is shown as `shown`.
pub(crate) fn read_tool(definition: &serde_json::Value, shown: &str) -> Option<ToolFact> {
    tool_list::tool(&model::Node::from_json(definition, &model::Source::new(shown, "")))
}

/// Returns `true` if the path is a file with one of these extensions.
fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    path.is_file() && extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests;
