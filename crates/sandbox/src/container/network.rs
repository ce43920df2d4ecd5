//! Networks of containers in which only the harness listens.
//!
//! A container without a network has its own loopback interface. A second container of the same image opens ports there
//! and passes the listening sockets to the harness, as the supervisor does for `isolated` sandboxes. It runs the
//! trialrun binary of this machine, with the machine's dynamic loader and libraries, so the image need not be able to
//! run it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use super::engine::Engine;
use super::mount;
use crate::Host;
use crate::enclosure::RESOLVER;
use crate::owner::{Base, Purpose};
use crate::registry::Registry;
use crate::supervise::{ServedNetwork, ServedPorts, probe_listeners};

/// Folder of the container in which everything from this machine is mounted.
const INSIDE: &str = "/trialrun";

/// Settings of the network. The port for DNS lookups is below 1024, and the container has no capabilities.
const OPTIONS: [&str; 4] = ["--network", "none", "--sysctl", "net.ipv4.ip_unprivileged_port_start=0"];

/// Variable that makes the dynamic loader list the libraries of a program instead of starting it.
const LIST_LIBRARIES: &str = "LD_TRACE_LOADED_OBJECTS";

/// File that lists the DNS servers.
const DNS_SERVERS: &str = "/etc/resolv.conf";

/// The trialrun binary, as a container can run it to open ports in its network.
#[derive(Debug)]
pub(super) struct Listener {
    /// Options that mount it and its libraries.
    mounts: Vec<String>,
    command: Vec<String>,
}

impl Listener {
    /// Finds the binary and its libraries, and starts it once in a container to find out whether the harness gets the
    /// sockets.
    ///
    /// # Errors
    /// Returns the reason why it does not.
    pub(super) fn open(
        engine: &Engine,
        image: &str,
        common: &[String],
        host: &Host,
        registry: &Arc<Registry>,
    ) -> Result<Self, String> {
        let listener = Self::find(host.supervisor.program())?;
        let root = host.temp.canonicalize().map_err(|error| format!("{}: {error}", host.temp.display()))?;
        let base =
            Base::make(&root, "network", Purpose::Sandbox, false, registry).map_err(|error| error.to_string())?;
        let socket = base.path().join("socket");
        let ports = ServedPorts { socket: socket.clone(), ports: vec![1], is_of_command: false };
        probe_listeners(&socket, || {
            let mut args = vec!["run".to_owned(), "--rm".to_owned()];
            args.extend(listener.serve(common, &ports).arguments(image)?);
            engine.ask(&args.iter().map(String::as_str).collect::<Vec<_>>()).map(drop)
        })?;
        Ok(listener)
    }

    /// Returns the network in which it opens `ports`. `common` are options that all containers get.
    pub(super) fn serve(&self, common: &[String], ports: &ServedPorts) -> ServedNetwork {
        let socket = Path::new(INSIDE).join("relay");
        let mut options: Vec<String> = OPTIONS.map(str::to_owned).into();
        options.extend(common.iter().cloned());
        options.extend(self.mounts.iter().cloned());
        options.extend(mount(&ports.socket, &socket, false));
        let served = ServedPorts { socket, ..ports.clone() };
        ServedNetwork { options, program: self.command.clone(), served }
    }

    /// Finds the binary's file and its libraries.
    fn find(program: &Path) -> Result<Self, String> {
        if !cfg!(target_os = "linux") {
            return Err("trialrun can open ports in a container's network only on Linux".to_owned());
        }
        let failed = |error: std::io::Error| format!("{} cannot start itself: {error}", program.display());
        let listed = Command::new(program)
            .arg("--version")
            .env_clear()
            .env(LIST_LIBRARIES, "1")
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .map_err(failed)?;
        let libraries = libraries(&String::from_utf8_lossy(&listed.stdout));
        let inside = |name: &str| format!("{INSIDE}/{name}");
        let own = inside("program");
        let mut mounts: Vec<String> = mount(&program.canonicalize().map_err(failed)?, Path::new(&own), true).into();
        for (name, path) in libraries.files.iter().chain(&libraries.loader) {
            let path = path.canonicalize().map_err(|error| format!("{}: {error}", path.display()))?;
            mounts.extend(mount(&path, &Path::new(&inside("lib")).join(name), true));
        }
        let mut command = Vec::new();
        if let Some((name, _)) = &libraries.loader {
            command = vec![format!("{}/{name}", inside("lib")), "--library-path".to_owned(), inside("lib")];
        }
        command.push(own);
        Ok(Self { mounts, command })
    }
}

/// Returns the options of containers that use such a network: their DNS lookups go to the harness.
pub(super) fn client_options(ports: &ServedPorts) -> [String; 2] {
    mount(&ports.socket.with_file_name(RESOLVER), Path::new(DNS_SERVERS), true)
}

/// Libraries of a program: their names and files. A program that is linked statically has neither.
#[derive(Debug, Default, PartialEq, Eq)]
struct Libraries {
    loader: Option<(String, PathBuf)>,
    files: Vec<(String, PathBuf)>,
}

/// Reads the loader's list of libraries, such as `libc.so.6 => /lib/libc.so.6 (0x7f…)`. The line of the loader itself
/// has only a path.
fn libraries(listed: &str) -> Libraries {
    let mut found = Libraries::default();
    for line in listed.lines() {
        let Some((entry, _)) = line.trim().rsplit_once(" (0x") else { continue };
        match entry.split_once(" => ") {
            Some((name, path)) => found.files.push((name.to_owned(), path.into())),
            None => {
                let path = PathBuf::from(entry);
                let name = path.file_name().filter(|_| path.is_absolute()).map(|name| name.to_string_lossy().into());
                found.loader = name.map(|name| (name, path)).or(found.loader);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loader_is_told_apart_from_the_libraries() {
        let listed = "\tlinux-vdso.so.1 (0x00007ffd)\n\tlibc.so.6 => /lib/x/libc.so.6 (0x00007f4c)\n\
                      \t/lib64/ld-linux-x86-64.so.2 (0x00007f4d)\n";
        let expected = Libraries {
            loader: Some(("ld-linux-x86-64.so.2".to_owned(), "/lib64/ld-linux-x86-64.so.2".into())),
            files: vec![("libc.so.6".to_owned(), "/lib/x/libc.so.6".into())],
        };
        assert_eq!(libraries(listed), expected);
        assert_eq!(libraries("trialrun 0.1.0\n"), Libraries::default());
    }
}
