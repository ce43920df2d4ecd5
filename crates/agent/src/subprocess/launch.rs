//! Starting the program: its path, arguments and working directory.

use std::ffi::OsStr;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use model::UserMessage;
use sandbox::{Breakage, Sandbox};
use tokio::process::Command;

use super::config::{MESSAGE, PROJECT, ProgramConfig, VARS};
use crate::process::Process;

/// Variable that holds the id of the conversation.
const CONVERSATION: &str = "TRIALRUN_CONVERSATION_ID";

/// Variable that holds the path of the sandbox's working directory.
const WORK: &str = "TRIALRUN_WORK";

/// Program of a conversation.
pub(crate) struct Launch {
    sandbox: Arc<dyn Sandbox>,
    /// The program and its arguments, without the message.
    words: Vec<String>,
    /// Working directory.
    cwd: PathBuf,
    env: Vec<(String, String)>,
    /// Script that `command` names and that did not exist before the program was started, if any.
    missing_script: Option<String>,
}

impl Launch {
    /// Finds the program. `project` is the folder whose files the command may name.
    pub(crate) fn prepare(
        config: &ProgramConfig,
        project: &Path,
        sandbox: Arc<dyn Sandbox>,
        conversation: &str,
    ) -> Result<Self, Breakage> {
        let written = config.cwd.as_deref().unwrap_or_default();
        let (owner, cwd) =
            match written.strip_prefix(PROJECT).filter(|below| below.is_empty() || below.starts_with('/')) {
                Some(below) => ("project", project.join(below.trim_start_matches('/'))),
                None => ("sandbox", sandbox.work().join(written)),
            };
        if !cwd.is_dir() {
            let hint = if owner == "sandbox" { "; the case's fixtures can create it" } else { "" };
            let reason = format!("the {owner} has no folder `{written}` to run in (`cwd`){hint}");
            return Err(Breakage::environment(reason));
        }
        let files = FileResolver { cwd: &cwd, project };
        let mut words: Vec<String> = config.words.iter().map(|word| files.resolved(word)).collect();
        if let (Some(program), Some(written)) = (words.first_mut(), config.words.first()) {
            // A name without a slash is searched on the `PATH`, even if the folder has a file with that name.
            if !written.contains('/') {
                program.clone_from(written);
            }
        }
        let mut env: Vec<(String, String)> =
            config.env.iter().map(|(name, value)| (name.clone(), files.named(value))).collect();
        env.push((CONVERSATION.to_owned(), conversation.to_owned()));
        env.push((WORK.to_owned(), sandbox.work().to_string_lossy().into_owned()));
        let missing_script = missing_script(&words, &cwd);
        // The other files of the project stay invisible in an isolated sandbox.
        let named = words.iter().map(Path::new).filter(|word| word.is_absolute() && word.exists());
        named.for_each(|file| sandbox.show(file));
        if owner == "project" {
            sandbox.show(&cwd);
        }
        let launch = Self { sandbox, words, cwd, env, missing_script };
        launch.check_program()?;
        Ok(launch)
    }

    /// Returns the program's name, for messages.
    pub(crate) fn program(&self) -> &str {
        self.words.first().map_or("", String::as_str)
    }

    /// Returns the script that `command` names and that does not exist. If the program fails without an answer, this
    /// is the reason.
    pub(crate) fn missing_script(&self) -> Option<&str> {
        self.missing_script.as_deref()
    }

    /// Starts the program, with `message` inserted into its arguments if they contain the placeholder.
    pub(crate) fn start(&self, message: Option<&UserMessage>) -> Result<Process, String> {
        let failed = |error: io::Error| {
            let hint = match error.kind() {
                io::ErrorKind::ArgumentListTooLong | io::ErrorKind::InvalidInput => {
                    "; this message cannot be an argument: write `input: stdin`"
                }
                _ => "",
            };
            format!("cannot start {}: {error}{hint}", self.program())
        };
        Process::start(self.command(message)).map(Process::without_waiting).map_err(failed)
    }

    /// Returns the command that starts the program, with `message` and its variables inserted into its arguments.
    pub(crate) fn command(&self, message: Option<&UserMessage>) -> Command {
        // The message may contain the other placeholder.
        let put_in = |word: &String| match message {
            Some(message) if word.contains(MESSAGE) => word.replace(MESSAGE, &message.text),
            Some(message) if word.contains(VARS) => {
                word.replace(VARS, &serde_json::Value::Object(message.vars.clone()).to_string())
            }
            _ => word.clone(),
        };
        let words: Vec<String> = self.words.iter().map(put_in).collect();
        let args: Vec<&OsStr> = words.iter().skip(1).map(OsStr::new).collect();
        let mut command = self.sandbox.command(OsStr::new(self.program()), &args, &self.env);
        command.current_dir(&self.cwd);
        command
    }

    /// Checks that the program exists, so that a missing one is reported early.
    fn check_program(&self) -> Result<(), Breakage> {
        if self.sandbox.has_own_system() {
            return Ok(());
        }
        let program = self.program();
        let env = self.sandbox.env(&self.env);
        let found = match program.contains('/') {
            true => Some(self.cwd.join(program)).filter(|file| file.exists()),
            false => {
                let path = env.get("PATH").map_or("", String::as_str);
                let files = path.split(':').filter(|dir| !dir.is_empty()).map(|dir| Path::new(dir).join(program));
                let mut files = files.filter(|file| file.is_file());
                let first = files.next();
                files.find(|file| is_executable(file)).or(first)
            }
        };
        // Another attempt would have the same result.
        let never = |reason: String| Err(Breakage::environment(reason).for_good());
        match found {
            None if program.contains('/') => never(format!("there is no program named `{program}`")),
            None => never(format!("there is no program named `{program}` on the PATH")),
            Some(file) if file.is_dir() => never(format!("`{program}` is a folder")),
            Some(file) if !is_executable(&file) => {
                never(format!("`{program}` cannot be executed: it lacks the permission"))
            }
            Some(_) => Ok(()),
        }
    }
}

/// Returns the file that `config` names and that is neither in the project nor in a sandbox without fixtures. Absolute
/// paths may exist in the sandbox alone.
pub(super) fn missing_file(config: &ProgramConfig, project: &Path) -> Option<String> {
    let cwd = match &config.cwd {
        None => project.to_owned(),
        Some(written) => project.join(written.strip_prefix(PROJECT)?.trim_start_matches('/')),
    };
    let files = FileResolver { cwd: &cwd, project };
    let words: Vec<String> = config.words.iter().map(|word| files.resolved(word)).collect();
    let program = words.first().filter(|program| program.contains('/') && !cwd.join(program).exists());
    let missing = program.cloned().or_else(|| missing_script(&words, &cwd))?;
    let is_absolute = missing.starts_with('/') && config.words.contains(&missing);
    (!is_absolute).then_some(missing)
}

/// Returns the argument that looks like a script, if there is no such file. For most interpreters, the first argument
/// that is not an option is the script, so a path is enough there.
fn missing_script(words: &[String], cwd: &Path) -> Option<String> {
    const ENDINGS: [&str; 14] =
        ["py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rb", "pl", "php", "sh", "lua"];
    let is_file_name = |word: &&String| {
        !word.starts_with('-')
            && !word.contains("://")
            && !word.contains(MESSAGE)
            && !word.contains(char::is_whitespace)
    };
    let mut arguments = words.iter().skip(1).filter(is_file_name).enumerate();
    let named = arguments.find(|(at, word)| {
        let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
        let is_script = ending.is_some_and(|ending| ENDINGS.contains(&ending)) || *at == 0 && word.contains('/');
        is_script && !cwd.join(word).exists()
    });
    named.map(|(_, word)| word.clone())
}

fn is_executable(file: &Path) -> bool {
    file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// Folders against which the files in a command are resolved.
struct FileResolver<'a> {
    cwd: &'a Path,
    project: &'a Path,
}

impl FileResolver<'_> {
    /// Makes `word` absolute if it names a file that exists in the project but not in the sandbox.
    fn resolved(&self, word: &str) -> String {
        let word = self.named(word);
        if word.is_empty() || word.starts_with(['-', '/']) || word.contains(MESSAGE) || self.cwd.join(&word).exists() {
            return word;
        }
        let file = self.project.join(&word);
        if file.is_file() { file.to_string_lossy().into_owned() } else { word }
    }

    /// Replaces the placeholder in `text` with the project's folder.
    fn named(&self, text: &str) -> String {
        match text.contains(PROJECT) {
            true => text.replace(PROJECT, &self.project.to_string_lossy()),
            false => text.to_owned(),
        }
    }
}
