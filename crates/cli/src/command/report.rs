//! `trialrun report`.

use std::path::PathBuf;
use std::process::ExitCode;

use report::{Opening, Style};

use crate::error::CliError;
use crate::global::Global;
use crate::outlet::{find_report, only_while_running, report_file};
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;

/// Arguments of `report`.
#[derive(Debug, clap::Args)]
pub struct ReportArgs {
    /// The front of a run's id, a label, `latest` or `previous` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// The run, as an option
    #[arg(long, value_name = "RUN", hide = true)]
    run_id: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Which report
    #[arg(long, value_name = "FORMAT", default_value = "terminal")]
    format: String,
    /// Into this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Only trials that did not pass
    #[arg(long)]
    failures_only: bool,
    /// Evidence: in the terminal also where a finding is met, in Markdown at all
    #[arg(long)]
    show_evidence: bool,
    /// Show failures and the summary only
    #[arg(long, short)]
    quiet: bool,
}

/// Renders a recorded run again, with the reporters that live runs use.
pub fn run(global: &Global, args: &ReportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    // agent-skill-eval calls this format `table`.
    let kind = find_report(if args.format == "table" { "terminal" } else { &args.format })?;
    let (store, run) = args.place.find(global, args.run_id.as_deref().or(args.run.as_deref()), "latest")?;
    let mut opening = match &args.output {
        Some(file) => Opening::new(Box::new(report_file(file)?), Style::plain()),
        None => Opening::new(Box::new(std::io::stdout()), terminal.out_style),
    };
    opening.quiet = args.quiet;
    opening.failures_only = args.failures_only;
    opening.show_evidence = args.show_evidence;
    let mut reporter = kind.to_stream(opening).ok_or_else(|| only_while_running(kind))?;
    let mut written = Ok(());
    let unknown = store.replay(&run.id, &mut |event| {
        if written.is_ok() {
            written = reporter.event(event);
        }
    })?;
    match written.and_then(|()| reporter.finish()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            return Err(CliError::environment(format!("the report cannot be written: {error}")));
        }
        _ => {}
    }
    if unknown > 0 {
        terminal.err(&format!("warning: {unknown} events come from another version and were left out\n"));
    }
    Ok(ExitCode::SUCCESS)
}
