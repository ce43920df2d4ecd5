//! `trialrun schema`.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::Value;

use crate::error::CliError;
use crate::terminal::Terminal;

/// Arguments of `schema`.
#[derive(Debug, clap::Args)]
pub struct SchemaArgs {
    /// Kind of file
    #[arg(default_value = "scenario")]
    kind: Kind,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Kind {
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
    /// The JSON of `compare`.
    Compare,
    /// Tests as code: TypeScript declarations.
    Types,
}

/// Prints a JSON schema, or the declarations.
pub fn run(args: &SchemaArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    match schema(args.kind) {
        Some(schema) => terminal.json(&schema),
        None => terminal.out(&grade::declarations()),
    }
    Ok(ExitCode::SUCCESS)
}

fn schema(kind: Kind) -> Option<Value> {
    match kind {
        Kind::Scenario => Some(suite::scenario_schema(grade::assertion_schema(&["id"]))),
        Kind::Conversation => Some(suite::conversation_schema(grade::assertion_schema(&[]))),
        Kind::Fixtures => Some(suite::fixture_schema()),
        Kind::Evals => Some(suite::evals_schema()),
        Kind::Config => Some(suite::config_schema()),
        Kind::Report => Some(report::report_schema()),
        Kind::Compare => Some(report::comparison_schema()),
        Kind::Types => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_its_own_schema() {
        let schemas = Kind::value_variants().iter().filter_map(|kind| schema(*kind));
        let titles: Vec<Value> = schemas.map(|schema| schema["title"].clone()).collect();
        assert!(titles.iter().all(Value::is_string), "{titles:?}");
        assert!(titles.contains(&"fixtures".into()));
        assert!((1..titles.len()).all(|index| !titles[..index].contains(&titles[index])), "{titles:?}");
    }
}
