//! The statements of the queue. All times are those of the server.
//!
//! A trial waits, is leased by a worker, and is done; or its lease expires, and it is lost until its coordinator lets it
//! wait again. Each lease has the number of an attempt, without which a worker can neither extend nor finish it.

use crate::database::Database;
use crate::error::QueueError;

pub(crate) mod control;
pub(crate) mod coordinator;
pub(crate) mod watch;
pub(crate) mod worker;

/// Time after which a worker that does not answer counts as gone.
const WORKER: &str = "interval '15 seconds'";

/// A worker as it announces itself.
#[derive(Debug, Clone)]
pub(crate) struct Announcement {
    pub(crate) id: String,
    pub(crate) host: String,
    pub(crate) pid: i32,
    pub(crate) program: String,
    /// What it has, in the words of [`NewTrial::needs`](coordinator::NewTrial::needs).
    pub(crate) has: Vec<String>,
    /// Number of trials that it runs at once; 0 if it takes no more.
    pub(crate) slots: i64,
}

impl Announcement {
    /// Returns the name of the worker in messages. A machine may have several.
    pub(crate) fn name(&self) -> String {
        format!("{} (process {})", self.host, self.pid)
    }
}

impl Database {
    /// Returns the workers that answer, with their versions of trialrun.
    pub(crate) async fn workers(&self) -> Result<Vec<Announcement>, QueueError> {
        let sql = format!(
            "SELECT id, host, pid, program, has, slots FROM queue_workers WHERE seen_at > now() - {WORKER}
             ORDER BY host, started_at"
        );
        self.rows(&sql, &[], |row| Announcement {
            id: row.get(0),
            host: row.get(1),
            pid: row.get(2),
            program: row.get(3),
            has: row.get(4),
            slots: row.get(5),
        })
        .await
    }
}
