//! Environment variables that are settings, such as `TRIALRUN_JOBS`.

use std::collections::{BTreeMap, BTreeSet};

use model::{Diagnostic, nearest};

use super::table::{SETTINGS, Setting};
use crate::error::Error;
use crate::overrides::Overrides;

/// Common prefix of their names.
const PREFIX: &str = "TRIALRUN_";

/// Variables that this program or its GitHub Action reads but that are not settings.
const OTHERS: [&str; 6] = [
    "TRIALRUN_BASELINE",
    "TRIALRUN_BASELINE_RUN",
    "TRIALRUN_CLAUDE",
    "TRIALRUN_LOG",
    "TRIALRUN_LOG_FILE",
    "TRIALRUN_NO_NAMESPACE",
];

/// Returns the command line with additional settings from environment variables. An empty variable counts as not set.
///
/// # Errors
/// Returns an error if a variable has an invalid value, even if the command line overrides it.
pub fn added_to(line: &Overrides, environment: &BTreeMap<String, String>) -> Result<Overrides, Error> {
    let mut args = line.clone();
    for setting in &SETTINGS {
        let (Some(put), Some((name, text))) = (setting.put, of(setting, environment)) else { continue };
        let mut overridden = Overrides::default();
        let target = if (setting.is_typed)(line) { &mut overridden } else { &mut args };
        put(target, text).map_err(|wanted| {
            Error::usage(format!("invalid value `{text}` for the `{name}` variable"))
                .hint(if wanted.contains("write ") { wanted } else { format!("write {wanted}") })
        })?;
    }
    Ok(args)
}

/// Returns the variable that sets `setting`, and its text; if there are several, the one with the highest precedence.
pub fn of<'e>(setting: &Setting, environment: &'e BTreeMap<String, String>) -> Option<(&'static str, &'e str)> {
    let set = setting.variables.iter().filter_map(|name| Some((*name, environment.get(*name)?.trim())));
    set.into_iter().find(|(_, text)| !text.is_empty())
}

/// Returns warnings about variables that look like misspelt settings.
pub fn misspelt(environment: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    let known = || SETTINGS.iter().flat_map(|setting| setting.variables).copied().chain(OTHERS);
    let unknown = environment
        .keys()
        .filter(|name| name.starts_with(PREFIX) && known().all(|one| one != *name))
        .filter(|name| !crate::hooks::is_hook_variable(name));
    let problem = |name: &String| {
        // If a name is not similar to any other, it may belong to another program.
        let own = name.strip_prefix(PREFIX)?;
        let problem = Diagnostic::warning(format!("unknown variable `{name}`"));
        if let Some(setting) = SETTINGS.iter().find(|setting| setting.name.eq_ignore_ascii_case(own)) {
            if let Some(right) = setting.variables.first() {
                return Some(problem.suggest(Some(right)));
            }
            let place = setting.flag.map(|flag| format!("the option `{flag}`"));
            let place = place.or_else(|| setting.key.map(|key| format!("`{key}` in the configuration")));
            return Some(problem.help(format!("`{}` is set by {}", setting.name, place?)));
        }
        let near = nearest(own, known().filter_map(|one| one.strip_prefix(PREFIX)))?;
        Some(problem.suggest(Some(&format!("{PREFIX}{near}"))))
    };
    unknown.filter_map(problem).collect()
}

/// Returns the tables of settings and variables for the reference page about the configuration, by section name.
pub fn reference() -> Vec<(String, String)> {
    let code = |name: Option<&str>| name.map_or(String::new(), |name| format!("`{name}`"));
    let mut settings =
        String::from("| setting | option | key | default | applies | |\n| --- | --- | --- | --- | --- | --- |\n");
    for setting in &SETTINGS {
        settings.push_str(&format!(
            "| `{}` | {} | {} | {} | {} | {}. |\n",
            setting.name,
            code(setting.flag),
            code(setting.key),
            setting.default,
            setting.applies.describe(),
            setting.help
        ));
    }
    let mut variables = String::from("| variable | setting | |\n| --- | --- | --- |\n");
    let mut listed = BTreeSet::new();
    for setting in &SETTINGS {
        for name in setting.variables.iter().filter(|name| listed.insert(**name)) {
            variables.push_str(&format!("| `{name}` | `{}` | {}. |\n", setting.name, setting.help));
        }
    }
    vec![("settings".to_owned(), settings), ("variables".to_owned(), variables)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn added(environment: &BTreeMap<String, String>) -> Result<Overrides, Error> {
        added_to(&Overrides::default(), environment)
    }

    fn of_name(name: &str, environment: &BTreeMap<String, String>) -> Option<&'static str> {
        let setting = SETTINGS.iter().find(|setting| setting.name == name).unwrap();
        of(setting, environment).map(|(name, _)| name)
    }

    #[test]
    fn values_are_read_as_on_the_command_line() {
        let pairs =
            [("TRIALRUN_JOBS", "4"), ("TRIALRUN_TIMEOUT", "90"), ("TRIALRUN_AGENT", "a, b"), ("TRIALRUN_MODEL", "")];
        let args = added(&environment(&pairs)).unwrap();
        assert_eq!((args.schedule.jobs, args.schedule.timeout.map(|clock| clock.ms)), (Some(4), Some(90_000)));
        assert_eq!((args.arms.agent, args.arms.model), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        let error = added(&environment(&[("TRIALRUN_JOBS", "many")])).unwrap_err();
        assert_eq!(error.to_string(), "invalid value `many` for the `TRIALRUN_JOBS` variable");
        assert_eq!(error.hints(), ["write a number from 1 to 1024"]);
    }

    #[test]
    fn a_false_value_does_not_keep_the_sandbox() {
        let keeps = |text: &str| added(&environment(&[("ASE_KEEP_WORKSPACE", text)])).unwrap().sandboxes.keep_sandbox;
        assert_eq!(["1", "yes", "true"].map(keeps), [true; 3]);
        assert_eq!(["0", "false", "No", "off", ""].map(keeps), [false; 5]);
        let error = added(&environment(&[("ASE_KEEP_WORKSPACE", "maybe")])).unwrap_err();
        assert_eq!(error.to_string(), "invalid value `maybe` for the `ASE_KEEP_WORKSPACE` variable");
    }

    #[test]
    fn an_alias_has_lower_precedence_and_is_reported_as_the_origin() {
        let both = environment(&[("ASE_AGENT_TIMEOUT", "90"), ("TRIALRUN_TIMEOUT", "30"), ("ASE_KEEP_WORKSPACE", "1")]);
        let args = added(&both).unwrap();
        assert_eq!((args.schedule.timeout.map(|clock| clock.ms), args.sandboxes.keep_sandbox), (Some(30_000), true));
        assert_eq!(of_name("timeout_ms", &both), Some("TRIALRUN_TIMEOUT"));
        let other = environment(&[("ASE_AGENT_TIMEOUT", "90"), ("ASE_AGENT_RETRIES", "3")]);
        assert_eq!(added(&other).unwrap().schedule.retries, Some(3));
        assert_eq!(of_name("timeout_ms", &other), Some("ASE_AGENT_TIMEOUT"));
        assert_eq!(of_name("retries", &other), Some("ASE_AGENT_RETRIES"));
        let error = added(&environment(&[("ASE_AGENT_RETRIES", "often")])).unwrap_err();
        assert_eq!(error.to_string(), "invalid value `often` for the `ASE_AGENT_RETRIES` variable");
    }

    #[test]
    fn an_unknown_variable_is_reported_with_the_nearest_name() {
        let problems =
            misspelt(&environment(&[("TRIALRUN_JOB", "4"), ("TRIALRUN_BASELINE", "x"), ("TRIALRUN_ZZZZ", "x")]));
        assert_eq!(problems.len(), 1);
        assert_eq!(problems[0].message, "unknown variable `TRIALRUN_JOB`");
        assert_eq!(problems[0].help, ["did you mean `TRIALRUN_JOBS`?"]);
        let help = |name: &str| misspelt(&environment(&[(name, "x")])).remove(0).help;
        assert_eq!(help("TRIALRUN_SEED"), ["`seed` is set by the option `--seed`"]);
        assert_eq!(help("TRIALRUN_SKILLS_DIR"), ["`skills_dir` is set by `skills_dir` in the configuration"]);
        assert_eq!(help("TRIALRUN_TOKEN_BUDGET"), ["did you mean `TRIALRUN_MAX_TOTAL_TOKENS`?"]);
    }
}
