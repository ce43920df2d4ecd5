//! Names with which a user can select a run or a trial.

use model::{Outcome, RunRow, TrialRow, WITHOUT_SKILL, nearest};

/// Reason why a name does not select anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    /// No run is recorded.
    #[error("no run is recorded yet")]
    NoRuns,
    /// `previous` was requested, but there is only one run.
    #[error("there is no previous run: only {only} is recorded")]
    NoPrevious {
        /// Name of that run.
        only: String,
    },
    /// The requested run would be older than the first one.
    #[error("there is no `{wanted}`: the number of recorded runs is {runs}")]
    NotSoMany {
        /// Requested name.
        wanted: String,
        /// Number of recorded runs.
        runs: usize,
    },
    /// No run has that name.
    #[error("unknown run `{wanted}`")]
    UnknownRun {
        /// Requested name.
        wanted: String,
        /// Similar runs, best match first.
        near: Vec<String>,
    },
    /// Several ids start with that prefix.
    #[error("`{wanted}` is a prefix of several runs")]
    AmbiguousRun {
        /// Requested name.
        wanted: String,
        /// Matching runs, newest first.
        matches: Vec<String>,
    },
    /// No trial has that name.
    #[error("unknown trial `{wanted}`")]
    UnknownTrial {
        /// Requested name.
        wanted: String,
        /// Similar trials, best match first.
        near: Vec<String>,
    },
    /// Trials of several cases match that name.
    #[error("`{wanted}` matches {} trials of several cases", matches.len())]
    AmbiguousTrial {
        /// Requested name.
        wanted: String,
        /// Matching trials, those that did not pass first.
        matches: Vec<(String, Outcome)>,
    },
}

/// Number of names that an error lists.
const LISTED: usize = 5;

impl SelectError {
    /// Returns the names that the user may have meant, best match first.
    pub fn candidates(&self) -> &[String] {
        match self {
            Self::UnknownRun { near, .. } | Self::UnknownTrial { near, .. } => near,
            Self::AmbiguousRun { matches, .. } => matches,
            _ => &[],
        }
    }
}

/// Returns the index of the run to which `wanted` refers among `runs`, newest first. `latest~2` is two runs before the
/// latest. `latest`, `latest~N` and `previous` take precedence over labels, and labels over ids; if several runs have
/// the same label, the newest is selected.
pub fn select_run(runs: &[RunRow], wanted: &str) -> Result<usize, SelectError> {
    let Some(latest) = runs.first() else { return Err(SelectError::NoRuns) };
    match wanted {
        "latest" => return Ok(0),
        "previous" if runs.len() > 1 => return Ok(1),
        "previous" => return Err(SelectError::NoPrevious { only: describe(latest) }),
        _ => {}
    }
    if let Some(back) = wanted.strip_prefix("latest~").and_then(|back| back.parse::<usize>().ok()) {
        return if back < runs.len() {
            Ok(back)
        } else {
            Err(SelectError::NotSoMany { wanted: wanted.to_owned(), runs: runs.len() })
        };
    }
    if let Some(found) = runs.iter().position(|run| run.label.as_deref() == Some(wanted) || run.id == wanted) {
        return Ok(found);
    }
    let matches: Vec<usize> =
        (0..runs.len()).filter(|&index| !wanted.is_empty() && runs[index].id.starts_with(wanted)).collect();
    match matches[..] {
        [found] => Ok(found),
        [] => {
            let mut near: Vec<String> = Vec::new();
            let words = runs.iter().flat_map(|run| run.label.as_deref().into_iter().chain([run.id.as_str()]));
            if let Some(word) = nearest(wanted, words)
                && let Some(run) = runs.iter().find(|run| run.label.as_deref() == Some(word) || run.id == word)
            {
                near.push(describe(run));
            }
            for run in runs {
                let name = describe(run);
                if near.len() < LISTED && !near.contains(&name) {
                    near.push(name);
                }
            }
            Err(SelectError::UnknownRun { wanted: wanted.to_owned(), near })
        }
        _ => Err(SelectError::AmbiguousRun {
            wanted: wanted.to_owned(),
            matches: matches.iter().take(LISTED).map(|&index| describe(&runs[index])).collect(),
        }),
    }
}

/// Returns the index of the trial to which `wanted` refers among one run's `trials`. In order of precedence: a full
/// id, an id without its arm, an id without arm and repetition, a case, or the prefix of an id or a case. If a case
/// has several trials, the most informative one is selected: one with the skill rather than without it, a failed one
/// rather than a passed one, otherwise the first.
pub fn select_trial(trials: &[TrialRow], wanted: &str) -> Result<usize, SelectError> {
    let ways: [&dyn Fn(&TrialRow) -> bool; 5] = [
        &|trial| trial.id == wanted,
        &|trial| format!("{}::{}#{}", trial.suite, trial.case, trial.repetition) == wanted,
        &|trial| {
            wanted.strip_prefix(trial.suite.as_str()).and_then(|rest| rest.strip_prefix("::")) == Some(&trial.case)
        },
        &|trial| trial.case == wanted,
        &|trial| !wanted.is_empty() && (trial.id.starts_with(wanted) || trial.case.starts_with(wanted)),
    ];
    for way in ways {
        let mut matches: Vec<&TrialRow> = trials.iter().filter(|trial| way(trial)).collect();
        let Some(first) = matches.first() else { continue };
        let is_one_case = matches.iter().all(|trial| (&trial.suite, &trial.case) == (&first.suite, &first.case));
        // A trial without the skill is expected to fail.
        let is_baseline = |trial: &TrialRow| trial.variant.as_deref() == Some(WITHOUT_SKILL);
        matches.sort_by_key(|trial| (is_baseline(trial), rank(trial.outcome), trial.repetition, &trial.id));
        if is_one_case {
            let index = trials.iter().position(|trial| trial.id == matches[0].id);
            return Ok(index.unwrap_or_default());
        }
        let matches = matches.iter().map(|trial| (trial.id.clone(), trial.outcome)).collect();
        return Err(SelectError::AmbiguousTrial { wanted: wanted.to_owned(), matches });
    }
    let mut near: Vec<String> = Vec::new();
    let words = trials.iter().flat_map(|trial| [trial.case.as_str(), trial.id.as_str()]);
    if let Some(word) = nearest(wanted, words) {
        near.extend(trials.iter().filter(|trial| trial.case == word || trial.id == word).map(|trial| trial.id.clone()));
        near.truncate(LISTED);
    }
    for trial in trials {
        if near.len() < LISTED && !near.contains(&trial.id) {
            near.push(trial.id.clone());
        }
    }
    Err(SelectError::UnknownTrial { wanted: wanted.to_owned(), near })
}

/// Returns the sort position of a trial among several.
fn rank(outcome: Outcome) -> usize {
    let order =
        [Outcome::Failed, Outcome::Broken, Outcome::Stale, Outcome::Undecided, Outcome::Cancelled, Outcome::Passed];
    order.iter().position(|known| *known == outcome).unwrap_or(order.len())
}

fn describe(run: &RunRow) -> String {
    match &run.label {
        Some(label) => format!("{} ({label})", run.id),
        None => run.id.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: &str, label: Option<&str>) -> RunRow {
        RunRow {
            id: id.into(),
            short: id.into(),
            label: label.map(str::to_owned),
            regrade_of: None,
            started_at: jiff::Timestamp::UNIX_EPOCH,
            finished_at: None,
            duration_ms: None,
            signal: None,
            lease: None,
            trialrun_version: String::new(),
            agents: Vec::new(),
            planned: 0,
            finished: 0,
            sequential: false,
            missing_shards: None,
            hash: None,
            summary: None,
        }
    }

    fn runs() -> [RunRow; 4] {
        [run("0193b", None), run("0193a7", Some("nightly")), run("0193a5", None), run("0192", Some("nightly"))]
    }

    #[test]
    fn a_run_is_selected_by_position_label_or_prefix() {
        assert_eq!(select_run(&runs(), "latest"), Ok(0));
        assert_eq!(select_run(&runs(), "previous"), Ok(1));
        assert_eq!((select_run(&runs(), "latest~0"), select_run(&runs(), "latest~3")), (Ok(0), Ok(3)));
        assert_eq!(
            select_run(&runs(), "latest~9").unwrap_err().to_string(),
            "there is no `latest~9`: the number of recorded runs is 4"
        );
        assert_eq!(select_run(&runs(), "0192"), Ok(3));
        assert_eq!(select_run(&runs(), "0193b"), Ok(0));
        assert_eq!(select_run(&runs(), "nightly"), Ok(1), "the newest of several with one label");
    }

    fn trial(suite: &str, case: &str, repetition: u64, outcome: Outcome) -> TrialRow {
        TrialRow {
            run: "r".into(),
            label: None,
            id: format!("{suite}::{case}@fake#{repetition}"),
            suite: suite.into(),
            case: case.into(),
            arm: "fake".into(),
            agent: "fake".into(),
            model: None,
            variant: None,
            repetition,
            outcome,
            flaky: false,
            quarantined: false,
            fault: None,
            reason: None,
            score: None,
            max_score: None,
            score_bounds: None,
            started_at: jiff::Timestamp::UNIX_EPOCH,
            duration_ms: 1,
            agent_ms: Some(1),
            turns: 0,
            tool_calls: 0,
            tokens: None,
            cost_usd: None,
            token_budget: None,
            attempts: 1,
            errors: 0,
            skill_version: None,
            skill_hash: None,
        }
    }

    #[test]
    fn a_trial_is_selected_by_its_id_its_case_or_a_prefix_of_either() {
        let trials = [
            trial("s", "login works", 1, Outcome::Passed),
            trial("s", "login works", 2, Outcome::Failed),
            trial("s", "logout", 1, Outcome::Passed),
            trial("t", "refund", 1, Outcome::Passed),
        ];
        for (wanted, found) in [
            ("s::login works@fake#1", 0),
            ("s::login works#1", 0),
            ("login works", 1),
            ("s::login works", 1),
            ("login", 1),
            ("s::logi", 1),
            ("ref", 3),
        ] {
            assert_eq!(select_trial(&trials, wanted), Ok(found), "{wanted}");
        }
        let Err(SelectError::AmbiguousTrial { matches, .. }) = select_trial(&trials, "log") else { panic!("log") };
        let outcomes: Vec<(&str, Outcome)> = matches.iter().map(|(id, outcome)| (id.as_str(), *outcome)).collect();
        assert_eq!(
            outcomes,
            [
                ("s::login works@fake#2", Outcome::Failed),
                ("s::login works@fake#1", Outcome::Passed),
                ("s::logout@fake#1", Outcome::Passed),
            ]
        );
    }

    #[test]
    fn an_ambiguous_prefix_lists_its_matches() {
        let error = select_run(&runs(), "0193a").unwrap_err();
        assert_eq!(error.to_string(), "`0193a` is a prefix of several runs");
        assert_eq!(error.candidates(), ["0193a7 (nightly)", "0193a5"]);
        assert!(matches!(select_run(&runs(), ""), Err(SelectError::UnknownRun { .. })));
    }

    #[test]
    fn an_unknown_name_lists_the_nearest_first() {
        let error = select_run(&runs(), "nigthly").unwrap_err();
        assert_eq!(error.to_string(), "unknown run `nigthly`");
        assert_eq!(error.candidates()[..2], ["0193a7 (nightly)", "0193b"]);
    }

    #[test]
    fn a_single_run_has_no_previous_run() {
        assert_eq!(select_run(&runs()[..1], "previous"), Err(SelectError::NoPrevious { only: "0193b".into() }));
        assert_eq!(select_run(&runs()[..0], "latest"), Err(SelectError::NoRuns));
    }
}
