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
    /// A conversation file.
    Conversation,
    /// A fixtures file.
    Fixtures,
    /// The suite of a skill, `evals.json`.
    Evals,
    /// The project's configuration, `trialrun.yaml`.
    Config,
    /// The JSON report.
    Report,
    /// Tests as code: TypeScript declarations.
    Types,
}

/// Prints a JSON schema, or the declarations.
pub fn run(args: &SchemaArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    match schema(args.of) {
        Some(schema) => terminal.json(&schema),
        None => terminal.out(&grade::declarations()),
    }
    Ok(ExitCode::SUCCESS)
}

fn schema(of: Of) -> Option<Value> {
    match of {
        Of::Scenario => Some(suite::scenario_schema(grade::assertion_schema(&["id"]))),
        Of::Conversation => Some(suite::conversation_schema(grade::assertion_schema(&[]))),
        Of::Fixtures => Some(suite::fixture_schema()),
        Of::Evals => Some(suite::evals_schema()),
        Of::Config => Some(suite::config_schema()),
        Of::Report => Some(report::report_schema()),
        Of::Types => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_a_schema_of_its_own() {
        let schemas = Of::value_variants().iter().filter_map(|of| schema(*of));
        let titles: Vec<Value> = schemas.map(|schema| schema["title"].clone()).collect();
        assert!(titles.iter().all(Value::is_string), "{titles:?}");
        assert!(titles.contains(&"fixtures".into()));
        assert!((1..titles.len()).all(|at| !titles[..at].contains(&titles[at])), "{titles:?}");
    }
}
