//! The program's side of a process that runs the user's code.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use model::{Diagnostic, Excerpt, Source};
use serde_json::{Value as Json, json};

use super::codec::{decode, encode};
use crate::code_runtime::{CodeRuntime, ModuleProgram};
use crate::error::ScriptError;
use crate::launcher::{Launcher, ProcessLimits};
use crate::module::library::Kind;
use crate::module::lookup;
use crate::module::node;
use crate::module::resolve::ImportKind;
use crate::options::{Level, Options};
use crate::pipes::{Event, Pipes};
use crate::platform::{HEAP, Platform};
use crate::prelude::{self, CORE, Call, Tests};
use crate::pump::Progress;
use crate::realm::{Builtin, Realm};
use crate::runtime::number;
use crate::source_map;
use crate::task::Task;
use crate::trace;
use crate::value::{Function, Request, Value};

/// The text that the process runs. It is the first message, because everybody can see arguments.
const TEXT: &str = include_str!("modules.js");

/// Text in the arguments, which reads the other one and runs it as a module.
const START: &str = include_str!("start.js");

/// Limits on a process. Timeouts of trials are shorter than this as a rule.
const LIMITS: ProcessLimits = ProcessLimits { processor: Duration::from_secs(300), memory: 4 << 30 };

/// Exit code of a process that has exceeded its CPU time: 128 + SIGXCPU.
const OUT_OF_PROCESSOR: i32 = 152;

/// Time in which code that waits answers.
const ANSWER: Duration = Duration::from_secs(1);

/// Time in which code that has made a request usually makes the others that it can make.
const PAUSE: Duration = Duration::from_millis(20);

/// Real time that a module gets to load, for each unit of CPU time that it may use: other processes need the machine, too.
const REAL_TIME: u32 = 6;

/// Interval at which the stop flag is checked.
const LOOK: Duration = Duration::from_millis(50);

/// Number of printed lines that are kept to explain the end of a process.
const LAST_LINES: usize = 20;

/// The user's modules in a process of a runtime of the user.
pub(crate) struct ExternalRuntime {
    platform: &'static Platform,
    realm: Rc<Realm>,
    /// `None` only while it is dropped.
    pipes: Option<Pipes>,
    /// True if the process may be used for other modules afterwards.
    is_inspection: bool,
    stop: Option<Arc<AtomicBool>>,
    requests: Vec<Request>,
    ended_calls: HashMap<u64, Result<Value, ScriptError>>,
    /// Error outside a call, such as an unhandled rejection.
    uncaught: Option<ScriptError>,
    /// True if the code waits for something that cannot happen any more.
    is_idle: bool,
    /// Reason why the process is of no use any more.
    end: Option<ScriptError>,
    /// Call of `process.exit`: its code and its location.
    exit: Option<(i64, Option<Excerpt>)>,
    /// Stack of the last request, for the location of code that does not go on.
    last_stack: Option<String>,
    /// What was printed last.
    last_lines: VecDeque<String>,
    has_greeted: bool,
    next_call: u64,
}

impl ExternalRuntime {
    /// Starts a process. `options` apply as to an engine; the memory has a limit of its own.
    ///
    /// # Errors
    /// Returns an error if it cannot be started.
    pub fn start(platform: &'static Platform, options: Options, launcher: &dyn Launcher) -> Result<Self, ScriptError> {
        let (stop, wake, is_inspection) = (options.stop.clone(), options.wake.clone(), options.is_inspection);
        let realm = Rc::new(Realm::new(number(), options));
        prelude::provide(&realm);
        let idle = if is_inspection { realm.library.take_idle() } else { None };
        let has_greeted = idle.is_some();
        let pipes = match idle {
            Some(pipes) => pipes,
            None => {
                let arguments = platform.arguments(HEAP, START);
                let launched = launcher.launch(platform, &arguments, LIMITS).map_err(|error| match error.kind() {
                    std::io::ErrorKind::NotFound => realm.library.refuse_runtime(platform.not_installed()),
                    _ => ScriptError::Failed(format!("cannot start {}: {error}", platform.name)),
                })?;
                let pipes = Pipes::open(launched, wake)?;
                pipes.send(&TEXT.into());
                pipes
            }
        };
        let builtins = realm.builtins.borrow();
        let texts = builtins.iter().map(|(name, builtin)| match builtin {
            Builtin::Own(text) => (name.clone(), Json::from(*text)),
            Builtin::Given(text) => (name.clone(), Json::from(&**text)),
        });
        pipes.send(&json!({ "builtins": texts.collect::<serde_json::Map<_, _>>() }));
        drop(builtins);
        Ok(Self {
            platform,
            realm,
            pipes: Some(pipes),
            is_inspection,
            stop,
            requests: Vec::new(),
            ended_calls: HashMap::new(),
            uncaught: None,
            is_idle: false,
            end: None,
            exit: None,
            last_stack: None,
            last_lines: VecDeque::new(),
            has_greeted,
            next_call: 1,
        })
    }

    fn send(&self, message: &Json) {
        if let Some(pipes) = &self.pipes {
            pipes.send(message);
        }
    }

    fn next(&self, timeout: Duration) -> Option<Event> {
        self.pipes.as_ref()?.next(timeout)
    }

    /// Sends a call, and returns its number.
    fn order(&mut self, mut message: Json) -> u64 {
        let id = self.next_call;
        self.next_call += 1;
        self.is_idle = false;
        message["id"] = id.into();
        self.send(&message);
        id
    }

    /// Waits for the end of call `id`. Requests are refused, because nothing answers them.
    fn finish(&mut self, id: u64, budget: Duration) -> Result<Value, ScriptError> {
        let until = Instant::now() + budget;
        loop {
            if let Some(ended) = self.result(id) {
                return ended;
            }
            for request in std::mem::take(&mut self.requests) {
                let refusal = Err(format!("`{}` cannot be used here", request.name));
                self.answer(request.id, &refusal)?;
            }
            let left = until.saturating_duration_since(Instant::now());
            if self.is_stopped() {
                return Err(ScriptError::Failed("it was stopped before it was loaded".to_owned()));
            }
            if left.is_zero() {
                return Err(ScriptError::TimedOut { budget, place: self.last_place() });
            }
            if let Some(event) = self.next(left.min(LOOK)) {
                self.handle(event);
            }
        }
    }

    /// Returns the result of call `id`, or the reason why there is none; `None` while it runs.
    fn result(&mut self, id: u64) -> Option<Result<Value, ScriptError>> {
        if let Some(ended) = self.ended_calls.remove(&id) {
            return Some(ended);
        }
        if let Some(error) = self.uncaught.take().or_else(|| self.end.clone()) {
            return Some(Err(error));
        }
        self.is_idle.then_some(Err(ScriptError::NeverSettled))
    }

    fn is_stopped(&self) -> bool {
        self.stop.as_ref().is_some_and(|stop| stop.load(Ordering::Relaxed))
    }

    /// Returns the location of the last request, if it is known.
    fn last_place(&self) -> Option<Box<Excerpt>> {
        self.thrown_at(self.last_stack.as_deref()?).map(Box::new)
    }

    /// Handles everything that has arrived. If there are requests, waits for the others that the code can make before it
    /// needs an answer.
    fn handle_all(&mut self) {
        let mut has_paused = true;
        loop {
            let timeout = if has_paused { Duration::ZERO } else { PAUSE };
            let Some(event) = self.next(timeout) else { return };
            let before = self.requests.len();
            let is_pause = matches!(&event, Event::Message(message) if message.get("pause").is_some());
            self.handle(event);
            if self.requests.len() > before {
                has_paused = false;
            } else if is_pause || !self.ended_calls.is_empty() || self.end.is_some() {
                has_paused = true;
            }
        }
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Message(message) => self.take(message),
            Event::Printed(line) => self.print(Level::Info, line),
            Event::Garbage(what) => {
                let what = format!("the code wrote {what} to the program's pipe");
                let place = self.last_place();
                self.end.get_or_insert(ScriptError::Crashed { what, place });
            }
            Event::Ended => {
                let end = self.explain_end();
                self.end.get_or_insert(end);
            }
        }
    }

    fn print(&mut self, level: Level, line: String) {
        if let Some(console) = &mut *self.realm.console.borrow_mut() {
            console(level, &line);
        }
        if self.last_lines.len() == LAST_LINES {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line);
    }

    fn take(&mut self, mut message: Json) {
        let id = message.get("id").and_then(Json::as_u64).unwrap_or_default();
        let text = |key: &str| message.get(key).and_then(Json::as_str).map(str::to_owned);
        if let Some(specifier) = text("resolve") {
            let answer = self.resolve(&specifier, &text("from").unwrap_or_default());
            self.send(&json!({ "told": id, "value": answer }));
        } else if let Some(path) = text("read") {
            let answer = match self.read(Path::new(&path)) {
                Ok(text) => json!({ "told": id, "value": text }),
                Err(message) => json!({ "told": id, "error": message }),
            };
            self.send(&answer);
        } else if let Some(name) = text("request") {
            if let Some(stack) = text("stack") {
                self.last_stack = Some(self.in_engine_format(&stack));
            }
            let Json::Array(arguments) = message["arguments"].take() else { return };
            let decoded = arguments.into_iter().map(|argument| decode(argument, self.realm.id));
            let arguments = self.with_stacks(decoded.collect());
            self.requests.push(Request { id, name: name.into(), arguments });
        } else if let Some(line) = text("line") {
            let level = if text("level").as_deref() == Some("error") { Level::Error } else { Level::Info };
            self.print(level, line);
        } else if let Some(done) = message.get("done").and_then(Json::as_u64) {
            self.ended_calls.insert(done, Ok(decode(message["value"].take(), self.realm.id)));
        } else if let Some(failed) = message.get("failed").and_then(Json::as_u64) {
            let error = self.explain(&message["error"]);
            self.ended_calls.insert(failed, Err(error));
        } else if let Some(error) = message.get("uncaught") {
            let error = self.explain(error);
            self.uncaught.get_or_insert(error);
        } else if let Some(code) = message.get("exits") {
            let place = text("stack").and_then(|stack| self.thrown_at(&self.in_engine_format(&stack)));
            self.exit = Some((code.as_i64().unwrap_or_default(), place));
        } else if message.get("idle").is_some() {
            self.is_idle = true;
        } else if let Some(version) = text("hello") {
            self.has_greeted = true;
            if let Some(what) = self.platform.too_old(&version) {
                let error = self.realm.library.refuse_runtime(what);
                self.end.get_or_insert(error);
            }
        }
    }

    /// Resolves an import of the module `from`. The program resolves the user's own files, and the runtime its own
    /// modules and packages.
    fn resolve(&self, specifier: &str, from: &str) -> Json {
        if self.realm.builtins.borrow().contains_key(specifier) {
            return json!({ "builtin": specifier });
        }
        if specifier.starts_with("node:") {
            return json!({});
        }
        let directory = Path::new(from).parent().unwrap_or(Path::new("/"));
        match self.realm.library.resolve(directory, specifier, ImportKind::Import) {
            Ok(path) if path.iter().any(|part| part == "node_modules") => json!({}),
            Ok(path) => json!({ "own": path }),
            Err(_) if node::of_node(specifier).is_some() => json!({}),
            Err(unresolved) => {
                let place = lookup::import_location(&self.realm, from, specifier);
                let error = unresolved.into_script_error(self.realm.shown(Path::new(from)), place);
                json!({ "otherwise": lookup::remember(&self.realm, error) })
            }
        }
    }

    /// Reads and compiles a file of the user.
    fn read(&self, path: &Path) -> Result<Json, String> {
        let name = path.display().to_string();
        let known = self.realm.texts.borrow().get(&name).cloned();
        let text = match known {
            Some(known) => known,
            None if is_foreign(path) => return Ok(json!({ "kind": "other" })),
            None => self
                .realm
                .library
                .read(path, true)
                .map_err(|error| lookup::remember(&self.realm, lookup::unreadable(&self.realm, path, error)))?,
        };
        self.realm.texts.borrow_mut().insert(name, Arc::clone(&text));
        let kind = match text.kind {
            Kind::Module => "module",
            Kind::CommonJs => "commonjs",
            Kind::Json => "json",
        };
        Ok(json!({ "kind": kind, "code": text.code() }))
    }

    /// Converts stacks in the arguments of a request to the format of the embedded engine.
    fn with_stacks(&self, mut arguments: Vec<Value>) -> Vec<Value> {
        for argument in &mut arguments {
            let Value::Map(entries) = argument else { continue };
            for (_, value) in entries.iter_mut().filter(|(key, _)| ["stack", "read", "thrown"].contains(&key.as_str()))
            {
                let Value::String(stack) = value else { continue };
                *stack = self.in_engine_format(stack);
            }
        }
        arguments
    }

    /// Converts a stack of V8, whose columns are in UTF-16 units.
    fn in_engine_format(&self, stack: &str) -> String {
        let texts = self.realm.texts.borrow();
        let line = |line: &str| -> Option<String> {
            let rest = line.trim_start().strip_prefix("at ")?;
            let rest = rest.strip_prefix("async ").unwrap_or(rest);
            let called = rest.strip_suffix(')').and_then(|rest| rest.split_once(" ("));
            let (function, place) = called.map_or((None, rest), |(function, place)| (Some(function), place));
            let (place, column) = place.rsplit_once(':')?;
            let (file, line) = place.rsplit_once(':')?;
            let (number, column) = (line.parse::<u32>().ok()?, column.parse::<u32>().ok()?);
            let text = texts.get(file)?;
            let start = source_map::byte(text.code(), number.saturating_sub(1), 0);
            let position = source_map::Position { line: number.saturating_sub(1), column: column.saturating_sub(1) };
            let bytes = source_map::offset(text.code(), position) - start;
            let place = format!("{file}:{}:{}", number + text.lines_above(), bytes + 1);
            Some(match function {
                Some(function) => format!("    at {function} ({place})\n"),
                None => format!("    at {place}\n"),
            })
        };
        stack.lines().filter_map(line).collect()
    }

    fn explain(&self, error: &Json) -> ScriptError {
        let text = |key: &str| error.get(key).and_then(Json::as_str).unwrap_or_default();
        let plain = text("plain");
        let known =
            self.realm.missing.borrow().iter().find(|(thrown, _)| thrown == plain).map(|(_, error)| error.clone());
        if let Some(error) = known {
            return error;
        }
        let stack = self.in_engine_format(text("stack"));
        let explained = trace::explain_stack(&self.realm, text("name"), text("message"), &stack);
        if error.get("environment").and_then(Json::as_bool).unwrap_or_default() {
            let place = explained.place().cloned().map(Box::new);
            return ScriptError::Environment { what: explained.to_string(), place };
        }
        explained
    }

    /// Returns the reason why the process has ended.
    fn explain_end(&mut self) -> ScriptError {
        // What was printed last may explain it.
        while let Some(event) = self.next(LOOK) {
            if let Event::Printed(line) = event {
                self.print(Level::Info, line);
            }
        }
        let status = self.pipes.as_mut().map_or(Ok(None), |pipes| pipes.process.wait(ANSWER));
        let place = || self.last_place();
        if let Some((code, place)) = self.exit.clone() {
            let what = format!("the code ended its own process with `process.exit({code})`");
            return ScriptError::Crashed { what, place: place.map(Box::new).or_else(|| self.last_place()) };
        }
        let says = |words: &str| self.last_lines.iter().any(|line| line.contains(words));
        if ["heap", "process", "JavaScript"].iter().any(|what| says(&format!("{what} out of memory"))) {
            return ScriptError::OutOfMemory { limit: HEAP, place: place() };
        }
        let how = match status {
            Ok(Some(OUT_OF_PROCESSOR)) => return ScriptError::TimedOut { budget: LIMITS.processor, place: place() },
            Ok(Some(127)) if !self.has_greeted => {
                return self.realm.library.refuse_runtime(self.platform.not_installed());
            }
            Ok(Some(code @ 129..)) => format!("was killed by signal {}", code - 128),
            Ok(Some(code)) => format!("ended with exit code {code}"),
            Ok(None) => "closed its pipe to trialrun".to_owned(),
            Err(error) => format!("ended: {error}"),
        };
        let name = self.platform.name;
        if !self.has_greeted {
            let last = self.last_lines.iter().rev().find(|line| !line.trim().is_empty());
            let last = last.map_or_else(String::new, |line| format!("; it printed last: {}", line.trim()));
            return ScriptError::Failed(format!("{name} {how} before it ran anything{last}"));
        }
        ScriptError::Crashed { what: format!("{name} {how} while it ran the code"), place: place() }
    }
}

/// Returns `true` if a file is not in one of the languages that the program compiles.
fn is_foreign(path: &Path) -> bool {
    let extension = path.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    !["js", "mjs", "cjs", "jsx", "ts", "mts", "cts", "tsx", "json"].contains(&extension)
}

impl Drop for ExternalRuntime {
    fn drop(&mut self) {
        if !self.is_inspection {
            return;
        }
        // A process that has nothing more to do can load other modules.
        self.handle_all();
        let is_at_rest = self.has_greeted && self.end.is_none() && self.uncaught.is_none() && self.requests.is_empty();
        if let Some(pipes) = self.pipes.take().filter(|_| is_at_rest) {
            self.realm.library.keep_idle(pipes);
        }
    }
}

impl CodeRuntime for ExternalRuntime {
    fn tests(&mut self, path: &Path, budget: Duration) -> Result<Tests, ScriptError> {
        let id = self.order(json!({ "tests": path, "core": CORE.0 }));
        let opened = self.finish(id, budget * REAL_TIME)?;
        let stacks = |written: &mut prelude::Written| written.stack = self.in_engine_format(&written.stack);
        let mut tests = prelude::opened(&opened)?;
        tests.scenarios.iter_mut().chain(&mut tests.others).for_each(stacks);
        Ok(tests)
    }

    fn missing_imports(&self, path: &Path, source: &Source) -> Vec<Diagnostic> {
        prelude::missing_imports(&self.realm, path, source, true)
    }

    fn program(&mut self, program: &ModuleProgram<'_>, budget: Duration) -> Result<Value, ScriptError> {
        let text = program.text();
        let path = program.path();
        lookup::provide(&self.realm, &path, &text)?;
        let id = self.order(json!({ "program": path }));
        self.finish(id, budget * REAL_TIME)
    }

    fn module_exports(
        &mut self,
        path: &Path,
        _text: &str,
        _has_prelude: bool,
        names: &[&str],
        budget: Duration,
    ) -> Result<Value, ScriptError> {
        let names = json!(names);
        let text = format!(
            "const named = (name) => [name, modules[0][name]];\nexport default Object.fromEntries({names}.map(named));"
        );
        let program = ModuleProgram {
            directory: path.parent().unwrap_or(path),
            modules: &[path.display().to_string()],
            text: &text,
            has_fetch: false,
        };
        self.program(&program, budget)
    }

    fn freezer(&mut self) -> Result<Option<Function>, ScriptError> {
        Ok(None)
    }

    fn begin(&mut self, function: &Function, arguments: &[Value], _: Duration) -> Result<Task, ScriptError> {
        let arguments: Vec<Json> = arguments.iter().map(|argument| encode(argument, self.realm.id)).collect();
        let id = self.order(json!({ "call": function.index, "arguments": arguments }));
        Ok(Task { runtime: self.realm.id, id })
    }

    fn step(&mut self, task: &Task) -> Result<Progress, ScriptError> {
        self.handle_all();
        if !self.requests.is_empty() {
            return Ok(Progress::Requests(std::mem::take(&mut self.requests)));
        }
        match self.result(task.id) {
            Some(ended) => ended.map(Progress::Done),
            None => Ok(Progress::Owed),
        }
    }

    fn answer(&mut self, request: u64, answer: &Result<Value, String>) -> Result<(), ScriptError> {
        self.is_idle = false;
        self.send(&match answer {
            Ok(value) => json!({ "told": request, "value": encode(value, self.realm.id) }),
            Err(message) => json!({ "told": request, "error": message }),
        });
        Ok(())
    }

    fn requests(&mut self) -> Vec<Request> {
        self.handle_all();
        std::mem::take(&mut self.requests)
    }

    fn thrown(&mut self, tests: &Tests) -> Option<ScriptError> {
        if self.end.is_some() {
            return None;
        }
        let id = self.order(json!({ "call": tests.rethrow.index, "arguments": [] }));
        // Code that does not answer is still running.
        self.finish(id, ANSWER).err().filter(|error| !matches!(error, ScriptError::NeverSettled))
    }

    fn renew(&mut self) -> bool {
        self.handle_all();
        self.end.is_none() && self.uncaught.is_none() && self.requests.is_empty()
    }

    fn call_site(&self, stack: &str, name: &str) -> Option<Call> {
        trace::site(&self.realm, stack).map(|site| Call::at(&site, name))
    }

    fn missing_globals(&mut self, names: Vec<String>) -> Vec<String> {
        let id = self.order(json!({ "globals": names }));
        let Ok(Value::List(missing)) = self.finish(id, ANSWER) else { return Vec::new() };
        missing.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
    }

    fn thrown_at(&self, stack: &str) -> Option<Excerpt> {
        trace::thrown(&self.realm, stack)
    }
}
