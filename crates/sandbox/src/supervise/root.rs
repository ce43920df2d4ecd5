//! An isolated program's file system: a new root in memory, on which the visible parts of the machine are mounted.
//! Everything is read-only, except for the folders to which the program may write.

use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Component, Path, PathBuf};

use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sys::statvfs::FsFlags;
use nix::unistd::pivot_root;

use super::isolation::Isolation;

/// Folder on which the new root is mounted first. It exists on every system, and the mount is moved away at once.
const STAGE: &str = "/usr";

/// Location of the old root while the new one is built.
const OLD: &str = "/.old";

/// The machine's devices that every program may use.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Links in `/dev`.
const DEVICE_LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// Parts of `/proc` that control the kernel. They belong to the machine's user 0, which may be running this.
const CONTROLS: [&str; 6] = ["sys", "sysrq-trigger", "irq", "bus", "fs", "acpi"];

/// Parts of `/proc` that show the machine.
const VIEWS: [&str; 8] =
    ["kcore", "keys", "key-users", "latency_stats", "timer_list", "sched_debug", "scsi", "kallsyms"];

/// Flags for mounts that contain no devices and nothing that runs with elevated rights.
const PLAIN: MsFlags = MsFlags::MS_NOSUID.union(MsFlags::MS_NODEV);

/// Makes the described file system the root of this process, which is the first one of its PID namespace and has all
/// capabilities in the user namespace of its mounts. Returns with the same working directory.
///
/// # Errors
/// Returns the first step that the machine refuses.
pub(super) fn enter(isolation: &Isolation) -> Result<(), String> {
    let here = std::env::current_dir().map_err(|error| format!("the working directory is gone: {error}"))?;
    stage()?;
    for path in &isolation.readable {
        show(path)?;
    }
    for path in &isolation.hidden {
        hide(path)?;
    }
    for (from, to) in &isolation.writable {
        make_place(to, true)?;
        bind(&old(from), to)?;
    }
    for path in &isolation.read_only {
        bind(path, path)?;
    }
    // A program may be in a folder below `/tmp`, which is writable.
    for path in &isolation.tools {
        show(path)?;
    }
    make_devices()?;
    make_proc(isolation.limits.processes)?;
    let _ = fs::create_dir("/var").and_then(|()| symlink("/tmp", "/var/tmp"));
    umount2(OLD, MntFlags::MNT_DETACH).map_err(|error| format!("the old root cannot be left: {error}"))?;
    fs::remove_dir(OLD).map_err(|error| format!("the old root cannot be left: {error}"))?;
    let is_writable = |path: &Path| isolation.writable.iter().any(|(_, to)| to == path);
    protect(is_writable)?;
    std::env::set_current_dir(&here).map_err(|error| format!("{} cannot be entered: {error}", here.display()))
}

/// Makes an empty file system in memory the root. The old one stays accessible below [`OLD`].
fn stage() -> Result<(), String> {
    let refused = |error| format!("a new root is refused: {error}");
    let options = Some("size=4m,mode=0755");
    mount(Some("tmpfs"), STAGE, Some("tmpfs"), PLAIN, options).map_err(refused)?;
    let old = format!("{STAGE}{OLD}");
    fs::create_dir(&old).map_err(|error| format!("a new root cannot be written: {error}"))?;
    pivot_root(STAGE, old.as_str()).map_err(refused)?;
    std::env::set_current_dir("/").map_err(|error| format!("a new root cannot be entered: {error}"))
}

/// Returns the location of one of the machine's paths below the old root.
fn old(path: &Path) -> PathBuf {
    let below: PathBuf = path.components().filter(|part| matches!(part, Component::Normal(_))).collect();
    Path::new(OLD).join(below)
}

/// Shows a file or folder at its own path. One that does not exist is omitted.
fn show(path: &Path) -> Result<(), String> {
    let from = old(path);
    let Ok(meta) = from.symlink_metadata() else { return Ok(()) };
    if meta.is_symlink() {
        if path.symlink_metadata().is_err() {
            let target = fs::read_link(&from).map_err(|error| failed("read the link", path, &error))?;
            path.parent().map_or(Ok(()), make_folder)?;
            symlink(target, path).map_err(|error| failed("make the link", path, &error))?;
        }
        return Ok(());
    }
    make_place(path, meta.is_dir())?;
    bind(&from, path)
}

/// Makes a file or folder appear empty.
fn hide(path: &Path) -> Result<(), String> {
    let Ok(meta) = path.symlink_metadata() else { return Ok(()) };
    if meta.is_dir() {
        return mount(Some("tmpfs"), path, Some("tmpfs"), PLAIN, Some("size=1m,mode=0755"))
            .map_err(|error| refused(path, error));
    }
    bind(&old(Path::new("/dev/null")), path)
}

fn bind(from: &Path, to: &Path) -> Result<(), String> {
    mount(Some(from), to, None::<&str>, MsFlags::MS_BIND | MsFlags::MS_REC, None::<&str>)
        .map_err(|error| refused(to, error))
}

fn refused(path: &Path, error: nix::Error) -> String {
    format!("a mount at {} is refused: {error}", path.display())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> String {
    format!("cannot {what} {}: {error}", path.display())
}

/// Creates the folder or the file on which something is mounted, unless it exists.
fn make_place(path: &Path, is_folder: bool) -> Result<(), String> {
    if path.exists() {
        return Ok(());
    }
    if is_folder {
        return make_folder(path);
    }
    path.parent().map_or(Ok(()), make_folder)?;
    fs::write(path, "").map_err(|error| failed("make the file", path, &error))
}

fn make_folder(path: &Path) -> Result<(), String> {
    let made = fs::DirBuilder::new().recursive(true).mode(0o755).create(path);
    made.map_err(|error| failed("make the folder", path, &error))
}

fn make_devices() -> Result<(), String> {
    let dev = Path::new("/dev");
    for name in DEVICES {
        let device = dev.join(name);
        if old(&device).exists() {
            make_place(&device, false)?;
            bind(&old(&device), &device)?;
        }
    }
    for (name, target) in DEVICE_LINKS {
        symlink(target, dev.join(name)).map_err(|error| failed("make the link", &dev.join(name), &error))?;
    }
    let flags = PLAIN | MsFlags::MS_NOEXEC;
    for (name, kind, options) in
        [("shm", "tmpfs", "size=512m,mode=1777"), ("pts", "devpts", "newinstance,ptmxmode=0666,mode=0620")]
    {
        let place = dev.join(name);
        make_folder(&place)?;
        // Few programs need them, and some containers refuse them.
        let _ = mount(Some(kind), &place, Some(kind), flags, Some(options));
    }
    Ok(())
}

/// Mounts a `/proc` with the processes of this namespace, through which nothing on the machine can be changed.
fn make_proc(processes: u64) -> Result<(), String> {
    let proc = Path::new("/proc");
    make_folder(proc)?;
    let flags = PLAIN | MsFlags::MS_NOEXEC;
    mount(Some("proc"), proc, Some("proc"), flags, None::<&str>)
        .map_err(|error| format!("cannot mount a separate /proc: {error}"))?;
    if has_own_pid_limit() {
        // If the machine refuses it, the user's limit applies instead.
        let _ = fs::write(proc.join("sys/kernel/pid_max"), processes.max(512).to_string());
    }
    for name in CONTROLS {
        let place = proc.join(name);
        if place.exists() {
            bind(&place, &place)?;
        }
    }
    for name in VIEWS {
        hide(&proc.join(name))?;
    }
    Ok(())
}

/// Describes how the limits are enforced. The system does not limit the number of processes of user 0, so the limit on
/// ids in its namespace must do it.
pub(super) fn process_limit() -> String {
    match nix::unistd::getuid().is_root() && !has_own_pid_limit() {
        true => "resource limits; the number of processes is not limited for root before Linux 6.14".to_owned(),
        false => "resource limits".to_owned(),
    }
}

/// Returns `true` if the largest process id belongs to the namespace (since Linux 6.14). Before that, it belonged to
/// the machine, and user 0 could change it.
fn has_own_pid_limit() -> bool {
    let Ok(system) = nix::sys::utsname::uname().map(|names| names.release().to_string_lossy().into_owned()) else {
        return false;
    };
    let mut numbers = system.split(|c: char| !c.is_ascii_digit()).map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (6, 14)
}

/// Makes every mount read-only that is not writable by design.
fn protect(is_writable: impl Fn(&Path) -> bool) -> Result<(), String> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(|error| format!("cannot list mounts: {error}"))?;
    let stays = ["/proc", "/dev/shm", "/dev/pts"].map(Path::new);
    for (place, flags) in mounts.lines().filter_map(mount_in) {
        let read_only =
            if is_writable(&place) || stays.contains(&&*place) { MsFlags::empty() } else { MsFlags::MS_RDONLY };
        // Devices below `/dev` must stay usable, so only mounts of devices keep them.
        let devices = if place.parent() == Some(Path::new("/dev")) { MsFlags::empty() } else { MsFlags::MS_NODEV };
        let flags = flags | read_only | devices | MsFlags::MS_NOSUID | MsFlags::MS_REMOUNT | MsFlags::MS_BIND;
        let done = mount(None::<&str>, &place, None::<&str>, flags, None::<&str>);
        // A mount below another one cannot be reached, so it needs no protection.
        let is_harmless = || read_only.is_empty() || !place.exists() || is_read_only(&place);
        if let Err(error) = done
            && !is_harmless()
        {
            return Err(format!("{} cannot be protected: {error}", place.display()));
        }
    }
    Ok(())
}

fn is_read_only(place: &Path) -> bool {
    nix::sys::statvfs::statvfs(place).is_ok_and(|found| found.flags().contains(FsFlags::ST_RDONLY))
}

/// Returns the location and the flags of a mount from its line in `mountinfo`. Flags set by the machine must be kept.
fn mount_in(line: &str) -> Option<(PathBuf, MsFlags)> {
    let mut fields = line.split(' ').skip(4);
    let (place, options) = (fields.next()?, fields.next()?);
    let flags = options.split(',').map(|option| match option {
        "ro" => MsFlags::MS_RDONLY,
        "nosuid" => MsFlags::MS_NOSUID,
        "nodev" => MsFlags::MS_NODEV,
        "noexec" => MsFlags::MS_NOEXEC,
        "noatime" => MsFlags::MS_NOATIME,
        "nodiratime" => MsFlags::MS_NODIRATIME,
        "relatime" => MsFlags::MS_RELATIME,
        _ => MsFlags::empty(),
    });
    Some((unescaped(place), flags.fold(MsFlags::empty(), MsFlags::union)))
}

/// Replaces `\040` and similar escapes with the character.
fn unescaped(text: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, others)) = rest.split_first() {
        let code = others.get(..3).filter(|_| *first == b'\\').and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(*first);
                rest = others;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_gives_location_and_flags() {
        let line = r"36 35 98:0 /mnt1 /mnt\040two\134 ro,nosuid,noatime shared:1 - ext4 /dev/root rw,errors=continue";
        let flags = MsFlags::MS_RDONLY | MsFlags::MS_NOSUID | MsFlags::MS_NOATIME;
        assert_eq!(mount_in(line), Some((r"/mnt two\".into(), flags)));
        assert_eq!(mount_in("36 35 98:0"), None);
    }

    #[test]
    fn a_path_of_the_machine_is_below_the_old_root() {
        assert_eq!(old(Path::new("/usr/../lib/./x")), Path::new("/.old/usr/lib/x"));
    }
}
