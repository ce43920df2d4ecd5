//! Counts of the forwarded requests of one trial. Their number is not limited, so everything here is bounded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use llm::{AnswerReader, Block, PendingRequest, PendingRequests, Providers};
use model::{AuxiliaryUsage, ModelTraffic, Spread, millis};
use reqwest::Url;

use crate::program::Program;

/// Maximum number of durations that are kept.
const MOST_DURATIONS: usize = 10_000;
/// Maximum number of failed requests that are kept to recognise retries.
const MOST_FAILED: usize = 10_000;
/// Maximum number of names that are counted separately, and maximum length of a name.
const MOST_NAMES: usize = 100;
const LONGEST_NAME: usize = 200;
/// Maximum size of the tool calls and texts that are kept, in bytes.
const LARGEST_REPLIES: usize = 64 * 1024 * 1024;

/// Time after which a program may have given up a request that was not answered.
const PATIENCE: Duration = Duration::from_secs(30);

/// Purpose of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// For a message of the agent's own conversation.
    Main,
    /// For a message of a sub-agent.
    SubAgent,
    /// For another message.
    Side,
    /// Not for a message.
    Other,
}

impl Kind {
    /// Returns `true` if the agent cannot continue without the answer.
    fn is_of_agent(self) -> bool {
        matches!(self, Self::Main | Self::SubAgent)
    }
}

/// End of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum End {
    /// The answer is complete.
    Whole,
    /// The answer was cut, for this reason.
    Cut(String),
    /// The client left.
    Left,
}

/// A request.
pub(super) struct Asked {
    pub(super) kind: Kind,
    /// Address of the provider.
    pub(super) address: Arc<Url>,
    /// Value that identifies equal requests.
    pub(super) body: u64,
    /// True if the client declares that it repeats a request.
    pub(super) repeats: bool,
}

/// Counts of one trial.
pub(super) struct Traffic {
    pub(super) pending: PendingRequests,
    /// The agent's program, if only its requests for messages are forwarded.
    pub(super) program: OnceLock<Program>,
    providers: Providers,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    counted: ModelTraffic,
    usage: AuxiliaryUsage,
    first_bytes: Vec<u64>,
    totals: Vec<u64>,
    /// Requests that failed, to recognise retries.
    failed: HashSet<u64>,
    open: HashMap<u64, Open>,
    /// Tool calls and texts of the model.
    replied: Vec<Block>,
    size_of_replies: usize,
    /// True if an answer could not be read, so that they are not complete.
    is_blind: bool,
    failure: Option<String>,
    /// True if a request for a message failed, or got no answer for long.
    has_failed: bool,
}

/// A request without a complete answer.
struct Open {
    kind: Kind,
    address: Arc<Url>,
    body: u64,
    began: Instant,
    status: Option<u16>,
    /// Reader of the answer, if it is a message.
    reader: Option<AnswerReader>,
    /// Present until the answer begins.
    waiting: Option<PendingRequest>,
}

impl Traffic {
    /// Creates empty counts. The prices of `providers` determine costs.
    pub(super) fn new(providers: Providers) -> Self {
        let (pending, program) = (PendingRequests::default(), OnceLock::new());
        Self { pending, program, providers, state: Mutex::default() }
    }

    /// Counts a request and returns its number.
    pub(super) fn begin(&self, asked: Asked) -> u64 {
        let mut state = self.lock();
        let counted = &mut state.counted;
        counted.requests += 1;
        *match asked.kind {
            Kind::Main => &mut counted.main,
            Kind::SubAgent => &mut counted.sub_agents,
            Kind::Side => &mut counted.side,
            Kind::Other => &mut counted.other,
        } += 1;
        count(&mut counted.hosts, asked.address.host_str().unwrap_or_default());
        let number = counted.requests;
        if asked.repeats || state.failed.contains(&asked.body) {
            state.counted.retries += 1;
        }
        let waiting = Some(self.pending.begin(format!("request {number}")));
        let Asked { kind, address, body, .. } = asked;
        state
            .open
            .insert(number, Open { kind, address, body, began: Instant::now(), status: None, reader: None, waiting });
        number
    }

    /// Counts an answer from a cassette.
    pub(super) fn replayed(&self) {
        self.lock().counted.replayed += 1;
    }

    /// Counts the head of an answer. `reader` reads the rest of it, if it is a message.
    pub(super) fn answered(&self, number: u64, status: u16, reader: Option<AnswerReader>) {
        let mut state = self.lock();
        count(&mut state.counted.statuses, &status.to_string());
        if let Some(open) = state.open.get_mut(&number) {
            (open.status, open.reader) = (Some(status), reader);
        }
    }

    /// Counts a request that did not get an answer.
    pub(super) fn failed(&self, number: u64, reason: String) {
        let mut state = self.lock();
        count(&mut state.counted.statuses, "none");
        if let Some(open) = state.open.remove(&number) {
            state.fail(&open, reason);
        }
    }

    /// Reads part of an answer, before the client gets it.
    pub(super) fn arrived(&self, number: u64, bytes: &[u8]) {
        let mut state = self.lock();
        let Some(open) = state.open.get_mut(&number) else { return };
        let began = open.waiting.take().map(|_| millis(open.began.elapsed()));
        let is_message = open.kind != Kind::Other;
        let is_complete = open.reader.as_mut().is_some_and(|reader| {
            reader.take(bytes);
            reader.is_complete()
        });
        if let Some(first_byte) = began.filter(|_| is_message) {
            keep(&mut state.first_bytes, first_byte);
        }
        // The client may disconnect as soon as it has the last byte.
        if is_complete {
            self.close(&mut state, number, End::Whole);
        }
    }

    /// Returns `true` if the answer is complete. Its connection may still be open.
    pub(super) fn has_ended(&self, number: u64) -> bool {
        !self.lock().open.contains_key(&number)
    }

    /// Counts the end of an answer.
    pub(super) fn ended(&self, number: u64, end: End) {
        self.close(&mut self.lock(), number, end);
    }

    fn close(&self, state: &mut State, number: u64, end: End) {
        let Some(open) = state.open.remove(&number) else { return };
        let host = open.address.host_str().unwrap_or_default();
        if open.kind != Kind::Other {
            keep(&mut state.totals, millis(open.began.elapsed()));
        }
        if let Some(reader) = &open.reader {
            let reply = reader.so_far();
            state.is_blind |= !reader.is_readable() || (reply.is_none() && end == End::Whole);
            let reply = reply.unwrap_or_default();
            let cost = reply.cost_usd.or_else(|| self.providers.cost_at(&open.address, &reply.model, &reply.tokens?));
            state.usage += AuxiliaryUsage::from_answer(reply.tokens, cost);
            count(&mut state.counted.models, &reply.model);
            state.add(reply.content);
        }
        match (end, open.status) {
            (End::Cut(reason), _) => state.fail(&open, format!("the answer of {host} was cut: {reason}")),
            (_, Some(status)) if status >= 400 => {
                let is_the_providers = matches!(status, 408 | 409 | 429 | 500..);
                state.fail(&open, format!("{host} answered with HTTP {status}"));
                if !is_the_providers && open.kind.is_of_agent() {
                    state.failure = None;
                }
            }
            (_, _) if open.reader.as_ref().is_some_and(AnswerReader::reports_an_error) => {
                state.fail(&open, format!("{host} reported an error within its answer"));
            }
            (End::Whole, _) if open.kind.is_of_agent() => state.failure = None,
            (End::Left, _) => state.has_failed |= open.began.elapsed() >= PATIENCE,
            (End::Whole, _) => {}
        }
    }

    /// Returns the counts so far.
    pub(super) fn counted(&self) -> ModelTraffic {
        let state = self.lock();
        ModelTraffic {
            tokens: state.usage.tokens,
            cost_usd: state.usage.cost_usd,
            first_byte_ms: Spread::of(state.first_bytes.clone()),
            total_ms: Spread::of(state.totals.clone()),
            ..state.counted.clone()
        }
    }

    /// Returns all tool calls and texts of the model so far; `None` if they are not complete.
    pub(super) fn replied(&self) -> Option<Vec<Block>> {
        let state = self.lock();
        let messages = state.counted.requests - state.counted.other;
        if state.is_blind || messages == 0 {
            return None;
        }
        let open = state.open.values().filter_map(|open| open.reader.as_ref()?.so_far());
        let open = open.flat_map(|reply| reply.content).filter(is_kept);
        Some(state.replied.iter().cloned().chain(open).collect())
    }

    /// Returns the reason why the last request of the agent or a sub-agent for a message failed, if that was not the fault
    /// of the request.
    pub(super) fn failure(&self) -> Option<String> {
        self.lock().failure.clone()
    }

    /// Returns `true` if a request for a message failed, for whatever reason, or got no answer for long.
    pub(super) fn has_failed(&self) -> bool {
        self.lock().has_failed
    }

    /// Records that a request for a message was refused before it was counted.
    pub(super) fn refused(&self) {
        self.lock().has_failed = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn fail(&mut self, open: &Open, reason: String) {
        if self.failed.len() < MOST_FAILED {
            self.failed.insert(open.body);
        }
        self.has_failed |= open.kind != Kind::Other;
        if open.kind.is_of_agent() {
            self.failure = Some(reason);
        }
    }

    fn add(&mut self, content: Vec<Block>) {
        for block in content.into_iter().filter(is_kept) {
            self.size_of_replies += match &block {
                Block::ToolUse { input, .. } => input.to_string().len(),
                Block::Text { text } => text.len(),
                _ => 0,
            };
            if self.size_of_replies > LARGEST_REPLIES {
                self.is_blind = true;
                return;
            }
            self.replied.push(block);
        }
    }
}

/// Returns `true` for a text and for a tool call, including one that the provider made itself.
fn is_kept(block: &Block) -> bool {
    match block {
        Block::ToolUse { .. } | Block::Text { .. } => true,
        Block::Other(value) => {
            let kind = value.get("type").and_then(serde_json::Value::as_str).unwrap_or_default();
            kind.ends_with("_call") || kind.ends_with("tool_use")
        }
        _ => false,
    }
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    let name: String = name.chars().take(LONGEST_NAME).collect();
    if !name.is_empty() && (counts.len() < MOST_NAMES || counts.contains_key(&name)) {
        *counts.entry(name).or_default() += 1;
    }
}

fn keep(durations: &mut Vec<u64>, duration: u64) {
    if durations.len() < MOST_DURATIONS {
        durations.push(duration);
    }
}
