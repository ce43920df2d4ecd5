//! Settings in environment variables, such as `TRIALRUN_JOBS`. They override suites and the project, and the command
//! line overrides them.

use std::collections::BTreeMap;

use model::{Diagnostic, nearest};

use crate::error::CliError;
use crate::run_args::{RunArgs, Timeout, parse_duration, parse_jobs, parse_judges, parse_positive};

/// Prefix of all names.
const PREFIX: &str = "TRIALRUN_";

/// A setting in the environment.
pub struct Variable {
    /// Name of the variable.
    pub name: &'static str,
    /// Description, one sentence.
    pub about: &'static str,
    /// Name of the setting.
    pub row: &'static str,
    put: fn(&mut RunArgs, &str) -> Result<(), String>,
}

/// Variable with the folder of the record.
pub const STATE: &str = "TRIALRUN_STATE";

/// All variables except [`STATE`], in the order of the settings.
pub static VARIABLES: [Variable; 18] = [
    Variable {
        name: "TRIALRUN_AGENT",
        about: "The agent, or several between commas.",
        row: "agent",
        put: |args, text| {
            args.agent = listed(text);
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_MODEL",
        about: "The model, or several between commas; `AGENT=MODEL` for one agent.",
        row: "model",
        put: |args, text| {
            args.model = listed(text);
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_REASONING_EFFORT",
        about: "How hard the model is to think.",
        row: "reasoning_effort",
        put: |args, text| {
            args.reasoning_effort = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_BASE_URL",
        about: "Where the agent's model is reached.",
        row: "base_url",
        put: |args, text| {
            args.base_url = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_TRIALS",
        about: "How often each case runs.",
        row: "trials",
        put: |args, text| whole(text, 1).map(|value| args.trials = Some(value)),
    },
    Variable {
        name: "TRIALRUN_MAX_TURNS",
        about: "The most model turns of a trial.",
        row: "max_turns",
        put: |args, text| whole(text, 1).map(|value| args.max_turns = Some(value)),
    },
    Variable {
        name: "TRIALRUN_MAX_TOTAL_TOKENS",
        about: "The most tokens of a trial.",
        row: "token_budget",
        put: |args, text| parse_positive(text).map(|value| args.max_total_tokens = Some(value)),
    },
    Variable {
        name: "TRIALRUN_TIMEOUT",
        about: "Wall clock of a trial; a bare number is seconds, as on the command line.",
        row: "timeout_ms",
        put: |args, text| Timeout::parse(text).map(|value| args.timeout = Some(value)),
    },
    Variable {
        name: "TRIALRUN_JOBS",
        about: "How many trials run at a time.",
        row: "jobs",
        put: |args, text| parse_jobs(text).map(|value| args.jobs = Some(value)),
    },
    Variable {
        name: "TRIALRUN_RETRIES",
        about: "How often a broken attempt is repeated.",
        row: "retries",
        put: |args, text| {
            let value = text.parse().map_err(|_| "a whole number".to_owned())?;
            args.retries = Some(value);
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_RERUNS",
        about: "How often a failed trial is run again.",
        row: "reruns",
        put: |args, text| {
            let value = text.parse().map_err(|_| "a whole number".to_owned())?;
            args.reruns = Some(value);
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_IDLE_WARN",
        about: "After how long without a word of the agent to warn.",
        row: "idle_warn_ms",
        put: |args, text| parse_duration(text).map(|value| args.idle_warn = Some(value)),
    },
    Variable {
        name: "TRIALRUN_STOP_GRACE",
        about: "How long an agent may take to stop when it is told to.",
        row: "stop_grace_ms",
        put: |args, text| parse_duration(text).map(|value| args.stop_grace = Some(value)),
    },
    Variable {
        name: "TRIALRUN_SETUP_TIMEOUT",
        about: "How long one setup command may take.",
        row: "setup_timeout_ms",
        put: |args, text| parse_duration(text).map(|value| args.setup_timeout = Some(value)),
    },
    Variable {
        name: "TRIALRUN_SANDBOX",
        about: "Which kind of sandbox.",
        row: "sandbox",
        put: |args, text| {
            args.sandbox = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_JUDGE",
        about: "The model that judges and plays users, as `provider:model`.",
        row: "judge",
        put: |args, text| {
            args.judge = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_JUDGE_BASE_URL",
        about: "Where the judge is reached, if not at its vendor's own address.",
        row: "judge_base_url",
        put: |args, text| {
            args.judge_base_url = Some(text.to_owned());
            Ok(())
        },
    },
    Variable {
        name: "TRIALRUN_JUDGES",
        about: "How many judges decide together, where an assertion says nothing else.",
        row: "judges",
        put: |args, text| parse_judges(text).map(|value| args.judges = Some(value)),
    },
];

/// Names that other tools have for settings of skill suites. They have lower precedence than those above.
pub static OTHER_NAMES: [Variable; 3] = [
    Variable {
        name: "ASE_AGENT_TIMEOUT",
        about: "The same as `TRIALRUN_TIMEOUT`.",
        row: "timeout_ms",
        put: |args, text| Timeout::parse(text).map(|value| args.timeout = Some(value)),
    },
    Variable {
        name: "ASE_AGENT_RETRIES",
        about: "The same as `TRIALRUN_RETRIES`.",
        row: "retries",
        put: |args, text| {
            let value = text.parse().map_err(|_| "a whole number".to_owned())?;
            args.retries = Some(value);
            Ok(())
        },
    },
    Variable {
        name: "ASE_KEEP_WORKSPACE",
        about: "Leave sandboxes where they are, whatever it is set to.",
        row: "keep_sandbox",
        put: |args, _| {
            args.keep_sandbox = true;
            Ok(())
        },
    },
];

/// Variables of this program that are not settings of runs.
const OTHERS: [&str; 3] = [STATE, "TRIALRUN_CLAUDE", "TRIALRUN_NO_NAMESPACE"];

fn listed(text: &str) -> Vec<String> {
    text.split(',').map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn whole(text: &str, least: u64) -> Result<u64, String> {
    let value = text.parse().ok().filter(|value| *value >= least);
    value.ok_or_else(|| format!("a whole number of at least {least}"))
}

/// Parses the environment variables into arguments. An empty variable counts as not set.
///
/// # Errors
/// If a variable has a value that its setting does not accept.
pub fn typed(environment: &BTreeMap<String, String>) -> Result<RunArgs, CliError> {
    let mut args = RunArgs::default();
    for variable in OTHER_NAMES.iter().chain(&VARIABLES) {
        let Some(text) = written(environment, variable) else { continue };
        (variable.put)(&mut args, text).map_err(|wanted| {
            CliError::usage(format!("the variable `{}` is `{text}`", variable.name)).hint(format!("it takes {wanted}"))
        })?;
    }
    Ok(args)
}

/// Returns the value of a variable, if it is set.
fn written<'e>(environment: &'e BTreeMap<String, String>, variable: &Variable) -> Option<&'e str> {
    environment.get(variable.name).map(|text| text.trim()).filter(|text| !text.is_empty())
}

/// Returns the variable for the setting `row`: of several, the set one with the highest precedence.
pub fn of_row(row: &str, environment: &BTreeMap<String, String>) -> Option<&'static str> {
    let mut all = VARIABLES.iter().chain(&OTHER_NAMES).filter(|variable| variable.row == row);
    let is_set = |variable: &&Variable| written(environment, variable).is_some();
    all.clone().find(is_set).or_else(|| all.next()).map(|variable| variable.name)
}

/// Returns warnings about variables that look like misspelt settings.
pub fn misspelt(environment: &BTreeMap<String, String>) -> Vec<Diagnostic> {
    let known = || VARIABLES.iter().map(|variable| variable.name).chain(OTHERS);
    let unknown = environment
        .keys()
        .filter(|name| name.starts_with(PREFIX) && known().all(|one| one != *name))
        .filter(|name| !crate::hooks::is_told(name));
    let problem = |name: &String| {
        // A name that is not near to any may belong to another program.
        let near = nearest(name.strip_prefix(PREFIX)?, known().filter_map(|one| one.strip_prefix(PREFIX)))?;
        let near = format!("{PREFIX}{near}");
        Some(Diagnostic::warning(format!("the variable `{name}` is not known")).suggest(Some(&near)))
    };
    unknown.filter_map(problem).collect()
}

/// Table of the variables, in Markdown.
pub fn reference() -> String {
    let mut text = String::from("| variable | |\n| --- | --- |\n");
    text.push_str(&format!("| `{STATE}` | Where runs are recorded, as `--state` says. |\n"));
    for variable in VARIABLES.iter().chain(&OTHER_NAMES) {
        text.push_str(&format!("| `{}` | {} |\n", variable.name, variable.about));
    }
    text.push_str(
        "| `TRIALRUN_HOOK_TIMEOUT` | How long a command around trials may take; a bare number is seconds. |\n\
         | `ASE_HOOK_TIMEOUT` | The same as `TRIALRUN_HOOK_TIMEOUT`. |\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn values_are_read_as_on_the_command_line() {
        let pairs =
            [("TRIALRUN_JOBS", "4"), ("TRIALRUN_TIMEOUT", "90"), ("TRIALRUN_AGENT", "a, b"), ("TRIALRUN_MODEL", "")];
        let args = typed(&environment(&pairs)).unwrap();
        assert_eq!((args.jobs, args.timeout.map(|clock| clock.ms)), (Some(4), Some(90_000)));
        assert_eq!((args.agent, args.model), (vec!["a".to_owned(), "b".to_owned()], vec![]));
        let error = typed(&environment(&[("TRIALRUN_JOBS", "many")])).unwrap_err();
        assert_eq!(error.to_string(), "the variable `TRIALRUN_JOBS` is `many`");
        assert_eq!(error.hints(), ["it takes a number from 1 to 1024"]);
    }

    #[test]
    fn another_name_goes_behind_and_is_named_where_it_decides() {
        let both = environment(&[("ASE_AGENT_TIMEOUT", "90"), ("TRIALRUN_TIMEOUT", "30"), ("ASE_KEEP_WORKSPACE", "1")]);
        let args = typed(&both).unwrap();
        assert_eq!((args.timeout.map(|clock| clock.ms), args.keep_sandbox), (Some(30_000), true));
        assert_eq!(of_row("timeout_ms", &both), Some("TRIALRUN_TIMEOUT"));
        let other = environment(&[("ASE_AGENT_TIMEOUT", "90"), ("ASE_AGENT_RETRIES", "3")]);
        assert_eq!(typed(&other).unwrap().retries, Some(3));
        assert_eq!(of_row("timeout_ms", &other), Some("ASE_AGENT_TIMEOUT"));
        assert_eq!(of_row("retries", &other), Some("ASE_AGENT_RETRIES"));
        let error = typed(&environment(&[("ASE_AGENT_RETRIES", "often")])).unwrap_err();
        assert_eq!(error.to_string(), "the variable `ASE_AGENT_RETRIES` is `often`");
    }

    #[test]
    fn a_variable_that_nobody_reads_is_told_with_the_nearest() {
        let told = misspelt(&environment(&[("TRIALRUN_JOB", "4"), ("TRIALRUN_CLAUDE", "x"), ("TRIALRUN_ZZZZ", "x")]));
        assert_eq!(told.len(), 1);
        assert_eq!(told[0].message, "the variable `TRIALRUN_JOB` is not known");
        assert_eq!(told[0].help, ["did you mean `TRIALRUN_JOBS`?"]);
    }

    #[test]
    fn every_variable_is_on_the_page_and_belongs_to_one_setting() {
        let page = reference();
        for (at, variable) in VARIABLES.iter().enumerate() {
            assert!(page.contains(&format!("`{}`", variable.name)));
            assert!(VARIABLES[..at].iter().all(|other| other.row != variable.row), "{}", variable.row);
        }
    }
}
