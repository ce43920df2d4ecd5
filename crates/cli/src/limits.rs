//! Resource limits of this process.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the limit on open files to the allowed maximum, because each trial needs several.
pub fn raise_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // If this fails, the old limit applies; a run that needs more files reports an error when it opens one.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
