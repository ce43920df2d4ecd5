//! The statements of users who watch runs and change them.

use crate::database::{Database, WORK};
use crate::error::QueueError;

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

impl Database {
    /// Sets the state of a run that is in one of the states `from`. Returns `false` if it is not.
    pub(crate) async fn set_state(&self, run: &str, from: &[&str], to: &str) -> Result<bool, QueueError> {
        let sql = "UPDATE queue_runs SET state = $3 WHERE id = $1 AND state = ANY ($2)";
        Ok(self.execute(sql, &[&run, &from, &to], Some(WORK)).await? == 1)
    }

    /// Changes limits of a run that is not finished; `None` leaves one as it is. Returns `false` if there is no such run.
    pub(crate) async fn set_budget(
        &self,
        run: &str,
        max_cost: Option<f64>,
        max_tokens: Option<f64>,
    ) -> Result<bool, QueueError> {
        let sql = "UPDATE queue_runs SET max_cost = coalesce($2, max_cost), max_tokens = coalesce($3, max_tokens)
             WHERE id = $1 AND state <> 'finished'";
        Ok(self.execute(sql, &[&run, &max_cost, &max_tokens], Some(WORK)).await? == 1)
    }

    /// Asks the holder of a trial to stop it, and takes it back if it waits. A run with one arm leaves the arm out of the
    /// names that it prints, so it can be left out here. Returns the trials with the name that wait or run; it is
    /// cancelled only if there is one.
    pub(crate) async fn cancel_trial(&self, run: &str, trial: &str) -> Result<Vec<String>, QueueError> {
        let sql = "SELECT id FROM queue_trials
             WHERE run = $1 AND (id = $2 OR regexp_replace(id, '@.*(#[0-9]+)$', '\\1') = $2)
                 AND state IN ('waiting', 'leased', 'lost')";
        let named: Vec<String> = self.rows(sql, &[&run, &trial], |row| row.get(0)).await?;
        if let [only] = named.as_slice() {
            let sql = "UPDATE queue_trials SET is_cancelled = true WHERE run = $1 AND id = $2";
            self.execute(sql, &[&run, only], Some(WORK)).await?;
        }
        Ok(named)
    }

    /// Returns the runs that are not finished, oldest first.
    pub(crate) async fn queued_runs(&self) -> Result<Vec<QueuedRun>, QueueError> {
        let sql = "SELECT run.id, run.label, run.state, run.coordinator_until > now(),
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
             WHERE run.state <> 'finished' ORDER BY run.created_at";
        self.rows(sql, &[], |row| {
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
        })
        .await
    }
}
