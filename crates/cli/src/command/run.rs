//! `trialrun run`: the main job.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use model::{Diagnostic, RunInfo};
use report::{Opening, Report, Reporter, Style};
use runner::{Control, Plan, PlanRequest, Selection};
use store::{Store, TrialFilter};
use suite::Loaded;
use tokio::sync::mpsc;

use crate::args::Global;
use crate::error::CliError;
use crate::project::Workplace;
use crate::recording::Recording;
use crate::settings::Resolved;
use crate::terminal::Terminal;
use crate::{exit, limits, machine, signals};

/// Arguments of `run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RunArgs {
    /// Files, directories or skills; without one, every skill of the project and its folder `scenarios`
    #[arg(value_name = "PATH|SKILL")]
    pub targets: Vec<String>,

    /// A file or directory, as if it were given by itself
    #[arg(long = "file", alias = "evals", value_name = "PATH", hide = true)]
    pub files: Vec<String>,
    /// Only cases with this id
    #[arg(long = "case", aliases = ["scenario", "eval-id"], value_name = "ID", help_heading = "Selection")]
    pub cases: Vec<String>,
    /// Only cases whose id matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub filter: Option<String>,
    /// Only cases with this text in their id or description
    #[arg(long, value_name = "TEXT", help_heading = "Selection")]
    pub test: Option<String>,
    /// Only cases with this tag
    #[arg(long = "tag", value_name = "TAG", help_heading = "Selection")]
    pub tags: Vec<String>,
    /// Only cases that failed or broke in that run
    #[arg(long, value_name = "RUN", help_heading = "Selection")]
    pub failed_in: Option<String>,
    /// The K-th of N parts of the cases
    #[arg(long, value_name = "K/N", value_parser = parse_shard, help_heading = "Selection")]
    pub shard: Option<(u64, u64)>,

    /// Run cases with this agent; several make several arms
    #[arg(long, visible_alias = "runtime", value_name = "NAME", help_heading = "Arms")]
    pub agent: Vec<String>,
    /// The model, of every agent or of one
    #[arg(long, alias = "agent-model", value_name = "[AGENT=]MODEL", help_heading = "Arms")]
    pub model: Vec<String>,
    /// How hard the model is to think, as the agent understands it
    #[arg(long, value_name = "EFFORT", help_heading = "Arms")]
    pub reasoning_effort: Option<String>,
    /// Where the agent's model is reached
    #[arg(long, alias = "harness-base-url", value_name = "URL", help_heading = "Arms")]
    pub base_url: Option<String>,
    /// How often each case runs
    #[arg(long, alias = "runs", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), help_heading = "Arms")]
    pub trials: Option<u64>,

    /// How many trials run at a time [default: the number of cores]
    #[arg(long, short, aliases = ["parallel", "concurrency"], value_name = "N", value_parser = parse_jobs, help_heading = "Limits")]
    pub jobs: Option<usize>,
    /// Wall clock of a trial, such as `90s` or `10m` [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub timeout: Option<u64>,
    /// How often a trial that infrastructure broke is tried again [default: 1]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub retries: Option<u32>,
    /// The most model turns of a trial; one more fails it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub max_turns: Option<u64>,
    /// The most tokens of a trial, all kinds together; one more fails it
    #[arg(long, alias = "max-total-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_total_tokens: Option<f64>,
    /// How long an agent may take to stop when it is told to [default: 3s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub stop_grace: Option<u64>,
    /// How long one setup command may take [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub setup_timeout: Option<u64>,

    /// Exit with 0 if at least this share of the decided trials passed, such as 0.8
    #[arg(long, value_name = "P", value_parser = parse_share, help_heading = "Gates")]
    pub min_pass_rate: Option<f64>,
    /// Failed assertions do not change the exit code
    #[arg(long, help_heading = "Gates")]
    pub no_fail_on_assertions: bool,

    /// Which kind of sandbox [default: local]
    #[arg(long, value_name = "NAME", help_heading = "Sandbox")]
    pub sandbox: Option<String>,
    /// Leave sandboxes where they are, to look into them
    #[arg(long, help_heading = "Sandbox")]
    pub keep_sandbox: bool,

    /// A report, to standard output or into a file; may be given several times [default: terminal]
    #[arg(long = "report", alias = "format", value_name = "FORMAT[=PATH]", help_heading = "Output")]
    pub reports: Vec<String>,
    /// A name for this run
    #[arg(long, alias = "iteration", value_name = "TEXT", help_heading = "Output")]
    pub label: Option<String>,
    /// Show failures and the summary only
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// After how long without a word of the agent to warn [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Output")]
    pub idle_warn: Option<u64>,
    /// Check everything and run nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Runs are always recorded
    #[arg(long, hide = true)]
    pub save: bool,
}

/// Everything that is known before anything runs.
pub struct Prepared {
    /// The project.
    pub workplace: Workplace,
    /// The settings.
    pub resolved: Resolved,
    /// What would run.
    pub plan: Plan,
    /// Every problem of loading and planning.
    pub diagnostics: Vec<Diagnostic>,
    /// The case whose id is nearest to one that was asked for and is not there.
    pub nearest_case: Option<String>,
}

/// Loads and plans.
pub fn prepare(global: &Global, args: &RunArgs) -> Result<Prepared, CliError> {
    let targets: Vec<String> = args.targets.iter().chain(&args.files).cloned().collect();
    let workplace = Workplace::find(global, &targets)?;
    let resolved = Resolved::of(args, &workplace);
    if !runner::sandbox::SANDBOXES.iter().any(|kind| kind.name() == resolved.run.sandbox) {
        let names: Vec<&str> = runner::sandbox::SANDBOXES.iter().map(|kind| kind.name()).collect();
        return Err(CliError::usage(format!("unknown sandbox `{}`", resolved.run.sandbox))
            .hint(format!("sandboxes: {}", names.join(", "))));
    }
    let Loaded { suites, diagnostics } = suite::load(&suite::Request {
        root: workplace.project.root.clone(),
        skills_dir: workplace.project.skills_dir.clone(),
        cwd: workplace.cwd.clone(),
        targets,
    });
    let selection = Selection {
        cases: args.cases.clone(),
        filter: args.filter.clone(),
        test: args.test.clone(),
        tags: args.tags.clone(),
        only: args.failed_in.as_deref().map(|run| failed_cases(&workplace, run)).transpose()?,
        shard: args.shard,
    };
    let read_script = |file: &Path| read_script(file, &workplace.cwd);
    let request =
        PlanRequest { suites: &suites, settings: &resolved.run, selection: &selection, read_script: &read_script };
    let (plan, planning) = runner::plan(&request);
    let ids = || suites.iter().flat_map(|suite| suite.cases.iter().map(|case| case.id.as_str()));
    let nearest_case = args.cases.iter().find_map(|wanted| model::nearest(wanted, ids())).map(str::to_owned);
    let mut all = workplace.diagnostics.clone();
    all.extend(diagnostics);
    all.extend(planning);
    Ok(Prepared { workplace, resolved, plan, diagnostics: all, nearest_case })
}

/// Runs tests.
pub fn run(global: &Global, args: &RunArgs, terminal: &Terminal) -> Result<ExitCode, CliError> {
    if args.dry_run {
        return super::check::check(global, args, false, false, terminal);
    }
    limits::raise_open_files();
    let reports = open_reports(args)?;
    let Prepared { workplace, resolved, plan, diagnostics, nearest_case } = prepare(global, args)?;
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Ok(ExitCode::from(exit::INVALID));
    }
    if plan.trials.is_empty() {
        return Err(nothing_selected(args, &plan, nearest_case.as_deref()));
    }
    if let Some(timeout) = args.timeout
        && timeout > 3_600_000
    {
        terminal.err(&format!("warning: --timeout allows each trial {} hours\n", timeout / 3_600_000));
    }
    let store = workplace.open_store()?;
    let host = Arc::new(machine::host()?);
    let info = info(args, &resolved, &plan);
    let reporters = reports
        .into_iter()
        .map(|chosen| chosen.open(terminal, args))
        .collect::<Result<Vec<Box<dyn Reporter>>, CliError>>()?;
    let ended = carry_out(plan, host, info, store, reporters)?;
    if let Some(trouble) = &ended.trouble {
        return Err(CliError::environment(format!("recording failed, so the run was stopped: {trouble}")));
    }
    for trouble in ended.report_trouble {
        terminal.err(&format!("warning: a report is incomplete: {trouble}\n"));
    }
    if let Some(reason) = ended.stopped_by {
        return Ok(exit::of_stop(&reason));
    }
    Ok(ExitCode::from(gate(args, &ended.summary)))
}

/// What the run came to and how it was kept.
struct Ended {
    summary: model::Summary,
    stopped_by: Option<String>,
    trouble: Option<String>,
    report_trouble: Vec<String>,
}

fn carry_out(
    plan: Plan,
    host: Arc<runner::Host>,
    info: RunInfo,
    store: store::SqliteStore,
    reporters: Vec<Box<dyn Reporter>>,
) -> Result<Ended, CliError> {
    let threads = info.jobs.clamp(1, 4);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads)
        .enable_all()
        .build()
        .map_err(|error| CliError::environment(format!("cannot start threads: {error}")))?;
    let (controls, wishes) = mpsc::unbounded_channel::<Control>();
    let recording = Recording::start(store, reporters, controls.clone())
        .map_err(|error| CliError::environment(format!("cannot start recording: {error}")))?;
    let ended = runtime.block_on(async {
        signals::forward(&controls)
            .map_err(|error| CliError::environment(format!("cannot listen to signals: {error}")))?;
        runner::run(plan, host, info, wishes, &mut |event| recording.tell(event))
            .await
            .map_err(|breakage| CliError::environment(breakage.to_string()))
    });
    let recorded = recording.finish();
    runtime.shutdown_timeout(std::time::Duration::from_millis(200));
    let ended = ended?;
    Ok(Ended {
        summary: ended.summary,
        stopped_by: ended.stopped_by,
        trouble: recorded.trouble,
        report_trouble: recorded.report_trouble,
    })
}

fn info(args: &RunArgs, resolved: &Resolved, plan: &Plan) -> RunInfo {
    RunInfo {
        id: uuid::Uuid::now_v7().to_string(),
        label: args.label.clone(),
        regrade_of: None,
        started_at: jiff::Timestamp::now(),
        trialrun_version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: resolved.to_map(),
        agents: plan.agents.clone(),
        skills: plan.skills.clone(),
        trials: plan.trials.iter().map(|trial| trial.id.clone()).collect(),
        jobs: resolved.run.jobs.min(plan.trials.len()).max(1),
    }
}

fn gate(args: &RunArgs, summary: &model::Summary) -> u8 {
    let code = summary.exit_code();
    if code != exit::FAILED {
        return code;
    }
    let unsure =
        if summary.undecided + summary.broken + summary.cancelled > 0 { exit::INCOMPLETE } else { exit::PASSED };
    match args.min_pass_rate {
        Some(least) if summary.pass_rate.is_some_and(|rate| rate >= least) => unsure,
        None if args.no_fail_on_assertions => unsure,
        _ => code,
    }
}

fn nothing_selected(args: &RunArgs, plan: &Plan, nearest_case: Option<&str>) -> CliError {
    if plan.cases_loaded == 0 {
        return CliError::nothing("no case was found")
            .hint("`trialrun list` shows what is found; `trialrun init` makes a first test");
    }
    let by_name = !args.cases.is_empty() || args.filter.is_some() || !args.tags.is_empty() || args.test.is_some();
    if let (Some(run), false) = (&args.failed_in, by_name) {
        return CliError::nothing(format!("no case of these failed in the run `{run}`"));
    }
    CliError::nothing(format!("none of {} was selected", super::check::count(plan.cases_loaded, "case")))
        .maybe_hint(nearest_case.map(|near| format!("did you mean `{near}`?")))
        .hint("`trialrun list` shows every case with its tags")
}

/// `suite::case` of what failed, broke or stayed undecided in that run.
fn failed_cases(workplace: &Workplace, run: &str) -> Result<Vec<String>, CliError> {
    let store = workplace.read_store()?;
    let run = store.select(run)?;
    let trials = store.trials(&TrialFilter::of_run(&run.id))?;
    Ok(trials
        .iter()
        .filter(|trial| !matches!(trial.outcome, model::Outcome::Passed | model::Outcome::Skipped))
        .map(|trial| format!("{}::{}", trial.suite, trial.case))
        .collect())
}

/// A scripted model's file, read by the one who knows the format of documents.
fn read_script(file: &Path, cwd: &Path) -> Result<llm::Script, Vec<Diagnostic>> {
    let path = cwd.join(file);
    let shown = crate::project::shown(&path, cwd);
    let node = suite::read_document(&path, &shown)?;
    llm::Script::from_node(&node)
}

/// A report that was asked for.
struct Chosen {
    kind: &'static Report,
    file: Option<PathBuf>,
}

fn open_reports(args: &RunArgs) -> Result<Vec<Chosen>, CliError> {
    let written = if args.reports.is_empty() { vec!["terminal".to_owned()] } else { args.reports.clone() };
    written.iter().map(|written| choose(written)).collect()
}

fn choose(written: &str) -> Result<Chosen, CliError> {
    let (name, file) = match written.split_once('=') {
        Some((name, file)) => (name, Some(PathBuf::from(file))),
        None => (written, None),
    };
    let kind = find_report(name)?;
    Ok(Chosen { kind, file })
}

/// The kind of report of that name.
pub fn find_report(name: &str) -> Result<&'static Report, CliError> {
    let names = || report::REPORTS.iter().map(|kind| kind.name);
    report::find(name).ok_or_else(|| {
        CliError::usage(format!("unknown report `{name}`"))
            .maybe_hint(model::nearest(name, names()).map(|near| format!("did you mean `{near}`?")))
            .hint(format!("reports: {}", names().collect::<Vec<_>>().join(", ")))
    })
}

impl Chosen {
    fn open(self, terminal: &Terminal, args: &RunArgs) -> Result<Box<dyn Reporter>, CliError> {
        let mut opening = match &self.file {
            None => Opening::new(Box::new(std::io::stdout()), terminal.out_style),
            Some(file) => Opening::new(Box::new(report_file(file)?), Style::plain()),
        };
        if self.file.is_none() && terminal.out_style.interactive && terminal.err_style.interactive {
            opening.live = Some(Box::new(std::io::stderr()));
        }
        opening.quiet = args.quiet;
        Ok((self.kind.open)(opening))
    }
}

/// A file for a report; its directory is made.
pub fn report_file(file: &Path) -> Result<impl Write + Send + use<>, CliError> {
    let failed = |error: std::io::Error| CliError::usage(format!("cannot write {}: {error}", file.display()));
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent).map_err(failed)?;
    }
    Ok(std::io::BufWriter::new(File::create(file).map_err(failed)?))
}

fn parse_duration(written: &str) -> Result<u64, String> {
    // A bare number is seconds on the command line.
    let seconds = written.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
    seconds
        .map(|seconds| (seconds * 1000.0).round() as u64)
        .or_else(|| model::decode::parse_duration_ms(written))
        .ok_or_else(|| "write `500ms`, `30s`, `5m`, `1h`, or a number of seconds".to_owned())
}

fn parse_jobs(written: &str) -> Result<usize, String> {
    written
        .parse::<usize>()
        .ok()
        .filter(|jobs| (1..=1024).contains(jobs))
        .ok_or_else(|| "a number from 1 to 1024".to_owned())
}

fn parse_positive(written: &str) -> Result<f64, String> {
    written.parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite()).ok_or_else(|| "a number above 0".to_owned())
}

fn parse_share(written: &str) -> Result<f64, String> {
    written.parse::<f64>().ok().filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

fn parse_shard(written: &str) -> Result<(u64, u64), String> {
    let parsed = written.split_once('/').and_then(|(k, n)| Some((k.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    parsed.filter(|(k, n)| *k >= 1 && k <= n).ok_or_else(|| "K/N with K from 1 to N, such as 2/4".to_owned())
}
