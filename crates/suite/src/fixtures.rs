//! `fixtures` block: the contents of a sandbox before the agent starts. All the files that it names are read here, so
//! that the same block always builds the same sandbox.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use model::decode::{self, Fields, Problems};
use model::text::open_quote;
use model::{
    CopyTree, Diagnostic, Excerpt, FixtureFile, Fixtures, Node, NodeKind, OuterFolder, Spanned, is_branch_name,
};

use crate::{ai_tester, path};

/// Keys that people write for the files of a sandbox.
const SYNONYMS: [(&str, &str); 3] =
    [("files", "files_committed"), ("setup", "setup_commands"), ("commands", "setup_commands")];

/// A block as written. Missing fields are unset, so that blocks can be merged.
#[derive(Debug, Clone, Default)]
pub struct Block {
    /// Names of the shared blocks that it extends, in order, with their locations.
    pub extends: Vec<(String, Excerpt)>,
    git_init: Option<bool>,
    /// All other fields, with `git_init` unset.
    rest: Fixtures,
}

/// Keys of other programs for a folder that is copied.
const TREE_SYNONYMS: [(&str, &str); 4] = [("src", "from"), ("source", "from"), ("dest", "to"), ("target", "to")];

impl Block {
    /// Reads a block; its paths are relative to `base`.
    pub fn read(node: &Node, base: &Path, problems: &mut Problems) -> Option<Self> {
        let mut fields = Fields::of(node, "`fixtures`", problems)?.with_synonyms(&SYNONYMS);
        let file = |item: &Node, problems: &mut Problems| file(item, base, problems);
        let extends = extends(&mut fields, problems);
        let git_init = fields.boolean("git_init", problems);
        let absolute = fields.get("workdir").or_else(|| fields.get("outside"));
        let rest = Fixtures {
            absolute_source: absolute.map(Node::excerpt),
            directories: directories(&mut fields, problems),
            workdir: fields.get("workdir").and_then(|node| absolute_path(node, "`workdir`", problems)),
            outside: each(&mut fields, "outside", problems, |item, problems| outer_folder(item, base, problems)),
            git_branch: branch(&mut fields, problems),
            copy_trees: each(&mut fields, "copy_trees", problems, |item, problems| copy_tree(item, base, problems)),
            files_committed: each(&mut fields, "files_committed", problems, file),
            files_staged: each(&mut fields, "files_staged", problems, file),
            files_unstaged: each(&mut fields, "files_unstaged", problems, file),
            setup_commands: each(&mut fields, "setup_commands", problems, |item, problems| {
                let command = decode::text(item, "an item of `setup_commands`", problems)?;
                if let Some(quote) = open_quote(&command) {
                    problems.push(item.error(format!("a `{quote}` is not closed in this command")));
                }
                problems.extend(lost_effect(item, &command));
                Some(Spanned::new(command, item.span))
            }),
            env: env(&mut fields, problems),
            ..Fixtures::default()
        };
        refuse_not_executable(node, &rest, problems);
        let lists = [&rest.files_committed, &rest.files_staged, &rest.files_unstaged];
        lists.into_iter().for_each(|list| refuse_second(list, problems));
        fields.finish_except(&ai_tester::KEYS, problems);
        Some(Self { extends, git_init, rest })
    }

    /// Merges `other` into this block: lists and variables are appended, single values are replaced.
    pub fn merge(&mut self, other: &Self) {
        self.git_init = other.git_init.or(self.git_init);
        let (rest, other) = (&mut self.rest, &other.rest);
        rest.git_branch = other.git_branch.clone().or_else(|| rest.git_branch.take());
        rest.workdir = other.workdir.clone().or_else(|| rest.workdir.take());
        rest.absolute_source = other.absolute_source.clone().or_else(|| rest.absolute_source.take());
        rest.directories.extend_from_slice(&other.directories);
        rest.outside.extend_from_slice(&other.outside);
        rest.copy_trees.extend_from_slice(&other.copy_trees);
        rest.files_committed.extend_from_slice(&other.files_committed);
        rest.files_staged.extend_from_slice(&other.files_staged);
        rest.files_unstaged.extend_from_slice(&other.files_unstaged);
        rest.setup_commands.extend_from_slice(&other.setup_commands);
        for (name, value) in &other.env {
            match rest.env.iter_mut().find(|(known, _)| known == name) {
                Some((_, old)) => old.clone_from(value),
                None => rest.env.push((name.clone(), value.clone())),
            }
        }
    }

    /// Assumes a repository unless the block says otherwise, because a block that it extends is not known.
    pub fn assume_repository(&mut self) {
        self.git_init.get_or_insert(true);
    }

    /// Converts the block to fixtures; `node` is the case's own block, for messages.
    pub fn into_fixtures(self, node: &Node, problems: &mut Problems) -> Fixtures {
        let git_init = self.git_init.unwrap_or(false);
        let rest = &self.rest;
        let of_git = [
            ("git_branch", rest.git_branch.is_some()),
            ("files_committed", !rest.files_committed.is_empty()),
            ("files_staged", !rest.files_staged.is_empty()),
        ];
        // One that cannot be read, or whose key is misspelt, is reported.
        let is_reported = self.git_init.is_none() && node.get("git_init").is_some();
        let is_reported = is_reported || problems.iter().any(|problem| problem.means("git_init"));
        let is_without = |key: &str| match key {
            "git_branch" => !git_init,
            _ => self.git_init.is_none(),
        };
        let given = of_git.into_iter().filter(|(_, is_given)| *is_given && !is_reported);
        for (key, _) in given.filter(|(key, _)| is_without(key)) {
            let message = match key {
                "git_branch" => "`git_branch` does nothing without `git_init: true`".to_owned(),
                _ => format!("`{key}` are only files without `git_init: true`, because there is no repository"),
            };
            let problem = node.get(key).unwrap_or(node).warning(message);
            problems.push(match key {
                "git_branch" => problem,
                _ => problem.help("write `git_init: true`, or `files_unstaged` for files without a repository"),
            });
        }
        refuse_files_as_folders(rest, problems);
        Fixtures { git_init, source: Some(node.excerpt()), ..self.rest }
    }
}

/// Reports commands that run a file of the block which is not executable, unless a command before may change that.
fn refuse_not_executable(node: &Node, fixtures: &Fixtures, problems: &mut Problems) {
    let before_change = fixtures.setup_commands.iter().take_while(|command| !command.value.contains("chmod"));
    for command in before_change.filter(|command| !command.value.contains("||")) {
        let word = command.value.split([' ', ';', '&', '|', '\n']).next();
        let Some(path) = word.and_then(|word| word.strip_prefix("./")) else { continue };
        if fixtures.files().any(|file| file.path == path && !file.executable) {
            let problem = Diagnostic::error(format!("`./{path}` is not executable, so this command fails"));
            let problem = problem.at(node.source.excerpt(command.span));
            problems.push(problem.help(format!("write `sh {path}`, or run `chmod +x {path}` before")));
        }
    }
}

/// Returns a warning about a command that only changes the shell in which it runs, which no other command has.
fn lost_effect(item: &Node, command: &str) -> Option<Diagnostic> {
    const WORDS: [&str; 6] = ["alias", "cd", "export", "set", "umask", "unset"];
    let word = command.split_whitespace().next().filter(|word| WORDS.contains(word))?;
    if command.contains(['&', '|', ';', '\n', '`']) || command.contains("$(") {
        return None;
    }
    let problem = item.warning(format!("`{word}` has no effect on the next command, which runs in another shell"));
    Some(problem.help(match word {
        "export" if !command.contains('$') => {
            "write variables into `env`, or both commands in one, with `&&` between them"
        }
        _ => "write both commands in one, with `&&` between them",
    }))
}

/// Reads the items of a list under `key`, skipping those that cannot be read.
fn each<T>(
    fields: &mut Fields<'_>,
    key: &'static str,
    problems: &mut Problems,
    mut read: impl FnMut(&Node, &mut Problems) -> Option<T>,
) -> Vec<T> {
    let items = fields.list(key, problems).unwrap_or_default();
    items.iter().filter_map(|item| read(item, problems)).collect()
}

/// Reports each file of a list whose path an earlier one has.
fn refuse_second(files: &[FixtureFile], problems: &mut Problems) {
    let mut seen: HashMap<&str, &FixtureFile> = HashMap::with_capacity(files.len());
    for file in files {
        let first = *seen.entry(&file.path).or_insert(file);
        if !std::ptr::eq(first, file) {
            let problem = Diagnostic::error(format!("two files have the path `{}`", file.path));
            problems.push(problem.at(file.source.clone()).help(format!("the first is at {}", first.source)));
        }
    }
}

/// Reports each file and directory inside of a path that is a file.
fn refuse_files_as_folders(fixtures: &Fixtures, problems: &mut Problems) {
    let files = || [&fixtures.files_committed, &fixtures.files_staged, &fixtures.files_unstaged].into_iter().flatten();
    let by_path: HashMap<&Path, &FixtureFile> = files().map(|file| (Path::new(&*file.path), file)).collect();
    let file_in = |path: &str, from: usize| Path::new(path).ancestors().skip(from).find_map(|path| by_path.get(path));
    for inner in files() {
        if let Some(file) = file_in(&inner.path, 1) {
            let message = format!("`{}` cannot be in `{}`, which is a file", inner.path, file.path);
            problems.push(Diagnostic::error(message).at(inner.source.clone()));
        }
    }
    let folders = fixtures.directories.iter().map(|folder| (folder, "directories", None));
    let trees = fixtures.copy_trees.iter().map(|tree| (&tree.to, "copy_trees", Some(&tree.source)));
    for (folder, key, place) in folders.chain(trees) {
        if let Some(file) = file_in(folder, 0) {
            let message = format!("`{}` is a file here, and `{key}` has `{folder}`", file.path);
            problems.push(Diagnostic::error(message).at(place.unwrap_or(&file.source).clone()));
        }
    }
}

/// Returns the path inside the sandbox, or the reason why `written` is not such a path. No shell replaces `~`.
fn inside(written: &str) -> Result<String, &'static str> {
    let is_home = written.split('/').next() == Some("~");
    if is_home { Err("is in the home directory") } else { path::inside_sandbox(written) }
}

fn directories(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    each(fields, "directories", problems, |item, problems| {
        let written = decode::text(item, "an item of `directories`", problems)?;
        let refuse = |fault| problems.push(item.error(format!("`{written}` {fault}")));
        inside(&written).map_err(refuse).ok()
    })
}

/// Reads the path at which processes see a folder: absolute, without `..`, and not the root.
pub fn absolute_path(node: &Node, what: &str, problems: &mut Problems) -> Option<String> {
    let written = decode::text(node, what, problems)?;
    let inside = written.strip_prefix('/').map(path::inside_sandbox);
    match inside {
        Some(Ok(inside)) if inside != "." => Some(format!("/{inside}")),
        _ => {
            problems.push(node.error(format!("{what} must be an absolute path without `..`, not `{written}`")));
            None
        }
    }
}

/// Reads a folder outside of the working directory; its paths are relative to `base`.
pub fn outer_folder(node: &Node, base: &Path, problems: &mut Problems) -> Option<OuterFolder> {
    let mut fields = Fields::of(node, "an item of `outside`", problems)?;
    let path = fields.require("path", problems).and_then(|node| absolute_path(node, "`path`", problems));
    let directories = directories(&mut fields, problems);
    let trees = each(&mut fields, "copy_trees", problems, |item, problems| copy_tree(item, base, problems));
    let files = each(&mut fields, "files", problems, |item, problems| file(item, base, problems));
    fields.finish(problems);
    Some(OuterFolder { path: path?, directories, trees, files })
}

fn extends(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<(String, Excerpt)> {
    let Some(node) = fields.get("extends") else { return Vec::new() };
    let items = match &node.kind {
        NodeKind::List(items) => items.as_slice(),
        _ => std::slice::from_ref(node),
    };
    let name = |item: &Node, problems: &mut Problems| {
        Some((decode::text(item, "a name in `extends`", problems)?, item.excerpt()))
    };
    items.iter().filter_map(|item| name(item, problems)).collect()
}

/// Reads a branch name that git accepts.
fn branch(fields: &mut Fields<'_>, problems: &mut Problems) -> Option<String> {
    let name = fields.text("git_branch", problems)?;
    let is_valid = is_branch_name(&name);
    if !is_valid {
        problems.push(written(fields, "git_branch").error(format!("`{name}` is not a valid name of a git branch")));
    }
    is_valid.then_some(name)
}

fn copy_tree(node: &Node, base: &Path, problems: &mut Problems) -> Option<CopyTree> {
    let mut fields = Fields::of(node, "an item of `copy_trees`", problems)?.with_synonyms(&TREE_SYNONYMS);
    let from = fields.required_text("from", problems).and_then(|text| {
        let from = path::resolve(base, &text);
        let fault = match std::fs::metadata(&from) {
            Ok(found) if found.is_dir() => return Some(from),
            Ok(_) => format!("`{text}` is not a directory"),
            Err(error) => format!("cannot find the directory `{text}`: {error}"),
        };
        let problem = written(&mut fields, "from").error(fault).suggest(path::near(&from, &text).as_deref());
        problems.push(problem.help("`from` is relative to the directory of this file"));
        None
    });
    let to = match fields.any_text("to", problems) {
        Some(text) => sandbox_path(&mut fields, "to", &text, problems),
        None => Some(".".to_owned()),
    };
    fields.finish(problems);
    Some(CopyTree { from: from?, to: to?, source: node.excerpt() })
}

fn file(node: &Node, base: &Path, problems: &mut Problems) -> Option<FixtureFile> {
    let mut fields = Fields::of(node, "a fixture file", problems)?;
    let path = fields.required_text("path", problems).and_then(|text| {
        let path = sandbox_path(&mut fields, "path", &text, problems)?;
        let is_directory = path == "." || text.ends_with('/');
        if is_directory {
            problems.push(written(&mut fields, "path").error(format!("`{text}` names a directory, not a file")));
        }
        (!is_directory).then_some(path)
    });
    let content = fields.any_text("content", problems);
    let from = fields.text("content_from", problems);
    let both = fields.node().get("content").is_some() && fields.node().get("content_from").is_some();
    let read = if both {
        problems.push(node.error("a fixture file has `content` or `content_from`, not both"));
        None
    } else if let Some(from) = from {
        let source = path::resolve(base, &from);
        let read = bytes(&source);
        if let Err(error) = &read {
            let problem = written(&mut fields, "content_from").error(format!("cannot read `{from}`: {error}"));
            let problem = problem.suggest(path::near(&source, &from).as_deref());
            problems.push(problem.help("`content_from` is relative to the directory of this file"));
        }
        read.ok()
    } else {
        Some((content.unwrap_or_default().into_bytes(), false))
    };
    fields.finish(problems);
    let (content, executable) = read?;
    Some(FixtureFile { path: path?, content: content.into(), executable, source: node.excerpt() })
}

/// Maximum size of a fixture file in bytes.
const MAX_FIXTURE_BYTES: u64 = 256 << 20;

/// Returns the bytes of a file, and `true` if it is executable.
pub fn bytes(path: &Path) -> std::io::Result<(Vec<u8>, bool)> {
    let content = files::read_named(path, MAX_FIXTURE_BYTES)?;
    let is_executable = std::fs::metadata(path)?.permissions().mode() & 0o111 != 0;
    Ok((content, is_executable))
}

fn sandbox_path(fields: &mut Fields<'_>, key: &'static str, text: &str, problems: &mut Problems) -> Option<String> {
    let refuse = |fault| {
        let problem = written(fields, key).error(format!("`{key}` {fault}: `{text}`"));
        problems.push(problem.help("write a path relative to the root of the sandbox"));
    };
    inside(text).map_err(refuse).ok()
}

/// Returns the value under `key`, or the whole map if it does not have the key.
fn written<'a>(fields: &mut Fields<'a>, key: &'static str) -> &'a Node {
    fields.get(key).unwrap_or(fields.node())
}

fn env(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<(String, String)> {
    let written = fields.text_map("env", problems).unwrap_or_default();
    let node = fields.get("env");
    let mut env = Vec::with_capacity(written.len());
    for (name, value) in written {
        let fault = if name.is_empty() || name.contains(['=', '\0']) {
            Some("is not a valid name of a variable")
        } else if value.value.contains('\0') {
            Some("has a NUL byte in its value")
        } else {
            None
        };
        let place = node.and_then(|map| map.get(&name));
        if let (Some(reference), Some(place)) = (reference(&name, &value.value), place) {
            let problem = place.warning(format!("`{reference}` is text here, which no shell replaces"));
            problems.push(problem.help("write the value, or set the variable in the command that needs it"));
        }
        match (fault, place) {
            (Some(fault), Some(place)) => {
                let key = match node.map(|node| &node.kind) {
                    Some(NodeKind::Map(entries)) => entries.iter().find(|(key, _)| key.value == name),
                    _ => None,
                };
                let place = key.map_or_else(|| place.excerpt(), |(key, _)| place.source.excerpt(key.span));
                let problem = Diagnostic::error(format!("`{name}` {fault}")).at(place);
                problems.push(match name.split_once('=') {
                    Some((name, value)) if !name.is_empty() => problem.help(format!("write `{name}: \"{value}\"`")),
                    _ => problem,
                });
            }
            _ => env.push((name, value.value)),
        }
    }
    env
}

/// Returns the reference to a variable in the `value` of the variable `name`, if it must be meant as one: to the variable
/// itself, to one that every process has, or in the form of the configuration. Also returns the output of a command.
fn reference<'v>(name: &str, value: &'v str) -> Option<&'v str> {
    const OF_ALL: [&str; 4] = ["HOME", "PATH", "PWD", "USER"];
    if (value.starts_with("$(") && value.ends_with(')')) || value.starts_with("${{") {
        return Some(value);
    }
    value.split([':', '/']).find(|part| {
        let inner = part.strip_prefix('$').unwrap_or_default();
        let inner = inner.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')).unwrap_or(inner);
        inner.starts_with("env.") || (!inner.is_empty() && (inner == name || OF_ALL.contains(&inner)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{self, Language};
    use model::Source;

    fn read(text: &str, base: &Path) -> (Option<Fixtures>, Vec<String>) {
        let mut problems = Vec::new();
        let node = document::read(&Source::new("s.yaml", text), Language::Yaml, &mut problems).unwrap();
        let fixtures = Block::read(&node, base, &mut problems).map(|block| block.into_fixtures(&node, &mut problems));
        (fixtures, problems.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn binary_content_and_the_executable_bit_survive() {
        let directory = tempfile::tempdir().unwrap();
        let bytes: Vec<u8> = (0..=255).collect();
        let script = directory.path().join("run");
        std::fs::write(&script, &bytes).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let (fixtures, problems) =
            read("files_unstaged: [{path: ./bin//run, content_from: run}, {path: empty}]", directory.path());
        assert!(problems.is_empty(), "{problems:?}");
        let files = fixtures.unwrap().files_unstaged;
        assert_eq!((files[0].path.as_str(), &*files[0].content), ("bin/run", bytes.as_slice()));
        assert_eq!(files[0].executable, cfg!(unix));
        assert_eq!((files[1].content.len(), files[1].executable), (0, false));
    }

    #[test]
    fn a_file_cannot_be_a_folder() {
        let (_, problems) = read(
            "directories: [a/b]\ngit_init: true\nfiles_committed:\n  - path: a\n  - path: c/d\nfiles_unstaged:\n  \
             - path: c/d/e\n  - path: c/f\n",
            Path::new("/"),
        );
        assert_eq!(
            problems,
            [
                "s.yaml:7:5: `c/d/e` cannot be in `c/d`, which is a file",
                "s.yaml:4:5: `a` is a file here, and `directories` has `a/b`",
            ]
        );
    }

    #[test]
    fn every_problem_of_a_block_is_found_at_once() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("plain"), "").unwrap();
        let text = "git_init: 'yes'
git_branch: a b
copy_trees:
  - {from: ./nope}
  - {from: ./plain}
  - {from: ., to: ../up}
files_committed:
  - {path: ../x, content: x}
  - {path: /x}
  - {path: a, content: '', content_from: plain}
  - {path: dir/}
  - {content: x}
files_staged: [{path: b, content_from: nope}]
setup_commands: [5]
env: {A: 1}
filse_unstaged: []
";
        let (_, problems) = read(text, directory.path());
        let lines: Vec<_> = problems.iter().map(|problem| problem.split(':').nth(1).unwrap()).collect();
        assert_eq!(
            lines,
            ["1", "2", "4", "5", "6", "8", "9", "10", "11", "12", "13", "14", "15", "16"],
            "{problems:#?}"
        );
    }

    #[test]
    fn a_branch_without_a_repository_causes_a_warning() {
        let (fixtures, problems) = read("git_branch: feature/x", Path::new("/"));
        assert_eq!(problems, ["s.yaml:1:13: `git_branch` does nothing without `git_init: true`"]);
        assert_eq!(fixtures.unwrap().git_branch.as_deref(), Some("feature/x"));
    }

    #[test]
    fn committed_files_without_a_repository_cause_a_warning_unless_it_is_written() {
        let files = "files_committed: [{path: a}]";
        let (_, problems) = read(files, Path::new("/"));
        let message = "`files_committed` are only files without `git_init: true`, because there is no repository";
        assert_eq!(problems, [format!("s.yaml:1:18: {message}")]);
        for written in ["git_init: true", "git_init: false"] {
            assert_eq!(read(&format!("{files}\n{written}"), Path::new("/")).1, [""; 0]);
        }
    }

    #[test]
    fn a_path_is_used_once_in_a_list_and_is_not_in_the_home_directory() {
        let (_, problems) = read(
            "files_committed: [{path: a}, {path: ./a}]\nfiles_staged: [{path: a}]\ndirectories: [~/b, ~b]\n\
             files_unstaged: [{path: ~/notes.md}]\ngit_init: true",
            Path::new("/"),
        );
        assert_eq!(
            problems,
            [
                "s.yaml:3:15: `~/b` is in the home directory",
                "s.yaml:4:25: `path` is in the home directory: `~/notes.md`",
                "s.yaml:1:30: two files have the path `a`",
            ]
        );
    }

    #[test]
    fn merging_a_block_appends_lists_and_replaces_scalars() {
        let block = |text: &str| {
            let mut problems = Vec::new();
            let node = document::read(&Source::new("s.yaml", text), Language::Yaml, &mut problems).unwrap();
            Block::read(&node, Path::new("/"), &mut problems).unwrap()
        };
        let mut below = block("{git_init: true, git_branch: a, setup_commands: [one], env: {A: '1', B: '1'}}");
        below.merge(&block("{git_branch: b, setup_commands: [two], env: {C: '2', A: '2'}}"));
        assert_eq!((below.git_init, below.rest.git_branch.as_deref()), (Some(true), Some("b")));
        assert_eq!(below.rest.setup_commands.iter().map(|c| c.value.as_str()).collect::<Vec<_>>(), ["one", "two"]);
        let env: Vec<_> = below.rest.env.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(env, ["A=2", "B=1", "C=2"]);
    }
}
