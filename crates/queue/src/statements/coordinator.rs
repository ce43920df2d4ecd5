//! The statements of a coordinator.

use futures_util::future::try_join_all;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::WORKER;
use crate::bundle::Bundle;
use crate::database::{Database, WORK, notify};
use crate::error::QueueError;

/// Key of the lock under which bundles are added and removed.
const BUNDLES: i64 = 0x7472_6961_6c62;

/// Time after which a coordinator that does not answer counts as dead. Workers then start none of its trials, and
/// another process can take its run over.
const COORDINATOR: &str = "interval '30 seconds'";

/// Reason why a run cannot be taken over.
const TAKEN: &str =
    "another process coordinates this run; if it has ended, this is possible half a minute after its end";

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

impl Database {
    /// Checks that no other process coordinates the run, before reports of it begin. [`Self::enter_run`] checks it again.
    pub(crate) async fn check_free(&self, run: &str) -> Result<(), QueueError> {
        let sql = "SELECT id FROM queue_runs WHERE id = $1 AND state <> 'finished' AND coordinator_until >= now()";
        match self.rows(sql, &[&run], |_| ()).await?.is_empty() {
            true => Ok(()),
            false => Err(QueueError::Refused(TAKEN.to_owned())),
        }
    }

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
                     max_cost = coalesce(queue_runs.max_cost, excluded.max_cost),
                     max_tokens = coalesce(queue_runs.max_tokens, excluded.max_tokens),
                     spent_cost = greatest(queue_runs.spent_cost, excluded.spent_cost),
                     spent_tokens = greatest(queue_runs.spent_tokens, excluded.spent_tokens),
                     coordinator = excluded.coordinator,
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
            // A budget that was changed stays changed. Workers may have finished more than was recorded.
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

    /// Returns the workers that cannot prepare the run, each with its host and the reason.
    pub(crate) async fn refusals(&self, run: &str) -> Result<Vec<(String, String, String)>, QueueError> {
        let sql = "SELECT worker, min(host), min(reason) FROM queue_attempts WHERE run = $1 AND is_refused
             GROUP BY worker ORDER BY min(started_at)";
        self.rows(sql, &[&run], |row| (row.get(0), row.get(1), row.get(2))).await
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
        let sql = "SELECT id, attempt FROM queue_trials WHERE run = $1 AND state IN ('leased', 'done')";
        self.rows(sql, &[&run], |row| Active { trial: row.get(0), attempt: row.get(1) }).await
    }

    /// Returns chunks of events: for each trial, those of an attempt from a number on.
    pub(crate) async fn chunks(&self, run: &str, wanted: &[(String, i32, i32)]) -> Result<Vec<Chunk>, QueueError> {
        let trials: Vec<&str> = wanted.iter().map(|(trial, ..)| trial.as_str()).collect();
        let attempts: Vec<i32> = wanted.iter().map(|(_, attempt, _)| *attempt).collect();
        let numbers: Vec<i32> = wanted.iter().map(|(.., number)| *number).collect();
        let sql = "SELECT event.trial, event.chunk, event.body
             FROM unnest($2::text[], $3::integer[], $4::integer[]) AS wanted (trial, attempt, chunk)
             JOIN queue_events AS event ON event.run = $1 AND event.trial = wanted.trial
                 AND event.attempt = wanted.attempt AND event.chunk >= wanted.chunk
             ORDER BY event.trial, event.chunk LIMIT 1000";
        self.rows(sql, &[&run, &trials, &attempts, &numbers], |row| Chunk {
            trial: row.get(0),
            number: row.get(1),
            body: row.get(2),
        })
        .await
    }

    /// Marks the outcomes of trials as read.
    pub(crate) async fn take(&self, run: &str, trials: &[String]) -> Result<(), QueueError> {
        let sql = "UPDATE queue_trials SET state = 'taken' WHERE run = $1 AND id = ANY ($2) AND state = 'done'";
        self.execute(sql, &[&run, &trials], None).await?;
        Ok(())
    }

    /// Takes trials back that wait: all, or those that somebody has cancelled. Returns their ids.
    pub(crate) async fn withdraw(&self, run: &str, all: bool) -> Result<Vec<String>, QueueError> {
        let sql = "DELETE FROM queue_trials WHERE run = $1 AND state = 'waiting' AND ($2 OR is_cancelled) RETURNING id";
        self.rows(sql, &[&run, &all], |row| row.get(0)).await
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

    /// Returns different needs of trials that wait, each with one of the trials and their number.
    pub(crate) async fn waiting(&self, run: &str) -> Result<Vec<(Vec<String>, String, i64)>, QueueError> {
        let sql =
            "SELECT needs, min(id), count(*) FROM queue_trials WHERE run = $1 AND state = 'waiting' GROUP BY needs";
        self.rows(sql, &[&run], |row| (row.get(0), row.get(1), row.get(2))).await
    }

    /// Replaces a need of trials that wait.
    pub(crate) async fn choose_version(&self, run: &str, unchosen: &str, version: &str) -> Result<(), QueueError> {
        let sql = "UPDATE queue_trials SET needs = array_replace(needs, $2, $3)
             WHERE run = $1 AND state = 'waiting' AND needs @> ARRAY[$2]";
        self.execute(sql, &[&run, &unchosen, &version], Some(WORK)).await?;
        Ok(())
    }

    /// Takes back the trials that wait and have exactly these needs. Returns their ids.
    pub(crate) async fn withdraw_needing(&self, run: &str, needs: &[String]) -> Result<Vec<String>, QueueError> {
        let sql = "DELETE FROM queue_trials WHERE run = $1 AND state = 'waiting' AND needs = $2 RETURNING id";
        self.rows(sql, &[&run, &needs], |row| row.get(0)).await
    }

    /// Ends a run: removes what only its workers needed. The events of lost attempts stay for a month, and so does a run
    /// whose coordinator died, unless it is resumed, or handed nothing over.
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
                    "DELETE FROM queue_runs AS run WHERE coordinator_until < now() - interval '30 days'
                         OR (coordinator_until < now() AND state <> 'finished'
                             AND NOT EXISTS (SELECT FROM queue_trials WHERE queue_trials.run = run.id)
                             AND NOT EXISTS (SELECT FROM queue_attempts WHERE queue_attempts.run = run.id));
                     DELETE FROM queue_workers WHERE seen_at < now() - interval '1 day';
                     DELETE FROM queue_pauses WHERE until < now();
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
}
