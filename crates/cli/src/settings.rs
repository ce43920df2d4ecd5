//! Settings: the command line overrides the environment, then come the project and the built-in defaults. Each value
//! records its source. `config` shows exactly the values that a run uses.

mod applies;
pub mod calibration;
mod configured;
mod table;
mod variables;

use std::path::Path;
use std::sync::Arc;

use model::{Diagnostic, Requirement};
use serde_json::{Map, Value, json};
use suite::Project;

use crate::auto_sandbox;
use crate::error::CliError;
use crate::judgements::StateJudgements;
use crate::layer::Layer;
use crate::project::{ProjectContext, shown};
use crate::run_args::RunArgs;
use crate::sandbox_fallback;

pub use self::configured::reports;
pub use self::table::{SETTINGS, Setting};
pub use self::variables::reference;

/// Name under which the targets of the command line are recorded.
pub const TARGETS: &str = "targets";
/// Name under which the skill of the command line is recorded.
pub const SKILL: &str = "skill";

/// A setting with its value, in the form used for display and recording.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name of the setting.
    pub name: &'static str,
    /// Its value; `null` if the case or the agent decides.
    pub value: Value,
    /// Source of the value.
    pub layer: Layer,
}

/// The resolved settings of a run.
pub struct Resolved {
    /// The command line, including the values that the environment adds.
    pub args: RunArgs,
    /// Settings for planning and running.
    pub run: runner::Settings,
    /// Settings for display and recording.
    pub rows: Vec<Row>,
    /// Problems with variables, and with files and names that the project's configuration refers to.
    pub problems: Vec<Diagnostic>,
    /// Notes about how settings were chosen. These are not problems.
    pub notes: Vec<String>,
}

/// Inputs from which the table takes values and layers.
struct Resolution<'a> {
    args: &'a RunArgs,
    run: &'a runner::Settings,
    context: &'a ProjectContext,
}

impl Resolution<'_> {
    fn project(&self) -> &Project {
        &self.context.project
    }

    /// Returns a path as the user would write it.
    fn shown(&self, path: &Path) -> Value {
        json!(shown(path, &self.context.cwd))
    }

    /// Returns the configuration as the layer if it sets `folder` to something other than `usual`.
    fn moved(&self, folder: Option<&std::path::PathBuf>, usual: &str) -> Option<Layer> {
        let project = self.project();
        folder.filter(|folder| **folder != project.root.join(usual))?;
        Some(Layer::Project(shown(project.file.as_ref()?, &self.context.cwd)))
    }
}

impl Resolved {
    /// Resolves the command line against the environment and the project.
    ///
    /// # Errors
    /// Returns an error if an environment variable has an invalid value.
    pub fn of(args: &RunArgs, context: &ProjectContext) -> Result<Self, CliError> {
        let mut line = args.clone();
        line.schedule.timeout = line.schedule.timeout.map(|timeout| timeout.in_project(&context.project));
        let args = variables::added_to(&line, &context.environment)?;
        let mut problems = variables::misspelt(&context.environment);
        let mut run = settings(&args, &line, context, &mut problems);
        let notes = auto_sandbox::choose(&mut run)?.into_iter().collect();
        problems.extend(sandbox_fallback::choose(&mut run, context)?);
        let used = Resolution { args: &args, run: &run, context };
        let row = |setting: &Setting| Row {
            name: setting.name,
            value: (setting.value)(&used),
            layer: layer(setting, &line, &used),
        };
        let rows = SETTINGS.iter().map(row).collect();
        Ok(Self { args, run, rows, problems, notes })
    }

    /// Returns a map from names to values for the record. It includes the targets, so that they can be found again
    /// from any folder of the project.
    pub fn to_map(&self, context: &ProjectContext) -> Map<String, Value> {
        let named = self.args.named();
        let named: Vec<String> = named.iter().map(|target| context.relative_to_root(target)).collect();
        let skill = self.args.selection.skill.as_ref().map(|skill| context.relative_to_root(skill));
        let targets = [(TARGETS, json!(named)), (SKILL, json!(skill))];
        let rows = self.rows.iter().map(|row| (row.name, row.value.clone()));
        rows.chain(targets).map(|(name, value)| (name.to_owned(), value)).collect()
    }
}

/// Returns the highest layer that sets `setting`.
fn layer(setting: &Setting, line: &RunArgs, used: &Resolution<'_>) -> Layer {
    if (setting.is_typed)(line) {
        return Layer::CommandLine;
    }
    let variable = variables::of(setting, &used.context.environment).filter(|_| setting.put.is_some());
    let variable = variable.map(|(name, _)| Layer::Environment(name));
    variable.or_else(|| (setting.below)(used)).unwrap_or(Layer::BuiltIn)
}

/// Returns the name of the variable or option that sets `name`, for messages about a limit that stopped something.
fn origin(name: &str, line: &RunArgs, context: &ProjectContext) -> &'static str {
    let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else { return "" };
    let variable = variables::of(setting, &context.environment).filter(|_| !(setting.is_typed)(line));
    variable.map(|(name, _)| name).or(setting.flag).unwrap_or(setting.name)
}

/// Returns the isolation that the project chooses, with the run's network policy. The project's folders and the record
/// are private.
fn isolation(network: Option<&model::NetworkPolicy>, context: &ProjectContext) -> sandbox::SandboxOptions {
    const MIB: u64 = 1 << 20;
    let chosen = &context.project.isolation;
    let daytona = &chosen.daytona;
    let built_in = sandbox::supervise::Limits::default();
    let bytes = |mib: Option<u64>, otherwise| mib.map_or(otherwise, |mib| mib.saturating_mul(MIB));
    let record = context.database.parent().unwrap_or(&context.state);
    sandbox::SandboxOptions {
        image: chosen.image.clone(),
        daytona: sandbox::DaytonaOptions {
            api_key: daytona.api_key.clone(),
            api_url: daytona.api_url.clone(),
            target: daytona.target.clone(),
            snapshot: daytona.snapshot.clone(),
            env: daytona.env.clone(),
        },
        private: [&context.project.root, &context.cwd, &context.state, record].map(ToOwned::to_owned).into(),
        visible: chosen.visible.clone(),
        network: network.cloned().unwrap_or_default(),
        limits: sandbox::supervise::Limits {
            memory: bytes(chosen.memory_mb, built_in.memory),
            processes: chosen.processes.unwrap_or(built_in.processes),
            file_size: bytes(chosen.file_size_mb, built_in.file_size),
            open_files: chosen.open_files.unwrap_or(built_in.open_files),
            cpu_seconds: chosen.cpu_seconds.unwrap_or(built_in.cpu_seconds),
        },
    }
}

/// Returns the settings for planning and running. `line` is the command line, and `args` is the same with additions
/// from the environment.
fn settings(
    args: &RunArgs,
    line: &RunArgs,
    context: &ProjectContext,
    problems: &mut Vec<Diagnostic>,
) -> runner::Settings {
    let project = &context.project;
    let defaults = &project.defaults;
    let built_in = runner::Settings::default();
    let configured = configured::agents(project);
    let (schedule, budgets) = (&args.schedule, &args.budgets);
    let network = args.sandboxes.network.clone().or(value(&project.isolation.network));
    let remote = args.sandboxes.remote.or(value(&project.isolation.remote));
    let is_agent = |name: &str| agent::find(name).is_some() || configured.iter().any(|agent| agent.name == name);
    let mut model = |written: &String| {
        problems.extend(unknown_agent(written, is_agent, &configured));
        split_model(written, is_agent)
    };
    runner::Settings {
        embedded: Vec::new(),
        requires_integrity: requirements(args, project).contains(&Requirement::Integrity),
        gateway: args.arms.gateway.or(value(&defaults.gateway)).unwrap_or_default(),
        cassettes: cassettes(args, context),
        arms: runner::ArmSettings {
            system_prompt: None,
            agents: args.arms.agent.clone(),
            models: args.arms.model.iter().map(&mut model).collect(),
            reasoning_effort: args.arms.reasoning_effort.clone(),
            base_url: args.arms.base_url.clone(),
            trials: args.arms.trials,
            precision: args.arms.precision,
            baseline: (args.arms.baseline || args.arms.no_baseline).then_some(args.arms.baseline),
            seed: args.arms.seed.unwrap_or(built_in.arms.seed),
        },
        limits: runner::LimitSettings {
            max_turns: budgets.max_turns,
            max_total_tokens: budgets.max_total_tokens,
            max_total_tokens_from: origin("token_budget", line, context),
            timeout_ms: schedule.timeout.map(|clock| clock.ms),
            timeout_from: origin("timeout_ms", line, context),
            budgets: model::Budgets {
                input: budgets.max_input_tokens,
                non_cached_input: budgets.max_non_cached_input_tokens,
                output: budgets.max_output_tokens,
                reasoning: budgets.max_reasoning_tokens,
                cost_usd: budgets.max_cost,
                duration_ms: budgets.max_duration.map(|duration| duration as f64),
            },
            max_duration_from: origin("max_duration_ms", line, context),
            on_budget: budgets.on_budget.unwrap_or_default(),
            max_run_cost: budgets.max_run_cost,
            max_run_tokens: budgets.max_run_tokens,
            names: runner::LimitNames {
                cost: "--max-cost",
                total_tokens: "--max-total-tokens",
                run_cost: "--max-run-cost",
                run_tokens: "--max-run-tokens",
                pricing: "--pricing",
            },
        },
        judge: judge(args, context),
        sandbox: runner::SandboxSettings {
            kind: args.sandboxes.sandbox.clone().or(value(&defaults.sandbox)).unwrap_or(built_in.sandbox.kind),
            source_repo: args.sandboxes.source_repo.as_deref().map(|written| source_repo(written, &context.cwd)),
            // Requested when something is run.
            extra_env: Vec::new(),
            keep: args.sandboxes.keep_sandbox,
            records_repository: built_in.sandbox.records_repository,
            setup_timeout_ms: schedule.setup_timeout.unwrap_or(built_in.sandbox.setup_timeout_ms),
            disk_limit: project
                .isolation
                .disk_mb
                .map_or(built_in.sandbox.disk_limit, |mib| mib.saturating_mul(1 << 20)),
            isolation: isolation(network.as_ref(), context),
            canaries: project.canaries.clone(),
            network_over_case: args.sandboxes.network.clone(),
            network,
            remote,
            remote_over_case: args.sandboxes.remote,
            require: project.isolation.require.clone(),
        },
        retry: runner::RetrySettings {
            retries: schedule.retries.or(count(&defaults.retries)).unwrap_or(built_in.retry.retries),
            reruns: schedule.reruns.or(count(&defaults.reruns)).unwrap_or(built_in.retry.reruns),
            retry_on: schedule.retry_on,
        },
        defaults: runner::Defaults {
            agent: value(&defaults.agent),
            agent_source: defaults.agent.as_ref().map(|set| set.source.clone()),
            model: value(&defaults.model),
            model_source: defaults.model.as_ref().map(|set| set.source.clone()),
            permission_mode: value(&defaults.permission_mode),
            timeout_ms: value(&defaults.timeout_ms),
            max_turns: value(&defaults.max_turns),
            trials: value(&defaults.trials),
            pass_rate: value(&defaults.pass_rate),
            precision: value(&defaults.precision),
            token_budget: value(&defaults.token_budget),
        },
        jobs: schedule.jobs.or(count(&defaults.jobs)).unwrap_or_else(cores),
        idle_warn_ms: args.output.idle_warn.unwrap_or(built_in.idle_warn_ms),
        stop_grace_ms: schedule.stop_grace.unwrap_or(built_in.stop_grace_ms),
        secrets: project.tree.as_ref().map(mask::Secrets::of).unwrap_or_default(),
        providers: configured::providers(args, context, problems),
        configured,
    }
}

/// Returns the cassette settings. A folder on the command line is relative to the current directory, and one in the
/// configuration is relative to the project root.
fn cassettes(args: &RunArgs, context: &ProjectContext) -> runner::CassetteSettings {
    let (typed, defaults) = (&args.cassettes, &context.project.defaults);
    let own = || Some(context.project.root.join(&defaults.cassette_dir.as_ref()?.value));
    runner::CassetteSettings {
        mode: typed.cassette.or(value(&defaults.cassette)).unwrap_or_default(),
        directory: typed.cassette_dir.as_ref().map(|typed| context.cwd.join(typed)).or_else(own),
        honours_delays: typed.cassette_delays,
        fork: None,
    }
}

/// Returns the judge. The project's address and temperature apply only to the model that the project names.
fn judge(args: &RunArgs, context: &ProjectContext) -> runner::JudgeSettings {
    let project = &context.project.judge;
    let typed = &args.judging;
    let own = Some(project).filter(|_| typed.judge.is_none());
    runner::JudgeSettings {
        model: typed.judge.clone().or_else(|| value(&own?.model)),
        source: own.and_then(|judge| judge.model.as_ref()).map(|set| set.source.clone()),
        base_url: typed.judge_base_url.clone().or_else(|| value(&own?.base_url)),
        // Determined after the settings are resolved.
        missing: None,
        judges: typed.judges.and_then(|judges| usize::try_from(judges).ok()).or(count(&project.judges)).unwrap_or(1),
        temperature: own.and_then(|judge| value(&judge.temperature)),
        sample: typed.judge_sample.or(value(&project.sample)),
        batch: typed.judge_batch || value(&project.batch).unwrap_or_default(),
        cache: typed.judge_cache.or(value(&project.cache)).unwrap_or_default(),
        gate: calibration::gate(args, context).map(Arc::new),
        store: Some(Arc::new(StateJudgements::in_folder(&context.state))),
    }
}

/// Returns the conditions that each trial must meet in addition to its assertions.
fn requirements(args: &RunArgs, project: &Project) -> Vec<Requirement> {
    if args.gates.require.is_empty() { value(&project.require).unwrap_or_default() } else { args.gates.require.clone() }
}

fn value<T: Clone>(setting: &Option<suite::Setting<T>>) -> Option<T> {
    setting.as_ref().map(|set| set.value.clone())
}

fn count<N: TryFrom<u64>>(setting: &Option<suite::Setting<u64>>) -> Option<N> {
    N::try_from(setting.as_ref()?.value).ok()
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the source repository: a directory is resolved against `cwd`, anything else is an address.
fn source_repo(written: &str, cwd: &Path) -> String {
    let folder = Some(cwd.join(written)).filter(|folder| !written.contains("://") && folder.is_dir());
    folder.map_or_else(|| written.to_owned(), |folder| folder.to_string_lossy().into_owned())
}

/// Reports a `--model` whose text before the `=` looks like an agent's name but is not one.
fn unknown_agent(
    written: &str,
    is_agent: impl Fn(&str) -> bool,
    own: &[std::sync::Arc<agent::Configured>],
) -> Option<Diagnostic> {
    let (agent, _) = written.split_once('=')?;
    let is_name = |text: &str| text.chars().all(|letter| letter.is_ascii_alphanumeric() || "-_".contains(letter));
    if !is_name(agent) || is_agent(agent) {
        return None;
    }
    let built_in = agent::AGENTS.iter().map(|agent| agent.name());
    let names: Vec<&str> = built_in.chain(own.iter().map(|agent| agent.name.as_str())).collect();
    let problem = Diagnostic::error(format!("unknown agent `{agent}` in `--model {written}`"));
    Some(problem.suggest(model::nearest(agent, names.iter().copied())).help(format!("agents: {}", names.join(", "))))
}

/// Splits `agent=model`; otherwise returns only the model. A model whose name contains `=` must follow an agent's
/// name.
fn split_model(written: &str, is_agent: impl Fn(&str) -> bool) -> (Option<String>, String) {
    match written.split_once('=') {
        Some((agent, model)) if is_agent(agent) => (Some(agent.to_owned()), model.to_owned()),
        _ => (None, written.to_owned()),
    }
}
