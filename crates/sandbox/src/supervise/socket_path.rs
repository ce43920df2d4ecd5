//! Paths of Unix sockets, which the system limits to about 100 bytes.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Returns a path to the socket that is short enough for the system, and the folder that must stay open while it is
/// used.
#[cfg(target_os = "linux")]
pub(crate) fn short_path(socket: &Path) -> io::Result<(File, PathBuf)> {
    use std::os::fd::AsRawFd;

    let missing = || io::Error::from(io::ErrorKind::InvalidInput);
    let folder = File::open(socket.parent().ok_or_else(missing)?)?;
    let path = Path::new("/proc/self/fd").join(folder.as_raw_fd().to_string());
    let path = path.join(socket.file_name().ok_or_else(missing)?);
    Ok((folder, path))
}

/// The same for systems where a path cannot begin at an open folder.
#[cfg(not(target_os = "linux"))]
pub(crate) fn short_path(socket: &Path) -> io::Result<(File, PathBuf)> {
    let missing = || io::Error::from(io::ErrorKind::InvalidInput);
    Ok((File::open(socket.parent().ok_or_else(missing)?)?, socket.to_owned()))
}
