//! Options of a run, which override variables, the project and the defaults. These are also the options of the command
//! line, so each is described and parsed in one place.
//!
//! An option without a comment is a setting, whose help is in the table of [settings](crate::settings::SETTINGS).

pub(crate) mod written;

use std::collections::HashSet;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, value_parser};
use model::Gate;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::shard::ShardArg;

/// Options of a run.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Overrides {
    /// Files, directories or skills to test [default: all skills of the project, `scenarios` and `tests`]
    #[arg(value_name = "PATH|SKILL", value_parser = NonEmptyStringValueParser::new())]
    pub targets: Vec<String>,
    /// Selection of cases.
    #[command(flatten)]
    pub selection: SelectionArgs,
    /// Agents, models and repetitions.
    #[command(flatten)]
    pub arms: ArmArgs,
    /// Parallelism, time and further attempts.
    #[command(flatten)]
    pub schedule: ScheduleArgs,
    /// Limits on turns, tokens, money and time.
    #[command(flatten)]
    pub budgets: BudgetArgs,
    /// The judge.
    #[command(flatten)]
    pub judging: JudgeArgs,
    /// Recorded model traffic.
    #[command(flatten)]
    pub cassettes: CassetteArgs,
    /// Conditions for the exit code.
    #[command(flatten)]
    pub gates: GateArgs,
    /// The sandboxes.
    #[command(flatten)]
    pub sandboxes: SandboxArgs,
    /// Commands around trials.
    #[command(flatten)]
    pub hooks: HookArgs,
    /// Files to write, and what to show.
    #[command(flatten)]
    pub output: OutputArgs,
    /// Recorded trial whose beginning all trials replay. No option sets it
    #[arg(skip)]
    pub fork: Option<ForkFrom>,
    /// Reason why no judge is asked. No option sets it
    #[arg(skip)]
    pub unjudged: Option<String>,
    /// Run the cases with the built-in adversaries instead of their agents, without any model. No option sets it
    #[arg(skip)]
    pub adversaries: bool,
}

/// A recorded trial whose beginning is replayed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ForkFrom {
    /// File with its model traffic.
    pub cassette: PathBuf,
    /// Number of its repetition, from 1.
    pub repetition: u64,
    /// Number of agent requests that are answered from it.
    pub turns: usize,
}

/// Selection of cases.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Selection")]
pub struct SelectionArgs {
    /// File or directory, the same as PATH
    #[arg(long = "file", value_name = "PATH", hide = true)]
    pub files: Vec<String>,
    /// Skill evaluation to read, same as PATH
    #[arg(long, short_alias = 'e', value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    pub evals: Vec<String>,
    /// Skill to evaluate; if no evaluation is named, run its own `evals/evals.json`
    #[arg(long, short_alias = 's', value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    pub skill: Option<String>,
    /// Run only cases with this id
    #[arg(long = "case", aliases = ["scenario", "eval-id"], value_name = "ID", value_parser = NonEmptyStringValueParser::new())]
    pub cases: Vec<String>,
    /// Run only cases whose id matches this regular expression
    #[arg(long, alias = "grep", value_name = "REGEX", value_parser = NonEmptyStringValueParser::new())]
    pub filter: Option<String>,
    /// Run only cases with this text in their id, description, suite, tags or file name
    #[arg(long, short = 'k', value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub test: Option<String>,
    /// Run only cases with this tag
    #[arg(long = "tag", value_name = "TAG", value_parser = NonEmptyStringValueParser::new())]
    pub tags: Vec<String>,
    /// Run only cases that did not pass in that run, or did not finish
    #[arg(long, value_name = "RUN")]
    pub failed_in: Option<String>,
    /// Run only cases that did not pass in the last run, or did not finish
    #[arg(long, conflicts_with = "failed_in")]
    pub last_failed: bool,
    /// Run only the K-th of N parts of the cases; with `auto` or `auto/N`, the part of this job in a CI service, Slurm or
    /// Kubernetes
    #[arg(long, value_name = "K/N", value_parser = ShardArg::parse)]
    #[serde(with = "written")]
    pub shard: Option<ShardArg>,
    /// Only these cases, as `suite::case`. No option sets it
    #[arg(skip)]
    pub only: Option<HashSet<String>>,
}

impl SelectionArgs {
    /// Returns the run whose failures are selected.
    pub fn failures_of(&self) -> Option<&str> {
        self.failed_in.as_deref().or(self.last_failed.then_some("latest"))
    }
}

/// Agents, models and repetitions that override the settings of cases.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Agents and trials")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct ArmArgs {
    #[arg(long, short_alias = 'a', visible_alias = "runtime", value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub agent: Vec<String>,
    #[arg(long, short, alias = "agent-model", value_name = "[AGENT=]MODEL", value_parser = NonEmptyStringValueParser::new())]
    pub model: Vec<String>,
    #[arg(long, value_name = "EFFORT", value_parser = NonEmptyStringValueParser::new())]
    pub reasoning_effort: Option<String>,
    #[arg(long, alias = "harness-base-url", value_name = "URL", value_parser = NonEmptyStringValueParser::new())]
    pub base_url: Option<String>,
    #[arg(long, value_name = "MODE")]
    #[serde(with = "written")]
    pub gateway: Option<model::GatewayMode>,
    #[arg(long, short = 'n', aliases = ["runs", "repeat"], value_name = "N")]
    #[serde(with = "written")]
    pub trials: Option<model::Trials>,
    #[arg(long, value_name = "P", value_parser = parse_precision)]
    pub precision: Option<f64>,
    #[arg(long, conflicts_with = "no_baseline")]
    pub baseline: bool,
    /// Do not run cases without their skill
    #[arg(long)]
    pub no_baseline: bool,
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_having)]
    #[arg(conflicts_with_all = ["baseline", "no_baseline"])]
    pub arms: Vec<model::Having>,
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// System prompt that replaces those of the cases. No option sets it
    #[arg(skip)]
    pub system_prompt: Option<String>,
}

/// Recorded model traffic.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Cassettes")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct CassetteArgs {
    #[arg(long, value_name = "MODE")]
    #[serde(with = "written")]
    pub cassette: Option<model::CassetteMode>,
    #[arg(long, value_name = "DIR")]
    pub cassette_dir: Option<PathBuf>,
    #[arg(long)]
    pub cassette_delays: bool,
}

/// Parallelism, time and further attempts.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Limits")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct ScheduleArgs {
    #[arg(long, short, short_alias = 'c', aliases = ["parallel", "concurrency"], value_name = "N", value_parser = parse_jobs)]
    pub jobs: Option<usize>,
    #[arg(long, value_name = "DURATION", value_parser = Timeout::parse)]
    pub timeout: Option<Timeout>,
    #[arg(long, value_name = "N")]
    pub retries: Option<u32>,
    #[arg(long, value_name = "N")]
    pub reruns: Option<u32>,
    #[arg(long, value_name = "HOW", value_parser = parse_retry_on)]
    #[serde(with = "written")]
    pub retry_on: Option<runner::RetryOn>,
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub stop_grace: Option<u64>,
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub setup_timeout: Option<u64>,
}

/// Turns, tokens, money and time that a trial or the run may use.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Limits")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct BudgetArgs {
    #[arg(long, value_name = "N", value_parser = value_parser!(u64).range(1..))]
    pub max_turns: Option<u64>,
    #[arg(long, alias = "max-total-tokens-per-case", value_name = "N", value_parser = parse_positive)]
    pub max_total_tokens: Option<f64>,
    #[arg(long, alias = "max-input-tokens-per-case", value_name = "N", value_parser = parse_positive)]
    pub max_input_tokens: Option<f64>,
    #[arg(long, alias = "max-non-cached-input-tokens-per-case", value_name = "N", value_parser = parse_positive)]
    pub max_non_cached_input_tokens: Option<f64>,
    #[arg(long, alias = "max-output-tokens-per-case", value_name = "N", value_parser = parse_positive)]
    pub max_output_tokens: Option<f64>,
    #[arg(long, alias = "max-reasoning-tokens-per-case", value_name = "N", value_parser = parse_positive)]
    pub max_reasoning_tokens: Option<f64>,
    #[arg(long, alias = "max-cost-per-case", value_name = "USD", value_parser = parse_positive)]
    pub max_cost: Option<f64>,
    #[arg(long, alias = "max-duration-per-case", value_name = "DURATION", value_parser = parse_duration)]
    pub max_duration: Option<u64>,
    #[arg(long, value_name = "USD", value_parser = parse_positive)]
    pub max_run_cost: Option<f64>,
    #[arg(long, value_name = "N", value_parser = parse_positive)]
    pub max_run_tokens: Option<f64>,
    #[arg(long, alias = "budget-action", value_name = "ACTION", value_parser = parse_on_budget)]
    pub on_budget: Option<model::OnBudget>,
    #[arg(long, alias = "pricing-config", value_name = "FILE")]
    pub pricing: Option<PathBuf>,
}

/// The model that judges and plays users.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Judge")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct JudgeArgs {
    #[arg(long, alias = "grader-model", value_name = "PROVIDER:MODEL")]
    pub judge: Option<String>,
    #[arg(long, alias = "grader-base-url", value_name = "URL")]
    pub judge_base_url: Option<String>,
    #[arg(long, value_name = "N", value_parser = parse_judges)]
    pub judges: Option<u64>,
    #[arg(long, value_name = "N|SHARE")]
    #[serde(with = "written")]
    pub judge_sample: Option<model::JudgeSample>,
    #[arg(long)]
    pub judge_batch: bool,
    #[arg(long, value_name = "MODE")]
    #[serde(with = "written")]
    pub judge_cache: Option<model::JudgeCache>,
    #[arg(long, value_name = "FILE")]
    pub judge_calibration: Option<String>,
    #[arg(long, value_name = "K", value_parser = parse_share)]
    pub judge_min_kappa: Option<f64>,
}

/// Conditions for the exit code.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Gates")]
pub struct GateArgs {
    /// Exit with 0 if at least this share of the trials passed at the first attempt, such as 0.8
    #[arg(long, value_name = "P", value_parser = parse_share)]
    pub min_pass_rate: Option<f64>,
    /// Do not exit with 1 if assertions failed
    #[arg(long)]
    pub no_fail_on_assertions: bool,
    /// Share of its score with which a trial passes, in cases whose score decides, such as 0.8; those of `claude plugin
    /// eval`, for example
    #[arg(long, value_name = "SHARE", value_parser = parse_threshold)]
    pub threshold: Option<f64>,
    /// Condition that each trial must meet in addition to its assertions; `integrity`: no signs of tampering
    #[arg(long, value_name = "WHAT")]
    pub require: Vec<model::Requirement>,
    /// Stop before the run if there is a warning
    #[arg(long)]
    pub strict: bool,
    /// Stop before the run if a test file has an error, also if it would only break its own trials
    #[arg(long)]
    pub strict_files: bool,
}

impl GateArgs {
    /// Returns the conditions under which failed trials do not fail the run.
    pub fn gate(&self) -> Gate {
        Gate { min_pass_rate: self.min_pass_rate, no_fail_on_assertions: self.no_fail_on_assertions }
    }

    /// Writes them to the settings of a run, where reports find them.
    pub fn record(&self, settings: &mut Map<String, Value>) {
        settings.insert("min_pass_rate".to_owned(), self.min_pass_rate.into());
        settings.insert("no_fail_on_assertions".to_owned(), self.no_fail_on_assertions.into());
    }
}

/// The sandboxes in which agents work.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Sandbox")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct SandboxArgs {
    #[arg(long, value_name = "NAME")]
    pub sandbox: Option<String>,
    #[arg(long, value_name = "POLICY")]
    #[serde(with = "written")]
    pub network: Option<model::NetworkPolicy>,
    #[arg(long, value_name = "URL")]
    pub source_repo: Option<String>,
    #[arg(long, value_name = "KIND", requires = "source_repo")]
    #[serde(with = "written")]
    pub remote: Option<model::RemoteMode>,
    #[arg(long, requires = "source_repo")]
    pub lend_git_sign_in: bool,
    #[arg(long)]
    pub keep_sandbox: bool,
}

/// Commands around trials.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Hooks")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct HookArgs {
    #[arg(long = "pre-run-command", value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub pre_run_commands: Vec<String>,
    #[arg(long = "post-grade-command", value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub post_grade_commands: Vec<String>,
    #[arg(long = "post-run-command", value_name = "CMD", value_parser = NonEmptyStringValueParser::new())]
    pub post_run_commands: Vec<String>,
    /// Only a variable sets it
    #[arg(skip)]
    pub hook_timeout: Option<u64>,
    /// After the run, remove everything that the trials left on remotes, like `cleanup --yes`
    #[arg(long)]
    pub cleanup: bool,
}

/// Files to write, and what to show.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Output")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct OutputArgs {
    #[arg(long, value_name = "DIR")]
    pub artifacts: Option<PathBuf>,
    /// Write artefacts into `<skill>-workspace/iteration-<label>` below this directory
    #[arg(long, short_alias = 'w', value_name = "DIR", hide = true, conflicts_with = "artifacts")]
    pub workspace: Option<PathBuf>,
    #[command(flatten)]
    pub report: ReportArgs,
    #[arg(long, conflicts_with = "no_github")]
    pub github: bool,
    /// Write nothing for GitHub Actions, except with `--report github`
    #[arg(long)]
    pub no_github: bool,
    /// Only a variable sets it
    #[arg(skip)]
    pub traceparent: Option<String>,
    /// Label of the run
    #[arg(long, short_alias = 'i', aliases = ["iteration", "version"], value_name = "TEXT", value_parser = parse_label)]
    pub label: Option<String>,
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub idle_warn: Option<u64>,
}

/// Reports of the run.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[command(next_help_heading = "Output")]
#[expect(missing_docs, reason = "the help of settings is in their table")]
pub struct ReportArgs {
    #[arg(long = "report", alias = "format", value_name = "FORMAT[=PATH]")]
    pub reports: Vec<String>,
    /// File for the report that has no path
    #[arg(long = "output", value_name = "PATH", hide = true)]
    pub file: Option<PathBuf>,
    /// Show only failures and the summary
    #[arg(long, short)]
    pub quiet: bool,
    /// Show evidence in Markdown and, in the terminal, also for met assertions
    #[arg(long, short_alias = 'v', alias = "verbose")]
    pub show_evidence: bool,
}

impl Overrides {
    /// Returns all named files, directories and skills.
    pub fn named(&self) -> Vec<String> {
        [&self.targets, &self.selection.files, &self.selection.evals].into_iter().flatten().cloned().collect()
    }
}

/// Time limit for a trial, as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeout {
    /// Milliseconds.
    pub ms: u64,
    /// `true` if it was given without a unit.
    pub is_bare: bool,
}

/// A bare number of seconds of at least this value may be meant in milliseconds, which other tools use.
const LIKE_MILLISECONDS: u64 = 1000;

impl Timeout {
    /// Parses `90s`, or a number of seconds.
    ///
    /// # Errors
    /// Returns a description of the valid forms.
    pub fn parse(written: &str) -> Result<Self, String> {
        Ok(Self { ms: parse_duration(written)?, is_bare: written.parse::<f64>().is_ok() })
    }

    /// Returns the timeout for a project: with a Fabrik configuration, a number without a unit is in milliseconds, as
    /// on Fabrik's own command line.
    pub fn in_project(self, project: &suite::Project) -> Self {
        if self.is_bare && project.is_of_fabrik() { Self { ms: self.ms / 1000, ..self } } else { self }
    }

    /// Returns a warning if a number without a unit may be meant in a different unit.
    pub fn warning(self, project: &suite::Project) -> Option<String> {
        let seconds = self.ms / 1000;
        if project.is_of_fabrik() {
            let written = self.in_project(project).ms;
            return (self.is_bare && written < LIKE_MILLISECONDS).then(|| {
                format!(
                    "`--timeout {written}` is {written} ms for each trial, as Fabrik counts; write `{written}s` \
                     for seconds"
                )
            });
        }
        let is_doubtful = self.is_bare && seconds >= LIKE_MILLISECONDS;
        let spelled = match (seconds / 3600, seconds % 3600 / 60) {
            (0, minutes) => format!("{minutes} minutes"),
            (hours, minutes) => format!("{hours} h {minutes} min"),
        };
        is_doubtful.then(|| {
            format!(
                "`--timeout {seconds}` is {seconds} seconds ({spelled}) for each trial; write `{seconds}ms` for \
                 milliseconds, or `{seconds}s`"
            )
        })
    }
}

/// Parses a duration, in milliseconds.
pub fn parse_duration(written: &str) -> Result<u64, String> {
    // A number without a unit is in seconds on the command line.
    let seconds = written.parse::<f64>().ok().filter(|seconds| *seconds > 0.0 && *seconds < 1e9);
    seconds
        .map(|seconds| ((seconds * 1000.0).round() as u64).max(1))
        .or_else(|| model::decode::parse_duration_ms(written))
        .ok_or_else(|| "write `500ms`, `30s`, `5m`, `1h`, or a number of seconds".to_owned())
}

/// Parses a number of parallel trials.
pub fn parse_jobs(written: &str) -> Result<usize, String> {
    written
        .parse::<usize>()
        .ok()
        .filter(|jobs| (1..=1024).contains(jobs))
        .ok_or_else(|| "a number from 1 to 1024".to_owned())
}

/// Parses a number of judges.
pub fn parse_judges(written: &str) -> Result<u64, String> {
    let judges = written.parse::<u64>().ok().filter(|judges| (1..=15).contains(judges));
    judges.ok_or_else(|| "a number from 1 to 15".to_owned())
}

/// Parses a number above zero.
pub fn parse_positive(written: &str) -> Result<f64, String> {
    written.parse::<f64>().ok().filter(|n| *n > 0.0 && n.is_finite()).ok_or_else(|| "a number above 0".to_owned())
}

/// Parses the action for a trial that exceeds a budget.
fn parse_on_budget(written: &str) -> Result<model::OnBudget, String> {
    let name = if written == "stop-suite" { "stop" } else { written };
    let found = model::OnBudget::ALL.iter().find(|(known, _)| *known == name);
    found.map(|(_, action)| *action).ok_or_else(|| "`warn`, `fail` or `stop`".to_owned())
}

/// Parses what an arm has of the skill or the plug-in.
fn parse_having(written: &str) -> Result<model::Having, String> {
    let found = model::Having::ALL.iter().find(|(known, _)| *known == written);
    found.map(|(_, having)| *having).ok_or_else(|| "`none`, `skill` or `plugin`".to_owned())
}

/// Parses the endings of an agent after which its attempt is retried.
fn parse_retry_on(written: &str) -> Result<runner::RetryOn, String> {
    runner::RetryOn::parse(written).ok_or_else(|| "`exit`, `timeout`, `exit,timeout` or `none`".to_owned())
}

/// Parses a share, from 0 to 1.
pub fn parse_share(written: &str) -> Result<f64, String> {
    let (number, unit) = written.strip_suffix('%').map_or((written, 1.0), |number| (number, 100.0));
    let share = number.parse::<f64>().ok().map(|number| number / unit);
    share
        .filter(|share| (0.0..=1.0).contains(share))
        .ok_or_else(|| "a number from 0 to 1, such as 0.8, or `80%`".to_owned())
}

/// Parses a share that is needed to pass. With 0, nothing would be asserted.
fn parse_threshold(written: &str) -> Result<f64, String> {
    let share = parse_share(written).ok().filter(|share| *share > 0.0);
    share.ok_or_else(|| "a number above 0, up to 1, such as 0.8, or `80%`".to_owned())
}

/// Parses a precision: half of the widest acceptable interval, as a share.
pub fn parse_precision(written: &str) -> Result<f64, String> {
    let precision = written.parse::<f64>().ok().filter(|n| (0.001..0.5).contains(n));
    precision.ok_or_else(|| "a number from 0.001 to less than 0.5, such as 0.05 for 5 points".to_owned())
}

/// Parses a label. It must not collide with other ways to refer to a run.
pub fn parse_label(written: &str) -> Result<String, String> {
    let is_relative = written.strip_prefix("latest~").is_some_and(|back| back.parse::<usize>().is_ok());
    match written {
        _ if is_relative || ["latest", "previous"].contains(&written) => {
            Err(format!("`{written}` is reserved for selecting runs by age; use another label"))
        }
        _ if written.trim().is_empty() => Err("a label must not be empty".to_owned()),
        label => Ok(label.to_owned()),
    }
}
