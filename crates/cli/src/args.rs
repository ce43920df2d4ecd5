//! Command line arguments. The arguments of each command are in its own file.

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::command::{
    check, cleanup, compare, completions, config, doctor, export, history, import, init, list, man, prune, reference,
    regrade, report, schema, show, status, trend,
};
use crate::global::Global;
use crate::run_args::RunArgs;
use crate::settings::SETTINGS;

/// Tests AI agents, agent skills and prompts end to end.
///
/// It puts a real agent into a fresh git sandbox, talks to it, records every turn and tool call, and judges what it did
/// and what it left behind.
#[derive(Debug, Parser)]
#[command(name = "trialrun", version, infer_long_args = false, max_term_width = 100)]
pub struct Args {
    /// What every command understands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands, in the order users see them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run tests
    Run(RunArgs),
    /// Read and compile everything, report every problem, run nothing
    #[command(visible_alias = "validate")]
    Check(check::CheckArgs),
    /// Cases that would run, and what is built in
    List(list::ListArgs),
    /// What is ready on this machine, and what to do where it is not
    #[command(alias = "runtimes")]
    Doctor(doctor::DoctorArgs),
    /// The resolved settings, each with where it comes from
    Config(config::ConfigArgs),
    /// Scaffold a project
    Init(init::InitArgs),
    /// One trial: messages, calls, answers, findings, files
    #[command(alias = "trace")]
    Show(show::ShowArgs),
    /// Recorded trials, newest first
    History(history::HistoryArgs),
    /// What happened in a run, or is happening
    Status(status::StatusArgs),
    /// Render a recorded run again
    Report(report::ReportArgs),
    /// Pass rate, tokens, cost and time over runs
    Trend(trend::TrendArgs),
    /// Two runs side by side, regressions first
    #[command(alias = "diff")]
    Compare(compare::CompareArgs),
    /// Remove what the trials of a run left on remotes
    Cleanup(cleanup::CleanupArgs),
    /// Grade recorded evidence again with today's suite, as a new run
    #[command(alias = "grade")]
    Regrade(regrade::RegradeArgs),
    /// Write a recorded run to a file
    Export(export::ExportArgs),
    /// Add runs to the record from files that `export` wrote
    Import(import::ImportArgs),
    /// Find and remove sandboxes that a killed run left behind
    #[command(alias = "sandbox-prune")]
    Prune(prune::PruneArgs),
    /// JSON schemas for editors and other programs
    Schema(schema::SchemaArgs),
    /// Completions for a shell
    Completions(completions::CompletionsArgs),
    /// Manual pages
    Man(man::ManArgs),
    /// Print the packages that trialrun is built from and their licences
    Licenses,
    /// The generated reference pages
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}

/// Options that `run -h` shows; `--help` shows all.
const USUAL: [&str; 21] = [
    "targets",
    "test",
    "cases",
    "tags",
    "failed_in",
    "agent",
    "model",
    "trials",
    "baseline",
    "jobs",
    "timeout",
    "retries",
    "reruns",
    "max_cost",
    "judge",
    "min_pass_rate",
    "keep_sandbox",
    "reports",
    "artifacts",
    "dry_run",
    "watch",
];

/// Text below the options of `run`.
const EXAMPLES: &str = "\
Examples:
  trialrun run                                 every test of the project
  trialrun run greet -k login                  tests of the skill `greet` that are about `login`
  trialrun run tests/refund.yaml --watch       one file, again whenever it changes
  trialrun run --agent codex --trials 5        each case five times, with Codex
  trialrun run --failed-in latest              what did not pass in the last run
  trialrun run --report json=report.json --min-pass-rate 0.9";

/// Help of `regrade --judge`, whose default is another one than that of `run`.
const JUDGE_OF_REGRADE: &str = "The model that judges [default: the one that judged that run]";

/// Groups of options that do not affect the selection of cases.
const NOT_OF_LISTS: [&str; 6] = ["Limits", "Judge", "Gates", "Sandbox", "Hooks", "Output"];

/// Options of the other groups that do not affect it either.
const NOT_LISTED: [&str; 3] = ["reasoning_effort", "base_url", "seed"];

impl Args {
    /// Returns the definition of the command line. `list` accepts all options of `run` and shows those that apply to
    /// it.
    /// Settings have their help from their table.
    pub fn definition() -> clap::Command {
        let is_idle = |arg: &clap::Arg| {
            let heading = arg.get_help_heading().unwrap_or_default();
            NOT_OF_LISTS.contains(&heading) || NOT_LISTED.contains(&arg.get_id().as_str())
        };
        let is_rare = |arg: &clap::Arg| arg.get_help_heading().is_some() && !USUAL.contains(&arg.get_id().as_str());
        let with_help = |arg: clap::Arg| match SETTINGS.iter().find(|setting| setting.is_of(&arg)) {
            Some(setting) if arg.get_help().is_none() => arg.help(setting.help_with_default()),
            _ => arg,
        };
        let all = Self::command().mut_subcommands(|command| command.mut_args(with_help));
        all.mut_subcommands(|command| match command.get_name() {
            "list" => command.mut_args(|arg| if is_idle(&arg) { arg.hide(true) } else { arg }),
            "regrade" => command.mut_args(|arg| if arg.get_id() == "judge" { arg.help(JUDGE_OF_REGRADE) } else { arg }),
            "run" => {
                command.after_help(EXAMPLES).mut_args(|arg| if is_rare(&arg) { arg.hide_short_help(true) } else { arg })
            }
            _ => command,
        })
    }

    /// Parses the arguments in `raw`, starting with the name of the program.
    ///
    /// # Errors
    /// If they do not match the definition, or ask for help or the version.
    pub fn read(raw: &[std::ffi::OsString]) -> Result<Self, clap::Error> {
        let mut command = Self::definition();
        let matches = command.try_get_matches_from_mut(raw)?;
        Self::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_of_the_help_can_be_typed() {
        let mut definition = Args::definition();
        definition.build();
        let mut examples = 0;
        let mut commands = vec![&definition];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands());
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            for line in help.lines().filter_map(|line| line.trim().strip_prefix("trialrun ")) {
                let typed = line.split("   ").next().unwrap_or(line);
                let words =
                    std::iter::once("trialrun").chain(typed.split_whitespace().map(|word| word.trim_matches('`')));
                let words: Vec<std::ffi::OsString> = words.map(Into::into).collect();
                let Args { command, .. } = Args::read(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
                if let Command::Run(run) = command {
                    let kinds = run.output.report.reports.iter().filter_map(|report| report.split('=').next());
                    for kind in kinds {
                        assert!(::report::REPORTS.iter().any(|known| known.name == kind), "{line}: `{kind}`");
                    }
                }
                examples += 1;
            }
        }
        assert!(examples >= 6, "only {examples} examples were found");
    }
}
