//! Tables of the queue. They have a schema of their own beside that of the record. A run in the queue need not be
//! recorded in the same database.

use tokio_postgres::Client;

use crate::error::QueueError;

/// Steps that bring the tables up to date, one for each version.
const STEPS: [&str; 2] = [
    "
CREATE TABLE queue_runs (
    id text PRIMARY KEY,
    label text,
    spec text NOT NULL,
    bundle text NOT NULL,
    program text NOT NULL,
    judge text,
    caps text[] NOT NULL,
    most bigint[] NOT NULL,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'paused', 'stopping', 'killing', 'finished')),
    max_cost double precision,
    max_tokens double precision,
    spent_cost double precision NOT NULL,
    spent_tokens double precision NOT NULL,
    coordinator text NOT NULL,
    coordinator_until timestamptz NOT NULL,
    created_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE queue_trials (
    run text NOT NULL REFERENCES queue_runs ON DELETE CASCADE,
    id text NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    spec text NOT NULL,
    needs text[] NOT NULL,
    caps text[] NOT NULL,
    earlier text NOT NULL,
    state text NOT NULL DEFAULT 'waiting' CHECK (state IN ('waiting', 'leased', 'lost', 'done', 'taken')),
    is_cancelled boolean NOT NULL DEFAULT false,
    attempt integer NOT NULL DEFAULT 0,
    worker text,
    lease_until timestamptz,
    PRIMARY KEY (run, id)
);
CREATE INDEX queue_trials_waiting ON queue_trials (place) WHERE state = 'waiting';
CREATE INDEX queue_trials_held ON queue_trials (run, id) WHERE state IN ('leased', 'lost', 'done');
CREATE TABLE queue_attempts (
    run text NOT NULL REFERENCES queue_runs ON DELETE CASCADE,
    trial text NOT NULL,
    attempt integer NOT NULL,
    worker text NOT NULL,
    host text NOT NULL,
    state text NOT NULL DEFAULT 'running' CHECK (state IN ('running', 'finished', 'lost')),
    is_late boolean NOT NULL DEFAULT false,
    is_refused boolean NOT NULL DEFAULT false,
    reason text,
    started_at timestamptz NOT NULL DEFAULT now(),
    ended_at timestamptz,
    PRIMARY KEY (run, trial, attempt)
);
CREATE TABLE queue_events (
    run text NOT NULL REFERENCES queue_runs ON DELETE CASCADE,
    trial text NOT NULL,
    attempt integer NOT NULL,
    chunk integer NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (run, trial, attempt, chunk)
);
CREATE TABLE queue_workers (
    id text PRIMARY KEY,
    host text NOT NULL,
    pid integer NOT NULL,
    program text NOT NULL,
    has text[] NOT NULL,
    slots bigint NOT NULL,
    seen_at timestamptz NOT NULL DEFAULT now(),
    started_at timestamptz NOT NULL DEFAULT now()
);
CREATE TABLE queue_files (
    bundle text NOT NULL,
    path text NOT NULL,
    blob text NOT NULL,
    is_executable boolean NOT NULL,
    PRIMARY KEY (bundle, path)
);
CREATE TABLE queue_blobs (
    digest text PRIMARY KEY,
    body bytea NOT NULL
);
",
    "
CREATE TABLE queue_pauses (
    account text PRIMARY KEY,
    until timestamptz NOT NULL
);
",
];

/// Key of the lock under which tables are changed.
const LOCK: i64 = 0x7472_6961_6c71;

/// Creates the tables, or brings them up to date.
pub(crate) async fn prepare(client: &Client) -> Result<(), QueueError> {
    let known = i32::try_from(STEPS.len()).unwrap_or(i32::MAX);
    // The transaction ends with the statement, so a failure leaves nothing behind.
    client.batch_execute(&format!("BEGIN; SELECT pg_advisory_xact_lock({LOCK})")).await?;
    let prepared = async {
        // The search path is the schema of the queue, as an SQL name.
        client
            .batch_execute(
                "DO $$ BEGIN EXECUTE 'CREATE SCHEMA IF NOT EXISTS ' || current_setting('search_path'); END $$;
                 CREATE TABLE IF NOT EXISTS queue_version (version integer NOT NULL)",
            )
            .await?;
        let row = client.query_opt("SELECT version FROM queue_version", &[]).await?;
        let version: i32 = row.map_or(0, |row| row.get(0));
        if version > known {
            return Err(QueueError::Newer(version, known));
        }
        for step in STEPS.iter().skip(usize::try_from(version).unwrap_or_default()) {
            client.batch_execute(step).await?;
        }
        if version < known {
            client
                .batch_execute(&format!("DELETE FROM queue_version; INSERT INTO queue_version VALUES ({known})"))
                .await?;
        }
        Ok(())
    };
    let prepared = prepared.await;
    client.batch_execute(if prepared.is_ok() { "COMMIT" } else { "ROLLBACK" }).await?;
    prepared
}
