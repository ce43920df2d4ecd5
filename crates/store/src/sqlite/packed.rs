//! Reading packs: trials that finished together are unpacked together.

use std::collections::VecDeque;

use rusqlite::{Connection, Row};

use super::SqliteError;
use super::pack::unpack_text;
use crate::StoreError;

/// Number of packs that are cached. Reading a run in order alternates between a few packs.
const MAX_CACHED_PACKS: usize = 4;

/// Location of a finished trial's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PackRange {
    pack: i64,
    start: usize,
    /// End offset; absent if they extend to the end of the pack.
    end: Option<usize>,
}

impl PackRange {
    /// Reads the location from a row that starts with `pack, pack_start, pack_end`.
    pub(super) fn from_row(row: &Row<'_>) -> rusqlite::Result<Self> {
        let byte = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        let end: Option<i64> = row.get(2)?;
        Ok(Self { pack: row.get(0)?, start: byte(row.get(1)?), end: end.map(byte) })
    }
}

/// Cache of recently read packs, unpacked.
#[derive(Default)]
pub(super) struct Packs {
    /// Most recently used first.
    kept: VecDeque<(i64, String)>,
}

impl Packs {
    /// Returns the events at `place`, one line of JSON each.
    pub(super) fn lines(&mut self, connection: &Connection, place: PackRange) -> Result<&str, SqliteError> {
        match self.kept.iter().position(|(pack, _)| *pack == place.pack) {
            Some(index) => self.kept.swap(0, index),
            None => {
                let text = read(connection, place.pack)?;
                self.kept.truncate(MAX_CACHED_PACKS - 1);
                self.kept.push_front((place.pack, text));
            }
        }
        let text = self.kept.front().map_or("", |(_, text)| text.as_str());
        let lines = text.get(place.start..place.end.unwrap_or(text.len()));
        lines.ok_or_else(|| StoreError::Damaged("a trial is not where it should be in its pack".into()).into())
    }
}

fn read(connection: &Connection, pack: i64) -> Result<String, SqliteError> {
    let packed: Vec<u8> =
        connection.prepare_cached("SELECT events FROM packs WHERE no = ?1")?.query_row([pack], |row| row.get(0))?;
    Ok(unpack_text(&packed)?)
}
