//! A PID namespace around the program, if the machine allows it. When its first process ends, the kernel kills all
//! processes in it, including forked and detached ones and those that ignore signals.

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command};

use model::IsolationLayer;
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use nix::sys::wait::waitpid;
use nix::unistd::{Pid, getegid, geteuid, getppid};

use super::arguments::{Arguments, myself, take_over};
use super::isolation::{Isolation, Network};
use super::keeper::{READY, code_of, let_go_of_streams, null};
use super::{listeners, loopback, restriction, root};

/// Creates the namespace, starts its first process, and exits with that process's code. This is a separate process
/// because a process that has entered a new namespace cannot go back. If a later step fails, the supervisor, which did
/// not enter it, can still run the program without a namespace.
pub(super) fn main(arguments: &Arguments) -> Result<u8, String> {
    let answer = arguments.answer.ok_or("nowhere to answer")?;
    // The first process gives this one a new root while it builds it. There, the null device is an empty file until the
    // device is mounted on it, and the root could not become read-only while this process has that file open.
    let null = null();
    // The harness serves the ports until this process has ended.
    let (child, _served) = match start_first_process(arguments, answer) {
        Ok(started) => started,
        Err(reason) => {
            let mut answer = take_over(answer, true)?;
            let _ = answer.write_all(reason.as_bytes());
            return Ok(super::SUPERVISOR_FAILED);
        }
    };
    // The first process has its own handle. If this one stayed open, the reader would never see the end of the
    // answer.
    nix::unistd::close(answer).map_err(|error| format!("cannot close the answer: {error}"))?;
    let_go_of_streams(null);
    loop {
        if let Ok(status) = waitpid(pid_of(&child), None)
            && let Some(code) = code_of(status)
        {
            return Ok(code);
        }
    }
}

/// Switches back to user and group `owner` in a user namespace where this process is root.
pub(super) fn be((uid, gid): (u32, u32)) -> Result<(), String> {
    unshare(CloneFlags::CLONE_NEWUSER).map_err(|error| format!("cannot make a user namespace: {error}"))?;
    map((uid, 0), (gid, 0))
}

/// Sets the limits on this process's resources.
pub(super) fn limit(isolation: &Isolation) -> Result<(), String> {
    restriction::limit(&isolation.limits)
}

/// Imposes the restrictions of an isolated program on this process. A probe already reported what the machine refuses.
pub(super) fn restrict(isolation: &Isolation) {
    restriction::restrict(isolation);
}

/// Makes the kernel kill this process when its parent ends. The parent has only one thread, so the end of a thread
/// cannot be mistaken for it.
pub(super) fn die_with_parent() -> Result<(), String> {
    nix::sys::prctl::set_pdeathsig(nix::sys::signal::Signal::SIGKILL)
        .map_err(|error| format!("cannot be tied to the parent: {error}"))
}

fn start_first_process(arguments: &Arguments, answer: i32) -> Result<(Child, Option<UnixStream>), String> {
    let flags = namespaces(arguments.isolation.as_ref());
    let (uid, gid) = (geteuid(), getegid());
    let owner = (uid.as_raw(), gid.as_raw());
    let has_user_namespace = !uid.is_root() || arguments.isolation.is_some();
    if !has_user_namespace {
        unshare(flags).map_err(|error| format!("a pid namespace is refused: {error}"))?;
    } else {
        unshare(flags | CloneFlags::CLONE_NEWUSER).map_err(|error| format!("a user namespace is refused: {error}"))?;
        map((0, owner.0), (0, owner.1))?;
    }
    // Must follow the change of user namespace, which resets this setting.
    die_with_parent()?;
    if arguments.parent.is_some_and(|parent| Pid::from_raw(parent) != getppid()) {
        return Err("the supervisor is gone".into());
    }
    // Mounts inside must not be visible outside.
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_SLAVE, None::<&str>)
        .map_err(|error| format!("private mounts are refused: {error}"))?;
    bind(&arguments.binds)?;
    let served = arguments.isolation.as_ref().map_or(Ok(None), prepare_network)?;
    let mut init = Command::new(myself()?);
    init.arg("__supervise-init").arg("--answer").arg(answer.to_string());
    if has_user_namespace {
        init.arg("--owner").arg(format!("{}:{}", owner.0, owner.1));
    }
    if let Some(isolation) = &arguments.isolation {
        init.arg("--isolation").arg(isolation.to_argument()?);
    }
    init.arg("--").args(&arguments.program);
    let child = init.spawn().map_err(|error| format!("the namespace's first process cannot be started: {error}"))?;
    Ok((child, served))
}

/// Restricts this process like an isolated program, and returns all layers of the isolation. The namespaces exist,
/// because otherwise this process would not.
fn layers(isolation: &Isolation) -> Vec<IsolationLayer> {
    let layer = |name: &str, result: Result<String, String>| IsolationLayer {
        name: name.to_owned(),
        holds: result.is_ok(),
        detail: result.unwrap_or_else(|reason| reason),
    };
    let mut layers = vec![
        layer("filesystem", Ok("user and mount namespaces".into())),
        layer("processes", Ok("PID and IPC namespaces".into())),
        layer("limits", restriction::limit(&isolation.limits).map(|()| root::process_limit())),
    ];
    if isolation.network == Network::None {
        layers.push(layer(
            "network",
            Ok("a network namespace, for the policies `none`, `model-only` and `allow`".into()),
        ));
    }
    layers.extend(restriction::restrict(isolation));
    layers
}

/// Returns the namespaces to create, without the user namespace.
fn namespaces(isolation: Option<&Isolation>) -> CloneFlags {
    let flags = CloneFlags::CLONE_NEWPID | CloneFlags::CLONE_NEWNS;
    match isolation.map(|isolation| isolation.network) {
        None => flags,
        Some(Network::Open) => flags | CloneFlags::CLONE_NEWIPC,
        Some(Network::None) => flags | CloneFlags::CLONE_NEWIPC | CloneFlags::CLONE_NEWNET,
    }
}

/// Bind-mounts the first path of each pair at the second.
fn bind(places: &[(PathBuf, PathBuf)]) -> Result<(), String> {
    if places.is_empty() {
        return Ok(());
    }
    let here = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    for (from, to) in places {
        let flags = MsFlags::MS_BIND | MsFlags::MS_REC;
        mount(Some(from), to, None::<&str>, flags, None::<&str>)
            .map_err(|error| format!("a mount at {} is refused: {error}", to.display()))?;
    }
    // The working directory still refers to the directory from before the mounts.
    std::env::set_current_dir(&here).map_err(|error| format!("{} cannot be entered: {error}", here.display()))
}

/// Runs as the first process of the namespace: starts the program, reaps ended processes, and exits with the program's
/// code.
pub(super) fn init(arguments: &Arguments) -> Result<u8, String> {
    let mut answer = take_over(arguments.answer.ok_or("nowhere to answer")?, true)?;
    die_with_parent()?;
    let prepared = match &arguments.isolation {
        Some(isolation) => root::enter(isolation),
        // Without a new `/proc`, `ps` and `kill` would use different process ids.
        None => mount_proc(),
    };
    if let Err(reason) = prepared {
        let _ = answer.write_all(reason.as_bytes());
        return Ok(super::SUPERVISOR_FAILED);
    }
    answer.write_all(READY.as_bytes()).map_err(|error| format!("cannot answer: {error}"))?;
    if arguments.program.is_empty() {
        for layer in arguments.isolation.iter().flat_map(layers) {
            let line = serde_json::to_string(&layer).map_err(|error| error.to_string())?;
            writeln!(answer, "{line}").map_err(|error| format!("cannot answer: {error}"))?;
        }
        return Ok(0);
    }
    drop(answer);
    let mut exec = Command::new(myself()?);
    exec.arg("__supervise-exec");
    if let Some((uid, gid)) = arguments.owner {
        exec.arg("--owner").arg(format!("{uid}:{gid}"));
    }
    if let Some(isolation) = &arguments.isolation {
        exec.arg("--isolation").arg(isolation.to_argument()?);
    }
    let child = exec.arg("--").args(&arguments.program).spawn();
    let program = pid_of(&child.map_err(|error| format!("cannot start a process: {error}"))?);
    let_go_of_streams(null());
    loop {
        // All processes in the namespace that lose their parent become children of this process.
        if let Ok(status) = waitpid(None, None)
            && status.pid() == Some(program)
            && let Some(code) = code_of(status)
        {
            return Ok(code);
        }
    }
}

/// Prepares the network of an isolated program, while the harness's socket is still visible.
fn prepare_network(isolation: &Isolation) -> Result<Option<UnixStream>, String> {
    if isolation.network == Network::Open {
        return Ok(None);
    }
    loopback::bring_up()?;
    isolation.served.as_ref().map(listeners::hand_over).transpose()
}

/// Mounts a `/proc` with the processes of this namespace.
fn mount_proc() -> Result<(), String> {
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
    mount(Some("proc"), "/proc", Some("proc"), flags, None::<&str>)
        .map_err(|error| format!("cannot mount a separate /proc: {error}"))
}

/// Maps one user and one group into a new user namespace: (inside, outside).
fn map(users: (u32, u32), groups: (u32, u32)) -> Result<(), String> {
    let write = |file: &str, text: String| {
        fs::write(format!("/proc/self/{file}"), text).map_err(|error| format!("{file} is refused: {error}"))
    };
    write("setgroups", "deny".into())?;
    write("uid_map", format!("{} {} 1", users.0, users.1))?;
    write("gid_map", format!("{} {} 1", groups.0, groups.1))
}

fn pid_of(child: &Child) -> Pid {
    Pid::from_raw(child.id().cast_signed())
}
