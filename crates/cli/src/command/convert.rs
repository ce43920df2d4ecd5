//! `trialrun convert`.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use model::Diagnostic;
use report::counted;
use suite::{WrittenFile, WrittenFormat};

use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;

/// Arguments of `convert`.
#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// Suites of another tool: files or directories
    #[arg(value_name = "PATH", required = true)]
    targets: Vec<String>,
    /// Format of the files to write: `scenario`, `conversation` or `evals` [default: by what a case tests]
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    to: Option<WrittenFormat>,
    /// Folder for the files
    #[arg(long, short, value_name = "DIR", default_value = "scenarios")]
    output: PathBuf,
    /// Skill that the suites are about
    #[arg(long, value_name = "DIR")]
    skill: Option<String>,
    /// Replace existing files
    #[arg(long)]
    force: bool,
}

fn parse_format(written: &str) -> Result<WrittenFormat, String> {
    let names = WrittenFormat::NAMED.map(|(name, _)| format!("`{name}`")).join(", ");
    let found = WrittenFormat::NAMED.iter().find(|(name, _)| *name == written);
    found.map(|(_, format)| *format).ok_or_else(|| format!("write one of {names}"))
}

/// Writes the cases of suites as files of trialrun. A case that these cannot say is refused.
pub fn run(global: &Global, args: &ConvertArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let session = place::open(global, &args.targets)?;
    let loaded = session.load_for_chosen_agent(args.targets.clone(), args.skill.clone());
    terminal.diagnostics(&loaded.diagnostics);
    if loaded.has_errors() {
        return Ok(ExitCode::from(exit::INVALID));
    }
    let output = session.cwd.join(&args.output);
    if output.exists() && !output.is_dir() {
        return Err(CliError::usage(format!("{} is not a folder", args.output.display()))
            .hint("`--output DIR` names the folder for the files"));
    }
    let (own, suites): (Vec<_>, Vec<_>) = loaded.suites.into_iter().partition(|suite| is_in_form(suite, args.to));
    if let (Some(first), true) = (own.first(), suites.is_empty()) {
        let file = session::shown(&session.cwd.join(&first.path), &session.cwd);
        return Err(CliError::usage(format!("{file} already has a form of trialrun, so there is nothing to convert"))
            .hint("`--to` names another form"));
    }
    let written = suite::write(&suites, &loaded.coverage, args.to, &output);
    let existing = written.files.iter().find(|file| output.join(&file.path).symlink_metadata().is_ok());
    if let Some(file) = existing.filter(|_| !args.force) {
        let shown = args.output.join(&file.path);
        return Err(CliError::usage(format!("{} exists", shown.display())).hint("`--force` replaces it"));
    }
    for file in &written.files {
        let path = output.join(&file.path);
        write(&path, file).map_err(|error| {
            CliError::environment(format!("cannot write {}: {error}", args.output.join(&file.path).display()))
        })?;
    }
    let refused: Vec<Diagnostic> = written.refused;
    terminal.diagnostics(&refused);
    if written.cases > 0 {
        let files = counted(written.files.len(), "file");
        terminal.out(&format!("Wrote {} to {} ({files}).\n", counted(written.cases, "case"), args.output.display()));
    }
    Ok(ExitCode::from(match (written.cases, refused.len()) {
        (0, 0) => exit::NOTHING,
        (_, 0) => exit::PASSED,
        _ => exit::INVALID,
    }))
}

/// Returns `true` if `suite` is a file in the wanted form. A copy of it would run its cases twice.
fn is_in_form(suite: &model::Suite, wanted: Option<WrittenFormat>) -> bool {
    let form = WrittenFormat::NAMED.iter().find(|(name, _)| *name == suite.format);
    form.is_some_and(|(_, form)| *form != WrittenFormat::Evals && wanted.is_none_or(|wanted| wanted == *form))
}

/// Writes a file, and the folders above it. A link at its place is replaced and not followed.
fn write(path: &Path, file: &WrittenFile) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(path);
    fs::create_dir_all(folder)?;
    let mode = if file.executable { 0o777 } else { 0o666 };
    let mut part = tempfile::Builder::new().permissions(fs::Permissions::from_mode(mode)).tempfile_in(folder)?;
    std::io::Write::write_all(&mut part, &file.content)?;
    part.persist(path).map(drop).map_err(|error| error.error)
}
