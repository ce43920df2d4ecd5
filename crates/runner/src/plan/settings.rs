//! What a run is planned with.

use std::sync::Arc;

use agent::Configured;
use model::{Budgets, Excerpt, OnBudget, PermissionMode};

use mask::secret::Secrets;

/// Settings of a run, resolved: the command line, then the project, then what is built in. A case's own settings go
/// between the first two.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--agent`: each is an arm; empty leaves it to the cases.
    pub agents: Vec<String>,
    /// `--model`, for every agent or for one (`agent=model`).
    pub models: Vec<(Option<String>, String)>,
    /// `--reasoning-effort`.
    pub reasoning_effort: Option<String>,
    /// `--base-url`.
    pub base_url: Option<String>,
    /// `--trials`.
    pub trials: Option<u64>,
    /// `--baseline` or `--no-baseline`: whether cases with a skill are run without it, too. Unset: those that ask whether
    /// the skill is of use.
    pub baseline: Option<bool>,
    /// Which order trials of several arms take.
    pub seed: u64,
    /// `--source-repo`: what sandboxes are cloned from, before the fixtures.
    pub source_repo: Option<String>,
    /// What signs in at the source repository, as variables for sandboxes; secrets are known by their names.
    pub lent: Vec<(String, String)>,
    /// `--max-turns`.
    pub max_turns: Option<u64>,
    /// `--max-total-tokens`.
    pub max_total_tokens: Option<f64>,
    /// Who says so: the option, or a variable of the environment.
    pub max_total_tokens_from: &'static str,
    /// `--timeout`, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Who says so.
    pub timeout_from: &'static str,
    /// `--max-input-tokens` and its like.
    pub budgets: Budgets,
    /// `--on-budget`.
    pub on_budget: OnBudget,
    /// `--max-run-cost`, in US dollars: once all trials together cost more, no other is started.
    pub max_run_cost: Option<f64>,
    /// The agents that the project configures.
    pub configured: Vec<Arc<Configured>>,
    /// Why the judge that somebody names cannot be had all the same: what the project says of it is not all there.
    pub judge_missing: Option<String>,
    /// The model that judges and plays users, as `provider:model`.
    pub judge: Option<String>,
    /// Place where the project names the judge, unless the command line does.
    pub judge_source: Option<Excerpt>,
    /// Another address for the judge than its vendor's own.
    pub judge_base_url: Option<String>,
    /// How many judges are asked about everything that says nothing else.
    pub judges: usize,
    /// How much chance there is in what the judge says, from 0; what is usual unless it is set.
    pub judge_temperature: Option<f64>,
    /// Whether trials that are repeated share what a judge answered to the same question.
    pub judge_cache: bool,
    /// The project's own defaults.
    pub defaults: Defaults,
    /// How many trials run at a time.
    pub jobs: usize,
    /// Number of retries of a broken attempt.
    pub retries: u32,
    /// Number of times that a failed trial is run again; one that passes only then is flaky.
    pub reruns: u32,
    /// `--retry-on`: how an agent must have ended for its attempt to be tried again, as often as broken ones. Unset: suites
    /// of skills have both.
    pub retry_on: Option<RetryOn>,
    /// What must never be told, beside what the environment has: keys and headers of the configuration.
    pub secrets: Secrets,
    /// After how long without a word a warning is told, in milliseconds.
    pub idle_warn_ms: u64,
    /// How long an agent may take to stop when asked, in milliseconds.
    pub stop_grace_ms: u64,
    /// How long one setup command may take, in milliseconds.
    pub setup_timeout_ms: u64,
    /// Leave sandboxes where they are.
    pub keep_sandbox: bool,
    /// Which kind of sandbox.
    pub sandbox: String,
    /// Where models are opened from; everything in a run that asks a model asks here.
    pub providers: llm::Providers,
}

/// How an agent must have ended for its attempt to be tried again although it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOn {
    /// With an error: an exit code of its program, or an answer that says so.
    pub exit: bool,
    /// Not before its time was over.
    pub timeout: bool,
}

impl RetryOn {
    /// In either way.
    pub const BOTH: Self = Self { exit: true, timeout: true };
    /// It does not matter how.
    pub const NONE: Self = Self { exit: false, timeout: false };

    /// As it is written: `exit`, `timeout`, both with a comma, or `none`.
    pub fn parse(written: &str) -> Option<Self> {
        if written.trim() == "none" {
            return Some(Self::NONE);
        }
        written.split(',').try_fold(Self::NONE, |on, word| match word.trim() {
            "exit" => Some(Self { exit: true, ..on }),
            "timeout" => Some(Self { timeout: true, ..on }),
            _ => None,
        })
    }

    /// As written.
    pub fn name(self) -> &'static str {
        match (self.exit, self.timeout) {
            (true, true) => "exit,timeout",
            (true, false) => "exit",
            (false, true) => "timeout",
            (false, false) => "none",
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            agents: Vec::new(),
            models: Vec::new(),
            reasoning_effort: None,
            base_url: None,
            trials: None,
            baseline: None,
            seed: 0,
            source_repo: None,
            lent: Vec::new(),
            max_turns: None,
            max_total_tokens: None,
            max_total_tokens_from: "--max-total-tokens",
            timeout_ms: None,
            timeout_from: "--timeout",
            budgets: Budgets::default(),
            on_budget: OnBudget::default(),
            max_run_cost: None,
            configured: Vec::new(),
            judge_missing: None,
            judge: None,
            judge_source: None,
            judge_base_url: None,
            judges: 1,
            judge_temperature: None,
            judge_cache: false,
            defaults: Defaults::default(),
            jobs: 1,
            retries: 1,
            reruns: 0,
            retry_on: None,
            secrets: Secrets::default(),
            idle_warn_ms: 30_000,
            stop_grace_ms: 3_000,
            setup_timeout_ms: 120_000,
            keep_sandbox: false,
            sandbox: "local".into(),
            providers: llm::Providers::default(),
        }
    }
}

impl Settings {
    /// Opens the model `written` as `provider:model`, for an agent that asks it in this process.
    ///
    /// # Errors
    /// A provider nobody knows, or one that lacks its key or its address.
    pub(crate) fn open_model(&self, written: &str) -> Result<Arc<dyn llm::Model>, llm::OpenError> {
        // Scripts are played elsewhere, so there is no file to be read here.
        match self.providers.open(written, self.base_url.as_deref(), &|_| Err(Vec::new()))? {
            llm::Opened::Model(model) => Ok(model),
            llm::Opened::Script(_) => Err(llm::OpenError::Invalid(Vec::new())),
        }
    }
}

/// A project's defaults: they hold where neither the command line nor the case says otherwise.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The agent.
    pub agent: Option<String>,
    /// Where the agent is written.
    pub agent_source: Option<Excerpt>,
    /// The model.
    pub model: Option<String>,
    /// How the agent treats permissions.
    pub permission_mode: Option<PermissionMode>,
    /// Wall clock of a trial in milliseconds.
    pub timeout_ms: Option<u64>,
    /// The cap on model turns.
    pub max_turns: Option<u64>,
    /// Repetitions.
    pub trials: Option<u64>,
    /// The cap on tokens.
    pub token_budget: Option<f64>,
}
