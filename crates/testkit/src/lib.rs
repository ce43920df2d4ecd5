//! Scratch projects for end-to-end tests: a directory with its own home and temp directory, the real binary, and an
//! environment that inherits nothing from the machine.
//!
//! ```
//! let project = trialrun_testkit::Project::new("/bin/cat");
//! project.write("notes/a.txt", "hello");
//! assert_eq!(project.run(&["notes/a.txt"]).exits(0).out, "hello");
//! ```

#![allow(clippy::expect_used, clippy::panic, reason = "a test that cannot go on fails")]

pub mod browser;
mod claude;
mod disposition;
pub mod foreign;
mod fuzz;
pub mod json;
mod live;
mod loopback;
mod postgres_server;
mod process_pipe;
mod provider;
pub mod real;
pub mod vectors;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub use fuzz::{fuzz, seeds};
pub use live::{Live, TIMEOUT, pause, until};
pub use loopback::{Loopback, ReceivedRequest};
pub use postgres_server::{PASSWORD, PostgresServer};
pub use process_pipe::ProcessPipe;
pub use provider::{Answer, ScriptedProvider};

/// A project that is removed on drop.
pub struct Project {
    root: tempfile::TempDir,
    program: PathBuf,
    env: BTreeMap<String, String>,
}

/// Result of a command.
pub struct Ran {
    /// Exit code; -1 if a signal ended it.
    pub code: i32,
    /// Stdout.
    pub out: String,
    /// Stderr.
    pub err: String,
}

impl Ran {
    /// Returns both streams, for the message of a failed assertion.
    pub fn output(&self) -> String {
        format!("exit code {}\n--- stdout\n{}\n--- stderr\n{}", self.code, self.out, self.err)
    }

    /// Parses stdout as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("not valid JSON ({error}): {}", self.output()))
    }

    /// Fails the test unless the exit code is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.output());
        self
    }
}

/// Returns the folder in which `scripts/packages` installs npm packages, and Python packages in `python`. Tests that need
/// them are ignored where `scripts/needs` does not find them.
#[track_caller]
pub fn packages() -> PathBuf {
    path_in("TRIALRUN_TEST_PACKAGES")
}

/// Returns the path in a variable. There must be something at that path.
#[track_caller]
fn path_in(variable: &str) -> PathBuf {
    let path = std::env::var_os(variable).map(PathBuf::from).filter(|path| path.exists());
    path.unwrap_or_else(|| panic!("`{variable}` is not the path of anything; run scripts/test"))
}

/// Runs git in `dir`, as a user with a name but without settings, and returns its output. It must succeed.
#[track_caller]
pub fn git(dir: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "init.defaultBranch=main"])
        .args(arguments)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Project {
    /// Creates an empty project for `program`, the binary under test.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        disposition::heed_signals();
        let root = tempfile::Builder::new().prefix("testkit-").tempdir().expect("a directory");
        let project = Self { root, program: program.into(), env: BTreeMap::new() };
        for made in ["work", "home", "tmp"] {
            fs::create_dir(project.root.path().join(made)).expect("a directory");
        }
        let place = |name: &str| project.root.path().join(name).to_string_lossy().into_owned();
        let env = BTreeMap::from([
            ("PATH".to_owned(), "/usr/local/bin:/usr/bin:/bin".to_owned()),
            ("HOME".to_owned(), place("home")),
            ("TMPDIR".to_owned(), place("tmp")),
            ("LANG".to_owned(), "C.UTF-8".to_owned()),
        ]);
        Self { env, ..project }
    }

    /// Directory of the project, with links resolved.
    pub fn dir(&self) -> PathBuf {
        self.root.path().join("work").canonicalize().expect("the project's directory")
    }

    /// Home directory of the user.
    pub fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    /// Directory for the program's sandboxes.
    pub fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    /// Sets an environment variable for every command.
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.env.insert(name.to_owned(), value.to_owned());
        self
    }

    /// Adds a directory at the front of `PATH`.
    pub fn path_first(self, dir: &Path) -> Self {
        let path = format!("{}:{}", dir.display(), self.env["PATH"]);
        self.env("PATH", &path)
    }

    /// Writes a file of the project.
    pub fn write(&self, path: &str, text: &str) -> &Self {
        let path = self.dir().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        fs::write(path, text).expect("a file");
        self
    }

    /// Reads a file of the project.
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.dir().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Returns a command for the program, not started yet.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command.args(arguments).current_dir(self.dir()).env_clear().envs(&self.env).stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.command(arguments).output().expect("the program starts").into()
    }

    /// Runs the program and returns its JSON report; the exit code must be `code`.
    #[track_caller]
    pub fn report(&self, arguments: &[&str], code: i32) -> Value {
        let mut all = vec!["run", "--report", "terminal", "--report", "json=report.json"];
        all.extend(arguments);
        let ran = self.run(&all).exits(code);
        serde_json::from_str(&self.read("report.json")).unwrap_or_else(|error| panic!("{error}: {}", ran.output()))
    }

    /// Returns the contents of the directory for sandboxes.
    pub fn left_over(&self) -> Vec<String> {
        let entries = fs::read_dir(self.tmp()).expect("the temp directory");
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect()
    }
}
