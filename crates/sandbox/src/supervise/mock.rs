//! Programs in a sandbox that stand for mocked MCP servers and mocked programs. They only pass on what they are sent
//! and what the harness answers, so an agent that runs them itself gets the same answers and is recorded.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::{failure, short_path};

/// Role of these programs: a socket, `server` or `command`, a name and arguments follow.
pub(crate) const ROLE: &str = "__mock";

/// Argument for a mocked MCP server.
pub(crate) const SERVER: &str = "server";

/// Argument for a mocked program.
pub(crate) const COMMAND: &str = "command";

/// Maximum number of bytes of an answer that a program reads.
const MAX_ANSWER: u64 = 64 << 20;

/// First line that a program sends to the harness.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MockRequest {
    /// The messages of a client of this server follow.
    Server(String),
    /// A program was run.
    Command {
        /// Its name.
        name: String,
        /// Its arguments.
        args: Vec<String>,
    },
}

/// Answer of the harness to a program: one line of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandOutput {
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
    /// Exit code.
    pub exit_code: u8,
}

pub(super) fn main(args: impl Iterator<Item = OsString>) -> ExitCode {
    let words: Vec<String> = args.map(|word| word.to_string_lossy().into_owned()).collect();
    let done = match words.as_slice() {
        [socket, kind, name] if kind == SERVER => serve(socket, name).map(|()| 0),
        [socket, kind, name, args @ ..] if kind == COMMAND => run(socket, name, args),
        _ => return failure("wrong arguments for a mock"),
    };
    match done {
        Ok(code) => ExitCode::from(code),
        Err(error) => failure(&format!("the mock cannot be reached: {error}")),
    }
}

fn connect(socket: &str, request: &MockRequest) -> io::Result<UnixStream> {
    let (_folder, short) = short_path(Path::new(socket))?;
    let mut stream = UnixStream::connect(short)?;
    let mut line = serde_json::to_vec(request)?;
    line.push(b'\n');
    stream.write_all(&line)?;
    Ok(stream)
}

/// Connects stdin and stdout with the harness until one of them ends.
fn serve(socket: &str, name: &str) -> io::Result<()> {
    let mut stream = connect(socket, &MockRequest::Server(name.to_owned()))?;
    let mut sending = stream.try_clone()?;
    std::thread::spawn(move || {
        let _ = io::copy(&mut io::stdin(), &mut sending);
        let _ = sending.shutdown(Shutdown::Write);
    });
    let mut stdout = io::stdout();
    let mut buffer = [0; 8192];
    loop {
        let count = stream.read(&mut buffer)?;
        if count == 0 {
            return Ok(());
        }
        stdout.write_all(&buffer[..count])?;
        stdout.flush()?;
    }
}

fn run(socket: &str, name: &str, args: &[String]) -> io::Result<u8> {
    let stream = connect(socket, &MockRequest::Command { name: name.to_owned(), args: args.to_vec() })?;
    let mut answer = String::new();
    BufReader::new(stream.take(MAX_ANSWER)).read_line(&mut answer)?;
    let CommandOutput { stdout, stderr, exit_code } = serde_json::from_str(&answer)?;
    io::stdout().write_all(stdout.as_bytes())?;
    io::stderr().write_all(stderr.as_bytes())?;
    Ok(exit_code)
}
