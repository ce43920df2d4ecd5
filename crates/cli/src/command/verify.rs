//! `trialrun verify`.

use std::process::ExitCode;

use report::counted;
use serde_json::json;
use store::Verification;

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::named_run::named_run;
use crate::place;
use crate::terminal::Terminal;

/// Maximum number of differences that are listed.
const LISTED: usize = 20;

/// Arguments of `verify`.
#[derive(Debug, clap::Args)]
pub struct VerifyArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N` [default: latest]
    #[arg(value_name = "RUN")]
    run: Option<String>,
    /// Hash that the run must have, as `show` or the JSON report gave it
    #[arg(long, value_name = "HASH")]
    expect: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Compares a recorded run with its hashes.
pub fn run(global: &Global, args: &VerifyArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let store = place::open(global, &[])?.read_store()?;
    let run = named_run(&*store, args.run.as_deref().unwrap_or("latest"), terminal)?;
    let verification = store.verify(&run.id)?;
    let (hash, differences) = match &verification {
        Verification::Intact { hash, .. } => (Some(hash), &[][..]),
        Verification::Changed { differences } => (None, &differences[..]),
        Verification::Unchained => (None, &[][..]),
    };
    let is_other = args.expect.as_ref().is_some_and(|expected| hash.is_some_and(|hash| hash != expected));
    let result = match &verification {
        Verification::Intact { .. } if is_other => "other",
        Verification::Intact { .. } => "intact",
        Verification::Changed { .. } => "changed",
        Verification::Unchained => "unknown",
    };
    if args.json {
        let differences: Vec<_> = differences
            .iter()
            .map(|difference| json!({"trial": difference.trial, "because": difference.reason}))
            .collect();
        terminal.json(&json!({
            "schema": "trialrun.verify/1", "run": run.id, "result": result, "hash": hash, "expected": args.expect,
            "finished": run.finished, "planned": run.planned, "differences": differences,
        }));
    } else {
        let name = run.label.as_deref().unwrap_or(&run.short);
        terminal.out(&match (&verification, &args.expect) {
            (Verification::Intact { hash, .. }, Some(expected)) if is_other => format!(
                "Run {name} is not the run with that hash: its chain is intact, but its hash is\n  {hash}\ninstead of\n  \
                 {expected}\n"
            ),
            (Verification::Intact { hash, trials }, expected) => {
                let unfinished = run.needed().saturating_sub(*trials);
                let unfinished = match unfinished {
                    0 => String::new(),
                    _ => format!(", {unfinished} of {} not finished", run.planned),
                };
                let note = match expected {
                    Some(_) => "It is the expected hash.\n",
                    None => "Compare it with a copy that you keep elsewhere: `trialrun verify RUN --expect HASH`.\n",
                };
                let trials = counted(*trials, "trial");
                format!(
                    "Run {name} is unchanged since it was recorded ({trials}{unfinished}). Its hash is\n  {hash}\n{note}"
                )
            }
            (Verification::Unchained, _) => {
                format!("Run {name} cannot be verified: it was recorded or imported without hashes.\n")
            }
            (Verification::Changed { differences }, _) => {
                let lines = differences.iter().take(LISTED).map(|difference| format!("  {difference}\n"));
                let more = differences.len().saturating_sub(LISTED);
                let more = if more > 0 { format!("  and {more} more\n") } else { String::new() };
                format!("Run {name} was changed after it was recorded:\n{}{more}", lines.collect::<String>())
            }
        });
    }
    Ok(ExitCode::from(match result {
        "intact" => exit::PASSED,
        "unknown" => exit::INCOMPLETE,
        _ => exit::FAILED,
    }))
}
