//! Decides whether an attempt is retried, and what it leaves for the next one.
//!
//! A broken attempt says nothing about the agent and is retried. A failed one is a finding, and is retried only on
//! request: by the project, by the case, or by how the agent ended (`--retry-on`). The last applies only if the attempt
//! left no trace: changes to a remote would be visible to the next attempt, and changes of any kind are its outcome.

use model::{AttemptRecord, Collected, Ending, Limits, Outcome, RemoteState, RepositoryChange, Unreported, Usage};

use crate::plan::{ModelChoice, PlannedTrial, RetryOn, Settings};

/// First exit code that does not come from the agent's program: these codes come from the supervisor, from a shell
/// that cannot run the program, or from a signal.
const NOT_ITS_OWN: i32 = 125;

/// Decision about a retry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Retry {
    /// No retry.
    No,
    /// No retry, because of what the attempt left behind, or may have left.
    Refused(String),
    /// Retry.
    Yes,
    /// Retry because of how the agent ended. The attempt's usage counts against the trial's budgets.
    Counted,
}

/// Changes that an attempt left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Changes {
    /// The workspace, its repository and the remotes are unchanged.
    None,
    /// Something has changed.
    Some,
    /// Not known, with the reason.
    Unknown(String),
}

/// Decides whether the last of `attempts`, whose agent ended with `ending` and left `trace`, is retried.
pub(super) fn decide(
    planned: &PlannedTrial,
    settings: &Settings,
    attempts: &[AttemptRecord],
    ending: Option<&Ending>,
    trace: &Changes,
) -> Retry {
    let Some(last) = attempts.last().map(|attempt| attempt.outcome) else { return Retry::Yes };
    // A scripted model gives the same result again, so a retry only costs time.
    if matches!(planned.model, ModelChoice::Scripted(_)) {
        return Retry::No;
    }
    let tried = attempts.iter().filter(|attempt| attempt.outcome == last).count();
    let most = match last {
        Outcome::Broken => settings.retry.retries,
        Outcome::Failed => planned.case.reruns.unwrap_or(settings.retry.reruns),
        Outcome::Passed | Outcome::Undecided | Outcome::Stale | Outcome::Skipped | Outcome::Cancelled => 0,
    };
    if tried <= most as usize {
        return Retry::Yes;
    }
    let is_asked_for =
        ending.is_some_and(|ending| is_trouble(retry_on(planned, settings), settings.limits.max_duration_from, ending));
    if last != Outcome::Failed || !is_asked_for || tried > settings.retry.retries as usize {
        return Retry::No;
    }
    match trace {
        Changes::None => Retry::Counted,
        Changes::Some => Retry::Refused("the attempt changed the workspace".to_owned()),
        Changes::Unknown(reason) => Retry::Refused(format!("it is not known what the attempt changed: {reason}")),
    }
}

/// Returns how an agent must have ended for its attempt to be retried.
pub(super) fn retry_on(planned: &PlannedTrial, settings: &Settings) -> RetryOn {
    let usual = if planned.case.skill_eval.is_some() { RetryOn::BOTH } else { RetryOn::NONE };
    settings.retry.retry_on.unwrap_or(usual)
}

/// Returns `true` if `on` includes `ending`. A time budget that is used up stays used up, however often the attempt is
/// retried.
fn is_trouble(on: RetryOn, max_duration_from: &str, ending: &Ending) -> bool {
    match ending {
        Ending::GaveUp { .. } => on.exit,
        Ending::TimedOut { setting, .. } => on.timeout && setting != max_duration_from,
        _ => false,
    }
}

/// Returns how the act phase ended in suites where the agent's exit code counts: a process that exits on its own with
/// an error gave up.
pub(super) fn counted(ending: Ending, exit_code: Option<i32>) -> Ending {
    match (ending, exit_code) {
        (Ending::Aborted { reason }, Some(1..NOT_ITS_OWN)) => Ending::GaveUp { reason },
        (ending, _) => ending,
    }
}

/// Returns the changes that an attempt left behind.
pub(super) fn changes_of(collected: &Collected) -> Changes {
    let is_same = match &collected.repository_change {
        Some(change) => is_same(change),
        None => collected.repository.as_ref().is_none_or(|now| now.new_commits.is_empty()),
    };
    if !collected.files_changed.is_empty() || !is_same {
        return Changes::Some;
    }
    let remotes = collected
        .repository_change
        .iter()
        .flat_map(|change| change.before.remotes.iter().map(move |(name, before)| (change, name, before)));
    remotes
        .map(|(change, name, before)| of_remote(name, before, change.after.remotes.get(name)))
        .find(|trace| *trace != Changes::None)
        .unwrap_or(Changes::None)
}

/// Returns `true` if everything that git knows locally is unchanged; the content of remotes is not compared.
fn is_same(change: &RepositoryChange) -> bool {
    let (before, after) = (&change.before, &change.after);
    (&before.head, &before.branch, &before.branches) == (&after.head, &after.branch, &after.branches)
        && (&before.refs, &before.index, &before.status) == (&after.refs, &after.index, &after.status)
        && before.remotes.keys().eq(after.remotes.keys())
}

fn of_remote(name: &str, before: &RemoteState, after: Option<&RemoteState>) -> Changes {
    let Some(after) = after.filter(|after| after.url == before.url) else { return Changes::Some };
    match (&before.branches, &after.branches) {
        (Some(before), Some(after)) if before != after => return Changes::Some,
        (Some(_), Some(_)) => {}
        _ => return Changes::Unknown(format!("the remote `{name}` did not answer")),
    }
    match (&before.review_requests, &after.review_requests) {
        (Some(before), Some(after)) if before != after => Changes::Some,
        (Some(_), None) | (None, Some(_)) => {
            Changes::Unknown(format!("the review requests of `{name}` could not be fetched"))
        }
        _ => Changes::None,
    }
}

/// Returns the limits of the attempt after attempts that used `used`. `agent_ms` is the agent's time in all attempts
/// that count; `max_duration_from` is the name of the time budget.
pub(super) fn limits_after(limits: &Limits, used: Usage, agent_ms: u64, max_duration_from: &str) -> Limits {
    let mut left = limits.clone();
    let earlier = left.earlier.get_or_insert_default();
    earlier.usage += used;
    earlier.unreported |= Unreported::of(&used);
    earlier.duration_ms = agent_ms;
    if let Some(budget) = left.budgets.duration_ms.filter(|_| !left.on_budget.only_warns()) {
        let rest = (budget as u64).saturating_sub(earlier.duration_ms);
        if rest < left.timeout_ms {
            (left.timeout_ms, left.timeout_from) = (rest, Some(max_duration_from.to_owned()));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use model::{FileChange, Repository, RepositoryState};

    use super::*;

    fn change(alter: impl FnOnce(&mut RepositoryState)) -> Collected {
        let remote = RemoteState { url: "/a".into(), branches: Some([].into()), ..RemoteState::default() };
        let before = RepositoryState {
            head: Some("1".into()),
            branch: Some("main".into()),
            refs: Some("r".into()),
            remotes: [("origin".to_owned(), remote)].into(),
            ..RepositoryState::default()
        };
        let mut after = before.clone();
        alter(&mut after);
        let change = RepositoryChange { before, after, new_commits: Vec::new() };
        Collected { repository_change: Some(Box::new(change)), ..Collected::default() }
    }

    fn origin(state: &mut RepositoryState) -> &mut RemoteState {
        state.remotes.get_mut("origin").unwrap()
    }

    #[test]
    fn any_difference_counts_as_a_change() {
        assert_eq!(changes_of(&Collected::default()), Changes::None);
        assert_eq!(changes_of(&change(|_| {})), Changes::None);
        let file = FileChange { path: "a".into(), change: model::Change::Added };
        assert_eq!(changes_of(&Collected { files_changed: vec![file], ..Collected::default() }), Changes::Some);
        let commit = Repository { new_commits: vec!["1 x".into()], ..Repository::default() };
        assert_eq!(changes_of(&Collected { repository: Some(commit), ..Collected::default() }), Changes::Some);
        let changes: [fn(&mut RepositoryState); 6] = [
            |state| state.head = None,
            |state| state.refs = Some("tag".into()),
            |state| state.index = Some("staged".into()),
            |state| state.remotes.clear(),
            |state| drop(origin(state).branches.as_mut().unwrap().insert("new".into(), "1".into())),
            |state| origin(state).url = "/b".into(),
        ];
        for (at, alter) in changes.into_iter().enumerate() {
            assert_eq!(changes_of(&change(alter)), Changes::Some, "{at}");
        }
        let silent = change(|state| origin(state).branches = None);
        assert_eq!(changes_of(&silent), Changes::Unknown("the remote `origin` did not answer".into()));
    }

    #[test]
    fn an_exit_code_comes_from_the_agent_but_a_signal_does_not() {
        let aborted = || Ending::Aborted { reason: "gone".into() };
        assert_eq!(counted(aborted(), Some(3)), Ending::GaveUp { reason: "gone".into() });
        for code in [None, Some(0), Some(125), Some(126), Some(127), Some(137)] {
            assert_eq!(counted(aborted(), code), aborted(), "{code:?}");
        }
        assert_eq!(counted(Ending::Finished, Some(3)), Ending::Finished);
    }

    #[test]
    fn the_remaining_time_budget_limits_the_clock() {
        let after = |limits: &Limits, used, agent_ms| limits_after(limits, used, agent_ms, "--max-duration");
        let mut limits = Limits { timeout_ms: 600, ..Limits::default() };
        assert_eq!(after(&limits, Usage::default(), 500).timeout_ms, 600);
        limits.budgets.duration_ms = Some(1000.0);
        let left = after(&limits, Usage::default(), 500);
        assert_eq!((left.timeout_ms, left.timeout_from.as_deref()), (500, Some("--max-duration")));
        assert_eq!(after(&left, Usage::default(), 1100).timeout_ms, 0);
        limits.on_budget = model::OnBudget::Warn;
        assert_eq!(after(&limits, Usage::default(), 500).timeout_ms, 600);
    }
}
