//! Nothing that a trial starts survives it, whatever it does: the real binary, real processes, with and without a PID
//! namespace, as the user who runs the tests and, if that is root, also as `nobody`.

#![allow(clippy::unwrap_used)]

use std::io::{BufRead, BufReader, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Gid, Pid, Uid};
use sandbox::supervise::{Contained, Containment, MESSAGE_PREFIX, Supervisor, run};

/// Longer than anything here takes; if it expires, something hangs.
const TIMEOUT: Duration = Duration::from_secs(30);

const NOBODY: u32 = 65534;

/// One way of supervising processes.
#[derive(Clone)]
struct Way {
    name: &'static str,
    binary: PathBuf,
    floor: bool,
    uid: Option<u32>,
    _copy: Option<Arc<tempfile::TempDir>>,
}

/// Defines a test for each rule of a way, and tests that only this way needs. The rules are functions that get the way.
macro_rules! tests_of {
    ($way:expr, $attributes:tt $(, $own:ident)*) => {
        use super::*;
        tests_of! { @all $way, $attributes:
            processes_left_behind_by_the_program_are_killed
            a_killed_program_leaves_no_processes
            the_exit_code_is_that_of_the_program_or_reports_the_failed_start
            a_graceful_stop_lets_the_program_exit_by_itself
            a_second_stop_request_kills_the_program
            processes_are_killed_after_the_grace_period
            sigusr1_kills_at_once
            all_processes_end_when_the_harness_is_gone
            killing_a_supervisor_kills_its_program
            processes_that_keep_forking_are_caught
            the_program_starts_with_a_clean_process_state
            a_stream_that_the_program_closed_is_closed
            $($own)*
        }
    };
    (@all $way:expr, $attributes:tt: $($rule:ident)+) => {
        $(tests_of! { @one $way, $attributes, $rule })+
    };
    (@one $way:expr, [$($attribute:tt)*], $rule:ident) => {
        $($attribute)*
        #[test]
        fn $rule() {
            super::$rule(&$way);
        }
    };
}

mod floor {
    tests_of!(Way::mine("floor", true), []);
}

mod namespace {
    tests_of!(
        Way::mine("namespace", false),
        [#[cfg_attr(not(has = "isolation"), ignore = "needs a kernel that isolates processes; run scripts/test")]],
        in_a_namespace_the_program_sees_only_its_own_processes
    );
}

mod floor_as_nobody {
    tests_of!(
        Way::nobodys("floor as nobody", true),
        [#[cfg_attr(not(has = "root"), ignore = "needs root that can mount file systems; run scripts/test")]]
    );
}

mod namespace_as_nobody {
    tests_of!(
        Way::nobodys("namespace as nobody", false),
        [#[cfg_attr(
            not(all(has = "isolation", has = "root")),
            ignore = "needs root and a kernel that isolates processes; run scripts/test"
        )]],
        in_a_namespace_the_program_sees_only_its_own_processes
    );
}

/// Returns a copy of the binary that every user may run; parallel tests share it, and it is removed after the last
/// one.
///
/// A process of its own copies: what another test starts meanwhile inherits the file until it replaces itself, and a
/// program that is open for writing does not start.
pub(crate) fn copy_for_every_user() -> Arc<tempfile::TempDir> {
    static COPY: Mutex<Weak<tempfile::TempDir>> = Mutex::new(Weak::new());
    let mut shared = COPY.lock().unwrap();
    if let Some(copy) = shared.upgrade() {
        return copy;
    }
    let copy = tempfile::tempdir().unwrap();
    std::fs::set_permissions(copy.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_trialrun")).arg(copy.path().join("trialrun")).status();
    assert!(copied.unwrap().success());
    let copy = Arc::new(copy);
    *shared = Arc::downgrade(&copy);
    copy
}

impl Way {
    fn mine(name: &'static str, floor: bool) -> Self {
        Self { name, binary: PathBuf::from(env!("CARGO_BIN_EXE_trialrun")), floor, uid: None, _copy: None }
    }

    fn nobodys(name: &'static str, floor: bool) -> Self {
        let copy = copy_for_every_user();
        Self { name, binary: copy.path().join("trialrun"), floor, uid: Some(NOBODY), _copy: Some(copy) }
    }

    fn command(&self, role: &str) -> Command {
        let mut command = Command::new(&self.binary);
        command.arg(role).env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin").current_dir("/");
        if let Some(uid) = self.uid {
            command.uid(uid).gid(uid);
        }
        command
    }

    fn start(&self, settings: &[&str], program: &[&str]) -> Started {
        let mut command = self.command("__supervise");
        if self.floor {
            command.arg("--floor");
        }
        command.args(settings).arg("--").args(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let (line, lines) = channel();
        std::thread::spawn(move || {
            for read in BufReader::new(stdout).lines().map_while(Result::ok) {
                let _ = line.send(read);
            }
        });
        Started { way: self.name, stdin: child.stdin.take(), child, lines }
    }

    fn shell(&self, settings: &[&str], script: &str) -> Started {
        self.start(settings, &["/bin/sh", "-c", script])
    }
}

/// A supervised program; `lines` does not end while any process has its stdout open.
struct Started {
    way: &'static str,
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Started {
    fn expect(&self, line: &str) {
        let output = self.lines.recv_timeout(TIMEOUT);
        assert_eq!(output.as_deref(), Ok(line), "{}", self.way);
    }

    fn send(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).unwrap();
    }

    /// Lets a program continue that is waiting for the end of its stdin.
    fn go(&mut self) {
        self.stdin = None;
    }

    /// Waits until no process has the program's stdout open.
    fn end_of_stdout(&self) {
        let left = self.lines.recv_timeout(TIMEOUT);
        assert_eq!(left, Err(RecvTimeoutError::Disconnected), "{}: something still has stdout", self.way);
    }

    /// Returns the exit code and stderr, once no started process is left.
    fn end(mut self) -> (i32, String) {
        self.stdin = None;
        self.end_of_stdout();
        let mut stderr = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        (self.child.wait().unwrap().code().unwrap(), stderr)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.send(Signal::SIGUSR1);
            let _ = self.child.wait();
        }
    }
}

/// Three processes that have left their parent in three ways, and ignore all the signals they can.
const ORPHANS: &str = r#"
    setsid sh -c 'trap "" TERM HUP INT; echo started; while :; do sleep 1000; done' &
    env -i setsid /bin/sh -c 'echo started; exec /bin/sleep 1000' &
    ( ( setsid sh -c 'trap "" TERM; echo started; read line < /dev/null; while :; do sleep 1000; done' & ) & )
"#;

fn with_orphans(way: &Way, settings: &[&str], then: &str) -> Started {
    let mut started = way.shell(settings, &format!("{ORPHANS}\n read first; {then}"));
    (0..3).for_each(|_| started.expect("started"));
    started.stdin.as_mut().unwrap().write_all(b"first\n").unwrap();
    started
}

fn processes_left_behind_by_the_program_are_killed(way: &Way) {
    let mut started = with_orphans(way, &[], "read go; exit 3");
    started.go();
    assert_eq!(started.end(), (3, String::new()), "{}", way.name);
}

fn a_killed_program_leaves_no_processes(way: &Way) {
    let mut started = with_orphans(way, &[], "read go; kill -9 $$");
    started.go();
    assert_eq!(started.end().0, 137, "{}", way.name);
}

fn the_exit_code_is_that_of_the_program_or_reports_the_failed_start(way: &Way) {
    assert_eq!(way.shell(&[], "exit 125").end(), (125, String::new()));
    assert_eq!(way.shell(&[], "kill -15 $$").end(), (143, String::new()));
    let (code, stderr) = way.start(&[], &["no-such-program-anywhere"]).end();
    assert_eq!(code, 127, "{}", way.name);
    assert!(stderr.starts_with(&format!("{MESSAGE_PREFIX}cannot run no-such-program-anywhere: ")), "{stderr}");
    let (code, stderr) = way.start(&[], &["/etc/passwd"]).end();
    assert_eq!(code, 126, "{}", way.name);
    assert!(stderr.starts_with(MESSAGE_PREFIX), "{stderr}");
    let (code, stderr) = way.start(&[], &[]).end();
    assert_eq!((code, stderr.as_str()), (125, "trialrun supervisor: no program to run\n"));
}

fn a_graceful_stop_lets_the_program_exit_by_itself(way: &Way) {
    for signal in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let started = with_orphans(way, &[], "trap 'exit 4' TERM; echo ready; while :; do :; done");
        started.expect("ready");
        started.send(signal);
        assert_eq!(started.end().0, 4, "{}", way.name);
    }
}

/// It starts nothing, because a signal that arrives at a shell's child between fork and exec would be lost.
const STUBBORN: &str = "trap 'echo asked' TERM; echo ready; while :; do :; done";

fn a_second_stop_request_kills_the_program(way: &Way) {
    let started = with_orphans(way, &[], STUBBORN);
    started.expect("ready");
    started.send(Signal::SIGTERM);
    started.expect("asked");
    started.send(Signal::SIGTERM);
    assert_eq!(started.end().0, 137, "{}", way.name);
}

fn processes_are_killed_after_the_grace_period(way: &Way) {
    let started = with_orphans(way, &["--grace-ms", "20"], STUBBORN);
    started.expect("ready");
    started.send(Signal::SIGTERM);
    started.expect("asked");
    assert_eq!(started.end().0, 137, "{}", way.name);
}

fn sigusr1_kills_at_once(way: &Way) {
    let started = with_orphans(way, &[], "trap '' TERM INT HUP USR1; while :; do sleep 1000; done");
    started.send(Signal::SIGUSR1);
    assert_eq!(started.end().0, 137, "{}", way.name);
}

fn all_processes_end_when_the_harness_is_gone(way: &Way) {
    let (reader, writer) = std::io::pipe().unwrap();
    fcntl(&reader, FcntlArg::F_SETFD(FdFlag::empty())).unwrap();
    if let Some(uid) = way.uid {
        nix::unistd::fchown(&reader, Some(Uid::from_raw(uid)), Some(Gid::from_raw(uid))).unwrap();
    }
    let lifeline = reader.as_raw_fd().to_string();
    let check = format!("[ ! -e /proc/self/fd/{lifeline} ] && echo closed; {STUBBORN}");
    let started = with_orphans(way, &["--lifeline", &lifeline], &check);
    started.expect("closed");
    started.expect("ready");
    drop(writer);
    assert_eq!(started.end().0, 137, "{}", way.name);
}

fn killing_a_supervisor_kills_its_program(way: &Way) {
    let started = way.shell(&[], "trap '' TERM; echo ready; exec sleep 1000");
    started.expect("ready");
    started.send(Signal::SIGKILL);
    started.end_of_stdout();
}

fn processes_that_keep_forking_are_caught(way: &Way) {
    let hop = "hop() { (hop) & }; hop; echo started; read go; exit 5";
    let mut started = way.shell(&[], hop);
    started.expect("started");
    started.go();
    assert_eq!(started.end().0, 5, "{}", way.name);
}

fn the_program_starts_with_a_clean_process_state(way: &Way) {
    let script = r#"
        sed -n 's/^SigBlk:\t//p' /proc/self/status
        echo $(( 0x$(sed -n 's/^SigIgn:\t//p' /proc/self/status) >> 12 & 1 )) ignores SIGPIPE
        read _ _ _ _ _ session _ < /proc/$$/stat; [ "$session" = "$$" ] && echo own session
        id -u; id -g; pwd; env | grep -v -e ^PWD= -e ^_= -e ^SHLVL= -e ^OLDPWD=
    "#;
    let started = way.shell(&[], script);
    let (uid, gid) = match way.uid {
        Some(uid) => (uid, uid),
        None => (Uid::effective().as_raw(), Gid::effective().as_raw()),
    };
    let path = "PATH=/usr/local/bin:/usr/bin:/bin";
    for line in ["0000000000000000", "0 ignores SIGPIPE", "own session", &uid.to_string(), &gid.to_string(), "/", path]
    {
        started.expect(line);
    }
    assert_eq!(started.end(), (0, String::new()), "{}", way.name);
}

fn in_a_namespace_the_program_sees_only_its_own_processes(way: &Way) {
    let started = way.shell(&[], "echo $$; ls -d /proc/[0-9]* | grep -v -e '^/proc/[12]$' | wc -l | tr -d ' '");
    started.expect("2");
    // `ls`, `grep`, `wc`, `tr` and a copy of the shell are all that may exist in addition to pid 1 and the shell.
    let others: usize = started.lines.recv_timeout(TIMEOUT).unwrap().parse().unwrap();
    assert!(others <= 5, "{}: {others}", way.name);
    assert_eq!(started.end().0, 0);
}

fn a_stream_that_the_program_closed_is_closed(way: &Way) {
    let mut started = way.shell(&[], "exec >&- <&-; exec sleep 1000");
    started.end_of_stdout();
    let mut stdin = started.stdin.take().unwrap();
    while stdin.write_all(b"anybody?\n").is_ok() {}
    started.send(Signal::SIGTERM);
    assert_eq!(started.end().0, 143, "{}", way.name);
}

// The harness's side.

fn supervisors() -> Vec<Supervisor> {
    let supervisor = Supervisor::new(env!("CARGO_BIN_EXE_trialrun")).unwrap();
    let mut floor = supervisor.clone();
    floor.floor = true;
    vec![floor, supervisor]
}

fn shell(supervisor: &Supervisor, script: &str) -> tokio::process::Command {
    let mut command = supervisor.command("sh", ["-c", script]);
    command.env("PATH", "/usr/bin:/bin").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

async fn line(contained: &mut Contained) -> (String, tokio::process::ChildStdout) {
    use tokio::io::AsyncReadExt;
    let mut stdout = contained.take_stdout().unwrap();
    let mut line = Vec::new();
    while !line.ends_with(b"\n") {
        line.push(stdout.read_u8().await.unwrap());
    }
    (String::from_utf8(line).unwrap(), stdout)
}

#[tokio::test]
async fn the_kind_of_containment_is_reported() {
    let [floor, best] = supervisors().try_into().unwrap();
    assert!(matches!(floor.containment().await.unwrap(), Containment::Floor { .. }));
    let inside = run(shell(&best, "echo $$"), TIMEOUT, 100).await.unwrap().stdout.text() == "2\n";
    assert_eq!(best.containment().await.unwrap() == Containment::Namespace, inside);
}

#[tokio::test]
async fn stopping_is_graceful_during_the_grace_period() {
    for supervisor in supervisors() {
        let script = "trap 'exit 9' TERM; echo ready; while :; do :; done";
        let mut polite = Contained::spawn(shell(&supervisor, script)).unwrap();
        line(&mut polite).await;
        assert_eq!(polite.stop(TIMEOUT).await.unwrap().code(), Some(9));
        assert_eq!(polite.stop(TIMEOUT).await.unwrap().code(), Some(9), "stopping twice changes nothing");
        let mut stubborn = Contained::spawn(shell(&supervisor, STUBBORN)).unwrap();
        let _stdout = line(&mut stubborn).await;
        assert_eq!(stubborn.stop(Duration::from_millis(20)).await.unwrap().code(), Some(137));
    }
}

#[tokio::test]
async fn dropping_a_process_kills_all_its_descendants() {
    use tokio::io::AsyncReadExt;
    for supervisor in supervisors() {
        let script = "setsid sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & wait; sleep 1000";
        let mut contained = Contained::spawn(shell(&supervisor, script)).unwrap();
        let (_, mut stdout) = line(&mut contained).await;
        drop(contained);
        let end = tokio::time::timeout(TIMEOUT, stdout.read(&mut [0; 8])).await;
        assert_eq!(end.unwrap().unwrap(), 0);
    }
}

#[tokio::test]
async fn a_command_that_times_out_is_killed_with_its_descendants() {
    for supervisor in supervisors() {
        let script = format!("{ORPHANS} echo said; trap '' TERM; while :; do sleep 1000; done");
        // How soon a shell can print something depends on the machine.
        let mut timeout = Duration::from_millis(200);
        loop {
            let output = run(shell(&supervisor, &script), timeout, 1000).await.unwrap();
            assert!(output.timed_out);
            assert_eq!(output.status.code(), Some(137));
            if output.stdout.text().contains("said") {
                break;
            }
            timeout *= 2;
            assert!(timeout < TIMEOUT, "the output before the timeout is kept");
        }
    }
}

#[tokio::test]
async fn a_command_ends_when_it_exits_although_a_child_holds_its_pipe() {
    for supervisor in supervisors() {
        let output = run(shell(&supervisor, "setsid sleep 1000 & echo out; echo err >&2; exit 6"), TIMEOUT, 1000);
        let output = output.await.unwrap();
        assert_eq!((output.status.code(), output.timed_out), (Some(6), false));
        assert_eq!((output.stdout.text().as_str(), output.stderr.text().as_str()), ("out\n", "err\n"));
    }
}

#[tokio::test]
async fn excessive_output_is_truncated_and_does_not_block() {
    for supervisor in supervisors() {
        let flood = "echo first; head -c 3000000 /dev/zero | tr '\\0' x; echo; echo last";
        let output = run(shell(&supervisor, flood), TIMEOUT, 1000).await.unwrap();
        let text = output.stdout.text();
        assert!(text.starts_with("first\nxxx") && text.ends_with("xxx\nlast\n") && text.len() < 1100);
        assert_eq!(output.stdout.omitted(), 3_000_000 + 12 - 1000);
    }
}
