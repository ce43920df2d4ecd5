//! `trialrun export`.

use std::fs::Permissions;
use std::io::BufWriter;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::ExitCode;

use store::Verification;
use tempfile::NamedTempFile;

use crate::error::CliError;
use crate::global::Global;
use crate::named_run::named_run;
use crate::place;
use crate::terminal::Terminal;

/// Arguments of `export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Run to export: prefix of its id, label, `latest`, `previous` or `latest~N`
    #[arg(value_name = "RUN")]
    run: String,
    /// File to write
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
}

/// Writes one run to a file, atomically.
pub fn run(global: &Global, args: &ExportArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let context = place::open(global, &[])?;
    let store = context.read_store()?;
    let row = named_run(&*store, &args.run, terminal)?;
    let path = context.cwd.join(&args.file);
    let failed =
        |error: &dyn std::fmt::Display| CliError::environment(format!("cannot write {}: {error}", args.file.display()));
    if let Ok(existing) = path.symlink_metadata() {
        let name = args.file.display();
        if !existing.is_file() {
            return Err(CliError::usage(format!("{name} exists and is not a regular file")));
        }
        if !args.force {
            return Err(CliError::usage(format!("{name} exists")).hint("`--force` replaces it"));
        }
    }
    // A complete temporary file replaces it in one step.
    let folder = path.parent().unwrap_or(&context.cwd);
    let mut part = tempfile::Builder::new()
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(folder)
        .map_err(|error| failed(&error))?;
    let exported = store::export(&*store, &row.id, BufWriter::new(&mut part)).map_err(|error| failed(&error))?;
    part.as_file().sync_all().map_err(|error| failed(&error))?;
    let persist = if args.force { NamedTempFile::persist } else { NamedTempFile::persist_noclobber };
    persist(part, &path).map_err(|error| failed(&error.error))?;
    terminal.out(&format!(
        "Wrote run {} to {} (finished trials: {}, events: {}).\n",
        row.label.as_deref().unwrap_or(&row.short),
        args.file.display(),
        row.finished,
        exported.events,
    ));
    if let Verification::Changed { differences } = exported.verification {
        let first = differences.first().map(ToString::to_string).unwrap_or_default();
        terminal
            .err(&format!("warning: the run was changed after it was recorded, so the file has no hash: {first}\n"));
    }
    Ok(ExitCode::SUCCESS)
}
