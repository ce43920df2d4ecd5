//! `trialrun history`.

use std::collections::BTreeSet;
use std::process::ExitCode;

use model::Gate;
use report::ListedRun;
use store::{RunFilter, Store, StoreError, TrialFilter};

use crate::error::CliError;
use crate::global::Global;
use crate::place;
use crate::terminal::Terminal;

/// Arguments of `history`.
#[derive(Debug, clap::Args)]
pub struct HistoryArgs {
    /// List only trials of this suite or skill
    #[arg(value_name = "SUITE")]
    suite: Option<String>,
    /// List trials instead of runs; a suite or `--case` implies it
    #[arg(long)]
    cases: bool,
    /// List only trials of this case
    #[arg(long = "case", alias = "scenario", value_name = "ID")]
    case: Option<String>,
    /// Number of runs or trials to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_last)]
    last: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses a number of runs or trials.
fn parse_last(written: &str) -> Result<u32, String> {
    let number = written.parse::<u32>().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("a number from 1 to {}; the largest lists all", u32::MAX))
}

/// Lists recorded runs or their trials, newest run first.
pub fn run(global: &Global, args: &HistoryArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let session = place::open(global, &[])?;
    // A missing record is an empty history, not an error.
    let store = session.find_store()?;
    if args.cases || args.suite.is_some() || args.case.is_some() {
        trials(store.as_deref(), args, terminal)
    } else {
        runs(store.as_deref(), args, terminal)
    }
}

fn runs(store: Option<&dyn Store>, args: &HistoryArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let filter = RunFilter { last: usize::try_from(args.last).ok(), ..RunFilter::default() };
    let rows = store.map_or_else(|| Ok(Vec::new()), |store| store.runs(&filter))?;
    let listed = rows.into_iter().filter_map(|run| {
        let store = store?;
        let summary = match &run.summary {
            None => store.summary(&run.id),
            Some(known) => Ok(known.clone()),
        };
        // A list does not fail because of one run that cannot be read.
        let gate = store.info(&run.id).map(|info| Gate::from_settings(&info.settings)).unwrap_or_default();
        Some(summary.map(|summary| ListedRun { alive: session::is_active(&run), run, summary, gate }))
    });
    if args.json {
        let mut list = terminal.json_list();
        for run in listed {
            if !list.add(&report::run_json(&run?)) {
                break;
            }
        }
        list.end();
    } else {
        let listed = listed.collect::<Result<Vec<ListedRun>, StoreError>>()?;
        terminal.out(&report::runs(&listed, jiff::Timestamp::now(), &terminal.out_style));
    }
    Ok(ExitCode::SUCCESS)
}

fn trials(store: Option<&dyn Store>, args: &HistoryArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (suite, case) = selected(store, args.suite.as_deref(), args.case.as_deref())?;
    let filter = TrialFilter {
        suite: suite.clone(),
        case: case.clone(),
        last: usize::try_from(args.last).ok(),
        ..TrialFilter::default()
    };
    let is_named = |store: &dyn Store| named(store, suite.as_deref(), case.as_deref());
    if args.json {
        // A long history is printed while it is read.
        let mut list = terminal.json_list();
        if let Some(store) = store {
            let mut is_empty = true;
            store.each_trial(&filter, &mut |trial| {
                is_empty = false;
                list.add(&report::history_json(&trial))
            })?;
            if is_empty {
                is_named(store)?;
            }
        }
        list.end();
        return Ok(ExitCode::SUCCESS);
    }
    let trials = store.map_or_else(|| Ok(Vec::new()), |store| store.trials(&filter))?;
    if let (true, Some(store)) = (trials.is_empty(), store) {
        is_named(store)?;
    }
    terminal.out(&report::history(&trials, &terminal.out_style));
    Ok(ExitCode::SUCCESS)
}

/// Returns the suite and the case to which the arguments refer. Either may be `SUITE::CASE`, as lists show it.
pub fn selected(
    store: Option<&dyn Store>,
    suite: Option<&str>,
    case: Option<&str>,
) -> Result<(Option<String>, Option<String>), CliError> {
    let both = match (suite, case) {
        (Some(name), None) | (None, Some(name)) => name.split_once("::"),
        _ => None,
    };
    let (suite, case) = both.map_or((suite, case), |(suite, case)| (Some(suite), Some(case)));
    Ok((suite_of(store, suite)?, case.map(str::to_owned)))
}

/// Returns the suite to which `name` refers: the suite itself, or the only one of the skill with that name.
fn suite_of(store: Option<&dyn Store>, name: Option<&str>) -> Result<Option<String>, CliError> {
    let (Some(store), Some(name)) = (store, name) else { return Ok(name.map(str::to_owned)) };
    let is_suite = TrialFilter { suite: Some(name.to_owned()), last: Some(1), ..TrialFilter::default() };
    if !store.trials(&is_suite)?.is_empty() {
        return Ok(Some(name.to_owned()));
    }
    let suites: BTreeSet<String> = store.cases()?.into_iter().map(|(suite, _)| suite).collect();
    let of_skill = |suite: &&String| suite.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'));
    let mut named = suites.iter().filter(of_skill);
    match (named.next(), named.next()) {
        (Some(only), None) => Ok(Some(only.clone())),
        (Some(first), Some(second)) => Err(CliError::usage(format!("`{name}` names several suites"))
            .hint(format!("name one of them, such as `{first}` or `{second}`"))),
        (None, _) => Ok(Some(name.to_owned())),
    }
}

/// Returns an error if trials are recorded, but none for that suite or case.
pub fn named(store: &dyn Store, suite: Option<&str>, case: Option<&str>) -> Result<(), CliError> {
    let all = store.cases()?;
    let is_suite = |name: &str| all.iter().any(|(suite, _)| suite == name);
    let missing = match (suite, case) {
        (Some(suite), Some(case)) if is_suite(suite) => Some(("case", case)),
        (Some(suite), _) => Some(("suite", suite)),
        (None, case) => case.map(|case| ("case", case)),
    };
    let (false, Some((what, name))) = (all.is_empty(), missing) else { return Ok(()) };
    let names = || all.iter().map(|(suite, case)| if what == "suite" { suite.as_str() } else { case.as_str() });
    let as_case =
        (what == "suite" && all.iter().any(|(_, case)| case == name)).then(|| format!("`--case {name}` names a case"));
    let near = model::nearest(name, names()).map(|near| format!("did you mean `{near}`?"));
    let within = suite.filter(|_| what == "case").map(|suite| format!(" of the suite `{suite}`")).unwrap_or_default();
    let message = format!("no trial of a {what} `{name}`{within} is recorded");
    Err(CliError::usage(message).maybe_hint(as_case.or(near)))
}
