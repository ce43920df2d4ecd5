//! Actions of an agent after which its sandbox cannot be read.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::SandboxError;
use super::inspection::Unreadable;

/// Returns a description of the agent's action if the agent removed, replaced or made unreadable its working directory
/// `work` or the directory around it, or removed or replaced its `home`.
///
/// # Errors
/// Returns an error if the system prevents this check.
pub fn ruin(work: &Path, home: &Path) -> Result<Option<String>, SandboxError> {
    for directory in work.parent().into_iter().chain([work]) {
        let what = match directory.symlink_metadata() {
            Ok(meta) if meta.is_dir() && meta.permissions().mode() & 0o500 == 0o500 => continue,
            Ok(meta) if meta.is_dir() => "closed",
            Ok(_) => "removed",
            Err(error) => match error.kind() {
                io::ErrorKind::PermissionDenied => "closed",
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => "removed",
                _ => return Err(SandboxError::io("read", directory)(error)),
            },
        };
        return Ok(Some(format!("the agent {what} its working directory")));
    }
    let has_home =
        home.symlink_metadata().map_or_else(|error| error.kind() != io::ErrorKind::NotFound, |meta| meta.is_dir());
    Ok((!has_home).then(|| "the agent removed its home".to_owned()))
}

/// Converts an error that occurred while a tree was read after the agent acted. A timeout is the agent's fault, because
/// reading the tree took less time before.
pub(super) fn unread(work: &Path, error: io::Error) -> SandboxError {
    if error.kind() == io::ErrorKind::TimedOut {
        return SandboxError::Ruined {
            reason: format!("the agent left files that could not be read in time: {error}"),
        };
    }
    SandboxError::io("read", work)(error)
}

/// Converts an error from git after the agent acted. As in [`unread`], a timeout is the agent's fault.
pub(super) fn after_acting(unreadable: Unreadable) -> SandboxError {
    match unreadable {
        Unreadable::Left(reason) | Unreadable::Machine(reason) => SandboxError::Git { reason, source_line: None },
        Unreadable::Late(reason) => {
            SandboxError::Ruined { reason: format!("the agent left files that git could not read in time: {reason}") }
        }
    }
}
