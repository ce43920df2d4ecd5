//! A script engine on its own thread, for agents and tools that are modules.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use model::{Ending, Step};
use script::{
    CodeRuntime, Console, FETCH, Function, Level, ModuleProgram, Options, Progress, Request, ScriptError, Value, Wake,
};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::network::Network;
use crate::RunState;
use crate::turn::Turn;

/// Timeout for loading a module and its imports.
const LOADING: Duration = Duration::from_secs(10);
/// Maximum CPU time of one call.
const CALL: Duration = Duration::from_secs(30);
/// Extra time for a call beyond the trial's own timeout, so that the trial's timeout is the one that applies.
const MARGIN: Duration = Duration::from_secs(1);
/// Maximum memory of an engine, in bytes.
const MEMORY: usize = 256 << 20;
/// Maximum number of console lines that are recorded per engine.
const MAX_LINES: usize = 1_000;
/// Maximum size of the console output that is recorded per engine, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Program of an engine.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// Directory for resolving imports.
    pub(super) directory: PathBuf,
    /// Modules to import, written as in an import statement.
    pub(super) modules: Vec<String>,
    /// Source of a module whose default export is the callable part; the imported modules are available as `modules`.
    pub(super) text: String,
    /// Hosts to which its calls may send requests; without it there is no `fetch`.
    pub(super) network: Option<Network>,
    /// State of the run. Newly read module sources are added to it.
    pub(super) state: Arc<RunState>,
    /// `true` if its engine may be [shared](Engine::share).
    pub(super) is_shared: bool,
}

impl Program {
    /// Loads the program without a thread, to check it. Functions in the returned value cannot be called.
    pub(super) fn check(&self) -> Result<Value, ScriptError> {
        let (_, (value, _)) =
            script::open(&self.main(), &|| self.options(None, None), &mut |runtime| self.load(runtime))?;
        Ok(value)
    }

    /// Returns the module whose needs determine the runtime.
    fn main(&self) -> PathBuf {
        self.directory.join(self.modules.first().map_or(Path::new(""), Path::new))
    }

    fn options(&self, console: Option<Console>, wake: Option<Wake>) -> Options {
        let mut options = Options::new(&self.directory);
        options.memory = MEMORY;
        options.stack = script::thread::SCRIPT_STACK;
        options.console = console;
        options.wake = wake;
        options.library = self.state.modules.clone();
        options.shown_from.clone_from(&self.state.cwd);
        options
    }

    /// Returns the value of the program and, if the engine is shared, the function that [freezes](script::Runtime::freezer)
    /// it.
    fn load(&self, runtime: &mut dyn CodeRuntime) -> Result<(Value, Option<Function>), ScriptError> {
        let freezer = if self.is_shared { runtime.freezer()? } else { None };
        let program = ModuleProgram {
            directory: &self.directory,
            modules: &self.modules,
            text: &self.text,
            has_fetch: self.network.is_some(),
        };
        Ok((runtime.program(&program, LOADING)?, freezer))
    }
}

/// A call to be executed on an engine's thread.
struct Job {
    function: Function,
    arguments: Vec<Value>,
    reply: oneshot::Sender<CallResult>,
}

/// Result of a call.
struct CallResult {
    result: Result<Value, ScriptError>,
    /// `true` if it left nothing behind.
    is_at_rest: bool,
}

impl CallResult {
    /// Returns the result of a call if the thread ended during it.
    fn lost() -> Self {
        Self { result: Err(ended()), is_at_rest: false }
    }
}

/// Message to an engine's thread during a call.
enum WorkerMessage {
    /// Answer to a request.
    Answer(u64, Result<Value, String>),
    /// Something has arrived from code in another process.
    Wake,
    /// The call was abandoned.
    Gone,
}

/// Guard for a call. Dropping it tells the engine's thread that the call was abandoned.
struct CallGuard(Sender<WorkerMessage>);

impl Drop for CallGuard {
    fn drop(&mut self) {
        let _ = self.0.send(WorkerMessage::Gone);
    }
}

/// A loaded program. Dropping it ends its thread, at the latest when the script's time is used up.
pub(super) struct Engine {
    jobs: Sender<Job>,
    /// Console output from outside turns.
    early: Vec<(Level, String)>,
    lines: mpsc::Receiver<(Level, String)>,
    room: Arc<Mutex<ConsoleBudget>>,
    freezer: Option<Function>,
    /// `true` if the last call succeeded and left nothing behind.
    is_at_rest: bool,
    _guard: CallGuard,
}

impl Engine {
    /// Loads `program` and returns its value. Each call may take as long as a trial with `timeout_ms`.
    pub(super) async fn start(program: Program, timeout_ms: u64) -> Result<(Self, Value), ScriptError> {
        let (jobs, queue) = channel();
        let (messages_in, messages) = channel();
        let guard = CallGuard(messages_in.clone());
        let (lines_in, mut lines) = mpsc::channel(MAX_LINES);
        let room = Arc::<Mutex<ConsoleBudget>>::default();
        let of_thread = Arc::clone(&room);
        let (loaded, mut loading) = oneshot::channel();
        let budget = CALL.min(Duration::from_millis(timeout_ms).saturating_add(MARGIN));
        let work = move || {
            let waker = messages_in.clone();
            let wake: Wake = Arc::new(move || drop(waker.send(WorkerMessage::Wake)));
            let options = || {
                let console = console(lines_in.clone(), Arc::clone(&of_thread));
                program.options(Some(console), Some(Arc::clone(&wake)))
            };
            match script::open(&program.main(), &options, &mut |runtime| program.load(runtime)) {
                Ok((runtime, loads)) => {
                    let _ = loaded.send(Ok(loads));
                    let Program { network, is_shared, .. } = program;
                    Worker { runtime, budget, network, is_shared, messages_in, messages, requests: JoinSet::new() }
                        .serve(&queue);
                }
                Err(error) => drop(loaded.send(Err(error))),
            }
        };
        script::thread::spawn(work).map_err(|error| ScriptError::Failed(format!("cannot start a thread: {error}")))?;
        let mut early = Vec::new();
        let (value, freezer) = loop {
            tokio::select! {
                biased;
                // A script that prints a lot while it loads must not block on this function, which is waiting for it
                // to load.
                Some(line) = lines.recv() => early.push(line),
                loaded = &mut loading => break loaded.map_err(|_| ended())??,
            }
        };
        Ok((Self { jobs, early, lines, room, freezer, is_at_rest: false, _guard: guard }, value))
    }

    /// Prepares the engine to serve several trials, one after another, by freezing the built-in objects.
    ///
    /// # Errors
    /// Returns an error if there is no memory left.
    pub(super) async fn share(&mut self) -> Result<(), ScriptError> {
        match self.freezer.take() {
            Some(freezer) => self.prepare(&freezer, Vec::new()).await.map(drop),
            // Only the embedded engine has built-in objects that can be frozen.
            None => Ok(()),
        }
    }

    /// Prepares the engine for another trial; `false` if it must not be reused, because its last call failed or left
    /// something behind.
    pub(super) fn renew(&mut self) -> bool {
        *lock(&self.room) = ConsoleBudget::default();
        self.is_at_rest
    }

    /// Calls `function` outside a turn. Its console output is recorded with the next call.
    pub(super) async fn prepare(&mut self, function: &Function, arguments: Vec<Value>) -> Result<Value, ScriptError> {
        let mut answer = self.send(function, arguments);
        loop {
            tokio::select! {
                biased;
                Some(line) = self.lines.recv() => self.early.push(line),
                called = &mut answer => return self.take_in(called.unwrap_or_else(|_| CallResult::lost())),
            }
        }
    }

    /// Calls `function` and records its console output. The inner result contains an error of the script, whose
    /// location is recorded too.
    pub(super) async fn call(
        &mut self,
        function: &Function,
        arguments: Vec<Value>,
        turn: &mut Turn,
    ) -> Result<Result<Value, ScriptError>, Ending> {
        std::mem::take(&mut self.early).into_iter().try_for_each(|line| record(line, turn))?;
        let mut answer = self.send(function, arguments);
        let stopping = turn.stopping();
        tokio::pin!(stopping);
        let called = loop {
            tokio::select! {
                biased;
                () = &mut stopping => return Err(Ending::Cancelled),
                Some(line) = self.lines.recv() => record(line, turn)?,
                called = &mut answer => break self.take_in(called.unwrap_or_else(|_| CallResult::lost())),
            }
        };
        while let Ok(line) = self.lines.try_recv() {
            record(line, turn)?;
        }
        let note = lock(&self.room).note();
        if let Some(note) = note {
            record((Level::Warning, note), turn)?;
        }
        if let Err(error) = &called {
            way_of(error).into_iter().try_for_each(|line| record((Level::Error, line), turn))?;
        }
        Ok(called)
    }

    /// Sends a call to the thread. If the thread has ended, the returned channel is closed.
    fn send(&self, function: &Function, arguments: Vec<Value>) -> oneshot::Receiver<CallResult> {
        let (reply, answer) = oneshot::channel();
        let _ = self.jobs.send(Job { function: function.clone(), arguments, reply });
        answer
    }

    fn take_in(&mut self, called: CallResult) -> Result<Value, ScriptError> {
        self.is_at_rest = called.is_at_rest && called.result.is_ok();
        called.result
    }
}

/// Remaining room for console output, and the amount that did not fit.
#[derive(Debug)]
struct ConsoleBudget {
    /// Lines and bytes; `None` after the first line that did not fit.
    left: Option<(usize, usize)>,
    omitted_lines: usize,
    omitted_bytes: usize,
}

impl Default for ConsoleBudget {
    fn default() -> Self {
        Self { left: Some((MAX_LINES, MAX_BYTES)), omitted_lines: 0, omitted_bytes: 0 }
    }
}

impl ConsoleBudget {
    /// Returns `true` if `line` is recorded.
    fn take(&mut self, line: &str) -> bool {
        self.left = self.left.and_then(|(lines, bytes)| Some((lines.checked_sub(1)?, bytes.checked_sub(line.len())?)));
        if self.left.is_none() {
            self.omitted_lines += 1;
            self.omitted_bytes += line.len();
        }
        self.left.is_some()
    }

    /// Returns a note about omitted output, once; `None` if nothing was omitted.
    fn note(&mut self) -> Option<String> {
        let (lines, bytes) = (std::mem::take(&mut self.omitted_lines), std::mem::take(&mut self.omitted_bytes));
        (lines > 0).then(|| format!("(omitted from the console output: {lines} lines, {bytes} bytes)"))
    }
}

/// Locks `mutex` even after a panic, because no panic can leave the data half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends console output to `lines` up to the limits, and counts the rest.
fn console(lines: mpsc::Sender<(Level, String)>, room: Arc<Mutex<ConsoleBudget>>) -> Console {
    Box::new(move |level, line: &str| {
        let is_recorded = lock(&room).take(line);
        if is_recorded {
            let _ = lines.blocking_send((level, line.to_owned()));
        }
    })
}

fn ended() -> ScriptError {
    ScriptError::Failed("the script's thread ended unexpectedly; this is a bug in trialrun".to_owned())
}

fn record((level, text): (Level, String), turn: &mut Turn) -> Result<(), Ending> {
    let from = match level {
        Level::Debug | Level::Info => "agent",
        Level::Warning | Level::Error => "stderr",
    };
    turn.record(Step::Notice { from: from.to_owned(), text })
}

/// State of an engine's thread.
struct Worker {
    runtime: Box<dyn CodeRuntime>,
    budget: Duration,
    network: Option<Network>,
    is_shared: bool,
    messages_in: Sender<WorkerMessage>,
    messages: Receiver<WorkerMessage>,
    /// Pending network requests. They end with the thread.
    requests: JoinSet<()>,
}

impl Worker {
    fn serve(mut self, queue: &Receiver<Job>) {
        while let Ok(Job { function, arguments, reply }) = queue.recv() {
            let result = self.call(&function, &arguments);
            let is_at_rest = self.is_shared && self.runtime.renew();
            let _ = reply.send(CallResult { result, is_at_rest });
        }
    }

    fn call(&mut self, function: &Function, arguments: &[Value]) -> Result<Value, ScriptError> {
        let task = self.runtime.begin(function, arguments, self.budget)?;
        loop {
            match self.runtime.step(&task)? {
                Progress::Done(value) => return Ok(value),
                Progress::Waits(until) => self.wait(Some(until))?,
                Progress::Requests(requests) => requests.into_iter().try_for_each(|request| self.take(request))?,
                Progress::Owed => self.wait(None)?,
            }
        }
    }

    /// Waits for an answer or a timer.
    fn wait(&mut self, until: Option<Instant>) -> Result<(), ScriptError> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let received = match left {
            Some(left) => self.messages.recv_timeout(left),
            None => self.messages.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok(WorkerMessage::Answer(request, answer)) => self.runtime.answer(request, &answer),
            Ok(WorkerMessage::Wake) | Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(WorkerMessage::Gone) | Err(RecvTimeoutError::Disconnected) => {
                Err(ScriptError::Failed("the call was abandoned".to_owned()))
            }
        }
    }

    /// Starts a requested operation; unknown operations are refused.
    fn take(&mut self, request: Request) -> Result<(), ScriptError> {
        let network = self.network.clone().filter(|_| *request.name == *FETCH);
        let Some((network, runtime)) = network.and_then(|network| Some((network.clone(), network.runtime()?.clone())))
        else {
            return self.runtime.answer(request.id, &Err(format!("`{}` cannot be used here", request.name)));
        };
        let messages_in = self.messages_in.clone();
        let sending = async move {
            let sent = request.arguments.first().unwrap_or(&Value::Undefined);
            let answer = network.fetch(sent).await;
            let _ = messages_in.send(WorkerMessage::Answer(request.id, answer));
        };
        self.requests.spawn_on(sending, &runtime);
        Ok(())
    }
}

/// Returns the location of an error, one entry per line: the user's line and the stack. Empty if it is unknown.
fn way_of(error: &ScriptError) -> Vec<String> {
    let is_own = |file: &str| ModuleProgram::is_program(Path::new(file));
    let place = error.place().filter(|place| !is_own(&place.file));
    let place = place.map(|place| format!("at {place}: {}", place.text.trim()));
    let frames = error.stack().iter().filter(|frame| !is_own(&frame.file)).map(|frame| format!("  at {frame}"));
    place.into_iter().chain(frames).collect()
}

/// Returns `true` if an error is located in the generated program.
pub(super) fn is_of_the_program(error: &ScriptError) -> bool {
    error.place().is_some_and(|place| ModuleProgram::is_program(Path::new(&*place.file)))
}
