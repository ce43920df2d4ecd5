//! Settings with which a run is planned.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use agent::{self, Agent, Configured};
use cassette::Recording;
use grade::judge::{JudgementStore, default_judge};
use mask::secret::Secrets;
use model::{
    Budgets, CalibrationGate, Canaries, Case, CassetteMode, Excerpt, GatewayMode, Having, JudgeCache, JudgeSample,
    Mocks, NetworkPolicy, OnBudget, PassRate, PermissionMode, RemoteMode, Trials,
};

use super::trial::SCRIPTED;

/// Agent for a case if neither the case nor the project sets one.
pub(super) const DEFAULT_AGENT: &str = "claude-code";

/// Default timeout of a trial that is code.
const CODE_TIMEOUT_MS: u64 = 30_000;

/// Default timeout of any other trial: ten minutes.
const DEFAULT_TIMEOUT_MS: u64 = 600_000;

/// A run's settings, resolved from the command line, the project and the built-in defaults, in this order. A case's
/// own settings come between the first two.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Agents, models and repetitions that override those of the cases.
    pub arms: ArmSettings,
    /// Limits for trials and for the run.
    pub limits: LimitSettings,
    /// The model that judges and plays users.
    pub judge: JudgeSettings,
    /// The sandboxes in which agents work.
    pub sandbox: SandboxSettings,
    /// Attempts after the first one.
    pub retry: RetrySettings,
    /// Agents of the program in which this library is embedded, in addition to [`agent::AGENTS`].
    pub embedded: Vec<&'static dyn Agent>,
    /// Agents that the project configures.
    pub configured: Vec<Arc<Configured>>,
    /// The project's own defaults.
    pub defaults: Defaults,
    /// Number of trials to run in parallel.
    pub jobs: usize,
    /// Time in milliseconds after which a warning is reported if an agent has been silent.
    pub idle_warn_ms: u64,
    /// Time that an agent gets to stop when it is asked to, in milliseconds.
    pub stop_grace_ms: u64,
    /// True if trials with signs of tampering must not pass.
    pub requires_integrity: bool,
    /// Share of the score with which a trial passes, in cases whose score decides; that of the case if absent.
    pub threshold: Option<f64>,
    /// Use of the gateway for vendors' models.
    pub gateway: GatewayMode,
    /// Settings for recorded model traffic.
    pub cassettes: CassetteSettings,
    /// Folder for what programs print that the run starts for its agents; `None` if it is not kept.
    pub logs: Option<PathBuf>,
    /// Assertions and operators that are functions of the program that uses this library.
    pub functions: Option<Arc<dyn grade::Functions>>,
    /// Secrets in addition to those of the environment: keys and headers of the configuration.
    pub secrets: Secrets,
    /// Opens models for everything in a run that needs one.
    pub providers: llm::Providers,
}

/// Settings for recorded model traffic.
#[derive(Debug, Clone, Default)]
pub struct CassetteSettings {
    /// How cassettes are used.
    pub mode: CassetteMode,
    /// Folder for all cassettes; `None` for a folder beside each suite.
    pub directory: Option<PathBuf>,
    /// True if recorded answers are replayed with their original delays.
    pub honours_delays: bool,
    /// Recorded trial whose beginning all trials replay.
    pub fork: Option<Fork>,
}

/// A recorded trial whose beginning is replayed.
#[derive(Debug, Clone)]
pub struct Fork {
    /// Its model traffic.
    pub recording: Arc<Recording>,
    /// Number of agent requests that are answered from the recording.
    pub turns: usize,
}

/// Agents, models, prompts and repetitions that override those of the cases.
#[derive(Debug, Clone, Default)]
pub struct ArmSettings {
    /// System prompt that replaces those of the cases.
    pub system_prompt: Option<String>,
    /// Agents with which to run each case; each is an arm. If empty, the case's own.
    pub agents: Vec<String>,
    /// Models, for all agents or for one.
    pub models: Vec<(Option<String>, String)>,
    /// Reasoning effort of the model.
    pub reasoning_effort: Option<String>,
    /// Address of the model's API.
    pub base_url: Option<String>,
    /// Number of times to run each case.
    pub trials: Option<Trials>,
    /// Required precision of pass rates and differences if the number of trials is not fixed.
    pub precision: Option<f64>,
    /// True to run cases that have a skill without it too. If unset, only cases that check whether the skill helps.
    pub baseline: Option<bool>,
    /// Arms of each case, by the part of its skill or plug-in that is installed. If empty, `baseline` decides.
    pub having: Vec<Having>,
    /// Seed for the order in which arms are interleaved.
    pub seed: u64,
}

/// Limits for trials and for the run.
#[derive(Debug, Clone)]
pub struct LimitSettings {
    /// Maximum number of model turns in a trial.
    pub max_turns: Option<u64>,
    /// Maximum number of tokens in a trial, of all kinds together.
    pub max_total_tokens: Option<f64>,
    /// Name of the option or variable that set the token limit, for messages.
    pub max_total_tokens_from: &'static str,
    /// Timeout of a trial, in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Name of the option or variable that set the timeout, for messages.
    pub timeout_from: &'static str,
    /// Budgets of a trial other than those above.
    pub budgets: Budgets,
    /// Name of the option that set the time budget, for messages.
    pub max_duration_from: &'static str,
    /// What happens to a trial that exceeds a budget.
    pub on_budget: OnBudget,
    /// Maximum cost of all trials in US dollars; once it is exceeded, no trial is started.
    pub max_run_cost: Option<f64>,
    /// Maximum number of tokens of all trials; once it is exceeded, no trial is started.
    pub max_run_tokens: Option<f64>,
    /// Names of the limits above, for messages.
    pub names: LimitNames,
}

/// Names of limits, and of the setting for prices, as the user writes them.
#[derive(Debug, Clone, Copy)]
pub struct LimitNames {
    /// Maximum cost of a trial.
    pub cost: &'static str,
    /// Maximum number of tokens in a trial.
    pub total_tokens: &'static str,
    /// Maximum cost of the run.
    pub run_cost: &'static str,
    /// Maximum number of tokens in the run.
    pub run_tokens: &'static str,
    /// File of prices.
    pub pricing: &'static str,
}

impl Default for LimitNames {
    fn default() -> Self {
        Self {
            cost: "max_cost",
            total_tokens: "max_total_tokens",
            run_cost: "max_run_cost",
            run_tokens: "max_run_tokens",
            pricing: "pricing",
        }
    }
}

/// The model that judges and plays users.
#[derive(Debug, Clone)]
pub struct JudgeSettings {
    /// The model, as `provider:model`.
    pub model: Option<String>,
    /// Location where the project names the model, unless the command line names one.
    pub source: Option<Excerpt>,
    /// Address of its API, if it is not the vendor's.
    pub base_url: Option<String>,
    /// Reason why the model cannot be used: the project's settings for it are incomplete.
    pub missing: Option<String>,
    /// Number of judges for assertions that do not set one.
    pub judges: usize,
    /// Temperature of the judge; the default if unset.
    pub temperature: Option<f64>,
    /// Size of the sample that the judge decides; all trials if unset.
    pub sample: Option<JudgeSample>,
    /// True if assertions about the same material share a request.
    pub batch: bool,
    /// How judgements from earlier runs are used.
    pub cache: JudgeCache,
    /// Store with judgements from earlier runs.
    pub store: Option<Arc<dyn JudgementStore>>,
    /// Condition that the judge must meet before it may decide assertions.
    pub gate: Option<Arc<CalibrationGate>>,
}

/// The sandboxes in which agents work.
#[derive(Debug, Clone)]
pub struct SandboxSettings {
    /// Name of the kind.
    pub kind: String,
    /// Repository from which sandboxes are cloned, before the fixtures.
    pub source_repo: Option<String>,
    /// Variables with credentials for the source repository; their names mark the secrets among them.
    pub extra_env: Vec<(String, String)>,
    /// True to keep sandboxes.
    pub keep: bool,
    /// True to record the final state of the repository even if no assertion needs it.
    pub records_repository: bool,
    /// Timeout of a setup command, in milliseconds.
    pub setup_timeout_ms: u64,
    /// Maximum space of the files that an agent writes, in bytes.
    pub disk_limit: u64,
    /// Isolation of processes, for kinds of sandboxes that isolate them.
    pub isolation: sandbox::SandboxOptions,
    /// Canaries for cases that do not set them.
    pub canaries: Option<Canaries>,
    /// MCP servers and mocked programs of the project.
    pub mocks: Arc<Mocks>,
    /// Network policy that the run or the project sets.
    pub network: Option<NetworkPolicy>,
    /// Network policy that takes precedence over those of the cases.
    pub network_over_case: Option<NetworkPolicy>,
    /// Remote that agents push to, which the run or the project sets.
    pub remote: Option<RemoteMode>,
    /// Remote that takes precedence over those of the cases.
    pub remote_over_case: Option<RemoteMode>,
    /// Guarantees without which nothing runs: `network`, or names of layers such as `filesystem`.
    pub require: Vec<String>,
}

/// Attempts after the first one.
#[derive(Debug, Clone)]
pub struct RetrySettings {
    /// Number of retries of a broken attempt.
    pub retries: u32,
    /// Number of reruns of a failed trial; one that passes only then is flaky.
    pub reruns: u32,
    /// Endings of an agent after which its attempt is retried, up to the same number of times as broken attempts. If
    /// unset, both, for suites of skills.
    pub retry_on: Option<RetryOn>,
}

/// Endings of an agent after which its attempt is retried although it has a verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryOn {
    /// The agent ended with an error: an exit code from its program, or an answer that reports an error.
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
            arms: ArmSettings::default(),
            limits: LimitSettings::default(),
            judge: JudgeSettings::default(),
            sandbox: SandboxSettings::default(),
            retry: RetrySettings { retries: 1, reruns: 0, retry_on: None },
            embedded: Vec::new(),
            configured: Vec::new(),
            defaults: Defaults::default(),
            jobs: 1,
            idle_warn_ms: 30_000,
            stop_grace_ms: 3_000,
            requires_integrity: false,
            threshold: None,
            gateway: GatewayMode::default(),
            cassettes: CassetteSettings::default(),
            logs: None,
            functions: None,
            secrets: Secrets::default(),
            providers: llm::Providers::default(),
        }
    }
}

impl Default for LimitSettings {
    fn default() -> Self {
        Self {
            max_turns: None,
            max_total_tokens: None,
            max_total_tokens_from: "max_total_tokens",
            timeout_ms: None,
            timeout_from: "timeout",
            budgets: Budgets::default(),
            max_duration_from: "max_duration",
            on_budget: OnBudget::default(),
            max_run_cost: None,
            max_run_tokens: None,
            names: LimitNames::default(),
        }
    }
}

impl Default for JudgeSettings {
    fn default() -> Self {
        Self {
            model: None,
            source: None,
            base_url: None,
            missing: None,
            judges: 1,
            temperature: None,
            sample: None,
            batch: false,
            cache: JudgeCache::default(),
            store: None,
            gate: None,
        }
    }
}

impl Default for SandboxSettings {
    fn default() -> Self {
        Self {
            kind: "local".into(),
            source_repo: None,
            extra_env: Vec::new(),
            keep: false,
            records_repository: true,
            setup_timeout_ms: 120_000,
            disk_limit: 4 << 30,
            isolation: sandbox::SandboxOptions::default(),
            canaries: None,
            mocks: Arc::default(),
            network: None,
            network_over_case: None,
            remote: None,
            remote_over_case: None,
            require: Vec::new(),
        }
    }
}

impl SandboxSettings {
    /// Returns the remote that agents push to in `case`.
    pub fn remote_of(&self, case: &Case) -> RemoteMode {
        self.remote_over_case.or(case.remote).or(self.remote).unwrap_or_default()
    }

    /// Returns the MCP servers and mocked programs for `case`.
    pub fn mocks_of(&self, case: &Case) -> Arc<Mocks> {
        match (case.mocks.is_empty(), self.mocks.is_empty()) {
            (_, true) => Arc::clone(&case.mocks),
            (true, false) => Arc::clone(&self.mocks),
            (false, false) => Arc::new(case.mocks.over(&self.mocks)),
        }
    }

    /// Returns the network policy for `case`, if the command line, the case or the project sets one.
    pub fn network_of<'a>(&'a self, case: &'a Case) -> Option<&'a NetworkPolicy> {
        self.network_over_case.as_ref().or(case.network.as_ref()).or(self.network.as_ref())
    }
}

impl Settings {
    /// Returns `true` if the gateway forwards agents' requests to vendors, or answers them from cassettes.
    pub(crate) fn observes(&self) -> bool {
        self.gateway == GatewayMode::Observe
            || self.cassettes.mode != CassetteMode::Off
            || self.cassettes.fork.is_some()
    }

    /// Returns the agents with which `case` runs, as the user wrote them.
    pub(super) fn agents_of(&self, case: &Case) -> Cow<'_, [String]> {
        if !self.arms.agents.is_empty() {
            return Cow::Borrowed(&self.arms.agents);
        }
        let own = case.runner.agent.as_ref().map(|(name, _)| name.clone());
        Cow::Owned(vec![own.unwrap_or_else(|| self.default_agent().to_owned())])
    }

    /// Returns the type of the agent `written`, without checking the agent.
    pub(crate) fn agent_type(&self, written: &str) -> Option<&'static dyn Agent> {
        let configured = self.configured.iter().find(|configured| configured.name == written);
        let kind = configured.map_or(Some(written), |configured| configured.node.get("type")?.as_str())?;
        self.embedded_agent(kind).or_else(|| agent::find(kind).map(|(agent, _)| agent))
    }

    /// Returns the embedding program's agent called `name`.
    pub(super) fn embedded_agent(&self, name: &str) -> Option<&'static dyn Agent> {
        let found = self.embedded.iter().find(|agent| agent.name() == name)?;
        Some(*found)
    }

    /// Returns `true` if the agent `written` can use `model`, or is not known. Every agent can use a scripted model.
    pub fn can_use(&self, written: &str, model: &str) -> bool {
        let agent = self.agent_type(written);
        agent.is_none_or(|agent| self.refused(agent, model).is_none())
    }

    /// Returns the reason why `agent` cannot use `model`. Every agent can use a scripted model.
    pub(super) fn refused(&self, agent: &dyn Agent, model: &str) -> Option<String> {
        let model = Some(model).filter(|model| !model.starts_with(SCRIPTED))?;
        agent.refuses_model(model, self.arms.base_url.as_deref(), &self.providers)
    }

    /// Returns the agent for a case that does not set one.
    pub fn default_agent(&self) -> &str {
        self.defaults.agent.as_deref().unwrap_or(DEFAULT_AGENT)
    }

    /// Returns the number of times to run a case, which may set it itself.
    pub fn trials(&self, of_case: Option<Trials>) -> Trials {
        self.arms.trials.or(of_case).or(self.defaults.trials).unwrap_or(Trials::Fixed(1))
    }

    /// Returns the required precision of pass rates and differences.
    pub fn precision(&self) -> Option<f64> {
        self.arms.precision.or(self.defaults.precision)
    }

    /// Returns the timeout for a case in milliseconds, and the setting from which it comes. `of_case` is the case's
    /// own timeout.
    pub fn timeout(&self, of_case: Option<u64>, is_code: bool) -> (u64, &'static str) {
        let set = [
            (self.limits.timeout_ms, self.limits.timeout_from),
            (of_case, "`timeout` in the scenario"),
            (self.defaults.timeout_ms, "`timeout` in the project"),
        ];
        set.into_iter().find_map(|(value, name)| Some((value?, name))).unwrap_or(match is_code {
            true => (CODE_TIMEOUT_MS, "the default timeout for code tests"),
            false => (DEFAULT_TIMEOUT_MS, "the default timeout"),
        })
    }

    /// Returns the model that judges: the one that is set, or a default one whose key is available.
    pub fn judge(&self) -> Option<&str> {
        self.judge.model.as_deref().or_else(|| default_judge(&self.providers))
    }
}

/// Defaults of a project. They apply if neither the command line nor the case sets a value.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// The agent.
    pub agent: Option<String>,
    /// Location where the agent is written.
    pub agent_source: Option<Excerpt>,
    /// The model.
    pub model: Option<String>,
    /// Location where the model is written.
    pub model_source: Option<Excerpt>,
    /// How the agent handles permissions.
    pub permission_mode: Option<PermissionMode>,
    /// Timeout of a trial in milliseconds.
    pub timeout_ms: Option<u64>,
    /// Limit on model turns.
    pub max_turns: Option<u64>,
    /// Number of repetitions.
    pub trials: Option<Trials>,
    /// Pass rate that cases require if the number of their trials is not fixed.
    pub pass_rate: Option<PassRate>,
    /// Required precision of pass rates and differences if the number of trials is not fixed.
    pub precision: Option<f64>,
    /// Limit on tokens.
    pub token_budget: Option<f64>,
}
