//! Settings, resolved from the command line, the environment, the project and the built-in defaults, in this order.
//! Each value knows its source.

mod configured;
mod variables;

use std::collections::BTreeMap;

use model::Diagnostic;
use serde_json::{Map, Value, json};
use suite::Setting;

use crate::error::CliError;
use crate::project::Workplace;
use crate::run_args::RunArgs;

pub use self::variables::{STATE, misspelt as misspelt_variables, reference as variables_reference};

/// Source of a value, strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// The command line.
    CommandLine,
    /// An environment variable.
    Environment(&'static str),
    /// The project's configuration, with file and line.
    Project(String),
    /// The built-in default.
    BuiltIn,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Environment(variable) => f.write_str(variable),
            Self::Project(place) => f.write_str(place),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A setting, for display and for the record.
#[derive(Debug, Clone)]
pub struct Row {
    /// Name, as in the configuration.
    pub name: &'static str,
    /// Value; `null` if it is not set and the case or the agent decides.
    pub value: Value,
    /// Source of the value.
    pub layer: Layer,
}

/// The resolved settings of a run.
pub struct Resolved {
    /// Settings for planning and running.
    pub run: runner::Settings,
    /// Settings for display and recording.
    pub rows: Vec<Row>,
    /// Problems with files and names that the project's configuration refers to.
    pub problems: Vec<Diagnostic>,
}

/// Value in the project's configuration and its place.
type Written = Option<(Value, String)>;

fn written<T>(setting: &Option<Setting<T>>, value: impl FnOnce(&T) -> Value) -> Written {
    let setting = setting.as_ref()?;
    Some((value(&setting.value), format!("{}:{}", setting.source.file, setting.source.line)))
}

/// Builder of the rows.
struct Rows<'a> {
    rows: Vec<Row>,
    /// Environment variables.
    environment: &'a BTreeMap<String, String>,
}

impl Rows<'_> {
    /// Adds a setting whose layer is known.
    fn put(&mut self, name: &'static str, value: Value, layer: Layer) {
        self.rows.push(Row { name, value, layer });
    }

    /// Adds the setting `name` with the value of the first layer that sets it.
    fn add(&mut self, name: &'static str, typed: [Option<Value>; 2], project: Written, built_in: Value) {
        let [line, environment] = typed;
        let variable = || variables::of_row(name, self.environment).unwrap_or_default();
        let (value, layer) = match (line, environment, project) {
            (Some(value), ..) => (value, Layer::CommandLine),
            (None, Some(value), _) => (value, Layer::Environment(variable())),
            (None, None, Some((value, place))) => (value, Layer::Project(place)),
            (None, None, None) => (built_in, Layer::BuiltIn),
        };
        self.put(name, value, layer);
    }
}

impl Resolved {
    /// Resolves the arguments against the environment and the project.
    ///
    /// # Errors
    /// If an environment variable has a value that its setting does not accept.
    pub fn of(args: &RunArgs, workplace: &Workplace) -> Result<Self, CliError> {
        let timeout = args.timeout.map(|timeout| timeout.in_project(&workplace.project));
        let args = &RunArgs { timeout, ..args.clone() };
        let environment = variables::typed(&workplace.environment)?;
        let rows = rows(args, &environment, workplace);
        let mut problems = Vec::new();
        let run = settings(args, environment, workplace, &mut problems);
        Ok(Self { run, rows, problems })
    }

    /// Returns a map from names to values, for the record.
    pub fn to_map(&self) -> Map<String, Value> {
        self.rows.iter().map(|row| (row.name.to_owned(), row.value.clone())).collect()
    }
}

/// Returns every setting with its layer.
fn rows(args: &RunArgs, environment: &RunArgs, workplace: &Workplace) -> Vec<Row> {
    let project = &workplace.project;
    let defaults = &project.defaults;
    let built_in = runner::Settings::default();
    let mut rows = Rows { rows: Vec::new(), environment: &workplace.environment };
    let both = |of: fn(&RunArgs) -> Option<Value>| [of(args), of(environment)];
    let number = |value: &u64| json!(value);
    rows.add("agent", both(|from| some(&from.agent)), written(&defaults.agent, |v| json!(v)), json!("claude-code"));
    rows.add("model", both(|from| some(&from.model)), written(&defaults.model, |v| json!(v)), Value::Null);
    let mode = written(&defaults.permission_mode, |mode| json!(mode.name()));
    rows.add("permission_mode", [None, None], mode, json!("bypassPermissions"));
    rows.add("reasoning_effort", both(|from| from.reasoning_effort.as_ref().map(|v| json!(v))), None, Value::Null);
    rows.add("base_url", both(|from| from.base_url.as_ref().map(|v| json!(v))), None, Value::Null);
    rows.add("trials", both(|from| from.trials.map(|v| json!(v))), written(&defaults.trials, number), json!(1));
    let baseline = (args.baseline || args.no_baseline).then(|| json!(args.baseline));
    rows.add("baseline", [baseline, None], None, Value::Null);
    rows.add("seed", [args.seed.map(|seed| json!(seed)), None], None, json!(built_in.seed));
    rows.add("source_repo", [args.source_repo.as_ref().map(|source| json!(source)), None], None, Value::Null);
    rows.add("lend_git_sign_in", [args.lend_git_sign_in.then_some(json!(true)), None], None, json!(false));
    rows.add(
        "max_turns",
        both(|from| from.max_turns.map(|v| json!(v))),
        written(&defaults.max_turns, number),
        Value::Null,
    );
    rows.add("warn_turns_of_scenarios", [None, None], None, json!(suite::WARN_TURNS));
    let budget = written(&defaults.token_budget, |v| json!(v));
    rows.add("token_budget", both(|from| from.max_total_tokens.map(|v| json!(v))), budget, Value::Null);
    for (name, cap) in [
        ("max_input_tokens", args.max_input_tokens),
        ("max_non_cached_input_tokens", args.max_non_cached_input_tokens),
        ("max_output_tokens", args.max_output_tokens),
        ("max_reasoning_tokens", args.max_reasoning_tokens),
        ("max_cost_usd", args.max_cost),
        ("max_run_cost_usd", args.max_run_cost),
    ] {
        rows.add(name, [cap.map(|cap| json!(cap)), None], None, Value::Null);
    }
    rows.add("max_duration_ms", [args.max_duration.map(|cap| json!(cap)), None], None, Value::Null);
    rows.add("on_budget", [args.on_budget.map(|action| json!(action.name())), None], None, json!("fail"));
    let timeout = written(&defaults.timeout_ms, number);
    rows.add("timeout_ms", both(|from| from.timeout.map(|v| json!(v.ms))), timeout, json!(600_000));
    rows.add("jobs", both(|from| from.jobs.map(|v| json!(v))), written(&defaults.jobs, number), json!(cores()));
    let retries = written(&defaults.retries, number);
    rows.add("retries", both(|from| from.retries.map(|v| json!(v))), retries, json!(built_in.retries));
    let reruns = written(&defaults.reruns, number);
    rows.add("reruns", both(|from| from.reruns.map(|v| json!(v))), reruns, json!(built_in.reruns));
    let retry_on = args.retry_on.map(|on| json!(on.name()));
    rows.add("retry_on", [retry_on, None], None, Value::Null);
    rows.add("idle_warn_ms", both(|from| from.idle_warn.map(|v| json!(v))), None, json!(built_in.idle_warn_ms));
    rows.add("stop_grace_ms", both(|from| from.stop_grace.map(|v| json!(v))), None, json!(built_in.stop_grace_ms));
    rows.add(
        "setup_timeout_ms",
        both(|from| from.setup_timeout.map(|v| json!(v))),
        None,
        json!(built_in.setup_timeout_ms),
    );
    let sandbox = written(&defaults.sandbox, |v| json!(v));
    rows.add("sandbox", both(|from| from.sandbox.as_ref().map(|v| json!(v))), sandbox, json!(built_in.sandbox));
    rows.add("keep_sandbox", both(|from| from.keep_sandbox.then_some(json!(true))), None, json!(false));
    for (name, commands) in [
        ("pre_run_commands", &args.pre_run_commands),
        ("post_grade_commands", &args.post_grade_commands),
        ("post_run_commands", &args.post_run_commands),
    ] {
        rows.add(name, [some(commands), None], None, json!([]));
    }
    let (timeout, layer) = crate::hooks::timeout_row(workplace);
    rows.put("hook_timeout_ms", timeout, layer);
    rows.add("artifacts", [args.artifacts.as_ref().map(|artifacts| json!(artifacts)), None], None, Value::Null);
    let judge = both(|from| from.judge.as_ref().map(|v| json!(v)));
    rows.add("judge", judge, written(&project.judge.model, |v| json!(v)), json!(default_judge(workplace)));
    // The address in the project applies only to its own judge.
    let own_judge = Some(&project.judge).filter(|_| args.judge.is_none() && environment.judge.is_none());
    let address = own_judge.and_then(|judge| written(&judge.base_url, |v| json!(v)));
    let typed = both(|from| from.judge_base_url.as_ref().map(|v| json!(v)));
    let is_open = typed.iter().all(Option::is_none) && address.is_none();
    match openai_address(args, environment, workplace).filter(|_| is_open) {
        Some(address) => rows.put("judge_base_url", json!(address), Layer::Environment(OPENAI_BASE_URL)),
        None => rows.add("judge_base_url", typed, address, Value::Null),
    }
    let judges = written(&project.judge.judges, number);
    rows.add("judges", both(|from| from.judges.map(|v| json!(v))), judges, json!(built_in.judges));
    rows.add("judge_cache", [args.judge_cache.then_some(json!(true)), None], None, json!(false));
    let file = project.file.as_ref().map(|file| crate::project::shown(file, &workplace.cwd)).unwrap_or_default();
    let folder = |path: &std::path::Path| json!(crate::project::shown(path, &workplace.cwd));
    let moved =
        (project.skills_dir != project.root.join("skills")).then(|| (folder(&project.skills_dir), file.clone()));
    rows.add("skills_dir", [None, None], moved, folder(&project.skills_dir));
    let moved = project.tests.as_ref().filter(|tests| **tests != project.root.join("tests"));
    let tests = project.tests.as_deref().map_or(Value::Null, folder);
    rows.add("tests", [None, None], moved.map(|tests| (folder(tests), file)), tests);
    rows.put("state", folder(&workplace.state), workplace.state_from.clone());
    rows.rows
}

fn some(list: &[String]) -> Option<Value> {
    (!list.is_empty()).then(|| json!(list))
}

/// Returns the default judge.
fn default_judge(workplace: &Workplace) -> Option<&'static str> {
    let is_set = |name: &str| workplace.environment.get(name).is_some_and(|value| !value.trim().is_empty());
    grade::judge::DEFAULT_JUDGES.iter().find(|judge| is_set(judge.key)).map(|judge| judge.model)
}

/// Variable with the base URL of OpenAI.
const OPENAI_BASE_URL: &str = "OPENAI_BASE_URL";

/// Returns the base URL for an OpenAI judge without an address of its own: the provider itself uses this variable.
fn openai_address<'a>(args: &RunArgs, environment: &RunArgs, workplace: &'a Workplace) -> Option<&'a str> {
    let own = workplace.project.judge.model.as_ref().map(|model| model.value.as_str());
    let named = args.judge.as_deref().or(environment.judge.as_deref()).or(own).or(default_judge(workplace))?;
    let address = workplace.environment.get(OPENAI_BASE_URL)?.trim();
    let is_openai = named.split_once(':').is_some_and(|(provider, _)| provider.split('-').next() == Some("openai"));
    (is_openai && !address.is_empty()).then_some(address)
}

/// Returns the number of judges for each assertion that does not set its own.
fn judges(args: &RunArgs, environment: Option<u64>, project: &suite::Project) -> usize {
    let configured = project.judge.judges.as_ref().map(|set| set.value);
    let judges = args.judges.or(environment).or(configured).and_then(|judges| usize::try_from(judges).ok());
    judges.unwrap_or(1)
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Returns the settings for planning and running.
fn settings(
    args: &RunArgs,
    environment: RunArgs,
    workplace: &Workplace,
    problems: &mut Vec<Diagnostic>,
) -> runner::Settings {
    let project = &workplace.project;
    let defaults = &project.defaults;
    let built_in = runner::Settings::default();
    let listed = |line: &[String], environment: Vec<String>| if line.is_empty() { environment } else { line.to_vec() };
    let count = |setting: &Option<Setting<u64>>| u32::try_from(setting.as_ref()?.value).ok();
    let agents = configured::agents(project);
    let models = listed(&args.model, environment.model);
    let judge = args.judge.clone().or(environment.judge);
    let own_judge = Some(&project.judge).filter(|_| judge.is_none());
    let typed_address = args.judge_base_url.clone().or(environment.judge_base_url);
    // Messages about an exceeded limit name the setting that it comes from.
    let setter = |is_typed: bool, is_set: bool, row: &str| {
        Some(row).filter(|_| !is_typed && is_set).and_then(|row| variables::of_row(row, &workplace.environment))
    };
    let timeout_from = setter(args.timeout.is_some(), environment.timeout.is_some(), "timeout_ms");
    let budget_from = setter(args.max_total_tokens.is_some(), environment.max_total_tokens.is_some(), "token_budget");
    let is_agent = |name: &str| agent::find(name).is_some() || agents.iter().any(|agent| agent.name == name);
    runner::Settings {
        agents: listed(&args.agent, environment.agent),
        models: models
            .iter()
            .map(|written| {
                problems.extend(unknown_agent(written, is_agent, &agents));
                split_model(written, is_agent)
            })
            .collect(),
        reasoning_effort: args.reasoning_effort.clone().or(environment.reasoning_effort),
        base_url: args.base_url.clone().or(environment.base_url),
        trials: args.trials.or(environment.trials),
        baseline: (args.baseline || args.no_baseline).then_some(args.baseline),
        seed: args.seed.unwrap_or(built_in.seed),
        source_repo: args.source_repo.as_deref().map(|written| source_repo(written, &workplace.cwd)),
        // Requested only when something is run.
        lent: Vec::new(),
        max_turns: args.max_turns.or(environment.max_turns),
        max_total_tokens: args.max_total_tokens.or(environment.max_total_tokens),
        max_total_tokens_from: budget_from.unwrap_or(built_in.max_total_tokens_from),
        timeout_ms: args.timeout.or(environment.timeout).map(|clock| clock.ms),
        timeout_from: timeout_from.unwrap_or(built_in.timeout_from),
        budgets: model::Budgets {
            input: args.max_input_tokens,
            non_cached_input: args.max_non_cached_input_tokens,
            output: args.max_output_tokens,
            reasoning: args.max_reasoning_tokens,
            cost_usd: args.max_cost,
            duration_ms: args.max_duration.map(|duration| duration as f64),
        },
        on_budget: args.on_budget.unwrap_or_default(),
        max_run_cost: args.max_run_cost,
        configured: agents,
        // Set later, because it depends on the settings.
        judge_missing: None,
        judge_source: own_judge.and_then(|judge| judge.model.as_ref()).map(|set| set.source.clone()),
        // The address and the temperature in the project apply only to its own judge.
        judge: judge.or_else(|| Some(own_judge?.model.as_ref()?.value.clone())),
        judge_base_url: typed_address.or_else(|| Some(own_judge?.base_url.as_ref()?.value.clone())),
        judges: judges(args, environment.judges, project),
        judge_temperature: own_judge.and_then(|judge| judge.temperature.as_ref()).map(|set| set.value),
        judge_cache: args.judge_cache,
        defaults: runner::Defaults {
            agent: defaults.agent.as_ref().map(|set| set.value.clone()),
            agent_source: defaults.agent.as_ref().map(|set| set.source.clone()),
            model: defaults.model.as_ref().map(|set| set.value.clone()),
            permission_mode: defaults.permission_mode.as_ref().map(|set| set.value),
            timeout_ms: defaults.timeout_ms.as_ref().map(|set| set.value),
            max_turns: defaults.max_turns.as_ref().map(|set| set.value),
            trials: defaults.trials.as_ref().map(|set| set.value),
            token_budget: defaults.token_budget.as_ref().map(|set| set.value),
        },
        jobs: args.jobs.or(environment.jobs).or_else(|| count(&defaults.jobs)?.try_into().ok()).unwrap_or_else(cores),
        retries: args.retries.or(environment.retries).or(count(&defaults.retries)).unwrap_or(built_in.retries),
        reruns: args.reruns.or(environment.reruns).or(count(&defaults.reruns)).unwrap_or(built_in.reruns),
        retry_on: args.retry_on,
        secrets: project.tree.as_ref().map(mask::Secrets::of).unwrap_or_default(),
        idle_warn_ms: args.idle_warn.or(environment.idle_warn).unwrap_or(built_in.idle_warn_ms),
        stop_grace_ms: args.stop_grace.or(environment.stop_grace).unwrap_or(built_in.stop_grace_ms),
        setup_timeout_ms: args.setup_timeout.or(environment.setup_timeout).unwrap_or(built_in.setup_timeout_ms),
        keep_sandbox: args.keep_sandbox || environment.keep_sandbox,
        sandbox: args
            .sandbox
            .clone()
            .or(environment.sandbox)
            .or_else(|| Some(defaults.sandbox.as_ref()?.value.clone()))
            .unwrap_or(built_in.sandbox),
        providers: configured::providers(workplace, args.pricing.as_deref(), problems),
    }
}

/// Returns the source repository: a directory is relative to the current one, anything else is a URL.
fn source_repo(written: &str, cwd: &std::path::Path) -> String {
    let folder = Some(cwd.join(written)).filter(|folder| !written.contains("://") && folder.is_dir());
    folder.map_or_else(|| written.to_owned(), |folder| folder.to_string_lossy().into_owned())
}

/// Returns an error if the text before the `=` of a `--model` is not an agent. Text with characters that names cannot
/// have is part of a model.
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

/// Parses `agent=model` or `model`. A model's own name may contain `=` only after an agent's.
fn split_model(written: &str, is_agent: impl Fn(&str) -> bool) -> (Option<String>, String) {
    match written.split_once('=') {
        Some((agent, model)) if is_agent(agent) => (Some(agent.to_owned()), model.to_owned()),
        _ => (None, written.to_owned()),
    }
}
