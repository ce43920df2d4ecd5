//! Settings: the command line overrides the environment, then come the project and the built-in defaults. Each value
//! records its source. `config` shows exactly the values that a run uses.

mod adversaries;
mod applies;
pub mod calibration;
mod configuration;
mod configured;
mod models;
mod table;
mod variables;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cassette::Cassette;
use model::{CassetteMode, Diagnostic, Having, Requirement};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use suite::Project;

use crate::error::Error;
use crate::judgements::StateJudgements;
use crate::layer::Layer;
use crate::overrides::{ForkFrom, Overrides, written};
use crate::path::shown;
use crate::sandbox_choice;
use crate::selection::failed_cases;
use crate::session::Session;
use crate::shard::{self, ShardArg};

pub(crate) use self::configured::configured;
pub use self::configured::{GITHUB, TERMINAL, misspelt_limit, reports};
use self::models::{replaced_model, split_model, unknown_agent, unused_model};
pub use self::table::{SETTINGS, Setting};
pub use self::variables::reference;

/// Name under which the targets of the command line are recorded.
pub const TARGETS: &str = "targets";
/// Name under which the skill of the command line is recorded.
pub const SKILL: &str = "skill";

/// A setting with its value, in the form used for display and recording.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Name of the setting.
    pub name: String,
    /// Its value; `null` if the case or the agent decides.
    pub value: Value,
    /// Source of the value.
    pub layer: Layer,
}

/// Specification of a run: each setting with its final value and its source. It does not change after
/// [`Session::resolve`], and another process with a copy of the project can run the same from it. Secrets are not part
/// of it: each process takes them from its own environment.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSpec {
    /// Directory to which relative paths refer, below the project's folder; `None` if it is elsewhere.
    directory: Option<PathBuf>,
    /// The command line, with what variables add.
    overrides: Overrides,
    /// Values that depend on the machine on which the run was planned.
    decided: Decided,
    /// SHA-256 of each file of the project's configuration, by which copies of the project are compared.
    configuration: BTreeMap<String, String>,
    /// All settings.
    rows: Vec<Row>,
    /// Problems with variables, and with files and names that the project's configuration refers to.
    #[serde(skip)]
    problems: Vec<Diagnostic>,
    /// Notes about how settings were chosen. These are not problems.
    #[serde(skip)]
    notes: Vec<String>,
}

/// Values that depend on the machine: what it can do, and whether it runs a CI job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Decided {
    sandbox: String,
    #[serde(with = "written::value")]
    cassette: CassetteMode,
    /// Reason why the project's judge is not asked.
    unjudged: Option<String>,
    /// The part of the cases to run: (k, n), k from 1; absent for all cases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<(u64, u64)>,
}

/// Inputs from which the table takes values and layers.
struct Resolution<'a> {
    args: &'a Overrides,
    run: &'a runner::Settings,
    session: &'a Session,
}

impl Resolution<'_> {
    fn project(&self) -> &Project {
        &self.session.project
    }

    /// Returns a path as the user would write it.
    fn shown(&self, path: &Path) -> Value {
        json!(shown(path, &self.session.cwd))
    }

    /// Returns the configuration as the layer if it sets `folder` to something other than `usual`.
    fn moved(&self, folder: Option<&PathBuf>, usual: &str) -> Option<Layer> {
        let project = self.project();
        folder.filter(|folder| **folder != project.root.join(usual))?;
        Some(Layer::Project(shown(project.file.as_ref()?, &self.session.cwd)))
    }
}

impl RunSpec {
    /// Returns the command line, with what variables add.
    pub fn overrides(&self) -> &Overrides {
        &self.overrides
    }

    /// Returns all settings, in the order in which `config` shows them.
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the directory to which relative paths refer, below the project's folder.
    pub fn directory(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// Returns problems with variables, and with files and names that the configuration refers to.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// Returns notes about how settings were chosen. These are not problems.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns the kind of sandbox.
    pub fn sandbox(&self) -> &str {
        &self.decided.sandbox
    }

    /// Returns a specification that selects only these cases, as `suite::case`.
    pub fn limited_to(&self, cases: HashSet<String>) -> Self {
        let mut spec = self.clone();
        spec.overrides.selection.only = Some(cases);
        spec
    }

    /// Returns the part of the cases to run: (k, n), k from 1; `None` for all cases.
    pub(crate) fn shard(&self) -> Option<(u64, u64)> {
        self.decided.shard
    }

    /// Returns the use of cassettes.
    pub(crate) fn cassette(&self) -> CassetteMode {
        self.decided.cassette
    }

    /// Returns a map from names to values for the record. It includes the targets, so that they can be found again
    /// from any folder of the project.
    pub fn to_map(&self, session: &Session) -> Map<String, Value> {
        let named = self.overrides.named();
        let named: Vec<String> = named.iter().map(|target| session.relative_to_root(target)).collect();
        let skill = self.overrides.selection.skill.as_ref().map(|skill| session.relative_to_root(skill));
        let targets = [(TARGETS.to_owned(), json!(named)), (SKILL.to_owned(), json!(skill))];
        let rows = self.rows.iter().map(|row| (row.name.clone(), row.value.clone()));
        let mut map: Map<String, Value> = rows.chain(targets).collect();
        self.overrides.gates.record(&mut map);
        map
    }

    /// Returns the sources of the values that the command line and variables set.
    fn typed(&self) -> Typed {
        let typed = self.rows.iter().filter(|row| matches!(row.layer, Layer::CommandLine | Layer::Environment(_)));
        typed.map(|row| (row.name.clone(), row.layer.clone())).collect()
    }
}

/// Sources of the values that the command line and variables set, by setting.
type Typed = BTreeMap<String, Layer>;

impl Session {
    /// Resolves the command line against the environment, the project and this machine.
    ///
    /// # Errors
    /// Returns an error if an environment variable has an invalid value, or if this machine cannot be examined.
    pub fn resolve(&self, overrides: &Overrides) -> Result<RunSpec, Error> {
        let mut line = overrides.clone();
        line.schedule.timeout = line.schedule.timeout.map(|timeout| timeout.in_project(&self.project));
        let mut args = variables::added_to(&line, self.environment())?;
        let typed = typed(&line, self);
        let mut problems = variables::misspelt(self.environment());
        let mut run = settings(&args, &typed, self, &mut problems);
        let mut notes: Vec<String> = sandbox_choice::choose_auto(&mut run, &self.host).into_iter().collect();
        if args.adversaries {
            adversaries::play(&mut run);
        }
        problems.extend(sandbox_choice::choose(&mut run, self));
        let cassette = match run.cassettes.mode {
            CassetteMode::Auto if self.is_ci() => CassetteMode::Replay,
            mode => mode,
        };
        let unjudged = run.judge.missing.clone().or_else(|| missing_judge(self, &run));
        let shard = match args.selection.shard {
            Some(ShardArg::Part(k, n)) => Some((k, n)),
            Some(ShardArg::Auto(jobs)) => {
                let ((k, n), variable) = shard::of_job(jobs, self.environment())?;
                notes.push(format!("this job runs shard {k}/{n}, because of `{variable}`"));
                Some((k, n))
            }
            None => None,
        };
        let decided = Decided { sandbox: run.sandbox.kind.clone(), cassette, unjudged, shard };
        // The last run can be another one by the time at which the cases are planned, and on other machines.
        if let (None, Some(run)) = (&args.selection.only, args.selection.failures_of()) {
            args.selection.only = Some(failed_cases(&*self.read_store()?, run, &mut notes)?);
        }
        let configuration = configuration::hashes(&args, self);
        let directory = self.directory();
        let spec = RunSpec { directory, overrides: args, decided, configuration, rows: Vec::new(), problems, notes };
        Ok(self.with_rows(spec, &typed))
    }

    /// Returns `spec` with another kind of sandbox, because the chosen one cannot be created.
    pub(crate) fn with_sandbox(&self, spec: &RunSpec, kind: &str) -> RunSpec {
        let mut spec = spec.clone();
        kind.clone_into(&mut spec.decided.sandbox);
        let typed = spec.typed();
        self.with_rows(spec, &typed)
    }

    fn with_rows(&self, spec: RunSpec, typed: &Typed) -> RunSpec {
        let run = self.compile(&spec, typed, &mut Vec::new());
        let used = Resolution { args: &spec.overrides, run: &run, session: self };
        let row = |setting: &Setting| Row {
            name: setting.name.to_owned(),
            value: (setting.value)(&used),
            layer: typed.get(setting.name).cloned().or_else(|| (setting.below)(&used)).unwrap_or(Layer::BuiltIn),
        };
        let rows = SETTINGS.iter().map(row).collect();
        RunSpec { rows, ..spec }
    }

    /// Returns the settings of the runner for `spec`.
    pub fn settings(&self, spec: &RunSpec) -> runner::Settings {
        self.compile(spec, &spec.typed(), &mut Vec::new())
    }

    /// Returns `spec` as JSON, for another process.
    ///
    /// # Errors
    /// Returns an error if the command line contains a secret: another process takes secrets from its own environment.
    pub fn spec_to_json(&self, spec: &RunSpec) -> Result<String, Error> {
        let failed = |error: serde_json::Error| Error::environment(format!("cannot write the run: {error}"));
        let value = serde_json::to_value(spec).map_err(failed)?;
        let mut masked = value.clone();
        self.mask().value(&mut masked);
        match masked == value {
            true => Ok(value.to_string()),
            false => {
                Err(Error::usage("the options of this run contain a secret, which is not sent to other processes")
                    .hint("put the secret into a variable, and refer to the variable in the configuration"))
            }
        }
    }

    /// Checks that `spec`, which another process resolved, means the same with this copy of the project.
    ///
    /// # Errors
    /// Returns an error that names the first setting with another value.
    pub fn agrees_with(&self, spec: &RunSpec) -> Result<(), Error> {
        let here = self.with_rows(spec.clone(), &spec.typed());
        let names: BTreeSet<&str> = spec.rows.iter().chain(&here.rows).map(|row| &*row.name).collect();
        for name in names.into_iter().filter(|name| !OF_THIS_MACHINE.contains(name)) {
            let [then, now] = [spec, &here].map(|spec| spec.rows.iter().find(|row| row.name == name));
            let difference = match (then, now) {
                (Some(then), Some(now)) if then.value == now.value => continue,
                (Some(then), Some(now)) => format!("is {} here and {} in the run", now.value, then.value),
                (Some(_), None) => "is not a setting of this version of trialrun".to_owned(),
                (None, _) => "is not a setting of the version of trialrun that planned the run".to_owned(),
            };
            return Err(Error::usage(format!("this copy of the project differs: `{name}` {difference}")));
        }
        let here = configuration::hashes(&spec.overrides, self);
        configuration::difference(&here, &spec.configuration)
            .map_or(Ok(()), |difference| Err(Error::usage(format!("this copy of the project differs: {difference}"))))
    }

    fn compile(&self, spec: &RunSpec, typed: &Typed, problems: &mut Vec<Diagnostic>) -> runner::Settings {
        let mut run = settings(&spec.overrides, typed, self, problems);
        if spec.overrides.adversaries {
            adversaries::play(&mut run);
        }
        run.sandbox.kind.clone_from(&spec.decided.sandbox);
        run.cassettes.mode = spec.decided.cassette;
        run.judge.missing.clone_from(&spec.decided.unjudged);
        if run.cassettes.mode == CassetteMode::Replay {
            // Models whose answers are recorded need no keys.
            run.providers = run.providers.without_keys();
            run.judge.missing.clone_from(&spec.overrides.unjudged);
        }
        run
    }

    /// Returns the directory of the session below the project's folder.
    fn directory(&self) -> Option<PathBuf> {
        self.cwd.strip_prefix(&self.project.root).ok().map(Path::to_owned)
    }

    /// Returns `true` if the environment says that this is a CI job.
    pub(crate) fn is_ci(&self) -> bool {
        self.environment().get("CI").is_some_and(|set| !matches!(set.as_str(), "" | "0" | "false"))
    }
}

/// Settings with values of one machine: its folders and its number of cores.
const OF_THIS_MACHINE: [&str; 8] =
    ["state", "cassette_dir", "pricing", "jobs", "report", "skills_dir", "tests", "judge_calibration"];

/// Returns the sources of the values that the command line and variables set.
fn typed(line: &Overrides, session: &Session) -> Typed {
    let layer = |setting: &Setting| {
        if (setting.is_typed)(line) {
            return Some(Layer::CommandLine);
        }
        let variable = variables::of(setting, session.environment()).filter(|_| setting.put.is_some());
        variable.map(|(name, _)| Layer::Environment(name.to_owned()))
    };
    SETTINGS.iter().filter_map(|setting| Some((setting.name.to_owned(), layer(setting)?))).collect()
}

/// Returns the reason why the project's judge cannot be used: a variable that is not set. Trials that need no judge
/// still run.
fn missing_judge(session: &Session, settings: &runner::Settings) -> Option<String> {
    let judge = &session.project.judge;
    let is_own = judge.model.as_ref().map(|model| &model.value) == settings.judge.model.as_ref();
    judge.missing.first().filter(|_| is_own).map(|missing| missing.message.clone())
}

/// Returns the name of the variable or option that sets `name`, for messages about a limit that stopped something.
fn origin(name: &str, typed: &Typed) -> &'static str {
    let Some(setting) = SETTINGS.iter().find(|setting| setting.name == name) else { return "" };
    let variable = match typed.get(name) {
        Some(Layer::Environment(variable)) => setting.variables.iter().find(|known| *known == variable).copied(),
        _ => None,
    };
    variable.or(setting.flag).unwrap_or(setting.name)
}

/// Returns the isolation that the project chooses, with the run's network policy. The project's folders and the record
/// are private.
fn isolation(network: Option<&model::NetworkPolicy>, session: &Session) -> sandbox::SandboxOptions {
    const MIB: u64 = 1 << 20;
    let chosen = &session.project.isolation;
    let daytona = &chosen.daytona;
    let built_in = sandbox::supervise::Limits::default();
    let private = [&*session.project.root, &*session.cwd, &*session.state.folder];
    let bytes = |mib: Option<u64>, otherwise| mib.map_or(otherwise, |mib| mib.saturating_mul(MIB));
    sandbox::SandboxOptions {
        image: chosen.image.as_ref().map(|image| image.value.clone()),
        daytona: sandbox::DaytonaOptions {
            api_key: daytona.api_key.clone(),
            api_url: daytona.api_url.clone(),
            target: daytona.target.clone(),
            snapshot: daytona.snapshot.clone(),
            env: daytona.env.clone(),
        },
        private: private.into_iter().chain(session.state.record_folder()).map(ToOwned::to_owned).collect(),
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

/// Returns the settings for planning and running, before the decisions that depend on the machine. `typed` says where
/// the values in `args` come from.
fn settings(args: &Overrides, typed: &Typed, session: &Session, problems: &mut Vec<Diagnostic>) -> runner::Settings {
    let project = &session.project;
    let defaults = &project.defaults;
    let built_in = runner::Settings::default();
    let configured = configured::agents(project);
    let (schedule, budgets) = (&args.schedule, &args.budgets);
    let network = args.sandboxes.network.clone().or(value(&project.isolation.network));
    let remote = args.sandboxes.remote.or(value(&project.isolation.remote));
    let cassettes = cassettes(args, session, problems);
    let is_agent = |name: &str| agent::find(name).is_some() || configured.iter().any(|agent| agent.name == name);
    let having = &args.arms.arms;
    if !having.is_empty() && having.iter().all(|having| *having == Having::None) {
        let problem =
            Diagnostic::error("`--arms` needs `skill` or `plugin`: an arm without both is only for comparison");
        problems.push(problem);
    }
    let mut model = |written: &String| {
        problems.extend(unknown_agent(written, is_agent, &configured));
        split_model(written, is_agent)
    };
    let models: Vec<(Option<String>, String)> = args.arms.model.iter().map(&mut model).collect();
    problems.extend(replaced_model(&models).or_else(|| unused_model(&models, &args.arms.agent, &configured)));
    runner::Settings {
        embedded: session.agents.clone(),
        requires_integrity: requirements(args, project).contains(&Requirement::Integrity),
        threshold: args.gates.threshold,
        gateway: args.arms.gateway.or(value(&defaults.gateway)).unwrap_or_default(),
        cassettes,
        logs: Some(session.state.folder.join("logs")),
        functions: session.functions.clone(),
        arms: runner::ArmSettings {
            system_prompt: args.arms.system_prompt.clone(),
            agents: args.arms.agent.clone(),
            models,
            reasoning_effort: args.arms.reasoning_effort.clone(),
            base_url: args.arms.base_url.clone(),
            trials: args.arms.trials,
            precision: args.arms.precision,
            baseline: (args.arms.baseline || args.arms.no_baseline).then_some(args.arms.baseline),
            having: having.clone(),
            seed: args.arms.seed.unwrap_or(built_in.arms.seed),
        },
        limits: runner::LimitSettings {
            max_turns: budgets.max_turns,
            max_total_tokens: budgets.max_total_tokens,
            max_total_tokens_from: origin("token_budget", typed),
            timeout_ms: schedule.timeout.map(|clock| clock.ms),
            timeout_from: origin("timeout_ms", typed),
            budgets: model::Budgets {
                input: budgets.max_input_tokens,
                non_cached_input: budgets.max_non_cached_input_tokens,
                output: budgets.max_output_tokens,
                reasoning: budgets.max_reasoning_tokens,
                cost_usd: budgets.max_cost,
                duration_ms: budgets.max_duration.map(|duration| duration as f64),
            },
            max_duration_from: origin("max_duration_ms", typed),
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
        judge: judge(args, session),
        sandbox: runner::SandboxSettings {
            kind: args.sandboxes.sandbox.clone().or(value(&defaults.sandbox)).unwrap_or(built_in.sandbox.kind),
            source_repo: args.sandboxes.source_repo.as_deref().map(|written| source_repo(written, &session.cwd)),
            // Requested when something is run.
            extra_env: Vec::new(),
            keep: args.sandboxes.keep_sandbox,
            records_repository: built_in.sandbox.records_repository,
            setup_timeout_ms: schedule.setup_timeout.unwrap_or(built_in.sandbox.setup_timeout_ms),
            disk_limit: project
                .isolation
                .disk_mb
                .map_or(built_in.sandbox.disk_limit, |mib| mib.saturating_mul(1 << 20)),
            isolation: isolation(network.as_ref(), session),
            canaries: project.canaries.clone(),
            mocks: Arc::clone(&project.mocks),
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
        secrets: session.secrets(),
        providers: configured::providers(args, session, problems),
        configured,
    }
}

/// Returns the cassette settings. A folder on the command line is relative to the session's directory, and one in the
/// configuration is relative to the project root.
fn cassettes(args: &Overrides, session: &Session, problems: &mut Vec<Diagnostic>) -> runner::CassetteSettings {
    let (typed, defaults) = (&args.cassettes, &session.project.defaults);
    let own = || Some(session.project.root.join(&defaults.cassette_dir.as_ref()?.value));
    let fork = args.fork.as_ref().map(|from| fork(from, session));
    runner::CassetteSettings {
        mode: typed.cassette.or(value(&defaults.cassette)).unwrap_or_default(),
        directory: typed.cassette_dir.as_ref().map(|typed| session.cwd.join(typed)).or_else(own),
        honours_delays: typed.cassette_delays,
        fork: fork.and_then(|fork| fork.map_err(|problem| problems.push(Diagnostic::error(problem))).ok()),
    }
}

/// Reads the recorded trial whose beginning is replayed.
fn fork(from: &ForkFrom, session: &Session) -> Result<runner::Fork, String> {
    let file = session.cwd.join(&from.cassette);
    let cassette = Cassette::read(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let recording = cassette.recording(from.repetition);
    let recording = recording.ok_or_else(|| format!("{} has no repetition {}", file.display(), from.repetition))?;
    Ok(runner::Fork { recording: Arc::clone(recording), turns: from.turns })
}

/// Returns the judge. The project's address and temperature apply only to the model that the project names.
fn judge(args: &Overrides, session: &Session) -> runner::JudgeSettings {
    let project = &session.project.judge;
    let typed = &args.judging;
    let own = Some(project).filter(|_| typed.judge.is_none());
    runner::JudgeSettings {
        model: typed.judge.clone().or_else(|| value(&own?.model)),
        source: own.and_then(|judge| judge.model.as_ref()).map(|set| set.source.clone()),
        base_url: typed.judge_base_url.clone().or_else(|| value(&own?.base_url)),
        missing: args.unjudged.clone(),
        judges: typed.judges.and_then(|judges| usize::try_from(judges).ok()).or(count(&project.judges)).unwrap_or(1),
        temperature: own.and_then(|judge| value(&judge.temperature)),
        sample: typed.judge_sample.or(value(&project.sample)),
        batch: typed.judge_batch || value(&project.batch).unwrap_or_default(),
        cache: typed.judge_cache.or(value(&project.cache)).unwrap_or_default(),
        gate: calibration::gate(args, session).map(Arc::new),
        store: Some(Arc::new(StateJudgements::in_record(&session.state))),
    }
}

/// Returns the conditions that each trial must meet in addition to its assertions.
fn requirements(args: &Overrides, project: &Project) -> Vec<Requirement> {
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

#[cfg(test)]
mod tests;
