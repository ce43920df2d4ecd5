//! The command line as it is typed. Each command's arguments stand in its own file.

use clap::{Parser, Subcommand};

use crate::command::{
    check, cleanup, compare, completions, config, doctor, history, init, list, prune, reference, regrade, report,
    schema, show, status, trend,
};
use crate::global::Global;
use crate::run_args::RunArgs;

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
    /// Find and remove sandboxes that a killed run left behind
    #[command(alias = "sandbox-prune")]
    Prune(prune::PruneArgs),
    /// JSON schemas for editors and other programs
    Schema(schema::SchemaArgs),
    /// Completions for a shell
    Completions(completions::CompletionsArgs),
    /// The generated reference pages
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}
