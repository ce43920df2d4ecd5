//! `trialrun schema`.

use std::process::ExitCode;

use clap::ValueEnum;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// Of what
    #[arg(default_value = "scenario")]
    of: Of,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Of {
    /// A scenario file.
    Scenario,
    /// A fixtures file.
    Fixtures,
    /// The project's configuration, `trialrun.yaml`.
    Config,
    /// The JSON report.
    Report,
}

/// Prints a JSON schema.
pub fn run(args: &SchemaArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let schema = match args.of {
        Of::Scenario => suite::scenario_schema(),
        Of::Fixtures => suite::fixture_schema(),
        Of::Config => suite::config_schema(),
        Of::Report => report::report_schema(),
    };
    terminal.json(&schema);
    Ok(ExitCode::SUCCESS)
}
