//! Compares a run with its chain of hashes, and the columns for lists with the events from which they were derived.

use std::collections::{BTreeMap, HashMap};

use model::{Envelope, Event, RunInfo, TrialRecord};

use crate::chain::{Hash, digest, link, start};
use crate::columns::{COLUMNS, Column, columns};
use crate::pack::{event, unpack};
use crate::packs::{PackRange, Packs};
use crate::test_files::TestFiles;
use crate::{Difference, StoreError, Verification};

/// Columns of a run that are compared with its first and last event, in the order of [`StoredRun::columns`].
pub(crate) const RUN_COLUMNS: [&str; 10] = [
    "version",
    "label",
    "regrade_of",
    "started_us",
    "planned",
    "finished",
    "finished_us",
    "duration_ms",
    "signal",
    "sequential",
];

/// Columns of a run that contain JSON, in the order of [`StoredRun::documents`].
pub(crate) const DOCUMENTS: [&str; 3] = ["agents", "test_files", "missing_shards"];

/// A link as stored.
pub(crate) struct Link {
    pub(crate) seq: u64,
    /// Id of the trial; empty for an event of the run itself.
    pub(crate) trial: String,
    pub(crate) digest: Vec<u8>,
    pub(crate) hash: Vec<u8>,
}

/// A run as stored.
pub(crate) struct StoredRun {
    /// In order.
    pub(crate) links: Vec<Link>,
    /// Hash of the last link.
    pub(crate) head: Option<Hash>,
    /// Finished trials, by id.
    pub(crate) trials: HashMap<String, StoredTrial>,
    /// Events of the run itself, by number.
    pub(crate) events: BTreeMap<u64, String>,
    /// Ids of finished trials that have events outside of their pack.
    pub(crate) late: Vec<String>,
    /// Its plan, packed.
    pub(crate) info: Option<Vec<u8>>,
    pub(crate) columns: [Column<'static>; RUN_COLUMNS.len()],
    /// JSON.
    pub(crate) summary: Option<String>,
    pub(crate) documents: [Option<String>; DOCUMENTS.len()],
}

/// A trial as stored.
pub(crate) struct StoredTrial {
    /// Location of its events.
    pub(crate) place: PackRange,
    /// Values of [`COLUMNS`].
    pub(crate) columns: Vec<Column<'static>>,
    /// Its [fingerprint](TestFiles::fingerprint), by which trials of several runs are compared.
    pub(crate) settings: Column<'static>,
}

/// Compares a run with its chain. `read` returns the pack with that number, if there is one.
pub(crate) fn compare(
    id: &str,
    run: StoredRun,
    read: impl FnMut(i64) -> Result<Option<Vec<u8>>, StoreError>,
) -> Result<Verification, StoreError> {
    let Some(head) = run.head else {
        if run.links.is_empty() {
            return Ok(Verification::Unchained);
        }
        let reason = "its hash was removed".to_owned();
        return Ok(Verification::Changed { differences: vec![Difference { trial: None, reason }] });
    };
    let mut found = Comparison {
        run,
        files: None,
        read,
        packs: Packs::default(),
        finished: 0,
        last: Vec::new(),
        differences: Vec::new(),
    };
    let mut previous = start(id);
    for link in std::mem::take(&mut found.run.links) {
        previous = found.link(&previous, &link)?;
    }
    found.rest();
    if previous != head {
        found.differ(None, "its hash does not follow from its trials and events; the last of them were removed");
    }
    found.lists();
    Ok(match found.differences {
        differences if differences.is_empty() => {
            Verification::Intact { hash: model::text::hex(&head), trials: found.finished }
        }
        differences => Verification::Changed { differences },
    })
}

/// Comparison of a run with its chain.
struct Comparison<R> {
    /// Trials and events that no link has covered yet, and everything else of the run.
    run: StoredRun,
    /// Its test files, if this version recorded it.
    files: Option<TestFiles>,
    read: R,
    packs: Packs,
    /// Number of trials covered by links.
    finished: usize,
    /// First and last event of the run itself.
    last: Vec<String>,
    differences: Vec<Difference>,
}

impl<R: FnMut(i64) -> Result<Option<Vec<u8>>, StoreError>> Comparison<R> {
    fn differ(&mut self, trial: Option<&str>, reason: impl Into<String>) {
        self.differences.push(Difference { trial: trial.map(str::to_owned), reason: reason.into() });
    }

    /// Compares a link with the previous one and with the data that it covers. Returns its hash.
    fn link(&mut self, previous: &Hash, stored: &Link) -> Result<Hash, StoreError> {
        let expected: Hash = stored.digest.clone().try_into().unwrap_or_default();
        let hash = link(previous, stored.seq, &stored.trial, &expected);
        if stored.trial.is_empty() {
            self.run_event(stored, &expected);
        } else {
            self.trial(stored, &expected)?;
        }
        if stored.hash != hash {
            let trial = Some(stored.trial.as_str()).filter(|trial| !trial.is_empty());
            self.differ(trial, "its hash does not follow from the one before; links were changed, removed or added");
        }
        // The following links are compared with the stored hash, so that each difference is reported only once.
        Ok(stored.hash.clone().try_into().unwrap_or_default())
    }

    fn run_event(&mut self, stored: &Link, expected: &Hash) {
        match self.run.events.remove(&stored.seq) {
            None => self.differ(None, format!("its event {} was removed", stored.seq)),
            Some(line) if digest(line.as_bytes()) != *expected => {
                self.differ(None, format!("its event {} was changed", stored.seq));
            }
            Some(line) => {
                if self.last.is_empty()
                    && let Some(Event::RunStarted(info)) =
                        event(&line).ok().and_then(|(_, event)| Some(event.known()?.event))
                    // Another version may compute other fingerprints.
                    && info.trialrun_version == env!("CARGO_PKG_VERSION")
                {
                    self.files = Some(TestFiles::of(&info));
                }
                self.last.truncate(1);
                self.last.push(line);
            }
        }
    }

    fn trial(&mut self, stored: &Link, expected: &Hash) -> Result<(), StoreError> {
        let id = stored.trial.as_str();
        let Some(trial) = self.run.trials.remove(id) else {
            self.differ(Some(id), "it was removed");
            return Ok(());
        };
        self.finished += 1;
        let lines = match self.packs.lines(trial.place, &mut self.read) {
            // A pack that was changed may not even be readable.
            Err(StoreError::Damaged(_)) => "",
            lines => lines?,
        };
        if digest(lines.as_bytes()) != *expected {
            self.differ(Some(id), "its events were changed");
            return Ok(());
        }
        let last = lines.lines().next_back().and_then(|line| event(line).ok());
        let record = last.and_then(|(_, event)| event.known()).map(|envelope| envelope.event);
        if let Some(Event::TrialFinished(record)) = record {
            self.columns(id, &record, &trial.columns);
            let settings = self.files.as_ref().map(|files| Column::from(files.fingerprint(&record)));
            // Older trials have none.
            if trial.settings != Column::Null && settings.is_some_and(|settings| !settings.is_same(&trial.settings)) {
                self.differ(Some(id), "`settings` in the list of trials does not match its events");
            }
        }
        Ok(())
    }

    /// Compares the columns that lists show for a trial with its record.
    fn columns(&mut self, id: &str, record: &TrialRecord, stored: &[Column<'_>]) {
        for ((name, expected), found) in COLUMNS.iter().zip(columns(record)).zip(stored) {
            // Older trials do not have these, and readers of a trial without them take its events.
            let is_old = ["least_score", "most_score"].contains(name) && *found == Column::Null;
            if !is_old && !expected.is_same(found) {
                self.differ(
                    Some(id),
                    format!("`{name}` is {found} in the list of trials, and {expected} in its events"),
                );
            }
        }
    }

    /// Reports everything that no link has covered.
    fn rest(&mut self) {
        let mut added: Vec<String> = std::mem::take(&mut self.run.trials).into_keys().collect();
        added.sort();
        for id in &added {
            self.differ(Some(id), "it was added");
        }
        for number in std::mem::take(&mut self.run.events).into_keys() {
            self.differ(None, format!("its event {number} was added"));
        }
        for id in std::mem::take(&mut self.run.late) {
            self.differ(Some(&id), "events were added to it");
        }
    }

    /// Compares the columns that lists show for the run with its first and its last event.
    fn lists(&mut self) {
        let events = self.last.iter().filter_map(|line| event(line).ok()?.1.known()).collect::<Vec<Envelope>>();
        let Some(Event::RunStarted(info)) = events.first().map(|envelope| &envelope.event) else { return };
        let packed = self.run.info.take();
        let stored = packed.and_then(|packed| serde_json::from_slice::<RunInfo>(&unpack(&packed).ok()?).ok());
        if stored.as_ref() != Some(info) {
            self.differ(None, "its plan was changed");
        }
        let end = events.last().and_then(|envelope| match &envelope.event {
            Event::RunFinished { summary, duration_ms, signal } => Some((envelope.at, summary, *duration_ms, signal)),
            _ => None,
        });
        let expected: [Column<'_>; RUN_COLUMNS.len()] = [
            info.trialrun_version.as_str().into(),
            info.label.as_deref().into(),
            info.regrade_of.as_deref().into(),
            info.started_at.as_microsecond().into(),
            (info.trials.len() as i64).into(),
            (self.finished as i64).into(),
            end.map(|(at, ..)| at.as_microsecond()).into(),
            end.map(|(_, _, duration_ms, _)| duration_ms as i64).into(),
            end.and_then(|(.., signal)| signal.as_deref()).into(),
            (info.decisions > 0).into(),
        ];
        let summary = self.run.summary.take();
        if summary.and_then(|summary| serde_json::from_str(&summary).ok()).as_ref()
            != end.map(|(_, summary, ..)| summary)
        {
            self.differ(None, "its totals were changed");
        }
        let stored = std::mem::replace(&mut self.run.columns, [const { Column::Null }; RUN_COLUMNS.len()]);
        for ((name, expected), stored) in RUN_COLUMNS.into_iter().zip(&expected).zip(&stored) {
            // Older versions did not set it; the list then takes it from the plan.
            let is_unset = name == "sequential" && *stored == Column::Null;
            if !is_unset && !expected.is_same(stored) {
                self.differ(None, format!("`{name}` in the list of runs does not match its events"));
            }
        }
        self.documents(info);
    }

    /// Compares the columns of the run that contain JSON with its first event.
    fn documents(&mut self, info: &RunInfo) {
        let expected = [
            serde_json::to_value(&info.agents),
            TestFiles::of(info).to_json().and_then(|json| serde_json::from_str(&json)),
            serde_json::to_value(&info.missing_shards),
        ];
        let stored = std::mem::take(&mut self.run.documents);
        for ((name, expected), stored) in DOCUMENTS.into_iter().zip(expected).zip(stored) {
            let stored = stored.map_or(Some(serde_json::Value::Null), |json| serde_json::from_str(&json).ok());
            if stored != expected.ok() {
                self.differ(None, format!("`{name}` in the list of runs does not match its events"));
            }
        }
    }
}
