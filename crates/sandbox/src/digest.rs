//! Digests of files.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use sha2::{Digest, Sha256};

use super::deadline::Deadline;

/// Returns the SHA-256 of the content of the file at `path`.
pub(super) fn of_file(path: &Path, deadline: Option<Deadline>) -> io::Result<[u8; 32]> {
    of_open_file(files::open(path)?, path, deadline)
}

/// Returns the SHA-256 of the remaining content of `file`, whose path is `path`.
pub(super) fn of_open_file(mut file: File, path: &Path, deadline: Option<Deadline>) -> io::Result<[u8; 32]> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        if let Some(deadline) = deadline {
            deadline.check(path)?;
        }
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finalize().into()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

/// Returns the first 24 hexadecimal digits of the SHA-256 of `bytes`.
pub(super) fn short(bytes: &[u8]) -> String {
    model::text::hex(&Sha256::digest(bytes)[..12])
}
