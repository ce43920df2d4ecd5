//! Grading threads: matching is synchronous and each thread has its own engine, so it stays off the threads that talk to
//! agents.

use std::sync::{Arc, Mutex, PoisonError, mpsc};

use grade::Check;
use model::{Evidence, Finding};
use tokio::sync::oneshot;

use crate::Breakage;

struct Job {
    checks: Arc<Vec<Check>>,
    evidence: Evidence,
    reply: oneshot::Sender<(Vec<Finding>, Evidence)>,
}

/// A few threads that grade.
pub(crate) struct Grader {
    jobs: mpsc::Sender<Job>,
}

impl Grader {
    /// Starts `threads` grading threads; they end when the grader is dropped.
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let queue = Arc::new(Mutex::new(queue));
        for number in 0..threads.max(1) {
            let queue = Arc::clone(&queue);
            std::thread::Builder::new().name(format!("grade-{number}")).spawn(move || {
                loop {
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Job { checks, evidence, reply }) = next else { return };
                    let findings = grade::grade(&checks, &evidence);
                    let _ = reply.send((findings, evidence));
                }
            })?;
        }
        Ok(Self { jobs })
    }

    /// What `checks` say about `evidence`; the evidence comes back.
    pub(crate) async fn grade(
        &self,
        checks: Arc<Vec<Check>>,
        evidence: Evidence,
    ) -> Result<(Vec<Finding>, Evidence), Breakage> {
        let (reply, graded) = oneshot::channel();
        let gone = || Breakage::harness("the grading thread ended unexpectedly; this is a bug");
        self.jobs.send(Job { checks, evidence, reply }).map_err(|_| gone())?;
        graded.await.map_err(|_| gone())
    }
}
