//! Use of cassettes in a run: which were written, and how many requests were answered from them.

use std::collections::BTreeSet;
use std::path::Path;

use model::CassetteUse;

use crate::format::{counted, number};

/// Maximum number of folders that are named.
const FOLDERS: usize = 3;

/// Use of cassettes in all trials.
#[derive(Debug, Default)]
pub(crate) struct CassetteTotals {
    recorded: BTreeSet<String>,
    replayed: u64,
    live: u64,
}

impl CassetteTotals {
    pub(crate) fn add(&mut self, used: &CassetteUse) {
        self.replayed += used.replayed;
        self.live += used.live;
        if used.recorded {
            self.recorded.insert(used.file.clone());
        }
    }

    /// Describes the use in one line: `recorded 3 cassettes in tests/cassettes: commit them`. `None` if nothing was
    /// recorded or replayed.
    pub(crate) fn describe(&self) -> Option<String> {
        let mut parts = Vec::new();
        if self.replayed > 0 {
            let requests = counted(usize::try_from(self.replayed).unwrap_or(usize::MAX), "request");
            let new = if self.live > 0 { format!(", {} new", number(self.live)) } else { String::new() };
            parts.push(format!("{requests} replayed{new}"));
        }
        if !self.recorded.is_empty() {
            let them = if self.recorded.len() == 1 { "it" } else { "them" };
            let cassettes = counted(self.recorded.len(), "cassette");
            parts.push(format!("recorded {cassettes} in {}: commit {them}", self.folders()));
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }

    /// Names the folders of the written cassettes: those above the folders of the suites.
    fn folders(&self) -> String {
        let folder = |file: &String| {
            let folder = Path::new(file).parent().and_then(Path::parent).unwrap_or(Path::new(""));
            let folder = folder.to_string_lossy().into_owned();
            if folder.is_empty() { ".".to_owned() } else { folder }
        };
        let folders: BTreeSet<String> = self.recorded.iter().map(folder).collect();
        let more = folders.len().saturating_sub(FOLDERS);
        let mut named: Vec<String> = folders.into_iter().take(FOLDERS).collect();
        named.extend((more > 0).then(|| format!("{more} more")));
        match named.split_last() {
            Some((last, others)) if !others.is_empty() => format!("{} and {last}", others.join(", ")),
            _ => named.concat(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(used: &[(&str, bool, u64, u64)]) -> Option<String> {
        let mut totals = CassetteTotals::default();
        for (file, recorded, replayed, live) in used.iter().copied() {
            totals.add(&CassetteUse { file: file.to_owned(), recorded, replayed, live });
        }
        totals.describe()
    }

    #[test]
    fn written_cassettes_are_counted_and_their_folders_named() {
        let [a, b] = ["tests/cassettes/s/a@x.jsonl.zst", "tests/cassettes/t/b@x.jsonl.zst"];
        assert_eq!(described(&[(a, true, 0, 2)]).unwrap(), "recorded 1 cassette in tests/cassettes: commit it");
        let both = [(a, true, 0, 2), (a, true, 0, 2), (b, true, 0, 1)];
        assert_eq!(described(&both).unwrap(), "recorded 2 cassettes in tests/cassettes: commit them");
        let automatic = [(a, false, 3, 0), (b, true, 1, 2)];
        assert_eq!(
            described(&automatic).unwrap(),
            "4 requests replayed, 2 new; recorded 1 cassette in tests/cassettes: commit it"
        );
        assert_eq!(described(&[(a, false, 1, 0)]).unwrap(), "1 request replayed");
        assert_eq!(described(&[(a, false, 0, 2)]), None, "the trial was broken");
        let many = ["a/s/1", "b/s/1", "c/s/1", "d/s/1"].map(|file| (file, true, 0, 1));
        assert_eq!(described(&many).unwrap(), "recorded 4 cassettes in a, b, c and 1 more: commit them");
        assert_eq!(described(&[("s/1", true, 0, 1)]).unwrap(), "recorded 1 cassette in .: commit it");
    }
}
