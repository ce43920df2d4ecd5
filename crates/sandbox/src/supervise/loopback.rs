//! The loopback interface of a new network namespace. It is down when the namespace is created.

use std::os::fd::AsRawFd;

use nix::sys::socket::{AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType, recv, sendto, socket};

/// Message type: change a network interface.
const NEW_LINK: u16 = 16;
/// Flags for a request that is to be acknowledged.
const REQUEST: u16 = 0x5;
/// Message type of an acknowledgement.
const ERROR: u16 = 2;
/// Index of the loopback interface, the first one of every network namespace.
const LOOPBACK: i32 = 1;
/// Flag of an interface that is up.
const UP: u32 = 1;
/// Length of the message: a header of 16 bytes and the description of an interface.
const LENGTH: u32 = 32;

/// Brings the loopback interface up.
///
/// # Errors
/// Returns an error if the system refuses it.
pub(super) fn bring_up() -> Result<(), String> {
    let failed = |error: nix::Error| format!("the loopback interface cannot be used: {error}");
    let (kind, flags) = (SockType::Raw, SockFlag::SOCK_CLOEXEC);
    let socket = socket(AddressFamily::Netlink, kind, flags, SockProtocol::NetlinkRoute).map_err(failed)?;
    let kernel = NetlinkAddr::new(0, 0);
    sendto(socket.as_raw_fd(), &message(), &kernel, MsgFlags::empty()).map_err(failed)?;
    let mut answer = [0; 256];
    let length = recv(socket.as_raw_fd(), &mut answer, MsgFlags::empty()).map_err(failed)?;
    let number =
        |at: usize| Some(i32::from_ne_bytes(answer.get(at..at + 4).filter(|_| at + 4 <= length)?.try_into().ok()?));
    let is_acknowledgement = answer.get(4..6) == Some(&ERROR.to_ne_bytes());
    match number(16).filter(|_| is_acknowledgement) {
        Some(0) => Ok(()),
        Some(error) => Err(failed(nix::Error::from_raw(-error))),
        None => Err("the kernel did not answer about the loopback interface".into()),
    }
}

fn message() -> Vec<u8> {
    let mut message = Vec::with_capacity(LENGTH as usize);
    message.extend(LENGTH.to_ne_bytes());
    message.extend(NEW_LINK.to_ne_bytes());
    message.extend(REQUEST.to_ne_bytes());
    // Sequence number and sender, which the kernel fills in.
    message.extend([0; 8]);
    // Family, padding and type are not needed.
    message.extend([0; 4]);
    message.extend(LOOPBACK.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message.extend(UP.to_ne_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_has_the_length_in_its_header() {
        assert_eq!(message().len(), LENGTH as usize);
    }
}
