//! The statements of the queue. All times are those of the server.
//!
//! A trial waits, is leased by a worker, and is done; or its lease expires, and it is lost until its coordinator lets it
//! wait again. Each lease has the number of an attempt, without which a worker can neither extend nor finish it.

use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use crate::bundle::{Bundle, BundleFile};
use crate::database::{Database, PROGRESS, WORK};
use crate::error::QueueError;

/// Key of the lock under which trials are claimed, so that limits over all machines hold.
const CLAIMS: i64 = 0x7472_6961_6c63;

/// Key of the lock under which bundles are added and removed.
const BUNDLES: i64 = 0x7472_6961_6c62;

/// Time after which a lease expires that its worker does not extend.
const LEASE: &str = "interval '30 seconds'";

/// Time after which a coordinator that does not answer counts as dead. Workers then start none of its trials, and
/// another process can take its run over.
const COORDINATOR: &str = "interval '30 seconds'";

/// Time after which a worker that does not answer counts as gone.
const WORKER: &str = "interval '15 seconds'";

/// A run as its coordinator enters it.
pub(crate) struct NewRun<'a> {
    pub(crate) id: &'a str,
    pub(crate) label: Option<&'a str>,
    /// The `RunSpec`, as JSON.
    pub(crate) spec: &'a str,
    /// Version of trialrun that workers must have.
    pub(crate) program: &'a str,
    /// Model that judges.
    pub(crate) judge: Option<&'a str>,
    /// Names of limits, with the number of trials that may run at once.
    pub(crate) caps: &'a [(String, i64)],
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_tokens: Option<f64>,
    pub(crate) spent_cost: f64,
    pub(crate) spent_tokens: f64,
    /// Id of the coordinator.
    pub(crate) coordinator: &'a str,
}

/// A trial as its coordinator submits it.
#[derive(Debug, Clone)]
pub(crate) struct NewTrial {
    pub(crate) id: String,
    /// The `TrialSpec`, as JSON.
    pub(crate) spec: String,
    /// What a worker must have.
    pub(crate) needs: Vec<String>,
    /// Limits that the trial counts against.
    pub(crate) caps: Vec<String>,
    /// Records of the attempts that were lost, as JSON.
    pub(crate) earlier: String,
}

/// A worker as it announces itself.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) pid: i32,
    pub(crate) program: String,
    /// What it has, in the words of [`NewTrial::needs`].
    pub(crate) has: Vec<String>,
    /// Number of trials that it runs at once; 0 if it takes no more.
    pub(crate) slots: i64,
}

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

/// A run in the queue.
#[derive(Debug, Clone, PartialEq)]
pub struct QueuedRun {
    /// Id of the run.
    pub id: String,
    /// Label of the run.
    pub label: Option<String>,
    /// `running`, `paused`, `stopping`, `killing` or `finished`.
    pub state: String,
    /// True if its coordinator answers.
    pub is_coordinated: bool,
    /// Number of trials that wait.
    pub waiting: u64,
    /// Trials that run, each with the host of its worker.
    pub running: Vec<(String, String)>,
    /// Number of attempts that were lost.
    pub lost: u64,
}

/// A trial that a worker holds or has finished.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Active {
    pub(crate) trial: String,
    pub(crate) attempt: i32,
}

/// Events of an attempt.
pub(crate) struct Chunk {
    pub(crate) trial: String,
    pub(crate) number: i32,
    pub(crate) body: Vec<u8>,
}

/// A trial whose attempt was lost.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LostTrial {
    pub(crate) trial: String,
    pub(crate) reason: String,
}

/// State of the run as its coordinator sees it.
#[derive(Debug, PartialEq)]
pub(crate) struct Situation {
    /// `running`, `paused`, `stopping`, `killing` or `finished`; `None` if another coordinator has the run.
    pub(crate) state: Option<String>,
    /// Number of trials that all workers can run at once.
    pub(crate) slots: usize,
    /// Limits of the run.
    pub(crate) max_cost: Option<f64>,
    pub(crate) max_tokens: Option<f64>,
}

fn notify(channel: &str) -> String {
    format!("SELECT pg_notify('{channel}', '')")
}

impl Database {
    /// Enters a run with its bundle, or takes it over from a coordinator that no longer answers.
    pub(crate) async fn enter_run(&self, run: &NewRun<'_>, bundle: &Bundle) -> Result<(), QueueError> {
        self.retry(|| async {
            let mut client = self.connection().await?;
            client.begin().await?;
            client.execute("SELECT pg_advisory_xact_lock($1)", &[&BUNDLES]).await?;
            let digests: Vec<&str> = bundle.files.iter().map(|file| file.digest.as_str()).collect();
            let known = client.query("SELECT digest FROM queue_blobs WHERE digest = ANY($1)", &[&digests]).await?;
            let known: Vec<String> = known.iter().map(|row| row.get(0)).collect();
            for file in bundle.files.iter().filter(|file| !known.contains(&file.digest)) {
                client
                    .execute(
                        "INSERT INTO queue_blobs (digest, body) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                        &[&file.digest, &file.packed],
                    )
                    .await?;
            }
            let paths: Vec<&str> = bundle.files.iter().map(|file| file.path.as_str()).collect();
            let executable: Vec<bool> = bundle.files.iter().map(|file| file.is_executable).collect();
            client
                .execute(
                    "INSERT INTO queue_files (bundle, path, blob, is_executable)
                     SELECT $1, * FROM unnest($2::text[], $3::text[], $4::boolean[]) ON CONFLICT DO NOTHING",
                    &[&bundle.digest, &paths, &digests, &executable],
                )
                .await?;
            let (caps, most): (Vec<&str>, Vec<i64>) =
                run.caps.iter().map(|(name, most)| (name.as_str(), *most)).unzip();
            let sql = format!(
                "INSERT INTO queue_runs (id, label, spec, bundle, program, judge, caps, most, max_cost, max_tokens,
                     spent_cost, spent_tokens, coordinator, coordinator_until)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, now() + {COORDINATOR})
                 ON CONFLICT (id) DO UPDATE SET
                     spec = excluded.spec, bundle = excluded.bundle, program = excluded.program,
                     judge = excluded.judge, caps = excluded.caps, most = excluded.most,
                     max_cost = excluded.max_cost, max_tokens = excluded.max_tokens, spent_cost = excluded.spent_cost,
                     spent_tokens = excluded.spent_tokens, coordinator = excluded.coordinator,
                     coordinator_until = excluded.coordinator_until, state = 'running'
                 WHERE queue_runs.coordinator_until < now() OR queue_runs.state = 'finished'
                     OR queue_runs.coordinator = excluded.coordinator"
            );
            let entered = client
                .execute(
                    &sql,
                    &[
                        &run.id,
                        &run.label,
                        &run.spec,
                        &bundle.digest,
                        &run.program,
                        &run.judge,
                        &caps,
                        &most,
                        &run.max_cost,
                        &run.max_tokens,
                        &run.spent_cost,
                        &run.spent_tokens,
                        &run.coordinator,
                    ],
                )
                .await?;
            if entered == 0 {
                return Err(QueueError::Refused(TAKEN.to_owned()));
            }
            // Trials that nobody runs are submitted again. What is not in the record yet is read again.
            client.execute("DELETE FROM queue_trials WHERE run = $1 AND state = 'waiting'", &[&run.id]).await?;
            client
                .execute("UPDATE queue_trials SET state = 'done' WHERE run = $1 AND state = 'taken'", &[&run.id])
                .await?;
            client.commit().await
        })
        .await
    }

    /// Lets trials wait for a worker. A trial that a worker has already, or has finished, stays as it is.
    pub(crate) async fn submit(&self, run: &str, trials: &[NewTrial]) -> Result<(), QueueError> {
        self.retry(|| async {
            let mut client = self.connection().await?;
            client.begin().await?;
            let statement = client
                .prepare(
                    "INSERT INTO queue_trials (run, id, spec, needs, caps, earlier) VALUES ($1, $2, $3, $4, $5, $6)
                     ON CONFLICT (run, id) DO UPDATE SET
                         state = 'waiting', spec = excluded.spec, needs = excluded.needs, caps = excluded.caps,
                         earlier = excluded.earlier, worker = NULL, lease_until = NULL
                     WHERE queue_trials.state = 'lost'",
                )
                .await?;
            let (connection, statement) = (&*client, &statement);
            // They are sent together; the server runs them one after another.
            let inserts = trials.iter().map(|trial| async move {
                let parameters: [&(dyn ToSql + Sync); 6] =
                    [&run, &trial.id, &trial.spec, &trial.needs, &trial.caps, &trial.earlier];
                connection.execute(statement, &parameters).await
            });
            try_join_all(inserts).await?;
            client.batch_execute(&notify(WORK)).await?;
            client.commit().await
        })
        .await
    }

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
            let row =
                client.query_opt(&sql, &[&worker.id, &worker.has, &worker.program, &except, &worker.host]).await?;
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

    /// Announces a worker, extends its leases, and returns them.
    pub(crate) async fn heartbeat(&self, worker: &Announcement) -> Result<Vec<Held>, QueueError> {
        let sql = format!(
            "UPDATE queue_trials AS trial SET lease_until = now() + {LEASE} FROM queue_runs AS run
             WHERE run.id = trial.run AND trial.worker = $1 AND trial.state = 'leased'
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

    /// Removes a worker that has ended.
    pub(crate) async fn leave(&self, worker: &str) -> Result<(), QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            client.execute("DELETE FROM queue_workers WHERE id = $1", &[&worker]).await?;
            Ok(client.batch_execute(&notify(PROGRESS)).await?)
        })
        .await
    }

    /// Returns the run as a worker needs it; `None` if it is gone.
    pub(crate) async fn run_entry(&self, run: &str) -> Result<Option<RunEntry>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let row = client.query_opt("SELECT spec, bundle, judge FROM queue_runs WHERE id = $1", &[&run]).await?;
            Ok(row.map(|row| RunEntry { spec: row.get(0), bundle: row.get(1), judge: row.get(2) }))
        })
        .await
    }

    /// Returns the files of a bundle.
    pub(crate) async fn bundle(&self, digest: &str) -> Result<Bundle, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "SELECT file.path, file.blob, file.is_executable, blob.body
                     FROM queue_files AS file JOIN queue_blobs AS blob ON blob.digest = file.blob
                     WHERE file.bundle = $1",
                    &[&digest],
                )
                .await?;
            let file = |row: &Row| BundleFile {
                path: row.get(0),
                digest: row.get(1),
                is_executable: row.get(2),
                packed: row.get(3),
            };
            Ok(Bundle { digest: digest.to_owned(), ..Bundle::of(rows.iter().map(file).collect()) })
        })
        .await
    }

    /// Adds events of an attempt, even if its lease has expired: they are evidence.
    pub(crate) async fn append(&self, claim: &Claim, number: i32, body: &[u8]) -> Result<(), QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            client.execute(APPEND, &[&claim.run, &claim.trial, &claim.attempt, &number, &body]).await?;
            Ok(client.batch_execute(&notify(PROGRESS)).await?)
        })
        .await
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
                     WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'",
                    &[&claim.run, &claim.trial, &claim.attempt, &worker],
                )
                .await?
                == 1;
            client
                .execute(
                    "UPDATE queue_attempts SET ended_at = now(), is_late = state = 'lost',
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
        self.retry(|| async {
            let client = self.connection().await?;
            client
                .execute(
                    "WITH released AS (
                         UPDATE queue_trials SET state = 'lost', lease_until = NULL
                         WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'
                         RETURNING run, id, attempt
                     )
                     UPDATE queue_attempts AS attempt SET state = 'lost', reason = $5, ended_at = now() FROM released
                     WHERE attempt.run = released.run AND attempt.trial = released.id
                         AND attempt.attempt = released.attempt",
                    &[&claim.run, &claim.trial, &claim.attempt, &worker, &reason],
                )
                .await?;
            Ok(client.batch_execute(&notify(PROGRESS)).await?)
        })
        .await
    }

    /// Lets a trial wait again, because this worker cannot prepare its run.
    pub(crate) async fn refuse(&self, claim: &Claim, worker: &str, reason: &str) -> Result<(), QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            client
                .execute(
                    "WITH refused AS (
                         UPDATE queue_trials SET state = 'waiting', worker = NULL, lease_until = NULL
                         WHERE run = $1 AND id = $2 AND attempt = $3 AND worker = $4 AND state = 'leased'
                         RETURNING run, id, attempt
                     )
                     UPDATE queue_attempts AS attempt
                     SET state = 'lost', is_refused = true, reason = $5, ended_at = now() FROM refused
                     WHERE attempt.run = refused.run AND attempt.trial = refused.id
                         AND attempt.attempt = refused.attempt",
                    &[&claim.run, &claim.trial, &claim.attempt, &worker, &reason],
                )
                .await?;
            Ok(client.batch_execute(&notify(WORK)).await?)
        })
        .await
    }

    /// Returns the workers that cannot prepare the run, each with its host and the reason.
    pub(crate) async fn refusals(&self, run: &str) -> Result<Vec<(String, String, String)>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "SELECT worker, min(host), min(reason) FROM queue_attempts WHERE run = $1 AND is_refused
                     GROUP BY worker ORDER BY min(started_at)",
                    &[&run],
                )
                .await?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
        })
        .await
    }

    /// Takes the leases that have expired from their workers. Returns all lost trials of the run.
    pub(crate) async fn sweep(&self, run: &str) -> Result<Vec<LostTrial>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            client
                .execute(
                    "WITH expired AS (
                         UPDATE queue_trials SET state = 'lost', lease_until = NULL
                         WHERE run = $1 AND state = 'leased' AND lease_until < now() RETURNING run, id, attempt
                     )
                     UPDATE queue_attempts AS attempt SET state = 'lost', ended_at = now() FROM expired
                     WHERE attempt.run = expired.run AND attempt.trial = expired.id
                         AND attempt.attempt = expired.attempt",
                    &[&run],
                )
                .await?;
            let rows = client
                .query(
                    "SELECT trial.id, attempt.host, attempt.reason
                     FROM queue_trials AS trial JOIN queue_attempts AS attempt
                         ON attempt.run = trial.run AND attempt.trial = trial.id AND attempt.attempt = trial.attempt
                     WHERE trial.run = $1 AND trial.state = 'lost'",
                    &[&run],
                )
                .await?;
            let lost = |row: &Row| {
                let (host, reason): (String, Option<String>) = (row.get(1), row.get(2));
                let reason = match reason {
                    Some(reason) => format!("the worker on {host} gave the trial back: {reason}"),
                    None => format!("the worker on {host} no longer answers"),
                };
                LostTrial { trial: row.get(0), reason }
            };
            Ok(rows.iter().map(lost).collect())
        })
        .await
    }

    /// Returns the trials that workers hold or have finished, and whose outcome was not read yet.
    pub(crate) async fn active(&self, run: &str) -> Result<Vec<Active>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query("SELECT id, attempt FROM queue_trials WHERE run = $1 AND state IN ('leased', 'done')", &[&run])
                .await?;
            Ok(rows.iter().map(|row| Active { trial: row.get(0), attempt: row.get(1) }).collect())
        })
        .await
    }

    /// Returns chunks of events: for each trial, those of an attempt from a number on.
    pub(crate) async fn chunks(&self, run: &str, wanted: &[(String, i32, i32)]) -> Result<Vec<Chunk>, QueueError> {
        let trials: Vec<&str> = wanted.iter().map(|(trial, ..)| trial.as_str()).collect();
        let attempts: Vec<i32> = wanted.iter().map(|(_, attempt, _)| *attempt).collect();
        let numbers: Vec<i32> = wanted.iter().map(|(.., number)| *number).collect();
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "SELECT event.trial, event.chunk, event.body
                     FROM unnest($2::text[], $3::integer[], $4::integer[]) AS wanted (trial, attempt, chunk)
                     JOIN queue_events AS event ON event.run = $1 AND event.trial = wanted.trial
                         AND event.attempt = wanted.attempt AND event.chunk >= wanted.chunk
                     ORDER BY event.trial, event.chunk LIMIT 1000",
                    &[&run, &trials, &attempts, &numbers],
                )
                .await?;
            let chunk = |row: &Row| Chunk { trial: row.get(0), number: row.get(1), body: row.get(2) };
            Ok(rows.iter().map(chunk).collect())
        })
        .await
    }

    /// Marks the outcomes of trials as read.
    pub(crate) async fn take(&self, run: &str, trials: &[String]) -> Result<(), QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            client
                .execute(
                    "UPDATE queue_trials SET state = 'taken' WHERE run = $1 AND id = ANY ($2) AND state = 'done'",
                    &[&run, &trials],
                )
                .await?;
            Ok(())
        })
        .await
    }

    /// Takes trials back that wait: all, or those that somebody has cancelled. Returns their ids.
    pub(crate) async fn withdraw(&self, run: &str, all: bool) -> Result<Vec<String>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "DELETE FROM queue_trials WHERE run = $1 AND state = 'waiting' AND ($2 OR is_cancelled) RETURNING id",
                    &[&run, &all],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
        .await
    }

    /// Renews the right of the coordinator to its run, and returns what it has to know.
    pub(crate) async fn coordinate(
        &self,
        run: &str,
        coordinator: &str,
        program: &str,
    ) -> Result<Situation, QueueError> {
        let renew = format!(
            "UPDATE queue_runs SET coordinator_until = now() + {COORDINATOR} WHERE id = $1 AND coordinator = $2
             RETURNING state, max_cost, max_tokens"
        );
        let slots = format!(
            "SELECT coalesce(sum(slots), 0)::bigint FROM queue_workers WHERE seen_at > now() - {WORKER} AND program = $1"
        );
        self.retry(|| async {
            let client = self.connection().await?;
            let renewed = client.query_opt(&renew, &[&run, &coordinator]).await?;
            let slots: i64 = client.query_one(&slots, &[&program]).await?.get(0);
            Ok(Situation {
                state: renewed.as_ref().map(|row| row.get(0)),
                slots: usize::try_from(slots).unwrap_or_default(),
                max_cost: renewed.as_ref().and_then(|row| row.get(1)),
                max_tokens: renewed.as_ref().and_then(|row| row.get(2)),
            })
        })
        .await
    }

    /// Returns the workers that answer, with their versions of trialrun.
    pub(crate) async fn workers(&self) -> Result<Vec<Announcement>, QueueError> {
        let sql = format!(
            "SELECT id, host, pid, program, has, slots FROM queue_workers WHERE seen_at > now() - {WORKER}
             ORDER BY host, started_at"
        );
        let worker = |row: &Row| Announcement {
            id: row.get(0),
            host: row.get(1),
            pid: row.get(2),
            program: row.get(3),
            has: row.get(4),
            slots: row.get(5),
        };
        self.retry(|| async {
            let client = self.connection().await?;
            Ok(client.query(&sql, &[]).await?.iter().map(worker).collect())
        })
        .await
    }

    /// Returns different needs of trials that wait, each with one of the trials and their number.
    pub(crate) async fn waiting(&self, run: &str) -> Result<Vec<(Vec<String>, String, i64)>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "SELECT needs, min(id), count(*) FROM queue_trials WHERE run = $1 AND state = 'waiting'
                     GROUP BY needs",
                    &[&run],
                )
                .await?;
            Ok(rows.iter().map(|row| (row.get(0), row.get(1), row.get(2))).collect())
        })
        .await
    }

    /// Takes back the trials that wait and have exactly these needs. Returns their ids.
    pub(crate) async fn withdraw_needing(&self, run: &str, needs: &[String]) -> Result<Vec<String>, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "DELETE FROM queue_trials WHERE run = $1 AND state = 'waiting' AND needs = $2 RETURNING id",
                    &[&run, &needs],
                )
                .await?;
            Ok(rows.iter().map(|row| row.get(0)).collect())
        })
        .await
    }

    /// Sets the state of a run that is in one of the states `from`. Returns `false` if it is not.
    pub(crate) async fn set_state(&self, run: &str, from: &[&str], to: &str) -> Result<bool, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let set = client
                .execute("UPDATE queue_runs SET state = $3 WHERE id = $1 AND state = ANY ($2)", &[&run, &from, &to])
                .await?;
            client.batch_execute(&notify(WORK)).await?;
            Ok(set == 1)
        })
        .await
    }

    /// Changes limits of a run that is not finished; `None` leaves one as it is. Returns `false` if there is no such run.
    pub(crate) async fn set_budget(
        &self,
        run: &str,
        max_cost: Option<f64>,
        max_tokens: Option<f64>,
    ) -> Result<bool, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let changed = client
                .execute(
                    "UPDATE queue_runs SET max_cost = coalesce($2, max_cost), max_tokens = coalesce($3, max_tokens)
                     WHERE id = $1 AND state <> 'finished'",
                    &[&run, &max_cost, &max_tokens],
                )
                .await?;
            client.batch_execute(&notify(WORK)).await?;
            Ok(changed == 1)
        })
        .await
    }

    /// Asks the holder of a trial to stop it, and takes it back if it waits. Returns `false` if it neither waits nor runs.
    pub(crate) async fn cancel_trial(&self, run: &str, trial: &str) -> Result<bool, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let cancelled = client
                .execute(
                    "UPDATE queue_trials SET is_cancelled = true
                     WHERE run = $1 AND id = $2 AND state IN ('waiting', 'leased', 'lost')",
                    &[&run, &trial],
                )
                .await?;
            client.batch_execute(&notify(WORK)).await?;
            Ok(cancelled == 1)
        })
        .await
    }

    /// Returns the runs that are not finished, oldest first.
    pub(crate) async fn queued_runs(&self) -> Result<Vec<QueuedRun>, QueueError> {
        let run = |row: &Row| {
            let (trials, hosts): (Vec<String>, Vec<String>) = (row.get(5), row.get(6));
            let count = |at: usize| u64::try_from(row.get::<_, i64>(at)).unwrap_or_default();
            QueuedRun {
                id: row.get(0),
                label: row.get(1),
                state: row.get(2),
                is_coordinated: row.get(3),
                waiting: count(4),
                running: trials.into_iter().zip(hosts).collect(),
                lost: count(7),
            }
        };
        self.retry(|| async {
            let client = self.connection().await?;
            let rows = client
                .query(
                    "SELECT run.id, run.label, run.state, run.coordinator_until > now(),
                         (SELECT count(*) FROM queue_trials WHERE queue_trials.run = run.id AND state = 'waiting'),
                         held.trials, held.hosts,
                         (SELECT count(*) FROM queue_attempts
                             WHERE queue_attempts.run = run.id AND state = 'lost' AND NOT is_refused)
                     FROM queue_runs AS run, LATERAL (
                         SELECT coalesce(array_agg(trial.id ORDER BY trial.place), '{}') AS trials,
                             coalesce(array_agg(attempt.host ORDER BY trial.place), '{}') AS hosts
                         FROM queue_trials AS trial JOIN queue_attempts AS attempt
                             ON attempt.run = trial.run AND attempt.trial = trial.id AND attempt.attempt = trial.attempt
                         WHERE trial.run = run.id AND trial.state = 'leased'
                     ) AS held
                     WHERE run.state <> 'finished' ORDER BY run.created_at",
                    &[],
                )
                .await?;
            Ok(rows.iter().map(run).collect())
        })
        .await
    }

    /// Ends a run: removes what only its workers needed. The events of lost attempts stay for a month.
    pub(crate) async fn end_run(&self, run: &str) -> Result<(), QueueError> {
        self.retry(|| async {
            let mut client = self.connection().await?;
            client.begin().await?;
            client.execute("SELECT pg_advisory_xact_lock($1)", &[&BUNDLES]).await?;
            client.execute("UPDATE queue_runs SET state = 'finished' WHERE id = $1", &[&run]).await?;
            client.execute("DELETE FROM queue_trials WHERE run = $1", &[&run]).await?;
            client
                .execute(
                    "DELETE FROM queue_events AS event USING queue_attempts AS attempt
                     WHERE event.run = $1 AND attempt.run = event.run AND attempt.trial = event.trial
                         AND attempt.attempt = event.attempt AND attempt.state = 'finished'",
                    &[&run],
                )
                .await?;
            client
                .batch_execute(
                    "DELETE FROM queue_runs WHERE state = 'finished' AND created_at < now() - interval '30 days';
                     DELETE FROM queue_workers WHERE seen_at < now() - interval '1 day';
                     DELETE FROM queue_files WHERE bundle NOT IN (
                         SELECT bundle FROM queue_runs WHERE state <> 'finished'
                     );
                     DELETE FROM queue_blobs WHERE digest NOT IN (SELECT blob FROM queue_files)",
                )
                .await?;
            client.batch_execute(&notify(WORK)).await?;
            client.commit().await
        })
        .await
    }

    /// Returns `true` if a run has trials that wait or are held, or may still get some.
    pub(crate) async fn has_open_runs(&self) -> Result<bool, QueueError> {
        self.retry(|| async {
            let client = self.connection().await?;
            let sql =
                "SELECT EXISTS (SELECT 1 FROM queue_runs WHERE state <> 'finished' AND coordinator_until > now())";
            Ok(client.query_one(sql, &[]).await?.get(0))
        })
        .await
    }
}

/// Reason why a run cannot be taken over.
const TAKEN: &str =
    "another process coordinates this run; if it has ended, this is possible half a minute after its end";

/// Adds a chunk of events. After a lost connection, the same chunk may come again.
const APPEND: &str = "INSERT INTO queue_events (run, trial, attempt, chunk, body) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING";
