//! Free disk space for a sandbox.

use std::path::Path;

/// Free space below which a file system counts as full, in bytes: a failed write may have left a little.
const NEXT_TO_NOTHING: u64 = 16 * 1024;

/// Returns `true` if the file system that holds `path` has no space for another file or its content.
#[allow(clippy::useless_conversion, reason = "some systems count blocks in 32 bits")]
pub fn is_full(path: &Path) -> bool {
    let Ok(disk) = nix::sys::statvfs::statvfs(path) else { return false };
    // Root may use the blocks that are reserved for it.
    let is_root = nix::unistd::geteuid().is_root();
    let blocks = if is_root { disk.blocks_free() } else { disk.blocks_available() };
    let bytes = u64::from(blocks).saturating_mul(disk.fragment_size());
    // Some file systems do not report a number of files.
    bytes < NEXT_TO_NOTHING || (disk.files() > 0 && disk.files_free() == 0)
}
