//! Exports and imports runs: one compressed file per run, to keep it or to move it to another machine.
//!
//! The file consists of JSON lines, compressed with zstd: a header, the events of the run as they were stored, and an
//! end with the number of events and the hash of the run. The zstd checksum covers all of it.

use std::io::{self, BufRead, BufReader, Read, Write};

use model::{Envelope, Event, foreign_json};
use serde::{Deserialize, Serialize};

use crate::{RunFilter, Store, StoreError, StoredEvent, Verification};

/// Version of the format.
const VERSION: u32 = 1;
/// Compression level. It is high, because a run is exported once and kept for a long time.
const LEVEL: i32 = 9;
/// Number of events stored in one batch.
pub(crate) const BATCH: usize = 512;
/// Maximum size of the lines whose events are stored in one batch, in bytes; the last one may exceed it.
const BATCH_BYTES: usize = 8 << 20;
/// Maximum length of a line, in bytes. It is twice the size of the longest conversation that is recorded.
const MAX_LINE_BYTES: u64 = 128 << 20;
/// Maximum number of values and keys in a line. A small file can expand to lines that take gigabytes once they are
/// parsed.
const MAX_LINE_VALUES: usize = 4 * foreign_json::MAX_VALUES;
/// Size of the window of the compression, as a power of two: the largest distance at which a repetition is found. A large
/// answer is in several events of its trial.
const WINDOW_LOG: u32 = 24;

#[derive(Serialize, Deserialize)]
struct Header {
    trialrun_export: u32,
    run: String,
    /// Version of trialrun that wrote the file.
    #[serde(default)]
    version: String,
}

#[derive(Serialize, Deserialize)]
struct End {
    events: usize,
    /// Hash of the run, if it has one and the run was not changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hash: Option<String>,
}

/// An exported run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exported {
    /// Number of events.
    pub events: usize,
    /// Result of verifying the run. Only an intact run keeps its hash.
    pub verification: Verification,
}

/// An imported run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// Full id.
    pub run: String,
    /// Number of events.
    pub events: usize,
}

/// Reason why a run cannot be exported or imported.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The record cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file cannot be read or written.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The file is not an exported run.
    #[error("it is not a run that `trialrun export` wrote")]
    Foreign,
    /// A newer version wrote the file.
    #[error("a newer trialrun wrote it: {0}")]
    Newer(String),
    /// The file is incomplete or was changed.
    #[error("it is damaged: {0}")]
    Damaged(String),
    /// The run is already in the record.
    #[error("run {0} is already recorded")]
    Present(String),
}

/// Writes the run with that full id to `out`.
///
/// # Errors
/// Returns an error if the run cannot be read, or `out` cannot be written.
pub fn export(store: &dyn Store, run: &str, out: impl Write) -> Result<Exported, ArchiveError> {
    let verification = store.verify(run)?;
    let mut out = zstd::Encoder::new(out, LEVEL)?;
    out.include_checksum(true)?;
    out.window_log(WINDOW_LOG)?;
    out.long_distance_matching(true)?;
    let version = env!("CARGO_PKG_VERSION").to_owned();
    line(&mut out, &Header { trialrun_export: VERSION, run: run.to_owned(), version })?;
    let mut events = 0;
    for event in store.events(run)? {
        match event? {
            StoredEvent::Known(envelope) => line(&mut out, &envelope)?,
            StoredEvent::Unknown(value) => line(&mut out, &value)?,
        }
        events += 1;
    }
    let hash = match &verification {
        Verification::Intact { hash, .. } => Some(hash.clone()),
        Verification::Unchained | Verification::Changed { .. } => None,
    };
    line(&mut out, &End { events, hash })?;
    out.finish()?.flush()?;
    Ok(Exported { events, verification })
}

fn line(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *out, value)?;
    out.write_all(b"\n")
}

/// Stores the run that [`export`] wrote to `from`. If the file turns out to be damaged, nothing is added to the
/// record.
///
/// # Errors
/// Returns an error if `from` is not a complete exported run, the record already contains the run, or it cannot be
/// written.
pub fn import(store: &mut dyn Store, from: impl Read) -> Result<Imported, ArchiveError> {
    let mut decoder = zstd::Decoder::new(from)?;
    decoder.window_log_max(WINDOW_LOG)?;
    let mut lines = Lines(BufReader::new(decoder), String::new());
    let header = lines.next().map_err(|_| ArchiveError::Foreign)?.ok_or(ArchiveError::Foreign)?;
    let Header { trialrun_export, run, version } = serde_json::from_str(header).map_err(|_| ArchiveError::Foreign)?;
    if trialrun_export > VERSION {
        return Err(ArchiveError::Newer(format!("its format is {trialrun_export}, this one reads up to {VERSION}")));
    }
    if store.runs(&RunFilter::default())?.iter().any(|row| row.id == run) {
        return Err(ArchiveError::Present(run));
    }
    match append(store, &run, &mut lines).and_then(|end| keep_hash(store, &run, &version, end)) {
        Ok(events) => Ok(Imported { run, events }),
        Err(error) => {
            // The first error is the one to report; a run without an end would be shown as interrupted.
            let _ = store.remove(&run);
            Err(error)
        }
    }
}

/// Compares the hash of the imported run with the exported one. If a run was exported without a hash, it gets none
/// here. Returns the number of events.
fn keep_hash(store: &mut dyn Store, run: &str, version: &str, end: End) -> Result<usize, ArchiveError> {
    let Some(hash) = end.hash else {
        store.remove_chain(run)?;
        return Ok(end.events);
    };
    let rows = store.runs(&RunFilter { named: Some(run.to_owned()), ..RunFilter::default() })?;
    // Another version may serialise the same events differently, so its hash cannot be compared.
    let is_comparable = version == env!("CARGO_PKG_VERSION");
    if is_comparable && rows.iter().find(|row| row.id == run).and_then(|row| row.hash.as_ref()) != Some(&hash) {
        return Err(ArchiveError::Damaged("its events do not match the hash of the run".to_owned()));
    }
    Ok(end.events)
}

fn append<R: BufRead>(store: &mut dyn Store, run: &str, lines: &mut Lines<R>) -> Result<End, ArchiveError> {
    let (mut events, mut size) = (0, 0);
    let mut batch: Vec<Envelope> = Vec::new();
    while let Some(line) = lines.next()? {
        if let Ok(end) = serde_json::from_str::<End>(line) {
            if end.events != events {
                let counts = format!("it has {events} of {} events", end.events);
                return Err(ArchiveError::Damaged(counts));
            }
            if lines.next()?.is_some() {
                return Err(ArchiveError::Damaged("something follows its end".to_owned()));
            }
            store.append(&batch)?;
            return Ok(end);
        }
        size += line.len();
        let envelope: Envelope = serde_json::from_str(line).map_err(|error| unknown(line, &error))?;
        let is_of_run = &*envelope.run == run && !matches!(&envelope.event, Event::RunStarted(info) if info.id != run);
        if !is_of_run {
            return Err(ArchiveError::Damaged(format!("event {} belongs to another run", envelope.seq)));
        }
        batch.push(envelope);
        events += 1;
        if batch.len() == BATCH || size > BATCH_BYTES {
            store.append(&batch)?;
            batch.clear();
            size = 0;
        }
    }
    Err(ArchiveError::Damaged("its end is missing".to_owned()))
}

/// Returns the error for a line that is not an event of this version.
fn unknown(line: &str, error: &serde_json::Error) -> ArchiveError {
    match serde_json::from_str::<serde_json::Value>(line) {
        Ok(value) if value["v"].as_u64().is_some_and(|version| version > u64::from(model::EVENT_VERSION)) => {
            ArchiveError::Newer(format!("it has events of version {}", value["v"]))
        }
        _ => ArchiveError::Damaged(error.to_string()),
    }
}

/// The lines of a file, one at a time.
struct Lines<R>(R, String);

impl<R: BufRead> Lines<R> {
    fn next(&mut self) -> Result<Option<&str>, ArchiveError> {
        self.1.clear();
        let read = (&mut self.0).take(MAX_LINE_BYTES).read_line(&mut self.1);
        let length = read.map_err(|error| ArchiveError::Damaged(error.to_string()))?;
        if length as u64 == MAX_LINE_BYTES {
            return Err(ArchiveError::Damaged(format!("it has a line of {} MiB or more", MAX_LINE_BYTES >> 20)));
        }
        if length > MAX_LINE_VALUES && foreign_json::count_values(&self.1) > MAX_LINE_VALUES {
            return Err(ArchiveError::Damaged(format!(
                "it has a line with more than {MAX_LINE_VALUES} values and keys"
            )));
        }
        Ok((length > 0).then(|| self.1.trim_end()))
    }
}

#[cfg(test)]
mod tests {
    use model::{Outcome, Summary};

    use super::*;
    use crate::tests::contract::{RUN, RunBuilder, owner};

    /// Creates a record with a run of two trials, one of which has no outcome.
    fn recorded(folder: &tempfile::TempDir, name: &str) -> Box<dyn Store> {
        let mut store = empty(folder, name);
        let mut story = RunBuilder::of(RUN);
        let events =
            [story.started(&["a", "b"]), story.began("a"), story.began("b"), story.finished("a", Outcome::Passed)];
        store.append(&events).unwrap();
        store.append(&[story.calls("b", "ls"), story.over(Summary::default())]).unwrap();
        store
    }

    fn empty(folder: &tempfile::TempDir, name: &str) -> Box<dyn Store> {
        crate::open(&folder.path().join(name).as_path().into(), &owner(1)).unwrap()
    }

    fn events(store: &dyn Store) -> Vec<StoredEvent> {
        store.events(RUN).unwrap().map(Result::unwrap).collect()
    }

    #[test]
    fn an_imported_run_equals_the_exported_one() {
        let folder = tempfile::tempdir().unwrap();
        let (from, mut to) = (recorded(&folder, "from"), empty(&folder, "to"));
        let mut file = Vec::new();
        let exported = export(&*from, RUN, &mut file).unwrap();
        assert_eq!(exported.events, 6);
        assert!(matches!(exported.verification, Verification::Intact { trials: 1, .. }));
        assert_eq!(import(&mut *to, file.as_slice()).unwrap(), Imported { run: RUN.to_owned(), events: 6 });
        assert_eq!(events(&*to), events(&*from));
        assert_eq!(to.verify(RUN).unwrap(), exported.verification, "the same hash");
        assert_eq!(to.live(RUN).unwrap().len(), 1);
        let mut again = Vec::new();
        export(&*to, RUN, &mut again).unwrap();
        assert_eq!(again, file);
        let error = import(&mut *to, file.as_slice()).unwrap_err();
        assert!(matches!(error, ArchiveError::Present(run) if run == RUN));
        assert_eq!(events(&*to), events(&*from));
    }

    #[test]
    fn a_small_file_that_expands_to_too_much_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (from, mut to) = (recorded(&folder, "from"), empty(&folder, "to"));
        let mut file = Vec::new();
        export(&*from, RUN, &mut file).unwrap();
        let text = String::from_utf8(zstd::decode_all(file.as_slice()).unwrap()).unwrap();
        let (header, rest) = text.split_once('\n').unwrap();
        let values = format!("{{\"x\":[{}0]}}", "[],".repeat(MAX_LINE_VALUES));
        for (line, reason) in
            [(values, "values and keys"), (" ".repeat(MAX_LINE_BYTES as usize + 1), "a line of 128 MiB")]
        {
            let bomb = zstd::encode_all(format!("{header}\n{line}\n{rest}").as_bytes(), 1).unwrap();
            assert!(bomb.len() < 100_000);
            let error = import(&mut *to, bomb.as_slice()).unwrap_err().to_string();
            assert!(error.contains(reason), "{error}");
            assert_eq!(to.runs(&RunFilter::default()).unwrap(), []);
        }
    }

    #[test]
    fn events_that_do_not_match_the_hash_are_not_imported_and_without_a_hash_there_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let (mut from, mut to) = (recorded(&folder, "from"), empty(&folder, "to"));
        let mut file = Vec::new();
        export(&*from, RUN, &mut file).unwrap();
        let edited = String::from_utf8(zstd::decode_all(file.as_slice()).unwrap()).unwrap();
        let edited =
            zstd::encode_all(edited.replace("\"outcome\":\"passed\"", "\"outcome\":\"failed\"").as_bytes(), 1).unwrap();
        let error = import(&mut *to, edited.as_slice()).unwrap_err();
        assert_eq!(error.to_string(), "it is damaged: its events do not match the hash of the run");
        assert!(to.runs(&RunFilter::default()).unwrap().is_empty());

        from.remove_chain(RUN).unwrap();
        file.clear();
        assert_eq!(export(&*from, RUN, &mut file).unwrap().verification, Verification::Unchained);
        import(&mut *to, file.as_slice()).unwrap();
        assert_eq!(to.verify(RUN).unwrap(), Verification::Unchained);
    }

    #[test]
    fn nothing_is_imported_from_a_damaged_file() {
        let folder = tempfile::tempdir().unwrap();
        let (from, mut to) = (recorded(&folder, "from"), empty(&folder, "to"));
        let mut file = Vec::new();
        export(&*from, RUN, &mut file).unwrap();
        for index in 0..file.len() {
            let mut changed = file.clone();
            changed[index] ^= 0x20;
            for damaged in [&changed[..], &file[..index]] {
                // Some bits, such as the window size, do not affect the content of the file.
                if import(&mut *to, damaged).is_ok() {
                    assert_eq!(events(&*to), events(&*from), "{index}");
                    to.remove(RUN).unwrap();
                }
                assert!(to.runs(&RunFilter::default()).unwrap().is_empty(), "{index}");
            }
            assert!(import(&mut *to, &file[..index]).is_err(), "{index}");
        }
        import(&mut *to, file.as_slice()).unwrap();
    }

    #[test]
    fn other_files_and_files_of_newer_versions_are_rejected() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = empty(&folder, "to");
        let mut refused = |lines: &str| {
            let file = zstd::encode_all(lines.as_bytes(), 1).unwrap();
            import(&mut *store, file.as_slice()).unwrap_err().to_string()
        };
        assert_eq!(refused("{}\n"), "it is not a run that `trialrun export` wrote");
        assert!(refused("{\"trialrun_export\":2,\"run\":\"a\"}\n").starts_with("a newer trialrun wrote it"));
        let header = "{\"trialrun_export\":1,\"run\":\"a\"}\n";
        assert_eq!(refused(header), "it is damaged: its end is missing");
        assert_eq!(refused(&format!("{header}{{\"events\":3}}\n")), "it is damaged: it has 0 of 3 events");
        assert!(refused(&format!("{header}{{\"v\":9}}\n")).starts_with("a newer trialrun wrote it"));
        assert!(import(&mut *store, &b"not compressed"[..]).is_err());
    }

    #[test]
    fn no_file_makes_an_import_panic_or_leaves_a_part_of_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = Vec::new();
        export(&*recorded(&folder, "from"), RUN, &mut file).unwrap();
        let lines = zstd::decode_all(file.as_slice()).unwrap();
        let to = std::cell::RefCell::new(empty(&folder, "to"));
        let check = |bytes: &[u8]| {
            let mut store = to.borrow_mut();
            let imported = import(&mut **store, bytes);
            let runs = store.runs(&RunFilter::default()).unwrap();
            assert_eq!(runs.len(), usize::from(imported.is_ok()), "{imported:?}");
            for run in runs {
                assert!(store.events(&run.id).unwrap().all(|event| event.is_ok()));
                store.verify(&run.id).unwrap();
                store.remove(&run.id).unwrap();
            }
        };
        testkit::fuzz(&[lines], |bytes| check(&zstd::encode_all(bytes, 1).unwrap()));
        testkit::fuzz(&[file], check);
    }
}
