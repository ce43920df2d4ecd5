//! The roles of a supervising program, which it plays when it is started again with a hidden first argument.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::arguments::Arguments;
use super::{container, exec, failure, keeper, mock, remote, space};

/// Version that both sides of a supervisor must have, because its arguments may differ between versions.
pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Prefix of the arguments that name a role.
const PREFIX: &str = "__supervise";

/// Role of the stand-ins for `gh` and `glab` in a sandbox: the name of the stand-in, its socket and its arguments follow.
/// Only a program that has stand-ins plays it, before it calls [`answer`].
pub const STAND_IN: &str = "__stand-in";

/// Role that prints [`GREETING`] and the version.
const GREET: &str = "__supervise-answer";

const GREETING: &str = "trialrun supervisor ";

/// Timeout for a program to answer.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum length of an answer, in bytes.
const MAX_ANSWER: u64 = 256;

type Role = fn(&Arguments) -> Result<u8, String>;

const ROLES: &[(&str, Role)] = &[
    ("__supervise", keeper::main),
    ("__supervise-space", space::main),
    ("__supervise-init", space::init),
    ("__supervise-exec", exec::main),
    ("__supervise-probe", keeper::probe),
    (GREET, greet),
    #[cfg(target_os = "linux")]
    (container::LISTEN, super::container_network::listen),
    (remote::RUN, remote::run),
    (remote::END, remote::end),
];

/// Reason why a program cannot supervise processes.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SupervisorError {
    /// The program runs as usual although it is asked to supervise.
    #[error("{} cannot supervise processes: its `main` does not begin with `supervise::answer`", .0.display())]
    NoAnswer(PathBuf),
    /// The program supervises processes for another version of trialrun.
    #[error("{} supervises processes for trialrun {version}, not for {}", program.display(), VERSION)]
    OtherVersion {
        /// The program.
        program: PathBuf,
        /// Its version.
        version: String,
    },
    /// The program cannot be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// This process cannot open more file descriptors.
    #[error("cannot create a pipe: {0}")]
    Lifeline(#[source] io::Error),
}

/// True if the `main` of this process has called [`answer`].
static ANSWERS: AtomicBool = AtomicBool::new(false);

/// Plays the role that the first of the `args` names, which are the arguments of this process without the name of the
/// program. Returns the exit code of the role, or `None` if the process was started for another purpose.
///
/// The `main` of a program that runs trials calls this first, before the process has a second thread, and ends with the
/// exit code. A role writes to stderr and waits for signals.
pub fn answer(args: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    ANSWERS.store(true, Ordering::Relaxed);
    let mut args = args.into_iter();
    let role = args.next()?;
    if role == STAND_IN {
        return Some(failure("this program has no stand-ins for `gh` and `glab`"));
    }
    if role == mock::ROLE {
        return Some(mock::main(args));
    }
    if !role.to_string_lossy().starts_with(PREFIX) {
        return None;
    }
    let Some(play) = find(&role) else { return Some(failure("no such role")) };
    Some(match Arguments::parse(args).and_then(|arguments| play(&arguments)) {
        Ok(code) => ExitCode::from(code),
        Err(reason) => failure(&reason),
    })
}

fn find(argument: &OsStr) -> Option<Role> {
    ROLES.iter().find(|(name, _)| argument == *name).map(|(_, role)| *role)
}

fn greet(_: &Arguments) -> Result<u8, String> {
    writeln!(io::stdout(), "{GREETING}{VERSION}").map_err(|error| format!("cannot answer: {error}"))?;
    Ok(0)
}

/// Returns an error if `program` does not answer. This process knows it of itself: if it did not and started itself to
/// find out, that process would do the same.
pub(super) fn demand(program: &Path) -> Result<(), SupervisorError> {
    let found = if is_this_program(program) {
        ANSWERS.load(Ordering::Relaxed).then(|| VERSION.to_owned())
    } else {
        version_of(program).map_err(|source| SupervisorError::Start { program: program.to_owned(), source })?
    };
    match found {
        None => Err(SupervisorError::NoAnswer(program.to_owned())),
        Some(version) if version != VERSION => {
            Err(SupervisorError::OtherVersion { program: program.to_owned(), version })
        }
        Some(_) => Ok(()),
    }
}

fn is_this_program(program: &Path) -> bool {
    std::env::current_exe()
        .is_ok_and(|this| this == program || program.canonicalize().is_ok_and(|program| program == this))
}

/// Returns the version in a program's answer, or `None` if it answers something else, or nothing for a while. None of
/// its processes in its process group remain.
fn version_of(program: &Path) -> io::Result<Option<String>> {
    let mut child = Command::new(program)
        .arg(GREET)
        .env_clear()
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let (sender, answers) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut answer = String::new();
            let read = stdout.take(MAX_ANSWER).read_to_string(&mut answer);
            let _ = sender.send(read.map(|_| answer));
        });
    }
    let answer = answers.recv_timeout(TIMEOUT);
    // The id is still that of the child, which has not been waited for.
    let _ = killpg(Pid::from_raw(child.id().cast_signed()), Signal::SIGKILL);
    child.wait()?;
    let answer = answer.ok().and_then(Result::ok);
    Ok(answer.and_then(|answer| Some(answer.strip_prefix(GREETING)?.strip_suffix('\n')?.to_owned())))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn refusal(script: &str) -> String {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
        demand(&program).unwrap_err().to_string().replace(&program.display().to_string(), "PROGRAM")
    }

    #[test]
    fn a_program_that_does_not_answer_or_has_another_version_is_refused() {
        let silent = "PROGRAM cannot supervise processes: its `main` does not begin with `supervise::answer`";
        assert_eq!(refusal("echo hello"), silent);
        assert_eq!(refusal("exec yes"), silent);
        assert_eq!(refusal("exit 1"), silent);
        assert_eq!(
            refusal("echo 'trialrun supervisor 0.0.1'"),
            format!("PROGRAM supervises processes for trialrun 0.0.1, not for {VERSION}")
        );
        assert!(matches!(demand(Path::new("/none")), Err(SupervisorError::Start { .. })));
    }

    #[test]
    fn a_program_whose_own_main_did_not_answer_is_refused_without_being_started() {
        let this = std::env::current_exe().unwrap();
        assert!(matches!(demand(&this), Err(SupervisorError::NoAnswer(_))));
    }
}
