//! Delivery to a collector, on a separate thread. It fails open: telemetry that cannot be delivered is dropped,
//! counted and reported in a single warning.

use std::collections::BTreeMap;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use llm::Proxies;
use report::telemetry::{Encoding, Exporter, Signal, Telemetry, rejected};
use reqwest::Client;

use super::Warnings;
use super::settings::{Destination, Settings};

/// Number of spans that is enough for a request. Spans of finished trials that are waiting are sent together.
const BATCH: usize = 512;
/// Maximum number of trials whose telemetry is waiting to be sent.
const WAITING: usize = 1024;
/// Number of consecutive failed requests after which no more are sent to the collector.
const GIVE_UP: u32 = 3;
/// Wait before the first retry; it doubles with each.
const BACKOFF: Duration = Duration::from_millis(250);
/// Time limit for opening a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Maximum length of the collector's own message in a warning, in characters.
const MAX_COMMENT_LEN: usize = 200;

/// How long to wait for the collector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExportMode {
    /// A run never waits while trials are running, and at its end only as long as one request may take.
    Live,
    /// A replay waits for every request.
    Replay,
}

/// Sends telemetry to a collector.
pub(super) struct HttpExporter {
    queue: Option<SyncSender<Telemetry>>,
    done: Receiver<()>,
    delivery: Arc<Mutex<Delivery>>,
    mode: ExportMode,
    /// Time that a live run waits at its end.
    timeout: Duration,
    /// Address of the collector, without keys.
    collector: String,
    is_disabled: bool,
    warnings: Warnings,
}

/// Numbers of delivered records.
#[derive(Debug, Default)]
struct Delivery {
    /// Number of records that were to be exported.
    offered: usize,
    /// Number of records that reached the collector.
    delivered: usize,
    /// Number of records that reached it but were rejected.
    rejected: usize,
    /// First error.
    error: Option<String>,
    /// The collector's comment on a request that it accepted.
    comment: Option<String>,
}

impl HttpExporter {
    /// Starts the thread.
    pub(super) fn start(
        settings: Settings,
        environment: &BTreeMap<String, String>,
        mode: ExportMode,
        warnings: Warnings,
    ) -> io::Result<Self> {
        let (queue, waiting) = sync_channel(WAITING);
        let (end, done) = channel();
        let delivery = Arc::<Mutex<Delivery>>::default();
        let destinations = || [&settings.traces, &settings.logs].into_iter().flatten();
        let timeout = destinations().map(|destination| destination.timeout).max().unwrap_or_default();
        let collector = destinations().next().map_or(String::new(), |destination| origin(&destination.address));
        let is_disabled = settings.is_disabled;
        let proxies = Proxies::of(|name| environment.get(name).map(String::as_str));
        let sender = Sender { settings, proxies, delivery: Arc::clone(&delivery), failures: 0 };
        std::thread::Builder::new().name("otlp".into()).spawn(move || {
            sender.run(&waiting);
            let _ = end.send(());
        })?;
        Ok(Self { queue: Some(queue), done, delivery, mode, timeout, collector, is_disabled, warnings })
    }

    fn warn(&self, is_late: bool) {
        let delivery = self.delivery.lock().unwrap_or_else(PoisonError::into_inner);
        let Delivery { offered, delivered, rejected, error, comment } = &*delivery;
        let late = || format!("no answer within {} s", self.timeout.as_secs_f64());
        let error = error.clone().or_else(|| is_late.then(late)).unwrap_or_else(|| "the collector is too slow".into());
        let collector = &self.collector;
        if delivered < offered {
            let lost = offered - delivered;
            self.warnings.add(format!(
                "{lost} of {offered} OpenTelemetry spans and log records did not reach {collector}: {error}"
            ));
        }
        if *rejected > 0 || comment.is_some() {
            let comment = comment.as_deref().filter(|comment| !comment.is_empty()).unwrap_or("without a reason");
            self.warnings.add(format!(
                "{collector} rejected {rejected} of {offered} OpenTelemetry spans and log records: {comment}"
            ));
        }
    }
}

impl Exporter for HttpExporter {
    fn export(&mut self, telemetry: Telemetry) -> io::Result<()> {
        let Some(queue) = self.queue.as_ref().filter(|_| !self.is_disabled) else { return Ok(()) };
        let count = telemetry.count(Signal::Traces) + telemetry.count(Signal::Logs);
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner).offered += count;
        // Items that were not queued count as not delivered.
        match self.mode {
            ExportMode::Replay => drop(queue.send(telemetry)),
            ExportMode::Live => match queue.try_send(telemetry) {
                Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
            },
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.queue = None;
        if self.is_disabled {
            self.warnings.add("nothing was sent to OpenTelemetry, because OTEL_SDK_DISABLED is true".into());
            return Ok(());
        }
        let is_late = match self.mode {
            ExportMode::Live => self.done.recv_timeout(self.timeout) == Err(RecvTimeoutError::Timeout),
            ExportMode::Replay => self.done.recv().is_err(),
        };
        self.warn(is_late);
        Ok(())
    }
}

/// The thread that sends requests.
struct Sender {
    settings: Settings,
    proxies: Proxies,
    delivery: Arc<Mutex<Delivery>>,
    /// Number of consecutive failed requests.
    failures: u32,
}

/// Reason why a request was not delivered.
enum Failure {
    /// Another attempt may succeed, after the given time if the collector specified one.
    Temporary(String, Option<Duration>),
    /// Every further attempt would fail.
    Permanent(String),
}

impl Sender {
    fn run(mut self, waiting: &Receiver<Telemetry>) {
        let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime,
            Err(error) => return self.fail(format!("cannot start a client: {error}")),
        };
        let targets = [(Signal::Traces, self.settings.traces.clone()), (Signal::Logs, self.settings.logs.clone())]
            .map(|(signal, destination)| (signal, destination.map(|to| (self.client(&to), to))));
        while let Ok(mut telemetry) = waiting.recv() {
            while telemetry.count(Signal::Traces) < BATCH
                && let Ok(more) = waiting.try_recv()
            {
                telemetry.append(more);
            }
            for (signal, target) in &targets {
                let count = telemetry.count(*signal);
                // A signal without a destination is not exported.
                let Some((client, to)) = target else {
                    self.delivered(count, None);
                    continue;
                };
                if count == 0 || self.failures >= GIVE_UP {
                    continue;
                }
                let body = telemetry.encode(*signal, to.encoding);
                let delivered = match client {
                    Ok(client) => runtime.block_on(self.deliver(client, to, body)),
                    Err(error) => Err(error.clone()),
                };
                match delivered {
                    Ok(comment) => {
                        self.failures = 0;
                        self.delivered(count, comment);
                    }
                    Err(error) => {
                        self.failures += 1;
                        self.fail(error);
                    }
                }
            }
        }
    }

    fn client(&self, to: &Destination) -> Result<Client, String> {
        let client = self.proxies.client(to.address.starts_with("https:"), CONNECT, None);
        client.map_err(|error| error.to_string())
    }

    fn delivered(&self, count: usize, comment: Option<(usize, String)>) {
        let mut delivery = self.delivery.lock().unwrap_or_else(PoisonError::into_inner);
        delivery.delivered += count;
        if let Some((rejected, comment)) = comment {
            delivery.rejected += rejected;
            delivery.comment.get_or_insert_with(|| excerpt(&comment));
        }
    }

    fn fail(&self, error: String) {
        self.delivery.lock().unwrap_or_else(PoisonError::into_inner).error.get_or_insert(error);
    }

    /// Sends a request until it is delivered or its timeout expires. Returns the number of rejected records and the
    /// collector's comment, if there is one.
    async fn deliver(
        &mut self,
        client: &Client,
        to: &Destination,
        body: Vec<u8>,
    ) -> Result<Option<(usize, String)>, String> {
        let until = Instant::now() + to.timeout;
        let mut backoff = BACKOFF;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let (error, wait) = match tokio::time::timeout(left, post(client, to, body.clone())).await {
                Ok(Ok(answer)) => return Ok(rejected(&answer, to.encoding)),
                Ok(Err(Failure::Permanent(error))) => return Err(error),
                Ok(Err(Failure::Temporary(error, wait))) => (error, wait.unwrap_or(backoff)),
                Err(_) => {
                    // A collector that does not answer would take just as long for every other request.
                    self.failures = GIVE_UP;
                    return Err(format!("no answer within {} s", to.timeout.as_secs_f64()));
                }
            };
            if Instant::now() + wait >= until {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            backoff *= 2;
        }
    }
}

/// Sends a request once.
async fn post(client: &Client, to: &Destination, body: Vec<u8>) -> Result<Vec<u8>, Failure> {
    let kind = match to.encoding {
        Encoding::Protobuf => "application/x-protobuf",
        Encoding::Json => "application/json",
    };
    let mut request = client.post(&to.address).header("content-type", kind).body(body);
    for (name, value) in &to.headers {
        request = request.header(name, value);
    }
    // If the connection fails now, there is usually no collector at all.
    let failed = |error: &dyn std::error::Error| Failure::Permanent(llm::error_chain(error));
    let response = request.send().await.map_err(|error| failed(&error.without_url()))?;
    let status = response.status();
    let wait = response.headers().get("retry-after").and_then(|value| value.to_str().ok()).map(str::to_owned);
    let answer = response.bytes().await.map_err(|error| failed(&error.without_url()))?;
    if status.is_success() {
        return Ok(answer.to_vec());
    }
    let mut error = format!("HTTP {status}");
    if let (true, Ok(text)) = (to.encoding == Encoding::Json, std::str::from_utf8(&answer)) {
        let excerpt = excerpt(text);
        error = if excerpt.is_empty() { error } else { format!("{error}: {excerpt}") };
    }
    Err(match status.as_u16() {
        429 | 502 | 503 | 504 => {
            Failure::Temporary(error, wait.and_then(|wait| llm::retry_after(&wait, jiff::Timestamp::now())))
        }
        _ => Failure::Permanent(error),
    })
}

/// Returns the beginning of a collector's message, as one line of visible text.
fn excerpt(text: &str) -> String {
    let visible: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_COMMENT_LEN).collect();
    visible.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the address without its path and password.
fn origin(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("http", address));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}
