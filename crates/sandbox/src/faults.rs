//! Faults that affect an agent's processes: programs that fail, files that cannot be changed, a full disk and a wrong
//! clock.
//!
//! A failing program is a script of the same name in a separate folder, which comes first on the agent's `PATH`. The
//! script counts its runs in files next to that folder. An agent that looks for them can change them.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use model::text::shell_quoted;
use model::{FaultAction, FaultKind, FaultOccurrence, FaultReport};

use super::SandboxError;

/// Folder for faults, next to the working directory.
pub(super) const FOLDER: &str = "faults";

/// Libraries that change the clock of programs, in the places where common systems have them.
const CLOCKS: [&str; 6] = [
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib64/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
    "/opt/homebrew/lib/faketime/libfaketimeMT.1.dylib",
];

/// Files that login shells run. Login shells reset `PATH`, so these files must add the folder of the failing programs.
const PROFILES: [&str; 2] = [".profile", ".zprofile"];

/// Maximum number of bytes that are read from a log of runs.
const LARGEST_LOG: u64 = 1 << 20;

/// Returns the library that changes the clock of programs, if it is installed.
pub fn fake_clock() -> Option<PathBuf> {
    CLOCKS.iter().map(PathBuf::from).find(|path| path.is_file())
}

/// Returns the reason why a fault cannot be injected in sandboxes of this kind on this machine, and what is needed.
pub fn fault_refusal(kind: &str, fault: &FaultAction) -> Option<(String, String)> {
    const USE_ISOLATED: &str = "use `isolated` sandboxes: `sandbox: isolated` in the configuration";
    let refusal = |reason: &str, help: &str| Some((reason.to_owned(), help.to_owned()));
    let found = super::find(kind);
    if found.is_some_and(super::SandboxKind::is_remote) {
        let reason = format!("the processes of `{kind}` sandboxes run on another machine");
        return refusal(&reason, USE_ISOLATED);
    }
    let has_own_system = found.is_some_and(super::SandboxKind::has_own_system);
    match fault.kind() {
        FaultKind::ReadOnly if kind == "local" => {
            refusal("a process can change the permissions of files in `local` sandboxes", USE_ISOLATED)
        }
        FaultKind::DiskFull if has_own_system => {
            let reason = format!("the service of `{kind}` may not see file systems that trialrun mounts");
            refusal(&reason, USE_ISOLATED)
        }
        FaultKind::ClockOffset if has_own_system => {
            let reason =
                format!("the image of `{kind}` sandboxes may not be able to load this machine's `libfaketime`");
            refusal(&reason, USE_ISOLATED)
        }
        FaultKind::DiskFull if !can_mount() => refusal(
            "only root can mount a file system of limited size for the working directory",
            "run as root on Linux, with the right to mount file systems (CAP_SYS_ADMIN)",
        ),
        FaultKind::ClockOffset if fake_clock().is_none() => refusal(
            "the library `libfaketime` is not installed",
            "install the package `libfaketime` (Debian, Ubuntu, Fedora, Homebrew)",
        ),
        _ => None,
    }
}

/// Faults of one sandbox.
#[derive(Debug, Default)]
pub(super) struct SandboxFaults {
    /// Folder with the programs that fail, if there are any.
    programs: Option<PathBuf>,
    /// Programs that fail, with the files in which they log their runs.
    logs: Vec<(FaultAction, PathBuf)>,
    /// Faults that last as long as the sandbox.
    lasting: Vec<FaultAction>,
    /// Absolute paths of files and folders that cannot be changed.
    read_only: Vec<PathBuf>,
    /// Variables of the agent's processes.
    env: Vec<(String, String)>,
}

impl SandboxFaults {
    /// Prepares those of `faults` that affect processes, for the sandbox at `base` with these directories.
    ///
    /// # Errors
    /// Returns an error if a path does not exist, or if the system refuses an operation.
    pub(super) fn install(faults: &[FaultAction], base: &Path, work: &Path, home: &Path) -> Result<Self, SandboxError> {
        let mut installed = Self::default();
        for fault in faults {
            match fault {
                FaultAction::ToolFails { .. } => installed.add_program(fault, base, home)?,
                FaultAction::ReadOnly { paths } => {
                    for path in paths {
                        installed.read_only.push(existing(work, path)?);
                    }
                }
                FaultAction::ClockOffset { seconds } => {
                    let library = fake_clock().ok_or_else(|| SandboxError::Fixture {
                        reason: "`clock_offset` needs the library `libfaketime`".to_owned(),
                        source_line: None,
                    })?;
                    installed.env.extend(clock(&library, *seconds));
                }
                FaultAction::DiskFull { free } => limit_space(work, *free)?,
                _ => continue,
            }
            if fault.kind().is_lasting() {
                installed.lasting.push(fault.clone());
            }
        }
        Ok(installed)
    }

    fn add_program(&mut self, fault: &FaultAction, base: &Path, home: &Path) -> Result<(), SandboxError> {
        let FaultAction::ToolFails { command, times, exit_code, stderr } = fault else { return Ok(()) };
        let folder = base.join(FOLDER);
        let (programs, runs) = (folder.join("bin"), folder.join("runs").join(command));
        let failed = |source| SandboxError::io("prepare the fault in", &folder)(source);
        fs::create_dir_all(&programs).and_then(|()| fs::create_dir_all(&runs)).map_err(failed)?;
        let program = programs.join(command);
        fs::write(&program, script(&programs, &runs, command, *times, *exit_code, stderr))
            .and_then(|()| fs::set_permissions(&program, fs::Permissions::from_mode(0o755)))
            .map_err(failed)?;
        for profile in PROFILES.map(|name| home.join(name)) {
            if profile.symlink_metadata().is_err() {
                fs::write(&profile, format!("PATH={}:$PATH\n", shell_quoted(&programs.to_string_lossy())))
                    .map_err(failed)?;
            }
        }
        self.logs.push((fault.clone(), runs.join("log")));
        self.programs = Some(programs);
        Ok(())
    }

    /// Returns the folder that processes must be able to read.
    pub(super) fn readable(&self) -> Option<&Path> {
        self.programs.as_deref()
    }

    /// Returns the folder that processes must be able to write.
    pub(super) fn writable(&self) -> Option<PathBuf> {
        Some(self.programs.as_ref()?.parent()?.join("runs"))
    }

    /// Returns the files and folders that processes must not be able to change.
    pub(super) fn read_only(&self) -> &[PathBuf] {
        &self.read_only
    }

    /// Changes the environment of the agent's processes.
    pub(super) fn apply(&self, env: &mut BTreeMap<String, String>) {
        if let Some(programs) = &self.programs {
            let path = env.get("PATH").map_or_else(String::new, |path| format!(":{path}"));
            env.insert("PATH".to_owned(), format!("{}{path}", programs.display()));
        }
        env.extend(self.env.iter().cloned());
    }

    /// Returns what became of the faults, and each run of a program that failed.
    pub(super) fn reports(&self) -> (Vec<FaultReport>, Vec<FaultOccurrence>) {
        let (mut reports, mut occurrences) = (Vec::new(), Vec::new());
        for (fault, log) in &self.logs {
            let content = files::read(log, LARGEST_LOG).unwrap_or_default();
            let content = String::from_utf8_lossy(&content);
            let lines = || content.lines().zip(1_u64..);
            let hits: Vec<u64> = lines().filter(|(line, _)| *line == "failed").map(|(_, number)| number).collect();
            occurrences.extend(hits.iter().map(|number| FaultOccurrence {
                fault: fault.kind(),
                number: Some(*number),
                detail: fault.describe(),
            }));
            let total = lines().count() as u64;
            reports.push(FaultReport { fault: fault.kind(), detail: fault.describe(), hits, total });
        }
        for fault in &self.lasting {
            let (kind, detail) = (fault.kind(), fault.describe());
            occurrences.push(FaultOccurrence { fault: kind, number: None, detail: detail.clone() });
            reports.push(FaultReport { fault: kind, detail, hits: Vec::new(), total: 0 });
        }
        (reports, occurrences)
    }
}

/// Returns the script that fails a number of times and then runs the real program. It uses only shell builtins, so that
/// it also works for programs such as `mkdir`. Files that are created exclusively count each run once.
fn script(programs: &Path, runs: &Path, command: &str, times: u64, exit_code: u8, stderr: &str) -> String {
    let path = |path: &Path| shell_quoted(&path.to_string_lossy());
    let (own, runs, message) = (path(programs), path(runs), shell_quoted(stderr));
    format!(
        r#"#!/bin/sh
own={own}
runs={runs}
run=1
while [ "$run" -le {times} ]; do
    if (set -C; : > "$runs/$run") 2> /dev/null; then
        echo failed >> "$runs/log"
        message={message}
        [ -z "$message" ] || printf '%s\n' "$message" >&2
        exit {exit_code}
    fi
    [ -e "$runs/$run" ] || break
    run=$((run + 1))
done
echo ran >> "$runs/log"
rest=$PATH:
while [ -n "$rest" ]; do
    folder=${{rest%%:*}}
    rest=${{rest#*:}}
    if [ -n "$folder" ] && [ "$folder" != "$own" ] && [ -f "$folder/{command}" ] && [ -x "$folder/{command}" ]; then
        exec "$folder/{command}" "$@"
    fi
done
echo "{command}: not found" >&2
exit 127
"#
    )
}

/// Returns the path of a file or folder in the working directory, with links resolved.
fn existing(work: &Path, path: &str) -> Result<PathBuf, SandboxError> {
    let wrong =
        |reason: &str| SandboxError::Fixture { reason: format!("`{path}` in `read_only` {reason}"), source_line: None };
    let found = work.join(path).canonicalize().map_err(|_| wrong("does not exist when the agent starts"))?;
    if found.starts_with(work) { Ok(found) } else { Err(wrong("leads out of the working directory")) }
}

/// Returns the variables that make programs see a different time. Clocks that measure durations are not changed.
fn clock(library: &Path, seconds: i64) -> Vec<(String, String)> {
    let preload = if cfg!(target_os = "macos") { "DYLD_INSERT_LIBRARIES" } else { "LD_PRELOAD" };
    [
        (preload, library.to_string_lossy().into_owned()),
        ("FAKETIME", format!("{seconds:+}")),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".to_owned()),
        ("FAKETIME_NO_CACHE", "1".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Returns `true` if this process can mount file systems.
#[cfg(target_os = "linux")]
fn can_mount() -> bool {
    /// Number of the capability for system administration.
    const SYS_ADMIN: u32 = 21;
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = capabilities.and_then(|digits| u64::from_str_radix(digits.trim(), 16).ok());
    nix::unistd::geteuid().is_root() && capabilities.is_some_and(|all| all & (1 << SYS_ADMIN) != 0)
}

#[cfg(not(target_os = "linux"))]
fn can_mount() -> bool {
    false
}

/// Mounts an empty in-memory file system at `work`, which must be empty.
///
/// # Errors
/// Returns an error if the system refuses to mount it.
#[cfg(target_os = "linux")]
pub(super) fn mount(work: &Path) -> Result<(), SandboxError> {
    use nix::mount::MsFlags;
    let flags = MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    nix::mount::mount(Some("tmpfs"), work, Some("tmpfs"), flags, Some("mode=0700"))
        .map_err(|error| SandboxError::io("mount a file system at", work)(io::Error::from(error)))
}

#[cfg(not(target_os = "linux"))]
pub(super) fn mount(work: &Path) -> Result<(), SandboxError> {
    Err(SandboxError::io("mount a file system at", work)(io::Error::from(io::ErrorKind::Unsupported)))
}

/// Limits the in-memory file system at `work` to its current content plus `free` bytes.
#[cfg(target_os = "linux")]
fn limit_space(work: &Path, free: u64) -> Result<(), SandboxError> {
    use nix::mount::MsFlags;
    let failed = |error: nix::Error| SandboxError::io("limit the space of", work)(io::Error::from(error));
    let disk = nix::sys::statvfs::statvfs(work).map_err(failed)?;
    let used = disk.blocks().saturating_sub(disk.blocks_free()).saturating_mul(disk.fragment_size());
    // A size of zero means no limit.
    let size = used.saturating_add(free).max(disk.fragment_size());
    let flags = MsFlags::MS_REMOUNT | MsFlags::MS_NOSUID | MsFlags::MS_NODEV;
    nix::mount::mount(None::<&str>, work, None::<&str>, flags, Some(format!("size={size}").as_str())).map_err(failed)
}

#[cfg(not(target_os = "linux"))]
fn limit_space(work: &Path, _free: u64) -> Result<(), SandboxError> {
    mount(work)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn tool(command: &str, times: u64) -> FaultAction {
        FaultAction::ToolFails { command: command.into(), times, exit_code: 7, stderr: "it's \"down\"".into() }
    }

    fn installed(faults: &[FaultAction]) -> (tempfile::TempDir, SandboxFaults) {
        let base = tempfile::tempdir().unwrap();
        let (work, home) = (base.path().join("work"), base.path().join("home"));
        fs::create_dir(&work).unwrap();
        fs::create_dir(&home).unwrap();
        let faults = SandboxFaults::install(faults, base.path(), &work, &home).unwrap();
        (base, faults)
    }

    fn run(faults: &SandboxFaults, line: &str) -> (Option<i32>, String, String) {
        let mut env: BTreeMap<String, String> = [("PATH".to_owned(), "/usr/bin:/bin".to_owned())].into();
        faults.apply(&mut env);
        let output = Command::new("/bin/sh").args(["-c", line]).env_clear().envs(env).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim_end().to_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    }

    #[test]
    fn a_program_fails_a_number_of_times_and_then_runs() {
        let (_base, faults) = installed(&[tool("env", 2), tool("mkdir", 1)]);
        let failure = (Some(7), String::new(), "it's \"down\"".to_owned());
        assert_eq!(run(&faults, "env X=1 sh -c 'echo $X'"), failure);
        assert_eq!(run(&faults, "env"), failure);
        assert_eq!(run(&faults, "env X='a  b' sh -c 'echo \"$X\"'"), (Some(0), "a  b".to_owned(), String::new()));
        assert_eq!(run(&faults, "mkdir /"), failure);
        let (reports, occurrences) = faults.reports();
        assert_eq!((reports[0].hits.as_slice(), reports[0].total), (&[1, 2][..], 3));
        assert_eq!((reports[1].hits.as_slice(), reports[1].total), (&[1][..], 1));
        assert_eq!(occurrences.len(), 3);
        assert_eq!(occurrences[0].describe(), "run 1: `env` fails with exit code 7");
    }

    #[test]
    fn parallel_runs_count_once_each() {
        let (_base, faults) = installed(&[tool("env", 3)]);
        run(&faults, "for i in 1 2 3 4 5 6; do env > /dev/null & done; wait");
        let (reports, _) = faults.reports();
        assert_eq!((reports[0].hits.len(), reports[0].total), (3, 6));
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_found() {
        let (_base, faults) = installed(&[tool("no-such-program", 1)]);
        assert_eq!(run(&faults, "no-such-program").0, Some(7));
        assert_eq!(
            run(&faults, "no-such-program"),
            (Some(127), String::new(), "no-such-program: not found".to_owned())
        );
    }

    #[test]
    fn a_login_shell_finds_the_program_that_fails() {
        let (base, faults) = installed(&[tool("env", 1)]);
        let home = base.path().join("home");
        let output = Command::new("/bin/sh").args(["-lc", "env"]).env("HOME", home).output().unwrap();
        assert_eq!(output.status.code(), Some(7));
        assert_eq!(faults.reports().0[0].total, 1);
    }

    #[test]
    fn read_only_paths_must_exist() {
        let base = tempfile::tempdir().unwrap();
        let install = |path: &str| {
            let fault = FaultAction::ReadOnly { paths: vec![path.to_owned()] };
            SandboxFaults::install(&[fault], base.path(), base.path(), base.path())
                .map(|_| ())
                .map_err(|e| e.to_string())
        };
        assert_eq!(install("docs").unwrap_err(), "`docs` in `read_only` does not exist when the agent starts");
        std::os::unix::fs::symlink("/etc", base.path().join("link")).unwrap();
        assert_eq!(install("link").unwrap_err(), "`link` in `read_only` leads out of the working directory");
    }
}
