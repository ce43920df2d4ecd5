//! The cassette of a trial: starts a tape for each attempt, and writes the recording afterwards.

#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use cassette::{CassetteError, CassetteMode, CassetteName, Normalizer, Recording, RecordingInfo, Tape};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};
use mask::Mask;
use model::{CassetteUse, Ending, TrialRecord};
use sandbox::{Breakage, Sandbox};
use serde_json::json;

use super::Shared;
use crate::plan::{CassetteSettings, Fork, Judging, ModelChoice, PlannedTrial};

/// Folder of cassettes beside a suite.
const FOLDER: &str = "cassettes";

/// Returns the path of a trial's cassette.
pub fn cassette_file(planned: &PlannedTrial, settings: &CassetteSettings) -> PathBuf {
    let beside = || planned.directory.join(FOLDER);
    let folder = settings.directory.clone().unwrap_or_else(beside);
    let id = &planned.id();
    cassette::file_name(&folder, CassetteName { suite: &id.suite, case: &id.case, arm: &id.arm })
}

/// Starts the tape for an attempt; `None` if the run uses no cassettes, or if the trial has no model to record.
///
/// # Errors
/// Returns an error if the cassette cannot be read.
pub(super) fn tape(
    planned: &PlannedTrial,
    shared: &Shared,
    sandbox: Option<&dyn Sandbox>,
    mask: &Mask,
) -> Result<Option<Arc<Tape>>, Breakage> {
    let cassettes = &shared.cassettes;
    let mode = cassettes.mode();
    if let Some(Fork { recording, turns }) = &shared.settings.cassettes.fork {
        let normalizer = normalizer(planned, shared, sandbox, Some(recording)).masking(mask);
        let recording = Some(Arc::clone(recording));
        let tape = Tape::new(CassetteMode::Replay, "the recorded trial", recording, normalizer).replaying_first(*turns);
        return Ok(Some(Arc::new(tape)));
    }
    if mode == CassetteMode::Off || !is_recorded(planned, &shared.judging) {
        return Ok(None);
    }
    let file = cassette_file(planned, &shared.settings.cassettes);
    let shown = shown(&file, &planned.directory);
    let recorded = cassettes.recording(&file, planned.repetition).map_err(|error| {
        let hint = match error {
            CassetteError::Version(_) => "use that version, or delete the cassette",
            _ => "set `cassette` to `record` to replace it",
        };
        Breakage::environment(format!("the cassette {shown} cannot be used: {error}; {hint}")).for_good()
    })?;
    let normalizer = normalizer(planned, shared, sandbox, recorded.as_ref()).masking(mask);
    Ok(Some(Arc::new(Tape::new(mode, shown, recorded, normalizer).with_delays(cassettes.honours_delays()))))
}

/// Returns `true` if the trial asks a model that can be recorded: the agent's, the judge's, or one that plays the user
/// or a mock. Scripted
/// models are not recorded, because they always give the same answers.
pub fn is_recorded(planned: &PlannedTrial, judging: &Judging) -> bool {
    let description = planned.agent.description();
    let of_agent =
        matches!(planned.model, ModelChoice::Vendor(_)) && (description.wire.is_some() || description.asks_providers);
    let of_user = planned.players().any(|model| judging.player_is_on_network(model));
    of_agent || description.reads_model_variables || of_user || judging.asks_network(planned)
}

fn normalizer(
    planned: &PlannedTrial,
    shared: &Shared,
    sandbox: Option<&dyn Sandbox>,
    recorded: Option<&Arc<Recording>>,
) -> Normalizer {
    let mut places: Vec<(String, &str)> = Vec::new();
    let mut add = |path: &Path, name| {
        places.push((path.to_string_lossy().into_owned(), name));
        if let Ok(real) = path.canonicalize().map(|real| real.to_string_lossy().into_owned())
            && !places.iter().any(|(known, _)| *known == real)
        {
            places.push((real, name));
        }
    };
    if let Some(sandbox) = sandbox {
        add(sandbox.work(), "work");
        add(sandbox.home(), "home");
        if let Some(root) = sandbox.work().parent() {
            add(root, "sandbox");
        }
    }
    add(&planned.directory, "suite");
    add(&shared.host.temp, "temp");
    let recorded_on = recorded.map(|recording| recording.about.recorded_at.to_zoned(TimeZone::system()).date());
    let dates: Vec<Date> = std::iter::once(Zoned::now().date()).chain(recorded_on).collect();
    Normalizer::new(planned.agent.description().request_rules, &places, &dates)
}

/// Returns the path relative to the suite's folder if possible.
fn shown(file: &Path, directory: &Path) -> String {
    file.strip_prefix(directory).unwrap_or(file).to_string_lossy().into_owned()
}

/// Returns the path of a cassette relative to the working directory, if it is below that directory.
fn from_working_directory(cassette: &Path, cwd: &Path) -> String {
    cassette.strip_prefix(cwd).unwrap_or(cassette).to_string_lossy().into_owned()
}

/// Adds to the record how the trial used its cassette, and writes the recording of the attempt unless the attempt says
/// nothing about the agent. Problems become warnings on the trial. The file is written on a thread for blocking calls,
/// because compressing and syncing it takes long.
pub(super) async fn save(
    tape: &Tape,
    planned: &PlannedTrial,
    shared: &Arc<Shared>,
    mask: &Mask,
    record: &mut TrialRecord,
) {
    let file = cassette_file(planned, &shared.settings.cassettes);
    let [replayed, live] = tape.requests();
    if shared.settings.cassettes.fork.is_none() && replayed + live > 0 {
        record.cassette = Some(Box::new(CassetteUse {
            file: from_working_directory(&file, &planned.state.cwd),
            recorded: false,
            replayed,
            live,
        }));
    }
    if !record.outcome.is_graded() {
        return;
    }
    let not_written = |reason: &dyn std::fmt::Display| format!("the cassette was not written: {reason}");
    if matches!(record.ending, Some(Ending::TimedOut { .. })) && tape.has_unanswered() {
        // A replay would have no answer to the request that was interrupted.
        return record.warnings.push(not_written(&"the trial ended while the model was answering"));
    }
    let mut recording = match tape.recorded() {
        Ok(Some(recording)) => recording,
        Ok(None) => return,
        Err(reason) => return record.warnings.push(not_written(&reason)),
    };
    recording.about = RecordingInfo {
        repetition: planned.repetition,
        recorded_at: Timestamp::now(),
        started_at: Some(record.started_at),
        trialrun: env!("CARGO_PKG_VERSION").to_owned(),
        agent_version: record.agent_version.clone(),
        model: record.model.clone(),
        inputs: inputs(planned),
    };
    let (writer, mask) = (Arc::clone(shared), mask.clone());
    let saved = tokio::task::spawn_blocking(move || writer.cassettes.save(&file, recording, &mask)).await;
    match saved {
        Ok(Ok(())) => {
            if let Some(cassette) = &mut record.cassette {
                cassette.recorded = true;
            }
        }
        Ok(Err(error)) => record.warnings.push(not_written(&error)),
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => record.warnings.push(not_written(&"the run is ending")),
        },
    }
}

/// Returns a hash of the user's input that the agent sees: prompts, messages, the skill and the settings, except for
/// the kind of sandbox.
pub fn inputs(planned: &PlannedTrial) -> String {
    let skill = planned.skill_info().map(|skill| skill.content_hash);
    let messages: Vec<&str> = planned.case.messages.iter().map(|message| message.text.as_str()).collect();
    let settings = planned.recorded_settings.iter().filter(|(key, _)| *key != "sandbox");
    cassette::content_hash(&json!({
        "settings": settings.collect::<Vec<_>>(),
        "skill": skill,
        "system_prompt": planned.setup.system_prompt,
        "messages": messages,
    }))
}

/// Makes the trial stale if a request had no recorded answer, no matter how its agent reacted.
pub(super) fn judge_staleness(tape: Option<&Arc<Tape>>, ending: &mut Ending) {
    if *ending != Ending::Cancelled
        && let Some(request) = tape.and_then(|tape| tape.stale())
    {
        *ending = Ending::Stale(Box::new(request));
    }
}
