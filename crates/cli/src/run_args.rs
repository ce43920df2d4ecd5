//! Arguments of `run`. `check`, `list` and `config` accept the same and show what would apply.

/// Arguments of `run`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct RunArgs {
    /// Files, directories or skills; without one, every skill of the project and its folders `scenarios` and `tests`
    #[arg(value_name = "PATH|SKILL")]
    pub targets: Vec<String>,

    /// A file or directory, as if it were given by itself
    #[arg(long = "file", value_name = "PATH", hide = true)]
    pub files: Vec<String>,
    /// A suite of a skill, as if it were given by itself
    #[arg(long, short_alias = 'e', value_name = "FILE", help_heading = "Selection")]
    pub evals: Vec<String>,
    /// The skill that suites of skills are about; without a suite, its own `evals/evals.json` is run
    #[arg(long, short_alias = 's', value_name = "DIR", help_heading = "Selection")]
    pub skill: Option<String>,
    /// Only cases with this id
    #[arg(long = "case", aliases = ["scenario", "eval-id"], value_name = "ID", help_heading = "Selection")]
    pub cases: Vec<String>,
    /// Only cases whose id matches this regular expression
    #[arg(long, value_name = "REGEX", help_heading = "Selection")]
    pub filter: Option<String>,
    /// Only cases with this text in their id, description, suite, tags or file name
    #[arg(long, short = 'k', value_name = "TEXT", help_heading = "Selection")]
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
    #[arg(long, short_alias = 'a', visible_alias = "runtime", value_name = "NAME", help_heading = "Arms")]
    pub agent: Vec<String>,
    /// The model, of every agent or of one
    #[arg(long, short, alias = "agent-model", value_name = "[AGENT=]MODEL", help_heading = "Arms")]
    pub model: Vec<String>,
    /// How hard the model is to think, as the agent understands it
    #[arg(long, value_name = "EFFORT", help_heading = "Arms")]
    pub reasoning_effort: Option<String>,
    /// Where the agent's model is reached
    #[arg(long, alias = "harness-base-url", value_name = "URL", help_heading = "Arms")]
    pub base_url: Option<String>,
    /// How often each case runs
    #[arg(long, short = 'n', alias = "runs", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=100_000), help_heading = "Arms")]
    pub trials: Option<u64>,
    /// Run each case without its skill, too, and compare [default: for evals.json]
    #[arg(long, overrides_with = "no_baseline", help_heading = "Arms")]
    pub baseline: bool,
    /// Run cases with their skill only
    #[arg(long, overrides_with = "baseline", help_heading = "Arms")]
    pub no_baseline: bool,
    /// Which order trials of several arms take [default: 0]
    #[arg(long, value_name = "N", help_heading = "Arms")]
    pub seed: Option<u64>,

    /// How many trials run at a time [default: the number of cores]
    #[arg(long, short, short_alias = 'c', aliases = ["parallel", "concurrency"], value_name = "N", value_parser = parse_jobs, help_heading = "Limits")]
    pub jobs: Option<usize>,
    /// Wall clock of a trial, such as `90s` or `10m`; a bare number is seconds [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = Timeout::parse, help_heading = "Limits")]
    pub timeout: Option<Timeout>,
    /// Times to repeat a broken attempt; never on a scripted model [default: 1]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub retries: Option<u32>,
    /// Times to run a failed trial again; one that passes then is reported as flaky [default: 0]
    #[arg(long, value_name = "N", help_heading = "Limits")]
    pub reruns: Option<u32>,
    /// Try again, as often, what left everything as it was when its agent ended so: with an error (`exit`), not in time
    /// (`timeout`), either with a comma between them, or `none` [default: both for evals.json]
    #[arg(long, value_name = "HOW", value_parser = parse_retry_on, help_heading = "Limits")]
    pub retry_on: Option<runner::RetryOn>,
    /// The most model turns of a trial; one more fails it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), help_heading = "Limits")]
    pub max_turns: Option<u64>,
    /// The most tokens of a trial, all kinds together; one more fails it
    #[arg(long, alias = "max-total-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_total_tokens: Option<f64>,
    /// The most input tokens of a trial, those from and for a cache included
    #[arg(long, alias = "max-input-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_input_tokens: Option<f64>,
    /// The most input tokens of a trial that no cache had
    #[arg(long, alias = "max-non-cached-input-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_non_cached_input_tokens: Option<f64>,
    /// The most output tokens of a trial, reasoning included
    #[arg(long, alias = "max-output-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_output_tokens: Option<f64>,
    /// The most reasoning tokens of a trial
    #[arg(long, alias = "max-reasoning-tokens-per-case", value_name = "N", value_parser = parse_positive, help_heading = "Limits")]
    pub max_reasoning_tokens: Option<f64>,
    /// The most US dollars that a trial may cost
    #[arg(long, alias = "max-cost-per-case", value_name = "USD", value_parser = parse_positive, help_heading = "Limits")]
    pub max_cost: Option<f64>,
    /// The most time that a trial may take; unlike `--timeout` it may only warn
    #[arg(long, alias = "max-duration-per-case", value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub max_duration: Option<u64>,
    /// The most US dollars that all trials may cost together; then no other is started
    #[arg(long, value_name = "USD", value_parser = parse_positive, help_heading = "Limits")]
    pub max_run_cost: Option<f64>,
    /// What becomes of a trial that is over one of these: `warn`, `fail`, or `stop` the run [default: fail]
    #[arg(long, alias = "budget-action", value_name = "ACTION", value_parser = parse_on_budget, help_heading = "Limits")]
    pub on_budget: Option<model::OnBudget>,
    /// How long an agent may take to stop when it is told to [default: 3s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub stop_grace: Option<u64>,
    /// How long one setup command, and looking at what a trial left, may take [default: 2m]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Limits")]
    pub setup_timeout: Option<u64>,

    /// The model that judges, and plays users; `""` for none [default: the first whose key is there]
    #[arg(long, alias = "grader-model", value_name = "PROVIDER:MODEL", help_heading = "Judge")]
    pub judge: Option<String>,
    /// Where the judge is reached, if not at its vendor's own address
    #[arg(long, alias = "grader-base-url", value_name = "URL", help_heading = "Judge")]
    pub judge_base_url: Option<String>,
    /// How many judges decide together, where an assertion says nothing else [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_judges, help_heading = "Judge")]
    pub judges: Option<u64>,
    /// Share judgements between trials that ask the same about the same answer
    #[arg(long, help_heading = "Judge")]
    pub judge_cache: bool,
    /// What models cost: a file that goes before the built-in list, and before what an agent says
    #[arg(long, alias = "pricing-config", value_name = "FILE", help_heading = "Limits")]
    pub pricing: Option<std::path::PathBuf>,

    /// Exit with 0 if at least this share of the decided trials passed, such as 0.8
    #[arg(long, value_name = "P", value_parser = parse_share, help_heading = "Gates")]
    pub min_pass_rate: Option<f64>,
    /// Failed assertions do not change the exit code
    #[arg(long, help_heading = "Gates")]
    pub no_fail_on_assertions: bool,

    /// Which kind of sandbox [default: local]
    #[arg(long, value_name = "NAME", help_heading = "Sandbox")]
    pub sandbox: Option<String>,
    /// A repository that sandboxes are cloned from, before the fixtures
    #[arg(long, value_name = "URL", help_heading = "Sandbox")]
    pub source_repo: Option<String>,
    /// Let the agent sign in at the source repository as you do, to push
    #[arg(long, help_heading = "Sandbox", requires = "source_repo")]
    pub lend_git_sign_in: bool,
    /// Leave sandboxes where they are, to look into them
    #[arg(long, help_heading = "Sandbox")]
    pub keep_sandbox: bool,

    /// Run this shell command before any trial; if it fails, nothing runs
    #[arg(long = "pre-run-command", value_name = "CMD", help_heading = "Hooks")]
    pub pre_run_commands: Vec<String>,
    /// Run this shell command after each trial is graded, while its sandbox is there; what it finds counts
    #[arg(long = "post-grade-command", value_name = "CMD", help_heading = "Hooks")]
    pub post_grade_commands: Vec<String>,
    /// Run this shell command after the last trial, whatever happened
    #[arg(long = "post-run-command", value_name = "CMD", help_heading = "Hooks")]
    pub post_run_commands: Vec<String>,
    /// Remove afterwards what the trials left on remotes, as `cleanup --yes` does
    #[arg(long, help_heading = "Hooks")]
    pub cleanup: bool,

    /// Write files about the run and each of its trials into this directory, while it goes on
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    pub artifacts: Option<std::path::PathBuf>,
    /// The same, in `<skill>-workspace/iteration-<label>` below this directory
    #[arg(long, short_alias = 'w', value_name = "DIR", hide = true, conflicts_with = "artifacts")]
    pub workspace: Option<std::path::PathBuf>,
    /// A report, to standard output or into a file; may be given several times [default: terminal]
    #[arg(long = "report", alias = "format", value_name = "FORMAT[=PATH]", help_heading = "Output")]
    pub reports: Vec<String>,
    /// The file of the report that names none
    #[arg(long, value_name = "PATH", hide = true)]
    pub output: Option<std::path::PathBuf>,
    /// A name for this run
    #[arg(long, short_alias = 'i', aliases = ["iteration", "version"], value_name = "TEXT", help_heading = "Output")]
    pub label: Option<String>,
    /// Show failures and the summary only
    #[arg(long, short, help_heading = "Output")]
    pub quiet: bool,
    /// Show evidence: in the terminal also where a finding is met, in Markdown at all
    #[arg(long, help_heading = "Output")]
    pub show_evidence: bool,
    /// After how long without a word of the agent to warn [default: 30s]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, help_heading = "Output")]
    pub idle_warn: Option<u64>,
    /// Warnings stop the run too
    #[arg(long, help_heading = "Gates")]
    pub strict: bool,
    /// Check everything and run nothing
    #[arg(long, help_heading = "Output")]
    pub dry_run: bool,
    /// Run again what a change of a file touches, until Ctrl-C
    #[arg(long, conflicts_with = "dry_run", help_heading = "Output")]
    pub watch: bool,
    /// Runs are always recorded
    #[arg(long, hide = true)]
    pub save: bool,
}

impl RunArgs {
    /// Returns the files, directories and skills of the command line, from all options that name them.
    pub fn named(&self) -> Vec<String> {
        [&self.targets, &self.files, &self.evals].into_iter().flatten().cloned().collect()
    }
}

/// Wall clock of a trial, as given on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeout {
    /// Milliseconds.
    pub ms: u64,
    /// `true` if it has no unit.
    pub is_bare: bool,
}

/// A number without a unit from here on, in seconds, may be meant as milliseconds, which other tools use.
const LIKE_MILLISECONDS: u64 = 1000;

impl Timeout {
    /// Parses `90s`, or a number of seconds.
    ///
    /// # Errors
    /// A description of the valid forms.
    pub fn parse(written: &str) -> Result<Self, String> {
        Ok(Self { ms: parse_duration(written)?, is_bare: written.parse::<f64>().is_ok() })
    }

    /// Returns the timeout in the context of a project: with a Fabrik configuration, a number without a unit is in
    /// milliseconds, as on Fabrik's own command line.
    pub fn in_project(self, project: &suite::Project) -> Self {
        if self.is_bare && project.is_of_fabrik() { Self { ms: self.ms / 1000, ..self } } else { self }
    }

    /// Returns a warning if a number without a unit may be meant in another unit.
    pub fn warning(self, project: &suite::Project) -> Option<String> {
        let seconds = self.ms / 1000;
        if project.is_of_fabrik() {
            let written = self.in_project(project).ms;
            return (self.is_bare && written < LIKE_MILLISECONDS).then(|| {
                format!(
                    "`--timeout {written}` is {written} milliseconds for each trial, as Fabrik counts; write `{written}s` \
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

/// Parses the endings of an agent after which its attempt is retried.
fn parse_retry_on(written: &str) -> Result<runner::RetryOn, String> {
    runner::RetryOn::parse(written).ok_or_else(|| "`exit`, `timeout`, `exit,timeout` or `none`".to_owned())
}

/// Parses a share, from 0 to 1.
pub fn parse_share(written: &str) -> Result<f64, String> {
    written.parse::<f64>().ok().filter(|n| (0.0..=1.0).contains(n)).ok_or_else(|| "a number from 0 to 1".to_owned())
}

fn parse_shard(written: &str) -> Result<(u64, u64), String> {
    let parsed = written.split_once('/').and_then(|(k, n)| Some((k.parse::<u64>().ok()?, n.parse::<u64>().ok()?)));
    parsed.filter(|(k, n)| *k >= 1 && k <= n).ok_or_else(|| "K/N with K from 1 to N, such as 2/4".to_owned())
}
