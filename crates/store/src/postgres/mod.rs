//! Record in a PostgreSQL database, which several machines share.

mod append;
mod connection;
mod events;
mod judgements;
mod lease;
mod migration;
mod pool;
mod query;
mod results;
mod schema;
#[cfg(test)]
mod tests;
mod tls;
mod verify;

use std::hash::{BuildHasher, Hasher, RandomState};

use jiff::Timestamp;
use model::{
    Envelope, Event, Lease, LiveTrial, Owner, RunInfo, RunResults, RunRow, SideEffects, Summary, TrialRecord, TrialRow,
};

use self::append::Writer;
use self::judgements::PostgresJudgements;
use self::pool::{Pool, PostgresError, Session};
use self::query::Trials;
use crate::chain_writer::Chains;
use crate::pack::{Packer, damaged};
use crate::{Judgements, Location, ResultFilter, RunFilter, Store, StoreError, StoredEvent, TrialFilter, Verification};

pub use crate::database_url::{SCHEMES, Settings, SettingsError, SslMode, Surroundings};
pub use connection::{ConnectError, connect, connect_listening, describe, is_lost};
pub use migration::{MigrationError, format, migrate};

/// Number of trials up to which a list is read at once.
const PAGE: usize = 500;

/// Record in a database. Only one process writes a run; others may read it, and write other runs, at the same time.
pub(crate) struct PostgresStore {
    pool: Pool,
    packer: Packer,
    chains: Chains,
    /// Stored form of the owner of runs that are written through this store.
    owner: Option<String>,
    /// Number of the last batch. The first one is random, so that no other writer has used it.
    batch: i64,
}

impl PostgresStore {
    fn with(pool: Pool, owner: Option<String>) -> Result<Self, StoreError> {
        let batch = RandomState::new().build_hasher().finish().cast_signed();
        Ok(Self { pool, packer: Packer::new()?, chains: Chains::default(), owner, batch })
    }

    /// Opens the record to write runs as `owner`, and creates its tables if they do not exist.
    pub(crate) fn open(settings: &Settings, owner: &Owner) -> Result<Self, StoreError> {
        let pool = Pool::open(settings)?;
        migrate_record(&pool)?;
        Self::with(pool, Some(lease::stored(owner)?))
    }

    /// Opens the record; `None` if it has no tables. Creates nothing.
    pub(crate) fn open_existing(settings: &Settings) -> Result<Option<Self>, StoreError> {
        let pool = Pool::open(settings)?;
        if pool.run(async |session| Ok(format(&session.client, schema::PART).await?))?.is_none() {
            return Ok(None);
        }
        migrate_record(&pool)?;
        Self::with(pool, None).map(Some)
    }
}

/// Brings the tables of the record up to date. Those of a newer version are rejected and stay unchanged.
fn migrate_record(pool: &Pool) -> Result<(), StoreError> {
    let settings = pool.settings();
    let location = || Location::Postgres(Box::new(settings.clone()));
    pool.run(async |session| {
        let migrated = migrate(&mut session.client, settings, schema::PART, schema::STEPS).await;
        migrated.map_err(|error| match error {
            MigrationError::Newer { found, known } => StoreError::Newer { location: location(), found, known }.into(),
            MigrationError::Foreign => StoreError::Foreign { location: location() }.into(),
            MigrationError::Encoding(_) => StoreError::Open { location: location(), reason: error.to_string() }.into(),
            MigrationError::Server(error) if is_lost(&error) => PostgresError::from(error),
            MigrationError::Server(error) => {
                let reason = format!("its tables cannot be created or brought up to date: {}", describe(&error));
                StoreError::Open { location: location(), reason }.into()
            }
        })
    })
}

impl Store for PostgresStore {
    fn append(&mut self, events: &[Envelope]) -> Result<(), StoreError> {
        self.batch = self.batch.wrapping_add(1);
        let (packer, owner, batch) = (&mut self.packer, self.owner.as_deref(), self.batch);
        let mut after = None;
        let stored = self.pool.run(async |session| {
            session
                .transaction(async |session| {
                    // If an attempt fails, another one begins with what was known before. If only the answer to it was
                    // lost, what it computed is right.
                    let mut chains = self.chains.clone();
                    let writer = Writer { packer: &mut *packer, chains: &mut chains, owner, batch };
                    if append::append(session, writer, events).await? {
                        after = Some(chains);
                    }
                    Ok(())
                })
                .await
        });
        self.chains = after.filter(|_| stored.is_ok()).unwrap_or_default();
        stored
    }

    fn renew(&mut self, run: &str, at: Timestamp) -> Result<(), StoreError> {
        self.pool.run(async |session| lease::renew(session, self.owner.as_deref(), run, at).await)
    }

    fn runs(&self, filter: &RunFilter) -> Result<Vec<RunRow>, StoreError> {
        self.pool.run(async |session| query::runs(session, filter).await)
    }

    fn info(&self, run: &str) -> Result<RunInfo, StoreError> {
        self.pool.run(async |session| query::info(session, run).await)
    }

    fn summary(&self, run: &str) -> Result<Summary, StoreError> {
        self.pool.run(async |session| {
            let run = run_number(session, run).await?;
            results::summary(session, run).await
        })
    }

    fn results(&self, filter: &ResultFilter) -> Result<Vec<RunResults>, StoreError> {
        self.pool.run(async |session| results::results(session, filter).await)
    }

    fn cases(&self) -> Result<Vec<(String, String)>, StoreError> {
        self.pool.run(async |session| results::cases(session).await)
    }

    fn each_trial(&self, filter: &TrialFilter, take: &mut dyn FnMut(TrialRow) -> bool) -> Result<(), StoreError> {
        let trials = Trials::new(filter);
        if filter.last.is_some_and(|last| last <= PAGE) {
            let rows = self.pool.run(async |session| trials.read(session).await)?;
            let _ = rows.into_iter().try_for_each(|row| take(row).then_some(()));
            return Ok(());
        }
        let mut snapshot = self.pool.snapshot()?;
        snapshot.run(async |session| trials.declare(session).await)?;
        loop {
            let rows = snapshot.run(async |session| query::fetch(session, PAGE).await)?;
            let is_last = rows.len() < PAGE;
            if rows.into_iter().try_for_each(|row| take(row).then_some(())).is_none() || is_last {
                return Ok(());
            }
        }
    }

    fn records(&self, run: &str, trials: &[&str]) -> Result<Vec<TrialRecord>, StoreError> {
        self.pool.run(async |session| query::records(session, run, trials).await)
    }

    fn trial_events(&self, run: &str, trial: &str) -> Result<Vec<StoredEvent>, StoreError> {
        // A trial that finishes in between would have no events.
        self.pool.snapshot()?.run(async |session| {
            let run = run_number(session, run).await?;
            events::of_trial(session, run, trial).await
        })
    }

    fn events<'a>(
        &'a self,
        run: &str,
    ) -> Result<Box<dyn Iterator<Item = Result<StoredEvent, StoreError>> + 'a>, StoreError> {
        Ok(Box::new(events::of_run(self.pool.snapshot()?, run)?))
    }

    fn live(&self, run: &str) -> Result<Vec<LiveTrial>, StoreError> {
        self.pool.snapshot()?.run(async |session| {
            let run = run_number(session, run).await?;
            events::live(session, run).await
        })
    }

    fn reopen(&mut self, run: &str, lease: Option<&Lease>, at: Timestamp) -> Result<(), StoreError> {
        self.chains.clear();
        let owner = self.owner.as_deref();
        self.pool.run(async |session| {
            session.transaction(async |session| append::reopen(session, owner, at, run, lease).await).await
        })
    }

    fn rewrite(&mut self, run: &str, trial: &str, change: &mut dyn FnMut(&mut Event)) -> Result<(), StoreError> {
        let (run, (before, after)) = self.pool.run(async |session| {
            session
                .transaction(async |session| {
                    let run = run_number(session, run).await?;
                    Ok((run, append::rewrite(session, run, trial, change).await?))
                })
                .await
        })?;
        self.chains.renote(run, trial, &before, &after);
        Ok(())
    }

    fn verify(&self, run: &str) -> Result<Verification, StoreError> {
        self.pool.snapshot()?.run(async |session| {
            let number = run_number(session, run).await?;
            verify::verify(session, number, run).await
        })
    }

    fn remove_chain(&mut self, run: &str) -> Result<(), StoreError> {
        self.chains.clear();
        self.pool.run(async |session| {
            session
                .transaction(async |session| {
                    let run = run_number(session, run).await?;
                    session.execute("DELETE FROM links WHERE run = $1", &[&run]).await?;
                    session.execute("UPDATE runs SET chain = NULL WHERE no = $1", &[&run]).await?;
                    Ok(())
                })
                .await
        })
    }

    fn record_cleanup(&mut self, run: &str, removed: &[SideEffects]) -> Result<(), StoreError> {
        self.pool.run(async |session| {
            session
                .transaction(async |session| {
                    // Another process may do the same.
                    let select = "SELECT no FROM runs WHERE id = $1 FOR UPDATE";
                    session.query(select, &[&run]).await?;
                    let number = run_number(session, run).await?;
                    let mut all = cleaned(session, number).await?;
                    // If the answer to an earlier attempt was lost, they are there.
                    if !all.ends_with(removed) {
                        all.extend(removed.iter().cloned());
                    }
                    let text = serde_json::to_string(&all).map_err(|error| damaged(&error))?;
                    let insert = "INSERT INTO cleanups (run, removed) VALUES ($1, $2)
                         ON CONFLICT (run) DO UPDATE SET removed = $2";
                    session.execute(insert, &[&number, &text]).await?;
                    Ok(())
                })
                .await
        })
    }

    fn cleaned(&self, run: &str) -> Result<Vec<SideEffects>, StoreError> {
        self.pool.run(async |session| {
            let run = run_number(session, run).await?;
            cleaned(session, run).await
        })
    }

    fn remove(&mut self, run: &str) -> Result<(), StoreError> {
        self.chains.clear();
        let mut is_repeated = false;
        self.pool.run(async |session| {
            let number = match run_number(session, run).await {
                // The answer to the first attempt was lost.
                Err(PostgresError::Store(StoreError::UnknownRun(_))) if is_repeated => return Ok(()),
                number => number?,
            };
            is_repeated = true;
            session
                .transaction(async |session| {
                    // A writer of the run finishes its batch first.
                    session.execute("DELETE FROM runs WHERE no = $1", &[&number]).await?;
                    for table in schema::TABLES_OF_A_RUN {
                        session.execute(&format!("DELETE FROM {table} WHERE run = $1"), &[&number]).await?;
                    }
                    Ok(())
                })
                .await
        })
    }

    fn judgements(&self, since: Timestamp) -> Result<Box<dyn Judgements>, StoreError> {
        Ok(Box::new(PostgresJudgements::open(self.pool.settings(), since)?))
    }
}

/// Returns the number of the run with that id.
async fn run_number(session: &mut Session, id: &str) -> Result<i64, PostgresError> {
    let row = session.first("SELECT no FROM runs WHERE id = $1", &[&id]).await?;
    let row = row.ok_or_else(|| StoreError::UnknownRun(id.to_owned()))?;
    Ok(row.try_get(0)?)
}

/// Returns the side effects that were removed after a run.
async fn cleaned(session: &mut Session, run: i64) -> Result<Vec<SideEffects>, PostgresError> {
    let row = session.first("SELECT removed FROM cleanups WHERE run = $1", &[&run]).await?;
    let text = row.as_ref().map(|row| row.try_get::<_, &str>(0)).transpose()?;
    Ok(text.map(serde_json::from_str).transpose().map_err(|error| damaged(&error))?.unwrap_or_default())
}
