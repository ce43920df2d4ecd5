//! Lock of a run, so that only one process runs its trials.
//!
//! The operating system releases it when the process ends for any reason. It locks one byte of a file next to the
//! record, so that a killed run leaves nothing behind.

use std::fs::File;
use std::io;
use std::path::Path;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::libc;

/// Lock of a run. Dropping it releases the lock.
pub struct RunLock(#[expect(dead_code, reason = "closing the file releases the lock")] File);

/// Reason why a run cannot be locked.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another process holds the lock.
    #[error("process {0} is running it")]
    Held(i32),
    /// The file cannot be used.
    #[error("cannot lock it: {0}")]
    Io(#[from] io::Error),
}

impl RunLock {
    /// Locks the run with that full id in `file`. A process must not lock the same run twice.
    ///
    /// # Errors
    /// Returns an error if another process has locked the run, or the lock file cannot be used.
    pub(crate) fn acquire(file: &Path, run: &str) -> Result<Self, LockError> {
        let file = File::options().create(true).append(true).open(file)?;
        let mut lock = libc::flock {
            l_type: libc::F_WRLCK as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: byte(run),
            l_len: 1,
            l_pid: 0,
        };
        match fcntl(&file, FcntlArg::F_SETLK(&lock)) {
            Ok(_) => Ok(Self(file)),
            Err(Errno::EACCES | Errno::EAGAIN) => {
                fcntl(&file, FcntlArg::F_GETLK(&mut lock)).map_err(io::Error::from)?;
                Err(LockError::Held(lock.l_pid))
            }
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

/// Returns the offset of the byte that represents the run. The end of its id is random.
fn byte(run: &str) -> libc::off_t {
    const MAX_OFFSET: u128 = (1 << 62) - 1;
    let number = uuid::Uuid::parse_str(run).map_or(0, |id| id.as_u128() & MAX_OFFSET);
    libc::off_t::try_from(number).unwrap_or(0)
}
