//! What the waiting trials of a run wait for, in words.

use crate::needs::missing;
use crate::statements::Announcement;
use crate::statements::control::QueuedRun;
use crate::statements::watch::{Obstacles, WaitingGroup};

/// Trials of a run that wait for the same reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitingTrials {
    /// Number of trials.
    pub count: u64,
    /// Id of one of them.
    pub trial: String,
    /// What they wait for, as a noun phrase, such as `a worker with the agent codex`.
    pub waits_for: String,
}

/// Returns what the trials of `groups` wait for. Trials with the same answer are put together. `refusals` are workers that
/// cannot prepare the run: their ids and hosts, and the reasons.
pub(crate) fn explain(
    run: &QueuedRun,
    groups: Vec<WaitingGroup>,
    obstacles: &Obstacles,
    workers: &[Announcement],
    refusals: &[(String, String, String)],
) -> Vec<WaitingTrials> {
    let mut waiting: Vec<WaitingTrials> = Vec::new();
    for group in groups {
        let waits_for = reason(run, &group, obstacles, workers, refusals);
        match waiting.iter_mut().find(|known| known.waits_for == waits_for) {
            Some(known) => known.count += group.count,
            None => waiting.push(WaitingTrials { count: group.count, trial: group.trial, waits_for }),
        }
    }
    waiting
}

fn reason(
    run: &QueuedRun,
    group: &WaitingGroup,
    obstacles: &Obstacles,
    workers: &[Announcement],
    refusals: &[(String, String, String)],
) -> String {
    match run.state.as_str() {
        "paused" => return "the run, which is paused, to continue".to_owned(),
        "running" => {}
        _ => return "the end of the run, which is being stopped".to_owned(),
    }
    if !run.is_coordinated {
        return "the coordinator of the run, which does not answer".to_owned();
    }
    if obstacles.is_over_budget {
        return "a larger budget, because that of the run is used up".to_owned();
    }
    let refused = |worker: &Announcement| refusals.iter().find(|(id, ..)| *id == worker.id);
    let able = || workers.iter().filter(|worker| worker.program == obstacles.program && refused(worker).is_none());
    if able().next().is_none() {
        return match (workers, workers.iter().find_map(refused)) {
            ([], _) => "a worker".to_owned(),
            (_, Some((_, host, reason))) => format!("another worker, because the one on {host} cannot: {reason}"),
            (_, None) => format!("a worker with version {} of trialrun", obstacles.program),
        };
    }
    if let Some(lacks) = missing(&group.needs, able().map(|worker| worker.has.as_slice())) {
        return format!("a worker with {lacks}");
    }
    match group.caps.iter().find_map(|cap| obstacles.full.iter().find(|(name, _)| name == cap)) {
        Some((name, most)) => format!("a place among the {most} trials that `{name}` may have at once"),
        None => "a free slot of a worker".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trials_wait_for_the_first_thing_that_holds_them_up() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let run = |state: &str| QueuedRun {
            id: "r".into(),
            label: None,
            state: state.into(),
            is_coordinated: true,
            waiting: 3,
            running: Vec::new(),
            lost: 0,
        };
        let group = |trial: &str, needs: &[&str]| WaitingGroup {
            trial: trial.into(),
            count: 1,
            needs: words(needs),
            caps: words(&["codex", "codex/gpt"]),
        };
        let worker = |program: &str, has: &[&str]| Announcement {
            id: "w".into(),
            host: "h".into(),
            pid: 1,
            program: program.into(),
            has: words(has),
            slots: 1,
        };
        let open = Obstacles { program: "2".into(), is_over_budget: false, full: Vec::new() };
        let why = |run: &QueuedRun, obstacles: &Obstacles, workers: &[Announcement]| {
            let refusals = [("refusing".to_owned(), "h".to_owned(), "no such file".to_owned())];
            let groups = vec![group("a", &["agent:codex"]), group("b", &["agent:codex"])];
            explain(run, groups, obstacles, workers, &refusals)
                .into_iter()
                .map(|waiting| (waiting.count, waiting.trial, waiting.waits_for))
                .collect::<Vec<_>>()
        };
        let two = |reason: &str| vec![(2, "a".to_owned(), reason.to_owned())];
        let able = [worker("2", &["agent:codex"])];
        assert_eq!(why(&run("paused"), &open, &able), two("the run, which is paused, to continue"));
        assert_eq!(why(&run("killing"), &open, &able), two("the end of the run, which is being stopped"));
        let lost = QueuedRun { is_coordinated: false, ..run("running") };
        assert_eq!(why(&lost, &open, &able), two("the coordinator of the run, which does not answer"));
        let spent = Obstacles { is_over_budget: true, ..open.clone() };
        assert_eq!(why(&run("running"), &spent, &able), two("a larger budget, because that of the run is used up"));
        assert_eq!(why(&run("running"), &open, &[]), two("a worker"));
        let older = [worker("1", &["agent:codex"])];
        assert_eq!(why(&run("running"), &open, &older), two("a worker with version 2 of trialrun"));
        let refusing = [Announcement { id: "refusing".into(), ..worker("2", &["agent:codex"]) }];
        let other = two("another worker, because the one on h cannot: no such file");
        assert_eq!(why(&run("running"), &open, &refusing), other);
        let other = [worker("2", &["agent:fake"])];
        assert_eq!(why(&run("running"), &open, &other), two("a worker with the agent `codex`"));
        let full = Obstacles { full: vec![("codex".to_owned(), 4)], ..open.clone() };
        let at_once = "a place among the 4 trials that `codex` may have at once";
        assert_eq!(why(&run("running"), &full, &able), two(at_once));
        assert_eq!(why(&run("running"), &open, &able), two("a free slot of a worker"));
    }
}
