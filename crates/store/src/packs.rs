//! Reading packs: trials that finished together are unpacked together.

use std::collections::VecDeque;

use crate::StoreError;
use crate::pack::unpack_text;

/// Number of packs that are cached. Reading a run in order alternates between a few packs.
const MAX_CACHED_PACKS: usize = 4;

/// Location of a finished trial's events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PackRange {
    pack: i64,
    start: usize,
    /// End offset; absent if they extend to the end of the pack.
    end: Option<usize>,
}

impl PackRange {
    /// Returns the location with these stored values.
    pub(crate) fn new(pack: i64, start: i64, end: Option<i64>) -> Self {
        let byte = |value: i64| usize::try_from(value).unwrap_or(usize::MAX);
        Self { pack, start: byte(start), end: end.map(byte) }
    }

    /// Returns the number of the pack.
    pub(crate) fn pack(self) -> i64 {
        self.pack
    }
}

/// Cache of recently read packs, unpacked.
#[derive(Default)]
pub(crate) struct Packs {
    /// Most recently used first.
    kept: VecDeque<(i64, String)>,
}

impl Packs {
    /// Returns `true` if the pack is cached.
    pub(crate) fn has(&self, place: PackRange) -> bool {
        self.kept.iter().any(|(pack, _)| *pack == place.pack)
    }

    /// Returns the events at `place`, one line of JSON each. `read` returns the pack with that number, if there is one.
    pub(crate) fn lines(
        &mut self,
        place: PackRange,
        read: impl FnOnce(i64) -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<&str, StoreError> {
        match self.kept.iter().position(|(pack, _)| *pack == place.pack) {
            Some(index) => self.kept.swap(0, index),
            None => {
                let missing = || StoreError::Damaged("a pack of trials is missing".into());
                let text = unpack_text(&read(place.pack)?.ok_or_else(missing)?)?;
                self.kept.truncate(MAX_CACHED_PACKS - 1);
                self.kept.push_front((place.pack, text));
            }
        }
        let text = self.kept.front().map_or("", |(_, text)| text.as_str());
        let lines = text.get(place.start..place.end.unwrap_or(text.len()));
        lines.ok_or_else(|| StoreError::Damaged("a trial is not where it should be in its pack".into()))
    }
}
