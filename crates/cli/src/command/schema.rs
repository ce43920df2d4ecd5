//! `trialrun schema`.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::Value;

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
    terminal.json(&schema(args.of));
    Ok(ExitCode::SUCCESS)
}

fn schema(of: Of) -> Value {
    match of {
        Of::Scenario => suite::scenario_schema(),
        Of::Fixtures => suite::fixture_schema(),
        Of::Config => suite::config_schema(),
        Of::Report => report::report_schema(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_a_schema_of_its_own() {
        let titles: Vec<Value> = Of::value_variants().iter().map(|of| schema(*of)["title"].clone()).collect();
        assert!(titles.iter().all(Value::is_string), "{titles:?}");
        assert!(titles.contains(&"fixtures".into()));
        assert!((1..titles.len()).all(|at| !titles[..at].contains(&titles[at])), "{titles:?}");
    }
}
