//! The statements of a worker.

use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::Announcement;
use crate::bundle::{Bundle, BundleFile};
use crate::database::{Database, PROGRESS, WORK, notify};
use crate::error::QueueError;

/// Key of the lock under which trials are claimed, so that limits over all machines hold.
const CLAIMS: i64 = 0x7472_6961_6c63;

/// Time after which a lease expires that its worker does not extend.
const LEASE: &str = "interval '30 seconds'";

/// Adds a chunk of events. After a lost connection, the same chunk may come again.
const APPEND: &str = "INSERT INTO queue_events (run, trial, attempt, chunk, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";

/// The lease of a worker on a trial.
#[derive(Debug, Clone)]
pub(crate) struct Claim {
    pub(crate) run: String,
    pub(crate) trial: String,
    /// Number of the lease, which fences off earlier ones.
    pub(crate) attempt: i32,
    pub(crate) spec: String,
    pub(crate) earlier: String,
}

impl Claim {
    /// Returns the id of the run, the id of the trial, and the number of the lease.
    pub(crate) fn key(&self) -> (String, String, i32) {
        (self.run.clone(), self.trial.clone(), self.attempt)
    }

    /// Returns a claim with this number, without anything else.
    pub(crate) fn of(attempt: i32) -> Self {
        Self { run: String::new(), trial: String::new(), attempt, spec: String::new(), earlier: String::new() }
    }
}

/// What the coordinator and its users want from the holder of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    /// Continue.
    Continue,
    /// End the agent politely.
    Stop,
    /// End it at once.
    Kill,
}

/// A lease that a worker holds.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) run: String,
    pub(crate) trial: String,
    pub(crate) attempt: i32,
    pub(crate) order: Order,
}

/// A run as a worker needs it.
pub(crate) struct RunEntry {
    pub(crate) spec: String,
    pub(crate) bundle: String,
    pub(crate) judge: Option<String>,
}

impl Database {
    /// Leases the next trial that this worker can run; `None` if there is none. `except` are runs that it cannot prepare.
    pub(crate) async fn claim(&self, worker: &Announcement, except: &[String]) -> Result<Option<Claim>, QueueError> {
        let sql = format!(
            "WITH open AS (
                 SELECT id, caps, most FROM queue_runs
                 WHERE state = 'running' AND coordinator_until > now() AND program = $3 AND id <> ALL ($4)
                     AND (max_cost IS NULL OR spent_cost <= max_cost)
                     AND (max_tokens IS NULL OR spent_tokens <= max_tokens)
             ), next AS (
                 SELECT trial.run, trial.id FROM queue_trials AS trial JOIN open ON open.id = trial.run
                 WHERE trial.state = 'waiting' AND NOT trial.is_cancelled AND trial.needs <@ $2
                     AND NOT EXISTS (
                         SELECT 1 FROM unnest(open.caps, open.most) AS cap (name, most)
                         WHERE cap.name = ANY (trial.caps) AND cap.most <= (
                             SELECT count(*) FROM queue_trials AS other
                             WHERE other.state = 'leased' AND cap.name = ANY (other.caps)
                         )
                     )
                 ORDER BY trial.place LIMIT 1 FOR UPDATE OF trial SKIP LOCKED
             ), claimed AS (
                 UPDATE queue_trials AS trial
                 SET state = 'leased', worker = $1, attempt = trial.attempt + 1, lease_until = clock_timestamp() + {LEASE}
                 FROM next WHERE trial.run = next.run AND trial.id = next.id
                 RETURNING trial.run, trial.id, trial.attempt, trial.spec, trial.earlier
             ), noted AS (
                 INSERT INTO queue_attempts (run, trial, attempt, worker, host)
                 SELECT run, id, attempt, $1, $5 FROM claimed
             )
             SELECT run, id, attempt, spec, earlier FROM claimed"
        );
        self.retry(|| async {
            let mut client = self.connection().await?;
            client.begin().await?;
            client.execute("SELECT pg_advisory_xact_lock($1)", &[&CLAIMS]).await?;
            // Without statistics, the planner expects few waiting trials, and would sort them all for each claim.
            client.execute("SET LOCAL enable_sort = off", &[]).await?;
            let row =
                client.query_opt(&sql, &[&worker.id, &worker.has, &worker.program, &except, &worker.name()]).await?;
            client.commit().await?;
            Ok(row.map(|row| Claim {
                run: row.get(0),
                trial: row.get(1),
                attempt: row.get(2),
                spec: row.get(3),
                earlier: row.get(4),
            }))
        })
        .await
    }

    /// Announces a worker, extends its leases that have not expired, and returns them.
    pub(crate) async fn heartbeat(&self, worker: &Announcement) -> Result<Vec<Held>, QueueError> {
        let sql = format!(
            "UPDATE queue_trials AS trial SET lease_until = now() + {LEASE} FROM queue_runs AS run
             WHERE run.id = trial.run AND trial.worker = $1 AND trial.state = 'leased' AND trial.lease_until >= now()
             RETURNING trial.run, trial.id, trial.attempt, trial.is_cancelled, run.state"
        );
        let held = |row: &Row| Held {
            run: row.get(0),
            trial: row.get(1),
            attempt: row.get(2),
            order: match (row.get(3), row.get(4)) {
                (_, "killing") => Order::Kill,
                (true, _) | (_, "stopping") => Order::Stop,
                _ => Order::Continue,
            },
        };
        self.retry(|| async {
            let client = self.connection().await?;
            let parameters: [&(dyn ToSql + Sync); 6] =
                [&worker.id, &worker.host, &worker.pid, &worker.program, &worker.has, &worker.slots];
            client
                .execute(
                    "INSERT INTO queue_workers (id, host, pid, program, has, slots) VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (id) DO UPDATE SET seen_at = now(), slots = excluded.slots, has = excluded.has",
                    &parameters,
                )
                .await?;
            Ok(client.query(&sql, &[&worker.id]).await?.iter().map(held).collect())
        })
        .await
    }

    /// Shares pauses for which providers asked this worker, each with the account and its rest in milliseconds. Returns
    /// all that have not ended.
    pub(crate) async fn share_pauses(&self, pauses: &[(String, i64)]) -> Result<Vec<(String, i64)>, QueueError> {
        let (accounts, rests): (Vec<&str>, Vec<i64>) =
            pauses.iter().map(|(account, rest)| (account.as_str(), *rest)).unzip();
        self.retry(|| async {
            let client = self.connection().await?;
            if !accounts.is_empty() {
                client
                    .execute(
                        "INSERT INTO queue_pauses (account, until)
                         SELECT account, now() + rest * interval '1 millisecond'
                         FROM unnest($1::text[], $2::bigint[]) AS pause (account, rest)
                         ON CONFLICT (account) DO UPDATE SET until = greatest(queue_pauses.until, excluded.until)",
                        &[&accounts, &rests],
                    )
                    .await?;
            }
            let sql = "SELECT account, (extract(epoch FROM until - now()) * 1000)::bigint FROM queue_pauses
                 WHERE until > now()";
            Ok(client.query(sql, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
        })
        .await
    }

    /// Removes a worker that has ended.
    pub(crate) async fn leave(&self, worker: &str) -> Result<(), QueueError> {
        self.execute("DELETE FROM queue_workers WHERE id = $1", &[&worker], Some(PROGRESS)).await?;
        Ok(())
    }

    /// Returns the run as a worker needs it; `None` if it is gone.
    pub(crate) async fn run_entry(&self, run: &str) -> Result<Option<RunEntry>, QueueError> {
        let sql = "SELECT spec, bundle, judge FROM queue_runs WHERE id = $1";
        let entry = |row: &Row| RunEntry { spec: row.get(0), bundle: row.get(1), judge: row.get(2) };
        Ok(self.rows(sql, &[&run], entry).await?.pop())
    }

    /// Returns the files of a bundle.
    pub(crate) async fn bundle(&self, digest: &str) -> Result<Bundle, QueueError> {
        let sql = "SELECT file.path, file.blob, file.is_executable, blob.body
             FROM queue_files AS file JOIN queue_blobs AS blob ON blob.digest = file.blob
             WHERE file.bundle = $1";
        let file = |row: &Row| BundleFile {
            path: row.get(0),
            digest: row.get(1),
            is_executable: row.get(2),
            packed: row.get(3),
        };
        Ok(Bundle { digest: digest.to_owned(), ..Bundle::of(self.rows(sql, &[&digest], file).await?) })
    }

    /// Adds events of an attempt, even if its lease has expired: they are evidence.
    pub(crate) async fn append(&self, claim: &Claim, number: i32, body: &[u8]) -> Result<(), QueueError> {
        let parameters: [&(dyn ToSql + Sync); 5] = [&claim.run, &claim.trial, &claim.attempt, &number, &body];
        self.execute(APPEND, &parameters, Some(PROGRESS)).await?;
        Ok(())
    }

    /// Finishes a trial with its last events. Returns `false` if the lease had expired, so that they do not count.
    pub(crate) async fn finish(
        &self,
        claim: &Claim,
        worker: &str,
        (number, body): (i32, &[u8]),
        (cost, tokens): (f64, f64),
    ) -> Result<bool, QueueError> {
        self.retry(|| async {
            let mut client = self.connection().await?;
            client.begin().await?;
            client.execute(APPEND, &[&claim.run, &claim.trial, &claim.attempt, &number, &body]).await?;
            let is_ours = client
                .execute(
                    "UPDATE queue_trials SET state = 'done', lease_until = NULL
                     WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'
                         AND lease_until >= clock_timestamp()",
                    &[&claim.run, &claim.trial, &claim.attempt, &worker],
                )
                .await?
                == 1;
            client
                .execute(
                    "UPDATE queue_attempts SET ended_at = now(), is_late = NOT $4 AND state <> 'finished',
                         state = CASE WHEN $4 THEN 'finished' ELSE state END
                     WHERE run = $1 AND trial = $2 AND attempt = $3",
                    &[&claim.run, &claim.trial, &claim.attempt, &is_ours],
                )
                .await?;
            // After a lost connection, it may have been finished before.
            let counts: bool = client
                .query_one(
                    "SELECT EXISTS (
                         SELECT 1 FROM queue_trials WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4
                             AND state IN ('done', 'taken')
                     )",
                    &[&claim.run, &claim.trial, &claim.attempt, &worker],
                )
                .await?
                .get(0);
            if is_ours {
                client
                    .execute(
                        "UPDATE queue_runs SET spent_cost = spent_cost + $2, spent_tokens = spent_tokens + $3
                         WHERE id = $1",
                        &[&claim.run, &cost, &tokens],
                    )
                    .await?;
            }
            client.batch_execute(&notify(PROGRESS)).await?;
            client.commit().await?;
            Ok(counts)
        })
        .await
    }

    /// Gives a trial back that this worker does not finish. Only the ids and the number of the claim are used.
    pub(crate) async fn release(&self, claim: &Claim, worker: &str, reason: &str) -> Result<(), QueueError> {
        let sql = "WITH released AS (
                 UPDATE queue_trials SET state = 'lost', lease_until = NULL
                 WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'
                 RETURNING run, id, attempt
             )
             UPDATE queue_attempts AS attempt SET state = 'lost', reason = $5, ended_at = now() FROM released
             WHERE attempt.run = released.run AND attempt.trial = released.id AND attempt.attempt = released.attempt";
        let parameters: [&(dyn ToSql + Sync); 5] = [&claim.run, &claim.trial, &claim.attempt, &worker, &reason];
        self.execute(sql, &parameters, Some(PROGRESS)).await?;
        Ok(())
    }

    /// Lets a trial wait again, because this worker cannot prepare its run.
    pub(crate) async fn refuse(&self, claim: &Claim, worker: &str, reason: &str) -> Result<(), QueueError> {
        let sql = "WITH refused AS (
                 UPDATE queue_trials SET state = 'waiting', worker = NULL, lease_until = NULL
                 WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'
                 RETURNING run, id, attempt
             )
             UPDATE queue_attempts AS attempt
             SET state = 'lost', is_refused = true, reason = $5, ended_at = now() FROM refused
             WHERE attempt.run = refused.run AND attempt.trial = refused.id AND attempt.attempt = refused.attempt";
        let parameters: [&(dyn ToSql + Sync); 5] = [&claim.run, &claim.trial, &claim.attempt, &worker, &reason];
        self.execute(sql, &parameters, Some(WORK)).await?;
        Ok(())
    }

    /// Returns `true` if a run has trials that wait or are held, or may still get some.
    pub(crate) async fn has_open_runs(&self) -> Result<bool, QueueError> {
        let sql = "SELECT id FROM queue_runs WHERE state <> 'finished' AND coordinator_until > now() LIMIT 1";
        Ok(!self.rows(sql, &[], |_| ()).await?.is_empty())
    }
}
