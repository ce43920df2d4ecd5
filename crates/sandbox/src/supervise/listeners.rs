//! Listening sockets in the network of an isolated program, which the harness serves.
//!
//! The network of an isolated program has only a loopback interface. Before the program starts, the process that
//! creates the network opens ports there and passes the listening sockets to the harness, which accepts the
//! connections from outside. So no process in the sandbox has to forward anything, and the program cannot stop,
//! replace or bypass it.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::net::sockopt::socket_type;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    SocketType, recvmsg, sendmsg,
};
use tokio::io::Interest;

use super::isolation::ServedPorts;
use super::socket_path::short_path;

/// Maximum number of sockets for one program.
const MOST_SOCKETS: usize = 64;

/// Port for DNS lookups. Programs ask this machine if no other server is configured.
const DNS: u16 = 53;

/// Message that comes with an agent's sockets.
const OF_AGENT: u8 = b'a';
/// Message that comes with another command's sockets.
const OF_COMMAND: u8 = b'c';

/// Opens the ports in this process's network and passes them to the harness, which serves them until the returned
/// stream is closed.
///
/// # Errors
/// Returns an error if a port cannot be opened or the harness does not take it over.
pub(super) fn hand_over(served: &ServedPorts) -> Result<UnixStream, String> {
    let failed = |error: io::Error| format!("the relay to the network cannot be reached: {error}");
    let mut sockets = Vec::new();
    for port in &served.ports {
        let socket = TcpListener::bind((Ipv4Addr::LOCALHOST, *port));
        sockets.push(socket.map_err(|error| format!("port {port} of the sandbox cannot be opened: {error}"))?);
        // Some systems have no IPv6.
        sockets.extend(TcpListener::bind((Ipv6Addr::LOCALHOST, *port)));
    }
    let lookups = UdpSocket::bind((Ipv4Addr::LOCALHOST, DNS));
    let lookups = lookups.map_err(|error| format!("the port for DNS lookups cannot be opened: {error}"))?;
    let (_folder, path) = short_path(&served.socket).map_err(failed)?;
    let stream = UnixStream::connect(path).map_err(failed)?;
    let sockets: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).chain([lookups.as_fd()]).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SOCKETS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(format!("a sandbox cannot have more than {MOST_SOCKETS} sockets"));
    }
    let kind = [if served.is_of_command { OF_COMMAND } else { OF_AGENT }];
    sendmsg(&stream, &[IoSlice::new(&kind)], &mut control, SendFlags::NOSIGNAL)
        .map_err(|error| failed(error.into()))?;
    Ok(stream)
}

/// Takes over the listening sockets of a sandbox's programs.
#[derive(Debug)]
pub struct Listeners {
    listener: tokio::net::UnixListener,
    proxy: u16,
}

impl Listeners {
    /// Listens at `socket`, which must not exist yet, for programs whose proxy has the port `proxy`.
    pub(crate) fn bind(socket: &Path, proxy: u16) -> io::Result<Self> {
        let (_folder, path) = short_path(socket)?;
        Ok(Self { listener: tokio::net::UnixListener::bind(path)?, proxy })
    }

    /// Returns the port of the proxy in the programs' network.
    pub fn proxy(&self) -> u16 {
        self.proxy
    }

    /// Waits for the next program that starts. The future may be dropped before it completes.
    ///
    /// # Errors
    /// Returns an error if the system cannot accept connections now.
    pub async fn next(&self) -> io::Result<Arrival> {
        let (stream, _) = self.listener.accept().await?;
        Ok(Arrival { stream })
    }
}

/// A program that is about to start.
#[derive(Debug)]
pub struct Arrival {
    stream: tokio::net::UnixStream,
}

impl Arrival {
    /// Takes over its listening sockets.
    ///
    /// # Errors
    /// Returns an error if it does not send any.
    pub async fn take(self) -> io::Result<Served> {
        let (kind, sockets) = self.stream.async_io(Interest::READABLE, || receive(&self.stream)).await?;
        let (mut listeners, mut lookups) = (Vec::new(), Vec::new());
        for socket in sockets {
            if socket_type(&socket)? == SocketType::DGRAM {
                let socket = UdpSocket::from(socket);
                socket.set_nonblocking(true)?;
                lookups.push(tokio::net::UdpSocket::from_std(socket)?);
            } else {
                let socket = TcpListener::from(socket);
                socket.set_nonblocking(true)?;
                listeners.push((socket.local_addr()?, tokio::net::TcpListener::from_std(socket)?));
            }
        }
        Ok(Served { listeners, lookups, is_of_command: kind == OF_COMMAND, ended: Ended(self.stream) })
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
pub struct Ended(tokio::net::UnixStream);

impl Ended {
    /// Waits for the end.
    pub async fn wait(self) {
        // Nothing is sent, so the next thing to read is the end.
        while self.0.readable().await.is_ok() {
            match self.0.try_read(&mut [0]) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                _ => break,
            }
        }
    }
}

/// Checks that the harness gets sockets from a program that `start` runs and that passes them to `socket`, which must
/// not exist yet.
///
/// # Errors
/// Returns the error of `start`, or the reason why no sockets arrived.
pub(crate) fn probe(socket: &Path, start: impl FnOnce() -> Result<(), String>) -> Result<(), String> {
    let failed = |error: io::Error| format!("listening sockets do not arrive: {error}");
    let (_folder, path) = short_path(socket).map_err(failed)?;
    let listener = std::os::unix::net::UnixListener::bind(&path).map_err(failed)?;
    // The program ends when its connection is closed after this.
    let taken = std::thread::spawn(move || receive(&listener.accept()?.0).map(drop));
    let started = start();
    // If the program did not connect, this ends the wait for it.
    drop(UnixStream::connect(&path));
    let taken = taken.join().unwrap_or_else(|_| Err(io::ErrorKind::Other.into()));
    started.and_then(|()| taken.map_err(failed))
}

fn receive(stream: &impl AsFd) -> io::Result<(u8, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MOST_SOCKETS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut kind = [0];
    let received = recvmsg(stream, &mut [IoSliceMut::new(&mut kind)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut sockets = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            sockets.extend(received);
        }
    }
    if received.bytes == 0 || sockets.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok((kind[0], sockets))
}
