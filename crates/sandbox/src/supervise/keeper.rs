//! The supervisor process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{SigSet, Signal, kill};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;

use super::arguments::{Arguments, myself, take_over};
use super::{descendants, say};

/// Time to retry killing processes that cannot be killed, such as another user's, before they are reported and left
/// running.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Beginning of a namespace's answer if it could be created.
pub(super) const READY: &str = "ready\n";

/// Runs the program, ends all its descendants when it has ended, and exits with the program's code.
pub(super) fn main(arguments: &Arguments) -> Result<u8, String> {
    if arguments.program.is_empty() {
        return Err("no program to run".into());
    }
    let lifeline = arguments.lifeline.map(|fd| take_over(fd, false)).transpose()?;
    let signals = block_signals()?;
    become_reaper()?;
    if let Some(lifeline) = lifeline {
        watch(lifeline)?;
    }
    let child = start(arguments)?;
    let_go_of_streams(null());
    let is_container = arguments.container.is_some();
    let main = Pid::from_raw(child.id().cast_signed());
    let mut keeper = Keeper { main, code: None, grace: arguments.grace, is_container };
    keeper.look_after(&signals)?;
    let was_killed = keeper.code.is_none();
    keeper.end_everything()?;
    if let (Some(role), true) = (&arguments.at_end, was_killed) {
        end_elsewhere(role);
    }
    if let Some(container) = &arguments.container {
        keeper.code = container.end(keeper.code);
    }
    keeper.code.ok_or_else(|| "it is not known how the program ended".into())
}

/// Ends what the program started on other machines. A separate process does this, in the time that remains before the
/// harness kills this one.
fn end_elsewhere(role: &str) {
    let ended = myself().and_then(|program| {
        let mut command = Command::new(program);
        command.arg(role).stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
        command.status().map_err(|error| format!("cannot start a process: {error}"))
    });
    if let Err(reason) = ended {
        say(&reason);
    }
}

/// Starts the program in its surroundings.
fn start(arguments: &Arguments) -> Result<Child, String> {
    if let Some(container) = &arguments.container {
        // Without a daemon, the engine starts the container's processes below this one. Other processes of the engine
        // must see the same process ids, so there is no PID namespace.
        return container.start(&arguments.program);
    }
    let floor = arguments.floor || !cfg!(target_os = "linux");
    let space = if floor { Err("PID namespaces are turned off".to_owned()) } else { start_space(arguments)? };
    match space {
        Ok((child, _)) => Ok(child),
        // Isolation that was requested must not be dropped silently.
        Err(reason) if arguments.isolation.is_some() => Err(reason),
        Err(_) => start_plain(&arguments.program, &arguments.binds),
    }
}

/// Prints whether this machine allows a PID namespace, and the isolation if one is given: `namespace` and a line for
/// each part of the isolation that is refused, or the reason why not.
pub(super) fn probe(arguments: &Arguments) -> Result<u8, String> {
    use std::io::Write;
    let found = match start_space(arguments)? {
        Ok((mut child, refusals)) => {
            child.wait().map_err(|error| format!("cannot wait: {error}"))?;
            format!("namespace\n{refusals}")
        }
        Err(reason) => reason,
    };
    writeln!(io::stdout(), "{}", found.trim_end()).map_err(|error| format!("cannot answer: {error}"))?;
    Ok(0)
}

/// Blocks all signals for which this process waits. They are queued until it waits for them, also in processes that
/// inherit the mask, so none arrives before the supervisor is ready.
fn block_signals() -> Result<SigSet, String> {
    let signals: SigSet =
        [Signal::SIGCHLD, Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP, Signal::SIGUSR1, Signal::SIGALRM]
            .into_iter()
            .collect();
    signals.thread_block().map_err(|error| format!("cannot block signals: {error}"))?;
    Ok(signals)
}

/// Makes this process adopt all descendants that lose their parent.
fn become_reaper() -> Result<(), String> {
    #[cfg(target_os = "linux")]
    nix::sys::prctl::set_child_subreaper(true).map_err(|error| format!("cannot adopt orphans: {error}"))?;
    Ok(())
}

/// Sends SIGUSR1 to this process when the other end of the lifeline is closed.
fn watch(mut lifeline: File) -> Result<(), String> {
    let wait = move || {
        let mut byte = [0];
        loop {
            match lifeline.read(&mut byte) {
                Ok(1..) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => break,
            }
        }
        let _ = kill(Pid::this(), Signal::SIGUSR1);
    };
    thread::Builder::new().spawn(wait).map(drop).map_err(|error| format!("cannot watch the lifeline: {error}"))
}

fn start_plain(program: &[OsString], binds: &[(PathBuf, PathBuf)]) -> Result<Child, String> {
    let mut exec = Command::new(myself()?);
    exec.arg("__supervise-exec").arg("--").args(program);
    if !binds.is_empty() {
        if let Some(place) = std::env::current_dir().ok().and_then(|here| place_of(&here, binds)) {
            exec.current_dir(place);
        }
        for (name, value) in std::env::vars_os() {
            if let Some(place) = place_of(Path::new(&value), binds) {
                exec.env(name, place);
            }
        }
    }
    exec.spawn().map_err(|error| format!("cannot start a process: {error}"))
}

/// Returns the real path of a program that appears at `path` after the bind mounts.
fn place_of(path: &Path, binds: &[(PathBuf, PathBuf)]) -> Option<PathBuf> {
    binds.iter().find_map(|(from, to)| path.strip_prefix(to).ok().map(|rest| from.join(rest)))
}

/// Starts the program in a PID namespace, with the isolation if one is given, or returns the reason why the machine
/// does not allow it. The text next to the process lists the parts of the isolation that were refused when a probe
/// tried them.
fn start_space(arguments: &Arguments) -> Result<Result<(Child, String), String>, String> {
    use std::os::fd::AsRawFd;
    let broken = |error: &dyn std::fmt::Display| format!("cannot read the namespace's answer: {error}");
    let (mut answers, answer) = io::pipe().map_err(|error| broken(&error))?;
    fcntl(&answer, FcntlArg::F_SETFD(FdFlag::empty())).map_err(|error| broken(&error))?;
    let mut space = Command::new(myself()?);
    space
        .arg("__supervise-space")
        .args(["--answer", &answer.as_raw_fd().to_string()])
        .args(["--parent", &Pid::this().to_string()]);
    for (from, to) in &arguments.binds {
        space.arg("--bind").args([from, to]);
    }
    if let Some(isolation) = &arguments.isolation {
        space.arg("--isolation").arg(isolation.to_argument()?);
    }
    let started = space.arg("--").args(&arguments.program).spawn();
    drop(answer);
    let mut child = started.map_err(|error| format!("cannot start a process: {error}"))?;
    let mut output = String::new();
    answers.read_to_string(&mut output).map_err(|error| broken(&error))?;
    if let Some(refusals) = output.strip_prefix(READY) {
        return Ok(Ok((child, refusals.to_owned())));
    }
    child.wait().map_err(|error| broken(&error))?;
    Ok(Err(if output.is_empty() { "the namespace ended before it began".into() } else { output }))
}

/// Opens the null device.
pub(super) fn null() -> Option<File> {
    File::options().read(true).write(true).open("/dev/null").ok()
}

/// Replaces stdin and stdout, which belong to the program, with `null`. Otherwise readers would wait for an end that only
/// this process delays.
pub(super) fn let_go_of_streams(null: Option<File>) {
    if let Some(null) = null {
        let _ = nix::unistd::dup2_stdin(&null);
        let _ = nix::unistd::dup2_stdout(&null);
    }
}

/// Converts a wait status to an exit code: the process's own, or 128 + the signal. `None` if it is still running.
pub(super) fn code_of(status: WaitStatus) -> Option<u8> {
    match status {
        WaitStatus::Exited(_, code) => Some(u8::try_from(code & 0xff).unwrap_or(u8::MAX)),
        WaitStatus::Signaled(_, signal, _) => Some(128_u8.saturating_add(u8::try_from(signal as i32).unwrap_or(0))),
        _ => None,
    }
}

struct Keeper {
    /// The program, or the process that waits for its namespace.
    main: Pid,
    /// Exit code, once it has ended.
    code: Option<u8>,
    grace: Option<Duration>,
    /// True if the program is a container engine's client, which forwards signals.
    is_container: bool,
}

impl Keeper {
    /// Waits until the program has ended or must be killed.
    fn look_after(&mut self, signals: &SigSet) -> Result<(), String> {
        let mut asked = false;
        while self.code.is_none() {
            match signals.wait().map_err(|error| format!("cannot wait for signals: {error}"))? {
                Signal::SIGCHLD => {
                    self.bury();
                }
                Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP if !asked => {
                    asked = true;
                    self.ask_politely()?;
                }
                _ => break,
            }
        }
        Ok(())
    }

    /// Sends SIGTERM to all descendants, and starts a timer for the grace period.
    fn ask_politely(&self) -> Result<(), String> {
        let asked = if self.is_container { vec![self.main] } else { descendants::of(Pid::this()) };
        for pid in asked {
            let _ = kill(pid, Signal::SIGTERM);
            // A stopped process does not receive signals until it continues.
            let _ = kill(pid, Signal::SIGCONT);
        }
        let Some(grace) = self.grace else { return Ok(()) };
        let alarm = move || {
            thread::sleep(grace);
            let _ = kill(Pid::this(), Signal::SIGALRM);
        };
        thread::Builder::new().spawn(alarm).map(drop).map_err(|error| format!("cannot set an alarm: {error}"))
    }

    /// Kills all descendants until none is left. Processes that lose their parent become children of this process, so
    /// no child means that all have ended.
    fn end_everything(&mut self) -> Result<(), String> {
        let began = Instant::now();
        let mut pause = Duration::from_micros(50);
        while self.bury() {
            let left = descendants::of(Pid::this());
            // The program is included in case it cannot be found as a descendant. Until it has been reaped, its id
            // cannot be reused.
            for pid in left.iter().chain(self.code.is_none().then_some(&self.main)) {
                let _ = kill(*pid, Signal::SIGKILL);
            }
            if began.elapsed() > TIMEOUT {
                let names: Vec<String> = left.iter().map(ToString::to_string).collect();
                say(&format!("cannot end {}", names.join(", ")));
                return Ok(());
            }
            // Killed processes take a moment to end, and no signal reports it reliably.
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Reaps all children that have ended. Returns `true` if others remain.
    fn bury(&mut self) -> bool {
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::StillAlive) => return true,
                Ok(status) if status.pid() == Some(self.main) => self.code = code_of(status).or(self.code),
                Ok(_) | Err(Errno::EINTR) => {}
                Err(_) => return false,
            }
        }
    }
}
