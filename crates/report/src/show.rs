//! One trial in full: the conversation, the tool calls, the findings.

mod pair;
mod patch;
mod steps;

use model::{Change, Envelope, Event, FileChange, SideEffects, TrialRecord};
use serde_json::{Value, json};

use crate::format::{elapsed, in_parentheses, model_traffic, model_usage, span, timestamp, version};
use crate::terminal::{Paint, Style, result, verdict};
use crate::trial_json;
use crate::{agent_output, plain};
pub use pair::{show_step, show_two};
pub use patch::show_diff;
use steps::steps;

/// Maximum number of lines shown for a string.
const LINES: usize = 40;

/// Formats a trial's trace, findings and settings. `events` are the trial's own; if it had several attempts, the last
/// one is shown. `run` is the name of the run.
pub fn show(record: &TrialRecord, events: &[Envelope], run: &str, style: &Style) -> String {
    let paint = Paint::new(*style);
    let mut text = format!("{}  {}\n", paint.bold(&record.id), verdict(record, &paint));
    if let Some(reason) = &record.reason {
        text.push_str(&format!("{}\n", paint.folded(reason, 300)));
    }
    text.push_str(&format!("{}\n", paint.dim(&format!("run {run}, {}", timestamp(record.started_at)))));
    text.push_str(&about(record, &paint));

    text.push_str(&heading("conversation", &paint));
    for (index, step) in steps(record, events, &paint).iter().enumerate() {
        let time = step.at.map_or_else(String::new, |index| format!(" {:>5}", elapsed(index)));
        text.push_str(&format!("  {} {}\n", paint.dim(&format!("{:>3}{time}", index + 1)), step.head));
        text.push_str(&block(&step.body, LINES, &paint));
        text.push_str(&block(&step.input, usize::MAX, &paint));
    }

    // An output that equals the answer is already shown in the conversation.
    let is_said = |output: &Value| output.as_str().is_some_and(|output| record.answer.as_deref() == Some(output));
    if let Some(output) = agent_output::output(record).filter(|output| !is_said(output)) {
        text.push_str(&heading("output", &paint));
        text.push_str(&block(&serde_json::to_string_pretty(output).unwrap_or_default(), LINES, &paint));
    }

    text.push_str(&heading("findings", &paint));
    text.push_str(&result(record, style));

    if let Some(network) = &record.network {
        text.push_str(&heading("network", &paint));
        text.push_str(&format!("  {} {}\n", paint.dim("policy"), paint.folded(network, 400)));
        for attempt in &record.egress {
            text.push_str(&format!("  {}\n", paint.folded(&attempt.describe(), 400)));
        }
    }

    if !record.files_changed.is_empty() {
        text.push_str(&heading("files changed", &paint));
        for file in &record.files_changed {
            text.push_str(&changed(file, &paint));
        }
    }
    if !record.side_effects.is_empty() {
        text.push_str(&heading("left on remotes", &paint));
        for effects in &record.side_effects {
            text.push_str(&format!("  {}\n", paint.folded(&remote(effects), 400)));
        }
    }
    text
}

/// Returns the trial as JSON with the field names of the report, together with its run and its steps.
pub fn show_json(record: &TrialRecord, events: &[Envelope], run: &str) -> Value {
    let steps: Vec<Value> = events
        .iter()
        .filter_map(|envelope| match &envelope.event {
            Event::Step(step) => Some(json!({ "at": envelope.at, "attempt": envelope.attempt, "step": step })),
            _ => None,
        })
        .collect();
    let mut shown = trial_json(record);
    if let Some(fields) = shown.as_object_mut() {
        fields.insert("run".into(), run.into());
        fields.insert("steps".into(), steps.into());
    }
    shown
}

/// Formats the durations of a trial: the total, the agent's, and those of the phases that took time.
fn times(record: &TrialRecord) -> String {
    let phases = record.phases.named().into_iter().filter(|(_, ms)| *ms > 0);
    let phases: Vec<String> = phases.map(|(name, ms)| format!("{name} {}", elapsed(ms))).collect();
    let agent = elapsed(record.agent_ms.unwrap_or(0));
    let phases = if phases.is_empty() { String::new() } else { format!(" ({})", phases.join(", ")) };
    format!("{}, the agent {agent}{phases}", elapsed(record.duration_ms))
}

fn about(record: &TrialRecord, paint: &Paint) -> String {
    let mut rows: Vec<(&str, String)> = Vec::new();
    let mut row = |name, value: Option<String>| rows.extend(value.map(|value| (name, value)));
    row("agent", Some(record.agent.clone() + &version(record.agent_version.as_deref())));
    row("model", record.model.clone());
    row("signed in", record.auth.clone());
    row("session", record.session_id.clone());
    row("skill", record.skill.as_ref().map(|skill| skill.name.clone() + &version(skill.version.as_deref())));
    row("skill used", record.triggered.map(|triggered| used(triggered, record.should_trigger)));
    row("content", record.skill.as_ref().map(|skill| format!("sha256 {}", skill.content_hash)));
    let limits = &record.limits;
    let mut caps = Vec::new();
    if limits.max_turns > 0 {
        caps.push(format!("{} turns{}", limits.max_turns, if limits.max_turns_set { "" } else { " (only warns)" }));
    }
    if let Some(budget) = limits.token_budget {
        let from = in_parentheses(limits.token_budget_from.as_deref());
        caps.push(format!("{budget} tokens{from}"));
    }
    if limits.timeout_ms > 0 {
        caps.push(span(limits.timeout_ms));
    }
    let judge = record.settings.get("judge").and_then(setting);
    row(
        "judge",
        record.judge.as_ref().map(|took| paint.join(&judge.into_iter().chain([model_usage(took)]).collect::<Vec<_>>())),
    );
    row("time", Some(times(record)).filter(|_| record.agent_ms.is_some()));
    row("user", record.user.as_ref().map(model_usage));
    row("gateway", record.model_traffic.as_deref().map(model_traffic));
    row("limits", (!caps.is_empty()).then(|| paint.join(&caps)));
    for (name, value) in record.settings.iter().filter(|(name, _)| *name != "judge") {
        row(name, setting(value));
    }
    row("script", record.script.clone());
    row("tools", tools(&record.tools));
    row(
        "input",
        agent_output::some(record.input_value.as_ref()).filter(|input| !is_said(input, record)).map(Value::to_string),
    );
    row("expected", agent_output::some(record.expected.as_ref()).map(Value::to_string));
    row("vars", record.vars.as_ref().map(|vars| Value::Object(vars.clone()).to_string()));
    row("not", record.not.then(|| "passes if its assertions do not hold".to_owned()));
    row("case", record.position.map(|position| format!("number {} of its file", position + 1)));
    row("ending", record.ending.as_ref().map(model::Ending::describe));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    rows.iter()
        .map(|(name, value)| {
            let value = paint.folded(value, 400);
            format!("  {} {value}\n", paint.dim(&format!("{name:<width$}")))
        })
        .collect()
}

/// Describes whether the agent used the skill, and whether the case expects that.
fn used(triggered: bool, wanted: Option<bool>) -> String {
    let used = if triggered { "yes" } else { "no" };
    match wanted {
        None => used.to_owned(),
        Some(wanted) if wanted == triggered => format!("{used}, as it should be"),
        Some(true) => format!("{used}, and it should have been"),
        Some(false) => format!("{used}, and it should not have been"),
    }
}

/// Formats side effects as `https://host/a.git: branches one, two; review request 7`.
pub(crate) fn remote(effects: &SideEffects) -> String {
    let mut parts = Vec::new();
    if !effects.branches.is_empty() {
        let noun = if effects.branches.len() == 1 { "branch" } else { "branches" };
        parts.push(format!("{noun} {}", effects.branches.join(", ")));
    }
    if !effects.review_requests.is_empty() {
        let noun = if effects.review_requests.len() == 1 { "review request" } else { "review requests" };
        let numbers: Vec<String> = effects.review_requests.iter().map(u64::to_string).collect();
        parts.push(format!("{noun} {}", numbers.join(", ")));
    }
    format!("{}: {}", effects.remote, parts.join("; "))
}

/// Returns the names of the tools, if there are any.
fn tools(tools: &[Value]) -> Option<String> {
    let name = |tool: &Value| {
        let name = tool.get("name").unwrap_or(tool);
        name.as_str().map_or_else(|| name.to_string(), str::to_owned)
    };
    (!tools.is_empty()).then(|| tools.iter().map(name).collect::<Vec<_>>().join(", "))
}

/// Returns `true` if the value is the message itself, which the conversation already shows.
fn is_said(input: &Value, record: &TrialRecord) -> bool {
    record.input.iter().any(|message| input.as_str() == Some(message.as_str()))
}

/// Formats a setting; `None` if it is not set.
fn setting(value: &Value) -> Option<String> {
    match value {
        Value::Null => None,
        Value::Array(items) if items.is_empty() => Some("none".to_owned()),
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let items = items.iter().map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned));
            Some(items.collect::<Vec<_>>().join(", "))
        }
        other => Some(other.to_string()),
    }
}

/// Returns at most `most` lines of `text`, each after a vertical bar.
fn block(text: &str, most: usize, paint: &Paint) -> String {
    let (lines, hidden) = plain::some_lines(text.trim_end(), most);
    let bar = paint.dim(paint.symbols().bar);
    let mut block: String =
        lines.iter().map(|line| format!("          {bar} {line}").trim_end().to_owned() + "\n").collect();
    if hidden > 0 {
        let note = format!("({hidden} more lines; the step alone has all)");
        block.push_str(&format!("          {}\n", paint.dim(&note)));
    }
    block
}

fn changed(file: &FileChange, paint: &Paint) -> String {
    let path = paint.folded(&file.path, 400);
    match file.change {
        Change::Added => format!("  {}\n", paint.green(&format!("+ {path}"))),
        Change::Modified => format!("  {}\n", paint.yellow(&format!("~ {path}"))),
        Change::Deleted => format!("  {}\n", paint.red(&format!("- {path}"))),
    }
}

fn heading(name: &str, paint: &Paint) -> String {
    format!("\n{}\n", paint.bold(name))
}
