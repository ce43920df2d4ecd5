//! `trialrun cleanup`: removes only what the trials of a run left on remotes.

mod after_trial;
mod manifest;
mod remover;

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use model::SideEffects;
use report::counted;

pub use self::after_trial::AfterTrial;
#[cfg(test)]
pub(crate) use self::remover::is_open;
use self::remover::{Removal, Remover, review_request};
use crate::error::CliError;
use crate::global::Global;
use crate::project::ProjectContext;
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;
use crate::{exit, machine};

/// Arguments of `cleanup`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "trialrun cleanup [OPTIONS] <RUN>")]
pub struct CleanupArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N`; or a `cleanup.json`, or its directory
    #[arg(value_name = "RUN", required_unless_present = "workspace")]
    run: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
}

/// Removes the branches and review requests that the trials of a run left on remotes.
pub fn run(global: &Global, args: &CleanupArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let directory = args.place.directory()?.map(|directory| directory.to_string_lossy().into_owned());
    let named = directory.or_else(|| args.run.clone());
    let left = match named.as_deref().and_then(manifest::file) {
        Some(file) => manifest::read(&file)?,
        None => {
            let (store, run) = args.place.find(global, args.run.as_deref(), "latest")?;
            if machine::is_active(&run) {
                return Err(CliError::usage(format!("the run {} is still in progress", run.short))
                    .hint("its side effects are known only after it has ended"));
            }
            manifest::of_run(&*store, &run.id)?
        }
    };
    if left.is_empty() {
        terminal.out("Nothing to remove: no trial of this run left a branch or a review request on a remote.\n");
        return Ok(ExitCode::SUCCESS);
    }
    terminal.out(&describe_all(&left));
    if !args.yes && !agreed(terminal, &left) {
        return Ok(ExitCode::SUCCESS);
    }
    remove(&left, terminal)
}

/// Does the same for a run that has just ended.
pub fn after_run(context: &ProjectContext, run: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let left = manifest::of_run(&*context.read_store()?, run)?;
    if left.is_empty() { Ok(ExitCode::SUCCESS) } else { remove(&left, terminal) }
}

fn remove(left: &[SideEffects], terminal: &Terminal) -> Result<ExitCode, CliError> {
    let remover = Remover::new()?;
    let (mut removed, mut kept) = (0, 0);
    for remote in left {
        terminal.out(&format!("\n{}\n", remote.remote));
        remover.remove(remote, &mut |item, removal| {
            let (word, why) = match removal {
                Removal::Removed => ("removed", ""),
                Removal::Gone(how) => ("already gone", how.as_str()),
                Removal::Left(why) => ("kept", why.as_str()),
                Removal::Failed(why) => ("failed", why.as_str()),
            };
            removed += usize::from(matches!(removal, Removal::Removed));
            kept += usize::from(matches!(removal, Removal::Left(_) | Removal::Failed(_)));
            let why = if why.is_empty() { String::new() } else { format!(": {why}") };
            terminal.out(&format!("  {word:<12}  {item}{why}\n"));
        });
    }
    let still = if kept > 0 { format!(", {} still there", counted(kept, "item")) } else { String::new() };
    terminal.out(&format!("\nRemoved {}{still}.\n", counted(removed, "item")));
    Ok(ExitCode::from(if kept > 0 { exit::INCOMPLETE } else { exit::PASSED }))
}

fn describe_all(left: &[SideEffects]) -> String {
    let mut text = String::from("Left on remotes:\n");
    for remote in left {
        text.push_str(&format!("\n{}\n", remote.remote));
        for number in &remote.review_requests {
            text.push_str(&format!("  {}\n", review_request(&remote.remote, *number)));
        }
        for branch in &remote.branches {
            text.push_str(&format!("  branch {branch}\n"));
        }
    }
    text
}

/// Asks for confirmation. Without an interactive stdin, the answer is no.
fn agreed(terminal: &Terminal, left: &[SideEffects]) -> bool {
    let items = left.iter().map(|remote| remote.branches.len() + remote.review_requests.len()).sum();
    if !std::io::stdin().is_terminal() {
        terminal.out(&format!("\nNothing was removed; `--yes` removes {}.\n", counted(items, "item")));
        return false;
    }
    terminal.err(&format!("\nRemove {}? [y/N] ", counted(items, "item")));
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let agreed = read.is_ok() && ["y", "yes"].contains(&answer.trim().to_ascii_lowercase().as_str());
    if !agreed {
        terminal.out("Nothing was removed.\n");
    }
    agreed
}
