//! A scenario's thread: it loads the module, runs the function and passes on its requests.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use agent::RunState;
use model::Code;
use script::{CodeRuntime, Console, HostFunction, Options, Progress, Request, ScriptError, Tests, Value};
use tokio::sync::mpsc;

use super::ScenarioRequest;

/// Time limit for loading a module and everything that it imports.
const LOADING: Duration = Duration::from_secs(10);

/// CPU time limit for a scenario.
const PROCESSOR: Duration = Duration::from_secs(30);

/// Memory limit for an engine, in bytes.
const MEMORY: usize = 128 << 20;

/// Capacity of the channel from the scenario to the trial; when it is full, the scenario waits.
const WAITING: usize = 256;

/// Maximum number of console lines that are recorded per scenario.
const MOST_LINES: usize = 1_000;

/// Maximum size of the console output that is recorded per scenario, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Message from a scenario to the trial.
#[derive(Debug)]
pub(crate) enum ScriptEvent {
    /// A line that the scenario wrote to its console.
    Line(String),
    /// Requests from the scenario, as many as it can make without an answer, each with the number under which to
    /// answer it. Requests made just before the scenario is stopped are sent too, but their answers are ignored.
    Requests(Vec<(u64, Result<ScenarioRequest, String>)>),
    /// The scenario has ended. This is the last message.
    Ended(Result<(), ScriptFailure>),
}

/// Reason why a scenario did not complete.
#[derive(Debug)]
pub(crate) enum ScriptFailure {
    /// Its module can no longer be loaded.
    Unloaded(ScriptError),
    /// It threw an exception, or exceeded one of its limits.
    Ended(ScriptError),
    /// It was stopped while it waited for this operation.
    Stopped(&'static str),
}

/// Scenario that runs on its own thread. Dropping it stops the scenario.
pub(crate) struct Script {
    words: mpsc::Receiver<ScriptEvent>,
    received: Option<ScriptEvent>,
    teller: Sender<Told>,
    stop: Arc<AtomicBool>,
}

impl Script {
    /// Starts a scenario. `about` is the information about the agent that the scenario receives; `state` is that
    /// of the run.
    pub(crate) fn start(code: &Code, about: Value, state: Arc<RunState>) -> std::io::Result<Self> {
        let (telling, words) = mpsc::channel(WAITING);
        let (teller, receiver) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let play = ScriptThread {
            code: code.clone(),
            about,
            state,
            stop: Arc::clone(&stop),
            words: telling,
            teller: teller.clone(),
            told: receiver,
        };
        script::thread::spawn(move || play.run())?;
        Ok(Self { words, received: None, teller, stop })
    }

    /// Waits for the next message, which is kept for [`take`](Self::take). Once `stopping` resolves, the scenario is
    /// stopped and its remaining messages are delivered.
    pub(crate) async fn listen(&mut self, stopping: impl Future<Output = ()>) {
        if self.received.is_some() {
            return;
        }
        let word = tokio::select! {
            biased;
            word = self.words.recv() => word,
            () = stopping => {
                self.stop();
                self.words.recv().await
            }
        };
        self.received = Some(word.unwrap_or_else(|| {
            let lost = "the scenario's thread ended unexpectedly; this is a bug in trialrun";
            ScriptEvent::Ended(Err(ScriptFailure::Ended(ScriptError::Failed(lost.to_owned()))))
        }));
    }

    /// Takes the message that was received.
    pub(crate) fn take(&mut self) -> Option<ScriptEvent> {
        self.received.take()
    }

    /// Answers a request.
    pub(crate) fn answer(&self, request: u64, answer: Result<Value, String>) {
        // Fails if the scenario has ended. That is not an error.
        let _ = self.teller.send(Told::Answer(request, answer));
    }

    /// Stops the scenario, whatever it is doing.
    pub(crate) fn stop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.teller.send(Told::Stop);
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Passes on console lines up to the limits, then a single note that lines were omitted.
fn console(words: mpsc::Sender<ScriptEvent>) -> Console {
    let mut room = Some((MOST_LINES, MOST_BYTES));
    Box::new(move |_, line: &str| {
        let Some((lines, bytes)) = room else { return };
        room = lines.checked_sub(1).zip(bytes.checked_sub(line.len()));
        let shown = if room.is_some() { line } else { "(more console output was omitted)" };
        let _ = words.blocking_send(ScriptEvent::Line(shown.to_owned()));
    })
}

/// Message to the thread.
enum Told {
    /// Answer to a request, by its number.
    Answer(u64, Result<Value, String>),
    /// Something has arrived from code in another process.
    Wake,
    /// The scenario is over.
    Stop,
}

/// State of the thread.
struct ScriptThread {
    code: Code,
    about: Value,
    state: Arc<RunState>,
    stop: Arc<AtomicBool>,
    words: mpsc::Sender<ScriptEvent>,
    teller: Sender<Told>,
    told: Receiver<Told>,
}

impl ScriptThread {
    fn run(self) {
        let module = &self.code.module;
        let opened = script::open(module, &|| self.options(), &mut |runtime| runtime.tests(module, LOADING));
        // The runtime is dropped after the trial has been notified, because dropping it takes as long as a small
        // scenario.
        let (runtime, ended) = match opened {
            Ok((mut runtime, tests)) => {
                let ended = self.play(&mut *runtime, &tests);
                (Some(runtime), ended)
            }
            Err(error) => (None, Err(ScriptFailure::Unloaded(error))),
        };
        self.tell(ScriptEvent::Ended(ended));
        drop(runtime);
    }

    /// Returns the options of the runtime that runs the scenario.
    fn options(&self) -> Options {
        let mut options = Options::new(self.directory());
        options.memory = MEMORY;
        options.stack = script::thread::SCRIPT_STACK;
        options.library = self.state.modules.clone();
        options.console = Some(console(self.words.clone()));
        options.stop = Some(Arc::clone(&self.stop));
        // Modules are identified by their canonical paths.
        let cwd = &self.state.cwd;
        options.shown_from = cwd.canonicalize().unwrap_or_else(|_| cwd.clone());
        let teller = self.teller.clone();
        options.wake = Some(Arc::new(move || drop(teller.send(Told::Wake))));
        options
    }

    /// Returns the directory of the module.
    fn directory(&self) -> PathBuf {
        self.code.module.parent().map_or_else(|| PathBuf::from("/"), PathBuf::from)
    }

    /// Sends `word`. Once the trial is over, there is no receiver, and the error is ignored.
    fn tell(&self, word: ScriptEvent) {
        let _ = self.words.blocking_send(word);
    }

    fn play(&self, runtime: &mut dyn CodeRuntime, tests: &Tests) -> Result<(), ScriptFailure> {
        self.check(tests).map_err(ScriptFailure::Unloaded)?;
        let mut played = self.scenario(runtime, tests);
        if let Err(ScriptFailure::Ended(ScriptError::NeverSettled) | ScriptFailure::Stopped(_)) = &played {
            // A scenario that only delivers its results must not be stopped.
            self.stop.store(false, Ordering::Relaxed);
            if let Some(error) = runtime.thrown(tests) {
                played = Err(ScriptFailure::Ended(error));
            }
        }
        // Assertions made just before a failure count.
        self.pass_on(&runtime.requests(), runtime);
        played
    }

    /// Checks that the module still has the planned scenario.
    fn check(&self, tests: &Tests) -> Result<(), ScriptError> {
        match tests.scenarios.get(self.code.scenario) {
            Some(written) if written.name == self.code.name => Ok(()),
            _ => {
                let what = format!("{} has changed: `{}` no longer exists", self.code.module.display(), self.code.name);
                Err(ScriptError::Failed(what))
            }
        }
    }

    fn scenario(&self, runtime: &mut dyn CodeRuntime, tests: &Tests) -> Result<(), ScriptFailure> {
        let ask = HostFunction::new("ask").into();
        let task = runtime
            .begin_scenario(tests, self.code.scenario, ask, self.about.clone(), PROCESSOR)
            .map_err(ScriptFailure::Ended)?;
        loop {
            let until = match runtime.step(&task).map_err(ScriptFailure::Ended)? {
                Progress::Done(_) => return Ok(()),
                Progress::Requests(requests) => {
                    self.pass_on(&requests, runtime);
                    continue;
                }
                Progress::Waits(until) => Some(until),
                Progress::Owed => None,
            };
            self.handle(self.wait(until), until, runtime)?;
        }
    }

    fn pass_on(&self, requests: &[Request], runtime: &dyn CodeRuntime) {
        let file = self.code.module.display().to_string();
        let asks = requests.iter().map(|request| (request.id, ScenarioRequest::read(request, runtime, &file)));
        self.tell(ScriptEvent::Requests(asks.collect()));
    }

    /// Handles a message and all others that have arrived. There may be none, if a timer is due.
    fn handle(
        &self,
        told: Option<Told>,
        until: Option<Instant>,
        runtime: &mut dyn CodeRuntime,
    ) -> Result<(), ScriptFailure> {
        let mut next = told;
        while let Some(told) = next {
            match told {
                Told::Answer(request, answer) => {
                    runtime.answer(request, &answer).map_err(ScriptFailure::Ended)?;
                }
                Told::Wake => {}
                Told::Stop => {
                    let waited = if until.is_some() { "it waited for a timer" } else { "it waited" };
                    return Err(ScriptFailure::Stopped(waited));
                }
            }
            next = self.told.try_recv().ok();
        }
        Ok(())
    }

    /// Returns the next message, if one arrives before `until`.
    fn wait(&self, until: Option<Instant>) -> Option<Told> {
        match until {
            Some(until) => self.told.recv_timeout(until.saturating_duration_since(Instant::now())).ok(),
            None => self.told.recv().ok(),
        }
    }
}
