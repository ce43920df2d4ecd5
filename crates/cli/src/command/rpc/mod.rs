//! `trialrun rpc`: a server for programs in other languages, with JSON-RPC 2.0 on stdin and stdout. The client runs
//! tests, receives the events of the run, and can have agents, assertions and operators: the server then calls the client.
//!
//! One thread reads, one writes. Each run has a thread, and another one answers all other requests, so that a client can
//! match values while its agent answers. When the client closes stdin, all runs are stopped, as by Ctrl-C.

mod callback;
mod connection;
mod message;
mod method;
mod options;
mod outbox;
pub mod protocol;
mod run;
mod selection;

use std::collections::HashMap;
use std::io::{BufRead, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use runner::Control;
use sandbox::Host;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use self::connection::Connection;
use self::message::{
    INTERNAL_ERROR, INVALID_REQUEST, Incoming, METHOD_NOT_FOUND, NOT_INITIALIZED, REFUSED, RpcError, WRONG_PROTOCOL,
};
use self::outbox::Outbox;
use crate::error::CliError;
use crate::global::Global;
use crate::terminal::Terminal;
use crate::{limits, machine, place, signals};

/// Version of the protocol. It changes when a client of the former version would no longer work.
const PROTOCOL: u64 = 1;

/// Maximum length of a message from the client, in bytes.
const MAX_MESSAGE: usize = 64 << 20;

/// Maximum length of an answer to a callback, in bytes: that of a line from a `subprocess` agent.
const MAX_ANSWER: usize = 16 << 20;

/// Maximum number of runs at the same time.
const MAX_RUNS: usize = 16;

/// Reason for stopping a run that its client cancels.
const CANCELLED: &str = "the client cancelled it";

/// Reason for stopping all runs when the client disappears.
const CLOSED: &str = "the client closed the connection";

/// The server.
struct Server {
    global: Global,
    terminal: Terminal,
    host: Arc<Host>,
    /// Directory in which the server was started.
    directory: PathBuf,
    connection: Arc<Connection>,
    runs: Mutex<Runs>,
}

/// Runs in progress.
#[derive(Default)]
struct Runs {
    /// Senders of controls, by the id of the request.
    controls: HashMap<String, UnboundedSender<Control>>,
    threads: Vec<JoinHandle<()>>,
}

/// A request for the thread that answers all requests except `run`.
struct Request {
    id: Value,
    method: String,
    params: Value,
}

/// Serves until the client closes stdin, or until a signal.
pub fn run(global: &Global, terminal: &Terminal) -> Result<ExitCode, CliError> {
    let failed = |error: std::io::Error| CliError::environment(format!("cannot start the server: {error}"));
    limits::raise_open_files();
    let (outbox, writer) = Outbox::start(Box::new(std::io::stdout())).map_err(failed)?;
    let server = Arc::new(Server {
        global: global.clone(),
        terminal: terminal.clone(),
        host: Arc::new(machine::host()?),
        directory: place::current_directory()?,
        connection: Arc::new(Connection::new(Arc::clone(&outbox))),
        runs: Mutex::default(),
    });
    let (end, mut ended) = unbounded_channel();
    signals::forward(&end).map_err(failed)?;
    let (requests, queue) = channel::<Request>();
    let answering = Arc::clone(&server);
    let worker = std::thread::Builder::new().name("rpc-answer".into()).spawn(move || {
        for Request { id, method, params } in queue {
            let answer = guarded(|| answering.answer(&method, params, &id));
            answering.connection.respond(&id, answer);
        }
    });
    let worker = worker.map_err(failed)?;
    let reading = Arc::clone(&server);
    let reader = std::thread::Builder::new().name("rpc-read".into());
    let reader = reader.spawn(move || {
        let problem = reading.read(&mut std::io::stdin().lock(), &requests);
        // The other requests are answered, and then their thread ends.
        drop(requests);
        let _ = end.send(Control::Stop(problem.unwrap_or_else(|| CLOSED.to_owned())));
    });
    drop(reader.map_err(failed)?);
    let Control::Stop(reason) = ended.blocking_recv().unwrap_or_else(|| Control::Stop(CLOSED.to_owned()));
    server.stop_all(&reason);
    server.connection.close();
    let is_signal = signals::was_received();
    if !is_signal {
        // The requests before the end of stdin are still answered.
        drop(worker.join());
    }
    let threads = std::mem::take(&mut server.runs().threads);
    threads.into_iter().for_each(|thread| drop(thread.join()));
    outbox.close();
    if let Some(code) = signals::exit_code() {
        return Ok(ExitCode::from(code));
    }
    drop(writer.join());
    if reason == CLOSED { Ok(ExitCode::SUCCESS) } else { Err(CliError::usage(reason)) }
}

/// Calls `answer`. A panic is a bug, but other requests go on.
fn guarded(answer: impl FnOnce() -> Result<Value, RpcError>) -> Result<Value, RpcError> {
    catch_unwind(AssertUnwindSafe(answer)).unwrap_or_else(|_| {
        Err(RpcError::new(INTERNAL_ERROR, "trialrun panicked, which is a bug; its standard error has the details"))
    })
}

impl Server {
    /// Reads messages until the end of stdin. Returns the reason if the connection cannot be continued.
    fn read(self: &Arc<Self>, input: &mut dyn BufRead, requests: &Sender<Request>) -> Option<String> {
        let mut is_initialized = false;
        loop {
            let mut line = Vec::new();
            match input.take(MAX_MESSAGE as u64 + 1).read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(length) if length > MAX_MESSAGE => {
                    let reason = format!("the client sent a message of more than {} MiB", MAX_MESSAGE >> 20);
                    self.connection.respond(&Value::Null, Err(RpcError::new(INVALID_REQUEST, &*reason)));
                    return Some(reason);
                }
                Ok(_) => {}
                Err(error) => return Some(format!("cannot read standard input: {error}")),
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            match message::parse(&line, MAX_ANSWER) {
                Err(invalid) => self.connection.respond(&invalid.id, Err(invalid.error)),
                Ok(Incoming::Notification) => {}
                Ok(Incoming::Reply { id, reply }) => self.connection.answer(id, reply),
                Ok(Incoming::Request { id, method, params }) if method == "initialize" => {
                    let answer = initialize(&params, is_initialized);
                    is_initialized |= answer.is_ok();
                    self.connection.respond(&id, answer);
                }
                Ok(Incoming::Request { id, .. }) if !is_initialized => {
                    let error = RpcError::new(NOT_INITIALIZED, "the first request must be `initialize`");
                    self.connection.respond(&id, Err(error));
                }
                Ok(Incoming::Request { id, method, params }) if method == "run" => self.start_run(&id, params),
                Ok(Incoming::Request { id, method, params }) if method == "cancel" => {
                    self.connection.respond(&id, Ok(self.cancel(&params)));
                }
                // Fails only after a panic outside an answer.
                Ok(Incoming::Request { id, method, params }) => drop(requests.send(Request { id, method, params })),
            }
        }
    }

    /// Answers a request.
    fn answer(&self, method: &str, params: Value, id: &Value) -> Result<Value, RpcError> {
        match method {
            "check" => method::check(self, params, id),
            "list" => method::list(self, params, id),
            "plan" => method::plan(self, params, id),
            "show" => method::show(self, params),
            "compare" => method::compare(self, params),
            "expect" => method::expect(self, params, id),
            _ => {
                let methods = protocol::methods();
                let near = model::nearest(method, methods.iter().map(String::as_str));
                let near = near.map(|near| format!(" (did you mean `{near}`?)")).unwrap_or_default();
                Err(RpcError::new(METHOD_NOT_FOUND, format!("`{method}` is not a method{near}")))
            }
        }
    }

    /// Starts a run on a thread of its own.
    fn start_run(self: &Arc<Self>, id: &Value, params: Value) {
        let (sender, controls) = unbounded_channel();
        let key = id.to_string();
        let mut runs = self.runs();
        runs.threads.retain(|thread| !thread.is_finished());
        let refusal = match () {
            () if runs.controls.contains_key(&key) => Some(format!("a run with the id {key} is in progress")),
            () if runs.controls.len() >= MAX_RUNS => Some(format!("{MAX_RUNS} runs are in progress")),
            () => None,
        };
        if let Some(refusal) = refusal {
            drop(runs);
            return self.connection.respond(id, Err(RpcError::new(REFUSED, refusal)));
        }
        runs.controls.insert(key.clone(), sender);
        let (server, request) = (Arc::clone(self), id.clone());
        let thread = std::thread::Builder::new().name("rpc-run".into()).spawn(move || {
            server.finish_run(&key, &request, params, controls);
        });
        match thread {
            Ok(thread) => runs.threads.push(thread),
            Err(error) => {
                runs.controls.remove(&id.to_string());
                let error = CliError::environment(format!("cannot start a thread: {error}"));
                self.connection.respond(id, Err(error.into()));
            }
        }
    }

    fn finish_run(&self, key: &str, id: &Value, params: Value, controls: UnboundedReceiver<Control>) {
        let answer = guarded(|| run::run(self, params, id, controls));
        self.runs().controls.remove(key);
        self.connection.respond(id, answer);
    }

    /// Stops a run. Cancelling it again kills its agents.
    fn cancel(&self, params: &Value) -> Value {
        let key = params.get("id").unwrap_or(&Value::Null).to_string();
        let runs = self.runs();
        let is_found = runs.controls.get(&key).map(|run| run.send(Control::Stop(CANCELLED.to_owned()))).is_some();
        json!({ "found": is_found })
    }

    /// Stops all runs. Those that were cancelled before are killed. Signals reach them by themselves.
    fn stop_all(&self, reason: &str) {
        if !signals::was_received() {
            for run in self.runs().controls.values() {
                let _ = run.send(Control::Stop(reason.to_owned()));
            }
        }
    }

    fn runs(&self) -> MutexGuard<'_, Runs> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the directory of a request.
    fn directory(&self, wanted: Option<&Path>) -> Result<PathBuf, RpcError> {
        let Some(wanted) = wanted else { return Ok(self.directory.clone()) };
        let directory = session::normalize(&self.directory.join(wanted));
        match directory.is_dir() {
            true => Ok(directory),
            false => Err(RpcError::params(format!("`directory`: {} is not a directory", directory.display()))),
        }
    }
}

/// Answers `initialize`.
fn initialize(params: &Value, is_initialized: bool) -> Result<Value, RpcError> {
    if is_initialized {
        return Err(RpcError::new(NOT_INITIALIZED, "the connection is already initialized"));
    }
    let version = env!("CARGO_PKG_VERSION");
    match params.get("protocol").and_then(Value::as_u64) {
        Some(PROTOCOL) => Ok(json!({ "protocol": PROTOCOL, "server": { "name": "trialrun", "version": version } })),
        Some(other) => {
            let message = format!(
                "trialrun {version} speaks version {PROTOCOL} of the protocol, and the client speaks version {other}; \
                 install the program and the package of the same version"
            );
            Err(RpcError { data: json!({ "supported": [PROTOCOL] }), ..RpcError::new(WRONG_PROTOCOL, message) })
        }
        None => Err(RpcError::params("`initialize` needs `protocol`, a number")),
    }
}
