//! Judgements in a table of their own. All members of a team share them.

use jiff::Timestamp;

use super::pool::Pool;
use crate::database_url::Settings;
use crate::{Judgements, StoreError};

/// Judgements, with a connection of their own: trials are graded while events are recorded.
pub(super) struct PostgresJudgements {
    pool: Pool,
}

impl PostgresJudgements {
    /// Removes judgements that were stored before `since`.
    pub(super) fn open(settings: &Settings, since: Timestamp) -> Result<Self, StoreError> {
        let pool = Pool::open(settings)?;
        pool.run(async |session| {
            session.execute("DELETE FROM judgements WHERE stored_s < $1", &[&since.as_second()]).await
        })?;
        Ok(Self { pool })
    }
}

impl Judgements for PostgresJudgements {
    fn get(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.pool.run(async |session| {
            let row = session.first("SELECT judgement FROM judgements WHERE key = $1", &[&key]).await?;
            Ok(row.map(|row| row.try_get(0)).transpose()?)
        })
    }

    fn put(&self, key: &str, judgement: &str, at: Timestamp) -> Result<(), StoreError> {
        let insert = "INSERT INTO judgements (key, stored_s, judgement) VALUES ($1, $2, $3)
             ON CONFLICT (key) DO UPDATE SET stored_s = $2, judgement = $3";
        self.pool.run(async |session| session.execute(insert, &[&key, &at.as_second(), &judgement]).await)?;
        Ok(())
    }
}
