//! Cache of profiles that required requests, in the state folder of the project.

use std::path::PathBuf;

use generate::Profile;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use session::{Session, create_state_folder};

/// File name in the state folder.
const FILE: &str = "agent-profile.json";

/// Version of the file.
const SCHEMA: &str = "trialrun.agent-profile/1";

/// Maximum size of the file, in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;

/// Maximum number of profiles; the oldest ones are removed.
const MOST: usize = 16;

/// Maximum age in days of a profile whose subject may change unnoticed.
const OLDEST_DAYS: i64 = 7;

/// Cached profiles.
pub struct Cache {
    file: PathBuf,
    content: Content,
    refresh: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct Content {
    schema: String,
    entries: Vec<Entry>,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    /// Hash of everything that the profile depends on.
    key: String,
    found_at: Timestamp,
    profile: Profile,
}

/// A profile from the cache.
pub struct Cached {
    pub profile: Profile,
    /// Age in days.
    pub days: i64,
}

impl Cache {
    /// Opens the cache of a project. With `refresh`, profiles are written but not used. An unreadable file counts as
    /// empty.
    pub fn open(session: &Session, refresh: bool) -> Self {
        let file = session.state.folder.join(FILE);
        let read = files::read(&file, LARGEST).ok().and_then(|bytes| serde_json::from_slice::<Content>(&bytes).ok());
        let content = read.filter(|content| content.schema == SCHEMA).unwrap_or_default();
        Self { file, content, refresh }
    }

    /// Returns the profile with this key, unless it is too old.
    pub fn get(&self, key: &str) -> Option<Cached> {
        let entry = self.content.entries.iter().find(|entry| entry.key == key).filter(|_| !self.refresh)?;
        let age = Timestamp::now().duration_since(entry.found_at);
        let is_valid = age >= SignedDuration::ZERO && age < SignedDuration::from_hours(24 * OLDEST_DAYS);
        is_valid.then(|| Cached { profile: entry.profile.clone(), days: age.as_hours() / 24 })
    }

    /// Stores a profile, which must not contain secrets. It replaces the one with the same key.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn put(&mut self, key: String, profile: &Profile) -> std::io::Result<()> {
        SCHEMA.clone_into(&mut self.content.schema);
        let entries = &mut self.content.entries;
        entries.retain(|entry| entry.key != key);
        entries.insert(0, Entry { key, found_at: Timestamp::now(), profile: profile.clone() });
        entries.truncate(MOST);
        let folder = self.file.parent().map_or_else(|| PathBuf::from("."), PathBuf::from);
        create_state_folder(&folder)?;
        // Another command may be reading the file at the same time.
        let written = tempfile::NamedTempFile::new_in(&folder)?;
        serde_json::to_writer(&written, &self.content)?;
        written.persist(&self.file).map(drop).map_err(|error| error.error)
    }
}

/// Returns the key of a profile that depends on `parts`.
pub fn key<'p>(parts: impl IntoIterator<Item = &'p str>) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    model::text::hex(&hash.finalize())
}
