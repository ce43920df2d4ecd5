//! The pipe that tells supervisors whether the harness lives.

use std::io::{self, PipeReader, PipeWriter};
use std::os::fd::{AsRawFd, RawFd};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// One pipe for the whole harness. Supervisors inherit the end that reads; the harness alone holds the end that writes,
/// and never writes. When it is gone, however it went, they read the end of the pipe and end everything below them.
#[derive(Debug)]
pub struct Lifeline {
    reader: PipeReader,
    _writer: PipeWriter,
}

impl Lifeline {
    /// A lifeline that holds for as long as it is kept.
    ///
    /// # Errors
    /// When the process may open no more descriptors.
    pub fn new() -> io::Result<Self> {
        let (reader, writer) = io::pipe()?;
        fcntl(&reader, FcntlArg::F_SETFD(FdFlag::empty()))?;
        Ok(Self { reader, _writer: writer })
    }

    /// The descriptor that supervisors inherit.
    pub fn fd(&self) -> RawFd {
        self.reader.as_raw_fd()
    }
}
