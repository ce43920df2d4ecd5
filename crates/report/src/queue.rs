//! The queue of trials that workers run, for people.

use crate::format::{counted, number};
use crate::plain;

/// The workers, and the runs whose trials they run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QueueView {
    /// Workers that answer.
    pub workers: Vec<WorkerView>,
    /// Runs that have not ended.
    pub runs: Vec<QueuedRunView>,
}

/// A worker that answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerView {
    /// Name of its machine.
    pub host: String,
    /// Id of its process.
    pub pid: u32,
    /// Version of trialrun.
    pub version: String,
    /// What it has, such as `agent:codex`.
    pub has: Vec<String>,
    /// Number of trials that it runs at once.
    pub slots: u64,
    /// Trials that it runs: the ids of the run and of the trial.
    pub running: Vec<(String, String)>,
}

impl QueueView {
    /// Returns the number of workers and of their slots.
    pub(crate) fn size(&self) -> String {
        let all = self.workers.iter().map(|worker| worker.slots).sum();
        format!("{} with {}", counted(self.workers.len(), "worker"), slots(all))
    }
}

fn slots(count: u64) -> String {
    counted(usize::try_from(count).unwrap_or(usize::MAX), "slot")
}

impl WorkerView {
    /// Returns what it has of one kind, such as `agent:`, without the kind.
    pub(crate) fn of(&self, kind: &str) -> String {
        let names = self.has.iter().filter_map(|has| has.strip_prefix(kind));
        names.collect::<Vec<_>>().join(", ")
    }
}

/// A run whose trials workers run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedRunView {
    /// Id of the run.
    pub id: String,
    /// Label of the run.
    pub label: Option<String>,
    /// `running`, `paused`, `stopping` or `killing`.
    pub state: String,
    /// True if its coordinator answers.
    pub is_coordinated: bool,
    /// Trials that wait, by what they wait for.
    pub waiting: Vec<WaitingView>,
    /// Trials that run, each with the host of its worker.
    pub running: Vec<(String, String)>,
    /// Number of attempts that were lost with their workers.
    pub lost: u64,
}

/// Trials that wait for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingView {
    /// Number of trials.
    pub count: usize,
    /// Id of one of them.
    pub trial: String,
    /// Noun phrase for what they wait for, such as `a worker with the agent codex`.
    pub waits_for: String,
}

impl QueuedRunView {
    /// Returns its state in one line.
    pub(crate) fn line(&self) -> String {
        let coordinator = if self.is_coordinated { "" } else { ", its coordinator does not answer" };
        let waiting: usize = self.waiting.iter().map(|waiting| waiting.count).sum();
        let lost = match self.lost {
            0 => String::new(),
            lost => format!(", {}", counted(usize::try_from(lost).unwrap_or(usize::MAX), "lost attempt")),
        };
        let (waiting, running) = (number(waiting as u64), number(self.running.len() as u64));
        format!("{}{coordinator}, {waiting} waiting, {running} running{lost}", self.state)
    }
}

impl WaitingView {
    /// Returns it in one line.
    pub(crate) fn line(&self) -> String {
        let more = match self.count {
            0 | 1 => String::new(),
            count => format!(" and {} more", number(count as u64 - 1)),
        };
        let verb = if self.count > 1 { "wait" } else { "waits" };
        format!("{}{more} {verb} for {}", self.trial, self.waits_for)
    }
}

/// Formats the workers, and the runs whose trials they run.
pub fn queue(queue: &QueueView) -> String {
    let mut text = format!("{}\n", queue.size());
    for worker in &queue.workers {
        let WorkerView { host, pid, version, .. } = worker;
        let slots = slots(worker.slots);
        let labels = Some(worker.of("label:")).filter(|labels| !labels.is_empty());
        let labels = labels.map(|labels| format!("; labels: {labels}")).unwrap_or_default();
        let (agents, sandboxes) = (worker.of("agent:"), worker.of("sandbox:"));
        text.push_str(&format!(
            "  {host} (process {pid}, trialrun {version}, {slots}): {agents}; sandboxes: {sandboxes}{labels}\n"
        ));
    }
    for run in &queue.runs {
        text.push_str(&format!("{}: {}\n", run.label.as_deref().unwrap_or(&run.id), run.line()));
        for (trial, host) in &run.running {
            text.push_str(&format!("  {trial} on {host}\n"));
        }
        for waiting in &run.waiting {
            text.push_str(&format!("  {}\n", waiting.line()));
        }
    }
    plain::clean(&text)
}

/// Formats the part of the queue that is about the run with that id; empty if the run is not in it.
pub fn queue_of_run(queue: &QueueView, run: &str) -> String {
    let Some(run) = queue.runs.iter().find(|queued| queued.id == run) else { return String::new() };
    let mut text = format!("\nqueue\n  {}\n", run.line());
    for waiting in &run.waiting {
        text.push_str(&format!("  {}\n", waiting.line()));
    }
    text.push_str(&format!("  {}\n", queue.size()));
    for worker in &queue.workers {
        let running = worker.running.iter().filter(|(of, _)| *of == run.id).count();
        let (WorkerView { host, pid, .. }, slots) = (worker, slots(worker.slots));
        text.push_str(&format!("    {host} (process {pid}): {slots}, {running} of them for this run\n"));
    }
    plain::clean(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_of_a_run_says_what_its_trials_wait_for() {
        let waiting = |count, trial: &str, waits_for: &str| WaitingView {
            count,
            trial: trial.to_owned(),
            waits_for: waits_for.to_owned(),
        };
        let run = QueuedRunView {
            id: "0193".to_owned(),
            label: None,
            state: "paused".to_owned(),
            is_coordinated: false,
            waiting: vec![
                waiting(3, "s::a@codex#1", "a worker with the agent `codex`"),
                waiting(1, "s::b@fake#1", "a free slot"),
            ],
            running: vec![("s::c@fake#1".to_owned(), "a\u{1b}[31mhost".to_owned())],
            lost: 1,
        };
        let worker = WorkerView {
            host: "north".to_owned(),
            pid: 7,
            version: "1".to_owned(),
            has: Vec::new(),
            slots: 2,
            running: vec![("0193".to_owned(), "s::c@fake#1".to_owned()), ("0194".to_owned(), "s::d@fake#1".to_owned())],
        };
        let queue = QueueView { workers: vec![worker], runs: vec![run] };
        assert_eq!(queue_of_run(&queue, "0194"), "");
        assert_eq!(
            queue_of_run(&queue, "0193"),
            "\nqueue\n  paused, its coordinator does not answer, 4 waiting, 1 running, 1 lost attempt\n  \
             s::a@codex#1 and 2 more wait for a worker with the agent `codex`\n  \
             s::b@fake#1 waits for a free slot\n  1 worker with 2 slots\n    \
             north (process 7): 2 slots, 1 of them for this run\n"
        );
    }
}
