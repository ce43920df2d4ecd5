//! Fields of requests that start or change runs, and parameters of others.

/// A field of a request's JSON, or a parameter in its address.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    pub name: &'static str,
    pub kind: Kind,
    /// Option of `trialrun run` that takes the value; the others are paths.
    pub option: Option<&'static str>,
    pub description: &'static str,
}

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Text,
    Texts,
    Number,
    /// Number of trials, which may be `auto`.
    Trials,
}

impl Kind {
    /// Returns what its values are.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Texts => "a list of texts",
            Self::Number => "a number",
            Self::Trials => "a whole number, `auto` or `auto:MAX`",
        }
    }
}

const fn field(name: &'static str, kind: Kind, option: &'static str, description: &'static str) -> Field {
    Field { name, kind, option: Some(option), description }
}

/// Returns a field that is not an option of a command.
pub const fn parameter(name: &'static str, kind: Kind, description: &'static str) -> Field {
    Field { name, kind, option: None, description }
}

const TRIALS: Field =
    field("trials", Kind::Trials, "--trials", "Number of trials of each case, or `auto` or `auto:MAX`");
const LABEL: Field = field("label", Kind::Text, "--label", "Label of the run, such as `pr-12`");
const MAX_RUN_COST: Field =
    field("max_run_cost", Kind::Number, "--max-run-cost", "Maximum cost of all trials in US dollars");
const MAX_RUN_TOKENS: Field =
    field("max_run_tokens", Kind::Number, "--max-run-tokens", "Maximum number of tokens of all trials");
const LIMITS: Field =
    field("limits", Kind::Texts, "--limit", "Maximum numbers of trials at once on all workers, such as `codex=4`");
const WORKER_TIMEOUT: Field =
    field("worker_timeout", Kind::Text, "--worker-timeout", "Time that a trial waits for a worker, such as `10m`");

/// Fields of a request for a new run.
pub const SUBMISSION: [Field; 13] = [
    parameter("paths", Kind::Texts, "Files, folders or skills of the project; without them, all tests of the project"),
    field("cases", Kind::Texts, "--case", "Only cases with these ids"),
    field("filter", Kind::Text, "--filter", "Only cases whose id matches this regular expression"),
    field("tags", Kind::Texts, "--tag", "Only cases with these tags"),
    field("agents", Kind::Texts, "--agent", "Agents to run the cases with"),
    field("models", Kind::Texts, "--model", "Models, each for all agents or for one (`AGENT=MODEL`)"),
    TRIALS,
    LABEL,
    MAX_RUN_COST,
    MAX_RUN_TOKENS,
    field("failed_in", Kind::Text, "--failed-in", "Only cases that did not pass in this run, or did not finish"),
    LIMITS,
    WORKER_TIMEOUT,
];

/// Fields of a request that runs again what did not pass.
pub const RETRY: [Field; 6] = [TRIALS, LABEL, MAX_RUN_COST, MAX_RUN_TOKENS, LIMITS, WORKER_TIMEOUT];

/// Fields of a request that continues an interrupted run.
pub const RESUME: [Field; 2] = [LIMITS, WORKER_TIMEOUT];

/// Fields of a request that continues a paused run.
pub const CONTINUE: [Field; 2] = [NEW_COST, NEW_TOKENS];
/// New limit of a run's cost.
pub const NEW_COST: Field = parameter("max_run_cost", Kind::Number, "New limit of the run in US dollars");
/// New limit of a run's tokens.
pub const NEW_TOKENS: Field = parameter("max_run_tokens", Kind::Number, "New limit of the run in tokens");

/// Fields of a request that stops a run.
pub const CANCEL: [Field; 1] = [TRIAL];
/// Trial to stop.
pub const TRIAL: Field =
    parameter("trial", Kind::Text, "Trial to cancel, such as `suite::case@agent#1`; without it, the whole run");
