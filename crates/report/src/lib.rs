//! Reports runs: turns events into output for people and programs.
//!
//! A reporter receives one event after another and cannot tell whether the run is in progress or was recorded last
//! year. The output of the list commands (`history`, `status`, `show`, `trend`, `compare`) is created by plain
//! functions from records to text.
//!
//! Nothing here reads the environment or prints: writers and [`Style`] are parameters. Times come from the events;
//! only the live table has its own clock, so that it moves while nothing happens. [`terminal_size()`] is for callers
//! that create a [`Style`].
//!
//! ```
//! use trialrun_report::{ReporterOptions, Style, find};
//!
//! let json = find("json").expect("a built-in report");
//! let options = ReporterOptions::new(Box::new(std::io::stdout()), Style::plain());
//! let mut reporter = json.to_stream(options).expect("a report that is a stream");
//! // For each event of a run: reporter.event(&envelope)?;
//! reporter.finish()?;
//! # Ok::<(), std::io::Error>(())
//! ```

mod agent_output;
mod align;
mod arms;
mod artifacts;
mod atif;
mod calibration;
mod cassettes;
pub mod columns;
mod compare;
mod counts;
mod ctrf;
mod decisions;
mod fields;
mod figures;
mod finished;
mod format;
mod github;
mod gitlab;
mod history;
mod html;
mod json;
mod jsonl;
mod junit;
mod markdown;
mod names;
mod otlp;
mod places;
mod plain;
mod plugin_eval;
mod queue;
mod reporter;
mod runs;
mod sarif;
mod score;
mod show;
mod status;
mod style;
mod tap;
pub mod telemetry;
mod terminal;
mod totals;
mod trend;
mod verdict;

use std::path::PathBuf;
use std::sync::Arc;

use junit::Dialect;

pub use agent_output::reason_of;
pub use arms::Arms;
pub use artifacts::{ArtifactsError, Tree, TrialFiles, merged_side_effects, open_regraded};
pub use calibration::{calibration, calibration_json};
pub use compare::{CaseChange, Change, Comparison, Dimension, THRESHOLD, TrialPair};
pub use format::{counted, elapsed as duration, percent as share};
pub use history::{history, history_json};
pub use html::{
    CasePage, CasesPage, ComparedTrial, LiveRun, ProgressPage, RunsPage, ServedRun, ServedState, case_page, cases_page,
    comparison_page, comparison_policy, message_page, progress_page, record_policy, runs_page, transcript, trend_page,
};
pub use json::{SCHEMA, comparison_schema, reference as json_reference, report_schema, trial_json};
pub use junit::{CheckResult, junit_of_checks};
pub use plain::clean;
pub use queue::{QueueView, QueuedRunView, WaitingView, WorkerView, queue, queue_of_run};
pub use reporter::{Reporter, ReporterOptions, RunHash};
pub use runs::{ListedRun, run_json, runs};
pub use sarif::sarif;
pub use show::{show, show_diff, show_json, show_step, show_two};
pub use status::{Details, StatusView, status, status_verdict};
pub use terminal::{Style, diagnostics, last_line, mismatches, result, tally, terminal_size};
pub use trend::{TrendOf, trend, trend_json};

/// A kind of report.
pub struct Report {
    /// Name in `--report`.
    pub name: &'static str,
    /// Description, one line.
    pub summary: &'static str,
    /// Extension of its files.
    pub extension: &'static str,
    open: ReporterFactory,
}

/// Function that opens a reporter.
#[derive(Clone, Copy)]
enum ReporterFactory {
    /// Reporter that writes a stream: standard output, or a file.
    Stream(fn(ReporterOptions) -> Box<dyn Reporter>),
    /// Reporter that writes a stream in one piece at the end of the run.
    Finished(finished::Format),
    /// Reporter that writes a file for each trial into a directory.
    Files(fn(PathBuf) -> Box<dyn Reporter>),
    /// Reporter that writes the artefacts of a run while it is in progress.
    Artifacts(fn(&Arc<Tree>) -> Box<dyn Reporter>),
}

impl Report {
    const fn new(name: &'static str, summary: &'static str, extension: &'static str, open: ReporterFactory) -> Self {
        Self { name, summary, extension, open }
    }

    /// Returns `true` if the report is a directory.
    pub fn is_directory(&self) -> bool {
        matches!(self.open, ReporterFactory::Files(_) | ReporterFactory::Artifacts(_))
    }

    /// Returns `true` if the report can only be written during a run.
    pub fn is_artifacts(&self) -> bool {
        matches!(self.open, ReporterFactory::Artifacts(_))
    }

    /// Opens the report; `None` if it is a directory and the options have none, or if it can only be written during a
    /// run.
    pub fn to_stream(&self, options: ReporterOptions) -> Option<Box<dyn Reporter>> {
        match self.open {
            ReporterFactory::Stream(open) => Some(open(options)),
            ReporterFactory::Finished(format) => Some(finished::open(options, format)),
            ReporterFactory::Files(open) => options.directory.map(open),
            ReporterFactory::Artifacts(_) => None,
        }
    }
}

/// Opens the report with the artefacts of a run.
pub fn to_directory(tree: &Arc<Tree>) -> Option<Box<dyn Reporter>> {
    REPORTS.iter().find_map(|report| match report.open {
        ReporterFactory::Artifacts(open) => Some(open(tree)),
        ReporterFactory::Stream(_) | ReporterFactory::Finished(_) | ReporterFactory::Files(_) => None,
    })
}

/// All kinds of reports, in the order in which users see them.
pub const REPORTS: &[Report] = &[
    Report::new(
        "terminal",
        "for people: progress, failures and their reasons",
        "txt",
        ReporterFactory::Stream(terminal::open),
    ),
    Report::new("markdown", "a page for a pull request", "md", ReporterFactory::Stream(markdown::open)),
    Report::new(
        "html",
        "one page for a browser, with the transcript of each trial",
        "html",
        ReporterFactory::Stream(html::open),
    ),
    Report::new("json", "the whole run as one JSON document", "json", ReporterFactory::Stream(json::open)),
    Report::new("jsonl", "the event stream, one JSON object per line", "jsonl", ReporterFactory::Stream(jsonl::open)),
    Report::new(
        "junit",
        "JUnit XML, for any reader",
        "junit.xml",
        ReporterFactory::Finished(|run, out| junit::write(run, Dialect::Generic, out)),
    ),
    Report::new(
        "junit:gitlab",
        "JUnit XML as GitLab reads it",
        "junit-gitlab.xml",
        ReporterFactory::Finished(|run, out| junit::write(run, Dialect::GitLab, out)),
    ),
    Report::new(
        "junit:jenkins",
        "JUnit XML with an element for each attempt, as Jenkins reads it",
        "junit-jenkins.xml",
        ReporterFactory::Finished(|run, out| junit::write(run, Dialect::Jenkins, out)),
    ),
    Report::new("tap", "the Test Anything Protocol, version 14", "tap", ReporterFactory::Finished(tap::write)),
    Report::new("ctrf", "the Common Test Report Format, as JSON", "ctrf.json", ReporterFactory::Finished(ctrf::write)),
    Report::new(
        "github",
        "annotations and the step summary of GitHub Actions",
        "github.txt",
        ReporterFactory::Stream(github::open),
    ),
    Report::new(
        "gitlab",
        "a code quality report for GitLab, as JSON",
        "gitlab.json",
        ReporterFactory::Finished(gitlab::write),
    ),
    Report::new(
        "plugin-eval",
        "the result file of `claude plugin eval`, as JSON",
        "plugin-eval.json",
        ReporterFactory::Stream(plugin_eval::open),
    ),
    Report::new(
        "otlp",
        "spans and evaluation results for an OpenTelemetry collector",
        "otlp.jsonl",
        ReporterFactory::Stream(otlp::open),
    ),
    Report::new(
        "atif",
        "a directory with the trajectory of each trial, in the Agent Trajectory Interchange Format",
        "atif",
        ReporterFactory::Files(atif::open),
    ),
    Report::new(
        "artifacts",
        "a directory of files about the run and each trial",
        "artifacts",
        ReporterFactory::Artifacts(artifacts::open),
    ),
];

/// Returns the name that is probably meant by `name`, which is not that of a report: a similar one, or that of the report
/// whose files have this extension.
pub fn nearest(name: &str) -> Option<&'static str> {
    let extension = name.rsplit('.').next().unwrap_or(name);
    let is_of = |report: &&Report| report.extension.rsplit('.').next() == Some(extension);
    let of_extension = REPORTS.iter().find(|report| report.extension == name).or_else(|| REPORTS.iter().find(is_of));
    model::nearest(name, REPORTS.iter().map(|report| report.name)).or(of_extension.map(|report| report.name))
}

/// Returns the report whose files have the name of `path`: `run.json` is a `json` report, `run.ctrf.json` a `ctrf` report,
/// and `run.xml` the first that is XML.
pub fn for_file(path: &std::path::Path) -> Option<&'static Report> {
    let (name, extension) = (path.file_name()?.to_str()?, path.extension()?.to_str()?);
    let files = || REPORTS.iter().filter(|report| !report.is_directory());
    let exact = files()
        .filter(|report| name.ends_with(&format!(".{}", report.extension)))
        .max_by_key(|report| report.extension.len());
    exact.or_else(|| files().find(|report| report.extension.rsplit('.').next() == Some(extension)))
}

/// Returns the report with that name.
pub fn find(name: &str) -> Option<&'static Report> {
    let name = if name == "junit:generic" { "junit" } else { name };
    REPORTS.iter().find(|report| report.name == name)
}
