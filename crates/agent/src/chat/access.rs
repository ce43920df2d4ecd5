//! File access for an agent's tools. They run inside the harness, with the user's own permissions, so they may read
//! and write only in the sandbox's own directories. Links that lead outside are refused.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use nix::fcntl::OFlag;
use sandbox::Sandbox;

use crate::resolve::Resolver;

/// Maximum size of a file that is read as a whole, in bytes.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;

/// Directories that an agent's file tools may use.
#[derive(Debug, Clone)]
pub(crate) struct FileAccess {
    work: PathBuf,
    /// The accessible directories, the working directory first.
    roots: Vec<PathBuf>,
    /// Files and folders that cannot be changed because of a fault.
    read_only: Vec<PathBuf>,
    resolver: Resolver,
}

impl FileAccess {
    /// Allows the directories of `sandbox`: the working directory, the home and the directory for temporary files.
    pub(crate) fn for_sandbox(sandbox: &dyn Sandbox) -> Self {
        let access = Self::new(sandbox.work(), sandbox.home(), sandbox.tmp());
        Self { read_only: sandbox.read_only(), ..access }
    }

    /// Allows these directories.
    pub(crate) fn new(work: &Path, home: &Path, tmp: &Path) -> Self {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let work = real(work);
        let roots = vec![work.clone(), real(home), real(tmp)];
        let resolver = Resolver { work: Some(work.clone()), home: Some(real(home)) };
        Self { work, roots, read_only: Vec::new(), resolver }
    }

    /// Returns the agent's working directory.
    pub(crate) fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the absolute path for `written`, the path as the agent wrote it, with links resolved.
    ///
    /// # Errors
    /// Returns a message for the agent if the path is outside the allowed directories.
    pub(crate) fn locate(&self, written: &str) -> Result<PathBuf, String> {
        let path = self.resolver.resolve(written).unwrap_or_default();
        if self.roots.iter().any(|root| path.starts_with(root)) {
            return Ok(path);
        }
        Err(format!(
            "{written} is outside the sandbox. Only the working directory, the home directory and the directory for \
             temporary files can be used."
        ))
    }

    /// Returns `path` as an agent would write it: relative to the working directory if it is inside it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        match path.strip_prefix(&self.work) {
            Ok(relative) if relative.as_os_str().is_empty() => ".".to_owned(),
            Ok(relative) => relative.to_string_lossy().into_owned(),
            Err(_) => path.to_string_lossy().into_owned(),
        }
    }

    /// Reads the file that the agent calls `written`.
    pub(crate) fn read(&self, written: &str) -> Result<Vec<u8>, String> {
        let path = self.locate(written)?;
        read_file(&path).map_err(|error| format!("{written} {error}"))
    }

    /// Writes the file that the agent calls `written`. Missing directories are created; an existing file keeps its
    /// mode. Returns `true` if the file is new.
    pub(crate) fn write(&self, written: &str, content: &[u8]) -> Result<bool, String> {
        let path = self.locate(written)?;
        let failed = |error: std::io::Error| format!("{written} cannot be written: {error}");
        if self.read_only.iter().any(|folder| path.starts_with(folder)) {
            return Err(failed(std::io::Error::from(nix::errno::Errno::EROFS)));
        }
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        let is_new = path.symlink_metadata().is_err();
        let mut file =
            open(&path, OpenOptions::new().write(true).create(true)).map_err(|error| format!("{written} {error}"))?;
        file.set_len(0).and_then(|()| file.write_all(content)).map_err(failed)?;
        Ok(is_new)
    }
}

/// Reads a file in an allowed directory.
///
/// # Errors
/// Returns a message to be appended to the file's name.
pub(crate) fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    files::read(path, MAX_FILE_BYTES).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        ErrorKind::FileTooLarge => format!("is too large to be read ({} MiB at most)", MAX_FILE_BYTES / 1024 / 1024),
        ErrorKind::InvalidInput if path.is_dir() => "is a directory".to_owned(),
        ErrorKind::InvalidInput => "is not a regular file".to_owned(),
        _ => format!("cannot be read: {error}"),
    })
}

/// Opens a regular file for writing. If a link has replaced it in the meantime, the link is not followed; opening a
/// pipe does not block.
fn open(path: &Path, options: &mut OpenOptions) -> Result<File, String> {
    let flags = (OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK | OFlag::O_CLOEXEC).bits();
    let file = options.custom_flags(flags).open(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => "does not exist".to_owned(),
        ErrorKind::IsADirectory => "is a directory".to_owned(),
        _ => format!("cannot be opened: {error}"),
    })?;
    match file.metadata() {
        Ok(meta) if meta.is_file() => Ok(file),
        Ok(meta) if meta.is_dir() => Err("is a directory".to_owned()),
        Ok(_) => Err("is not a regular file".to_owned()),
        Err(error) => Err(format!("cannot be opened: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn sandbox() -> (tempfile::TempDir, FileAccess) {
        let dir = tempfile::tempdir().unwrap();
        for name in ["work", "home", "tmp", "elsewhere"] {
            std::fs::create_dir(dir.path().join(name)).unwrap();
        }
        let access = FileAccess::new(&dir.path().join("work"), &dir.path().join("home"), &dir.path().join("tmp"));
        (dir, access)
    }

    #[test]
    fn paths_outside_the_sandbox_are_rejected_in_every_notation() {
        let (dir, access) = sandbox();
        symlink("/etc", access.work().join("etc")).unwrap();
        symlink("../elsewhere/new", access.work().join("dangling")).unwrap();
        let beside = dir.path().join("work-2");
        for written in ["/etc/passwd", "etc/passwd", "../elsewhere/x", "~/../x", "dangling", &beside.to_string_lossy()]
        {
            let refused = access.locate(written).unwrap_err();
            assert!(refused.contains("outside the sandbox"), "{written}");
            assert!(access.write(written, b"x").is_err(), "{written}");
            assert!(access.read(written).is_err(), "{written}");
        }
        assert!(!dir.path().join("elsewhere/new").exists());
    }

    #[test]
    fn links_within_the_sandbox_are_followed_and_home_is_the_sandbox_home() {
        let (dir, access) = sandbox();
        std::fs::write(access.work().join("real"), "old").unwrap();
        symlink("real", access.work().join("link")).unwrap();
        assert_eq!(access.write("link", b"new"), Ok(false));
        assert_eq!(std::fs::read_to_string(access.work().join("real")).unwrap(), "new");
        assert_eq!(access.write("~/a/b", b"x"), Ok(true));
        assert!(dir.path().join("home/a/b").exists());
    }

    #[test]
    fn special_files_are_reported_and_a_pipe_does_not_block() {
        let (_dir, access) = sandbox();
        std::fs::create_dir(access.work().join("d")).unwrap();
        nix::unistd::mkfifo(&access.work().join("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
        assert_eq!(access.read("d").unwrap_err(), "d is a directory");
        assert_eq!(access.write("d", b"").unwrap_err(), "d is a directory");
        assert_eq!(access.read("none").unwrap_err(), "none does not exist");
        assert_eq!(access.read("pipe").unwrap_err(), "pipe is not a regular file");
        assert!(access.write("pipe", b"x").is_err());
    }

    #[test]
    fn read_only_files_stay_as_they_are() {
        let (_dir, mut access) = sandbox();
        access.read_only = vec![access.work().join("docs")];
        let refused = access.write("docs/new.txt", b"x").unwrap_err();
        assert_eq!(refused, "docs/new.txt cannot be written: Read-only file system (os error 30)");
        assert_eq!(access.write("docs.txt", b"x"), Ok(true));
    }

    #[test]
    fn a_files_mode_survives_writing() {
        use std::os::unix::fs::PermissionsExt;
        let (_dir, access) = sandbox();
        let script = access.work().join("run.sh");
        std::fs::write(&script, "a longer text").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        assert_eq!(access.write("run.sh", b"short"), Ok(false));
        assert_eq!(std::fs::read_to_string(&script).unwrap(), "short");
        assert_eq!(script.metadata().unwrap().permissions().mode() & 0o777, 0o755);
    }
}
