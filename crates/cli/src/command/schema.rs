//! `trialrun schema`.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::Value;

use super::{rpc, serve};
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
    /// Tests of an MCP server.
    Mcp,
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
    /// The messages of `rpc`.
    Rpc,
    /// The messages of `rpc`: types for Python.
    RpcPython,
    /// The messages of `rpc`: TypeScript declarations.
    RpcTypes,
    /// The HTTP API of `serve`, as OpenAPI.
    Openapi,
    /// Tests as code: TypeScript declarations.
    Types,
}

/// Prints a JSON schema, or the declarations.
pub fn run(args: &SchemaArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    match schema(args.kind) {
        Schema::Json(schema) => terminal.json(&schema),
        Schema::Text(text) => terminal.out(&text),
    }
    Ok(ExitCode::SUCCESS)
}

/// A schema in its own notation.
enum Schema {
    Json(Value),
    Text(String),
}

fn schema(kind: Kind) -> Schema {
    Schema::Json(match kind {
        Kind::Scenario => suite::scenario_schema(grade::assertion_schema(&["id"])),
        Kind::Conversation => suite::conversation_schema(grade::assertion_schema(&[])),
        Kind::Mcp => suite::mcp_schema(grade::assertion_schema(&[])),
        Kind::Fixtures => suite::fixture_schema(),
        Kind::Evals => suite::evals_schema(),
        Kind::Config => suite::config_schema(),
        Kind::Report => report::report_schema(),
        Kind::Compare => report::comparison_schema(),
        Kind::Rpc => rpc::protocol::schema(),
        Kind::Openapi => serve::openapi(),
        Kind::RpcPython => return Schema::Text(rpc::protocol::python()),
        Kind::RpcTypes => return Schema::Text(rpc::protocol::typescript()),
        Kind::Types => return Schema::Text(grade::declarations()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_file_has_its_own_schema() {
        let schemas = Kind::value_variants().iter().filter_map(|kind| match schema(*kind) {
            Schema::Json(schema) => Some(schema),
            Schema::Text(_) => None,
        });
        let title = |schema: Value| schema.get("title").or(schema.pointer("/info/title")).cloned().unwrap_or_default();
        let titles: Vec<Value> = schemas.map(title).collect();
        assert!(titles.iter().all(Value::is_string), "{titles:?}");
        assert!(titles.contains(&"fixtures".into()));
        assert!((1..titles.len()).all(|index| !titles[..index].contains(&titles[index])), "{titles:?}");
    }
}
