//! The pipe that tells supervisors whether the harness is alive.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// One pipe for the whole harness. Supervisors inherit the read end. Only the harness holds the write end, and never
/// writes to it. When the harness ends for any reason, supervisors read the end of the pipe and kill all their
/// processes.
#[derive(Debug)]
pub struct Lifeline {
    reader: PipeReader,
    _writer: PipeWriter,
}

impl Lifeline {
    /// Creates a lifeline that holds until it is dropped.
    ///
    /// # Errors
    /// Returns an error if the process cannot open more file descriptors.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl(&reader, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(Self { reader, _writer: writer })
    }

    /// Returns the file descriptor that supervisors inherit.
    pub fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}
