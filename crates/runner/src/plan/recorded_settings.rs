//! The settings in a trial's records: those that change what its agent does.

use serde_json::{Map, Value, json};

use super::settings::Settings;
use super::trial::PlannedCase;

/// Returns the settings that records of trials of `planned` contain.
pub(super) fn recorded_settings(planned: &PlannedCase, settings: &Settings) -> Map<String, Value> {
    let setup = &planned.setup;
    let sources: Vec<&str> = setup.setting_sources.iter().map(|source| source.name()).collect();
    let mut map = Map::new();
    map.insert("permission_mode".into(), json!(setup.permission_mode.name()));
    map.insert("allowed_tools".into(), json!(setup.closed_tools));
    map.insert("approved_tools".into(), json!(setup.approved_tools));
    map.insert("setting_sources".into(), json!(sources));
    map.insert("reasoning_effort".into(), json!(setup.reasoning_effort));
    map.insert("sandbox".into(), json!(settings.sandbox.kind));
    if let Some(eval) = &planned.case.skill_eval {
        map.insert("side_effect_level".into(), json!(eval.side_effect_level.name()));
    }
    map
}
