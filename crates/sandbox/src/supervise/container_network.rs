//! Networks of containers, on whose loopback interface the harness serves ports.
//!
//! The network is created by a container of its own, which runs only this binary: it opens the ports and passes the
//! listening sockets to the harness. The program's container joins the network and shares nothing else with the other
//! one, so the program sees neither this binary nor the harness's socket, and cannot stop, replace or bypass anything.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use super::container::ContainerProcess;
use super::engine::error_message;

/// Line that the role [`LISTEN`](super::container::LISTEN) writes when the harness has the sockets.
const READY: &str = "ready";

/// Option that selects a container's user namespace.
const USER_NAMESPACE: &str = "--userns";

/// Time limit for starting the container.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Maximum number of bytes that are read from each output stream of the engine.
const MOST_OUTPUT: u64 = 1 << 20;

impl ContainerProcess {
    /// Returns the name of the container that creates the network.
    pub(super) fn name_of_network(&self) -> String {
        format!("{}-network", self.name)
    }

    /// Returns the options for the program's container, which joins the network. In a user namespace of its own, it
    /// would not be allowed to mount `/sys`, because another namespace owns the network.
    pub(super) fn options_in_network(&self) -> Vec<String> {
        let joined = format!("container:{}", self.name_of_network());
        let mut options = self.options.clone();
        for at in 1..options.len() {
            if options[at - 1] == USER_NAMESPACE {
                options[at].clone_from(&joined);
            }
        }
        options.extend(["--network".to_owned(), joined]);
        options
    }

    /// Starts the container that creates the network, and waits until the harness has its sockets.
    pub(super) fn open_network(&self) -> Result<(), String> {
        let Some(network) = &self.network else { return Ok(()) };
        let mut command = Command::new(&self.engine);
        command.args(["run", "--rm", "--name", &self.name_of_network()]).args(network.arguments(&self.image)?);
        command.env_clear().envs(&self.env).current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let refused = |reason: &str| format!("the container for the network cannot be started: {reason}");
        let mut engine = command.spawn().map_err(|error| refused(&error.to_string()))?;
        let (sender, lines) = mpsc::channel();
        let streams: [Option<Box<dyn Read + Send>>; 2] = [
            engine.stdout.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
            engine.stderr.take().map(|stream| Box::new(stream) as Box<dyn Read + Send>),
        ];
        for stream in streams.into_iter().flatten() {
            let sender = sender.clone();
            thread::spawn(move || {
                let lines = BufReader::new(stream.take(MOST_OUTPUT)).lines();
                lines.map_while(Result::ok).try_for_each(|line| sender.send(line))
            });
        }
        drop(sender);
        let (began, mut output) = (Instant::now(), String::new());
        loop {
            match lines.recv_timeout(TIMEOUT.saturating_sub(began.elapsed())) {
                Ok(line) if line.trim() == READY => return Ok(()),
                Ok(line) => output.extend([&*line, "\n"]),
                Err(RecvTimeoutError::Disconnected) => {
                    let _ = engine.wait();
                    return Err(refused(error_message(&output).unwrap_or("it ended without an error message")));
                }
                Err(RecvTimeoutError::Timeout) => {
                    let _ = engine.kill();
                    return Err(refused(&format!("it is not ready after {} s", TIMEOUT.as_secs())));
                }
            }
        }
    }
}

/// Opens the ports, passes them to the harness, and waits until the harness does not serve them any more.
#[cfg(target_os = "linux")]
pub(super) fn listen(arguments: &super::arguments::Arguments) -> Result<u8, String> {
    use std::io::Write;

    let served = arguments.served.as_ref().ok_or("no ports to open")?;
    let mut stream = super::listeners::hand_over(served)?;
    writeln!(std::io::stdout(), "{READY}").map_err(|error| format!("cannot answer: {error}"))?;
    // The harness sends nothing, so the next thing to read is the end.
    let _ = stream.read(&mut [0]);
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_joins_the_network_and_the_user_namespace_of_the_other_container() {
        let process = ContainerProcess {
            engine: "podman".into(),
            env: std::collections::BTreeMap::new(),
            name: "c".into(),
            options: ["--userns", "keep-id", "--init"].map(str::to_owned).into(),
            image: "image".into(),
            network: None,
        };
        let options = process.options_in_network();
        assert_eq!(options, ["--userns", "container:c-network", "--init", "--network", "container:c-network"]);
    }
}
