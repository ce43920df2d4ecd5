//! The model traffic of one trial while it runs.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use model::{CassetteMode, StaleRequest};
use serde_json::Value;

use crate::difference::{first_difference, similarity};
use crate::exchange::{Answer, Exchange, Recording, RecordingInfo, Sender};
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
    /// Path below the address of the provider, with the query.
    pub path: &'a str,
    /// The body.
    pub body: Value,
}

/// Requests with equal keys are compared with each other.
#[derive(Clone, Copy)]
struct Key<'a> {
    sender: Sender,
    path: &'a str,
}

/// Answer to a request.
#[derive(Debug)]
pub enum Found {
    /// The recorded answer, with the values of this trial.
    Recorded(Answer),
    /// The model must be asked. The answer is kept with [`Tape::keep`].
    Live(Slot),
    /// There is no recorded answer, and the model may not be asked. The text is for the sender.
    Stale(String),
}

/// Place of an answer that is being recorded.
#[derive(Debug)]
pub struct Slot {
    number: usize,
    values: Values,
}

/// The part of a cassette that belongs to one trial.
pub struct Tape {
    mode: CassetteMode,
    /// Path of the cassette, as users see it.
    cassette: String,
    normalizer: Normalizer,
    recorded: Option<Arc<Recording>>,
    honours_delays: bool,
    /// Number of requests of the agent that are answered from the recording; `None` for all.
    replay_limit: Option<usize>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Recorded exchanges that were already used.
    used: Vec<bool>,
    /// Exchanges of the new recording.
    added: Vec<Exchange>,
    /// Size of their requests and answers, in bytes.
    size: usize,
    /// Requests that were answered from the recording.
    replayed: usize,
    /// Requests that were sent to the model.
    live: usize,
    /// Requests so far, and those of the agent.
    asked: usize,
    of_agent: usize,
    stale: Option<StaleRequest>,
    /// Reason why there is no new recording.
    refused: Option<String>,
}

impl Tape {
    /// Creates the tape of a trial. `cassette` is the path of the cassette as users see it; `recorded` is the recording
    /// of this trial in it, if there is one.
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

    /// Answers only the first `count` requests of the agent from the recording, in their order, even if they differ: the
    /// trial may have another model. The model is asked from then on.
    pub fn replaying_first(self, count: usize) -> Self {
        Self { replay_limit: Some(count), ..self }
    }

    /// Replays answers with their recorded delays.
    pub fn with_delays(self, honours_delays: bool) -> Self {
        Self { honours_delays, ..self }
    }

    /// Returns `true` if recorded answers arrive as slowly as they did.
    pub fn honours_delays(&self) -> bool {
        self.honours_delays
    }

    /// Returns `true` if the model is never asked.
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
        // The outcome of a continued trial is judged again.
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
            // A program may ask for its account or count tokens, and goes on without an answer.
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

    /// Returns `true` if answers of the model are recorded.
    pub fn records(&self) -> bool {
        matches!(self.mode, CassetteMode::Record | CassetteMode::Auto)
    }

    /// Keeps the answer to a request. An answer that is not kept is not recorded.
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

    /// Notes that an answer cannot be recorded, so that there is no recording of this trial.
    pub fn refuse(&self, reason: &str) {
        self.lock().refuse(reason.to_owned());
    }

    /// Returns the first request without an answer.
    pub fn stale(&self) -> Option<StaleRequest> {
        self.lock().stale.clone()
    }

    /// Returns `true` if the answer to a request of the agent is missing.
    pub fn has_unanswered(&self) -> bool {
        self.lock().added.iter().any(|exchange| exchange.sender == Sender::Agent && exchange.answer.status == 0)
    }

    /// Takes the new recording; `None` if nothing new was recorded.
    ///
    /// # Errors
    /// Returns the reason why the traffic cannot be recorded.
    pub fn recorded(&self) -> Result<Option<Recording>, String> {
        let mut state = self.lock();
        if let Some(reason) = &state.refused {
            return Err(reason.clone());
        }
        if !self.records() || state.live == 0 {
            return Ok(None);
        }
        // A request without an answer is repeated, or the agent did not wait for it.
        let exchanges = std::mem::take(&mut state.added).into_iter().filter(|exchange| exchange.answer.status > 0);
        Ok(Some(Recording { about: RecordingInfo::default(), exchanges: exchanges.collect() }))
    }

    /// Finds the recorded exchange: the first one that was not used, or the last one if the request is repeated.
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

    /// Compares a request with the recorded one that is most similar to it.
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
