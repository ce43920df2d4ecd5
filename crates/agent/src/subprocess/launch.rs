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

/// Variable that holds the trace that the program's work belongs to.
const TRACEPARENT: &str = "TRACEPARENT";

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
        let missing_script = missing_script(&words, &cwd).or_else(|| missing_script(&in_shell(&words), &cwd));
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

    /// Starts the program for `message` as part of the trace `traceparent`, if there is one.
    pub(super) fn start_in(&mut self, traceparent: Option<String>, message: &UserMessage) -> Result<Process, String> {
        if let Some(traceparent) = traceparent {
            self.env.retain(|(name, _)| name != TRACEPARENT);
            self.env.push((TRACEPARENT.to_owned(), traceparent));
        }
        self.start(Some(message))
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
        // Another attempt would have the same result.
        self.find(self.program()).map(drop).map_err(|reason| Breakage::environment(reason).for_good())
    }

    /// Finds a program as the conversation's program would.
    fn find(&self, program: &str) -> Result<PathBuf, String> {
        let env = self.sandbox.env(&self.env);
        sandbox::find_program(program, env.get("PATH").map_or("", String::as_str), &self.cwd)
    }

    /// Returns what is missing, if `how` the program ended says that something is that `command` names: a program in the
    /// text of a shell, a module, or a script. `exit_code` is its exit code.
    pub(crate) fn missing(&self, exit_code: Option<i32>, how: &str) -> Option<String> {
        if exit_code == Some(0) {
            return None;
        }
        if let Some(script) = &self.missing_script {
            return Some(format!("there is no file named `{script}`, which `command` names"));
        }
        if self.sandbox.has_own_system() {
            return None;
        }
        let arguments = self.words.iter().skip(1);
        // Shells have these exit codes for a program that they cannot run.
        if matches!(exit_code, Some(126 | 127)) {
            let is_apart = |c: char| c.is_whitespace() || "\"';&|()<>".contains(c);
            let mut named = arguments.clone().flat_map(|word| word.split(is_apart)).filter(|name| !name.is_empty());
            return named.find_map(|name| self.find(name).err().filter(|_| says_missing(how, name)));
        }
        // Python puts the name of a module that other code imports into quotes.
        let mut options = arguments.skip_while(|word| *word != "-m");
        let module = options.nth(1)?;
        let is_missing = how.split(" / ").any(|line| line.ends_with(&format!(": No module named {module}")));
        is_missing.then(|| format!("there is no module named `{module}`, which `command` names"))
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
    let missing = program.cloned().or_else(|| missing_script(&words, &cwd));
    let missing = missing.or_else(|| missing_script(&in_shell(&words), &cwd))?;
    let is_absolute = missing.starts_with('/') && config.words.contains(&missing);
    (!is_absolute).then_some(missing)
}

/// Returns the file that the `text` of a shell runs as a program or as the script of an interpreter, if it does not exist
/// in `cwd`. Returns `None` if that is not certain, because the text is more than the words of one command.
pub fn missing_in_shell(text: &str, cwd: &Path) -> Option<String> {
    if text.contains(['$', '~', '*', '=', '\\']) {
        return None;
    }
    missing_program(&in_shell(&["sh".to_owned(), "-c".to_owned(), text.to_owned()]), cwd)
}

/// Returns the program that the command `words` names by its path, or the script of an interpreter, if it does not exist
/// in `cwd`.
pub fn missing_program(words: &[String], cwd: &Path) -> Option<String> {
    const INTERPRETERS: [&str; 11] =
        ["sh", "bash", "dash", "zsh", "python", "python3", "node", "bun", "ruby", "perl", "php"];
    let (program, arguments) = words.split_first()?;
    if program.contains('/') && !cwd.join(program).exists() {
        return Some(program.clone());
    }
    let interpreter = program.rsplit('/').next().filter(|name| INTERPRETERS.contains(name));
    // Options of interpreters can have values.
    let script = arguments.first().filter(|script| interpreter.is_some() && has_script_ending(script))?;
    (!cwd.join(script).exists()).then(|| script.clone())
}

/// Way to fix a program that cannot be executed.
pub const HELP_FOR_UNUSABLE: &str = "name an executable file, or write the program that runs the file before it";

/// Returns why the program that `words` name by its path cannot be executed, if `cwd` has it.
pub fn unusable_program(words: &[String], cwd: &Path) -> Option<String> {
    let program = words.first().filter(|program| program.contains('/'))?;
    let found = cwd.join(program).metadata().ok()?;
    match found.permissions().mode() & 0o111 {
        _ if found.is_dir() => Some(format!("`{program}` is a folder, not a program")),
        0 => Some(format!("`{program}` cannot be executed: it lacks the permission")),
        _ => None,
    }
}

/// Returns the words of the only command that a shell is to run, as `sh -c "python3 agent.py"` does; none if it runs
/// several, or other files than scripts may be created first.
fn in_shell(words: &[String]) -> Vec<String> {
    let [shell, option, text, ..] = words else { return Vec::new() };
    let is_shell = matches!(shell.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh")) && option == "-c";
    let is_simple = !text.contains([';', '&', '|', '<', '>', '(', '{', '`', '\n']);
    let words = text.split_whitespace().map(|word| word.trim_matches(['"', '\'']).to_owned());
    words.filter(|word| is_shell && is_simple && !word.contains('$')).collect()
}

/// Returns the argument that looks like a script, if there is no such file. For most interpreters, the first argument
/// that is not an option is the script, so a path is enough there.
fn missing_script(words: &[String], cwd: &Path) -> Option<String> {
    let is_file_name = |word: &&String| {
        // The names of packages can begin with `@`.
        !word.starts_with(['-', '@'])
            && !word.contains("://")
            && !word.contains(MESSAGE)
            && !word.contains(char::is_whitespace)
    };
    let mut arguments = words.iter().skip(1).filter(is_file_name).enumerate();
    let named = arguments.find(|(at, word)| {
        let is_script = has_script_ending(word) || *at == 0 && word.contains('/');
        is_script && !cwd.join(word).exists()
    });
    named.map(|(_, word)| word.clone())
}

/// Returns `true` if `word` ends like the name of a script.
fn has_script_ending(word: &str) -> bool {
    const ENDINGS: [&str; 14] =
        ["py", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rb", "pl", "php", "sh", "lua"];
    let ending = Path::new(word).extension().and_then(|ending| ending.to_str());
    ending.is_some_and(|ending| ENDINGS.contains(&ending))
}

/// Returns `true` if a shell says in `how` that it cannot run the program `name`.
fn says_missing(how: &str, name: &str) -> bool {
    const REASONS: [&str; 4] =
        [": not found", ": command not found", ": No such file or directory", ": Permission denied"];
    how.match_indices(name).any(|(at, _)| {
        let (before, after) = (&how[..at], how[at + name.len()..].trim_start_matches(['\'', '’']));
        let is_whole = before.chars().next_back().is_none_or(|c| c == ' ' || c == '\'' || c == '‘');
        let is_reason = REASONS.iter().any(|reason| after.starts_with(reason));
        is_whole && (is_reason || before.ends_with("command not found: "))
    })
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
