//! Programs in a sandbox that stand for mocked MCP servers and mocked programs.
//!
//! ```text
//! <sandbox>/tools/service    socket of the harness
//! <sandbox>/tools/bin/       mocked programs, first on the agent's PATH
//! <sandbox>/tools/servers/   one program for each mocked MCP server, which agents start
//! ```
//!
//! What was called and answered is known only to the harness. An agent can change these programs, but not the record.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use model::MockNames;
use model::text::shell_quoted;
use tokio::net::{UnixListener, UnixStream};

use crate::supervise::mock::{COMMAND, ROLE, SERVER};

/// Name of the folder within a sandbox.
pub(super) const FOLDER: &str = "tools";

/// Names within the folder.
const SERVICE: &str = "service";
const BIN: &str = "bin";
const SERVERS: &str = "servers";

/// Files that login shells run. Login shells reset `PATH`, so these files must add the folder of the programs.
pub(super) const PROFILES: [&str; 2] = [".profile", ".zprofile"];

/// The programs of a sandbox that stand for mocks, and the connections that they open.
#[derive(Debug)]
pub struct MockPrograms {
    folder: PathBuf,
    listener: UnixListener,
}

impl MockPrograms {
    /// Creates the programs in the sandbox at `base`. They start `trialrun`, which is this program.
    pub(super) fn install(base: &Path, home: &Path, names: &MockNames, trialrun: &Path) -> io::Result<Self> {
        let folder = base.join(FOLDER);
        let socket = folder.join(SERVICE);
        fs::create_dir(&folder)?;
        for (kind, below, names) in [(SERVER, SERVERS, &names.servers), (COMMAND, BIN, &names.commands)] {
            fs::create_dir(folder.join(below))?;
            for name in names {
                let words =
                    [trialrun.to_string_lossy(), ROLE.into(), socket.to_string_lossy(), kind.into(), name.into()];
                let words: Vec<String> = words.iter().map(|word| shell_quoted(word)).collect();
                let text = format!("#!/bin/sh\nexec {} \"$@\"\n", words.join(" "));
                write_program(&folder.join(below).join(name), &text)?;
            }
        }
        if !names.commands.is_empty() {
            let line = format!("PATH={}:$PATH\n", shell_quoted(&folder.join(BIN).to_string_lossy()));
            for profile in PROFILES.map(|name| home.join(name)) {
                let earlier = fs::read_to_string(&profile).unwrap_or_default();
                fs::write(&profile, format!("{line}{earlier}"))?;
            }
        }
        let (_folder, short) = crate::supervise::short_path(&socket)?;
        Ok(Self { listener: UnixListener::bind(short)?, folder })
    }

    /// Returns the program that stands for an MCP server.
    pub fn server(&self, name: &str) -> PathBuf {
        self.folder.join(SERVERS).join(name)
    }

    /// Returns the folder of all of them.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Waits for the next connection. Its first line is a [`MockRequest`](crate::supervise::MockRequest).
    ///
    /// # Errors
    /// Returns an error if the system does not accept it.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        self.listener.accept().await.map(|(stream, _)| stream)
    }
}

/// Adds the mocked programs in `folder` to the environment of processes.
pub(super) fn add_to(folder: &Path, env: &mut BTreeMap<String, String>) {
    let path = env.get("PATH").filter(|path| !path.is_empty()).map_or("/usr/bin:/bin", String::as_str);
    env.insert("PATH".to_owned(), format!("{}:{path}", folder.join(BIN).display()));
}

fn write_program(path: &Path, text: &str) -> io::Result<()> {
    use std::io::Write;
    fs::File::options().write(true).create_new(true).mode(0o755).open(path)?.write_all(text.as_bytes())
}
