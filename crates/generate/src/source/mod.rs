//! Sources of facts.

mod openapi;
mod prompt;
mod skill;
mod text;
mod tool_list;

use std::path::Path;

use mask::Mask;
use model::Diagnostic;

use crate::profile::Profile;

/// Facts of a source, or its problems.
type Found = Result<Profile, Vec<Diagnostic>>;

/// A kind of source.
pub struct Source {
    /// Name for messages.
    pub name: &'static str,
    /// Returns the facts in the file or folder at `path`, which is shown as `shown`; `None` if it is another kind of
    /// source.
    read: fn(&Path, &str) -> Option<Found>,
}

/// All kinds of sources; the first one that recognises a path reads it.
pub static SOURCES: &[Source] = &[
    Source { name: "a folder with a SKILL.md", read: skill::read },
    Source { name: "an OpenAPI document", read: openapi::read },
    Source { name: "a list of tools, as in MCP or OpenAI", read: tool_list::read },
    Source { name: "a prompt in a .md or .txt file", read: prompt::read },
];

/// Returns the profile of all `paths`, each with the path that is shown, and the problems. Secrets are removed from it.
pub fn discover(paths: &[(std::path::PathBuf, String)], mask: &Mask) -> (Profile, Vec<Diagnostic>) {
    let (mut profile, mut problems) = (Profile::default(), Vec::new());
    for (path, shown) in paths {
        if !path.exists() {
            problems.push(Diagnostic::error(format!("`{shown}` does not exist")));
            continue;
        }
        match SOURCES.iter().find_map(|source| (source.read)(path, shown)) {
            Some(Ok(found)) if found.is_empty() => {
                problems.push(Diagnostic::warning(format!("nothing was found in `{shown}`")));
            }
            Some(Ok(found)) => profile.merge(found),
            Some(Err(errors)) => problems.extend(errors),
            None => {
                let names: Vec<&str> = SOURCES.iter().map(|source| source.name).collect();
                let problem = Diagnostic::error(format!("`{shown}` is not a source of facts about an agent"));
                problems.push(problem.help(format!("sources: {}", names.join(", "))));
            }
        }
    }
    profile.change_texts(|text| mask.string(text));
    (profile, problems)
}

/// Returns `true` if the path is a file with one of these extensions.
fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    path.is_file() && extensions.iter().any(|known| known.eq_ignore_ascii_case(extension))
}

#[cfg(test)]
mod tests;
