//! Listening sockets of isolated programs, on systems without isolated sandboxes, where none of these exist.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

/// Checks that the harness gets listening sockets from a program.
///
/// # Errors
/// Always returns an error.
pub(crate) fn probe(_: &Path, _: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    Err("listening sockets can be taken over only on Linux".to_owned())
}

/// Takes over the listening sockets of a sandbox's programs.
#[derive(Debug)]
pub struct Listeners(Infallible);

impl Listeners {
    /// Returns the port of the proxy in the programs' network.
    pub fn proxy(&self) -> u16 {
        match self.0 {}
    }

    /// Waits for the next program that starts.
    ///
    /// # Errors
    /// Never returns.
    pub async fn next(&self) -> io::Result<Arrival> {
        match self.0 {}
    }
}

/// A program that is about to start.
#[derive(Debug)]
pub struct Arrival(Infallible);

impl Arrival {
    /// Takes over its listening sockets.
    ///
    /// # Errors
    /// Never returns.
    pub async fn take(self) -> io::Result<Served> {
        match self.0 {}
    }
}

/// The listening sockets of a running program.
#[derive(Debug)]
pub struct Served {
    /// Sockets for connections, with their addresses in the program's network.
    pub listeners: Vec<(SocketAddr, tokio::net::TcpListener)>,
    /// Sockets for DNS lookups.
    pub lookups: Vec<tokio::net::UdpSocket>,
    /// True if the program is an assertion's command rather than the agent's.
    pub is_of_command: bool,
    /// Notifies of the program's end.
    pub ended: Ended,
}

/// Notifies of the end of a program and all its descendants.
#[derive(Debug)]
pub struct Ended(Infallible);

impl Ended {
    /// Waits for the end.
    pub async fn wait(self) {
        match self.0 {}
    }
}
