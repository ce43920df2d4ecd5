//! Versions of tables, and the statements that bring older ones up to date.

use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use super::connection::quoted;
use crate::database_url::Settings;

/// Lock that a program holds while it changes tables; its second half is the hash of the schema's name.
const LOCK: i32 = 0x7472_6c6e;

/// Reason why tables cannot be used. They were not changed.
#[derive(Debug, thiserror::Error)]
pub enum MigrationError {
    /// A newer version of trialrun wrote them.
    #[error("format {found} is newer than {known}, which this version supports")]
    Newer {
        /// Format of the tables.
        found: u32,
        /// Newest format that this version knows.
        known: u32,
    },
    /// The schema has tables that are not trialrun's.
    #[error("the schema has tables of another program")]
    Foreign,
    /// The database stores text in an encoding without most characters.
    #[error("its encoding is {0}; create the database with `ENCODING 'UTF8'`")]
    Encoding(String),
    /// The server refused a statement, or was lost.
    #[error("{}", super::describe(.0))]
    Server(#[from] tokio_postgres::Error),
}

/// Returns the format of the tables of `part`; `None` if there are none.
///
/// # Errors
/// Returns an error if the server cannot be asked.
pub async fn format(client: &Client, part: &str) -> Result<Option<u32>, tokio_postgres::Error> {
    match client.query_opt("SELECT format FROM formats WHERE part = $1", &[&part]).await {
        Ok(row) => row.map(|row| row.try_get::<_, i32>(0)).transpose().map(|format| format.map(i32::unsigned_abs)),
        Err(error) if error.code() == Some(&SqlState::UNDEFINED_TABLE) => is_readable(client).await.map(|()| None),
        Err(error) => Err(error),
    }
}

/// Returns an error if the schema exists, and the user may not use it: its tables then look as if they did not exist.
async fn is_readable(client: &Client) -> Result<(), tokio_postgres::Error> {
    let schema: String = client.query_one("SHOW search_path", &[]).await?.try_get(0)?;
    match client.batch_execute(&format!("SELECT FROM {schema}.formats LIMIT 0")).await {
        Err(error) if error.code() == Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Err(error),
        _ => Ok(()),
    }
}

/// Brings the tables of `part` up to date: executes those of `steps` that they lack, of which each migrates format n to
/// format n + 1. All of them succeed or none, and only one program does this at a time.
///
/// # Errors
/// Returns an error if the tables are newer than `steps`, or cannot be changed.
pub async fn migrate(
    client: &mut Client,
    settings: &Settings,
    part: &str,
    steps: &[&str],
) -> Result<(), MigrationError> {
    let known = u32::try_from(steps.len()).unwrap_or(u32::MAX);
    // Usually there is nothing to do, and then nobody has to wait.
    if is_current(format(client, part).await?, known)? {
        return Ok(());
    }
    let transaction = client.transaction().await?;
    transaction.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", &[&LOCK, &settings.schema]).await?;
    let schema = "SELECT to_regnamespace($1)::oid IS NOT NULL,
             EXISTS (SELECT FROM pg_class WHERE relnamespace = to_regnamespace($1)::oid AND relkind = 'r'),
             to_regclass($1 || '.formats') IS NOT NULL";
    let row = transaction.query_one(schema, &[&quoted(&settings.schema)]).await?;
    let [exists, has_tables, is_ours]: [bool; 3] = [row.try_get(0)?, row.try_get(1)?, row.try_get(2)?];
    if has_tables && !is_ours {
        return Err(MigrationError::Foreign);
    }
    let encoding: String = transaction.query_one("SHOW server_encoding", &[]).await?.try_get(0)?;
    if encoding != "UTF8" {
        return Err(MigrationError::Encoding(encoding));
    }
    if !exists {
        transaction.batch_execute(&format!("CREATE SCHEMA {}", quoted(&settings.schema))).await?;
    }
    if !is_ours {
        transaction.batch_execute("CREATE TABLE formats (part TEXT PRIMARY KEY, format INT NOT NULL)").await?;
    }
    // Another program may have done it in the meantime.
    let found = format(transaction.client(), part).await?;
    if is_current(found, known)? {
        return Ok(transaction.commit().await?);
    }
    for step in steps.iter().skip(found.unwrap_or(0) as usize) {
        transaction.batch_execute(step).await?;
    }
    let set = "INSERT INTO formats (part, format) VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET format = $2";
    transaction.execute(set, &[&part, &known.cast_signed()]).await?;
    Ok(transaction.commit().await?)
}

fn is_current(found: Option<u32>, known: u32) -> Result<bool, MigrationError> {
    match found {
        Some(found) if found > known => Err(MigrationError::Newer { found, known }),
        found => Ok(found == Some(known)),
    }
}
