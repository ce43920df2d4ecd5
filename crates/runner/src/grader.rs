//! Grading threads. Grading is synchronous and each thread has its own engine, so it is kept off the threads that talk
//! to agents.
//!
//! A thread that panics continues with the next trial. A thread that does not return, because a user's script is in an
//! operation that the engine cannot interrupt, is abandoned and replaced.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crossbeam_channel::{Receiver, Sender};
use grade::Check;
use model::{Evidence, Finding};
use sandbox::Breakage;
use tokio::sync::oneshot;

/// Time limit for grading one trial. The engine's own limits end nearly everything much earlier.
const LONGEST: Duration = Duration::from_secs(120);

/// Stack size of a grading thread, in bytes: expectations nest, and so do the scripts in them.
const STACK: usize = 16 << 20;

struct Job {
    checks: Arc<Vec<Check>>,
    evidence: Arc<Evidence>,
    reply: oneshot::Sender<Option<Vec<Finding>>>,
}

/// Pool of grading threads.
pub(crate) struct Grader {
    jobs: Sender<Job>,
    queue: Receiver<Job>,
    longest: Duration,
}

impl Grader {
    /// Starts `threads` grading threads; they end when the grader is dropped.
    pub(crate) fn start(threads: usize) -> std::io::Result<Self> {
        let (jobs, queue) = crossbeam_channel::unbounded();
        let grader = Self { jobs, queue, longest: LONGEST };
        (0..threads.max(1)).try_for_each(|_| grader.add_thread())?;
        Ok(grader)
    }

    /// Starts one more thread.
    fn add_thread(&self) -> std::io::Result<()> {
        let queue = self.queue.clone();
        let thread = std::thread::Builder::new().name("grade".to_owned()).stack_size(STACK);
        thread.spawn(move || serve(&queue)).map(drop)
    }

    /// Grades `evidence` with `checks` and returns the findings together with the evidence.
    pub(crate) async fn grade(
        &self,
        checks: Arc<Vec<Check>>,
        evidence: Evidence,
    ) -> Result<(Vec<Finding>, Evidence), Breakage> {
        let (reply, graded) = oneshot::channel();
        let evidence = Arc::new(evidence);
        let job = Job { checks: Arc::clone(&checks), evidence: Arc::clone(&evidence), reply };
        self.jobs.send(job).map_err(|_| Breakage::harness("no grading thread is left; this is a bug"))?;
        let findings = match tokio::time::timeout(self.longest, graded).await {
            Ok(Ok(Some(findings))) => findings,
            Ok(_) => return Err(Breakage::harness("grading panicked; this is a bug in trialrun")),
            Err(_) => {
                self.add_thread().map_err(|error| Breakage::environment(format!("cannot start a thread: {error}")))?;
                undecided(&checks, self.longest)
            }
        };
        Ok((findings, Arc::try_unwrap(evidence).unwrap_or_else(|shared| (*shared).clone())))
    }
}

fn serve(queue: &Receiver<Job>) {
    for Job { checks, evidence, reply } in queue {
        // One that panics grades nothing.
        let graded = catch_unwind(AssertUnwindSafe(|| grade::grade(&checks, &evidence))).ok();
        drop((checks, evidence));
        let _ = reply.send(graded);
    }
}

/// Returns an undecided finding for each of the `checks`, because their grading did not end.
fn undecided(checks: &[Check], after: Duration) -> Vec<Finding> {
    let reason = format!("grading did not finish within {} s", after.as_secs());
    let finding =
        |check: &Check| Finding::undecided(check.id(), check.kind(), check.weight(), Some(check.source()), &reason);
    checks.iter().map(finding).collect()
}

#[cfg(test)]
mod tests {
    use model::{Collected, Ending, Status, Step, Trace, Usage};

    use super::*;

    fn checks(expression: &str) -> Arc<Vec<Check>> {
        let source = model::Source::new("case.yaml", "expect");
        let entry = serde_json::json!({"id": "a", "type": "expect", "output": {"$expr": expression}});
        let node = model::Node::from_json(&entry, &source);
        let spec = model::AssertionSpec {
            id: "a".into(),
            kind: model::Spanned::new("expect".into(), model::Span::new(0, 6)),
            weight: 1.0,
            node,
            arguments: model::Arguments::Fields,
            about: model::AssertionScope::Trial,
        };
        let mut case = model::Case::new("c", model::Excerpt::of_file("case.yaml"));
        case.assertions.push(spec);
        let (checks, problems) = grade::compile(&case, &grade::Context::default());
        assert!(problems.iter().all(|problem| !problem.is_error()), "{problems:?}");
        Arc::new(checks)
    }

    fn evidence() -> Evidence {
        let finished = Step::Finished {
            subtype: "success".into(),
            is_error: false,
            usage: Usage::default(),
            text: Some("x".into()),
            result: None,
        };
        Evidence {
            trace: Trace::of(&[finished]),
            collected: Collected::default(),
            ending: Ending::Finished,
            limits: Arc::default(),
            unused_responses: Vec::new(),
            agent_ms: None,
        }
    }

    #[tokio::test]
    async fn an_unstoppable_script_leaves_only_its_own_trial_undecided() {
        let mut grader = Grader::start(1).unwrap();
        grader.longest = Duration::from_millis(300);
        let endless = checks("Array.prototype.join.call({ length: 2 ** 53 - 1 }, '') === actual");
        let (findings, back) = grader.grade(endless, evidence()).await.unwrap();
        assert_eq!((findings[0].status, back.trace.answer.as_deref()), (Status::Undecided, Some("x")));
        grader.longest = LONGEST;
        let (findings, _) = grader.grade(checks("actual === 'x'"), evidence()).await.unwrap();
        assert_eq!(findings[0].status, Status::Met);
    }
}
