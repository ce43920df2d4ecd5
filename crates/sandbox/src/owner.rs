//! A sandbox's directory, and the file that identifies its owner.

use std::fs::{self, DirBuilder, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::registry::{Entry, Registry};
use super::{SandboxError, removal};

/// Prefix of the names of all directories of this program.
pub(super) const PREFIX: &str = "trialrun-";

/// Name of the file in the directory that identifies the owner. The owner holds a lock on it as long as the directory
/// is in use.
pub(super) const OWNER: &str = "owner";

/// Purpose of a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// One trial's sandbox.
    Sandbox,
    /// Templates from which a run's sandboxes are copied.
    Templates,
}

impl Purpose {
    const ALL: [(&'static str, Self); 2] = [("sandbox", Self::Sandbox), ("templates", Self::Templates)];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, purpose)| *purpose == self).map_or("sandbox", |(name, _)| name)
    }
}

/// A directory that belongs to this program: entered in the registry, marked and locked. Dropping it removes it,
/// unless it is to be kept.
#[derive(Debug)]
pub(super) struct Base {
    path: PathBuf,
    owner: File,
    keep: bool,
    _entry: Entry,
}

impl Base {
    /// Creates `<root>/trialrun-<name>-<pid>-<random>/`, accessible only to the user. `root` must have its links
    /// resolved.
    pub(super) fn make(
        root: &Path,
        name: &str,
        purpose: Purpose,
        keep: bool,
        registry: &Arc<Registry>,
    ) -> Result<Self, SandboxError> {
        let pid = std::process::id();
        loop {
            let random = uuid::Uuid::now_v7().as_u128() & 0xff_ffff_ffff;
            let path = root.join(format!("{PREFIX}{name}-{pid}-{random:010x}"));
            let entry = registry.enter(&path, keep)?;
            match DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::AlreadyExists => continue,
                Err(source) => return Err(SandboxError::io("make the directory", &path)(source)),
            }
            let marked = owner_file(&path, pid, purpose, keep).map_err(SandboxError::io("mark the directory", &path));
            match marked {
                Ok(owner) => return Ok(Self { path, owner, keep, _entry: entry }),
                Err(error) => {
                    let _ = removal::remove(&path);
                    return Err(error);
                }
            }
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns a time on the file system's own clock that is not before any earlier write.
    pub(super) fn moment(&self) -> io::Result<(i64, i64)> {
        use std::os::unix::fs::MetadataExt;
        self.owner.set_modified(std::time::SystemTime::now())?;
        let meta = self.owner.metadata()?;
        Ok((meta.ctime(), meta.ctime_nsec()))
    }

    /// Removes the directory now and returns the result.
    pub(super) fn remove(mut self) -> io::Result<()> {
        if self.keep {
            return Ok(());
        }
        // Prevents `drop` from trying again.
        self.keep = true;
        removal::remove(&self.path)
    }
}

impl Drop for Base {
    fn drop(&mut self) {
        // A process that another thread is starting has a copy of the open file, and with it the lock.
        let _ = self.owner.unlock();
        if !self.keep {
            let _ = removal::remove(&self.path);
        }
    }
}

fn owner_file(base: &Path, pid: u32, purpose: Purpose, keep: bool) -> io::Result<File> {
    let mut owner = File::options().read(true).write(true).create_new(true).mode(0o600).open(base.join(OWNER))?;
    owner.lock()?;
    let born = birth(pid).unwrap_or(0);
    let kept = if keep { "kept yes\n" } else { "" };
    owner.write_all(format!("pid {pid}\nborn {born}\nfor {}\n{kept}", purpose.name()).as_bytes())?;
    Ok(owner)
}

/// Content of an owner file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OwnerFile {
    pub(super) pid: Option<u32>,
    pub(super) purpose: Purpose,
    pub(super) live: bool,
    /// True if the user asked to keep it.
    pub(super) kept: bool,
}

/// Returns the owner of `base` and whether it is in use: its lock is held, or the process that created it is alive.
/// The process also counts if the owner file is missing, because the file is created shortly after the directory.
pub(super) fn read(base: &Path) -> OwnerFile {
    let named = base.file_name().and_then(|name| pid_in(&name.to_string_lossy()));
    let live = named.is_some_and(|pid| birth(pid).is_some());
    let mut owner_file = OwnerFile { pid: named, purpose: Purpose::Sandbox, live, kept: false };
    let Ok(file) = files::open(&base.join(OWNER)) else { return owner_file };
    let mut text = String::new();
    // An agent may have replaced the file; a valid one fits into a few bytes.
    let _ = (&file).take(1000).read_to_string(&mut text);
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    let written = field("pid").and_then(|pid| pid.parse().ok());
    if let (Some(pid), Some(born)) = (written, field("born").and_then(|born| born.parse::<u64>().ok())) {
        owner_file.pid = Some(pid);
        owner_file.live = birth(pid) == Some(born);
    }
    if let Some((_, purpose)) = Purpose::ALL.iter().find(|(name, _)| field("for") == Some(name)) {
        owner_file.purpose = *purpose;
    }
    owner_file.kept = field("kept") == Some("yes");
    match file.try_lock() {
        // A process that another thread is starting holds a copy of the file for a moment, and closing the file here
        // would not release its lock.
        Ok(()) => drop(file.unlock()),
        Err(TryLockError::WouldBlock) => owner_file.live = true,
        Err(TryLockError::Error(_)) => {}
    }
    owner_file
}

/// Returns the process id in a directory's name.
fn pid_in(name: &str) -> Option<u32> {
    let (rest, random) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    let (_, pid) = rest.rsplit_once('-')?;
    let random = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    random.then(|| pid.parse().ok()).flatten()
}

/// Returns a text that identifies this process, even on other machines, and after its id was reused.
pub fn mark() -> String {
    let pid = std::process::id();
    format!("{pid}:{}:{}", birth(pid).unwrap_or(0), scope())
}

/// Returns `true` if the process with this mark has ended. Returns `false` if it is alive, or if it belongs to another
/// machine or PID namespace.
pub fn has_ended(mark: &str) -> bool {
    let mut parts = mark.split(':');
    let (pid, born) = (parts.next().and_then(|pid| pid.parse().ok()), parts.next().and_then(|born| born.parse().ok()));
    let (Some(pid), Some(born)) = (pid, born) else { return false };
    parts.next() == Some(&*scope()) && birth(pid) != Some::<u64>(born)
}

/// Returns a text that is the same for all processes that share process ids. It identifies the boot of this system and
/// the PID namespace.
fn scope() -> String {
    let system = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let namespace = fs::read_link("/proc/self/ns/pid").map(|link| link.to_string_lossy().into_owned());
    let system = if system.is_empty() { host_name() } else { system };
    let digest = crate::digest::short(format!("{system}{}", namespace.unwrap_or_default()).as_bytes());
    digest[..12].to_owned()
}

/// Returns the name of this machine; empty if it has none.
pub fn host_name() -> String {
    nix::sys::utsname::uname().map_or_else(|_| String::new(), |names| names.nodename().to_string_lossy().into_owned())
}

/// Returns the start time of a living process on the kernel's own scale. A later process with the same id has a
/// different start time.
#[cfg(target_os = "linux")]
fn birth(pid: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(stat.get(name_end + 1..)?).ok()?.split_ascii_whitespace();
    // A zombie no longer uses anything.
    let alive = !matches!(fields.next()?, "Z" | "X");
    alive.then(|| fields.nth(18)?.parse().ok()).flatten()
}

#[cfg(not(target_os = "linux"))]
fn birth(pid: u32) -> Option<u64> {
    let pid = nix::unistd::Pid::from_raw(i32::try_from(pid).ok()?);
    (nix::sys::signal::kill(pid, None) != Err(nix::errno::Errno::ESRCH)).then_some(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_name_is_ours_only_with_a_pid_and_a_random_part() {
        assert_eq!(pid_in("trialrun-a-b-12-00ff"), Some(12));
        assert_eq!(pid_in("trialrun--12-00ff"), Some(12));
        for other in ["trialrun-12", "trialrun-a-b-c", "trialrun-a-12-xyz", "other-a-12-00ff", "trialrun-a-12-"] {
            assert_eq!(pid_in(other), None, "{other}");
        }
    }

    #[test]
    fn a_directory_in_use_is_private_marked_and_locked_until_dropped() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let registry = Registry::new();
        let base = Base::make(root.path(), "mine", Purpose::Templates, false, &registry).unwrap();
        let path = base.path().to_owned();
        assert!(path.file_name().unwrap().to_str().unwrap().starts_with("trialrun-mine-"));
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(registry.directories(), std::slice::from_ref(&path));
        let owner_file =
            OwnerFile { pid: Some(std::process::id()), purpose: Purpose::Templates, live: true, kept: false };
        assert_eq!(read(&path), owner_file);
        drop(base);
        assert!(!path.exists());
        assert!(registry.directories().is_empty());
    }

    #[test]
    fn a_later_process_with_the_same_id_is_not_the_owner() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("trialrun-x-1-00ff");
        fs::create_dir(&base).unwrap();
        let me = std::process::id();
        fs::write(base.join(OWNER), format!("pid {me}\nborn 1\nfor sandbox\n")).unwrap();
        assert!(!read(&base).live);
        let born = birth(me).unwrap();
        fs::write(base.join(OWNER), format!("pid {me}\nborn {born}\nfor sandbox\n")).unwrap();
        assert!(read(&base).live);
    }

    #[test]
    fn a_process_has_ended_only_if_its_id_means_something_here() {
        assert!(!has_ended(&mark()));
        let gone = format!("1:1:{}", scope());
        assert!(has_ended(&gone));
        for unknown in ["1:1:elsewhere", "1:1", "x", ""] {
            assert!(!has_ended(unknown), "{unknown}");
        }
    }

    #[test]
    fn an_owner_file_that_is_a_pipe_does_not_block() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("trialrun-x-1-00ff");
        fs::create_dir(&base).unwrap();
        nix::unistd::mkfifo(&base.join(OWNER), nix::sys::stat::Mode::S_IRWXU).unwrap();
        assert_eq!(read(&base).pid, Some(1));
    }

    #[test]
    fn a_held_lock_means_in_use_whatever_the_owner_file_says() {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().join("trialrun-x-1-00ff");
        fs::create_dir(&base).unwrap();
        fs::write(base.join(OWNER), "pid 1\nborn 1\n").unwrap();
        assert!(!read(&base).live);
        let held = File::open(base.join(OWNER)).unwrap();
        held.lock().unwrap();
        assert!(read(&base).live);
    }
}
