//! Arguments of recorded runs.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use model::{Invocation, RunInfo, RunRow};

use crate::command::cassettes::CassettesArgs;
use crate::command::run::RunCommandArgs;
use crate::error::CliError;
use crate::global::Global;
use crate::workers::{WorkersArgs, parse_own_jobs};
use session::overrides::Overrides;

/// Command line that started a run.
#[derive(Debug, Parser)]
struct Recorded {
    #[command(flatten)]
    _global: Global,
    #[command(subcommand)]
    command: RecordedCommand,
}

/// The commands that run tests.
#[derive(Debug, Subcommand)]
enum RecordedCommand {
    Run(RunCommandArgs),
    Cassettes(CassettesArgs),
    /// Any other command, with its arguments.
    #[command(external_subcommand)]
    Other(Vec<OsString>),
}

/// Returns the options for workers of the command that started the run.
pub fn recorded_workers(info: &RunInfo) -> WorkersArgs {
    match info.invocation.as_ref().and_then(|invocation| parse(&invocation.arguments)) {
        Some(RecordedCommand::Run(args)) => args.workers,
        Some(RecordedCommand::Cassettes(_)) => WorkersArgs::none(),
        _ => WorkersArgs::default(),
    }
}

/// Returns the options of the command that started the run; `None` if they are not recorded, or if it did not run tests.
pub fn recorded_overrides(info: &RunInfo) -> Option<Overrides> {
    match parse(&info.invocation.as_ref()?.arguments)? {
        RecordedCommand::Run(args) => Some(args.run),
        _ => None,
    }
}

/// Commands that repeat a recorded trial.
const REPEATING: [&str; 2] = ["rerun", "bisect"];

/// Returns the arguments that started the run, and the directory in which it was started.
///
/// # Errors
/// Returns an error if they are not recorded, or the run cannot be repeated with them.
pub fn recorded_arguments(run: &RunRow, info: &RunInfo) -> Result<(Overrides, PathBuf), CliError> {
    let refused = |reason: &str| CliError::usage(format!("the run {} cannot be repeated: {reason}", run.short));
    let started = info.invocation.as_ref().filter(|invocation| !invocation.arguments.is_empty());
    let Some(Invocation { arguments, directory, .. }) = started else {
        return Err(refused("its record does not have the command that started it")
            .hint("`--failed-in RUN` runs the cases that did not finish, as a new run"));
    };
    if arguments.iter().any(|argument| argument.contains(mask::MASKED)) {
        return Err(refused("its command had a secret in an argument, which is not recorded")
            .hint("pass secrets in environment variables"));
    }
    let directory = PathBuf::from(directory);
    if let Err(error) = std::fs::read_dir(&directory) {
        return Err(refused(&format!("the directory {} cannot be used: {error}", directory.display())));
    }
    match parse(arguments) {
        Some(RecordedCommand::Run(args)) => Ok((args.run, directory)),
        Some(RecordedCommand::Cassettes(args)) => Ok((args.recording(), directory)),
        Some(command) if command.repeats_trial() => {
            Err(refused("it repeated a recorded trial itself")
                .hint("write `RUN/TRIAL` to select the trial of another run"))
        }
        _ => Err(refused("this version does not support the arguments that it was started with")),
    }
}

/// Returns `true` if the run repeated a trial of another run, so that it cannot be repeated itself.
pub fn repeats_trial(info: &RunInfo) -> bool {
    let started = info.invocation.as_ref();
    started.and_then(|started| parse(&started.arguments)).is_some_and(|command| command.repeats_trial())
}

impl RecordedCommand {
    fn repeats_trial(&self) -> bool {
        match self {
            Self::Other(words) => REPEATING.iter().any(|name| words.first().is_some_and(|word| word == name)),
            Self::Run(_) | Self::Cassettes(_) => false,
        }
    }
}

fn parse(arguments: &[String]) -> Option<RecordedCommand> {
    let words = std::iter::once("trialrun").chain(arguments.iter().map(String::as_str));
    let definition =
        Recorded::command().mut_subcommand("run", |run| run.mut_arg("jobs", |arg| arg.value_parser(parse_own_jobs)));
    let matches = definition.try_get_matches_from(words).ok()?;
    Recorded::from_arg_matches(&matches).ok().map(|recorded| recorded.command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn global_options_and_commands_that_do_not_run_tests_are_recognised() {
        let parsed = |line: &str| parse(&line.split(' ').map(str::to_owned).collect::<Vec<_>>());
        let Some(RecordedCommand::Run(run)) = parsed("--state here run tests --agent fake") else {
            panic!("not a run")
        };
        assert_eq!(run.run.arms.agent, ["fake"]);
        let Some(RecordedCommand::Other(words)) = parsed("rerun greets --from 2") else {
            panic!("not another command")
        };
        assert_eq!(words, ["rerun", "greets", "--from", "2"]);
        let repeats = |line: &str| parsed(line).unwrap().repeats_trial();
        assert!(repeats("rerun greets --from 2") && repeats("--state here bisect one other greets"));
        assert!(!repeats("run rerun") && !repeats("audit rerun"));
        assert!(parsed("run --no-such-option").is_none());
    }
}
