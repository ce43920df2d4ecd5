//! The running program: its lines as they arrive, signals sent to it, and its remaining processes.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nix::poll::{PollTimeout, poll};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::{Project, Ran};

/// Longer than anything takes in these tests; if it is exceeded, something hangs.
pub const TIMEOUT: Duration = Duration::from_secs(60);

/// A running program. Dropping it kills the program.
pub struct Live {
    child: Child,
    lines: Receiver<String>,
    output: String,
    err: Option<JoinHandle<String>>,
    status: Option<ExitStatus>,
}

impl Project {
    /// Starts the program without waiting for it.
    pub fn start(&self, arguments: &[&str]) -> Live {
        Live::start(self.command(arguments))
    }

    /// Returns every living process of this project: those whose command or environment contains its directory.
    pub fn processes(&self) -> Vec<String> {
        let mark = self.root.path().to_string_lossy().into_owned();
        let entries = std::fs::read_dir("/proc").expect("a list of processes").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        pids.filter_map(|pid| {
            let read = |what: &str| std::fs::read(format!("/proc/{pid}/{what}")).unwrap_or_default();
            let command = String::from_utf8_lossy(&read("cmdline")).replace('\0', " ");
            let ours = command.contains(&mark) || String::from_utf8_lossy(&read("environ")).contains(&mark);
            ours.then(|| format!("{pid}: {command}"))
        })
        .collect()
    }

    /// Waits until no process of this project is left.
    #[track_caller]
    pub fn no_process_is_left(&self) {
        let mut left = Vec::new();
        let gone = until(|| {
            left = self.processes();
            left.is_empty()
        });
        assert!(gone, "still running: {left:#?}");
    }
}

impl Live {
    /// Starts `command` without waiting for it.
    pub fn start(mut command: Command) -> Self {
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = child.expect("the program starts");
        let mut out = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut err = child.stderr.take().expect("its stderr");
        let (line, lines) = channel();
        std::thread::spawn(move || {
            let mut read = Vec::new();
            while out.read_until(b'\n', &mut read).is_ok_and(|count| count > 0) {
                let _ = line.send(String::from_utf8_lossy(&read).into_owned());
                read.clear();
            }
        });
        let err = std::thread::spawn(move || {
            let mut all = Vec::new();
            let _ = err.read_to_end(&mut all);
            String::from_utf8_lossy(&all).into_owned()
        });
        Self { child, lines, output: String::new(), err: Some(err), status: None }
    }

    /// Process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns the next complete line of its stdout, with its line end; `None` if there are no more.
    #[track_caller]
    pub fn line(&mut self) -> Option<String> {
        match self.lines.recv_timeout(TIMEOUT) {
            Ok(line) => {
                self.output.push_str(&line);
                line.ends_with('\n').then_some(line)
            }
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                panic!("no more output, and it is still running; output so far:\n{}", self.output)
            }
        }
    }

    /// Returns the next line that contains `text`.
    #[track_caller]
    pub fn line_with(&mut self, text: &str) -> String {
        loop {
            match self.line() {
                Some(line) if line.contains(text) => return line,
                Some(_) => {}
                None => panic!("it ended without printing {text:?}; output:\n{}", self.output),
            }
        }
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.child.id().cast_signed()), signal).expect("a running program");
    }

    /// Waits until it has ended and no process has its streams open.
    #[track_caller]
    pub fn end(mut self) -> Ran {
        while self.line().is_some() {}
        let ended = until(|| {
            self.status = self.child.try_wait().expect("its status");
            self.status.is_some()
        });
        assert!(ended, "it closed its stdout but is still running; output:\n{}", self.output);
        let err = self.err.take().and_then(|err| err.join().ok()).unwrap_or_default();
        let code = self.status.and_then(|status| status.code()).unwrap_or(-1);
        Ran { code, out: std::mem::take(&mut self.output), err }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// Polls until `condition` holds, with short pauses. Returns `false` if it does not hold within [`TIMEOUT`]. Only for
/// conditions without an event to wait for: other programs' processes and files.
pub fn until(mut condition: impl FnMut() -> bool) -> bool {
    let began = Instant::now();
    while !condition() {
        if began.elapsed() > TIMEOUT {
            return false;
        }
        pause(Duration::from_millis(2));
    }
    true
}

/// Pauses for this duration.
pub fn pause(duration: Duration) {
    let timeout = PollTimeout::try_from(duration).unwrap_or(PollTimeout::ZERO);
    let _ = poll(&mut [], timeout);
}
