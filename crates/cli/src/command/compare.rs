//! `trialrun compare`.

mod preference;

use std::cell::RefCell;
use std::collections::HashSet;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::ValueEnum;
use model::statistics::WithinMargin;
use model::{RunRow, TrialRow};
use report::{ComparedTrial, Comparison, Dimension, Style};
use serde_json::{Value, json};
use store::{RunFilter, Store, StoredEvent, TrialFilter};

use self::preference::{PairJudge, PreferenceArgs};
use crate::ci::folder_in_repository;
use crate::error::CliError;
use crate::exit;
use crate::global::Global;
use crate::place;
use crate::reports::{check_file, report_file};
use crate::terminal::Terminal;
use crate::workspace::WorkspaceArgs;
use session::Session;
use session::overrides::parse_share;

/// Arguments of `compare`.
#[derive(Debug, clap::Args)]
pub struct CompareArgs {
    /// Earlier run: prefix of its id, label, `latest` or `previous`; with `--by`, the run to compare in [default:
    /// previous; with `--by`, latest]
    #[arg(value_name = "A")]
    a: Option<String>,
    /// Later run [default: latest]
    #[arg(value_name = "B", conflicts_with = "by")]
    b: Option<String>,
    /// Earlier run, as an option
    #[arg(long, value_name = "A", conflicts_with_all = ["a", "by"])]
    before: Option<String>,
    /// Later run, as an option
    #[arg(long, value_name = "B", conflicts_with_all = ["b", "by"])]
    after: Option<String>,
    /// Compare the models, agents or variants of one run, each with the first one, or the newest runs with different
    /// labels
    #[arg(long, value_name = "WHAT")]
    by: Option<By>,
    /// Exit with 1 on any regression, even if it may be chance
    #[arg(long)]
    any: bool,
    #[command(flatten)]
    place: WorkspaceArgs,
    /// Maximum drop of a mean score or pass rate, from 0 to 1, that does not count as a regression [default: the
    /// project's, else 0.05]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    threshold: Option<f64>,
    /// Also decide whether the pass rate fell by at most this share, from 0 to 1; exit with 1 if it fell by more, and with
    /// 3 if there are too few trials to tell
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    no_worse_than: Option<f64>,
    /// Output format, to standard output or into a file: `terminal`, `markdown`, `json` or `html`
    #[arg(long, alias = "report", value_name = "FORMAT[=PATH]", default_value = "terminal", value_parser = parse_format)]
    format: (Format, Option<PathBuf>),
    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Address of a `trialrun serve` with the same record, to which Markdown links [default: `TRIALRUN_SERVE_URL`]
    #[arg(long, value_name = "URL", value_parser = parse_server)]
    serve_url: Option<String>,
    /// Print JSON, the same as `--format json`
    #[arg(long, conflicts_with = "format")]
    json: bool,
    #[command(flatten)]
    preference: PreferenceArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    /// Models of one run.
    Model,
    /// Agents of one run.
    Agent,
    /// Trials with the skill and without it.
    Variant,
    /// Newest runs with different labels.
    Label,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    #[value(alias = "table")]
    Terminal,
    /// A comment on a pull request.
    Markdown,
    /// One JSON document.
    Json,
    /// One page for a browser.
    Html,
}

/// Reads the value of `--format`: a format, and the file to write.
fn parse_format(written: &str) -> Result<(Format, Option<PathBuf>), String> {
    let (name, file) = match written.split_once('=') {
        Some((name, "")) => return Err(format!("the path is empty: write `{name}=PATH`")),
        Some((name, file)) => (name, Some(file).filter(|file| *file != "-").map(PathBuf::from)),
        None => (written, None),
    };
    let format = Format::from_str(name, false)
        .map_err(|_| format!("unknown format `{name}`; formats: terminal, markdown, json, html"))?;
    Ok((format, file))
}

/// Variable with the address of a server that has the pages of the record.
const SERVE_URL: &str = "TRIALRUN_SERVE_URL";

/// Reads the address of a server, and removes the slash at its end.
fn parse_server(written: &str) -> Result<String, String> {
    let url = reqwest::Url::parse(written).ok().filter(|url| ["http", "https"].contains(&url.scheme()));
    let url = url.filter(|url| url.query().is_none() && url.fragment().is_none() && !url.as_str().contains(['(', ')']));
    match url {
        Some(url) if url.username().is_empty() && url.password().is_none() => {
            Ok(url.as_str().trim_end_matches('/').to_owned())
        }
        Some(_) => Err("leave out the name and the password, which everybody could read".to_owned()),
        None => Err("write an address such as `https://trials.example.com`".to_owned()),
    }
}

impl Format {
    /// Returns the number of changed cases that are shown with their evidence.
    fn detailed(self) -> usize {
        match self {
            Self::Terminal => 10,
            Self::Markdown => 20,
            Self::Html => 100,
            Self::Json => usize::MAX,
        }
    }
}

/// Maximum number of trials up to which arms are shown, because each trial must be read completely.
const READ_WHOLE: usize = 2_000;
/// Maximum number of characters of Markdown, which a comment on a pull request can hold.
const COMMENT: usize = 65_000;
/// Maximum number of runs that `--by label` compares.
const LABELS: usize = 6;

/// How comparisons are made.
struct ComparisonOptions {
    threshold: f64,
    format: Format,
    /// The judge of pairs of trials, if a preference was asked for.
    judge: Option<PairJudge>,
    /// Trials that the page for a browser contains.
    trials: RefCell<Vec<ComparedTrial>>,
}

impl ComparisonOptions {
    /// Compares without a judge.
    fn of(threshold: f64, format: Format) -> Self {
        Self { threshold, format, judge: None, trials: RefCell::default() }
    }

    /// Keeps the trials of a comparison that its page shows.
    fn keep_trials(&self, comparison: &Comparison, sides: &[&Side]) -> Result<(), CliError> {
        if self.format != Format::Html {
            return Ok(());
        }
        for (name, run, trial) in comparison.detailed_trials().flatten() {
            let mut trials = self.trials.borrow_mut();
            let side = sides.iter().find(|side| side.run.id == run);
            let Some(side) = side.filter(|_| !trials.iter().any(|kept| kept.is(run, trial))) else { continue };
            let events: Vec<_> =
                side.store.trial_events(run, trial)?.into_iter().filter_map(StoredEvent::known).collect();
            trials.extend(ComparedTrial::of(name, run, &events).map_err(|error| unwritten(&error))?);
        }
        Ok(())
    }

    /// Adds the preference of the judge, if it was asked for.
    fn judged(&self, comparison: Comparison, sides: &[&Side]) -> Result<Comparison, CliError> {
        match &self.judge {
            Some(judge) => judge.add_to(comparison, sides),
            None => Ok(comparison),
        }
    }
}

/// A recorded run with its finished trials.
struct Side {
    store: Box<dyn Store>,
    run: RunRow,
    trials: Vec<TrialRow>,
}

impl Side {
    fn read((store, run): (Box<dyn Store>, RunRow)) -> Result<Self, CliError> {
        let mut trials = store.trials(&TrialFilter::of_run(&run.id))?;
        // An older version did not store the score bounds in the list.
        let mut lacking: Vec<&mut TrialRow> = trials
            .iter_mut()
            .filter(|trial| trial.score_bounds.is_none() && trial.max_score.is_some_and(|most| most > 0.0))
            .collect();
        let ids: Vec<String> = lacking.iter().map(|trial| trial.id.clone()).collect();
        let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
        for (trial, record) in lacking.iter_mut().zip(store.records(&run.id, &ids)?) {
            trial.score_bounds = record.first_score();
        }
        if run.finished < run.needed() {
            let finished: HashSet<String> = trials.iter().map(|trial| trial.id.clone()).collect();
            for id in store.info(&run.id)?.trials.iter().filter(|id| !finished.contains(&id.to_string())) {
                let same_arm = trials.iter().find(|trial| *trial.arm == *id.arm);
                trials.push(TrialRow::unfinished(&run, id, same_arm));
            }
        }
        Ok(Self { store, run, trials })
    }
}

/// Compares two runs, or parts of one; exits with 1 on a regression.
pub fn run(global: &Global, args: &CompareArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let (format, file) = if args.json { (Format::Json, &None) } else { (args.format.0, &args.format.1) };
    let file = args.output.as_deref().or(file.as_deref());
    file.map_or(Ok(()), check_file)?;
    let style = if file.is_some() { Style::plain() } else { terminal.out_style };
    let context = place::open(global, &[])?;
    let configured = context.project.regression_threshold.as_ref().map(|set| set.value);
    let named = context.environment().get(SERVE_URL).filter(|url| !url.is_empty());
    let server = match (&args.serve_url, named) {
        (Some(server), _) => Some(server.clone()),
        (None, Some(named)) => {
            Some(parse_server(named).map_err(|reason| CliError::usage(format!("`{SERVE_URL}`: {reason}")))?)
        }
        (None, None) => None,
    };
    let options = ComparisonOptions {
        judge: args.preference.open(&context, terminal)?,
        ..ComparisonOptions::of(args.threshold.or(configured).unwrap_or(report::THRESHOLD), format)
    };
    let find = |given: Option<&str>, default: &str| Side::read(args.place.find(global, given, default)?);
    let comparisons = match args.by {
        None => {
            let before = find(args.a.as_deref().or(args.before.as_deref()), "previous")?;
            let after = find(args.b.as_deref().or(args.after.as_deref()), "latest")?;
            vec![between(&before, &after, &options)?]
        }
        Some(By::Label) => {
            let first = args.a.as_deref().map(|first| find(Some(first), "latest")).transpose()?;
            by_label(&context, first, &options)?
        }
        Some(by @ (By::Model | By::Agent | By::Variant)) => within(&find(args.a.as_deref(), "latest")?, by, &options)?,
    };
    let asked = |each: Comparison| {
        let each = if args.any { each.counting_any() } else { each };
        match args.no_worse_than {
            Some(margin) => each.with_margin(margin),
            None => each,
        }
    };
    let comparisons: Vec<Comparison> = comparisons.into_iter().map(asked).collect();
    let text = match format {
        Format::Json => serde_json::to_string_pretty(&to_json(&comparisons, args.by)).unwrap_or_default() + "\n",
        Format::Terminal => {
            let mut text = joined(&comparisons, |each| each.draw(&style));
            if comparisons.iter().any(|each| each.has_regressions() && !each.has_regressed()) {
                text.push_str("  `--any` fails on any regression; `run --trials 5` runs each case five times.\n");
            }
            text
        }
        Format::Markdown => {
            let most = COMMENT / comparisons.len().max(1);
            let link = |each: &Comparison| match (&server, each.page_path()) {
                (Some(server), Some(path)) => format!("\n[All trials, with their transcripts]({server}{path})\n"),
                _ => String::new(),
            };
            joined(&comparisons, |each| {
                let link = link(each);
                each.to_markdown(most.saturating_sub(link.len())) + &link
            })
        }
        Format::Html => {
            let page = report::comparison_page(&comparisons, &options.trials.borrow(), &folder_in_repository(), None);
            String::from_utf8_lossy(&page.map_err(|error| unwritten(&error))?).into_owned()
        }
    };
    match file {
        Some(file) => {
            let mut opened = report_file(file)?;
            opened
                .write_all(text.as_bytes())
                .and_then(|()| opened.flush())
                .map_err(|error| CliError::environment(format!("cannot write {}: {error}", file.display())))?;
        }
        None => terminal.out(&text),
    }
    Ok(ExitCode::from(code_of(&comparisons)))
}

/// Returns the exit code for comparisons.
fn code_of(comparisons: &[Comparison]) -> u8 {
    let is_worse = |each: &Comparison| {
        let is_beyond_margin = each.within_margin() == Some(WithinMargin::Refuted);
        each.has_regressed() || is_beyond_margin
    };
    let is_open = |each: &Comparison| {
        each.is_incomplete() || each.within_margin() == Some(WithinMargin::Open) || each.lacks_preference()
    };
    if comparisons.iter().any(is_worse) {
        exit::FAILED
    } else if comparisons.iter().any(is_open) {
        exit::INCOMPLETE
    } else {
        exit::PASSED
    }
}

/// Compares two runs of the project with its own threshold. Returns the comparison as text and as JSON, and the exit
/// code of `compare`.
///
/// # Errors
/// Returns an error if there is no such run.
pub fn runs(session: &Session, before: &str, after: &str) -> Result<(String, Value, u8), CliError> {
    let configured = session.project.regression_threshold.as_ref().map(|set| set.value);
    let options = ComparisonOptions::of(configured.unwrap_or(report::THRESHOLD), Format::Json);
    let side = |wanted: &str| {
        let store = session.read_store()?;
        let (run, _) = session::named_run(&*store, wanted)?;
        Side::read((store, run))
    };
    let comparisons = [between(&side(before)?, &side(after)?, &options)?];
    let text = joined(&comparisons, |each| each.draw(&Style::plain()));
    Ok((text, to_json(&comparisons, None), code_of(&comparisons)))
}

/// A recorded run, and its record.
pub type Recorded = (Box<dyn Store>, RunRow);

/// Compares two runs. Returns the comparison as JSON.
///
/// # Errors
/// Returns an error if a run cannot be read.
pub fn recorded_json(before: Recorded, after: Recorded, threshold: f64) -> Result<Value, CliError> {
    let options = ComparisonOptions::of(threshold, Format::Json);
    Ok(to_json(&[between(&Side::read(before)?, &Side::read(after)?, &options)?], None))
}

/// Compares two runs. Returns the comparison as a page of a server, whose list of runs is at `/`.
///
/// # Errors
/// Returns an error if a run cannot be read.
pub fn recorded_page(before: Recorded, after: Recorded, threshold: f64, folder: &Path) -> Result<Vec<u8>, CliError> {
    let options = ComparisonOptions::of(threshold, Format::Html);
    let comparison = between(&Side::read(before)?, &Side::read(after)?, &options)?;
    let page = report::comparison_page(&[comparison], &options.trials.borrow(), folder, Some("/"));
    page.map_err(|error| unwritten(&error))
}

/// Compares two runs.
fn between(before: &Side, after: &Side, options: &ComparisonOptions) -> Result<Comparison, CliError> {
    if before.run.id == after.run.id {
        let problem = match before.store.runs(&RunFilter { last: Some(2), ..RunFilter::default() })?.len() {
            1 => CliError::usage(format!("there is only one run, {}, so both sides are this run", before.run.short))
                .hint("run the tests again with `trialrun run`; then `trialrun compare` compares both runs"),
            _ => CliError::usage(format!("both sides are the run {}", before.run.short))
                .hint("`trialrun compare previous latest` compares the last two runs"),
        };
        return Err(problem.hint("`--by model`, `--by agent` or `--by variant` compares parts of one run"));
    }
    let (had, has) = (before.store.info(&before.run.id)?, after.store.info(&after.run.id)?);
    let mut comparison = Comparison::of(&before.trials, &after.trials, options.threshold)
        .with_runs(&before.run, &after.run)
        .with_skills(&had.skills, &has.skills)
        .with_settings(&had, &has)
        .with_evidence(options.format.detailed(), |run, trials| {
            let side = if run == after.run.id { after } else { before };
            side.store.records(run, trials)
        })?;
    options.keep_trials(&comparison, &[before, after])?;
    let trials = [&before.trials, &after.trials];
    let (has_arms, is_sequential) = (trials.iter().any(|trials| has_arms(trials)), had.decisions + has.decisions > 0);
    if (has_arms || is_sequential) && trials.iter().all(|trials| trials.len() <= READ_WHOLE) {
        let was = super::status::details(&*before.store, &before.run)?;
        let is = super::status::details(&*after.store, &after.run)?;
        comparison = comparison.with_decisions(&was.decisions, &is.decisions);
        if has_arms {
            comparison = comparison.with_arms(&was.figures, &is.figures, &is.agents);
        }
    }
    options.judged(comparison, &[before, after])
}

/// Compares the models, agents or variants of a run.
fn within(side: &Side, by: By, options: &ComparisonOptions) -> Result<Vec<Comparison>, CliError> {
    let agents = &side.run.agents;
    let (comparisons, name) = match by {
        By::Agent => (Comparison::by(&side.trials, agents, Dimension::Agent, options.threshold), "agent"),
        By::Variant => {
            let figures = super::status::details(&*side.store, &side.run)?.figures;
            let skills = Comparison::by_variant(&side.trials, &figures, agents, options.threshold);
            let others = || Comparison::by(&side.trials, agents, Dimension::Variant, options.threshold);
            (if skills.is_empty() { others() } else { skills }, "variant")
        }
        By::Model | By::Label => (Comparison::by(&side.trials, agents, Dimension::Model, options.threshold), "model"),
    };
    if comparisons.is_empty() {
        let wrong = format!("the run {} has fewer than two {name}s with a case in common", side.run.short);
        return Err(CliError::usage(wrong).hint("`trialrun compare A B` compares two runs"));
    }
    let decisions = match side.run.sequential && side.trials.len() <= READ_WHOLE {
        true => super::status::details(&*side.store, &side.run)?.decisions,
        false => Vec::new(),
    };
    let detailed = |each: Comparison| {
        let each = each.with_runs(&side.run, &side.run).with_decisions(&[], &decisions);
        let each = each.with_evidence(options.format.detailed(), |run, trials| side.store.records(run, trials))?;
        options.keep_trials(&each, &[side])?;
        options.judged(each, &[side])
    };
    comparisons.into_iter().map(detailed).collect()
}

/// Compares the newest runs with different labels, starting with the oldest of them. Runs that have no case in common
/// with the newest one are omitted. With `first`, each run is compared with that run.
fn by_label(context: &Session, first: Option<Side>, options: &ComparisonOptions) -> Result<Vec<Comparison>, CliError> {
    let mut sides: Vec<Side> = Vec::new();
    let mut labels: HashSet<String> = HashSet::new();
    labels.extend(first.iter().filter_map(|side| side.run.label.clone()));
    for run in context.read_store()?.runs(&RunFilter::default())? {
        let Some(label) = &run.label else { continue };
        if sides.len() == LABELS || !labels.insert(label.clone()) {
            continue;
        }
        let side = Side::read((context.read_store()?, run))?;
        let newest = first.as_ref().or(sides.first());
        if newest.is_none_or(|newest| have_common_case(&newest.trials, &side.trials)) {
            sides.push(side);
        }
    }
    let base = first.or_else(|| sides.pop());
    let Some(base) = base.filter(|_| !sides.is_empty()) else {
        return Err(CliError::usage("fewer than two runs with different labels have a case in common")
            .hint("`trialrun run --label NAME` labels a run"));
    };
    sides.iter().rev().map(|side| between(&base, side, options)).collect()
}

/// Returns the error for a page that cannot be written.
fn unwritten(error: &io::Error) -> CliError {
    CliError::environment(format!("cannot write the page: {error}"))
}

fn have_common_case(some: &[TrialRow], others: &[TrialRow]) -> bool {
    let cases: HashSet<(&str, &str)> = some.iter().map(|trial| (&*trial.suite, &*trial.case)).collect();
    others.iter().any(|trial| cases.contains(&(&*trial.suite, &*trial.case)))
}

fn joined(comparisons: &[Comparison], draw: impl Fn(&Comparison) -> String) -> String {
    comparisons.iter().map(draw).collect::<Vec<_>>().join("\n")
}

/// Returns the comparison of two runs as one object, or a list if parts or labels are compared.
fn to_json(comparisons: &[Comparison], by: Option<By>) -> Value {
    let mut json = json!({ "schema": "trialrun.compare/1" });
    match (comparisons, by.and_then(|by| by.to_possible_value())) {
        ([only], None) => {
            if let (Some(fields), Value::Object(more)) = (json.as_object_mut(), only.to_json()) {
                fields.extend(more);
            }
        }
        (all, by) => {
            json["by"] = by.map(|by| by.get_name().to_owned()).into();
            json["comparisons"] = all.iter().map(Comparison::to_json).collect();
        }
    }
    json
}

/// Returns `true` if a run has several arms, or one with a variant.
fn has_arms(trials: &[TrialRow]) -> bool {
    trials.iter().any(|trial| trial.variant.is_some() || trial.arm != trials[0].arm)
}
