//! `trialrun cleanup`: removes only what the trials of a run left on remotes.

mod after_trial;
mod manifest;
mod remover;
#[cfg(test)]
mod vectors;

use std::io::{BufRead, IsTerminal};
use std::process::ExitCode;

use model::SideEffects;
use report::counted;

pub use self::after_trial::AfterTrial;
#[cfg(test)]
pub(crate) use self::remover::is_open;
use self::remover::{Removal, Remover, review_request};
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;
use session::Session;

/// Arguments of `cleanup`.
#[derive(Debug, clap::Args)]
#[command(override_usage = "trialrun cleanup [OPTIONS] <RUN>")]
pub struct CleanupArgs {
    /// Run: prefix of its id, label, `latest`, `previous` or `latest~N`; or a `cleanup.json`, or its directory
    #[arg(value_name = "RUN", required_unless_present_any = ["workspace", "iteration"])]
    run: Option<String>,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Remove without asking
    #[arg(long, short)]
    yes: bool,
}

/// Removes the branches and review requests that the trials of a run left on remotes.
pub fn run(global: &Global, args: &CleanupArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut files = args.place.manifests(args.run.as_deref())?;
    files.extend(args.run.as_deref().filter(|_| !args.place.is_used()).and_then(manifest::file));
    let (mut recorded, mut left) = (Vec::new(), Vec::new());
    for file in &files {
        left.extend(manifest::read(file)?);
        let directory = file.parent().unwrap_or(file);
        recorded.extend(crate::workspace::recorded_in(directory, place::open(global, &[])?.environment()));
    }
    if files.is_empty() {
        let (store, run) = args.place.find(global, args.run.as_deref(), "latest")?;
        if session::is_active(&run) {
            return Err(CliError::usage(format!("the run {} is still in progress", run.short))
                .hint("its side effects are known only after it has ended"));
        }
        left = manifest::of_run(&*store, &run.id)?;
        recorded.push((store, run.id));
    }
    let left = report::merged_side_effects(&left);
    if left.is_empty() {
        terminal
            .out("Nothing to remove: no branch and no review request of these trials is known to be on a remote.\n");
        return Ok(ExitCode::SUCCESS);
    }
    terminal.out(&describe_all(&left));
    if !args.yes && !agreed(terminal, &left) {
        return Ok(ExitCode::SUCCESS);
    }
    let (code, gone) = remove(&left, terminal)?;
    for (store, run) in &mut recorded {
        store.record_cleanup(run, &gone)?;
    }
    files.iter().try_for_each(|file| manifest::update(file, &gone))?;
    Ok(code)
}

/// Does the same for a run that has just ended.
pub fn after_run(context: &Session, run: &str, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let mut store = context.read_store()?;
    let left = manifest::of_run(&*store, run)?;
    if left.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    let (code, gone) = remove(&left, terminal)?;
    store.record_cleanup(run, &gone)?;
    Ok(code)
}

/// Removes side effects. Returns the exit code, and those that are no longer there.
fn remove(left: &[SideEffects], terminal: &Terminal) -> Result<(ExitCode, Vec<SideEffects>), CliError> {
    let remover = Remover::new()?;
    let (mut removed, mut kept) = (0, 0);
    let mut gone = Vec::new();
    for remote in left {
        terminal.out(&format!("\n{}\n", remote.remote));
        let mut gone_here = SideEffects { remote: remote.remote.clone(), ..SideEffects::default() };
        remover.remove(remote, &mut |item, removal| {
            if matches!(removal, Removal::Removed | Removal::Gone(_)) {
                let is_branch = |branch: &&String| item.strip_prefix("branch ") == Some(branch.as_str());
                let is_request = |number: &&u64| item == review_request(&remote.remote, **number);
                gone_here.branches.extend(remote.branches.iter().find(is_branch).cloned());
                gone_here.review_requests.extend(remote.review_requests.iter().find(is_request));
            }
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
        gone.push(gone_here);
    }
    let still = if kept > 0 { format!(", {} still there", counted(kept, "item")) } else { String::new() };
    terminal.out(&format!("\nRemoved {}{still}.\n", counted(removed, "item")));
    Ok((ExitCode::from(if kept > 0 { exit::INCOMPLETE } else { exit::PASSED }), gone))
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
