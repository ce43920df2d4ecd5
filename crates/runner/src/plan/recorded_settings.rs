//! Settings of a trial in its records: those that change what its agent does.

use std::sync::Arc;

use model::Case;
use serde_json::{Map, Value, json};

use super::settings::Settings;
use super::trial::PlannedTrial;

/// Returns the settings that records of `trial` contain, shared with `last` if they are the same: there may be
/// thousands of trials.
pub(super) fn recorded_settings(
    trial: &PlannedTrial,
    settings: &Settings,
    last: Option<&PlannedTrial>,
) -> Arc<Map<String, Value>> {
    let level = |case: &Case| case.skill_eval.as_ref().map(|eval| eval.side_effect_level);
    let is_same =
        |last: &&PlannedTrial| Arc::ptr_eq(&last.setup, &trial.setup) && level(&last.case) == level(&trial.case);
    if let Some(last) = last.filter(is_same) {
        return Arc::clone(&last.recorded_settings);
    }
    let setup = &trial.setup;
    let sources: Vec<&str> = setup.setting_sources.iter().map(|source| source.name()).collect();
    let mut map = Map::new();
    map.insert("permission_mode".into(), json!(setup.permission_mode.name()));
    map.insert("allowed_tools".into(), json!(setup.closed_tools));
    map.insert("approved_tools".into(), json!(setup.approved_tools));
    map.insert("setting_sources".into(), json!(sources));
    map.insert("reasoning_effort".into(), json!(setup.reasoning_effort));
    map.insert("sandbox".into(), json!(settings.sandbox.kind));
    if let Some(level) = level(&trial.case) {
        map.insert("side_effect_level".into(), json!(level.name()));
    }
    Arc::new(map)
}
