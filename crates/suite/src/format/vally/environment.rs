//! Environments: skills, files, commands and MCP servers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::decode::Fields;
use model::{Fixtures, McpServer, Mocks, Node, NodeKind, Skill, Spanned, Subject};

use crate::document;
use crate::format::foreign::{Keys, Reading, text};
use crate::mocks;
use crate::path;
use crate::plugin;
use crate::skill::SKILL_FILE;

/// File with the project's configuration there.
const CONFIGURATION: &str = ".vally.yaml";

/// Contents of the sandbox, and what the agent has in addition.
#[derive(Clone, Default)]
pub(super) struct Environment {
    skills: Vec<(PathBuf, Node)>,
    fixtures: Fixtures,
    servers: Vec<McpServer>,
}

impl Reading<'_> {
    /// Adds the environment called `name` in the nearest `.vally.yaml`.
    pub(super) fn named_environment(&mut self, name: &str, place: &Node, environment: &mut Environment) {
        let found = self.directory.ancestors().map(|folder| folder.join(CONFIGURATION)).find(|path| path.is_file());
        let Some(path) = found else {
            self.found.push(place.error(format!("there is no `{CONFIGURATION}` with the environment `{name}`")));
            return;
        };
        let read =
            document::read_document(&path, &self.library.shown(&path)).map_err(|problems| self.found.extend(problems));
        let Ok(root) = read else { return };
        let Some(node) = root.get("environments").and_then(|all| all.get(name)) else {
            let shown = self.library.shown(&path);
            self.found.push(place.error(format!("`{shown}` has no environment called `{name}`")));
            return;
        };
        // Its paths are relative to its own folder.
        let own = std::mem::replace(&mut self.directory, path.parent().unwrap_or(Path::new("/")).to_owned());
        self.environment(node, "environments[]", environment);
        self.directory = own;
    }

    /// Adds an environment, whose key is `path`.
    pub(super) fn environment(&mut self, node: &Node, path: &str, environment: &mut Environment) {
        if let Some(name) = node.as_str() {
            self.named_environment(name, node, environment);
            return;
        }
        let Some(mut fields) = Fields::of(node, "`environment`", &mut self.found) else { return };
        for item in fields.list("skills", &mut self.found).unwrap_or_default() {
            let Some(written) = model::decode::text(item, "an item of `skills`", &mut self.found) else { continue };
            let found = self.path_of(&written);
            let directory = match found.file_name().is_some_and(|name| name == SKILL_FILE) {
                true => found.parent().unwrap_or(&found).to_owned(),
                false => found,
            };
            environment.skills.push((directory, text(item, written)));
        }
        for item in fields.list("files", &mut self.found).unwrap_or_default() {
            self.file(item, path, &mut environment.fixtures);
        }
        for item in fields.list("commands", &mut self.found).unwrap_or_default() {
            if let Some(command) = model::decode::text(item, "an item of `commands`", &mut self.found) {
                environment.fixtures.setup_commands.push(Spanned::new(command, item.span));
            }
        }
        if let Some(node) = fields.get("mcpServers") {
            self.copilot_servers(node, path, environment);
        }
        self.close(&fields, path, &[], &[] as &Keys<'_>);
    }

    fn file(&mut self, item: &Node, path: &str, fixtures: &mut Fixtures) {
        let Some(mut fields) = Fields::of(item, "a file", &mut self.found) else { return };
        let (from, to) = (fields.required_text("src", &mut self.found), fields.required_text("dest", &mut self.found));
        self.close(&fields, &format!("{path}.files[]"), &[], &[] as &Keys<'_>);
        if let (Some(from), Some(to)) = (from, to) {
            self.stage(&from, &to, fixtures, item);
        }
    }

    /// Adds MCP servers, which are written as in the configuration of GitHub Copilot.
    fn copilot_servers(&mut self, node: &Node, path: &str, environment: &mut Environment) {
        let NodeKind::Map(entries) = &node.kind else {
            self.found.push(node.error(format!("`mcpServers` must be a map, not {}", node.kind_name())));
            return;
        };
        for (name, server) in entries {
            let Some(mut fields) = Fields::of(server, "a server", &mut self.found) else { continue };
            for key in ["command", "args", "env", "url", "headers"] {
                fields.get(key);
            }
            if let Some(tools) = fields.get("tools").filter(|tools| !is_all(tools)) {
                self.refuse("mcpServers.tools", "agents get all tools of a server", tools);
            }
            let ignored =
                [("type", "the address or the command shows it"), ("timeout", "the agent has its own limit for calls")];
            self.close(&fields, &format!("{path}.mcpServers[]"), &ignored, &[] as &Keys<'_>);
            let kept = |key: &str| matches!(key, "command" | "args" | "env" | "url" | "headers");
            let NodeKind::Map(all) = &server.kind else { continue };
            let own = all.iter().filter(|(key, _)| kept(&key.value)).cloned().collect();
            let one = vec![(name.clone(), Node { kind: NodeKind::Map(own), ..server.clone() })];
            let one = Node { kind: NodeKind::Map(one), ..node.clone() };
            let Mocks { servers, .. } = mocks::from_nodes(Some(&one), None, &self.directory, &mut self.found);
            environment.servers.retain(|known| !servers.iter().any(|server| server.name == known.name));
            environment.servers.extend(servers);
        }
    }

    /// Returns the contents of the sandbox, the subject and the servers of an environment.
    pub(super) fn equipment(&mut self, environment: &Environment) -> (Fixtures, Subject, Mocks) {
        let mocks = Mocks { servers: environment.servers.clone(), commands: Vec::new() };
        (environment.fixtures.clone(), self.subject_of(&environment.skills), mocks)
    }

    /// Returns the subject that the skills are: one of them, or the plug-in that has exactly these.
    fn subject_of(&mut self, skills: &[(PathBuf, Node)]) -> Subject {
        let mut folders: Vec<&(PathBuf, Node)> = Vec::new();
        for skill in skills {
            if !folders.iter().any(|(known, _)| *known == skill.0) {
                folders.push(skill);
            }
        }
        let read = match folders.as_slice() {
            [] => return Subject::Agent,
            [(folder, place)] if !folder.exists() => {
                let written = place.as_str().unwrap_or_default();
                let problem = place.error(format!("there is no skill at `{}`", self.library.shown(folder)));
                self.found.push(problem.suggest(path::near(folder, written).as_deref()));
                return Subject::Agent;
            }
            [(folder, _)] => self.library.skill_at(folder),
            [(first, place), ..] => {
                let plugin = first.parent().and_then(Path::parent).and_then(plugin::manifest_in);
                let plugin = plugin.and_then(|manifest| self.library.skill_at(&manifest));
                let is_whole = |plugin: &Arc<Skill>| {
                    let (Some(parts), Some(root)) = (&plugin.plugin, &plugin.directory) else { return false };
                    let own: Vec<PathBuf> = parts.skills.iter().map(|name| root.join("skills").join(name)).collect();
                    own.len() == folders.len() && folders.iter().all(|(folder, _)| own.contains(folder))
                };
                match plugin.filter(is_whole) {
                    Some(plugin) => Some(plugin),
                    None => {
                        let consequence = "an agent gets one skill, or all skills of a plug-in";
                        self.refuse("environment.skills", consequence, place);
                        return Subject::Agent;
                    }
                }
            }
        };
        match read {
            Some(skill) => Subject::Installed(skill),
            None => {
                let (folder, place) = folders[0];
                let shown = self.library.shown(folder);
                self.found.push(place.error(format!("the skill in `{shown}` cannot be read")));
                Subject::Agent
            }
        }
    }
}

/// Returns `true` for the list of all tools.
fn is_all(tools: &Node) -> bool {
    matches!(&tools.kind, NodeKind::List(items) if items.iter().all(|item| item.as_str() == Some("*")))
}
