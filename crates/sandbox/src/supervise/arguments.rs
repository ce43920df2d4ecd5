//! Command-line arguments that the hidden roles pass to each other.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::RawFd;
use std::path::PathBuf;
use std::time::Duration;

use super::container::ContainerProcess;
use super::isolation::{Isolation, ServedPorts};

/// Arguments of a role: settings, then `--`, then the program and its arguments.
#[derive(Debug, Default)]
pub(super) struct Arguments {
    /// `--lifeline FD`: the inherited read end of the lifeline.
    pub(super) lifeline: Option<RawFd>,
    /// `--grace-ms N`: grace period between SIGTERM and SIGKILL; unlimited if absent.
    pub(super) grace: Option<Duration>,
    /// `--floor`: do not use a namespace.
    pub(super) floor: bool,
    /// `--answer FD`: descriptor on which to report whether the namespace could be created.
    pub(super) answer: Option<RawFd>,
    /// `--parent PID`: process that must be alive, otherwise this process ends.
    pub(super) parent: Option<i32>,
    /// `--owner UID:GID`: user and group to switch back to inside a user namespace where this process is root.
    pub(super) owner: Option<(u32, u32)>,
    /// `--bind FROM TO`, repeatable: the program finds the content of `FROM` at `TO`.
    pub(super) binds: Vec<(PathBuf, PathBuf)>,
    /// `--isolation JSON`: surroundings of the program.
    pub(super) isolation: Option<Isolation>,
    /// `--container JSON`: container in which the program runs.
    pub(super) container: Option<ContainerProcess>,
    /// `--served JSON`: ports to open for the harness.
    pub(super) served: Option<ServedPorts>,
    /// `--at-end ROLE`: role in which this binary is started again if the program must be killed.
    pub(super) at_end: Option<String>,
    /// The program and its arguments.
    pub(super) program: Vec<OsString>,
}

impl Arguments {
    pub(super) fn parse(args: impl Iterator<Item = OsString>) -> Result<Self, String> {
        let mut arguments = Self::default();
        let mut args = args;
        while let Some(argument) = args.next() {
            let Some(name) = argument.to_str() else { return Err("an unreadable argument".into()) };
            if name == "--" {
                arguments.program = args.collect();
                return Ok(arguments);
            }
            if name == "--floor" {
                arguments.floor = true;
                continue;
            }
            if name == "--bind" {
                let (Some(from), Some(to)) = (args.next(), args.next()) else {
                    return Err("--bind needs two values".into());
                };
                arguments.binds.push((from.into(), to.into()));
                continue;
            }
            let value = args.next().and_then(|value| value.into_string().ok());
            let value = value.ok_or_else(|| format!("{name} needs a value"))?;
            let wrong = || format!("{name} cannot be {value:?}");
            match name {
                "--lifeline" => arguments.lifeline = Some(value.parse().map_err(|_| wrong())?),
                "--grace-ms" => arguments.grace = Some(Duration::from_millis(value.parse().map_err(|_| wrong())?)),
                "--answer" => arguments.answer = Some(value.parse().map_err(|_| wrong())?),
                "--isolation" => arguments.isolation = Some(serde_json::from_str(&value).map_err(|_| wrong())?),
                "--at-end" => arguments.at_end = Some(value),
                "--container" => arguments.container = Some(serde_json::from_str(&value).map_err(|_| wrong())?),
                "--served" => arguments.served = Some(serde_json::from_str(&value).map_err(|_| wrong())?),
                "--parent" => arguments.parent = Some(value.parse().map_err(|_| wrong())?),
                "--owner" => {
                    let (uid, gid) = value.split_once(':').ok_or_else(wrong)?;
                    arguments.owner = Some((uid.parse().map_err(|_| wrong())?, gid.parse().map_err(|_| wrong())?));
                }
                _ => return Err(format!("no such argument: {name}")),
            }
        }
        Ok(arguments)
    }
}

/// Takes over an inherited pipe end in such a way that no child inherits it in turn. The pipe is opened again through
/// its descriptor's path, close-on-exec, and the inherited descriptor is closed.
pub(super) fn take_over(fd: RawFd, write: bool) -> Result<File, String> {
    let path = PathBuf::from(if cfg!(target_os = "linux") { "/proc/self/fd" } else { "/dev/fd" }).join(fd.to_string());
    let file = File::options()
        .read(!write)
        .write(write)
        .open(&path)
        .map_err(|error| format!("cannot take over descriptor {fd}: {error}"))?;
    nix::unistd::close(fd).map_err(|error| format!("cannot close descriptor {fd}: {error}"))?;
    Ok(file)
}

/// Returns the path of this binary, to start it in another role.
pub(super) fn myself() -> Result<PathBuf, String> {
    if cfg!(target_os = "linux") {
        // Works even if the file was replaced or is in a directory that this user cannot read.
        return Ok("/proc/self/exe".into());
    }
    std::env::current_exe().map_err(|error| format!("cannot find its own binary: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Arguments, String> {
        Arguments::parse(text.split(' ').map(OsString::from))
    }

    #[test]
    fn everything_after_the_dashes_belongs_to_the_program() {
        let arguments = parse("--floor --grace-ms 250 --lifeline 9 -- sh --floor -- x").unwrap();
        assert_eq!(arguments.program, ["sh", "--floor", "--", "x"]);
        assert!(arguments.floor);
        assert_eq!(arguments.grace, Some(Duration::from_millis(250)));
        assert_eq!(arguments.lifeline, Some(9));
    }

    #[test]
    fn an_error_about_an_unknown_or_invalid_argument_includes_its_name() {
        assert_eq!(parse("--wat 1").unwrap_err(), "no such argument: --wat");
        assert_eq!(parse("--lifeline x").unwrap_err(), "--lifeline cannot be \"x\"");
        assert_eq!(parse("--owner 12").unwrap_err(), "--owner cannot be \"12\"");
        assert_eq!(parse("--grace-ms").unwrap_err(), "--grace-ms needs a value");
        assert_eq!(parse("--bind /a").unwrap_err(), "--bind needs two values");
    }

    #[test]
    fn bind_paths_come_in_pairs() {
        let arguments = parse("--bind /a /b --bind /c /d -- sh").unwrap();
        assert_eq!(arguments.binds, [("/a".into(), "/b".into()), ("/c".into(), "/d".into())]);
    }
}
