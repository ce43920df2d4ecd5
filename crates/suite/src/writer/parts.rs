//! Parts that files of several formats have: the sandbox of a case, its commands and its servers.

use std::path::{Component, Path, PathBuf};

use model::{CopyTree, FixtureFile, Fixtures, Graded, McpServer, OuterFolder, ServerSource, Solution};
use serde_json::{Map, Value, json};

use super::WrittenFile;

/// Folder of the files to which a written file refers.
const FILES_FOLDER: &str = "files";

/// Writes parts of one file, and collects the files to which they refer.
pub(super) struct Parts<'a> {
    output: &'a Path,
    /// Name of the file without its ending.
    stem: &'a str,
    /// Files to which the parts refer.
    pub(super) files: Vec<WrittenFile>,
}

/// Adds a value, unless it is empty.
fn put(map: &mut Map<String, Value>, key: &str, value: Value) {
    let is_empty = match &value {
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(value) => !value,
        other => other.is_null(),
    };
    if !is_empty {
        map.insert(key.to_owned(), value);
    }
}

impl<'a> Parts<'a> {
    pub(super) fn new(output: &'a Path, stem: &'a str) -> Self {
        Self { output, stem, files: Vec::new() }
    }

    /// Returns the path of a file or folder of this machine, as it is written in a file in the folder of the output.
    pub(super) fn path_to(&self, path: &Path) -> String {
        let mut own = self.output.components().peekable();
        let mut other = path.components().peekable();
        while own.peek().is_some() && own.peek() == other.peek() {
            own.next();
            other.next();
        }
        let up = own.filter(|part| matches!(part, Component::Normal(_))).map(|_| Component::ParentDir);
        let relative: PathBuf = up.chain(other).collect();
        match relative.as_os_str().is_empty() {
            true => ".".to_owned(),
            false => relative.to_string_lossy().into_owned(),
        }
    }

    pub(super) fn fixtures(&mut self, fixtures: &Fixtures) -> Value {
        let Fixtures {
            git_init,
            git_branch,
            directories,
            copy_trees,
            files_committed,
            files_staged,
            files_unstaged,
            setup_commands,
            env,
            workdir,
            outside,
            absolute_source: _,
            source: _,
        } = fixtures;
        let mut map = Map::new();
        put(&mut map, "git_init", json!(git_init));
        put(&mut map, "git_branch", json!(git_branch));
        put(&mut map, "directories", json!(directories));
        put(&mut map, "copy_trees", self.trees(copy_trees));
        for (key, files) in
            [("files_committed", files_committed), ("files_staged", files_staged), ("files_unstaged", files_unstaged)]
        {
            let files = self.files(files);
            put(&mut map, key, files);
        }
        put(&mut map, "setup_commands", setup_commands.iter().map(|command| json!(command.value)).collect());
        put(&mut map, "env", pairs(env));
        put(&mut map, "workdir", json!(workdir));
        put(&mut map, "outside", outside.iter().map(|folder| self.outer_folder(folder)).collect());
        Value::Object(map)
    }

    fn trees(&self, trees: &[CopyTree]) -> Value {
        trees.iter().map(|CopyTree { from, to, .. }| json!({ "from": self.path_to(from), "to": to })).collect()
    }

    fn files(&mut self, files: &[FixtureFile]) -> Value {
        let mut entries = Vec::new();
        for FixtureFile { path, content, executable, .. } in files {
            entries.push(match std::str::from_utf8(content) {
                Ok(text) if !executable => json!({ "path": path, "content": text }),
                _ => {
                    let place = format!("{FILES_FOLDER}/{}/{}", self.stem, self.files.len());
                    let content = content.to_vec();
                    let file = WrittenFile { path: PathBuf::from(&place), content, executable: *executable };
                    self.files.push(file);
                    json!({ "path": path, "content_from": place })
                }
            });
        }
        Value::Array(entries)
    }

    fn outer_folder(&mut self, folder: &OuterFolder) -> Value {
        let OuterFolder { path, directories, trees, files } = folder;
        let mut map = Map::new();
        put(&mut map, "path", json!(path));
        put(&mut map, "directories", json!(directories));
        put(&mut map, "copy_trees", self.trees(trees));
        let files = self.files(files);
        put(&mut map, "files", files);
        Value::Object(map)
    }

    pub(super) fn graded(&mut self, graded: &Graded) -> Value {
        let Graded { taken_files, is_shared, takes_fixture, folders, rewards, solution, absolute_source: _ } = graded;
        let mut map = Map::new();
        put(&mut map, "take", json!(taken_files));
        put(&mut map, "take_fixture", json!(takes_fixture));
        put(&mut map, "shared", json!(is_shared));
        let folder = |from: &Option<PathBuf>| from.as_ref().map(|from| self.path_to(from)).unwrap_or_default();
        let folders: Map<String, Value> =
            folders.iter().map(|one| (one.path.clone(), Value::from(folder(&one.from)))).collect();
        put(&mut map, "folders", Value::Object(folders));
        put(&mut map, "rewards", json!(rewards));
        if let Some(solution) = solution {
            let Solution { outside, commands } = &**solution;
            let outside: Value = outside.iter().map(|folder| self.outer_folder(folder)).collect();
            let mut solution = Map::new();
            put(&mut solution, "outside", outside);
            solution.insert("commands".to_owned(), json!(commands));
            put(&mut map, "solution", Value::Object(solution));
        }
        Value::Object(map)
    }

    /// Returns the servers by their names. The error is the name of one that cannot be written.
    pub(super) fn servers(&self, servers: &[McpServer]) -> Result<Value, String> {
        let mut map = Map::new();
        for McpServer { name, source, is_of_plugin, .. } in servers {
            let mut entry = Map::new();
            match source {
                ServerSource::Stdio { command, args, env, files } if files.is_empty() && !is_of_plugin => {
                    entry.insert("command".to_owned(), json!(command));
                    put(&mut entry, "args", json!(args));
                    put(&mut entry, "env", pairs(env));
                }
                ServerSource::Http { url, headers } if !is_of_plugin => {
                    entry.insert("url".to_owned(), json!(url));
                    put(&mut entry, "headers", pairs(headers));
                }
                _ => return Err(format!("the MCP server `{name}` is mocked, or belongs to a plug-in")),
            }
            map.insert(name.clone(), Value::Object(entry));
        }
        Ok(Value::Object(map))
    }
}

fn pairs(pairs: &[(String, String)]) -> Value {
    Value::Object(pairs.iter().map(|(name, value)| (name.clone(), json!(value))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_output() {
        let parts = Parts::new(Path::new("/p/out/tests"), "a");
        for (path, expected) in
            [("/p/out/tests/x", "x"), ("/p/tasks/a", "../../tasks/a"), ("/p/out/tests", "."), ("/q", "../../../q")]
        {
            assert_eq!(parts.path_to(Path::new(path)), expected);
        }
    }
}
