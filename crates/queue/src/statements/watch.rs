//! The statements of users who want to know what is done and what waits.

use super::control::QueuedRun;
use crate::database::Database;
use crate::error::QueueError;

/// Trials of a run that wait and have the same needs and limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WaitingGroup {
    /// Id of one of them.
    pub(crate) trial: String,
    pub(crate) count: u64,
    pub(crate) needs: Vec<String>,
    pub(crate) caps: Vec<String>,
}

/// What can keep workers from claiming trials of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Obstacles {
    /// Version of trialrun that its workers must have.
    pub(crate) program: String,
    pub(crate) is_over_budget: bool,
    /// Limits that are reached: their names, and the numbers of trials that they allow at once.
    pub(crate) full: Vec<(String, i64)>,
}

/// A trial that a worker runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldTrial {
    /// Id of the run.
    pub run: String,
    /// Id of the trial.
    pub trial: String,
    /// Machine of the worker.
    pub host: String,
    /// Process of the worker.
    pub pid: u32,
}

impl Database {
    /// Returns `true` if the tables of the queue exist.
    pub(crate) async fn exists(&self) -> Result<bool, QueueError> {
        let found = self.rows("SELECT to_regclass('queue_workers') IS NOT NULL", &[], |row| row.get(0)).await?;
        Ok(found.first().copied().unwrap_or(false))
    }

    /// Returns the trials that workers run, in the order in which they were submitted.
    pub(crate) async fn held(&self) -> Result<Vec<HeldTrial>, QueueError> {
        let sql = "SELECT trial.run, trial.id, worker.host, worker.pid
             FROM queue_trials AS trial JOIN queue_workers AS worker ON worker.id = trial.worker
             WHERE trial.state = 'leased' ORDER BY trial.place";
        self.rows(sql, &[], |row| HeldTrial {
            run: row.get(0),
            trial: row.get(1),
            host: row.get(2),
            pid: u32::try_from(row.get::<_, i32>(3)).unwrap_or_default(),
        })
        .await
    }

    /// Returns the trials of a run that wait, in groups, those that were submitted first at the beginning.
    pub(crate) async fn waiting_groups(&self, run: &QueuedRun) -> Result<Vec<WaitingGroup>, QueueError> {
        let sql = "SELECT (array_agg(id ORDER BY place))[1], count(*), needs, caps FROM queue_trials
             WHERE run = $1 AND state = 'waiting' GROUP BY needs, caps ORDER BY min(place)";
        self.rows(sql, &[&run.id], |row| WaitingGroup {
            trial: row.get(0),
            count: u64::try_from(row.get::<_, i64>(1)).unwrap_or_default(),
            needs: row.get(2),
            caps: row.get(3),
        })
        .await
    }

    /// Returns what can keep workers from claiming trials of a run; `None` if the run is not in the queue.
    pub(crate) async fn obstacles(&self, run: &QueuedRun) -> Result<Option<Obstacles>, QueueError> {
        let sql =
            "SELECT program, coalesce(spent_cost > max_cost, false) OR coalesce(spent_tokens > max_tokens, false),
                 coalesce(full_.names, '{}'), coalesce(full_.most, '{}')
             FROM queue_runs, LATERAL (
                 SELECT array_agg(cap.name) AS names, array_agg(cap.most) AS most
                 FROM unnest(queue_runs.caps, queue_runs.most) AS cap (name, most)
                 WHERE cap.most <= (
                     SELECT count(*) FROM queue_trials AS other
                     WHERE other.state = 'leased' AND cap.name = ANY (other.caps)
                 )
             ) AS full_ WHERE id = $1";
        let found = self
            .rows(sql, &[&run.id], |row| {
                let (names, most): (Vec<String>, Vec<i64>) = (row.get(2), row.get(3));
                Obstacles {
                    program: row.get(0),
                    is_over_budget: row.get(1),
                    full: names.into_iter().zip(most).collect(),
                }
            })
            .await?;
        Ok(found.into_iter().next())
    }
}
