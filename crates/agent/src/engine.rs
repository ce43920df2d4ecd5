//! A script engine on a thread of its own: for an agent that is a module, and for tools that are.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::{Duration, Instant};

use model::{Ending, Step};
use script::{Console, FETCH, Function, Level, Library, Options, Progress, Request, Runtime, ScriptError, Value};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::network::Network;
use crate::turn::Turn;

/// What a module and all that it imports may take to load.
const LOADING: Duration = Duration::from_secs(10);
/// How long one call may have the processor.
const CALL: Duration = Duration::from_secs(30);
/// How much later than the trial's own clock a call is stopped, so that it is the clock that ends the trial.
const MARGIN: Duration = Duration::from_secs(1);
/// The most memory of an engine, in bytes.
const MEMORY: usize = 256 << 20;
/// How many lines on the console are recorded of one engine.
const MOST_LINES: usize = 1_000;
/// How much of the console is recorded of one engine, in bytes.
const MOST_BYTES: usize = 1 << 20;
/// The file that holds a program as far as its imports and its errors are concerned. There is none.
const PROGRAM: &str = ".trialrun-program.mjs";

/// What was read for one plan, for its run to use.
static LIBRARY: LazyLock<Mutex<Library>> = LazyLock::new(Mutex::default);

/// What is loaded from now on is what `modules` has already read, and what it reads then.
pub fn use_modules(modules: &Library) {
    *LIBRARY.lock().unwrap_or_else(PoisonError::into_inner) = modules.clone();
}

/// The modules that were read so far.
pub fn library() -> Library {
    LIBRARY.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// What is loaded into an engine.
#[derive(Debug, Clone)]
pub(super) struct Program {
    /// The directory that imports start at.
    pub(super) directory: PathBuf,
    /// The modules that are imported, as an import names them.
    pub(super) modules: Vec<String>,
    /// A module that makes, of these modules as `modules`, its default export: what there is to be called.
    pub(super) text: String,
    /// The hosts that its calls may ask; without it there is no `fetch`.
    pub(super) network: Option<Network>,
}

impl Program {
    /// Loads it without a thread, to see whether it can be. Functions in what it gives cannot be called any more.
    pub(super) fn check(&self) -> Result<Value, ScriptError> {
        self.load(&mut Runtime::new(self.options(None))?)
    }

    fn options(&self, console: Option<Console>) -> Options {
        let mut options = Options::new(&self.directory);
        options.memory = MEMORY;
        options.console = console;
        options.library = library();
        if let Ok(here) = std::path::absolute(".") {
            options.shown_from = here;
        }
        options
    }

    fn load(&self, runtime: &mut Runtime) -> Result<Value, ScriptError> {
        // A configuration that has functions imports what it is written with.
        runtime.give_prelude();
        if self.network.is_some() {
            runtime.give_fetch()?;
        }
        let mut text = String::new();
        for (at, specifier) in self.modules.iter().enumerate() {
            // Imported by itself, what is wrong with it is not told with a place in a program that nobody wrote.
            runtime.import(specifier, &self.directory, LOADING)?;
            text.push_str(&format!("import * as module{at} from {};\n", serde_json::json!(specifier)));
        }
        let names: Vec<String> = (0..self.modules.len()).map(|at| format!("module{at}")).collect();
        text.push_str(&format!("const modules = [{}];\n{}", names.join(", "), self.text));
        let module = runtime.import_source(&text, &self.directory.join(PROGRAM), LOADING)?;
        Ok(runtime.export(&module, "default")?.unwrap_or_default())
    }
}

/// Something to do for an engine's thread.
struct Job {
    function: Function,
    arguments: Vec<Value>,
    reply: oneshot::Sender<Result<Value, ScriptError>>,
}

/// What an engine's thread waits for while a call goes on.
enum Heard {
    /// The answer to a request.
    Answer(u64, Result<Value, String>),
    /// The call is given up.
    Gone,
}

/// Dropped, it tells the thread that its call is given up.
struct Alive(Sender<Heard>);

impl Drop for Alive {
    fn drop(&mut self) {
        let _ = self.0.send(Heard::Gone);
    }
}

/// A program that is loaded. Its thread ends when this is dropped, at the latest when its script has used up its time.
pub(super) struct Engine {
    jobs: Sender<Job>,
    /// What was written to the console outside of turns.
    early: Vec<(Level, String)>,
    lines: mpsc::Receiver<(Level, String)>,
    left_out: Arc<LeftOut>,
    _alive: Alive,
}

impl Engine {
    /// Loads `program`, and gives what it makes. A call may take as long as a trial of `timeout_ms`.
    ///
    /// # Errors
    /// What is wrong with the program.
    pub(super) async fn start(program: Program, timeout_ms: u64) -> Result<(Self, Value), ScriptError> {
        let (jobs, queue) = channel();
        let (hearing, heard) = channel();
        let alive = Alive(hearing.clone());
        let (lines_in, mut lines) = mpsc::channel(MOST_LINES);
        let left_out = Arc::<LeftOut>::default();
        let of_thread = Arc::clone(&left_out);
        let (loaded, mut loading) = oneshot::channel();
        let budget = CALL.min(Duration::from_millis(timeout_ms).saturating_add(MARGIN));
        let work = move || {
            let made = Runtime::new(program.options(Some(console(lines_in, of_thread))));
            match made.and_then(|mut runtime| program.load(&mut runtime).map(|value| (runtime, value))) {
                Ok((runtime, value)) => {
                    let _ = loaded.send(Ok(value));
                    let network = program.network;
                    Worker { runtime, budget, network, hearing, heard, requests: JoinSet::new() }.serve(&queue);
                }
                Err(error) => drop(loaded.send(Err(error))),
            }
        };
        script::thread::spawn(work).map_err(|error| ScriptError::Failed(format!("cannot start a thread: {error}")))?;
        let mut early = Vec::new();
        let value = loop {
            tokio::select! {
                biased;
                // Whoever writes much while loading must not wait for somebody who waits for the loading.
                Some(line) = lines.recv() => early.push(line),
                loaded = &mut loading => break loaded.map_err(|_| ended())??,
            }
        };
        Ok((Self { jobs, early, lines, left_out, _alive: alive }, value))
    }

    /// Calls `function` outside of any turn. What it writes to the console is recorded with the next call.
    ///
    /// # Errors
    /// The script's.
    pub(super) async fn prepare(&mut self, function: &Function, arguments: Vec<Value>) -> Result<Value, ScriptError> {
        let (reply, mut answer) = oneshot::channel();
        if self.jobs.send(Job { function: function.clone(), arguments, reply }).is_err() {
            return Err(ended());
        }
        loop {
            tokio::select! {
                biased;
                Some(line) = self.lines.recv() => self.early.push(line),
                called = &mut answer => return called.unwrap_or_else(|_| Err(ended())),
            }
        }
    }

    /// Calls `function` and records what it writes to the console. An error is the script's; where it came from is
    /// recorded, too.
    ///
    /// # Errors
    /// Why the trial is to stop.
    pub(super) async fn call(
        &mut self,
        function: &Function,
        arguments: Vec<Value>,
        turn: &mut Turn,
    ) -> Result<Result<Value, ScriptError>, Ending> {
        std::mem::take(&mut self.early).into_iter().try_for_each(|line| record(line, turn))?;
        let (reply, mut answer) = oneshot::channel();
        if self.jobs.send(Job { function: function.clone(), arguments, reply }).is_err() {
            return Ok(Err(ended()));
        }
        let stopping = turn.stopping();
        tokio::pin!(stopping);
        let called = loop {
            tokio::select! {
                biased;
                () = &mut stopping => return Err(Ending::Cancelled),
                Some(line) = self.lines.recv() => record(line, turn)?,
                called = &mut answer => break called.unwrap_or_else(|_| Err(ended())),
            }
        };
        while let Ok(line) = self.lines.try_recv() {
            record(line, turn)?;
        }
        if let Some(note) = self.left_out.note() {
            record((Level::Warning, note), turn)?;
        }
        if let Err(error) = &called {
            way_of(error).into_iter().try_for_each(|line| record((Level::Error, line), turn))?;
        }
        Ok(called)
    }
}

/// What was written to the console and is not recorded.
#[derive(Debug, Default)]
struct LeftOut {
    lines: AtomicUsize,
    bytes: AtomicUsize,
}

impl LeftOut {
    /// What is said of it, once; nothing where nothing is left out.
    fn note(&self) -> Option<String> {
        let (lines, bytes) = (self.lines.swap(0, Ordering::Relaxed), self.bytes.swap(0, Ordering::Relaxed));
        (lines > 0).then(|| format!("(the console had more, which is left out: {lines} lines, {bytes} bytes)"))
    }
}

/// Sends what is written to the console to `lines` as long as there is room, and counts the rest.
fn console(lines: mpsc::Sender<(Level, String)>, left_out: Arc<LeftOut>) -> Console {
    let mut room = Some((MOST_LINES, MOST_BYTES));
    Box::new(move |level, line: &str| {
        room = room.and_then(|(lines, bytes)| Some((lines.checked_sub(1)?, bytes.checked_sub(line.len())?)));
        if room.is_some() {
            let _ = lines.blocking_send((level, line.to_owned()));
        } else {
            left_out.lines.fetch_add(1, Ordering::Relaxed);
            left_out.bytes.fetch_add(line.len(), Ordering::Relaxed);
        }
    })
}

fn ended() -> ScriptError {
    ScriptError::Failed("the script's thread ended unexpectedly; this is a bug of trialrun".to_owned())
}

fn record((level, text): (Level, String), turn: &mut Turn) -> Result<(), Ending> {
    let from = match level {
        Level::Debug | Level::Info => "agent",
        Level::Warning | Level::Error => "stderr",
    };
    turn.record(Step::Notice { from: from.to_owned(), text }).go()
}

/// What an engine's thread has.
struct Worker {
    runtime: Runtime,
    budget: Duration,
    network: Option<Network>,
    hearing: Sender<Heard>,
    heard: Receiver<Heard>,
    /// Requests over the network that are under way. They end with the thread.
    requests: JoinSet<()>,
}

impl Worker {
    fn serve(mut self, queue: &Receiver<Job>) {
        while let Ok(Job { function, arguments, reply }) = queue.recv() {
            let _ = reply.send(self.call(&function, &arguments));
        }
    }

    fn call(&mut self, function: &Function, arguments: &[Value]) -> Result<Value, ScriptError> {
        let task = self.runtime.begin(function, arguments, self.budget)?;
        loop {
            match self.runtime.step(&task)? {
                Progress::Done(value) => return Ok(value),
                Progress::Waits(until) => self.wait(Some(until))?,
                Progress::Asks(requests) => requests.into_iter().try_for_each(|request| self.take(request))?,
                Progress::Owed => self.wait(None)?,
            }
        }
    }

    /// Waits for an answer or a timer.
    fn wait(&mut self, until: Option<Instant>) -> Result<(), ScriptError> {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let heard = match left {
            Some(left) => self.heard.recv_timeout(left),
            None => self.heard.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match heard {
            Ok(Heard::Answer(request, answer)) => self.runtime.answer(request, &answer),
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(Heard::Gone) | Err(RecvTimeoutError::Disconnected) => {
                Err(ScriptError::Failed("the call was given up".to_owned()))
            }
        }
    }

    /// Begins what is asked for; what is not there is refused.
    fn take(&mut self, request: Request) -> Result<(), ScriptError> {
        let network = self.network.clone().filter(|_| *request.name == *FETCH);
        let Some((network, runtime)) = network.and_then(|network| Some((network.clone(), network.runtime()?.clone())))
        else {
            return self.runtime.answer(request.id, &Err(format!("`{}` cannot be used here", request.name)));
        };
        let hearing = self.hearing.clone();
        let sending = async move {
            let sent = request.arguments.first().unwrap_or(&Value::Undefined);
            let answer = network.fetch(sent).await;
            let _ = hearing.send(Heard::Answer(request.id, answer));
        };
        self.requests.spawn_on(sending, &runtime);
        Ok(())
    }
}

/// Where an error came from, a line each: the user's text, and the way there. Empty if nothing is known.
fn way_of(error: &ScriptError) -> Vec<String> {
    let is_own = |file: &str| Path::new(file).file_name().is_some_and(|name| name == PROGRAM);
    let place = error.place().filter(|place| !is_own(&place.file));
    let place = place.map(|place| format!("at {place}: {}", place.text.trim()));
    let frames = error.stack().iter().filter(|frame| !is_own(&frame.file)).map(|frame| format!("  at {frame}"));
    place.into_iter().chain(frames).collect()
}

/// Whether an error points at a program that nobody wrote.
pub(super) fn is_of_the_program(error: &ScriptError) -> bool {
    error.place().is_some_and(|place| place.file.ends_with(PROGRAM))
}
