//! Reads the files of a case and their paths in the sandbox.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use model::decode::{self, Fields, Problems};
use model::{Diagnostic, Excerpt, FixtureFile, Fixtures, Node, nearest};
use walkdir::WalkDir;

use super::starts_here;
use super::suite::Suite;
use crate::path;
use crate::skill::EVALS_FOLDER;
use crate::skills::names_in;

/// Folder in which suites keep their files. It does not appear in the agent's working directory.
const FILES_FOLDER: &str = "files";

/// Folder that belongs to git.
const GIT: &str = ".git";

/// An item in `files`.
struct Entry<'a> {
    place: &'a Node,
    written: String,
    /// Source file or directory.
    from: PathBuf,
    is_directory: bool,
    /// Components of the target path; a directory with none is copied to the root with all its contents.
    target: Vec<String>,
    /// True if the user's message names the path, so that it is kept.
    is_named: bool,
}

/// Reads the fixtures of a case. The sandbox is a git repository, and files are untracked unless the case says
/// otherwise. `case` is the location of the case, and `message` what the user says. A missing file breaks only the case.
pub(super) fn read(
    fields: &mut Fields<'_>,
    suite: &mut Suite<'_>,
    case: &Excerpt,
    message: Option<&str>,
    broken: &mut Problems,
    problems: &mut Problems,
) -> Fixtures {
    let items = fields.list("files", problems).unwrap_or_default();
    let mut entries: Vec<Entry<'_>> = Vec::with_capacity(items.len());
    let mut files = Files { taken: HashMap::new(), files: Vec::new() };
    let inline: Vec<Option<Inline<'_>>> = items.iter().map(Inline::of).collect();
    for (item, inline) in items.iter().zip(&inline) {
        if let Some(inline) = inline {
            inline.add(&mut files).unwrap_or_else(|problem| problems.push(*problem));
            continue;
        }
        let Some(written) = decode::text(item, "an item of `files`", problems) else { continue };
        entries.extend(
            entry(item, written, suite, message, broken).map_err(|problem| problems.push(*problem)).ok().flatten(),
        );
    }
    strip_folder(&mut entries, problems);
    for entry in &entries {
        if let Err(problem) = files.add(entry, suite) {
            problems.push(*problem);
        }
    }
    let is_staged = fields.boolean("stage_files", problems).unwrap_or(false);
    let is_committed = fields.boolean("commit_files", problems).unwrap_or(false);
    refuse_contradiction(fields, is_staged, is_committed, items.is_empty(), problems);
    let mut fixtures = Fixtures { git_init: true, source: Some(case.clone()), ..Fixtures::default() };
    let place = match (is_committed, is_staged) {
        (true, _) => &mut fixtures.files_committed,
        (false, true) => &mut fixtures.files_staged,
        (false, false) => &mut fixtures.files_unstaged,
    };
    *place = files.files;
    fixtures
}

/// File whose content is written in the suite, as some tools do.
struct Inline<'a> {
    place: &'a Node,
    path: &'a str,
    content: &'a str,
}

impl<'a> Inline<'a> {
    /// Returns the file that `item` describes.
    fn of(item: &'a Node) -> Option<Self> {
        let text = |keys: &[&str]| keys.iter().find_map(|key| item.get(key)?.as_str());
        let path = text(&["path", "name", "filename", "file"])?;
        Some(Self { place: item, path, content: text(&["content", "contents"])? })
    }

    fn add(&self, files: &mut Files<'a>) -> Result<(), Box<Diagnostic>> {
        let refuse = |message: String| Box::new(self.place.error(message));
        let path = self.path;
        let target = path::inside_sandbox(path).map_err(|fault| refuse(format!("`{path}` {fault}")))?;
        let parts: Vec<String> = target.split('/').map(str::to_owned).collect();
        if target == "." || parts.iter().any(|part| part.eq_ignore_ascii_case(GIT)) {
            return Err(refuse(format!("`{path}` cannot be the name of a file")));
        }
        if let Some(other) = files.in_the_way(&target) {
            return Err(refuse(format!("`{path}` and `{other}` would both be at `{target}`")));
        }
        files.taken.insert(target.clone(), path);
        let content = self.content.as_bytes().into();
        files.files.push(FixtureFile { path: target, content, executable: false, source: self.place.excerpt() });
        Ok(())
    }
}

fn refuse_contradiction(
    fields: &mut Fields<'_>,
    is_staged: bool,
    is_committed: bool,
    is_empty: bool,
    problems: &mut Problems,
) {
    let place = |key: &str| fields.key_span(key).map(|span| fields.node().source.excerpt(span));
    if is_staged
        && is_committed
        && let Some(place) = place("commit_files")
    {
        let problem = Diagnostic::error("`stage_files` and `commit_files` are both true").at(place);
        problems.push(problem.help("files are staged or committed: keep one of them"));
        return;
    }
    for (key, is_set) in [("stage_files", is_staged), ("commit_files", is_committed)] {
        if let Some(place) = place(key).filter(|_| is_set && is_empty) {
            problems.push(Diagnostic::warning(format!("`{key}` does nothing without `files`")).at(place));
        }
    }
}

/// Reads an item of `files`. Returns `None` if there is no such file, which breaks the case.
fn entry<'a>(
    item: &'a Node,
    written: String,
    suite: &Suite<'_>,
    message: Option<&str>,
    broken: &mut Problems,
) -> Result<Option<Entry<'a>>, Box<Diagnostic>> {
    let refuse = |message: String| Box::new(item.error(message));
    let inside =
        below_the_suite(&written).map_err(|fault| Box::new(starts_here(item.error(format!("`{written}` {fault}")))))?;
    // Some tools write paths that are relative to the skill.
    let skill =
        suite.directory.parent().filter(|_| suite.directory.file_name().is_some_and(|name| name == EVALS_FOLDER));
    let skill = skill.filter(|skill| !suite.directory.join(&inside).exists() && skill.join(&inside).exists());
    let from = skill.unwrap_or(suite.directory).join(&inside);
    let is_directory = match std::fs::metadata(&from) {
        Ok(found) if found.is_dir() => true,
        Ok(found) if found.is_file() => false,
        Ok(_) => return Err(refuse(format!("`{written}` is neither a file nor a directory"))),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            broken.push(missing(item, &written, &inside, suite.directory));
            return Ok(None);
        }
        Err(error) => return Err(refuse(format!("cannot read `{written}`: {error}"))),
    };
    if !is_directory && written.ends_with('/') {
        return Err(refuse(format!("`{written}` is a file, not a directory")));
    }
    let mut target: Vec<String> = inside.split('/').map(str::to_owned).collect();
    // A path that the message names must exist for the agent.
    let is_named = skill.is_some() && message.is_some_and(|message| message.contains(&inside));
    if skill.is_some() && !is_named && target.len() > 1 && target.first().is_some_and(|first| first == EVALS_FOLDER) {
        target.remove(0);
    }
    let is_more = target.len() > 1 || is_directory;
    if !is_named && is_more && target.first().is_some_and(|first| first == FILES_FOLDER) {
        target.remove(0);
    }
    Ok(Some(Entry { place: item, written, from, is_directory, target, is_named }))
}

/// Returns `written` without `.` and `..`, or the reason why it is not below the suite's folder.
fn below_the_suite(written: &str) -> Result<String, &'static str> {
    match path::inside_sandbox(written) {
        Ok(inside) if inside == "." => Err("is the folder of this file itself"),
        Err("leaves the sandbox with `..`") => Err("leaves the folder of this file with `..`"),
        other => other,
    }
}

/// Reports a missing file, and suggests the one most likely intended.
fn missing(item: &Node, written: &str, inside: &str, directory: &Path) -> Diagnostic {
    let problem = item.error(format!("there is no file named `{written}`"));
    let own = inside.strip_prefix(EVALS_FOLDER).and_then(|rest| rest.strip_prefix('/'));
    let kept = [own.map(str::to_owned), Some(format!("{FILES_FOLDER}/{inside}"))];
    let elsewhere = kept.into_iter().flatten().find(|other| directory.join(other).exists());
    let near = elsewhere.or_else(|| {
        let (folder, name) = inside.rsplit_once('/').map_or((None, inside), |(folder, name)| (Some(folder), name));
        let names = names_in(&directory.join(folder.unwrap_or_default()));
        let near = nearest(name, names.iter().map(String::as_str))?;
        Some(folder.map_or_else(|| near.to_owned(), |folder| format!("{folder}/{near}")))
    });
    starts_here(problem.suggest(near.as_deref()))
}

/// Removes the common folder from the targets if there is only one.
fn strip_folder(entries: &mut [Entry<'_>], problems: &mut Problems) {
    let is_inside = |entry: &&mut Entry<'_>| !entry.is_named && entry.target.len() > 1;
    let folders: BTreeSet<String> = entries
        .iter()
        .filter(|entry| !entry.is_named && entry.target.len() > 1)
        .filter_map(|entry| entry.target.first().cloned())
        .collect();
    if folders.len() != 1 {
        return;
    }
    let is_mixed = entries.iter().any(|entry| entry.target.len() <= 1);
    for entry in entries.iter_mut().filter(is_inside) {
        let folder = entry.target.remove(0);
        if is_mixed {
            let message = format!("`{}` becomes `{}` in the sandbox", entry.written, entry.target.join("/"));
            let help = format!(
                "a folder that all files of a case share is removed from their paths; list the `{folder}` folder itself to keep it"
            );
            problems.push(entry.place.warning(message).help(help));
        }
    }
}

/// Returns the reason why `target` is reserved for git or the skill, so that no file can be there.
fn reserved(target: &[String], skill: &str) -> Option<&'static str> {
    if target.iter().any(|part| part.eq_ignore_ascii_case(GIT)) {
        return Some("in a `.git` folder, which is reserved for git");
    }
    match target {
        // Each agent has its own skills folder. All of them have the same structure: `.claude/skills/NAME`.
        [agent, skills, name, ..] if agent.starts_with('.') && skills == "skills" && name == skill => {
            Some("where the skill is installed")
        }
        [agent, agents, file] if agent.starts_with('.') && agents == "agents" && *file == format!("{skill}.md") => {
            Some("where the sub-agent is installed")
        }
        _ => None,
    }
}

/// Files collected so far.
struct Files<'a> {
    /// Entry that added each file, by its path in the sandbox.
    taken: HashMap<String, &'a str>,
    files: Vec<FixtureFile>,
}

impl<'a> Files<'a> {
    /// Adds the file of `entry`, or all files in its directory up to the first that cannot be added.
    fn add(&mut self, entry: &'a Entry<'_>, suite: &mut Suite<'_>) -> Result<(), Box<Diagnostic>> {
        let refuse = |message: String| Box::new(entry.place.error(message));
        if let Some(fault) = reserved(&entry.target, suite.name) {
            return Err(refuse(format!("`{}` would be {fault}", entry.written)));
        }
        if !entry.is_directory {
            return self.put(entry, &entry.from, entry.target.join("/"), suite);
        }
        let known = self.files.len();
        for found in WalkDir::new(&entry.from).follow_links(true).sort_by_file_name() {
            let found = found.map_err(|error| refuse(format!("cannot read all of `{}`: {error}", entry.written)))?;
            if !found.file_type().is_file() {
                continue;
            }
            let below = found.path().strip_prefix(&entry.from).unwrap_or(found.path());
            let parts = below.iter().map(|part| Some(part.to_str()?.to_owned())).collect::<Option<Vec<_>>>();
            let parts = parts.ok_or_else(|| refuse(format!("`{}` has a name that is not UTF-8", below.display())))?;
            let target: Vec<String> = entry.target.iter().cloned().chain(parts).collect();
            if let Some(fault) = reserved(&target, suite.name) {
                return Err(refuse(format!("`{}` would be {fault}", target.join("/"))));
            }
            self.put(entry, found.path(), target.join("/"), suite)?;
        }
        if known == self.files.len() {
            return Err(refuse(format!("there are no files in `{}`", entry.written)));
        }
        Ok(())
    }

    /// Adds a file at `target`, or returns the reason why it cannot be added.
    fn put(
        &mut self,
        entry: &'a Entry<'_>,
        from: &Path,
        target: String,
        suite: &mut Suite<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        if let Some(other) = self.in_the_way(&target) {
            let message = format!("`{}` and `{other}` would both be at `{target}`", entry.written);
            let problem = entry.place.error(message);
            return Err(Box::new(problem.help(format!(
                "a leading `{FILES_FOLDER}/` is removed from paths, and so is a folder that all files share"
            ))));
        }
        let unread = |error| Box::new(entry.place.error(format!("cannot read `{}`: {error}", entry.written)));
        let (content, executable) = suite.contents.get(from).map_err(unread)?;
        self.taken.insert(target.clone(), &entry.written);
        self.files.push(FixtureFile { path: target, content, executable, source: entry.place.excerpt() });
        Ok(())
    }

    /// Returns the entry that already added a file or a folder at `target`, or a file at one of its parent folders.
    fn in_the_way(&self, target: &str) -> Option<&'a str> {
        let above = target.match_indices('/').map(|(offset, _)| &target[..offset]);
        if let Some(other) = std::iter::once(target).chain(above).find_map(|path| self.taken.get(path)) {
            return Some(other);
        }
        let below = |path: &str| path.strip_prefix(target).is_some_and(|rest| rest.starts_with('/'));
        self.taken.iter().find(|(path, _)| below(path)).map(|(_, other)| *other)
    }
}
