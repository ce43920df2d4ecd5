//! `trialrun config`.

use std::process::ExitCode;

use serde_json::{Value, json};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::project::Workplace;
use crate::run_args::RunArgs;
use crate::settings::Resolved;
use crate::terminal::Terminal;

/// Arguments of `config`.
#[derive(Debug, clap::Args)]
pub struct ConfigArgs {
    /// Takes what `run` takes, and shows what would hold
    #[command(flatten)]
    run: RunArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Shows every setting and where it comes from.
pub fn run(global: &Global, args: &ConfigArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let workplace = Workplace::find(global, &args.run.targets)?;
    let resolved = Resolved::of(&args.run, &workplace);
    terminal.diagnostics(&workplace.diagnostics);
    if args.json {
        let rows: Vec<_> = resolved
            .rows
            .iter()
            .map(|row| json!({"name": row.name, "value": row.value, "layer": row.layer.to_string()}))
            .collect();
        terminal.json(&rows);
    } else {
        let shown: Vec<(String, String)> = resolved
            .rows
            .iter()
            .map(|row| {
                let value = match &row.value {
                    Value::Null => "—".to_owned(),
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                (value, row.layer.to_string())
            })
            .collect();
        let names = resolved.rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
        let values = shown.iter().map(|(value, _)| value.chars().count()).max().unwrap_or(0).min(48);
        for (row, (value, layer)) in resolved.rows.iter().zip(&shown) {
            let gap = " ".repeat(values.saturating_sub(value.chars().count()));
            terminal.out(&format!("{:names$}  {value}{gap}  {layer}\n", row.name));
        }
    }
    let invalid = workplace.diagnostics.iter().any(model::Diagnostic::is_error);
    Ok(ExitCode::from(if invalid { exit::INVALID } else { exit::PASSED }))
}
