//! Plug-ins for Claude Code: a manifest, and folders with skills, sub-agents, commands, hooks and MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{PluginParts, Skill};

use crate::document::{self, Language};
use crate::skill::{self, SKILL_FILE, SUB_AGENTS_FOLDER};
use crate::skills::folders;

/// File that makes a directory a plug-in.
const MANIFEST: &str = "plugin.json";

/// Folder of the manifest.
const MANIFEST_FOLDER: &str = ".claude-plugin";

/// Folder of the plug-in's skills.
const SKILLS_FOLDER: &str = "skills";

/// Returns the manifest of the plug-in in `directory`, if it is one.
pub fn manifest_in(directory: &Path) -> Option<PathBuf> {
    let places = [directory.join(MANIFEST_FOLDER).join(MANIFEST), directory.join(MANIFEST)];
    places.into_iter().find(|path| path.is_file())
}

/// Returns `true` if the file at `path` has the name of a manifest.
pub fn is_manifest(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name == MANIFEST)
}

/// Reads the plug-in with the manifest at `path`, which messages call `shown`. The result stands for the plug-in where
/// cases have a skill.
pub fn read(path: &Path, shown: &str, problems: &mut Problems) -> Option<Skill> {
    let source = document::open(path, shown).map_err(|problem| problems.push(*problem)).ok()?;
    let root = document::read(&source, Language::Json, problems)?;
    let mut fields = Fields::of(&root, "the manifest", problems)?;
    fields.open();
    let name = fields.required_text("name", problems)?;
    let description = fields.any_text("description", problems).unwrap_or_default();
    let version = fields.text("version", problems);
    let folder = path.parent()?;
    let is_inner = folder.file_name().is_some_and(|name| name == MANIFEST_FOLDER);
    let directory = if is_inner { folder.parent()? } else { folder };
    let serde_json::Value::Object(frontmatter) = root.to_json() else { return None };
    let plugin = Some(Arc::new(parts(directory, &frontmatter)));
    let content_hash = skill::hash_of_directory(directory, shown, problems)?;
    let directory = Some(directory.to_owned());
    Some(Skill { name, description, version, directory, content_hash, frontmatter, plugin, ..Skill::default() })
}

/// Returns the contents of the plug-in in `directory`.
fn parts(directory: &Path, manifest: &serde_json::Map<String, serde_json::Value>) -> PluginParts {
    let is_skill = |folder: &PathBuf| folder.join(SKILL_FILE).is_file();
    let named = |folder: PathBuf| Some(folder.file_name()?.to_str()?.to_owned());
    let skills = folders(&directory.join(SKILLS_FOLDER)).into_iter().filter(is_skill).filter_map(named).collect();
    let files = |folder: &str| {
        let entries = std::fs::read_dir(directory.join(folder)).into_iter().flatten().flatten();
        entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "md")).count()
    };
    let counted = |count: usize, what: &str| match count {
        0 => None,
        1 => Some(format!("1 {what}")),
        count => Some(format!("{count} {what}s")),
    };
    let is_there = |path: &str, key: &str| directory.join(path).exists() || manifest.contains_key(key);
    let others = [
        counted(files(SUB_AGENTS_FOLDER), "sub-agent"),
        counted(files("commands"), "command"),
        is_there("hooks/hooks.json", "hooks").then(|| "hooks".to_owned()),
        is_there(".mcp.json", "mcpServers").then(|| "MCP servers".to_owned()),
        manifest.contains_key("skills").then(|| "skills outside its folder `skills`".to_owned()),
    ];
    PluginParts { skills, others: others.into_iter().flatten().collect() }
}
