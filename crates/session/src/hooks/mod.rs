//! Hooks, the user's own commands around trials: `--pre-run-command`, `--post-grade-command` and `--post-run-command`.
//!
//! They belong to the user, not to an agent: they run in the current directory with the full environment, outside any
//! sandbox. The processes that they start are supervised and end with them.

pub mod output;
mod variables;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Finding, HookKind, HookRecord, RunInfo, Status};
use report::{Reporter, Tree};
use runner::Plan;
use runner::hook::{GradedTrial, Hook, HookResult, succeeded};
use sandbox::supervise::{self, MESSAGE_PREFIX, Output, SUPERVISOR_FAILED};
use sandbox::{BoxFuture, Host};

use self::variables::Variables;
pub use self::variables::{is_hook_variable, reference};
use crate::error::Error;
use crate::overrides::Overrides;
use crate::session::Session;

/// Default time limit of a command, in milliseconds.
pub const TIMEOUT_MS: u64 = 600_000;

/// Maximum size that is kept of each output stream of a command, in bytes.
const MAX_OUTPUT: usize = 256 * 1024;

/// Time limit for writing the files that a command needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum length of a command's output in a finding, in characters.
const MAX_EXCERPT: usize = 500;

/// Adds the hooks to the plan. Returns the reporter that writes the artefacts directory, if `directory`, a workspace or
/// the hooks need one.
///
/// # Errors
/// Returns an error if the directory cannot be used.
pub fn set_up(
    args: &Overrides,
    session: &Session,
    plan: &mut Plan,
    info: &RunInfo,
    directory: Option<PathBuf>,
) -> Result<Option<Box<dyn Reporter>>, Error> {
    let commands = [&args.hooks.pre_run_commands, &args.hooks.post_grade_commands, &args.hooks.post_run_commands];
    check_scripts(&commands, &session.cwd, session.host.var("PATH").unwrap_or_default())?;
    let has_commands = commands.iter().any(|commands| !commands.is_empty());
    let in_workspace = |workspace: &PathBuf| artifacts_in(workspace, &plan.skills, args.output.label.as_deref());
    let root = match directory.or_else(|| args.output.workspace.as_ref().map(in_workspace)) {
        Some(root) => session.cwd.join(root),
        None if has_commands => artifacts_of(&session.state.folder, &info.id),
        None => return Ok(None),
    };
    let tree = Tree::open(&root, info, &session.state.record.to_string()).map_err(|error| {
        Error::usage(error.to_string())
            .hint("nothing was run; `--artifacts` takes a directory that is missing, empty, or an earlier run's")
    })?;
    plan.hook = Some(Arc::new(Hooks {
        commands: commands.map(Clone::clone),
        variables: Variables::new(plan, info, &session.host, &session.cwd, tree.root()),
        host: Arc::clone(&session.host),
        cwd: session.cwd.clone(),
        timeout: Duration::from_millis(args.hooks.hook_timeout.unwrap_or(TIMEOUT_MS)),
        tree: Arc::clone(&tree),
    }));
    Ok(report::to_directory(&tree))
}

/// Checks that the files exist that the commands run, unless an earlier command can create them. Otherwise a missing
/// script would fail every trial.
fn check_scripts(commands: &[&Vec<String>; 3], cwd: &Path, path: &str) -> Result<(), Error> {
    let options = ["--pre-run-command", "--post-grade-command", "--post-run-command"];
    let mut named = commands
        .iter()
        .zip(options)
        .flat_map(|(commands, option)| commands.iter().map(move |command| (command, option)));
    let Some((command, option)) = named.next() else { return Ok(()) };
    let missing = agent::missing_in_shell(command, cwd);
    let missing = missing.map(|file| format!("there is no file `{file}`, which `{option}` runs"));
    let refused = || Some(format!("`{option}` cannot run its command: {}", cannot_run(command, cwd, path)?));
    match missing.or_else(refused) {
        Some(reason) => {
            Err(Error::usage(reason).hint(format!("nothing was run; the command runs in {}", cwd.display())))
        }
        None => Ok(()),
    }
}

/// Returns the reason why the program that `command` names by its path cannot be executed, if it is a single command.
fn cannot_run(command: &str, cwd: &Path, path: &str) -> Option<String> {
    let is_single =
        !command.contains([';', '&', '|', '<', '>', '(', '{', '`', '\n', '$', '~', '*', '=', '\\', '"', '\'']);
    let program = command.split_whitespace().next().filter(|program| is_single && program.contains('/'))?;
    sandbox::find_program(program, path, cwd).err()
}

/// Returns the default artefacts directory of a run.
pub fn artifacts_of(state: &Path, run: &str) -> PathBuf {
    state.join("artifacts").join(run)
}

/// Returns the artefacts directory for a run with a workspace.
fn artifacts_in(workspace: &Path, skills: &[model::SkillInfo], iteration: Option<&str>) -> PathBuf {
    let iteration = format!("iteration-{}", iteration.unwrap_or("1"));
    match skills {
        [skill] => workspace.join(format!("{}-workspace", skill.name)).join(iteration),
        _ => workspace.join(iteration),
    }
}

/// The commands of a run.
struct Hooks {
    commands: [Vec<String>; 3],
    host: Arc<Host>,
    cwd: PathBuf,
    timeout: Duration,
    variables: Variables,
    tree: Arc<Tree>,
}

impl Hook for Hooks {
    fn commands(&self, hook: HookKind) -> &[String] {
        &self.commands[match hook {
            HookKind::PreRun => 0,
            HookKind::PostGrade => 1,
            HookKind::PostRun => 2,
        }]
    }

    fn wants_patch(&self) -> bool {
        true
    }

    fn run<'a>(
        &'a self,
        hook: HookKind,
        number: usize,
        graded: Option<&'a Arc<GradedTrial>>,
    ) -> BoxFuture<'a, HookResult> {
        Box::pin(async move {
            let began = Instant::now();
            let command = self.commands(hook).get(number - 1).map(String::as_str).unwrap_or_default();
            let ran = match self.write_files(hook, number, graded).await {
                Ok(()) => self.execute(command, graded.map(|graded| &**graded)).await,
                Err(reason) => Err(reason),
            };
            let record = record(hook, command, ran, began.elapsed());
            let findings = if graded.is_some() { findings(&record) } else { Vec::new() };
            HookResult { record, findings }
        })
    }
}

impl Hooks {
    /// Waits until everything that precedes a command is written, so that the command finds its files.
    async fn write_files(
        &self,
        hook: HookKind,
        number: usize,
        graded: Option<&Arc<GradedTrial>>,
    ) -> Result<(), String> {
        let (tree, graded) = (Arc::clone(&self.tree), graded.cloned());
        let written = tokio::task::spawn_blocking(move || {
            let about = graded.as_ref().map(|graded| (&*graded.record.id, graded.attempt));
            if !tree.catch_up(hook, number, about, TIMEOUT) {
                return Err("the files for it were not written in time".to_owned());
            }
            match &graded {
                Some(graded) if number == 1 => tree
                    .write_graded(&graded.record, &graded.collected, graded.attempt)
                    .map_err(|error| format!("the files for it cannot be written: {error}")),
                _ => Ok(()),
            }
        });
        written.await.unwrap_or_else(|_| Err("the files for it were not written".to_owned()))
    }

    async fn execute(&self, command: &str, graded: Option<&GradedTrial>) -> Result<Output, String> {
        let mut supervisor = self.host.supervisor.clone();
        // In a separate namespace, `sudo` and other programs that depend on the user's ids would not work.
        supervisor.floor = true;
        let mut process = supervisor.command("sh", ["-c", command]);
        let env = graded.map_or(&self.host.env, |graded| &graded.env);
        process.envs(env).envs(self.variables.of_trial(graded, &self.tree)).current_dir(&self.cwd);
        supervise::run(process, self.timeout, MAX_OUTPUT)
            .await
            .map_err(|error| format!("it cannot be started: {error}"))
    }
}

fn record(hook: HookKind, command: &str, ran: Result<Output, String>, took: Duration) -> HookRecord {
    let mut record = HookRecord {
        hook,
        command: command.to_owned(),
        exit_code: None,
        timed_out: false,
        error: None,
        stdout: String::new(),
        stderr: String::new(),
        duration_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
    };
    match ran {
        Ok(output) => {
            record.stdout = output.stdout.text();
            record.stderr = output.stderr.text();
            record.timed_out = output.timed_out;
            let code = output.status.code().filter(|_| !output.timed_out);
            let marked = || record.stderr.lines().find_map(|line| line.strip_prefix(MESSAGE_PREFIX)).map(str::to_owned);
            match code.filter(|code| *code == i32::from(SUPERVISOR_FAILED)).and_then(|_| marked()) {
                Some(trouble) => record.error = Some(format!("it cannot be run: {trouble}")),
                None => record.exit_code = code,
            }
        }
        Err(reason) => record.error = Some(reason),
    }
    record
}

/// Returns the findings of a post-grade command: those in its output, and one for its exit code.
///
/// A script reports failure through its exit code, so a code other than 0 fails the trial. If the exit does not come
/// from the command itself, it proves nothing against the agent: a shell that cannot find the command, a signal, a
/// timeout.
fn findings(record: &HookRecord) -> Vec<Finding> {
    let command = &record.command;
    let mut findings = output::findings(&record.stdout, command);
    let first = || {
        let text = if record.stderr.trim().is_empty() { &record.stdout } else { &record.stderr };
        let text = model::text::shortened(text.trim(), MAX_EXCERPT);
        if text.is_empty() { text } else { format!(": {text}") }
    };
    match record.exit_code {
        Some(0) if record.succeeded() => {}
        Some(code @ (126 | 127 | 129..=192)) => {
            let reason = format!("the command did not finish, exit code {code}{}", first());
            findings.push(succeeded(command, Status::Undecided, &reason));
        }
        Some(code) if record.error.is_none() => {
            let reason = format!("exit code {code}{}", first());
            findings.push(succeeded(command, Status::Unmet, &reason));
        }
        _ => {
            let reason = format!("the command did not finish: {}{}", record.describe(), first());
            findings.push(succeeded(command, Status::Undecided, &reason));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_script_is_an_error_unless_an_earlier_command_can_create_it() {
        let folder = tempfile::tempdir().unwrap();
        let (none, missing) = (Vec::new(), vec!["python3 nope.py".to_owned()]);
        let message = |commands: [&Vec<String>; 3]| {
            check_scripts(&commands, folder.path(), "").err().map(|error| error.to_string())
        };
        let expected = "there is no file `nope.py`, which `--post-grade-command` runs";
        assert_eq!(message([&none, &missing, &none]).as_deref(), Some(expected));
        let creates = vec!["make scripts".to_owned()];
        assert_eq!(message([&creates, &missing, &none]), None);
        std::fs::write(folder.path().join("grade.sh"), "exit 0\n").unwrap();
        let refused = message([&none, &vec!["./grade.sh --all".to_owned()], &none]).unwrap();
        let expected = "`--post-grade-command` cannot run its command: `./grade.sh` cannot be executed";
        assert!(refused.starts_with(expected), "{refused}");
        for fine in ["sh ./grade.sh", "chmod +x grade.sh && ./grade.sh"] {
            assert_eq!(message([&none, &vec![fine.to_owned()], &none]), None, "{fine}");
        }
    }

    fn ended(exit_code: Option<i32>, stdout: &str, stderr: &str) -> HookRecord {
        HookRecord {
            hook: HookKind::PostGrade,
            command: "look".into(),
            exit_code,
            timed_out: exit_code.is_none(),
            error: None,
            stdout: stdout.into(),
            stderr: stderr.into(),
            duration_ms: 2000,
        }
    }

    fn describe(record: &HookRecord) -> Vec<(Status, String)> {
        findings(record).into_iter().map(|finding| (finding.status, finding.reason)).collect()
    }

    #[test]
    fn an_exit_code_is_a_result_but_a_signal_is_not() {
        assert_eq!(describe(&ended(Some(0), "", "")), []);
        assert_eq!(describe(&ended(Some(3), "out", "")), [(Status::Unmet, "exit code 3: out".to_owned())]);
        assert_eq!(describe(&ended(Some(1), "out", "err")), [(Status::Unmet, "exit code 1: err".to_owned())]);
        for code in [Some(127), Some(137), None] {
            assert_eq!(describe(&ended(code, "", "x"))[0].0, Status::Undecided, "{code:?}");
        }
        let timed_out = &describe(&ended(None, "", ""))[0].1;
        assert_eq!(timed_out, "the command did not finish: had not ended after 2 s");
    }

    #[test]
    fn findings_count_even_if_the_command_fails() {
        let both = describe(&ended(Some(1), r#"[{"text": "a", "passed": true}]"#, ""));
        assert_eq!(both.iter().map(|(status, _)| *status).collect::<Vec<_>>(), [Status::Met, Status::Unmet]);
    }
}
