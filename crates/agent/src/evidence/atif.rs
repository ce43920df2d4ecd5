//! Trajectories in the Agent Trajectory Interchange Format (ATIF), which harbor and other tools write.

use std::collections::{HashMap, HashSet};

use model::{Diagnostic, Ending, Source, Step, Tokens, ToolResult, Usage};
use serde_json::{Map, Value};

use crate::conversation::Conversation;
use crate::json::{arguments, items, owned, text};
use crate::native_call::native_call;

/// Returns `true` if `document` is a trajectory.
pub(super) fn is_document(document: &Map<String, Value>) -> bool {
    let version = document.get("schema_version").and_then(Value::as_str);
    version.is_some_and(|version| version.starts_with("ATIF-")) && document.contains_key("steps")
}

/// Reads the trajectory.
pub(super) fn read(source: &Source, document: &Value, problems: &mut Vec<Diagnostic>) -> Vec<Conversation> {
    let version = text(document, "schema_version").unwrap_or_default();
    if !version.starts_with("ATIF-v1.") && !version.starts_with("ATIF-1.") {
        let problem = Diagnostic::error(format!("the version `{version}` of the format is not known"));
        problems.push(
            problem
                .at(source.excerpt(Conversation::default().position(source, version)))
                .help("known are the versions `ATIF-v1.x`"),
        );
        return Vec::new();
    }
    let agent = document.get("agent").unwrap_or(&Value::Null);
    let mut reader = TrajectoryReader { source, agent: text(agent, "name").unwrap_or_default(), ..new(source) };
    reader.read.agent = owned(agent, "name");
    reader.read.agent_version = owned(agent, "version");
    reader.read.model = owned(agent, "model_name");
    reader.read.session_id = owned(document, "session_id").or_else(|| owned(document, "trajectory_id"));
    let extra = document.pointer("/extra/trialrun").unwrap_or(&Value::Null);
    reader.read.case = owned(extra, "case");
    reader.sub_agents = items(document, "subagent_trajectories").iter().filter_map(named).collect();
    let Some(steps) = document.get("steps").and_then(Value::as_array) else {
        let problem = Diagnostic::error("`steps` must be a list");
        problems.push(problem.at(source.excerpt(reader.read.position(source, "steps"))));
        return Vec::new();
    };
    reader.steps(steps, None);
    if document.get("continued_trajectory_ref").is_some_and(|next| !next.is_null()) {
        let what = "the trajectory continues in another file, which is not read";
        let at = reader.read.position(source, "continued_trajectory_ref");
        reader.read.is_incomplete(source, at, what.to_owned());
    }
    let total = document.get("final_metrics").map(final_usage).unwrap_or_default();
    let usage = &mut reader.read.usage;
    usage.tokens = total.tokens.or(usage.tokens);
    usage.cost_usd = total.cost_usd.or(usage.cost_usd);
    if let Some(ending) = extra.get("ending").and_then(|it| serde_json::from_value::<Ending>(it.clone()).ok()) {
        reader.read.ending = ending;
    } else if reader.read.steps.is_empty() {
        reader.read.ending = Ending::Aborted { reason: "the trajectory has no step of an agent".to_owned() };
    }
    let is_unknown = extra.get("calls_unreported") == Some(&Value::Bool(true));
    let unknown = is_unknown.then(|| "the recorded reply does not say completely which tools were called".to_owned());
    reader.read.missing_calls = owned(extra, "calls_missing").or(unknown).or(reader.read.missing_calls);
    reader.read.answer = owned(extra, "answer");
    reader.read.close();
    vec![reader.read]
}

fn new(source: &Source) -> TrajectoryReader<'_> {
    let (read, sub_agents, seen) = (Conversation::default(), HashMap::new(), HashSet::new());
    TrajectoryReader { source, agent: "", read, sub_agents, seen, message: 0 }
}

struct TrajectoryReader<'a> {
    source: &'a Source,
    /// Name of the agent, which decides how its tools are named.
    agent: &'a str,
    read: Conversation,
    /// Trajectories of sub-agents by their ids.
    sub_agents: HashMap<&'a str, &'a Value>,
    /// Those that were read.
    seen: HashSet<&'a str>,
    /// Number of messages of the model so far.
    message: usize,
}

impl<'a> TrajectoryReader<'a> {
    /// Reads steps; those of a sub-agent belong to the call `parent`.
    fn steps(&mut self, steps: &'a [Value], parent: Option<&str>) {
        for (index, step) in steps.iter().enumerate() {
            // A trajectory that continues another one repeats its steps.
            match text(step, "source") {
                Some("user") if parent.is_none() => {
                    let said = self.content(step.get("message"), index);
                    self.read.user(said);
                }
                Some("user" | "system") => {}
                Some("agent") => self.agent_step(step, index, parent),
                other => {
                    let other = other.unwrap_or("none");
                    let what = format!("`steps[{index}]` has the unknown source `{other}`");
                    self.is_incomplete(other, what);
                }
            }
        }
    }

    fn agent_step(&mut self, step: &'a Value, index: usize, parent: Option<&str>) {
        self.message += 1;
        let message = format!("step-{}", self.message);
        let parent = parent.map(str::to_owned);
        if let Some(thoughts) = owned(step, "reasoning_content").filter(|thoughts| !thoughts.is_empty()) {
            self.read.push(Step::Thinking { message: message.clone(), text: thoughts, parent: parent.clone() });
        }
        let said = self.content(step.get("message"), index);
        let calls = items(step, "tool_calls");
        if !said.is_empty() || calls.is_empty() {
            self.read.push(Step::Text { message: message.clone(), text: said, parent: parent.clone() });
        }
        for (nth, call) in calls.iter().enumerate() {
            let Some(name) = text(call, "function_name").filter(|name| !name.is_empty()) else {
                let what = format!("`steps[{index}].tool_calls[{nth}]` has no `function_name`");
                self.is_incomplete("tool_calls", what);
                continue;
            };
            let id = owned(call, "tool_call_id").unwrap_or_else(|| format!("{message}-call-{nth}"));
            let mut made = native_call(self.agent, &id, name, arguments(call, "arguments"), &message);
            made.parent.clone_from(&parent);
            self.read.push(Step::ToolCall(made));
        }
        if step.get("tool_calls").is_some_and(|calls| !calls.is_array() && !calls.is_null()) {
            let what = format!("`steps[{index}].tool_calls` is not a list");
            self.is_incomplete("tool_calls", what);
        }
        let results = step.get("observation").map(|observation| items(observation, "results")).unwrap_or_default();
        for result in results {
            self.result(result, index, calls);
        }
        if let Some(used) = step.get("metrics") {
            self.read.spend(self.read.message(), usage(used, ""));
        }
    }

    fn result(&mut self, result: &'a Value, index: usize, calls: &'a [Value]) {
        // Without an id, the only call is meant.
        let only = || calls.first().filter(|_| calls.len() == 1).and_then(|call| text(call, "tool_call_id"));
        let id = text(result, "source_call_id").or_else(only);
        for sub_agent in items(result, "subagent_trajectory_ref") {
            self.sub_agent(sub_agent, id);
        }
        let content = self.content(result.get("content"), index);
        let is_error = result.pointer("/extra/is_error") == Some(&Value::Bool(true));
        match id {
            Some(id) => self.read.push(Step::ToolResult(ToolResult { id: id.to_owned(), content, is_error })),
            // The output of the environment without a call, for agents whose actions are text.
            None => self.read.push(Step::Notice { from: "agent".into(), text: content }),
        }
    }

    /// Reads the trajectory of a sub-agent that the call `id` started.
    fn sub_agent(&mut self, reference: &'a Value, id: Option<&str>) {
        let key = text(reference, "trajectory_id").or_else(|| text(reference, "session_id")).unwrap_or_default();
        match self.sub_agents.get(key).copied() {
            Some(trajectory) if self.seen.insert(key) => {
                self.steps(items(trajectory, "steps"), Some(id.unwrap_or("sub-agent")));
            }
            Some(_) => {}
            None => {
                let what = format!("the trajectory of the sub-agent `{key}` is not in the file");
                self.is_incomplete(key, what);
            }
        }
    }

    fn is_incomplete(&mut self, word: &str, what: String) {
        let at = self.read.position(self.source, word);
        self.read.is_incomplete(self.source, at, what);
    }

    /// Returns the text of a message or a result, which is a string or a list of parts.
    fn content(&mut self, content: Option<&Value>, index: usize) -> String {
        let parts = match content {
            None | Some(Value::Null) => return String::new(),
            Some(Value::String(text)) => return text.clone(),
            Some(Value::Array(parts)) => parts,
            Some(other) => return other.to_string(),
        };
        let mut shown = Vec::new();
        for part in parts {
            match text(part, "type") {
                Some("text") => shown.push(text(part, "text").unwrap_or_default().to_owned()),
                Some(kind @ ("image" | "audio")) => shown.push(format!("[{kind}]")),
                kind => {
                    let kind = kind.unwrap_or("none");
                    let what = format!("a part of `steps[{index}]` has the unknown type `{kind}`");
                    self.is_incomplete(kind, what);
                }
            }
        }
        shown.join("\n")
    }
}

/// Returns a trajectory with its id.
fn named(trajectory: &Value) -> Option<(&str, &Value)> {
    let id = text(trajectory, "trajectory_id").or_else(|| text(trajectory, "session_id"))?;
    Some((id, trajectory))
}

/// Returns the usage in `metrics`, whose prompt tokens include cached ones. The names begin with `prefix`.
fn usage(metrics: &Value, prefix: &str) -> Usage {
    let count = |key: &str| metrics.get(format!("{prefix}{key}")).and_then(Value::as_u64);
    let (input, output) = (count("prompt_tokens"), count("completion_tokens"));
    let cached = count("cached_tokens").unwrap_or(0);
    let is_reported = input.is_some() || output.is_some();
    let tokens = is_reported.then(|| Tokens {
        input: input.unwrap_or(0).saturating_sub(cached),
        cache_read: cached,
        output: output.unwrap_or(0),
        ..Tokens::default()
    });
    Usage { tokens, cost_usd: metrics.get(format!("{prefix}cost_usd")).and_then(Value::as_f64) }
}

fn final_usage(metrics: &Value) -> Usage {
    usage(metrics, "total_")
}
