//! Model traffic of one running trial.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{CassetteMode, StaleRequest};
use serde_json::Value;

use crate::difference::{first_difference, similarity};
use crate::exchange::{Answer, Exchange, Recording, RecordingInfo, Sender};
use crate::file::CassetteError;
use crate::normalization::Normalizer;
use crate::stream;
use crate::values::Values;

/// Maximum size of a recording, in bytes.
pub(crate) const MAX_BYTES: usize = 128 << 20;

/// A request to a model.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// Sender.
    pub sender: Sender,
    /// Path relative to the provider's address, including the query.
    pub path: &'a str,
    /// The body.
    pub body: Value,
}

/// Identifies requests that can be compared: only those with the same key.
#[derive(Clone, Copy)]
struct Key<'a> {
    sender: Sender,
    path: &'a str,
}

/// Answer to a request.
#[derive(Debug)]
pub enum Found {
    /// The recorded answer, in which names are replaced by the values of this trial.
    Recorded(Answer),
    /// Ask the model, and pass its answer to [`Tape::keep`].
    Live(Slot),
    /// The request has no recorded answer, and a replay does not ask the model. Contains the error for the sender.
    Stale(String),
}

/// Handle for an answer that is being recorded.
#[derive(Debug)]
pub struct Slot {
    number: usize,
    values: Values,
}

/// The model traffic of one trial: recorded answers to replay, and new ones.
pub struct Tape {
    mode: CassetteMode,
    /// Path of the cassette, for messages.
    cassette: String,
    normalizer: Normalizer,
    recorded: Option<Arc<Recording>>,
    honours_delays: bool,
    /// Number of agent requests that are answered from the recording; `None` for all.
    replay_limit: Option<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// For each recorded exchange, true if it was already used.
    used: Vec<bool>,
    /// Exchanges in the new recording.
    added: Vec<Exchange>,
    /// Total size of the new requests and answers, in bytes.
    size: usize,
    /// Number of requests that were answered from the recording.
    replayed: usize,
    /// Number of requests that were sent to the model.
    live: usize,
    /// Number of requests so far, and of those that the agent sent.
    asked: usize,
    of_agent: usize,
    stale: Option<StaleRequest>,
    /// Reason why nothing can be recorded.
    refused: Option<String>,
}

impl Tape {
    /// Creates the tape for a trial. `cassette` is the path of the cassette for messages, and `recorded` is the
    /// existing recording of this trial.
    pub fn new(
        mode: CassetteMode,
        cassette: impl Into<String>,
        recorded: Option<Arc<Recording>>,
        normalizer: Normalizer,
    ) -> Self {
        let used = vec![false; recorded.as_ref().map_or(0, |recording| recording.exchanges.len())];
        let state = Mutex::new(State { used, ..State::default() });
        Self { mode, cassette: cassette.into(), normalizer, recorded, honours_delays: false, replay_limit: None, state }
    }

    /// Answers only the first `count` agent requests from the recording, and asks the model for the others. The
    /// recorded answers are used in order, even if the requests differ, because the trial may use another model.
    pub fn replaying_first(self, count: usize) -> Self {
        Self { replay_limit: Some(count), ..self }
    }

    /// Replays answers with their recorded delays.
    pub fn with_delays(self, honours_delays: bool) -> Self {
        Self { honours_delays, ..self }
    }

    /// Returns `true` if recorded answers are replayed with their original delays.
    pub fn honours_delays(&self) -> bool {
        self.honours_delays
    }

    /// Returns `true` if the model is never asked, because all answers come from the recording.
    pub fn needs_no_model(&self) -> bool {
        self.mode == CassetteMode::Replay && self.replay_limit.is_none()
    }

    /// Finds the answer to a request.
    pub fn ask(&self, asked: Asked<'_>) -> Found {
        let Asked { sender, path, body } = asked;
        let (request, values) = self.normalizer.request(body);
        let asked = Key { sender, path };
        let mut state = self.lock();
        state.asked += 1;
        state.of_agent += usize::from(asked.sender == Sender::Agent);
        // A forked trial may end differently, so its recorded judgements do not apply.
        let is_judged_again = self.replay_limit.is_some() && sender == Sender::Judge;
        let may_replay = self.mode != CassetteMode::Record
            && !is_judged_again
            && self.replay_limit.is_none_or(|most| state.of_agent <= most);
        let found = may_replay.then(|| self.find(&mut state, asked, &request)).flatten();
        if let Some(exchange) = found {
            let mut answer = exchange.answer.clone();
            state.replayed += 1;
            if self.mode == CassetteMode::Auto {
                state.added.push(exchange);
            }
            drop(state);
            for chunk in &mut answer.chunks {
                chunk.text = values.restored_in(&chunk.text);
            }
            return Found::Recorded(answer);
        }
        if self.needs_no_model() {
            // The request may ask for account data or count tokens. Programs continue without an answer to it.
            let is_known = |known: &Exchange| known.sender == sender && known.path == path;
            let is_recorded = self.recorded.iter().any(|recording| recording.exchanges.iter().any(is_known));
            if sender == Sender::Other && !is_recorded {
                return Found::Stale(format!("{} has no answer to this request", self.cassette));
            }
            let stale = self.stale_request(&state, asked, &request);
            let text = stale.describe();
            state.stale.get_or_insert(stale);
            return Found::Stale(text);
        }
        state.live += 1;
        let number = state.added.len();
        if self.records() {
            state.size += request.to_string().len();
            let answer = Answer::default();
            state.added.push(Exchange { sender, path: path.to_owned(), request, answer });
        }
        Found::Live(Slot { number, values })
    }

    /// Returns `true` if answers from the model are recorded.
    pub fn records(&self) -> bool {
        matches!(self.mode, CassetteMode::Record | CassetteMode::Auto)
    }

    /// Records the answer to a request. An answer that is never passed in is not recorded.
    pub fn keep(&self, slot: &Slot, answer: Answer) {
        if !self.records() {
            return;
        }
        let is_event_stream = answer.content_type.starts_with("text/event-stream");
        let chunks = stream::named(answer.chunks, is_event_stream, &slot.values);
        let mut state = self.lock();
        state.size += chunks.iter().map(|chunk| chunk.text.len()).sum::<usize>();
        if state.size > MAX_BYTES {
            state.refuse(format!("the model traffic has more than {MAX_BYTES} bytes"));
        } else if let Some(exchange) = state.added.get_mut(slot.number) {
            exchange.answer = Answer { chunks, ..answer };
        }
    }

    /// Prevents this trial from being recorded, because one of its answers cannot be.
    pub fn refuse(&self, reason: &str) {
        self.lock().refuse(reason.to_owned());
    }

    /// Returns the first request that had no recorded answer.
    pub fn stale(&self) -> Option<StaleRequest> {
        self.lock().stale.clone()
    }

    /// Returns the number of requests that were answered from the recording, and of those that were sent to the model.
    pub fn requests(&self) -> [u64; 2] {
        let state = self.lock();
        [state.replayed as u64, state.live as u64]
    }

    /// Returns `true` if a request from the agent has no answer yet.
    pub fn has_unanswered(&self) -> bool {
        self.lock().added.iter().any(|exchange| exchange.sender == Sender::Agent && exchange.answer.status == 0)
    }

    /// Takes the new recording, or `None` if nothing new was recorded.
    ///
    /// # Errors
    /// Returns [`CassetteError::Unrecordable`] if the traffic cannot be recorded.
    pub fn recorded(&self) -> Result<Option<Recording>, CassetteError> {
        let mut state = self.lock();
        if let Some(reason) = &state.refused {
            return Err(CassetteError::Unrecordable(reason.clone()));
        }
        if !self.records() || state.live == 0 {
            return Ok(None);
        }
        // If a request has no answer, the sender repeated it or did not wait, so it is left out.
        let exchanges = std::mem::take(&mut state.added).into_iter().filter(|exchange| exchange.answer.status > 0);
        Ok(Some(Recording { about: RecordingInfo::default(), exchanges: exchanges.collect() }))
    }

    /// Finds the recorded exchange: the first unused one, or the last one if the request is repeated.
    fn find(&self, state: &mut State, asked: Key<'_>, request: &Value) -> Option<Exchange> {
        let recording = self.recorded.as_ref()?;
        let is_equal = |exchange: &Exchange| {
            exchange.sender == asked.sender && exchange.path == asked.path && exchange.request == *request
        };
        let equal = || recording.exchanges.iter().enumerate().filter(|(_, exchange)| is_equal(exchange));
        let found = equal().find(|(at, _)| !state.used[*at]);
        let next = || {
            let of_sender = |exchange: &Exchange| exchange.sender == asked.sender && exchange.path == asked.path;
            let exchanges = recording.exchanges.iter().enumerate();
            exchanges.into_iter().find(|(at, exchange)| !state.used[*at] && of_sender(exchange))
        };
        let found = found.or_else(|| self.replay_limit.and_then(|_| next()));
        let found = found.or_else(|| equal().rfind(|(_, exchange)| exchange.answer.is_success()));
        let (at, exchange) = found.or_else(|| equal().next_back())?;
        state.used[at] = true;
        Some(exchange.clone())
    }

    /// Compares a request with the most similar recorded one.
    fn stale_request(&self, state: &State, asked: Key<'_>, request: &Value) -> StaleRequest {
        let stale = StaleRequest {
            cassette: self.cassette.clone(),
            number: state.asked as u64,
            sender: asked.sender.name().to_owned(),
            ..StaleRequest::default()
        };
        let Some(recording) = &self.recorded else {
            return StaleRequest { reason: Some("it has no recording of this trial".to_owned()), ..stale };
        };
        let of_sender = recording.exchanges.iter().enumerate().filter(|(_, known)| known.sender == asked.sender);
        let nearest = of_sender.max_by_key(|(at, known)| {
            let (fields, history) = similarity(&known.request, request);
            (known.path == asked.path, fields, history, !state.used[*at], std::cmp::Reverse(*at))
        });
        let Some((_, nearest)) = nearest else {
            let reason = format!("no request of this kind was recorded ({})", asked.sender.name());
            return StaleRequest { reason: Some(reason), ..stale };
        };
        if nearest.path != asked.path {
            let [recorded, actual] = [&nearest.path, asked.path].map(|path| Some(format!("`{path}`")));
            return StaleRequest { pointer: Some(String::new()), recorded, actual, ..stale };
        }
        match first_difference(&nearest.request, request) {
            Some(found) => {
                StaleRequest { pointer: Some(found.pointer), recorded: found.recorded, actual: found.actual, ..stale }
            }
            None => StaleRequest { reason: Some("the recorded answer was already used".to_owned()), ..stale },
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn refuse(&mut self, reason: String) {
        self.refused.get_or_insert(reason);
        self.added.clear();
    }
}

impl std::fmt::Debug for Tape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tape").field("mode", &self.mode).field("cassette", &self.cassette).finish_non_exhaustive()
    }
}
