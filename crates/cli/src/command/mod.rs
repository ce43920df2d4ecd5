//! One file per command, with its arguments, whose comments are the help, and its implementation.

pub mod audit;
pub mod bisect;
pub mod calibrate;
pub mod cassettes;
pub mod check;
pub mod cleanup;
pub mod compare;
pub mod completions;
pub mod config;
pub mod convert;
pub mod discover;
pub mod docs;
pub mod doctor;
pub mod export;
pub mod generation;
pub mod history;
pub mod import;
pub mod init;
pub mod licenses;
pub mod list;
pub mod man;
pub mod mcp;
pub mod mcp_lock;
pub mod merge;
pub mod pause;
pub mod plan;
pub mod prune;
pub mod reference;
pub mod regrade;
pub mod report;
pub mod rerun;
pub mod rpc;
pub mod run;
pub mod schema;
pub mod serve;
pub mod show;
pub mod status;
pub mod trend;
pub mod verify;
pub mod view;
pub mod work;
pub mod workers;

use clap::Subcommand;

/// Groups of commands in the help, with the names of their commands. A test checks that each command is in one.
pub const GROUPS: [(&str, &[&str]); 6] = [
    ("Write and check tests", &["init", "discover", "gen", "convert", "check", "audit", "list", "plan", "mcp-lock"]),
    ("Run", &["run", "view", "cassettes", "rerun", "mcp", "rpc"]),
    ("Workers", &["work", "workers", "pause", "continue", "cancel", "serve"]),
    ("Read results", &["show", "status", "history", "report", "compare", "trend", "bisect", "calibrate"]),
    ("Records", &["regrade", "export", "import", "merge", "verify", "cleanup", "prune"]),
    ("Set-up and help", &["doctor", "config", "docs", "schema", "completions", "man", "licenses", "help"]),
];

/// The commands, in the order in which the reference lists them.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run tests
    Run(run::RunCommandArgs),
    /// Run trials of runs that `run --workers` started, on this or other machines
    Work(work::WorkArgs),
    /// Show the workers, and the runs whose trials they run
    Workers(workers::WorkersArgs),
    /// Start no more trials of a run that workers run
    Pause(pause::PauseArgs),
    /// Continue a paused run, or change the budget of a run that workers run
    Continue(pause::ContinueArgs),
    /// Stop a run that workers run, or one of its trials
    Cancel(pause::CancelArgs),
    /// Read and compile all tests and report every problem, without running anything
    #[command(visible_alias = "validate")]
    Check(check::CheckArgs),
    /// Find out whether the tests can fail: run them with agents that do not do the work
    Audit(audit::AuditArgs),
    /// Show the tools, constraints and instructions of an agent or a skill, with the places that state them
    Discover(discover::DiscoverArgs),
    /// Write tests for an agent or a skill, and keep those that are able to fail
    Gen(generation::GenArgs),
    /// List the cases that would run, or the built-in agents, assertions, operators, reports and sandboxes
    List(list::ListArgs),
    /// Say what a run can show, and about how long it takes and what it costs, without running anything
    Plan(plan::PlanArgs),
    /// Check which agents, models and tools are ready on this machine
    #[command(alias = "runtimes")]
    Doctor(doctor::DoctorArgs),
    /// Show the resolved settings and the source of each
    Config(config::ConfigArgs),
    /// Write the suites of other tools as tests of trialrun
    Convert(convert::ConvertArgs),
    /// Create a project, or a skill with a suite of tests
    Init(init::InitArgs),
    /// Search the documentation, or print a page of it
    Docs(docs::DocsArgs),
    /// Show one trial: messages, tool calls, answers, findings and files
    #[command(alias = "trace")]
    Show(show::ShowArgs),
    /// List recorded runs or their trials, newest run first
    History(history::HistoryArgs),
    /// Show the result of a run, or its progress
    Status(status::StatusArgs),
    /// Show a run in a browser, even while it is running
    View(view::ViewArgs),
    /// Serve the pages of a whole record to browsers, and an API to programs
    Serve(serve::ServeArgs),
    /// List the recorded model answers of the tests, and record those again that no longer match
    Cassettes(cassettes::CassettesArgs),
    /// Repeat a recorded trial up to a step, and ask the model from there on
    Rerun(rerun::RerunArgs),
    /// Find the step at which a failed trial of one run differs decisively from another run that passed
    Bisect(bisect::BisectArgs),
    /// Write a report of a recorded run
    Report(report::ReportArgs),
    /// Show pass rate, tokens, cost and time over runs
    Trend(trend::TrendArgs),
    /// Serve list, check, run, show, compare and audit to coding agents, with the Model Context Protocol on stdin and
    /// stdout
    Mcp,
    /// Write the contract of an MCP server, or compare the server with it
    McpLock(mcp_lock::McpLockArgs),
    /// Serve programs in other languages, with JSON-RPC 2.0 on stdin and stdout
    Rpc,
    /// Compare two runs, or the models, agents or variants of one
    #[command(alias = "diff")]
    Compare(compare::CompareArgs),
    /// Compare the judge with human labels: agreement, errors, and the pass rate without them
    Calibrate(calibrate::CalibrateArgs),
    /// Remove the branches and review requests that a run left on remotes
    Cleanup(cleanup::CleanupArgs),
    /// Grade the recorded evidence of a run with the current tests, as a new run
    #[command(alias = "grade")]
    Regrade(regrade::RegradeArgs),
    /// Write a recorded run to a file
    Export(export::ExportArgs),
    /// Import recorded runs from files written by `export`
    Import(import::ImportArgs),
    /// Merge the exported runs of all shards into one run
    Merge(merge::MergeArgs),
    /// Check that a recorded run was not changed since it was recorded
    Verify(verify::VerifyArgs),
    /// Find and remove sandboxes left behind by a killed run, or old runs
    #[command(alias = "sandbox-prune")]
    Prune(prune::PruneArgs),
    /// Print a JSON Schema for editors and other programs
    Schema(schema::SchemaArgs),
    /// Print a completion script for a shell
    Completions(completions::CompletionsArgs),
    /// Print or write manual pages
    Man(man::ManArgs),
    /// List trialrun's dependencies and their licences
    Licenses,
    /// Check or update the generated sections of the reference pages
    #[command(hide = true)]
    Reference(reference::ReferenceArgs),
}
