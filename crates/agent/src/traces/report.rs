//! What the spans of a reply show, and its record.

use std::time::Duration;

use model::text::shortened;
use model::{Ending, Step, Usage};
use spans::{Span, SpanTrace, trace_from_spans};

use crate::turn::Turn;

/// Maximum number of calls whose spans are named.
const SHOWN_CALLS: usize = 20;
/// Maximum number of spans of no known convention that are named.
const SHOWN_SPANS: usize = 5;
/// Maximum length of a name that is shown, in characters.
const SHOWN_NAME: usize = 100;
/// Message of an answer to which no model request belongs.
const ANSWER: &str = "answer";

/// What the spans of a reply show.
#[derive(Debug)]
pub(crate) struct SpanReport {
    trace: SpanTrace,
    received: usize,
    missing: Missing,
}

/// What an answer says about the tool calls of a reply.
pub(crate) struct AnswerCalls<'a> {
    /// Text of the answer.
    pub(crate) text: Option<&'a str>,
    /// True if the answer lists its calls.
    pub(crate) are_listed: bool,
    /// Names of the tools in the list.
    pub(crate) tools: Vec<&'a str>,
}

impl AnswerCalls<'_> {
    /// Records the steps of a reply as far as its spans show them, if they are received. Returns `false` if the steps in
    /// the answer are to be recorded instead.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    pub(crate) async fn record(&self, report: Option<&SpanReport>, turn: &mut Turn) -> Result<bool, Ending> {
        match report {
            Some(report) if report.shows_calls(self.are_listed) => {
                report.record(self.text, &self.tools, turn).await?;
                return Ok(true);
            }
            Some(report) => {
                report.record_origin(turn)?;
                if let Some(reason) = report.reason().filter(|_| !self.are_listed) {
                    turn.record(Step::CallsMissing { reason })?;
                }
            }
            None if !self.are_listed => turn.record(Step::CallsUnreported)?,
            None => {}
        }
        Ok(false)
    }
}

/// What is known about spans that are missing.
#[derive(Debug, Default)]
pub(super) struct Missing {
    /// True if there were more than can be kept.
    pub(super) is_full: bool,
    /// Number of spans whose conversation is not known.
    pub(super) strays: usize,
    /// Number of spans that arrived too late for their message.
    pub(super) late: usize,
    /// Reasons why requests could not be read.
    pub(super) unread: Vec<String>,
    /// How long they were waited for in vain.
    pub(super) waited: Option<Duration>,
    /// Hint about the address to which the program must export them.
    pub(super) place: String,
    /// True if spans were attributed to the conversation because it was the only one.
    pub(super) is_foreign: bool,
}

impl SpanReport {
    pub(super) fn new(spans: &[Span], missing: Missing) -> Self {
        Self { trace: trace_from_spans(spans), received: spans.len(), missing }
    }

    /// Returns `true` if the calls of the reply are those in the spans, and not those that the answer lists.
    /// `are_listed` is true if the answer lists its calls.
    fn shows_calls(&self, are_listed: bool) -> bool {
        self.reason().is_none() || (!are_listed && self.trace.sources.len() + self.trace.model_requests > 0)
    }

    /// Returns the reason why there may be calls that the spans do not show.
    fn reason(&self) -> Option<String> {
        let Missing { is_full, strays, unread, waited, place, .. } = &self.missing;
        if *is_full {
            return Some("the bot sent more spans for one reply than trialrun keeps (64 MiB, 20,000 spans)".to_owned());
        }
        if let Some(reason) = unread.first() {
            return Some(format!("spans that the bot sent could not be read: {reason}"));
        }
        if *strays > 0 {
            return Some(format!(
                "the bot sent {strays} spans that may belong to this trial or to another one, because it does not pass on \
                 the trace id in `traceparent`; set `one_at_a_time: true` in `traces`"
            ));
        }
        if self.received > 0 {
            return self.trace.incomplete.clone();
        }
        let within = waited.map(|waited| format!(" within {} s after its answer", waited.as_secs_f64()));
        Some(format!("the bot sent no spans{}; does it export them to {place}?", within.unwrap_or_default()))
    }

    /// Records the model requests and tool calls of a reply with the answer `text`, and where they come from. `listed`
    /// are the names of the calls that the answer lists.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    async fn record(&self, text: Option<&str>, listed: &[&str], turn: &mut Turn) -> Result<(), Ending> {
        self.record_origin(turn)?;
        let shown: Vec<&str> = self.trace.sources.iter().map(|source| source.tool.as_str()).collect();
        for name in listed.iter().filter(|name| !shown.contains(name)) {
            turn.warn(format!("the answer lists a call of `{name}`, and the spans of the bot do not show one"));
        }
        if let Some(reason) = self.reason() {
            turn.record(Step::CallsMissing { reason })?;
        }
        if let Some(model) = &self.trace.model {
            let (session_id, agent_version, auth) = (None, None, None);
            turn.record(Step::Session {
                session_id,
                model: Some(model.clone()),
                agent_version,
                tools: Vec::new(),
                auth,
            })?;
        }
        // What the model said is not an answer if its program did not pass it on.
        let text = text.filter(|text| !text.trim().is_empty());
        let is_silent = text.is_none() && listed.is_empty();
        if is_silent {
            turn.observes_only();
        }
        // Yields from time to time, so that the trial's timeout is checked even during long traces.
        for step in &self.trace.steps {
            tokio::task::consume_budget().await;
            turn.check_stop()?;
            turn.record(match step {
                Step::Text { message, parent: None, .. } if is_silent => {
                    Step::Text { message: message.clone(), text: String::new(), parent: None }
                }
                _ => step.clone(),
            })?;
        }
        if let (Some(text), Some(message)) = (text, self.message_of_answer()) {
            turn.record(Step::Text { message, text: text.to_owned(), parent: None })?;
        }
        Ok(())
    }

    /// Returns the message that the answer belongs to; `None` if the spans contain its text.
    fn message_of_answer(&self) -> Option<String> {
        let own = |step: &&Step| match step {
            Step::Text { parent, .. } => parent.is_none(),
            Step::ToolCall(call) => call.parent.is_none(),
            _ => false,
        };
        let message = |step: &Step| match step {
            Step::Text { message, .. } => Some(message.clone()),
            Step::ToolCall(call) => Some(call.message.clone()),
            _ => None,
        };
        let Some(last) = self.trace.steps.iter().rev().find(own).and_then(message) else {
            return Some(ANSWER.to_owned());
        };
        let has_text = |step: &Step| matches!(step, Step::Text { message, text, .. } if *message == last && !text.trim().is_empty());
        (!self.trace.steps.iter().any(has_text)).then_some(last)
    }

    /// Records where the calls of a reply come from, or that no span shows them.
    ///
    /// # Errors
    /// Returns the ending with which the agent must stop now.
    fn record_origin(&self, turn: &mut Turn) -> Result<(), Ending> {
        if self.missing.late > 0 {
            turn.warn(format!(
                "{} spans are ignored: they are in the trace of an earlier message, or ended before this one was sent; raise \
                 `wait` in `traces` if the bot sends its spans late",
                self.missing.late
            ));
        }
        for reason in &self.missing.unread {
            turn.warn(format!("spans that the bot sent could not be read: {reason}"));
        }
        if self.received == 0 {
            return Ok(());
        }
        turn.record(Step::Notice { from: "harness".to_owned(), text: self.origin() })
    }

    /// Describes where the calls come from.
    fn origin(&self) -> String {
        let trace = &self.trace;
        let number = |count: usize, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut lines = vec![format!(
            "{} with {} and {}",
            number(self.received, "span"),
            number(trace.model_requests, "model request"),
            number(trace.sources.len(), "tool call")
        )];
        let short = |name: &str| shortened(name, SHOWN_NAME);
        let libraries = trace.conventions.iter().take(SHOWN_SPANS);
        lines.extend(libraries.map(|(convention, scope)| format!("{convention}, by {}", short(scope))));
        for source in trace.sources.iter().take(SHOWN_CALLS) {
            let (id, name) = (short(&source.span.to_string()), short(&source.span_name));
            lines.push(format!("call of `{}`: span {id} ({name})", short(&source.tool)));
        }
        if trace.sources.len() > SHOWN_CALLS {
            lines.push(format!("{} more calls", trace.sources.len() - SHOWN_CALLS));
        }
        if !trace.unknown.is_empty() {
            let names: Vec<String> =
                trace.unknown.iter().take(SHOWN_SPANS).map(|name| format!("`{}`", short(name))).collect();
            let more = if trace.unknown.len() > SHOWN_SPANS { ", …" } else { "" };
            lines.push(format!("spans that follow no convention for agents: {}{more}", names.join(", ")));
        }
        if self.missing.is_foreign {
            lines.push(
                "attributed by time: their trace is not that of the message, and no other trial waited for spans"
                    .to_owned(),
            );
        }
        if let Some(waited) = self.missing.waited {
            lines.push(format!("none of them is the whole reply, so more were awaited for {} s", waited.as_secs_f64()));
        }
        lines.extend(trace.notes.iter().cloned());
        lines.join("\n")
    }

    /// Returns the usage that the spans contain.
    pub(crate) fn usage(&self) -> Usage {
        self.trace.usage
    }
}
