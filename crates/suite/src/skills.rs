//! Folders of skills.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use model::nearest;

use crate::path;
use crate::request::Request;
use crate::skill::SKILL_FILE;

/// Returns the directories below `skills_dir` that are skills, sorted by name.
pub fn skills(skills_dir: &Path) -> Vec<PathBuf> {
    let mut skills = folders(skills_dir);
    skills.retain(|path| path.join(SKILL_FILE).is_file());
    skills
}

/// Returns the directories in `shelf`, sorted by name, including links to directories. If several lead to the same
/// directory, only the first is returned, and the directory itself comes before links to it.
pub fn folders(shelf: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(shelf) else { return Vec::new() };
    let (mut folders, mut links) = (Vec::new(), Vec::new());
    for entry in entries.filter_map(Result::ok) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => folders.push(entry.path()),
            Ok(kind) if kind.is_symlink() && entry.path().is_dir() => links.push(entry.path()),
            _ => {}
        }
    }
    if !links.is_empty() {
        links.sort();
        let mut known: HashSet<PathBuf> = folders.iter().filter_map(|folder| folder.canonicalize().ok()).collect();
        folders.extend(links.into_iter().filter(|link| link.canonicalize().is_ok_and(|real| known.insert(real))));
    }
    folders.sort();
    folders
}

/// Returns the names of the skills below `skills_dir`, sorted.
pub fn skill_names(skills_dir: &Path) -> Vec<String> {
    skills(skills_dir).iter().filter_map(|path| Some(path.file_name()?.to_str()?.to_owned())).collect()
}

/// Folders in which agents look for a project's skills.
pub const AGENT_FOLDERS: [&str; 3] = [".claude/skills", ".agents/skills", ".opencode/skills"];

/// Returns the directory of the project's skill with that name. A project without a folder of skills has those of its
/// agents.
pub fn skill_called(name: &str, request: &Request) -> Option<PathBuf> {
    let of_agents = AGENT_FOLDERS.iter().map(|folder| request.root.join(folder));
    let folders = std::iter::once(request.skills_dir.clone()).chain(of_agents.filter(|_| !request.skills_dir.is_dir()));
    folders.map(|folder| folder.join(name)).find(|skill| skill.join(SKILL_FILE).is_file())
}

/// Returns the skill that the user chose: the directory of a skill, given by path or by the name of a project skill,
/// or the file of a sub-agent. `None` if there is no such skill.
pub fn chosen_skill(request: &Request) -> Option<PathBuf> {
    let written = request.skill.as_deref()?;
    let named = request.skills_dir.join(written);
    let is_sub_agent = |path: &PathBuf| path.is_file() && path.extension().is_some_and(|end| end == "md");
    let is_skill = |path: &PathBuf| path.join(SKILL_FILE).is_file() || is_sub_agent(path);
    let skill = [path::resolve(&request.cwd, written), named].into_iter().find(is_skill);
    skill.or_else(|| skill_called(written, request))
}

/// Returns the file in `directory` whose name resembles the required name of a skill file.
pub fn misnamed(directory: &Path) -> Option<String> {
    nearest(SKILL_FILE, names_in(directory).iter().map(String::as_str)).map(str::to_owned)
}

/// Returns the names of everything in `directory`, sorted.
pub fn names_in(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}
