//! Settings: what was typed, then the project's, then what is built in. Each value knows where it comes from.

use serde_json::{Map, Value, json};

use crate::project::Workplace;
use crate::run_args::RunArgs;

/// Where a value comes from, strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Layer {
    /// The command line.
    CommandLine,
    /// The project's configuration.
    Project(String),
    /// The program.
    BuiltIn,
}

impl std::fmt::Display for Layer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::CommandLine => f.write_str("command line"),
            Self::Project(file) => f.write_str(file),
            Self::BuiltIn => f.write_str("built in"),
        }
    }
}

/// A setting, for people and for the record.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name, as in the configuration.
    pub name: &'static str,
    /// Its value; `null` where nobody set it and the case or the agent decides.
    pub value: Value,
    /// Where it comes from.
    pub layer: Layer,
}

/// The resolved settings of a run.
pub struct Resolved {
    /// For planning and running.
    pub run: runner::Settings,
    /// For showing and recording.
    pub rows: Vec<Row>,
}

impl Resolved {
    /// Resolves what was typed against the project.
    pub fn of(args: &RunArgs, workplace: &Workplace) -> Self {
        let project = &workplace.project;
        let defaults = &project.defaults;
        let file = project.file.as_ref().map(|file| crate::project::shown(file, &workplace.cwd)).unwrap_or_default();
        let mut rows = Vec::new();
        let mut row = |name, typed: Option<Value>, configured: Option<Value>, built_in: Value| {
            let (value, layer) = match (typed, configured) {
                (Some(value), _) => (value, Layer::CommandLine),
                (None, Some(value)) => (value, Layer::Project(file.clone())),
                (None, None) => (built_in, Layer::BuiltIn),
            };
            rows.push(Row { name, value, layer });
        };
        let built_in = runner::Settings::default();
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let jobs = args.jobs.or_else(|| usize::try_from(defaults.jobs.as_ref()?.value).ok()).unwrap_or(cores);
        let some = |list: &[String]| (!list.is_empty()).then(|| json!(list));

        row("agent", some(&args.agent), defaults.agent.as_ref().map(|set| json!(set.value)), json!("claude-code"));
        row("model", some(&args.model), defaults.model.as_ref().map(|set| json!(set.value)), Value::Null);
        row(
            "permission_mode",
            None,
            defaults.permission_mode.as_ref().map(|set| json!(set.value.name())),
            json!("bypassPermissions"),
        );
        row("reasoning_effort", args.reasoning_effort.as_ref().map(|v| json!(v)), None, Value::Null);
        row("base_url", args.base_url.as_ref().map(|v| json!(v)), None, Value::Null);
        row("trials", args.trials.map(|v| json!(v)), defaults.trials.as_ref().map(|set| json!(set.value)), json!(1));
        row(
            "max_turns",
            args.max_turns.map(|v| json!(v)),
            defaults.max_turns.as_ref().map(|set| json!(set.value)),
            Value::Null,
        );
        row(
            "token_budget",
            args.max_total_tokens.map(|v| json!(v)),
            defaults.token_budget.as_ref().map(|set| json!(set.value)),
            Value::Null,
        );
        row(
            "timeout_ms",
            args.timeout.map(|v| json!(v)),
            defaults.timeout_ms.as_ref().map(|set| json!(set.value)),
            json!(600_000),
        );
        row("jobs", args.jobs.map(|v| json!(v)), defaults.jobs.as_ref().map(|set| json!(set.value)), json!(cores));
        row("retries", args.retries.map(|v| json!(v)), None, json!(built_in.retries));
        row("idle_warn_ms", args.idle_warn.map(|v| json!(v)), None, json!(built_in.idle_warn_ms));
        row("stop_grace_ms", args.stop_grace.map(|v| json!(v)), None, json!(built_in.stop_grace_ms));
        row("setup_timeout_ms", args.setup_timeout.map(|v| json!(v)), None, json!(built_in.setup_timeout_ms));
        row("sandbox", args.sandbox.as_ref().map(|v| json!(v)), None, json!(built_in.sandbox));
        row("keep_sandbox", args.keep_sandbox.then_some(json!(true)), None, json!(false));
        row(
            "skills_dir",
            None,
            (project.skills_dir != project.root.join("skills")).then(|| json!(shown(workplace))),
            json!(shown(workplace)),
        );
        row("state", None, None, json!(crate::project::shown(&workplace.state, &workplace.cwd)));

        let run = runner::Settings {
            agents: args.agent.clone(),
            models: args.model.iter().map(|written| split_model(written)).collect(),
            reasoning_effort: args.reasoning_effort.clone(),
            base_url: args.base_url.clone(),
            trials: args.trials,
            max_turns: args.max_turns,
            max_total_tokens: args.max_total_tokens,
            timeout_ms: args.timeout,
            configured: Vec::new(),
            judge: None,
            judge_base_url: None,
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
            jobs,
            retries: args.retries.unwrap_or(built_in.retries),
            idle_warn_ms: args.idle_warn.unwrap_or(built_in.idle_warn_ms),
            stop_grace_ms: args.stop_grace.unwrap_or(built_in.stop_grace_ms),
            setup_timeout_ms: args.setup_timeout.unwrap_or(built_in.setup_timeout_ms),
            keep_sandbox: args.keep_sandbox,
            sandbox: args.sandbox.clone().unwrap_or(built_in.sandbox),
            providers: crate::machine::providers(),
        };
        Self { run, rows }
    }

    /// Name → value, for the record.
    pub fn to_map(&self) -> Map<String, Value> {
        self.rows.iter().map(|row| (row.name.to_owned(), row.value.clone())).collect()
    }
}

fn shown(workplace: &Workplace) -> String {
    crate::project::shown(&workplace.project.skills_dir, &workplace.cwd)
}

/// `agent=model` or `model`. A model's own name may hold `=` only after an agent's.
fn split_model(written: &str) -> (Option<String>, String) {
    match written.split_once('=') {
        Some((agent, model)) if runner::agent::find(agent).is_some() => (Some(agent.to_owned()), model.to_owned()),
        _ => (None, written.to_owned()),
    }
}
