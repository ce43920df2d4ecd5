//! `trialrun merge`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::ExitCode;

use report::counted;
use sha2::{Digest, Sha256};
use store::{ArchiveError, Location, MergeError, RunFilter, TrialFilter};

use super::import::{opened, refused};
use super::show;
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use session::overrides::parse_label;

/// Arguments of `merge`.
#[derive(Debug, clap::Args)]
pub struct MergeArgs {
    /// Files that `trialrun export` wrote, each with the run of one shard
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Label of the merged run [default: the label that all shards have]
    #[arg(long, value_name = "TEXT", value_parser = parse_label)]
    label: Option<String>,
}

/// Merges the shards of a run into one recorded run.
pub fn run(global: &Global, args: &MergeArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    let failed = |error: std::io::Error| CliError::environment(format!("cannot create a temporary record: {error}"));
    let folder = tempfile::tempdir().map_err(failed)?;
    let mut shards = store::open(&Location::File(folder.path().join("shards.db")), &session::owner())?;
    let (mut runs, mut names) = (Vec::new(), HashMap::new());
    for (shown, file) in opened(&context.cwd, &args.files)? {
        match store::import(&mut *shards, file) {
            Ok(imported) => {
                names.insert(imported.run.clone(), shown);
                runs.push(imported.run);
            }
            Err(ArchiveError::Present(run)) => {
                terminal.err(&format!("note: {shown} has run {run}, which another file has too\n"));
            }
            Err(error) => return Err(refused(&shown, error)),
        }
    }
    let id = id_of(&mut runs);
    let mut store = context.open_store()?;
    let named = RunFilter { named: Some(id.clone()), ..RunFilter::default() };
    let is_recorded = store.runs(&named)?.iter().any(|run| run.id == id);
    // What is missing shows only in the shards.
    let mut elsewhere = match is_recorded {
        true => Some(store::open(&Location::File(folder.path().join("merged.db")), &session::owner())?),
        false => None,
    };
    let to = elsewhere.as_deref_mut().unwrap_or(&mut *store);
    let merged = store::merge(&*shards, &runs, to, &id, args.label.clone()).map_err(|error| match error {
        MergeError::Store(error) => error.into(),
        MergeError::Different { one, other, reason } => {
            CliError::usage(format!("{} and {} cannot be merged: {reason}", names[&one], names[&other]))
        }
        MergeError::NotAShard(run) => CliError::usage(format!("{} is not a shard: it has a whole plan", names[&run])),
    })?;
    let row = store.select(&id)?;
    terminal.out(&match is_recorded {
        true => format!("These shards are already recorded as run {id}.\n"),
        false => format!(
            "Recorded run {} from {} ({} of {} finished).\n",
            row.label.as_deref().unwrap_or(&row.short),
            counted(runs.len(), "shard"),
            row.finished,
            counted(merged.planned, "trial"),
        ),
    });
    let trials = store.trials(&TrialFilter::of_run(&row.id))?;
    terminal.out(&show::verdict_on(&*store, &row, &trials, &terminal.out_style)?);
    if merged.missing.is_empty() && !row.is_interrupted() {
        return Ok(ExitCode::SUCCESS);
    }
    let missing: Vec<String> = merged.missing.iter().map(|index| format!("{index}/{}", merged.of)).collect();
    if !missing.is_empty() {
        terminal.err(&format!("warning: the run is incomplete: missing shards: {}\n", missing.join(", ")));
    }
    if row.is_interrupted() {
        terminal.err("warning: the run is incomplete: a shard was interrupted\n");
    }
    Ok(ExitCode::from(exit::INCOMPLETE))
}

/// Returns the id of the run that merges `runs`. Its time comes from the first shard, and the rest depends on all
/// shards, so merging them again gives the same run.
fn id_of(runs: &mut [String]) -> String {
    runs.sort_unstable();
    let first = runs.first().and_then(|run| uuid::Uuid::parse_str(run).ok()).map_or(0, |id| id.as_u128());
    let hash = Sha256::digest(runs.join("\n"));
    let mut bytes = [0; 10];
    bytes.copy_from_slice(&hash[..10]);
    uuid::Builder::from_unix_timestamp_millis((first >> 80) as u64, &bytes).into_uuid().to_string()
}
