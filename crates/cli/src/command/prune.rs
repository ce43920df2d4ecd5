//! `trialrun prune`.

use std::process::ExitCode;
use std::time::Duration;

use model::RunRow;
use report::counted;
use runner::SandboxSettings;
use sandbox::prune::{self, Purpose};
use sandbox::{Host, Leftover, SandboxKind};
use store::RunFilter;

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;
use crate::units::{age, bytes};
use crate::{exit, machine};
use session::overrides::{Overrides, parse_duration};

/// Arguments of `prune`.
#[derive(Debug, clap::Args)]
pub struct PruneArgs {
    /// Remove what was found, instead of listing it
    #[arg(long)]
    yes: bool,
    /// Include sandboxes that `--keep-sandbox` kept
    #[arg(long)]
    kept: bool,
    /// Minimum age of sandboxes to remove, such as `10m`; a bare number is in seconds
    #[arg(long, value_name = "AGE", default_value = "60s", value_parser = parse_min_age)]
    min_age: u64,
    /// Remove old recorded runs instead; N is the same as `--keep N`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<Option<u32>>,
    /// Keep the N newest runs
    #[arg(long, value_name = "N", requires = "runs", value_parser = clap::value_parser!(u32).range(1..))]
    keep: Option<u32>,
    /// Keep runs that started within this time, such as `30d` or `12h`
    #[arg(long, value_name = "AGE", requires = "runs", value_parser = parse_age)]
    older_than: Option<u64>,
}

/// Parses an age in milliseconds: a bare number of seconds, or a number with a unit.
fn parse_min_age(written: &str) -> Result<u64, String> {
    if written.trim_end_matches(['d', 'h', 'm', 's']) == "0" {
        return Ok(0);
    }
    if written.parse::<f64>().is_ok() { parse_duration(written) } else { parse_age(written) }
}

/// Parses an age in milliseconds, which needs a unit: a number of seconds would remove runs that are meant to be kept
/// for days.
fn parse_age(written: &str) -> Result<u64, String> {
    if written.parse::<f64>().is_ok() {
        return Err(format!("it has no unit; write `{written}d` for days, or `{written}h` for hours"));
    }
    match written.strip_suffix('d').and_then(|days| days.parse::<u32>().ok()) {
        Some(days) => Ok(u64::from(days) * 24 * 3_600_000),
        None => parse_duration(written).map_err(|_| "write `30d`, `12h` or `90m`".to_owned()),
    }
}

/// Lists what a killed run left behind, and removes it if requested. Sandboxes in use are never touched.
pub fn run(global: &Global, args: &PruneArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if let Some(keep) = args.runs {
        let keep = args.keep.or(keep);
        if keep.is_none() && args.older_than.is_none() {
            return Err(CliError::usage("which runs are old?").hint("add `--keep N`, `--older-than 30d`, or both"));
        }
        return remove_runs(global, args, keep.unwrap_or(0), terminal);
    }
    let host = machine::host()?;
    let session = place::open(global, &[])?;
    let settings = session.settings(&session.resolve(&Overrides::default())?).sandbox;
    let elsewhere = leftovers(&host, &settings, terminal);
    let options = settings.isolation;
    let temp = &host.temp;
    let now = std::time::SystemTime::now();
    let mut survey = prune::survey(temp, Duration::from_millis(args.min_age), now)
        .map_err(|error| CliError::environment(format!("cannot read {}: {error}", temp.display())))?;
    let kept = survey.kept.len();
    if args.kept {
        survey.orphans.append(&mut survey.kept);
    }
    let total = survey.orphans.iter().map(|orphan| orphan.size).sum();
    let mut text = if survey.orphans.is_empty() {
        format!("No orphan sandbox under {}.\n", temp.display())
    } else {
        format!(
            "{} under {}, {} in all:\n\n",
            counted(survey.orphans.len(), "orphan sandbox"),
            temp.display(),
            bytes(total)
        )
    };
    for orphan in &survey.orphans {
        let note = if orphan.purpose == Purpose::Sandbox { "" } else { "  (templates of a run)" };
        text.push_str(&format!("{:>8}  {:>9}  {}{note}\n", age(orphan.age), bytes(orphan.size), orphan.path.display()));
    }
    if kept > 0 && !args.kept {
        text.push_str(&format!(
            "\n{} kept by `--keep-sandbox`, not removed; use `--kept` to include them.\n",
            counted(kept, "sandbox")
        ));
    }
    if survey.live > 0 {
        text.push_str(&format!("\n{} in use, not removed.\n", counted(survey.live, "sandbox")));
    }
    if survey.younger > 0 {
        text.push_str(&format!(
            "\n{} younger than {} s, not removed.\n",
            counted(survey.younger, "sandbox"),
            args.min_age / 1000
        ));
    }
    for (kind, leftover) in &elsewhere {
        text.push_str(&format!("\nOrphan of `{}` sandboxes: {}\n", kind.name(), leftover.name));
    }
    if survey.orphans.is_empty() && elsewhere.is_empty() {
        terminal.out(&text);
        return Ok(ExitCode::SUCCESS);
    }
    if !args.yes {
        text.push_str("\nNothing was removed; `--yes` removes them.\n");
        terminal.out(&text);
        return Ok(ExitCode::SUCCESS);
    }
    terminal.out(&text);
    let (mut removed, mut freed, mut failed) = (0, 0, false);
    for orphan in &survey.orphans {
        // Agents name their own files after the path with links resolved.
        let path = orphan.path.canonicalize().unwrap_or_else(|_| orphan.path.clone());
        match prune::remove(orphan) {
            Ok(true) => {
                agent::AGENTS.iter().for_each(|agent| agent.remove_leftovers(&host, &path));
                removed += 1;
                freed += orphan.size;
            }
            Ok(false) => {}
            Err(error) => {
                failed = true;
                terminal.err(&format!("cannot remove {}: {error}\n", orphan.path.display()));
            }
        }
    }
    for (kind, leftover) in &elsewhere {
        match kind.remove_leftover(&host, &options, leftover) {
            Ok(()) => removed += 1,
            Err(reason) => {
                failed = true;
                terminal.err(&format!("cannot remove {}: {reason}\n", leftover.name));
            }
        }
    }
    terminal.out(&format!("\nRemoved {}, freed {}.\n", counted(removed, "sandbox"), bytes(freed)));
    Ok(ExitCode::from(if failed { exit::INCOMPLETE } else { exit::PASSED }))
}

/// Returns containers and remote sandboxes that finished runs left behind. Errors are printed to stderr, except for
/// engines that the project does not use.
fn leftovers(
    host: &Host,
    settings: &SandboxSettings,
    terminal: &Terminal,
) -> Vec<(&'static dyn SandboxKind, Leftover)> {
    let of_kind = |kind: &&'static dyn SandboxKind| match kind.leftovers(host, &settings.isolation) {
        Err(_) if !kind.is_remote() && kind.name() != settings.kind => Vec::new(),
        Ok(found) => found.into_iter().map(|leftover| (*kind, leftover)).collect(),
        Err(error) => {
            terminal.err(&format!("cannot look for orphans: {error}\n"));
            Vec::new()
        }
    };
    sandbox::SANDBOXES.iter().flat_map(of_kind).collect()
}

/// Lists the recorded runs that are beyond the newest `keep` and old enough, and removes them if requested. Runs in
/// progress are kept.
fn remove_runs(global: &Global, args: &PruneArgs, keep: u32, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (yes, keep) = (args.yes, usize::try_from(keep).unwrap_or(usize::MAX));
    let age = jiff::SignedDuration::from_millis(i64::try_from(args.older_than.unwrap_or(0)).unwrap_or(i64::MAX));
    let is_old = |run: &RunRow| jiff::Timestamp::now().duration_since(run.started_at) >= age;
    let session = place::open(global, &[])?;
    let mut store = session.read_store()?;
    let runs = store.runs(&RunFilter::default())?;
    let old: Vec<RunRow> = runs.into_iter().skip(keep).filter(|run| is_old(run) && !session::is_active(run)).collect();
    let mut text = String::new();
    for run in &old {
        let label = run.label.as_ref().map_or_else(String::new, |label| format!("  {label}"));
        text.push_str(&format!("{}  {}  {}{label}\n", run.short, run.started_at, counted(run.finished, "trial")));
        if yes {
            store.remove(&run.id)?;
            // The files that a run wrote for its hooks are removed too.
            let _ = std::fs::remove_dir_all(session::hooks::artifacts_of(&session.state.folder, &run.id));
        }
    }
    let what = counted(old.len(), "run");
    text.push_str(&match (old.is_empty(), yes) {
        (true, _) => "No old runs.\n".to_owned(),
        (false, true) => format!("\nRemoved {what}.\n"),
        (false, false) => format!("\nNothing was removed; `--yes` removes {what}.\n"),
    });
    terminal.out(&text);
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_and_sizes_are_formatted_as_documented() {
        let ages = [7, 120, 11_520, 100_800].map(|seconds| age(Duration::from_secs(seconds)));
        assert_eq!(ages, ["7s", "2m", "3h12m", "1d04h"]);
        assert_eq!([100, 24_678, 3_355_443].map(bytes), ["100 B", "24.1 KB", "3.2 MB"]);
        assert_eq!(["30d", "12h"].map(parse_age), [Ok(2_592_000_000), Ok(43_200_000)]);
        assert!(parse_age("soon").is_err() && parse_age("-1d").is_err());
    }
}
