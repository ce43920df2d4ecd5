//! The spans of a conversation.

use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use model::{Ending, Step, TrialId, Usage};
use spans::{Span, shows_work, trace_from_spans, whole_of};
use tokio::sync::OwnedSemaphorePermit;

use super::context::TraceContext;
use super::mailbox::{Mailbox, Received};
use super::receiver::Receiver;
use super::report::{AnswerCalls, Missing, SpanReport};
use super::settings::TraceSettings;
use crate::turn::{Turn, finished};

/// How long to wait for a request that a program sent just before it ended.
const AFTER_END: Duration = Duration::from_millis(250);
/// Maximum time between the end of the span for a reply and the arrival of the answer.
const BEFORE_ANSWER: Duration = Duration::from_secs(1);
/// How long to wait for log records after the spans. Programs export them every second by default.
const FOR_CONTENT: Duration = Duration::from_millis(1500);
/// Maximum time after which the time that was waited is taken from the agent's.
const SLICE: Duration = Duration::from_millis(50);

/// Reason why calls of a reply that failed may be missing.
const UNFINISHED: &str = "the bot did not finish its reply, so it may not have sent all its spans";

/// The spans of a conversation. Dropping it ends the reception.
pub(crate) struct Inbox {
    receiver: Arc<Receiver>,
    mailbox: Arc<Mailbox>,
    settings: TraceSettings,
    /// Part of the address of the conversation's own process or function, if it has one.
    token: Option<String>,
    /// Hint about the address to which spans must be exported.
    place: String,
    /// Ids of the last message.
    context: TraceContext,
    /// Permit for the message in progress, if there may be only one at a time.
    alone: Option<OwnedSemaphorePermit>,
    /// True from the beginning of a message until its spans are collected.
    is_open: bool,
}

/// State of the program that sends spans, after its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProgramState {
    Running,
    /// It has sent everything that it had.
    Ended,
}

impl Inbox {
    /// Opens the inbox of a conversation with a process of its own.
    pub(crate) fn of_process(receiver: Arc<Receiver>, settings: TraceSettings) -> Self {
        Self::with_address(receiver, settings, "OTEL_EXPORTER_OTLP_ENDPOINT")
    }

    /// Opens the inbox of a conversation with a function, which gets an address for it with each message.
    pub(crate) fn of_function(receiver: Arc<Receiver>, settings: TraceSettings) -> Self {
        Self::with_address(receiver, settings, "the endpoint that it gets with the message")
    }

    /// Opens the inbox of a conversation with a process that others use, too.
    pub(crate) fn of_shared(receiver: Arc<Receiver>, settings: TraceSettings) -> Self {
        let place = format!("{}/v1/traces", receiver.endpoint(None));
        Self::new(receiver, settings, None, place)
    }

    fn with_address(receiver: Arc<Receiver>, settings: TraceSettings, place: &str) -> Self {
        let token = uuid::Uuid::new_v4().simple().to_string();
        let inbox = Self::new(receiver, settings, Some(token.clone()), place.to_owned());
        inbox.receiver.open(&token, &inbox.mailbox);
        inbox
    }

    fn new(receiver: Arc<Receiver>, settings: TraceSettings, token: Option<String>, place: String) -> Self {
        Self {
            receiver,
            mailbox: Arc::default(),
            settings,
            token,
            place,
            context: TraceContext::new(),
            alone: None,
            is_open: false,
        }
    }

    /// Returns the base address to which the conversation's spans are exported.
    pub(crate) fn endpoint(&self) -> String {
        self.receiver.endpoint(self.token.as_deref())
    }

    /// Returns the variables with which the conversation's own process exports its spans.
    pub(crate) fn variables(&self, trial: &TrialId) -> Vec<(String, String)> {
        let mut variables = exporter_variables(&self.endpoint());
        let attributes = format!("trialrun.trial.id={}", percent_encoded(&trial.to_string()));
        variables.push(("OTEL_RESOURCE_ATTRIBUTES".to_owned(), attributes));
        variables
    }

    /// Prepares for a message that is about to be sent, and returns its `traceparent`.
    ///
    /// # Errors
    /// Returns the ending if the trial must stop.
    pub(crate) async fn begin(&mut self, turn: &mut Turn) -> Result<String, Ending> {
        if self.settings.one_at_a_time {
            self.alone = None;
            self.alone = self.wait_for_others(turn).await?;
        }
        self.context = TraceContext::new();
        self.is_open = true;
        let mut received = self.mailbox.lock();
        let before = received.current.replace(self.context.trace.clone());
        let is_first = before.is_none();
        // A process of its own may use the trace of its first message for all.
        received.earlier.extend(before.filter(|_| self.token.is_none()));
        // What its own process did when it started belongs to the first message. A shared process may still send the
        // spans of another conversation.
        received.since_ns = (!is_first || self.token.is_none()).then(|| nanoseconds(SystemTime::now()));
        drop(received);
        if self.token.is_none() {
            self.receiver.begin(&self.context.trace, &self.mailbox);
        }
        Ok(self.context.traceparent())
    }

    /// Waits until no other conversation uses the agent. The time does not count as the agent's.
    async fn wait_for_others(&self, turn: &mut Turn) -> Result<Option<OwnedSemaphorePermit>, Ending> {
        turn.waiting("other trials of the agent");
        let acquired = Arc::clone(&self.receiver.alone).acquire_owned();
        tokio::pin!(acquired);
        loop {
            let began = Instant::now();
            tokio::select! {
                biased;
                () = turn.stopping() => return Err(Ending::Cancelled),
                permit = &mut acquired => {
                    turn.pause(began.elapsed());
                    return Ok(permit.ok());
                }
                () = tokio::time::sleep(SLICE) => turn.pause(began.elapsed()),
            }
        }
    }

    /// Waits for the spans of the reply that has just arrived, and returns what they show. The time does not count as
    /// the agent's.
    ///
    /// # Errors
    /// Returns the ending if the trial must stop.
    pub(crate) async fn collect(&mut self, program: ProgramState, turn: &mut Turn) -> Result<SpanReport, Ending> {
        let (answered, answered_ns) = (Instant::now(), nanoseconds(SystemTime::now()));
        let most = if program == ProgramState::Ended { self.settings.wait.min(AFTER_END) } else { self.settings.wait };
        let mut counted = answered;
        turn.waiting("spans");
        let mut whole_since = None;
        let is_complete = loop {
            let changed = self.mailbox.changed.notified();
            if is_complete(&mut self.mailbox.lock(), answered_ns, &mut whole_since) {
                break true;
            }
            let Some(left) = most.checked_sub(answered.elapsed()) else { break program == ProgramState::Ended };
            tokio::select! {
                biased;
                () = turn.stopping() => return Err(Ending::Cancelled),
                () = changed => {}
                () = tokio::time::sleep(left.min(SLICE)) => {}
            }
            turn.pause(counted.elapsed());
            counted = Instant::now();
        };
        let mut received = self.mailbox.lock();
        received.attach_events();
        let mut spans = mem::take(&mut received.spans);
        let mut strays = mem::take(&mut received.strays);
        // If the program continues the trace, spans of other traces are those of other programs.
        let is_own = |span: &Span| span.trace == self.context.trace;
        if self.token.is_none() && shows_work(spans.iter().filter(|span| is_own(span))) {
            spans.retain(is_own);
            strays = 0;
        }
        let missing = Missing {
            is_full: mem::take(&mut received.is_full),
            strays,
            late: mem::take(&mut received.late),
            unread: mem::take(&mut received.unread),
            waited: (!is_complete).then_some(most),
            place: self.place.clone(),
            is_foreign: self.token.is_none() && !spans.iter().all(is_own),
        };
        received.bytes = 0;
        drop(received);
        self.receiver.pause(&self.mailbox);
        (self.alone, self.is_open) = (None, false);
        Ok(SpanReport::new(&spans, missing))
    }

    /// Returns `true` if the spans of the current message have not been collected.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Records what the spans show of a reply that failed, and that there may be more calls. Returns its usage.
    pub(crate) async fn collect_failed(&mut self, turn: &mut Turn) -> Usage {
        let mut usage = Usage::default();
        // If the trial must stop now, the reply has nevertheless failed before.
        if let Ok(report) = self.collect(ProgramState::Ended, turn).await {
            let answer = AnswerCalls { text: None, are_listed: false, tools: Vec::new() };
            let _ = answer.record(Some(&report), turn).await;
            usage = report.usage();
        }
        let _ = turn.record(Step::CallsMissing { reason: UNFINISHED.to_owned() });
        usage
    }
}

/// Records the end of a function's reply: what its spans show if it failed, and that it gave up.
pub(crate) async fn record_end(inbox: Option<&mut Inbox>, ending: &Ending, turn: &mut Turn) {
    let mut usage = Usage::default();
    if *ending != Ending::Finished
        && let Some(inbox) = inbox.filter(|inbox| inbox.is_open())
    {
        usage = inbox.collect_failed(turn).await;
    }
    if matches!(ending, Ending::GaveUp { .. }) {
        let _ = turn.record(finished(true, usage, None, None));
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        self.receiver.close(self.token.as_deref(), &self.mailbox);
    }
}

/// Returns the variables with which a program exports its spans to `endpoint`, soon after they end, completely and with
/// their content.
pub(crate) fn exporter_variables(endpoint: &str) -> Vec<(String, String)> {
    let traces = format!("{endpoint}/v1/traces");
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"),
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &traces),
        ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/protobuf"),
        ("TRACELOOP_BASE_URL", endpoint),
        ("PHOENIX_COLLECTOR_ENDPOINT", endpoint),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_METRICS_EXPORTER", "none"),
        ("OTEL_TRACES_SAMPLER", "always_on"),
        ("OTEL_BSP_SCHEDULE_DELAY", "200"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "200"),
        ("OTEL_ATTRIBUTE_COUNT_LIMIT", "100000"),
        ("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "100000"),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// Encodes a value as the specification of OpenTelemetry requires it in a list of attributes.
fn percent_encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~:/".contains(&byte);
    let encode = |byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(encode).collect()
}

/// Returns `true` if the spans of a reply are complete: programs export them in the order in which they end, and one of
/// them is the whole reply, which was first seen at `whole_since`. Log records with the content of messages may follow.
fn is_complete(received: &mut Received, answered_ns: u64, whole_since: &mut Option<Instant>) -> bool {
    let earliest = answered_ns.saturating_sub(u64::try_from(BEFORE_ANSWER.as_nanos()).unwrap_or(u64::MAX));
    if whole_of(&received.spans).is_none_or(|whole| whole.end_ns < earliest) {
        return false;
    }
    received.attach_events();
    let since = *whole_since.get_or_insert_with(Instant::now);
    since.elapsed() > FOR_CONTENT || trace_from_spans(&received.spans).incomplete.is_none()
}

fn nanoseconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
