//! Trajectories in the Agent Trajectory Interchange Format (ATIF), one file for each trial. Other tools read the format
//! for analysis and training; the `recorded` agent reads it too.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp;
use model::{Envelope, Event, Step, Tokens, ToolCall, TrialRecord};
use serde_json::{Map, Value, json};

use crate::Reporter;
use crate::artifacts::folder_name;

/// Version of the format.
const SCHEMA_VERSION: &str = "ATIF-v1.8";

/// Version of an agent that does not report one. The format requires a version.
const UNKNOWN_VERSION: &str = "unknown";

struct AtifReporter {
    folder: PathBuf,
    has_several_suites: bool,
    trials: HashMap<Arc<str>, Trajectories>,
}

/// Opens the report, which writes to `folder`.
pub(crate) fn open(folder: PathBuf) -> Box<dyn Reporter> {
    Box::new(AtifReporter { folder, has_several_suites: false, trials: HashMap::new() })
}

impl Reporter for AtifReporter {
    fn event(&mut self, envelope: &Envelope) -> io::Result<()> {
        match (&envelope.event, &envelope.trial) {
            (Event::RunStarted(info), _) => {
                self.has_several_suites = info.trials.iter().any(|trial| trial.suite != info.trials[0].suite);
            }
            // Only the last attempt counts.
            (Event::TrialRetried { .. }, Some(trial)) => drop(self.trials.remove(trial)),
            (Event::Step(step), Some(trial)) => {
                self.trials.entry(Arc::clone(trial)).or_default().add(step, envelope.at);
            }
            (Event::TrialFinished(record), _) => {
                let trajectories = self.trials.remove(&record.id).unwrap_or_default();
                let file = self.folder.join(self.file_name(record));
                fs::write(file, serde_json::to_vec_pretty(&trajectories.document(record))?)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl AtifReporter {
    fn file_name(&self, record: &TrialRecord) -> String {
        let suite = if self.has_several_suites { format!("{}--", folder_name(&record.suite)) } else { String::new() };
        format!("{suite}{}@{}-{}.json", folder_name(&record.case), folder_name(&record.arm), record.repetition)
    }
}

/// The trajectory of a trial, and those of its sub-agents by the calls that started them.
#[derive(Default)]
struct Trajectories {
    /// Model and version that the agent reports.
    model: Option<String>,
    version: Option<String>,
    /// Reason why there may be calls that are not in the trajectory.
    calls_missing: Option<String>,
    own: Trajectory,
    sub_agents: BTreeMap<String, Trajectory>,
}

#[derive(Default)]
struct Trajectory {
    steps: Vec<TrajectoryStep>,
}

struct TrajectoryStep {
    at: Timestamp,
    kind: StepKind,
}

enum StepKind {
    User(String),
    Agent(AgentStep),
}

/// A message of the model, with the results of its calls.
#[derive(Default)]
struct AgentStep {
    /// Id of the message.
    message: String,
    text: String,
    reasoning: String,
    calls: Vec<ToolCall>,
    /// Results by the index of the call.
    results: BTreeMap<usize, (String, bool)>,
}

impl Trajectories {
    fn add(&mut self, step: &Step, at: Timestamp) {
        match step {
            Step::Session { model, agent_version, .. } => {
                self.model = self.model.take().or_else(|| model.clone());
                self.version = self.version.take().or_else(|| agent_version.clone());
            }
            Step::CallsMissing { reason } => {
                self.calls_missing.get_or_insert_with(|| reason.clone());
            }
            Step::UserMessage { text, .. } => {
                self.own.steps.push(TrajectoryStep { at, kind: StepKind::User(text.clone()) });
            }
            Step::Text { message, text, parent } => {
                append(&mut self.of(parent.as_ref()).message(message, at).text, text);
            }
            Step::Thinking { message, text, parent } => {
                append(&mut self.of(parent.as_ref()).message(message, at).reasoning, text);
            }
            Step::ToolCall(call) => {
                let parent = call.parent.as_ref();
                self.of(parent).message(&call.message, at).calls.push(call.clone());
            }
            Step::ToolResult(result) => {
                let all = std::iter::once(&mut self.own).chain(self.sub_agents.values_mut());
                let mut steps = all.flat_map(|trajectory| trajectory.steps.iter_mut().rev());
                let _ = steps.find_map(|step| match &mut step.kind {
                    StepKind::Agent(step) => {
                        let index = step.calls.iter().position(|call| call.id == result.id)?;
                        step.results.insert(index, (result.content.clone(), result.is_error));
                        Some(())
                    }
                    StepKind::User(_) => None,
                });
            }
            _ => {}
        }
    }

    /// Returns the trajectory of the agent, or of the sub-agent that the call `parent` started.
    fn of(&mut self, parent: Option<&String>) -> &mut Trajectory {
        match parent {
            Some(call) => self.sub_agents.entry(call.clone()).or_default(),
            None => &mut self.own,
        }
    }

    fn document(&self, record: &TrialRecord) -> Value {
        let agent = |name: &str| {
            let mut agent = json!({
                "name": name,
                "version": self.version.as_deref().or(record.agent_version.as_deref()).unwrap_or(UNKNOWN_VERSION),
            });
            set(&mut agent, "model_name", self.model.as_deref().or(record.model.as_deref()));
            agent
        };
        let mut document = json!({
            "schema_version": SCHEMA_VERSION,
            "trajectory_id": &*record.id,
            "agent": agent(&record.agent),
            "steps": self.own.document(&self.sub_agents),
            "extra": {"trialrun": {
                "suite": &*record.suite,
                "case": &*record.case,
                "arm": &*record.arm,
                "repetition": record.repetition,
                "outcome": record.outcome.name(),
                "ending": record.ending,
                "answer": record.answer,
                "calls_unreported": record.calls_unreported,
                "calls_missing": self.calls_missing,
            }},
        });
        set(&mut document, "session_id", record.session_id.as_deref());
        if let Some(metrics) = final_metrics(record) {
            document["final_metrics"] = metrics;
        }
        if !self.sub_agents.is_empty() {
            let embedded = self.sub_agents.iter().map(|(call, trajectory)| {
                json!({
                    "schema_version": SCHEMA_VERSION,
                    "trajectory_id": call,
                    "agent": agent("sub-agent"),
                    "steps": trajectory.document(&self.sub_agents),
                })
            });
            document["subagent_trajectories"] = embedded.collect();
        }
        document
    }
}

impl Trajectory {
    /// Returns the step for the message of the model with the id `message`.
    fn message(&mut self, message: &str, at: Timestamp) -> &mut AgentStep {
        let is_same = |step: &TrajectoryStep| match &step.kind {
            StepKind::Agent(step) => step.message == message,
            StepKind::User(_) => false,
        };
        let known = self.steps.iter().rposition(is_same);
        let index = known.unwrap_or_else(|| {
            let step = AgentStep { message: message.to_owned(), ..AgentStep::default() };
            self.steps.push(TrajectoryStep { at, kind: StepKind::Agent(step) });
            self.steps.len() - 1
        });
        match &mut self.steps[index].kind {
            StepKind::Agent(step) => step,
            StepKind::User(_) => unreachable!("the step was found by its message"),
        }
    }

    fn document(&self, sub_agents: &BTreeMap<String, Trajectory>) -> Vec<Value> {
        let numbered = self.steps.iter().zip(1..);
        numbered
            .map(|(step, id): (_, usize)| {
                let mut written = json!({"step_id": id, "timestamp": step.at.to_string()});
                match &step.kind {
                    StepKind::User(text) => {
                        written["source"] = json!("user");
                        written["message"] = json!(text);
                    }
                    StepKind::Agent(step) => step.write(&mut written, sub_agents),
                }
                written
            })
            .collect()
    }
}

impl AgentStep {
    fn write(&self, written: &mut Value, sub_agents: &BTreeMap<String, Trajectory>) {
        written["source"] = json!("agent");
        written["message"] = json!(self.text);
        set(written, "reasoning_content", Some(self.reasoning.as_str()).filter(|text| !text.is_empty()));
        if self.calls.is_empty() {
            return;
        }
        let calls = self.calls.iter().map(|call| {
            let mut written =
                json!({"tool_call_id": call.id, "function_name": call.name, "arguments": arguments(&call.input)});
            if call.raw_name != call.name {
                written["extra"] = json!({"raw_name": call.raw_name});
            }
            written
        });
        written["tool_calls"] = calls.collect();
        let results = self.calls.iter().enumerate().filter_map(|(index, call)| {
            let result = self.results.get(&index);
            let started = sub_agents.contains_key(&call.id);
            if result.is_none() && !started {
                return None;
            }
            let mut written = json!({"source_call_id": call.id});
            if let Some((content, is_error)) = result {
                written["content"] = json!(content);
                if *is_error {
                    written["extra"] = json!({"is_error": true});
                }
            }
            if started {
                written["subagent_trajectory_ref"] = json!([{"trajectory_id": call.id}]);
            }
            Some(written)
        });
        let results: Vec<Value> = results.collect();
        if !results.is_empty() {
            written["observation"] = json!({"results": results});
        }
    }
}

/// Appends a further part of a message.
fn append(text: &mut String, more: &str) {
    if !text.is_empty() && !more.is_empty() {
        text.push('\n');
    }
    text.push_str(more);
}

/// Returns the arguments of a call. The format requires an object.
fn arguments(input: &Value) -> Value {
    match input {
        Value::Object(_) => input.clone(),
        Value::Null => Value::Object(Map::new()),
        other => json!({"input": other}),
    }
}

fn set(map: &mut Value, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        map[key] = json!(value);
    }
}

/// Returns the usage of a trial; `None` if it is unknown.
fn final_metrics(record: &TrialRecord) -> Option<Value> {
    let mut metrics = Map::new();
    if let Some(Tokens { output, cache_read, .. }) = record.usage {
        let input = record.usage.map_or(0, |used| used.all_input());
        metrics.insert("total_prompt_tokens".to_owned(), json!(input));
        metrics.insert("total_completion_tokens".to_owned(), json!(output));
        metrics.insert("total_cached_tokens".to_owned(), json!(cache_read));
    }
    metrics.extend(record.cost_usd.map(|cost| ("total_cost_usd".to_owned(), json!(cost))));
    (!metrics.is_empty()).then_some(Value::Object(metrics))
}
