//! A pipe that a trial's processes hold open, so that a test notices when they start and when the last one has ended,
//! for whatever reason.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use nix::sys::stat::Mode;

use crate::Project;
use crate::live::TIMEOUT;

/// A named pipe. A process that has opened it for writing holds it until the process ends.
pub struct ProcessPipe {
    path: PathBuf,
    lines: Receiver<String>,
}

impl Project {
    /// Creates a pipe in the project's directory.
    pub fn process_pipe(&self, name: &str) -> ProcessPipe {
        let path = self.dir().join(name);
        nix::unistd::mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("a named pipe");
        let (line, lines) = channel();
        let read = path.clone();
        std::thread::spawn(move || {
            // Opening waits for the first writer.
            let Ok(pipe) = File::open(read) else { return };
            for written in BufReader::new(pipe).lines().map_while(Result::ok) {
                let _ = line.send(written);
            }
        });
        ProcessPipe { path, lines }
    }
}

impl ProcessPipe {
    /// Path of the pipe.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until a process writes `line`.
    #[track_caller]
    pub fn wait_for_line(&self, line: &str) {
        let output = self.lines.recv_timeout(TIMEOUT);
        assert_eq!(output.as_deref(), Ok(line), "{}", self.path.display());
    }

    /// Waits until no process holds it any more. Lines written until then are ignored.
    #[track_caller]
    pub fn wait_until_closed(&self) {
        loop {
            match self.lines.recv_timeout(TIMEOUT) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => panic!("a process still holds {} open", self.path.display()),
            }
        }
    }
}
