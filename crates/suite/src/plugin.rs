//! Plug-ins for Claude Code: a manifest, and folders with skills, sub-agents, commands, hooks and MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::{Fields, Problems};
use model::{Excerpt, McpServer, PluginParts, ServerSource, Skill};
use serde_json::{Map, Value};

use crate::document::{self, Language};
use crate::skill::{self, SKILL_FILE, SUB_AGENTS_FOLDER};
use crate::skills::folders;

/// File that makes a directory a plug-in.
const MANIFEST: &str = "plugin.json";

/// Folder of the manifest.
const MANIFEST_FOLDER: &str = ".claude-plugin";

/// File with the plug-in's MCP servers.
const SERVERS_FILE: &str = ".mcp.json";

/// Maximum size of that file, in bytes.
const LARGEST_SERVERS: u64 = 1 << 20;

/// Folder of the plug-in's skills.
pub const SKILLS_FOLDER: &str = "skills";

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
    let plugin = Some(Arc::new(parts(&name, directory, &frontmatter)));
    let content_hash = skill::hash_of_directory(directory, shown, problems)?;
    let directory = Some(directory.to_owned());
    Some(Skill { name, description, version, directory, content_hash, frontmatter, plugin, ..Skill::default() })
}

/// Returns the contents of the plug-in in `directory`.
fn parts(name: &str, directory: &Path, manifest: &Map<String, Value>) -> PluginParts {
    let is_skill = |folder: &PathBuf| folder.join(SKILL_FILE).is_file();
    let named = |folder: PathBuf| Some(folder.file_name()?.to_str()?.to_owned());
    let skills = folders(&directory.join(SKILLS_FOLDER)).into_iter().filter(is_skill).filter_map(named).collect();
    let files = |folder: &str| {
        let entries = std::fs::read_dir(directory.join(folder)).into_iter().flatten().flatten();
        let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
        files.sort();
        files
    };
    let written_agents = files(SUB_AGENTS_FOLDER);
    let sub_agent = |path: &PathBuf| skill::read_sub_agent(path, &path.to_string_lossy(), &mut Problems::new());
    let sub_agents: Vec<Arc<Skill>> = written_agents.iter().filter_map(sub_agent).map(Arc::new).collect();
    let is_there = |path: &str, key: &str| directory.join(path).exists() || manifest.contains_key(key);
    let written = written_servers(directory, manifest);
    let servers: Vec<McpServer> =
        written.iter().filter_map(|(server, about)| server_of(name, server, about, directory)).collect();
    let unknown = written.len() - servers.len();
    let others = [
        (written_agents.len() > sub_agents.len()).then(|| "sub-agents that cannot be read".to_owned()),
        counted(files("commands").len(), "command"),
        is_there("hooks/hooks.json", "hooks").then(|| "hooks".to_owned()),
        (unknown > 0).then(|| "MCP servers of an unknown kind".to_owned()),
        manifest.contains_key("skills").then(|| "skills outside its folder `skills`".to_owned()),
    ];
    PluginParts { skills, sub_agents, servers, others: others.into_iter().flatten().collect() }
}

/// Counts parts; `None` if there are none.
fn counted(count: usize, what: &str) -> Option<String> {
    (count > 0).then(|| model::text::counted(count, what))
}

/// Returns the MCP servers that the plug-in in `directory` declares: in its manifest, in a file that the manifest names,
/// or in `.mcp.json`.
fn written_servers(directory: &Path, manifest: &Map<String, Value>) -> Vec<(String, Value)> {
    let file = |path: &str| {
        let text = files::read_named_text(&directory.join(path), LARGEST_SERVERS).unwrap_or_default();
        let mut read: Value = serde_json::from_str(&text).unwrap_or_default();
        let inner = read.get_mut("mcpServers").map(Value::take);
        inner.unwrap_or(read)
    };
    let own = match manifest.get("mcpServers") {
        Some(Value::String(path)) => file(path),
        Some(own) => own.clone(),
        None => Value::Null,
    };
    let mut servers: Vec<(String, Value)> = Vec::new();
    for written in [own, file(SERVERS_FILE)] {
        let Value::Object(written) = written else { continue };
        for (name, about) in written {
            if !servers.iter().any(|(known, _)| *known == name) {
                servers.push((name, about));
            }
        }
    }
    servers
}

/// Returns a server of a plug-in; `None` if it is of an unknown kind.
fn server_of(plugin: &str, name: &str, about: &Value, directory: &Path) -> Option<McpServer> {
    let root = directory.to_string_lossy();
    let text = |value: &Value| value.as_str().map(|text| with_root(text, &root));
    let list = |key: &str| about.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(text).collect();
    let map = |key: &str| {
        let entries = about.get(key).and_then(Value::as_object).into_iter().flatten();
        entries.filter_map(|(name, value)| Some((name.clone(), text(value)?))).collect()
    };
    let source = match (about.get("command").and_then(text), about.get("url").and_then(text)) {
        (Some(command), _) => {
            let files = vec![directory.to_owned()];
            ServerSource::Stdio { command, args: list("args"), env: map("env"), files }
        }
        (None, Some(url)) if about.get("type").is_none_or(|kind| kind == "http") => {
            ServerSource::Http { url, headers: map("headers") }
        }
        _ => return None,
    };
    let place = Excerpt::of_file(directory.join(SERVERS_FILE).to_string_lossy());
    Some(McpServer { name: full_name(plugin, name), source, is_of_plugin: true, place })
}

/// Replaces the variable with the folder of the plug-in, which may have a default.
fn with_root(text: &str, root: &str) -> String {
    let mut parts = text.split("${CLAUDE_PLUGIN_ROOT");
    let mut whole = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let after = part.strip_prefix('}').or_else(|| part.strip_prefix(":-")?.split_once('}').map(|(_, after)| after));
        match after {
            Some(after) => whole.extend([root, after]),
            None => whole.extend(["${CLAUDE_PLUGIN_ROOT", part]),
        }
    }
    whole
}

/// Returns the name that a server of a plug-in has in Claude Code.
pub fn full_name(plugin: &str, server: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
    format!("plugin_{plugin}_{server}").chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::with_root;

    #[test]
    fn the_folder_of_a_plugin_is_inserted() {
        for (text, expected) in [
            ("${CLAUDE_PLUGIN_ROOT}/a ${CLAUDE_PLUGIN_ROOT}", "/p/a /p"),
            ("\"${CLAUDE_PLUGIN_ROOT:-$PWD}/a\"", "\"/p/a\""),
            ("${CLAUDE_PLUGIN_ROOTS} ${HOME}", "${CLAUDE_PLUGIN_ROOTS} ${HOME}"),
        ] {
            assert_eq!(with_root(text, "/p"), expected);
        }
    }
}
