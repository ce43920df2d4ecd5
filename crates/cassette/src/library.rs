//! The cassettes that a run uses.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use mask::Mask;
use model::CassetteMode;
use sha2::{Digest, Sha256};

use crate::exchange::Recording;
use crate::file::{Cassette, CassetteError};

/// Suffix of cassette file names.
pub const ENDING: &str = ".jsonl.zst";
/// Maximum length of one name in a path, in bytes.
const LONGEST: usize = 100;

/// Names from which the path of a cassette is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CassetteName<'a> {
    /// Suite.
    pub suite: &'a str,
    /// Case in the suite.
    pub case: &'a str,
    /// Arm in which the case runs.
    pub arm: &'a str,
}

/// Returns the path of a cassette: `SUITE/CASE@ARM.jsonl.zst` in `directory`. Characters that some file systems do not
/// allow or do not distinguish are replaced, and a hash keeps different names apart.
pub fn file_name(directory: &Path, name: CassetteName<'_>) -> PathBuf {
    let file = format!("{}@{}{ENDING}", safe(name.case), safe(name.arm));
    directory.join(safe(name.suite)).join(file)
}

fn safe(name: &str) -> String {
    let is_plain = |char: char| (char.is_alphanumeric() && !char.is_uppercase()) || "-_.+ ".contains(char);
    let safe: String = name.chars().map(|char| if is_plain(char) { char } else { '-' }).collect();
    let mut safe = safe.replace("..", "--");
    let mut end = safe.len().min(LONGEST);
    while !safe.is_char_boundary(end) {
        end -= 1;
    }
    safe.truncate(end);
    if safe == name && !name.starts_with('.') {
        return safe;
    }
    let hash = model::text::hex(&Sha256::digest(name.as_bytes())[..3]);
    format!("{}-{hash}", safe.trim_start_matches('.'))
}

/// Locks the folder of a cassette until the returned file is dropped, and creates it if it is missing. The folder itself
/// is locked, because a lock file would stay in the user's repository. Some network file systems cannot lock folders;
/// there, recordings are added without a lock.
fn lock_folder(cassette: &Path) -> io::Result<File> {
    let folder = cassette.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let folder = File::open(folder)?;
    let _ = folder.lock();
    Ok(folder)
}

/// The cassettes that a run uses. Each file is read only once.
#[derive(Debug, Default)]
pub struct Cassettes {
    mode: CassetteMode,
    honours_delays: bool,
    open: Mutex<HashMap<PathBuf, Arc<Mutex<Option<Cassette>>>>>,
}

impl Cassettes {
    /// Creates an empty collection. With `honours_delays`, recorded answers are replayed with their original delays.
    pub fn new(mode: CassetteMode, honours_delays: bool) -> Self {
        Self { mode, honours_delays, open: Mutex::default() }
    }

    /// Returns the mode.
    pub fn mode(&self) -> CassetteMode {
        self.mode
    }

    /// Returns `true` if recorded answers are replayed with their original delays.
    pub fn honours_delays(&self) -> bool {
        self.honours_delays
    }

    /// Returns the recording of a repetition from `file`, if there is one.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or is damaged.
    pub fn recording(&self, file: &Path, repetition: u64) -> Result<Option<Arc<Recording>>, CassetteError> {
        self.with(file, |cassette| Ok(cassette.recording(repetition).cloned()))
    }

    /// Adds a recording to `file`, and writes the file. Other processes that add recordings to cassettes in the same
    /// folder wait.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, or if it would contain a secret that `mask` hides. In
    /// that case the file does not change.
    pub fn save(&self, file: &Path, recording: Recording, mask: &Mask) -> Result<(), CassetteError> {
        self.with(file, |cassette| {
            // A refused recording must not leave an empty folder behind.
            recording.check_secrets(mask)?;
            let _lock = lock_folder(file)?;
            // Another process may have changed the file since it was read.
            let mut new = match Cassette::read(file) {
                Ok(present) => present,
                Err(CassetteError::Damaged { .. }) if self.mode == CassetteMode::Record => cassette.clone(),
                Err(error) => return Err(error),
            };
            new.put(recording);
            new.write(file, mask)?;
            *cassette = new;
            Ok(())
        })
    }

    fn with<R>(
        &self,
        file: &Path,
        act: impl FnOnce(&mut Cassette) -> Result<R, CassetteError>,
    ) -> Result<R, CassetteError> {
        let slot = {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(open.entry(file.to_owned()).or_default())
        };
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        let cassette = match &mut *slot {
            Some(cassette) => cassette,
            empty => {
                let read = match Cassette::read(file) {
                    // A damaged cassette is useless, so it is replaced. One of a newer version is not.
                    Err(CassetteError::Damaged { .. }) if self.mode == CassetteMode::Record => Cassette::default(),
                    read => read?,
                };
                empty.insert(read)
            }
        };
        act(cassette)
    }
}
