//! Recorded trials that can be repeated from one of their steps.

use std::path::PathBuf;
use std::sync::Arc;

use cassette::{Cassette, Recording, Sender};
use jiff::SignedDuration;
use model::{CassetteMode, TrialRow};
use session::overrides::{CassetteArgs, ForkFrom, GateArgs, OutputArgs, SelectionArgs};
use session::{Overrides, Planned, Session};
use store::Store;

use crate::error::CliError;
use crate::place;
use crate::recorded_arguments::recorded_arguments;

/// Time after the end of a trial within which a recording that does not name its start must have been written.
const WRITING: SignedDuration = SignedDuration::from_secs(60);

/// A recorded trial with its model traffic.
pub struct RecordedTrial {
    /// The trial.
    pub row: TrialRow,
    args: Overrides,
    /// Directory in which its run was started.
    directory: PathBuf,
    /// File with its model traffic.
    cassette: PathBuf,
    recording: Arc<Recording>,
}

/// Changes that a repetition makes to a recorded trial.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    /// Number of repetitions.
    pub times: u64,
    /// Trial whose agent, model and variant are used instead of the recorded ones.
    pub arm: Option<TrialRow>,
    /// Model to use instead of the recorded one.
    pub model: Option<String>,
    /// System prompt to use instead of that of the case.
    pub system_prompt: Option<String>,
    /// Label of the run.
    pub label: String,
}

impl RecordedTrial {
    /// Finds the model traffic of a trial, which is in the record of the session `here`.
    ///
    /// # Errors
    /// Returns an error if the trial can no longer be planned, or if its traffic was not recorded.
    pub fn find(here: &Session, store: &dyn Store, row: TrialRow) -> Result<Self, CliError> {
        let info = store.info(&row.run)?;
        let (mut args, directory) = recorded_arguments(&store.select(&row.run)?, &info)?;
        let SelectionArgs { files, evals, skill, .. } = args.selection;
        let only = Some([format!("{}::{}", row.suite, row.case)].into());
        args.selection = SelectionArgs { files, evals, skill, only, ..SelectionArgs::default() };
        (args.gates, args.output) = (GateArgs::default(), OutputArgs::default());
        let off = CassetteArgs { cassette: Some(CassetteMode::Off), ..args.cassettes.clone() };
        let (_, prepared) = place::plan_from(here, &directory, &Overrides { cassettes: off, ..args.clone() })?;
        let planned = prepared.plan.trials.iter().find(|trial| trial.id().to_string() == row.id).ok_or_else(|| {
            CliError::usage(format!("the trial {} can no longer be run: its test or its arm has changed", row.id))
        })?;
        if !runner::is_recorded(planned, &prepared.plan.judging) {
            let error = format!("the trial {} cannot be repeated: it has no model traffic that is recorded", row.id);
            return Err(CliError::usage(error).hint("`trialrun run` runs the case again"));
        }
        let file = runner::cassette_file(planned, &prepared.plan.settings.cassettes);
        let missing = |reason: &str| {
            CliError::usage(format!("cannot find the recorded model traffic of the trial {}: {reason}", row.id))
                .hint("`trialrun run --cassette record` records it")
        };
        let cassette = Cassette::read(&file).map_err(|error| missing(&format!("{}: {error}", file.display())))?;
        let recording = cassette
            .recording(row.repetition)
            .ok_or_else(|| missing(&format!("{} has no recording of it", file.display())))?;
        if !is_of(recording, &row) {
            return Err(missing(&format!("{} has a recording of another run", file.display()))
                .hint("with `--cassette-dir DIR`, each run keeps its own recordings"));
        }
        Ok(Self { row, args, directory, recording: Arc::clone(recording), cassette: file })
    }

    /// Returns the number of requests that the agent sent to its model.
    pub fn turns(&self) -> usize {
        self.recording.exchanges.iter().filter(|exchange| exchange.sender == Sender::Agent).count()
    }

    /// Returns the number of tool calls in the first `turns` answers to the agent.
    pub fn calls(&self, turns: usize) -> usize {
        let of_agent = self.recording.exchanges.iter().filter(|exchange| exchange.sender == Sender::Agent);
        let content = of_agent.take(turns).filter_map(runner::recorded_reply).flat_map(|reply| reply.content);
        content.filter(|block| matches!(block, llm::Block::ToolUse { .. })).count()
    }

    /// Returns the arguments of a run that replays the first `turns` answers of the trial, and then asks the model.
    pub fn arguments(&self, turns: usize, changes: &Changes) -> Overrides {
        let mut args = self.args.clone();
        args.arms.trials = Some(model::Trials::Fixed(changes.times));
        let arm = changes.arm.as_ref().unwrap_or(&self.row);
        args.arms.agent = vec![arm.agent.clone()];
        args.arms.model = arm.model.iter().cloned().collect();
        if let Some(model) = &changes.model {
            args.arms.model = vec![model.clone()];
        }
        args.arms.system_prompt.clone_from(&changes.system_prompt);
        args.cassettes = CassetteArgs { cassette: Some(CassetteMode::Off), ..CassetteArgs::default() };
        args.fork = Some(ForkFrom { cassette: self.cassette.clone(), repetition: self.row.repetition, turns });
        args.output.label = Some(changes.label.clone());
        args
    }

    /// Plans the run with these `arguments`, which is recorded where the session `here` records.
    ///
    /// # Errors
    /// Returns an error if the test cannot be planned.
    pub fn plan(
        &self,
        here: &Session,
        arguments: &Overrides,
        changes: &Changes,
    ) -> Result<(Session, Planned), CliError> {
        let (session, mut planned) = place::plan_from(here, &self.directory, arguments)?;
        let variant = changes.arm.as_ref().unwrap_or(&self.row).variant.as_deref();
        planned.plan.trials.retain(|trial| trial.arm.variant.as_deref() == variant);
        Ok((session, planned))
    }
}

/// Returns `true` if the trial made the recording.
fn is_of(recording: &Recording, row: &TrialRow) -> bool {
    if let Some(started_at) = recording.about.started_at {
        // The database stores microseconds.
        return started_at.as_microsecond() == row.started_at.as_microsecond();
    }
    let end = row.finished_at().checked_add(WRITING).ok();
    let at = recording.about.recorded_at;
    at >= row.started_at && end.is_none_or(|end| at <= end)
}

#[cfg(test)]
mod tests {
    use cassette::RecordingInfo;
    use jiff::Timestamp;
    use serde_json::json;

    use super::*;

    fn at(text: &str) -> Timestamp {
        format!("2026-01-01T00:00:{text}Z").parse().unwrap()
    }

    fn trial(started_at: Timestamp) -> TrialRow {
        serde_json::from_value(json!({
            "run": "r", "id": "s::c@a#1", "suite": "s", "case": "c", "arm": "a", "agent": "a", "repetition": 1,
            "outcome": "passed", "flaky": false, "quarantined": false, "started_at": started_at, "duration_ms": 2000,
            "turns": 1, "tool_calls": 0, "attempts": 1, "errors": 0,
        }))
        .unwrap()
    }

    fn recording(started_at: Option<Timestamp>, recorded_at: Timestamp) -> Recording {
        let about = RecordingInfo { started_at, recorded_at, ..RecordingInfo::default() };
        Recording { about, ..Recording::default() }
    }

    #[test]
    fn a_recording_of_the_same_trial_in_a_later_run_is_not_taken_for_its_own() {
        let first = trial(at("10.123456"));
        assert!(is_of(&recording(Some(at("10.123456789")), at("12.2")), &first));
        assert!(!is_of(&recording(Some(at("10.123457")), at("12.2")), &first), "of a run right after it");
    }

    #[test]
    fn without_the_start_of_the_trial_the_time_of_the_recording_decides() {
        let row = trial(at("10"));
        assert!(is_of(&recording(None, at("12.1")), &row));
        assert!(!is_of(&recording(None, at("09")), &row));
        let late = at("12") + WRITING + SignedDuration::from_secs(1);
        assert!(!is_of(&recording(None, late), &row));
    }
}
