//! `trialrun gen --from-session`: a session that somebody had with a coding agent becomes a scenario.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use agent::Conversation;
use agent::evidence::{self, Evidence};
use generate::{RanCommand, RecordedSession, WrittenFile, scenario_of};
use mask::Mask;
use model::{Diagnostic, Ending, Source, Step, ToolCall};
use serde_json::json;
use session::{Overrides, Session};
use tempfile::TempDir;

use super::folder::{FIXTURES, TestFolder};
use super::host::GenerationHost;
use super::{GenArgs, cannot_start, runtime, session_files, shown_path};
use crate::error::CliError;
use crate::terminal::Terminal;
use crate::{exit, signals};

/// Value that stands for the newest session of the project.
const LATEST: &str = "latest";
/// Maximum size of a session, in bytes.
const MAX_SESSION: u64 = 256 << 20;
/// Maximum size of a file whose content is compared, in bytes.
const MAX_COMPARED: u64 = 1 << 20;
/// Maximum size of all files of the commit, in bytes.
const MAX_WORKSPACE: u64 = 50 << 20;
/// Maximum number of files of the commit.
const MAX_FILES: usize = 10_000;
/// Maximum number of words in the name of a scenario.
const MAX_WORDS: usize = 7;

/// Writes the scenario.
pub(super) fn run(wanted: &str, args: &GenArgs, context: &Session, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let path = match wanted {
        LATEST => {
            let of = [context.cwd.clone(), context.project.root.clone(), Repository::open(&context.cwd)?.root];
            session_files::latest(&context.host, &of).ok_or_else(|| {
                CliError::nothing("no session of Claude Code or Codex in this project was found")
                    .hint("name its file; `opencode export ID > session.json` writes one of OpenCode")
            })?
        }
        file => context.cwd.join(file),
    };
    let conversation = read(&path, context, terminal)?;
    let mask = Mask::of(&context.host.env);
    if conversation.ending != Ending::Finished {
        let reason = match &conversation.ending {
            Ending::Aborted { reason } => reason.clone(),
            other => other.describe(),
        };
        return Err(CliError::usage(format!("the session is not complete: {}", mask.text(&reason))));
    }
    let repository = Repository::open(&context.cwd)?;
    repository.check_origin(&conversation)?;
    let (commit, mut notes) = repository.commit_of(&conversation)?;
    let staging = TempDir::with_prefix("trialrun-gen-")
        .map_err(|error| CliError::environment(format!("cannot create a temporary folder: {error}")))?;
    let name = name_of(&conversation);
    let folder = TestFolder::of_sessions(args, context)?;
    folder.check_scenario(&name)?;
    let workspace = format!("{FIXTURES}/{name}");
    repository.export(&commit, &staging.path().join(&workspace))?;
    notes.insert(0, format!("From {} at commit {commit}.", described(&conversation)));
    notes.push("The assertions say what the agent did. Keep those that any good solution meets.".to_owned());
    let facts = facts(&conversation, name, &repository.root, &staging.path().join(&workspace));
    let facts = masked(RecordedSession { workspace: Some(workspace), notes, ..facts }, &mask);
    let text = scenario_of(&facts).ok_or_else(|| {
        CliError::nothing("the session left nothing that an assertion could check")
            .hint("it has to create or change a file, or fix a command that failed")
    })?;
    let reasons = admit(&staging, &facts.name, &text, context, args, terminal)?;
    if !reasons.is_empty() {
        for reason in &reasons {
            terminal.err(&report::clean(&format!("rejected: {reason}\n")));
        }
        return Ok(ExitCode::from(exit::INCOMPLETE));
    }
    let file = folder.save_scenario(&facts.name, &text, &staging.path().join(FIXTURES).join(&facts.name))?;
    if args.json {
        terminal
            .json(&json!({"schema": "trialrun.session_scenario/1", "session": path, "commit": commit, "file": file}));
    } else {
        let from = shown_path(&path, context);
        terminal.out(&report::clean(&format!("written  {file}  (from {from}, commit {commit})\n")));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the scenario with adversaries. Returns the reasons to reject it.
fn admit(
    staging: &TempDir,
    name: &str,
    text: &str,
    context: &Session,
    args: &GenArgs,
    terminal: &Terminal,
) -> Result<Vec<String>, CliError> {
    let file = staging.path().join(format!("{name}.yaml"));
    std::fs::write(&file, text)
        .map_err(|error| CliError::environment(format!("cannot write a temporary file: {error}")))?;
    let spec = context.resolve(&Overrides::default())?;
    let host = GenerationHost::new(context, &spec, TestFolder::of_sessions(args, context)?, None, 0, terminal)?;
    let (sender, mut controls) = tokio::sync::mpsc::unbounded_channel();
    let reasons = runtime()?.block_on(async {
        signals::forward(&sender).map_err(|error| cannot_start(&error))?;
        let audited = tokio::select! {
            audited = host.audit_file(&file) => audited.map_err(CliError::environment),
            _ = controls.recv() => Err(CliError::environment("stopped before the scenario was tried")),
        };
        host.finish().await;
        audited
    })?;
    Ok(reasons)
}

/// Reads the only conversation in the file.
fn read(path: &Path, context: &Session, terminal: &Terminal) -> Result<Conversation, CliError> {
    let shown = shown_path(path, context);
    let failed = |error: &dyn std::fmt::Display| CliError::usage(format!("cannot read {shown}: {error}"));
    let bytes = files::read_named(path, MAX_SESSION).map_err(|error| failed(&error))?;
    let bytes = evidence::decompressed(bytes, MAX_SESSION).map_err(|error| failed(&error))?;
    let evidence = match evidence::read_archive(&shown, &bytes) {
        Some(evidence) => Some(evidence),
        None => {
            let text = files::decode(bytes).map_err(|error| failed(&error))?;
            evidence::read(&Source::new(shown.as_str(), text))
        }
    };
    let Some(Evidence { mut conversations, problems }) = evidence else {
        let problem = CliError::usage(format!("{shown} is not in a known format"));
        return Err(problem.hint(format!("known formats: {}", evidence::names().join(", "))));
    };
    terminal.diagnostics(&problems);
    if problems.iter().any(Diagnostic::is_error) {
        return Err(CliError::usage(format!("{shown} cannot be read")));
    }
    match (conversations.pop(), conversations.len()) {
        (Some(only), 0) => Ok(only),
        (_, others) => Err(CliError::usage(format!("{shown} has {} conversations, not one", others + 1))),
    }
}

/// Describes the session, for the scenario.
fn described(conversation: &Conversation) -> String {
    let agent = conversation.agent.as_deref().unwrap_or("an agent");
    let version = conversation.agent_version.as_ref().map(|version| format!(" {version}")).unwrap_or_default();
    let at = conversation.origin.begun_at.as_ref().map(|at| format!(" of {at}")).unwrap_or_default();
    format!("a session with {agent}{version}{at}")
}

/// Returns a name for the scenario: the first words of the first message.
fn name_of(conversation: &Conversation) -> String {
    let first = conversation.messages.first().map(|message| message.to_lowercase()).unwrap_or_default();
    let words = first.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let name: String = words.take(MAX_WORDS).collect::<Vec<_>>().join("-").chars().take(60).collect();
    if name.is_empty() { "session".to_owned() } else { name.trim_end_matches('-').to_owned() }
}

/// Collects what happened. `workspace` has the files at the beginning.
fn facts(conversation: &Conversation, name: String, root: &Path, workspace: &Path) -> RecordedSession {
    // A session of another machine has other paths.
    let directory = conversation.origin.directory.as_deref().map_or(root, Path::new);
    let mut facts = RecordedSession { name, messages: conversation.messages.clone(), ..RecordedSession::default() };
    let steps = || conversation.steps.iter().map(|(_, step)| step);
    let results: BTreeMap<&str, bool> = steps()
        .filter_map(|step| match step {
            Step::ToolResult(result) => Some((result.id.as_str(), result.is_error)),
            _ => None,
        })
        .collect();
    for call in steps().filter_map(|step| if let Step::ToolCall(call) = step { Some(call) } else { None }) {
        let Some(failed) = results.get(call.id.as_str()).copied() else { continue };
        match call.name.as_str() {
            "Bash" => {
                let command = call.input.get("command").and_then(serde_json::Value::as_str).unwrap_or_default();
                let command = in_project(command, directory);
                let ran = RanCommand { command, failed };
                facts.files.retain(|path, _| !ran.may_remove(path));
                facts.commands.push(ran);
            }
            "Write" | "Edit" | "MultiEdit" if !failed => write(call, directory, workspace, &mut facts),
            _ => {}
        }
    }
    facts
}

/// Returns a command as it can be run in the project.
fn in_project(command: &str, directory: &Path) -> String {
    let directory = directory.to_string_lossy();
    let command = command.strip_prefix(&format!("cd {directory} && ")).unwrap_or(command);
    command.replace(&format!("{directory}/"), "").replace(&*directory, ".")
}

/// Adds a change of a file. Files outside the project are left out.
fn write(call: &ToolCall, directory: &Path, workspace: &Path, facts: &mut RecordedSession) {
    let text = |key: &str| call.input.get(key).and_then(serde_json::Value::as_str);
    let Some(path) = text("file_path").map(Path::new) else { return };
    let path = if path.is_absolute() { path.strip_prefix(directory).ok() } else { Some(path) };
    let is_inside = |path: &&Path| path.components().all(|part| matches!(part, std::path::Component::Normal(_)));
    let Some(path) = path.filter(is_inside) else { return };
    let before = || match files::find(workspace, path) {
        Ok(files::Found::File(found)) => {
            Some(files::read(&found, MAX_COMPARED).ok().and_then(|it| files::decode(it).ok()))
        }
        _ => None,
    };
    let file = facts.files.entry(path.to_string_lossy().into_owned()).or_insert_with(|| {
        let before = before();
        let content = before.clone().flatten();
        WrittenFile { before: before.map(Option::unwrap_or_default), after: content }
    });
    file.after = match (text("content"), text("old_string").zip(text("new_string")), text("patch")) {
        (Some(content), ..) => Some(content.to_owned()),
        (None, Some((old, new)), _) => {
            file.after.take().filter(|now| now.contains(old)).map(|now| now.replacen(old, new, 1))
        }
        // The lines that a patch adds are sufficient.
        (None, None, Some(patch)) => file.after.take().map(|now| {
            let added = patch.lines().filter(|line| !line.starts_with("+++")).filter_map(|line| line.strip_prefix('+'));
            added.fold(now, |now, line| format!("{now}\n{line}"))
        }),
        (None, None, None) => None,
    };
}

/// Returns the facts without secrets.
fn masked(facts: RecordedSession, mask: &Mask) -> RecordedSession {
    let text = |text: String| mask.text(&text).into_owned();
    let file = |file: WrittenFile| WrittenFile { after: file.after.map(text), ..file };
    RecordedSession {
        messages: facts.messages.into_iter().map(text).collect(),
        files: facts.files.into_iter().map(|(path, written)| (path, file(written))).collect(),
        commands: facts.commands.into_iter().map(|ran| RanCommand { command: text(ran.command), ..ran }).collect(),
        ..facts
    }
}

/// The repository of the project.
struct Repository {
    root: PathBuf,
}

impl Repository {
    fn open(cwd: &Path) -> Result<Self, CliError> {
        let here = Self { root: cwd.to_owned() };
        let root = here.git(&["rev-parse", "--show-toplevel"], None).map_err(|error| {
            CliError::usage(format!("no git repository at {}: {error}", cwd.display()))
                .hint("the files at the beginning of a session are taken from the commit that was checked out")
        })?;
        Ok(Self { root: PathBuf::from(root.trim_end()) })
    }

    /// Checks that the session took place in this repository. A commit that it names is sufficient.
    fn check_origin(&self, conversation: &Conversation) -> Result<(), CliError> {
        let origin = &conversation.origin;
        let Some(directory) = origin.directory.as_deref().filter(|_| origin.commit.is_none()) else { return Ok(()) };
        let of_session = Self::open(Path::new(directory)).ok();
        let shared = |repository: &Self| repository.shared_folder();
        if of_session.as_ref().and_then(shared).is_some_and(|folder| Some(folder) == self.shared_folder()) {
            return Ok(());
        }
        let root = self.root.display();
        Err(CliError::usage(format!(
            "the session took place in {directory}, which is not in the repository {root}, and does not name its commit"
        ))
        .hint("run the command in the repository in which the session took place"))
    }

    /// Returns the folder that all worktrees of the repository share.
    fn shared_folder(&self) -> Option<PathBuf> {
        let folder = self.git(&["rev-parse", "--git-common-dir"], None).ok()?;
        self.root.join(folder.trim_end()).canonicalize().ok()
    }

    /// Returns the commit at which the session began, with remarks.
    fn commit_of(&self, conversation: &Conversation) -> Result<(String, Vec<String>), CliError> {
        let origin = &conversation.origin;
        let mut notes = Vec::new();
        if origin.is_clean == Some(false) {
            notes.push(
                "Some files differed from the commit when the session began; the differences are not known.".into(),
            );
        }
        let named = match (&origin.commit, &origin.begun_at) {
            (Some(commit), _) => commit.clone(),
            (None, Some(at)) => {
                notes.push("The session does not name its commit; this is the last one before it began.".into());
                let found = self.git(&["rev-list", "-1", &format!("--before={at}"), "HEAD"], None).unwrap_or_default();
                found.trim().to_owned()
            }
            (None, None) => String::new(),
        };
        let is_hash = !named.is_empty() && named.bytes().all(|byte| byte.is_ascii_hexdigit());
        let commit =
            is_hash.then(|| self.git(&["rev-parse", "--verify", "--quiet", &format!("{named}^{{commit}}")], None));
        match commit {
            Some(Ok(commit)) => Ok((commit.trim().to_owned(), notes)),
            _ => Err(CliError::usage("this repository does not have the commit at which the session began")
                .hint("run the command in the repository in which the session took place")),
        }
    }

    /// Writes the files of `commit` into the folder `to`.
    fn export(&self, commit: &str, to: &Path) -> Result<(), CliError> {
        let listed = self.git(&["ls-tree", "-r", "-l", "-z", commit], None).map_err(CliError::environment)?;
        let entries = listed.split('\0').filter(|entry| !entry.is_empty());
        let (count, size) = entries.fold((0, 0_u64), |(count, size), entry| {
            let own = entry.split('\t').next().and_then(|head| head.split_whitespace().last()?.parse::<u64>().ok());
            (count + 1, size + own.unwrap_or(0))
        });
        if count > MAX_FILES || size > MAX_WORKSPACE {
            let problem = CliError::usage(format!("the commit has {count} files of {} MiB", size >> 20));
            return Err(problem.hint(format!("the limit is {MAX_FILES} files of {} MiB", MAX_WORKSPACE >> 20)));
        }
        std::fs::create_dir_all(to)
            .map_err(|error| CliError::environment(format!("cannot create a temporary folder: {error}")))?;
        let index = to.with_extension("index");
        let prefix = format!("--prefix={}/", to.display());
        let done = self
            .git(&["read-tree", commit], Some(&index))
            .and_then(|_| self.git(&["checkout-index", "--all", "--force", &prefix], Some(&index)));
        let _ = std::fs::remove_file(&index);
        done.map(drop).map_err(CliError::environment)
    }

    /// Runs git, and returns what it prints. `index` replaces the index of the repository.
    fn git(&self, args: &[&str], index: Option<&Path>) -> Result<String, String> {
        let mut command = Command::new("git");
        command.args(args).current_dir(&self.root);
        for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"] {
            command.env_remove(variable);
        }
        command.envs(index.map(|index| ("GIT_INDEX_FILE", index)));
        let output = command.output().map_err(|error| format!("cannot run git: {error}"))?;
        if !output.status.success() {
            return Err(format!("git {}: {}", args[0], String::from_utf8_lossy(&output.stderr).trim()));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use model::ToolResult;

    use super::*;

    #[test]
    fn nothing_is_known_about_files_that_a_later_command_may_have_removed() {
        let mut conversation = Conversation::default();
        let calls = [
            ("Write", json!({"file_path": "kept.txt", "content": "Hello"})),
            ("Write", json!({"file_path": "gone.txt", "content": "Hello"})),
            ("Write", json!({"file_path": "again.txt", "content": "Hello"})),
            ("Bash", json!({"command": "rm /work/gone.txt again.txt"})),
            ("Write", json!({"file_path": "/work/again.txt", "content": "Good morning"})),
        ];
        for (index, (name, input)) in calls.into_iter().enumerate() {
            let id = format!("call-{index}");
            let result = ToolResult { id: id.clone(), content: String::new(), is_error: false };
            conversation.steps.push((0, Step::ToolCall(ToolCall::new(&id, name, input, "m"))));
            conversation.steps.push((0, Step::ToolResult(result)));
        }
        let workspace = TempDir::new().unwrap();
        let found = facts(&conversation, "s".to_owned(), Path::new("/work"), workspace.path());
        let files = found.files.iter().map(|(path, file)| (path.as_str(), file.after.as_deref().unwrap_or_default()));
        assert_eq!(files.collect::<Vec<_>>(), [("again.txt", "Good morning"), ("kept.txt", "Hello")]);
    }
}
