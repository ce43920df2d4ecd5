//! Configuration of spans, `traces`.

use std::time::Duration;

use model::decode::{self, Fields, Problems};
use model::{Node, NodeKind};

/// How long to wait for the spans of a reply by default: twice the interval at which programs usually export.
const WAIT_MS: u64 = 10_000;
/// Maximum of that time.
const MAX_WAIT_MS: u64 = 120_000;

/// Port to which programs send their spans by default.
pub(crate) const SPAN_PORT: u16 = 4318;

/// Configuration of spans.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TraceSettings {
    /// How long to wait for spans after an answer.
    pub(crate) wait: Duration,
    /// Port on which to receive them, for a program that trialrun does not start.
    pub(crate) port: Option<u16>,
    /// True if only one conversation at a time may use the agent, because its program does not pass on trace ids.
    pub(crate) one_at_a_time: bool,
}

/// Keys that apply to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TraceKeys {
    /// Each conversation has a process of its own.
    OwnProcess,
    /// All conversations share a process.
    SharedProcess,
}

impl TraceSettings {
    /// Settings of an agent that only enables spans.
    pub(crate) const USUAL: Self = Self { wait: Duration::from_millis(WAIT_MS), port: None, one_at_a_time: false };

    /// Reads `traces`. Returns `None` if it has errors, which are added to `problems`.
    pub(crate) fn read(node: &Node, keys: TraceKeys, problems: &mut Problems) -> Option<Self> {
        const KINDS: [(&str, ()); 1] = [("otlp", ())];
        if !matches!(node.kind, NodeKind::Map(_)) {
            return decode::choice(node, "`traces`", &KINDS, problems).map(|()| Self::USUAL);
        }
        let before = problems.len();
        let mut fields = Fields::of(node, "`traces`", problems)?.in_either_case();
        if let Some(kind) = fields.require("type", problems) {
            decode::choice(kind, "`type`", &KINDS, problems);
        }
        let wait = fields.duration_ms("wait", problems).unwrap_or(WAIT_MS);
        if let Some(node) = fields.get("wait").filter(|_| wait > MAX_WAIT_MS) {
            problems.push(node.error(format!("`wait` must be at most {} s", MAX_WAIT_MS / 1000)));
        }
        let (mut port, mut one_at_a_time) = (None, None);
        if keys == TraceKeys::SharedProcess {
            port = fields.whole("port", 1, problems);
            one_at_a_time = fields.boolean("one_at_a_time", problems);
        }
        fields.finish(problems);
        let port = match port.map(u16::try_from) {
            Some(Err(_)) => {
                problems.push(node.error("`port` must be a number from 1 to 65535"));
                return None;
            }
            Some(Ok(port)) => Some(port),
            None => None,
        };
        let read = Self { wait: Duration::from_millis(wait), port, one_at_a_time: one_at_a_time.unwrap_or(false) };
        (problems.len() == before).then_some(read)
    }
}
