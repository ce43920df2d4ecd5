//! `trialrun report`.

use std::path::PathBuf;
use std::process::ExitCode;

use crate::error::CliError;
use crate::global::Global;
use crate::otlp::{ExportMode, Warnings};
use crate::reports::{
    Collector, check_file, find_report, name_for_file, needs_directory, only_while_running, options, path_of, to_file,
};
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Run, as an option
    #[arg(long, value_name = "RUN", hide = true)]
    run_id: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Report to write, to standard output or into a file [default: that of the file's extension, else terminal]
    #[arg(long, short_alias = 'f', alias = "report", value_name = "FORMAT[=PATH]")]
    format: Option<String>,
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Show only trials that did not pass
    #[arg(long)]
    failures_only: bool,
    /// Show evidence in Markdown and, in the terminal, also for met assertions
    #[arg(long)]
    show_evidence: bool,
    /// Show only failures and the summary
    #[arg(long, short)]
    quiet: bool,
}

/// Writes a report of a recorded run, with the reporters that live runs use.
pub fn run(global: &Global, args: &ReportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    // agent-skill-eval calls this format `table`.
    let format = match args.format.as_deref() {
        Some(format) => format,
        None => name_for_file(args.output.as_deref())?,
    };
    let (name, destination) = match format.split_once('=') {
        Some((name, destination)) => (name, Some(destination)),
        None => (format, None),
    };
    let kind = find_report(if name == "table" { "terminal" } else { name })?;
    let collector = if args.output.is_some() { None } else { Collector::from_name(name, destination)? };
    let file = path_of(name, destination.filter(|_| collector.is_none()))?;
    let file = args.output.clone().or(file);
    file.as_deref().filter(|_| !kind.is_directory()).map_or(Ok(()), check_file)?;
    if kind.is_artifacts() {
        return Err(only_while_running(kind));
    }
    if kind.is_directory() && file.is_none() {
        return Err(needs_directory(kind).hint(format!("write `--format {name}=DIR`")));
    }
    let found = args.place.find(global, args.run_id.as_deref().or(args.run.as_deref()), "latest");
    let (store, run) = found.map_err(|error| match args.run.as_deref().and_then(report::find) {
        Some(kind) => error.hint(format!("`trialrun report --format {}` writes that report", kind.name)),
        None => error,
    })?;
    let warnings = Warnings::default();
    let mut options = match (&file, &collector) {
        (Some(file), _) => to_file(kind, file)?,
        (None, Some(collector)) => collector.options(ExportMode::Replay, &warnings)?,
        (None, None) => options(kind, Box::new(std::io::stdout()), terminal.out_style)?,
    };
    options.quiet = args.quiet;
    options.failures_only = args.failures_only;
    options.show_evidence = args.show_evidence;
    let _ = run.hash.clone().map(|hash| options.hash.set(hash));
    let mut reporter = kind.to_stream(options).ok_or_else(|| only_while_running(kind))?;
    let mut written = Ok(());
    let unknown = store.replay(&run.id, &mut |event| {
        if written.is_ok() {
            written = reporter.event(event);
        }
    })?;
    match written.and_then(|()| reporter.finish()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            return Err(CliError::environment(format!(
                "cannot write the report{}: {error}",
                file.as_ref().map_or(String::new(), |file| format!(" {}", file.display()))
            )));
        }
        _ => {}
    }
    if let Some(file) = file.filter(|_| !args.quiet) {
        terminal.out(&format!("wrote {}\n", file.display()));
    }
    if unknown > 0 {
        terminal.err(&format!("warning: {unknown} events were skipped, because another version recorded them\n"));
    }
    // The command had no other task than to send the report.
    match warnings.take().first() {
        Some(warning) => Err(CliError::environment(warning)),
        None => Ok(ExitCode::SUCCESS),
    }
}
