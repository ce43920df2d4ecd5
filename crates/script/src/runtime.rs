//! Runtime: one JavaScript engine with its limits, modules and values.

use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rquickjs::{Context, Ctx, Object, Persistent, Promise};

use crate::convert::{from_script, to_script};
use crate::deadline;
use crate::error::ScriptError;
use crate::expression::cache::ExpressionCache;
use crate::module::resolve::ImportKind;
use crate::module::{loader, lookup};
use crate::options::Options;
use crate::pump::{self, Meter, Progress, StartedCall, TaskState, Turn, started_call};
use crate::realm::{Builtin, Realm};
use crate::shim;
use crate::trace::{Work, explain, is_limit};
use crate::value::{Function, Key, Request, Value};

/// Time limit for reading a property or settling a promise.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// A loaded and evaluated module of a runtime.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    runtime: u64,
    index: usize,
    path: Arc<str>,
}

impl Module {
    /// Returns the real path of its file. For other modules, returns the name that they were given.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// JavaScript engine on one thread. Function values that it returns are valid only for this runtime.
pub struct Runtime {
    pub(crate) tasks: HashMap<u64, TaskState>,
    pub(crate) expressions: ExpressionCache,
    modules: HashMap<String, Module>,
    pub(crate) realm: Rc<Realm>,
    context: Context,
    memory: usize,
    usable: bool,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Values must be dropped before the engine.
        self.tasks.clear();
        self.expressions.clear();
        self.realm.clear();
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("id", &self.realm.id).field("usable", &self.usable).finish_non_exhaustive()
    }
}

/// Returns a number that is unique in the process.
pub(crate) fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Runtime {
    /// Creates a runtime without modules.
    ///
    /// # Errors
    /// Returns an error if the limits do not leave room for the language itself.
    pub fn new(options: Options) -> Result<Self, ScriptError> {
        let failed = |error: rquickjs::Error| ScriptError::engine(&error);
        let engine = rquickjs::Runtime::new().map_err(failed)?;
        engine.set_memory_limit(options.memory);
        engine.set_max_stack_size(options.stack);
        let (memory, frozen) = (options.memory, options.frozen);
        let realm = Rc::new(Realm::new(number(), options));
        let clock = Rc::clone(&realm);
        engine.set_interrupt_handler(Some(Box::new(move || clock.deadline.has_passed())));
        loader::install(&engine, &realm);
        watch_rejections(&engine, &realm);
        let context = Context::full(&engine).map_err(failed)?;
        let mut runtime = Self {
            tasks: HashMap::new(),
            expressions: ExpressionCache::default(),
            modules: HashMap::new(),
            realm,
            context,
            memory,
            usable: true,
        };
        runtime.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            shim::install(ctx, realm, is_limit)?;
            if frozen { shim::freeze(ctx) } else { Ok(()) }
        })?;
        Ok(runtime)
    }

    /// Freezes everything that a script can reach without a module, so that a call cannot affect the next one. Modules
    /// that were loaded before may have changed it.
    ///
    /// # Errors
    /// Returns an error if there is no memory left, or if a loaded module added something that cannot be frozen.
    pub fn freeze(&mut self) -> Result<(), ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, _| shim::freeze(ctx))
    }

    /// Returns a function that freezes the built-in objects. Modules that are loaded before it is called may extend
    /// these objects, and the modules' own global variables stay mutable.
    ///
    /// # Errors
    /// Returns an error if there is no memory left.
    pub fn freezer(&mut self) -> Result<Function, ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| realm.keep(ctx, shim::freezer(ctx, false)?))
    }

    /// Provides `fetch`, which makes requests called [`FETCH`](crate::FETCH). Their argument is a map with `url`,
    /// `method`, `headers` (a list of pairs) and `body` (text, or undefined). The answer must be a map with `status`,
    /// `statusText`, `headers`, `url` and `text`.
    ///
    /// # Errors
    /// Returns an error if there is no memory left.
    pub fn give_fetch(&mut self) -> Result<(), ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, shim::give_fetch)
    }

    /// Returns `true` if the runtime is still usable. It is not after it ran out of memory, or after a script with
    /// pending work failed or was stopped.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

    /// Prepares the runtime for a call that must not be affected by earlier calls: resets the console. Returns false
    /// if that is impossible, because a call left a timer, a request or a job, or because the global object is frozen.
    pub fn renew(&mut self) -> bool {
        let Realm { timers, waiting, outbox, .. } = &*self.realm;
        let has_left = !timers.borrow().is_empty() || !waiting.borrow().is_empty() || !outbox.borrow().is_empty();
        if has_left || !self.tasks.is_empty() || self.context.runtime().is_job_pending() {
            return false;
        }
        let renewed = self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            if let Some(reset) = realm.reset_console.borrow().clone() {
                reset.restore(ctx)?.call::<_, ()>(())?;
            }
            let is_extensible: rquickjs::Function<'_> = realm.tools(ctx)?.get("isExtensible")?;
            is_extensible.call((ctx.globals(),))
        });
        renewed.unwrap_or(false)
    }

    /// Provides a module for `import "specifier"` in any module. Its text is JavaScript.
    pub fn builtin(&mut self, specifier: &str, source: &str) {
        let builtin = Builtin::Given(source.into());
        self.realm.builtins.borrow_mut().insert(specifier.to_owned(), builtin);
    }

    /// Loads and evaluates a module: a path that begins with `./`, `../` or `/`, or a package. `from` is the importing
    /// directory or file. A module is evaluated only once. `budget` includes all its imports.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    pub fn import(&mut self, specifier: &str, from: &Path, budget: Duration) -> Result<Module, ScriptError> {
        let directory = if from.is_file() { from.parent().unwrap_or(from) } else { from };
        let name = lookup::name(&self.realm, directory, specifier, ImportKind::Import)
            .map_err(|error| error.into_script_error(from.display().to_string(), None))?;
        self.import_named(&name, budget)
    }

    /// Evaluates `text` as the module in the file called `name`, which need not exist. The file extension determines
    /// whether it is TypeScript.
    ///
    /// # Errors
    /// Returns an error if something is missing, not valid, or throws.
    pub fn import_source(&mut self, text: &str, name: &Path, budget: Duration) -> Result<Module, ScriptError> {
        let key = name.display().to_string();
        lookup::provide(&self.realm, name, text)?;
        self.modules.remove(&key);
        self.import_named(&key, budget)
    }

    pub(crate) fn import_named(&mut self, name: &str, budget: Duration) -> Result<Module, ScriptError> {
        if let Some(known) = self.modules.get(name) {
            return Ok(known.clone());
        }
        let mut meter = Meter::new(budget);
        let promise = self.enter(&mut meter, None, |ctx, realm| {
            let promise = lookup::import(ctx, realm, name)?;
            match started_call(ctx, realm, promise.into_value())? {
                StartedCall::Promised(promise) => Ok(promise),
                StartedCall::Done(_) => Err(rquickjs::Error::Unknown),
            }
        })?;
        self.finish(&promise, 0, &mut meter, None, &mut refuse)?;
        let namespace = self.enter(&mut meter, None, |ctx, _| {
            let namespace: Object<'_> = promise.restore(ctx)?.result().unwrap_or(Err(rquickjs::Error::Unknown))?;
            Ok(Persistent::save(ctx, namespace))
        })?;
        let mut namespaces = self.realm.namespaces.borrow_mut();
        let module = Module { runtime: self.realm.id, index: namespaces.len(), path: name.into() };
        namespaces.push(namespace);
        drop(namespaces);
        self.modules.insert(name.to_owned(), module.clone());
        Ok(module)
    }

    /// Returns the export `name` of `module`, if there is one.
    ///
    /// # Errors
    /// Returns an error if the value cannot be converted.
    pub fn export(&mut self, module: &Module, name: &str) -> Result<Option<Value>, ScriptError> {
        self.at(module, &[Key::Name(name.to_owned())])
    }

    /// Returns the names of the exports of `module`, in alphabetical order, including `default`.
    ///
    /// # Errors
    /// Returns an error if the module belongs to another runtime.
    pub fn exports(&mut self, module: &Module) -> Result<Vec<String>, ScriptError> {
        self.with_namespace(module, |_, _, namespace| namespace.keys().collect())
    }

    /// Returns the value in `module` at `path`, whose first step is the name of an export. In this way, a function can
    /// be found again in another runtime.
    ///
    /// # Errors
    /// Returns an error if the value cannot be converted, or if a getter on the path throws.
    pub fn at(&mut self, module: &Module, path: &[Key]) -> Result<Option<Value>, ScriptError> {
        self.with_namespace(module, |ctx, realm, namespace| {
            let mut value = namespace.into_value();
            for key in path {
                match step(ctx, realm, &value, key)? {
                    Some(inside) => value = inside,
                    None => return Ok(None),
                }
            }
            from_script(ctx, realm, value).map(Some)
        })
    }

    pub(crate) fn with_namespace<T>(
        &mut self,
        module: &Module,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Rc<Realm>, Object<'js>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        let namespace = self.namespace(module)?;
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| work(ctx, realm, namespace.restore(ctx)?))
    }

    pub(crate) fn namespace(&self, module: &Module) -> Result<Persistent<Object<'static>>, ScriptError> {
        let namespace = self.realm.namespaces.borrow().get(module.index).cloned();
        let other = || ScriptError::Failed(format!("`{}` is a module of another runtime", module.path));
        namespace.filter(|_| module.runtime == self.realm.id).ok_or_else(other)
    }

    /// Returns a property of a function, or `undefined` if there is none with this name.
    ///
    /// # Errors
    /// Returns an error if the function belongs to another runtime or the value cannot be converted.
    pub fn property(&mut self, function: &Function, name: &str) -> Result<Value, ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            let value = realm.function(ctx, function)?.get(name)?;
            from_script(ctx, realm, value)
        })
    }

    /// Calls `function` and awaits its promise. `host` answers its requests, one after another. The host's time does
    /// not count, but timers that the function awaits do. Timers and requests that the function does not await are
    /// dropped at the end, and functions in its result or its requests cannot be called afterwards.
    ///
    /// While [tasks](Runtime::begin) are running, `host` also receives their requests.
    ///
    /// # Errors
    /// Returns the exception, or the reason why the call was stopped.
    pub fn call(
        &mut self,
        function: &Function,
        arguments: &[Value],
        budget: Duration,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        let since = self.realm.number();
        let mut meter = Meter::new(budget);
        let started_call = self.start(function, arguments, &mut meter);
        self.complete(started_call, since, &mut meter, None, host)
    }

    /// Completes a call that was started at `since`, and drops everything that it leaves behind: timers, requests,
    /// function handles, jobs. If tasks are running, these cannot be attributed to the call, so they are kept.
    pub(crate) fn complete(
        &mut self,
        started_call: Result<StartedCall, ScriptError>,
        since: u64,
        meter: &mut Meter,
        expression: Option<&str>,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        let value = started_call.and_then(|started_call| match started_call {
            StartedCall::Done(value) => Ok(value),
            StartedCall::Promised(promise) => self.wait(&promise, since, meter, expression, host),
        });
        // A getter or a `toJSON` that ran during the conversion may have added jobs as well.
        let result = value.and_then(|value| self.drain(meter, expression).map(|()| value));
        if self.tasks.is_empty() {
            self.realm.forget_since(since);
            self.usable &= !self.context.runtime().is_job_pending();
        }
        result
    }

    pub(crate) fn start(
        &mut self,
        function: &Function,
        arguments: &[Value],
        meter: &mut Meter,
    ) -> Result<StartedCall, ScriptError> {
        self.enter(meter, None, |ctx, realm| {
            let function = realm.function(ctx, function)?;
            let mut given = rquickjs::function::Args::new(ctx.clone(), arguments.len());
            for argument in arguments {
                given.push_arg(to_script(ctx, realm, argument)?)?;
            }
            started_call(ctx, realm, function.call_arg(given)?)
        })
    }

    /// Runs the jobs that a script left in the queue.
    pub(crate) fn drain(&mut self, meter: &mut Meter, expression: Option<&str>) -> Result<(), ScriptError> {
        self.timed(meter, expression, pump::run_jobs)
    }

    /// Runs until `promise` is settled, and returns its value.
    pub(crate) fn wait(
        &mut self,
        promise: &Persistent<Promise<'static>>,
        since: u64,
        meter: &mut Meter,
        expression: Option<&str>,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        self.finish(promise, since, meter, expression, host)?;
        self.settled(promise, meter, expression)
    }

    pub(crate) fn settled(
        &mut self,
        promise: &Persistent<Promise<'static>>,
        meter: &mut Meter,
        expression: Option<&str>,
    ) -> Result<Value, ScriptError> {
        self.enter(meter, expression, |ctx, realm| {
            let value = promise.clone().restore(ctx)?.result().unwrap_or(Err(rquickjs::Error::Unknown))?;
            from_script(ctx, realm, value)
        })
    }

    pub(crate) fn turn(
        &mut self,
        promise: &Persistent<Promise<'static>>,
        meter: &mut Meter,
        expression: Option<&str>,
    ) -> Result<Turn, ScriptError> {
        self.timed(meter, expression, |context, realm, work| pump::turn(context, realm, promise, work))
    }

    /// Answers a request: its promise is fulfilled with the value, or rejected with an error that has this message. An
    /// answer to a request that is no longer awaited is dropped.
    ///
    /// # Errors
    /// Returns an error if the value cannot be converted.
    pub fn answer(&mut self, request: u64, answer: &Result<Value, String>) -> Result<(), ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            let Some(pending) = realm.waiting.borrow_mut().remove(&request) else { return Ok(()) };
            match answer {
                Ok(value) => pending.resolve.restore(ctx)?.call((to_script(ctx, realm, value)?,)),
                Err(message) => {
                    let error: rquickjs::Function<'_> = realm.tools(ctx)?.get("error")?;
                    let error: rquickjs::Value<'_> = error.call((message.as_str(),))?;
                    pending.reject.restore(ctx)?.call((error,))
                }
            }
        })
    }

    /// Returns requests that have not been returned yet, such as those that a script made right before it was stopped.
    pub fn requests(&mut self) -> Vec<Request> {
        self.realm.requests()
    }

    /// Returns what an unfinished script is waiting for. The script was started at `since`. Older timers do not count.
    pub(crate) fn idle(&mut self, since: u64) -> Result<Progress, ScriptError> {
        let requests = self.realm.requests();
        if !requests.is_empty() {
            return Ok(Progress::Requests(requests));
        }
        let timers = self.realm.timers.borrow();
        if let Some((at, _)) = timers.keys().next()
            && (!self.tasks.is_empty() || timers.keys().any(|(_, id)| *id >= since))
        {
            return Ok(Progress::Waits(*at));
        }
        if self.realm.waiting.borrow().is_empty() { Err(ScriptError::NeverSettled) } else { Ok(Progress::Owed) }
    }

    /// Runs until `promise` is settled. The host answers requests, and timers are awaited in real time.
    pub(crate) fn finish(
        &mut self,
        promise: &Persistent<Promise<'static>>,
        since: u64,
        meter: &mut Meter,
        expression: Option<&str>,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<(), ScriptError> {
        loop {
            if let Turn::Settled = self.turn(promise, meter, expression)? {
                return Ok(());
            }
            match self.idle(since)? {
                Progress::Requests(requests) => {
                    for request in requests {
                        let id = request.id;
                        let answer = host(request);
                        self.answer(id, &answer)?;
                    }
                }
                Progress::Waits(until) => {
                    let wait = until.saturating_duration_since(Instant::now());
                    // The timer would exceed the time limit, so it is not awaited.
                    if wait > meter.left() {
                        return Err(ScriptError::TimedOut { budget: meter.budget, place: None });
                    }
                    meter.used += wait;
                    std::thread::sleep(wait);
                }
                Progress::Owed | Progress::Done(_) => return Err(ScriptError::NeverSettled),
            }
        }
    }

    /// Runs `work` with the engine, and stops it when the rest of `meter` is used up.
    pub(crate) fn enter<T>(
        &mut self,
        meter: &mut Meter,
        expression: Option<&str>,
        work: impl for<'js> FnOnce(&Ctx<'js>, &Rc<Realm>) -> rquickjs::Result<T>,
    ) -> Result<T, ScriptError> {
        self.timed(meter, expression, |context, realm, circumstances| {
            context.with(|ctx| work(&ctx, realm).map_err(|error| explain(&ctx, realm, &error, circumstances)))
        })
    }

    fn timed<T>(
        &mut self,
        meter: &mut Meter,
        expression: Option<&str>,
        work: impl FnOnce(&Context, &Rc<Realm>, &Work<'_>) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        if !self.usable {
            return Err(ScriptError::Failed("this runtime was stopped and cannot go on".into()));
        }
        let Self { realm, context, memory, .. } = self;
        let circumstances = Work { budget: meter.budget, memory: *memory, expression };
        let began = deadline::used();
        realm.deadline.begin_at(began, meter.left());
        let done = work(context, realm, &circumstances);
        let more = done.is_err() && realm.deadline.was_reported();
        realm.deadline.end();
        if done.is_err() {
            // Other rejections belong to the same work.
            realm.rejected.take();
        }
        meter.used += deadline::used().saturating_sub(began);
        let done = done.map_err(|error| match error {
            // If null is thrown, the engine does not say whether it ran out of memory.
            ScriptError::Thrown { name, message, .. }
                if name == "Error" && message == "null" && is_nearly_full(context, *memory) =>
            {
                ScriptError::OutOfMemory { limit: *memory, place: None }
            }
            other => other,
        });
        let stopped_midway = more && context.runtime().is_job_pending();
        if stopped_midway || matches!(done, Err(ScriptError::OutOfMemory { .. })) {
            self.usable = false;
        }
        done
    }
}

/// Returns `true` if nine tenths of the heap are in use.
fn is_nearly_full(context: &Context, limit: usize) -> bool {
    let used = usize::try_from(context.runtime().memory_usage().malloc_size).unwrap_or_default();
    used >= limit / 10 * 9
}

/// Returns the own property `key` of `value`.
fn step<'js>(
    ctx: &Ctx<'js>,
    realm: &Realm,
    value: &rquickjs::Value<'js>,
    key: &Key,
) -> rquickjs::Result<Option<rquickjs::Value<'js>>> {
    let Some(object) = value.as_object() else { return Ok(None) };
    let name = match key {
        Key::Name(name) => name.clone(),
        Key::Index(index) => index.to_string(),
    };
    let has: rquickjs::Function<'js> = realm.tools(ctx)?.get("has")?;
    let own: bool = has.call((object.clone(), name.as_str()))?;
    if own { object.get(name.as_str()).map(Some) } else { Ok(None) }
}

/// Rejects a request, because there is no host while a module is loaded or an expression is evaluated.
#[allow(clippy::needless_pass_by_value)]
pub(crate) fn refuse(request: Request) -> Result<Value, String> {
    Err(format!("`{}` cannot be used here", request.name))
}

fn watch_rejections(engine: &rquickjs::Runtime, realm: &Rc<Realm>) {
    let realm = Rc::clone(realm);
    engine.set_host_promise_rejection_tracker(Some(Box::new(move |ctx, promise, reason, is_handled| {
        let promise = Persistent::save(&ctx, promise);
        let mut rejected = realm.rejected.borrow_mut();
        if is_handled {
            rejected.retain(|(known, _)| *known != promise);
        } else {
            rejected.push((promise, Persistent::save(&ctx, reason)));
        }
    })));
}

#[cfg(test)]
mod tests;
