//! Settings that a run is planned with.

use std::sync::Arc;

use agent::Configured;
use model::{Budgets, Excerpt, OnBudget, PermissionMode};

use mask::secret::Secrets;

/// Settings of a run, resolved from the command line, the project and the built-in defaults, in this order. A case's
/// own settings rank between the first two.
#[derive(Debug, Clone)]
pub struct Settings {
    /// `--agent`: each is an arm; if empty, the cases decide.
    pub agents: Vec<String>,
    /// `--model`, for every agent or for one (`agent=model`).
    pub models: Vec<(Option<String>, String)>,
    /// `--reasoning-effort`: reasoning effort passed to the agent.
    pub reasoning_effort: Option<String>,
    /// `--base-url`: base URL of the agent's model.
    pub base_url: Option<String>,
    /// `--trials`: number of repetitions of each case.
    pub trials: Option<u64>,
    /// `--baseline` or `--no-baseline`: `true` if cases with a skill are also run without it. If `None`, only cases of
    /// skill suites, which ask whether the skill helps, are.
    pub baseline: Option<bool>,
    /// Seed for the order in which arms are interleaved.
    pub seed: u64,
    /// `--source-repo`: repository that sandboxes are cloned from, before the fixtures.
    pub source_repo: Option<String>,
    /// Environment variables that sign in at the source repository, for sandboxes; secrets are recognised by the names
    /// of their variables.
    pub lent: Vec<(String, String)>,
    /// `--max-turns`: limit on model turns.
    pub max_turns: Option<u64>,
    /// `--max-total-tokens`: limit on tokens of all kinds together.
    pub max_total_tokens: Option<f64>,
    /// Name of the setting that `max_total_tokens` comes from: the option, or an environment variable.
    pub max_total_tokens_from: &'static str,
    /// `--timeout`: wall clock of a trial, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Name of the setting that `timeout_ms` comes from.
    pub timeout_from: &'static str,
    /// `--max-input-tokens` and the other budgets.
    pub budgets: Budgets,
    /// `--on-budget`: action for a trial that exceeds a budget.
    pub on_budget: OnBudget,
    /// `--max-run-cost`, in US dollars: once all trials together cost more, no other is started.
    pub max_run_cost: Option<f64>,
    /// The agents that the project configures.
    pub configured: Vec<Arc<Configured>>,
    /// Reason why the named judge cannot be used: its configuration in the project is incomplete.
    pub judge_missing: Option<String>,
    /// The model that judges and plays users, as `provider:model`.
    pub judge: Option<String>,
    /// Place where the project names the judge, unless the command line does.
    pub judge_source: Option<Excerpt>,
    /// Base URL for the judge, instead of its vendor's own.
    pub judge_base_url: Option<String>,
    /// Number of judges for each assertion that does not set its own.
    pub judges: usize,
    /// Temperature of the judge, from 0; the default of the judge if `None`.
    pub judge_temperature: Option<f64>,
    /// `true` if repeated trials share the judge's answers to the same question.
    pub judge_cache: bool,
    /// The project's own defaults.
    pub defaults: Defaults,
    /// Number of trials that run in parallel.
    pub jobs: usize,
    /// Number of retries of a broken attempt.
    pub retries: u32,
    /// Number of reruns of a failed trial; one that passes only then is flaky.
    pub reruns: u32,
    /// `--retry-on`: how an agent must have ended for its attempt to be retried, as often as broken ones. If `None`,
    /// suites of skills retry both.
    pub retry_on: Option<RetryOn>,
    /// Secrets beside those of the environment: keys and headers of the configuration.
    pub secrets: Secrets,
    /// Time without activity after which a warning is sent, in milliseconds.
    pub idle_warn_ms: u64,
    /// Time that an agent has to stop when asked, in milliseconds.
    pub stop_grace_ms: u64,
    /// Time limit of one setup command, in milliseconds.
    pub setup_timeout_ms: u64,
    /// `true` to keep sandboxes after their trials.
    pub keep_sandbox: bool,
    /// Name of the kind of sandbox.
    pub sandbox: String,
    /// Source of models; everything in a run that uses a model opens it here.
    pub providers: llm::Providers,
}

/// Endings of an agent after which its attempt is retried although it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOn {
    /// The agent ended with an error: an exit code of its program, or an answer that reports an error.
    pub exit: bool,
    /// The agent timed out.
    pub timeout: bool,
}

impl RetryOn {
    /// Both ways.
    pub const BOTH: Self = Self { exit: true, timeout: true };
    /// Neither way.
    pub const NONE: Self = Self { exit: false, timeout: false };

    /// Parses `exit`, `timeout`, both separated by a comma, or `none`.
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

    /// Returns the written form, which `parse` accepts.
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
    /// Opens the model `written` as `provider:model`, for an agent that calls it in this process.
    ///
    /// # Errors
    /// If the provider is unknown, or lacks its key or its address.
    pub(crate) fn open_model(&self, written: &str) -> Result<Arc<dyn llm::Model>, llm::OpenError> {
        // Scripts are handled elsewhere, so no file is read here.
        match self.providers.open(written, self.base_url.as_deref(), &|_| Err(Vec::new()))? {
            llm::Opened::Model(model) => Ok(model),
            llm::Opened::Script(_) => Err(llm::OpenError::Invalid(Vec::new())),
        }
    }
}

/// Defaults of a project. They apply where neither the command line nor the case sets a value.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The agent.
    pub agent: Option<String>,
    /// Place where the agent is written.
    pub agent_source: Option<Excerpt>,
    /// The model.
    pub model: Option<String>,
    /// Handling of permissions by the agent.
    pub permission_mode: Option<PermissionMode>,
    /// Wall clock of a trial in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Limit on model turns.
    pub max_turns: Option<u64>,
    /// Number of repetitions.
    pub trials: Option<u64>,
    /// Limit on tokens.
    pub token_budget: Option<f64>,
}
