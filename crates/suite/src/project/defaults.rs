//! `defaults` and `eval`: settings for cases that do not have their own.

use std::path::Path;

use model::decode::{Fields, Problems};
use model::{CassetteMode, Excerpt, GatewayMode, Node, PassRate, PermissionMode, Trials};

use super::file::Dialect;
use super::{Setting, sections, setting, text, whole};
use crate::trials::{pass_rate, precision, trials};
use crate::{ai_tester, misplaced, model_name};

/// Settings for cases that do not have their own.
#[derive(Debug, Clone, Default)]
pub struct Defaults {
    /// Name of the agent; the alias `claude` has already been replaced by `claude-code`.
    pub agent: Option<Setting<String>>,
    /// Name of the model; a script's path is absolute.
    pub model: Option<Setting<String>>,
    /// Permission mode of the agent.
    pub permission_mode: Option<Setting<PermissionMode>>,
    /// Timeout of a trial, in milliseconds.
    pub timeout_ms: Option<Setting<u64>>,
    /// Maximum number of model turns per trial.
    pub max_turns: Option<Setting<u64>>,
    /// Number of repetitions of each case.
    pub trials: Option<Setting<Trials>>,
    /// Pass rate that cases require if the number of their trials is decided automatically.
    pub pass_rate: Option<Setting<PassRate>>,
    /// Required precision of pass rates.
    pub precision: Option<Setting<f64>>,
    /// Maximum number of tokens per trial.
    pub token_budget: Option<Setting<f64>>,
    /// Number of trials that run in parallel.
    pub jobs: Option<Setting<u64>>,
    /// Number of retries for a trial broken by infrastructure.
    pub retries: Option<Setting<u64>>,
    /// Number of reruns for a failed trial.
    pub reruns: Option<Setting<u64>>,
    /// Kind of sandbox.
    pub sandbox: Option<Setting<String>>,
    /// Use of the gateway for vendors' models.
    pub gateway: Option<Setting<GatewayMode>>,
    /// How recorded model answers are used.
    pub cassette: Option<Setting<CassetteMode>>,
    /// Folder for recorded model answers.
    pub cassette_dir: Option<Setting<String>>,
}

impl Defaults {
    /// Reads the `defaults` section.
    pub(super) fn read(node: &Node, root: &Path, dialect: Dialect, problems: &mut Problems) -> Self {
        let mut defaults = Self::default();
        let Some(fields) = Fields::of(node, "`defaults`", problems) else { return defaults };
        let mut fields = fields.in_either_case();
        let model = fields.text("model", problems).zip(fields.get("model"));
        defaults.model = model.and_then(|(name, place)| {
            Some(Setting { value: model_name::model(&name, place, root, problems)?, source: place.excerpt() })
        });
        let mode = fields.choice("permission_mode", &PermissionMode::ALL, problems);
        defaults.permission_mode = setting(mode, "permission_mode", &mut fields);
        if dialect == Dialect::AiTester {
            let agent = if node.get("runtime").is_some() { "runtime" } else { "agent" };
            let name = fields.text(agent, problems).map(|name| model_name::agent(name, root));
            defaults.agent = setting(name, agent, &mut fields);
            fields.finish_with_warnings(&ai_tester::KEYS, problems);
        } else {
            defaults.read_own(&mut fields, root, problems);
            let first = problems.len();
            fields.finish(problems);
            misplaced::say_where(problems, first, misplaced::OF_DEFAULTS);
        }
        defaults
    }

    fn read_agent(&mut self, fields: &mut Fields<'_>, root: &Path, problems: &mut Problems) {
        let agent = fields.text("agent", problems).map(|name| model_name::agent(name, root));
        let runtime = fields.text("runtime", problems).map(|name| model_name::agent(name, root));
        fields.refuse_both("agent", "runtime", problems);
        self.agent = setting(agent, "agent", fields).or(setting(runtime, "runtime", fields));
    }

    fn read_own(&mut self, fields: &mut Fields<'_>, root: &Path, problems: &mut Problems) {
        self.read_agent(fields, root, problems);
        let timeout = fields.duration_ms("timeout", problems);
        self.timeout_ms = setting(timeout, "timeout", fields);
        self.max_turns = whole(fields, "max_turns", 1, problems);
        let trials = fields.get("trials").and_then(|node| trials(node, problems));
        self.trials = setting(trials, "trials", fields);
        let pass_rate = fields.get("pass_rate").and_then(|node| pass_rate(node, problems));
        self.pass_rate = setting(pass_rate, "pass_rate", fields);
        let precision = fields.get("precision").and_then(|node| precision(node, problems));
        self.precision = setting(precision, "precision", fields);
        let token_budget = fields.tokens("token_budget", problems);
        self.token_budget = setting(token_budget, "token_budget", fields);
        let (jobs, parallelism) = (whole(fields, "jobs", 1, problems), whole(fields, "parallelism", 1, problems));
        fields.refuse_both("jobs", "parallelism", problems);
        self.jobs = jobs.or(parallelism);
        self.retries = whole(fields, "retries", 0, problems);
        self.reruns = whole(fields, "reruns", 0, problems);
        self.sandbox = text(fields, "sandbox", problems);
        let gateway = fields.choice("gateway", &GatewayMode::ALL, problems);
        self.gateway = setting(gateway, "gateway", fields);
        let cassette = fields.choice("cassette", &CassetteMode::ALL, problems);
        self.cassette = setting(cassette, "cassette", fields);
        self.cassette_dir = text(fields, "cassette_dir", problems);
        if let Some(Setting { value, source }) = &self.cassette_dir {
            let folder = Setting { value: root.join(value), source: source.clone() };
            sections::refuse_file(&folder, "cassette_dir", problems);
        }
    }

    /// Reads the `eval` section, which contains some of the same settings under other names. Its `retries` has a
    /// different meaning than in `defaults`, so it causes a warning unless the file is in Fabrik's format.
    pub(super) fn read_eval(&mut self, node: &Node, dialect: Dialect, problems: &mut Problems) {
        let Some(fields) = Fields::of(node, "`eval`", problems) else { return };
        let synonyms = &[("jobs", "parallelism"), ("timeout", "defaultTimeout")];
        let mut fields = fields.in_either_case().with_synonyms(synonyms);
        let parallelism = whole(&mut fields, "parallelism", 1, problems);
        keep_one(&mut self.jobs, parallelism, "`eval.parallelism` and `jobs` in `defaults`", problems);
        let reruns = whole(&mut fields, "reruns", 0, problems);
        let retries = whole(&mut fields, "retries", 0, problems);
        fields.refuse_both("reruns", "retries", problems);
        if let Some(written) = fields.get("retries").filter(|_| dialect != Dialect::Fabrik) {
            let warning =
                written.warning("`eval.retries` reruns failed trials; the setting is called `reruns` everywhere else");
            problems.push(
                warning.help("write `eval.reruns` for that; `retries` in `defaults` repeats attempts that are broken"),
            );
        }
        keep_one(&mut self.reruns, reruns.or(retries), "`eval.reruns` and `reruns` in `defaults`", problems);
        let timeout = fields.duration_or_ms("defaultTimeout", problems);
        let timeout = setting(timeout, "defaultTimeout", &mut fields);
        keep_one(&mut self.timeout_ms, timeout, "`eval.defaultTimeout` and `timeout` in `defaults`", problems);
        fields.finish(problems);
    }

    /// Sets the defaults for a `fabrik.config`.
    pub(super) fn fill_as_fabrik(&mut self, file: &Excerpt) {
        let implied = |value: u64| Setting { value, source: file.clone() };
        self.jobs.get_or_insert_with(|| implied(3));
        self.reruns.get_or_insert_with(|| implied(1));
        self.timeout_ms.get_or_insert_with(|| implied(30_000));
    }
}

/// Moves `second` into `first`; only one of them may be given.
pub(super) fn keep_one<T>(
    first: &mut Option<Setting<T>>,
    second: Option<Setting<T>>,
    what: &str,
    problems: &mut Problems,
) {
    match (&first, second) {
        (Some(_), Some(second)) => {
            let message = format!("{what} set the same; give one of them");
            problems.push(model::Diagnostic::error(message).at(second.source));
        }
        (None, second) => *first = second,
        (Some(_), None) => {}
    }
}
