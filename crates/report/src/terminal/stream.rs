//! View of a single trial or job: everything that an agent does, as it happens.

use std::collections::HashMap;

use jiff::Timestamp;
use model::{AgentInfo, Effect, EgressVerdict, Envelope, Event, Question, Step, ToolCall, ToolResult, Usage};

use super::{Detail, Paint, call, result, waiting_for};
use crate::format::{between, counted, elapsed, money, number, span, version};
use crate::names::Names;
use crate::plain;

const TEXT: usize = 180;
const RESULT: usize = 120;

/// View of a run whose trials run one after another.
pub(super) struct Stream {
    paint: Paint,
    detail: Detail,
    names: Names,
    /// Agents and their versions.
    versions: HashMap<String, String>,
    /// Start of the attempt.
    since: Timestamp,
    /// Calls of the attempt, by id.
    calls: HashMap<String, ShownCall>,
    /// Number of the user's messages that were known when the trial started.
    shown_messages: usize,
}

struct ShownCall {
    call: ToolCall,
    /// `true` if its line was written. For a question, only the question is written, not the call.
    is_shown: bool,
    depth: usize,
}

impl Stream {
    pub(super) fn new(paint: Paint, detail: Detail, names: Names, agents: &[AgentInfo]) -> Self {
        let known = |agent: &AgentInfo| Some((agent.name.clone(), agent.version.clone()?));
        let versions = agents.iter().filter_map(known).collect();
        Self { paint, detail, names, versions, since: Timestamp::UNIX_EPOCH, calls: HashMap::new(), shown_messages: 0 }
    }

    pub(super) fn event(&mut self, envelope: &Envelope) -> String {
        let paint = self.paint;
        let symbols = paint.symbols();
        match &envelope.event {
            Event::TrialStarted { id, agent, model, subject, file, messages, script, .. } => {
                self.since = envelope.at;
                self.calls.clear();
                self.shown_messages = messages.len();
                let again = envelope.attempt.filter(|attempt| *attempt > 1);
                let again = again.map_or_else(String::new, |attempt| format!(" (attempt {attempt})"));
                let version = version(self.versions.get(agent).map(String::as_str));
                let mut about = vec![file.to_string(), format!("{agent}{version}")];
                about.extend(model.clone());
                about.extend(subject.as_ref().map(|subject| {
                    subject
                        .strip_prefix("inline:")
                        .map_or_else(|| format!("skill {subject}"), |_| "inline prompt".into())
                }));
                about.extend(script.as_ref().map(|script| format!("script {}", paint.one_line(script, TEXT))));
                let mut text =
                    format!("\n{} {}{again}\n", paint.cyan(symbols.trial), paint.bold(&self.names.of_id(id)));
                text.push_str(&format!("  {}\n", paint.dim(&paint.join(&about))));
                if let [only] = &messages[..] {
                    text.push_str(&format!("  {}\n", paint.dim(&format!("prompt: {}", self.prompt(only)))));
                } else {
                    for (index, message) in messages.iter().enumerate() {
                        let line = format!("prompt {}: {}", index + 1, self.prompt(message));
                        text.push_str(&format!("  {}\n", paint.dim(&line)));
                    }
                }
                text
            }
            Event::SandboxReady { path, skill, duration_ms } => {
                let mut line = format!("sandbox {path} ({})", elapsed(*duration_ms));
                if let Some(skill) = skill {
                    line.push_str(&format!(" {} skill in {skill}", symbols.dot));
                }
                format!("  {}\n", paint.dim(&line))
            }
            Event::Step(step) => self.step(envelope.at, step),
            Event::Idle { idle_ms, on } => {
                let line = format!("{} idle for {}: waiting for {}", symbols.ellipsis, span(*idle_ms), waiting_for(on));
                self.line(envelope.at, 0, &paint.yellow(&line))
            }
            Event::TrialRetried { reason } => {
                let line = format!("{} tried again: {}", symbols.again, paint.folded(reason, TEXT));
                self.line(envelope.at, 0, &paint.yellow(&line))
            }
            Event::TrialFinished(record) => {
                format!("{}\n", result::draw(record, &self.names, &paint, self.detail).trim_end())
            }
            _ => String::new(),
        }
    }

    fn step(&mut self, at: Timestamp, step: &Step) -> String {
        let paint = self.paint;
        let symbols = paint.symbols();
        let folded = |text: &str| paint.folded(text, TEXT);
        match step {
            Step::Session { session_id: Some(id), .. } => {
                self.line(at, 0, &paint.dim(&format!("{} session {}", symbols.does, folded(id))))
            }
            // The number of messages is unknown if they are created during the trial.
            Step::UserMessage { index, text, .. } if *index > self.shown_messages => {
                let line = format!("{} [step {index}] {}", symbols.does, self.prompt(text));
                self.line(at, 0, &paint.magenta(&line))
            }
            Step::UserMessage { index, of, text } if *of > 1 => {
                let line = format!("{} [step {index}/{of}] {}", symbols.does, self.prompt(text));
                self.line(at, 0, &paint.magenta(&line))
            }
            Step::Text { text, parent, .. } if !text.trim().is_empty() => {
                let line = format!("{} {}", symbols.does, paint.italic(&format!("\"{}\"", folded(text))));
                self.line(at, self.depth(parent.as_ref()), &line)
            }
            Step::ToolCall(call) => self.called(at, call),
            Step::ToolResult(result) => self.answered(at, result),
            Step::Question(question) => self.asked(at, question),
            Step::PermissionAsked(request) => {
                let decision = if request.granted { "allowed" } else { "denied" };
                let line =
                    format!("? asked to use {}: {decision}, {}", folded(&request.tool), folded(&request.decided_by));
                self.line(at, 0, &paint.yellow(&line))
            }
            Step::PermissionDenied { tool, message, .. } => {
                let line = format!("! {} refused: {}", folded(tool), folded(message));
                self.line(at, 0, &paint.yellow(&line))
            }
            Step::Egress(attempt) if attempt.verdict == EgressVerdict::Refused => {
                self.line(at, 0, &paint.yellow(&format!("! network {}", folded(&attempt.describe()))))
            }
            Step::Retry { attempt, status, error, delay_ms } => {
                let status = status.map_or_else(String::new, |status| format!(" ({status})"));
                let delay = delay_ms.map_or_else(String::new, |delay| format!(", waits {}", elapsed(delay)));
                let line = format!("{} request retry {attempt}{status}: {}{delay}", symbols.again, folded(error));
                self.line(at, 0, &paint.yellow(&line))
            }
            Step::Fault(occurrence) => {
                self.line(at, 0, &paint.yellow(&format!("! fault: {}", folded(&occurrence.describe()))))
            }
            Step::MockCall(call) if call.verdict.is_notable() => {
                self.line(at, 0, &paint.yellow(&format!("! {}", folded(&call.describe()))))
            }
            Step::RequestCheck { step, met: false, reason } => {
                let line = format!("! request of script step {step}: {}", folded(reason));
                self.line(at, 0, &paint.red(&line))
            }
            Step::Notice { from, text } => {
                let from = if from == "stderr" { "agent" } else { from };
                let lines = plain::lines(text);
                let lines = lines.iter().filter(|line| !line.trim().is_empty());
                lines
                    .map(|line| self.line(at, 0, &paint.dim(&format!("[{from}] {}", paint.folded(line, TEXT)))))
                    .collect()
            }
            Step::Finished { subtype, is_error, usage, .. } => {
                let mut parts = vec![format!("{} finished ({})", symbols.done, folded(subtype))];
                parts.extend(spent(usage));
                let line = paint.join(&parts);
                self.line(at, 0, &if *is_error { paint.yellow(&line) } else { paint.green(&line) })
            }
            Step::Session { .. }
            | Step::UserMessage { .. }
            | Step::Text { .. }
            | Step::Thinking { .. }
            | Step::RequestCheck { .. }
            | Step::Egress(_)
            | Step::Mocks(_)
            | Step::MockCall(_)
            | Step::PermissionsReported
            | Step::CallsUnreported
            | Step::TokensUnreported
            | Step::CallsMissing { .. }
            | Step::Replied { .. } => String::new(),
        }
    }

    fn called(&mut self, at: Timestamp, made: &ToolCall) -> String {
        let depth = self.depth(made.parent.as_ref());
        // A question is shown together with its answer.
        let is_shown = made.effect != Effect::Ask;
        self.calls.insert(made.id.clone(), ShownCall { call: made.clone(), is_shown, depth });
        if is_shown { self.call_line(at, made, depth) } else { String::new() }
    }

    fn answered(&mut self, at: Timestamp, result: &ToolResult) -> String {
        let paint = self.paint;
        let symbols = paint.symbols();
        let Some(made) = self.calls.get(&result.id) else { return String::new() };
        let asked = made.call.effect == Effect::Ask;
        if asked && made.is_shown && !result.is_error {
            return String::new();
        }
        let (call, depth) = (made.call.clone(), made.depth);
        let mut text = if made.is_shown { String::new() } else { self.call_line(at, &call, depth) };
        let what = plain::first_line(&result.content, RESULT, symbols.ellipsis);
        let name = paint.folded(&call.name, 60);
        let result_line = if what.is_empty() { name } else { format!("{name}: {what}") };
        let more = match plain::more_lines(&result.content) {
            0 => String::new(),
            more => paint.dim(&format!(" (+{})", counted(more, "line"))),
        };
        let line = if result.is_error {
            format!("{} {result_line}{more}", paint.red(&format!("{} !err", symbols.answers)))
        } else {
            paint.dim(&format!("{} ok {result_line}", symbols.answers)) + &more
        };
        text.push_str(&self.line(at, depth, &line));
        text
    }

    fn asked(&mut self, at: Timestamp, question: &Question) -> String {
        let paint = self.paint;
        let symbols = paint.symbols();
        let made = question.call_id.as_ref().and_then(|id| self.calls.get_mut(id));
        let (name, depth) = match made {
            Some(made) => {
                made.is_shown = true;
                (made.call.name.clone(), made.depth)
            }
            None => ("AskUserQuestion".to_owned(), 0),
        };
        let answer = match &question.answer {
            Some(answer) => paint.folded(answer, TEXT),
            None => paint.yellow("no matching user_responses"),
        };
        let asked = paint.folded(&question.question, TEXT);
        let line = format!("{} {name} \"{asked}\" {} {answer}", paint.cyan("?"), symbols.arrow);
        self.line(at, depth, &line)
    }

    fn call_line(&self, at: Timestamp, made: &ToolCall, depth: usize) -> String {
        self.line(at, depth, &format!("{} {}", self.paint.symbols().does, call(made, &self.paint)))
    }

    /// Returns the nesting depth below the agent itself.
    fn depth(&self, parent: Option<&String>) -> usize {
        parent.map_or(0, |parent| self.calls.get(parent).map_or(1, |made| made.depth + 1))
    }

    fn line(&self, at: Timestamp, depth: usize, text: &str) -> String {
        let time = format!("{:>5}", elapsed(between(self.since, at)));
        format!("  {} {}{text}\n", self.paint.dim(&time), "  ".repeat(depth))
    }

    fn prompt(&self, text: &str) -> String {
        let lines = plain::lines(text).join(" | ");
        format!("\"{}\"", self.paint.folded(&lines, TEXT))
    }
}

fn spent(usage: &Usage) -> Vec<String> {
    let mut parts = Vec::new();
    parts.extend(usage.tokens.map(|tokens| format!("{} tokens", number(tokens.total()))));
    parts.extend(usage.cost_usd.map(money));
    parts
}
