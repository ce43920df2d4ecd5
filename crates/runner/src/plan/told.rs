//! Settings of a trial in its records: those that change what its agent does.

use std::sync::Arc;

use agent::Setup;
use model::Case;
use serde_json::{Map, Value, json};

use super::{PlannedTrial, Settings};

/// Returns the settings that records of a trial of `case` with `setup` contain. They are shared with `last`, the trial
/// that was planned before, where they are the same: there may be thousands of trials.
pub(super) fn of(
    case: &Case,
    setup: &Arc<Setup>,
    settings: &Settings,
    last: Option<&PlannedTrial>,
) -> Arc<Map<String, Value>> {
    let level = |case: &Case| case.skill_eval.as_ref().map(|eval| eval.side_effect_level);
    match last.filter(|last| Arc::ptr_eq(&last.setup, setup) && level(&last.case) == level(case)) {
        Some(last) => Arc::clone(&last.told),
        None => Arc::new(map(case, setup, settings)),
    }
}

fn map(case: &Case, setup: &Setup, settings: &Settings) -> Map<String, Value> {
    let mut map = Map::new();
    map.insert("permission_mode".into(), json!(setup.permission_mode.name()));
    map.insert("allowed_tools".into(), json!(setup.closed_tools));
    map.insert("approved_tools".into(), json!(setup.approved_tools));
    let sources: Vec<&str> = setup.setting_sources.iter().map(|source| source.name()).collect();
    map.insert("setting_sources".into(), json!(sources));
    map.insert("reasoning_effort".into(), json!(setup.reasoning_effort));
    map.insert("sandbox".into(), json!(settings.sandbox.kind));
    if let Some(eval) = &case.skill_eval {
        map.insert("side_effect_level".into(), json!(eval.side_effect_level.name()));
    }
    map
}
