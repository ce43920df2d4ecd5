//! Checks the settings table against the arguments, the configuration and the effective defaults.

use std::collections::BTreeSet;

use super::*;
use crate::tests::session_in;

#[test]
fn every_setting_option_exists_on_run() {
    let run = <Overrides as clap::Args>::augment_args(clap::Command::new("run"));
    for setting in &SETTINGS {
        let is_own = setting.flag.is_none() || setting.name == "state";
        assert!(is_own || run.get_arguments().any(|arg| setting.is_of(arg)), "{}", setting.name);
    }
}

#[test]
fn every_setting_key_exists_in_the_configuration() {
    let schema = suite::config_schema();
    let keys = |section: &str| {
        let section = if section.is_empty() { &schema } else { &schema["definitions"][section] };
        section["properties"].as_object().unwrap()
    };
    for key in SETTINGS.iter().filter_map(|setting| setting.key) {
        let (section, key) = key.split_once('.').unwrap_or(("", key));
        assert!(keys(section).contains_key(key), "{section}.{key}");
    }
    // Aliases of these keys, and keys of other sections.
    let others = ["runtime", "parallelism", "reruns", "sandbox", "defaultTimeout", "default_timeout", "retries"];
    let in_table = |key: &String| {
        SETTINGS
            .iter()
            .filter_map(|setting| setting.key)
            .any(|known| known.split_once('.').is_some_and(|(_, known)| model::decode::snake_case(key) == known))
    };
    for key in keys("defaults").keys().chain(keys("eval").keys()).chain(keys("judge").keys()) {
        let is_secret = ["api_key", "apiKey", "temperature"].contains(&key.as_str());
        assert!(is_secret || others.contains(&key.as_str()) || in_table(key), "{key}");
    }
}

#[test]
fn every_name_and_variable_belongs_to_one_setting() {
    let names: BTreeSet<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
    assert_eq!(names.len(), SETTINGS.len());
    for (index, setting) in SETTINGS.iter().enumerate() {
        for other in SETTINGS[..index].iter().filter(|other| other.flag != setting.flag) {
            assert!(setting.variables.iter().all(|name| !other.variables.contains(name)), "{}", setting.name);
        }
    }
}

#[test]
fn documented_defaults_are_the_effective_defaults() {
    let folder = tempfile::tempdir().unwrap();
    let session = session_in(folder.path());
    let spec = session.resolve(&Overrides::default()).unwrap();
    let mut compared = 0;
    for (setting, row) in SETTINGS.iter().zip(spec.rows()).filter(|(_, row)| row.layer == Layer::BuiltIn) {
        let first = setting.default.split(',').next().unwrap_or_default();
        let shown = match &row.value {
            Value::Number(number) if setting.name.contains("_ms") => {
                assert_eq!(parse_duration(first).ok(), number.as_u64(), "{}", setting.name);
                first.to_owned()
            }
            Value::Number(number) if setting.name != "jobs" && !first.is_empty() => number.to_string(),
            Value::String(text) if setting.name != "judge" && !text.contains('/') => text.clone(),
            _ => continue,
        };
        assert_eq!(shown, first, "{}", setting.name);
        compared += 1;
    }
    assert!(compared >= 12, "{compared}");
}
