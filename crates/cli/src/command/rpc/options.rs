//! Options of requests: those of the command line that say which trials run, under their names with `_`. The parser of
//! the command line reads them, so they have the same values, defaults and messages.

use clap::builder::ValueRange;
use clap::{Arg, ArgAction, CommandFactory, Parser};
use serde_json::{Map, Value, json};
use session::Overrides;

use super::message::RpcError;

/// Options that only make sense on a command line: reports and files, and the change of remotes. Files, evaluations and
/// the rest of the selection are `targets`.
const LEFT_OUT: [&str; 9] =
    ["artifacts", "cleanup", "evals", "github", "lend-git-sign-in", "no-github", "quiet", "report", "show-evidence"];

#[derive(Debug, Parser)]
#[command(no_binary_name = true, disable_help_flag = true)]
struct Options {
    #[command(flatten)]
    run: Overrides,
}

/// Returns the options, in the order of the help.
fn all() -> Vec<Arg> {
    let is_named = |option: &&Arg| option.get_long().is_some_and(|name| !LEFT_OUT.contains(&name));
    Options::command().get_arguments().filter(|option| is_named(option) && !option.is_hide_set()).cloned().collect()
}

/// Returns the name of an option in requests.
fn name(option: &Arg) -> String {
    option.get_long().unwrap_or_default().replace('-', "_")
}

fn is_flag(option: &Arg) -> bool {
    matches!(option.get_action(), ArgAction::SetTrue | ArgAction::SetFalse)
        || option.get_num_args() == Some(ValueRange::EMPTY)
}

/// Reads the options of a request about `targets`.
///
/// # Errors
/// Returns an error that names the option.
pub fn read(targets: Vec<String>, options: &Map<String, Value>) -> Result<Overrides, RpcError> {
    let all = all();
    let mut words = Vec::new();
    for (written, value) in options {
        let Some(option) = all.iter().find(|option| name(option) == *written) else {
            let names: Vec<String> = all.iter().map(name).collect();
            let near = model::nearest(written, names.iter().map(String::as_str));
            let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
            return Err(RpcError::params(format!("`{written}` is not an option{near}")));
        };
        let long = option.get_long().unwrap_or_default();
        match value {
            Value::Null | Value::Bool(false) if is_flag(option) || value.is_null() => {}
            Value::Bool(true) if is_flag(option) => words.push(format!("--{long}")),
            Value::Array(items) if matches!(option.get_action(), ArgAction::Append) => {
                for item in items {
                    words.push(format!("--{long}={}", text(written, item)?));
                }
            }
            _ if is_flag(option) => return Err(RpcError::params(format!("`{written}` must be true or false"))),
            value => words.push(format!("--{long}={}", text(written, value)?)),
        }
    }
    words.push("--".to_owned());
    words.extend(targets);
    let parsed = Options::try_parse_from(words).map_err(|error| {
        let message = error.render().to_string();
        let message = message.trim_start_matches("error: ").split("\n\n").next().unwrap_or_default().replace('\n', " ");
        RpcError::params(message.trim_end())
    })?;
    Ok(parsed.run)
}

/// Returns the text of a single value.
fn text(name: &str, value: &Value) -> Result<String, RpcError> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        _ => Err(RpcError::params(format!("`{name}` must be a string or a number, or a list if it can be repeated"))),
    }
}

/// Returns the JSON Schema of the options.
pub fn schema() -> Value {
    let property = |option: &Arg| {
        let mut schema = match option.get_action() {
            _ if is_flag(option) => json!({ "type": "boolean" }),
            ArgAction::Append => {
                json!({ "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }] })
            }
            _ => json!({ "anyOf": [{ "type": "string" }, { "type": "number" }] }),
        };
        let help = option.get_help().map(ToString::to_string).unwrap_or_default();
        if !help.is_empty() {
            schema["description"] = help.into();
        }
        (name(option), schema)
    };
    let properties: Map<String, Value> = all().iter().map(property).collect();
    json!({
        "type": "object",
        "description": "Options of `trialrun run`, under their names with `_` instead of `-`.",
        "properties": properties,
        "additionalProperties": false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(options: Value) -> Result<Overrides, String> {
        let Value::Object(options) = options else { panic!("a map") };
        read(vec!["--help".into()], &options).map_err(|error| error.message)
    }

    #[test]
    fn options_have_their_values_of_the_command_line() {
        let read = options(json!({
            "trials": 3, "timeout": "90s", "agent": ["a", "b"], "case": "--x", "strict": true, "last_failed": false,
            "max_cost": 0.5, "label": null,
        }));
        let read = read.unwrap();
        assert_eq!(read.targets, ["--help"], "never an option");
        assert_eq!(read.arms.trials.unwrap().to_string(), "3");
        assert_eq!((read.schedule.timeout.unwrap().ms, read.budgets.max_cost), (90_000, Some(0.5)));
        assert_eq!(
            (&read.arms.agent[..], &read.selection.cases[..]),
            (&["a".into(), "b".into()][..], &["--x".into()][..])
        );
        assert!(read.gates.strict && !read.selection.last_failed && read.output.label.is_none());
    }

    #[test]
    fn a_wrong_option_is_named() {
        for (written, expected) in [
            (json!({"trails": 3}), "`trails` is not an option (did you mean `trials`?)"),
            (json!({"report": "json"}), "`report` is not an option"),
            (json!({"strict": 1}), "`strict` must be true or false"),
            (json!({"label": true}), "`label` must be a string or a number, or a list if it can be repeated"),
            (json!({"jobs": 0}), "invalid value '0' for '--jobs <N>': a number from 1 to 1024"),
        ] {
            let error = options(written).unwrap_err();
            assert!(error.starts_with(expected) && error.trim_end() == error, "{error:?}");
        }
    }

    #[test]
    fn every_option_that_is_left_out_exists() {
        let options = Options::command();
        for name in LEFT_OUT {
            assert!(options.get_arguments().any(|option| option.get_long() == Some(name)), "{name}");
        }
    }
}
