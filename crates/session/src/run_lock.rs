//! Lock of a run, so that only one process runs its trials.
//!
//! The operating system releases it when the process ends for any reason. It locks one byte of a file next to the
//! record, so that a killed run leaves nothing behind.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Files with locks of this process. Closing a file releases every lock that its process has on it, so a file is opened
/// once for all runs, and stays open while one of them is locked.
static LOCKED: Mutex<BTreeMap<PathBuf, LockedFile>> = Mutex::new(BTreeMap::new());

/// Lock of a run. Dropping it releases the lock.
pub struct RunLock {
    path: PathBuf,
    byte: libc::off_t,
}

/// Reason why a run cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// A process holds the lock.
    #[error("process {0} is running it")]
    Held(i32),
    /// The file cannot be used.
    #[error("cannot lock it: {0}")]
    Io(#[from] io::Error),
}

impl RunLock {
    /// Locks the run with that full id in `file`.
    ///
    /// # Errors
    /// Returns an error if the run is already locked, or the lock file cannot be used.
    pub(crate) fn acquire(file: &Path, run: &str) -> Result<Self, LockError> {
        let mut files = locked();
        // The file need not exist, and its directory has several names.
        let path = match (file.parent().map(Path::canonicalize), file.file_name()) {
            (Some(Ok(directory)), Some(name)) => directory.join(name),
            _ => file.to_owned(),
        };
        let byte = byte(run);
        let mut opened = match files.remove(&path) {
            Some(opened) => opened,
            None => LockedFile { file: File::options().create(true).append(true).open(&path)?, bytes: BTreeSet::new() },
        };
        let result = opened.lock(byte);
        if !opened.bytes.is_empty() {
            files.insert(path.clone(), opened);
        }
        result.map(|()| Self { path, byte })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        let mut files = locked();
        if let Some(opened) = files.get_mut(&self.path) {
            // Closing the file below releases the lock at the latest.
            let _ = fcntl(&opened.file, FcntlArg::F_SETLK(&flock(libc::F_UNLCK, self.byte)));
            opened.bytes.remove(&self.byte);
            if opened.bytes.is_empty() {
                files.remove(&self.path);
            }
        }
    }
}

/// An open file of locks.
struct LockedFile {
    file: File,
    /// Offsets of the locked bytes.
    bytes: BTreeSet<libc::off_t>,
}

impl LockedFile {
    fn lock(&mut self, byte: libc::off_t) -> Result<(), LockError> {
        // The operating system lets a process lock a byte twice.
        if self.bytes.contains(&byte) {
            return Err(LockError::Held(std::process::id().cast_signed()));
        }
        let mut lock = flock(libc::F_WRLCK, byte);
        match fcntl(&self.file, FcntlArg::F_SETLK(&lock)) {
            Ok(_) => {
                self.bytes.insert(byte);
                Ok(())
            }
            Err(Errno::EACCES | Errno::EAGAIN) => {
                fcntl(&self.file, FcntlArg::F_GETLK(&mut lock)).map_err(io::Error::from)?;
                Err(LockError::Held(lock.l_pid))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

fn locked() -> MutexGuard<'static, BTreeMap<PathBuf, LockedFile>> {
    LOCKED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the request to lock or to unlock one byte.
fn flock(kind: libc::c_int, byte: libc::off_t) -> libc::flock {
    libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

/// Returns the offset of the byte that represents the run. The end of its id is random.
fn byte(run: &str) -> libc::off_t {
    const MAX_OFFSET: u128 = (1 << 62) - 1;
    let number = uuid::Uuid::parse_str(run).map_or(0, |id| id.as_u128() & MAX_OFFSET);
    libc::off_t::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns `true` if the operating system lists a lock of the run's byte.
    #[cfg(target_os = "linux")]
    fn is_listed(file: &Path, run: &str) -> bool {
        use std::os::unix::fs::MetadataExt;
        let place = format!(":{} {byte} {byte}", file.metadata().unwrap().ino(), byte = byte(run));
        std::fs::read_to_string("/proc/locks").unwrap().lines().any(|line| line.ends_with(&place))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_run_stays_locked_when_another_run_of_the_process_ends() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("locks");
        let [first, second] = [1, 2].map(|number| uuid::Uuid::from_u128(number).to_string());
        let lock = RunLock::acquire(&file, &first).unwrap();
        drop(RunLock::acquire(&file, &second).unwrap());
        assert!(is_listed(&file, &first) && !is_listed(&file, &second));
        assert!(matches!(RunLock::acquire(&file, &first), Err(LockError::Held(_))), "locked twice in one process");
        assert!(is_listed(&file, &first));
        drop(lock);
        assert!(!is_listed(&file, &first));
        assert!(RunLock::acquire(&file, &first).is_ok());
    }
}
