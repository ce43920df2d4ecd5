//! Reads what a comparison of a run with its chain of hashes needs.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use tokio_postgres::Row;

use super::pool::{PostgresError, Session, wait};
use super::query::{column, read_pack};
use super::results;
use crate::chain::Hash;
use crate::columns::{COLUMNS, Column};
use crate::comparison::{DOCUMENTS, Link, RUN_COLUMNS, StoredRun, StoredTrial, compare};
use crate::packs::PackRange;
use crate::{Difference, StoreError, Verification};

/// Time limit for reading a pack.
const PACK: Duration = Duration::from_secs(60);

/// Compares a run with its chain. Must be called in a transaction.
pub(super) async fn verify(session: &mut Session, run: i64, id: &str) -> Result<Verification, PostgresError> {
    let late = "SELECT DISTINCT journal.trial FROM journal JOIN trials ON trials.run = journal.run AND trials.id = journal.trial
         WHERE journal.run = $1 ORDER BY 1";
    let late = session.query(late, &[&run]).await?;
    let info = session.first("SELECT info FROM infos WHERE run = $1", &[&run]).await?;
    let select =
        format!("SELECT {}, {}, summary FROM runs WHERE no = $1", RUN_COLUMNS.join(", "), DOCUMENTS.join(", "));
    let row = session.first(&select, &[&run]).await?.ok_or_else(|| StoreError::UnknownRun(id.to_owned()))?;
    let mut columns = [const { Column::Null }; RUN_COLUMNS.len()];
    for (at, value) in columns.iter_mut().enumerate() {
        *value = column(&row, at)?;
    }
    let mut documents = [const { None }; DOCUMENTS.len()];
    for (at, document) in documents.iter_mut().enumerate() {
        *document = row.try_get(RUN_COLUMNS.len() + at)?;
    }
    let stored = StoredRun {
        links: links(session, run).await?,
        head: head(session, run).await?,
        trials: trials(session, run).await?,
        events: run_events(session, run).await?,
        late: late.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?,
        info: info.map(|row| row.try_get(0)).transpose()?,
        columns,
        summary: row.try_get("summary")?,
        documents,
    };
    // The comparison waits for each pack, as it does for a file.
    let verification = compare(id, stored, |pack| {
        let lost = || StoreError::Backend("the connection was lost".to_owned());
        Ok(wait(read_pack(session, pack), PACK).ok_or_else(lost)??)
    })?;
    let changed = changed_results(session, run).await?;
    Ok(match verification {
        Verification::Intact { .. } if !changed.is_empty() => Verification::Changed { differences: changed },
        Verification::Changed { mut differences } => {
            differences.extend(changed);
            Verification::Changed { differences }
        }
        verification => verification,
    })
}

/// Compares the results of cases with the trials from which they were derived.
async fn changed_results(session: &mut Session, run: i64) -> Result<Vec<Difference>, PostgresError> {
    let rows = session.query(&results::differences(), &[&run]).await?;
    let difference = |row: &Row| {
        let (suite, case): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        let reason = format!("the results of {suite}::{case} do not match its trials");
        Ok(Difference { trial: None, reason })
    };
    rows.iter().map(difference).collect()
}

/// Returns the stored hash. A value of any other length is not the hash of a link.
pub(super) fn hash(stored: &[u8]) -> Hash {
    stored.try_into().unwrap_or_default()
}

/// Returns the hash of the run's last link; `None` if it has no chain.
pub(super) async fn head(session: &mut Session, run: i64) -> Result<Option<Hash>, PostgresError> {
    let row = session.first("SELECT chain FROM runs WHERE no = $1", &[&run]).await?;
    let stored = row.as_ref().map(|row| row.try_get::<_, Option<&[u8]>>(0)).transpose()?.flatten();
    Ok(stored.map(hash))
}

/// Returns the links of a run in order.
pub(super) async fn links(session: &mut Session, run: i64) -> Result<Vec<Link>, PostgresError> {
    let rows = session.query("SELECT seq, trial, digest, hash FROM links WHERE run = $1 ORDER BY seq", &[&run]).await?;
    let link = |row: &Row| {
        Ok(Link {
            seq: row.try_get::<_, i64>(0)?.unsigned_abs(),
            trial: row.try_get(1)?,
            digest: row.try_get(2)?,
            hash: row.try_get(3)?,
        })
    };
    rows.iter().map(link).collect()
}

async fn trials(session: &mut Session, run: i64) -> Result<HashMap<String, StoredTrial>, PostgresError> {
    let select =
        format!("SELECT id, pack, pack_start, pack_end, settings, {} FROM trials WHERE run = $1", COLUMNS.join(", "));
    let mut trials = HashMap::new();
    for row in session.query(&select, &[&run]).await? {
        let place = PackRange::new(row.try_get(1)?, row.try_get(2)?, row.try_get(3)?);
        let columns = (0..COLUMNS.len()).map(|at| column(&row, at + 5)).collect::<Result<_, _>>()?;
        trials.insert(row.try_get(0)?, StoredTrial { place, columns, settings: column(&row, 4)? });
    }
    Ok(trials)
}

/// Returns the events of the run itself, by number.
async fn run_events(session: &mut Session, run: i64) -> Result<BTreeMap<u64, String>, PostgresError> {
    let rows = session.query("SELECT seq, event FROM journal WHERE run = $1 AND trial = ''", &[&run]).await?;
    rows.iter().map(|row| Ok((row.try_get::<_, i64>(0)?.unsigned_abs(), row.try_get(1)?))).collect()
}
