//! A script engine on a thread of its own: for an agent that is a module, and for tools that are.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
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
    *lock(&LIBRARY) = modules.clone();
}

/// The modules that were read so far.
pub fn library() -> Library {
    lock(&LIBRARY).clone()
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
    /// `true` if its engine may be [shared](Engine::share).
    pub(super) is_shared: bool,
}

impl Program {
    /// Loads it without a thread, to see whether it can be. Functions in what it gives cannot be called any more.
    pub(super) fn check(&self) -> Result<Value, ScriptError> {
        self.load(&mut Runtime::new(self.options(None))?).map(|(value, _)| value)
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

    /// What it makes, and what [freezes](Runtime::freezer) the engine if it is to be shared.
    fn load(&self, runtime: &mut Runtime) -> Result<(Value, Option<Function>), ScriptError> {
        let freezer = if self.is_shared { Some(runtime.freezer()?) } else { None };
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
        Ok((runtime.export(&module, "default")?.unwrap_or_default(), freezer))
    }
}

/// Something to do for an engine's thread.
struct Job {
    function: Function,
    arguments: Vec<Value>,
    reply: oneshot::Sender<Called>,
}

/// What came of a call.
struct Called {
    result: Result<Value, ScriptError>,
    /// `true` if it left nothing behind.
    is_at_rest: bool,
}

impl Called {
    /// The thread ended in the middle of it.
    fn lost() -> Self {
        Self { result: Err(ended()), is_at_rest: false }
    }
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
    room: Arc<Mutex<Room>>,
    freezer: Option<Function>,
    /// `true` if the last call went well and left nothing behind.
    is_at_rest: bool,
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
        let room = Arc::<Mutex<Room>>::default();
        let of_thread = Arc::clone(&room);
        let (loaded, mut loading) = oneshot::channel();
        let budget = CALL.min(Duration::from_millis(timeout_ms).saturating_add(MARGIN));
        let work = move || {
            let made = Runtime::new(program.options(Some(console(lines_in, of_thread))));
            match made.and_then(|mut runtime| program.load(&mut runtime).map(|loads| (runtime, loads))) {
                Ok((runtime, loads)) => {
                    let _ = loaded.send(Ok(loads));
                    let network = program.network;
                    Worker { runtime, budget, network, hearing, heard, requests: JoinSet::new() }.serve(&queue);
                }
                Err(error) => drop(loaded.send(Err(error))),
            }
        };
        script::thread::spawn(work).map_err(|error| ScriptError::Failed(format!("cannot start a thread: {error}")))?;
        let mut early = Vec::new();
        let (value, freezer) = loop {
            tokio::select! {
                biased;
                // Whoever writes much while loading must not wait for somebody who waits for the loading.
                Some(line) = lines.recv() => early.push(line),
                loaded = &mut loading => break loaded.map_err(|_| ended())??,
            }
        };
        Ok((Self { jobs, early, lines, room, freezer, is_at_rest: false, _alive: alive }, value))
    }

    /// Has the engine serve trials one after the other: none can change what the language brings.
    ///
    /// # Errors
    /// If there is no memory left, or its program was not loaded for it.
    pub(super) async fn share(&mut self) -> Result<(), ScriptError> {
        let unprepared = || ScriptError::Failed("the engine is not made for more than one trial".to_owned());
        let freezer = self.freezer.take().ok_or_else(unprepared)?;
        self.prepare(&freezer, Vec::new()).await.map(drop)
    }

    /// Makes it ready for another trial; `false` if it is not to be used again, because its last call failed or left
    /// something behind.
    pub(super) fn renew(&mut self) -> bool {
        *lock(&self.room) = Room::default();
        self.is_at_rest
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
                called = &mut answer => return self.take_in(called.unwrap_or_else(|_| Called::lost())),
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
                called = &mut answer => break self.take_in(called.unwrap_or_else(|_| Called::lost())),
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

    fn take_in(&mut self, called: Called) -> Result<Value, ScriptError> {
        self.is_at_rest = called.is_at_rest && called.result.is_ok();
        called.result
    }
}

/// How much more of the console is recorded, and what was written beyond.
#[derive(Debug)]
struct Room {
    /// Lines and bytes; `None` after the first line that did not fit.
    left: Option<(usize, usize)>,
    lines_left_out: usize,
    bytes_left_out: usize,
}

impl Default for Room {
    fn default() -> Self {
        Self { left: Some((MOST_LINES, MOST_BYTES)), lines_left_out: 0, bytes_left_out: 0 }
    }
}

impl Room {
    /// `true` if `line` is recorded.
    fn take(&mut self, line: &str) -> bool {
        self.left = self.left.and_then(|(lines, bytes)| Some((lines.checked_sub(1)?, bytes.checked_sub(line.len())?)));
        if self.left.is_none() {
            self.lines_left_out += 1;
            self.bytes_left_out += line.len();
        }
        self.left.is_some()
    }

    /// A note of what is left out, once; nothing where nothing is left out.
    fn note(&mut self) -> Option<String> {
        let (lines, bytes) = (std::mem::take(&mut self.lines_left_out), std::mem::take(&mut self.bytes_left_out));
        (lines > 0).then(|| format!("(the console had more, which is left out: {lines} lines, {bytes} bytes)"))
    }
}

/// Nothing that is locked here is left half changed by a panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Sends what is written to the console to `lines` as long as there is room, and counts the rest.
fn console(lines: mpsc::Sender<(Level, String)>, room: Arc<Mutex<Room>>) -> Console {
    Box::new(move |level, line: &str| {
        let is_recorded = lock(&room).take(line);
        if is_recorded {
            let _ = lines.blocking_send((level, line.to_owned()));
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
            let result = self.call(&function, &arguments);
            let _ = reply.send(Called { result, is_at_rest: self.runtime.is_at_rest() });
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
