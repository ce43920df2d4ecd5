//! The process's own limits.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Raises the number of files this process may have open to what it is allowed: each trial takes a few.
pub fn raise_open_files() {
    if let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE)
        && soft < hard
    {
        // Being refused leaves what there was; a run that needs more says so when it opens a file.
        let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    }
}
