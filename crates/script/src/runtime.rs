//! A runtime: one JavaScript engine with its limits, its modules and its values.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use rquickjs::{Context, Ctx, Object, Persistent, Promise};

use crate::convert::{from_script, to_script};
use crate::deadline;
use crate::error::ScriptError;
use crate::module::library::Library;
use crate::module::loader;
use crate::module::resolve::Asked;
use crate::pump::{self, Begun, Meter, Request, Turn, Underway, begun};
use crate::realm::{Builtin, Console, Realm};
use crate::shim;
use crate::trace::{Work, explain};
use crate::value::{Function, Key, Value};

/// What reading a property or settling a promise may take.
pub(crate) const HOUSEKEEPING: Duration = Duration::from_secs(10);

/// What a runtime may use and what it sees of the world.
pub struct Options {
    /// Bytes of heap, everything together.
    pub memory: usize,
    /// Bytes of native stack. Must leave room on the thread the runtime is used from.
    pub stack: usize,
    /// Where bare package names are looked for when no file imports them, and what `process.cwd()` says.
    pub base_dir: PathBuf,
    /// Paths below this directory are shown without it.
    pub shown_from: PathBuf,
    /// Takes what scripts write to the console; without it, that is lost.
    pub console: Option<Console>,
    /// The files that were read so far; a clone of another runtime's saves reading them again.
    pub library: Library,
    /// Whether nothing that is there from the start can be changed, so that no script leaves anything behind for the
    /// next one. Packages that add to built-in objects, or give theirs properties that these have, do not work then.
    pub frozen: bool,
    /// While it is set, from any thread, whatever a script does is stopped.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Options {
    /// 64 MiB, 1 MiB of stack, no console, a library of its own.
    pub fn new(base_dir: impl Into<PathBuf>) -> Self {
        let base_dir = base_dir.into();
        Self {
            memory: 64 << 20,
            stack: 1 << 20,
            shown_from: base_dir.clone(),
            base_dir,
            console: None,
            library: Library::new(),
            frozen: false,
            stop: None,
        }
    }
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { memory, stack, base_dir, .. } = self;
        f.debug_struct("Options")
            .field("memory", memory)
            .field("stack", stack)
            .field("base_dir", base_dir)
            .finish_non_exhaustive()
    }
}

/// A module of a runtime, loaded and evaluated.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Module {
    runtime: u64,
    index: usize,
    path: Arc<str>,
}

impl Module {
    /// The real path of its file; for other modules the name they were given.
    pub fn path(&self) -> &str {
        &self.path
    }
}

/// One JavaScript engine. It lives on one thread. Values that it gave out and that name functions are good for this
/// runtime only.
pub struct Runtime {
    pub(crate) tasks: HashMap<u64, Underway>,
    pub(crate) expressions: crate::evaluate::Compiled,
    modules: HashMap<String, Module>,
    pub(crate) realm: Rc<Realm>,
    context: Context,
    memory: usize,
    usable: bool,
}

impl Drop for Runtime {
    fn drop(&mut self) {
        // Values go before the engine they live in.
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

/// Every runtime of the process has a number of its own.
fn number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Runtime {
    /// A runtime with nothing loaded.
    ///
    /// # Errors
    /// If the limits leave no room for the language itself.
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
            expressions: crate::evaluate::Compiled::default(),
            modules: HashMap::new(),
            realm,
            context,
            memory,
            usable: true,
        };
        runtime.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            shim::install(ctx, realm)?;
            if frozen { shim::freeze(ctx) } else { Ok(()) }
        })?;
        Ok(runtime)
    }

    /// Makes everything that a script can reach without a module unchangeable, so that no call leaves anything behind for
    /// the next one. What was loaded before may have changed it.
    ///
    /// # Errors
    /// If there is no memory left, or what was loaded left something that cannot be frozen.
    pub fn freeze(&mut self) -> Result<(), ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, _| shim::freeze(ctx))
    }

    /// A function that makes what the language brings unchangeable. Modules that are loaded before it is called may add to
    /// that; global variables of theirs can be changed after it, too.
    ///
    /// # Errors
    /// If there is no memory left.
    pub fn freezer(&mut self) -> Result<Function, ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| realm.keep(ctx, shim::freezer(ctx, false)?))
    }

    /// Gives scripts `fetch`, which makes requests called [`FETCH`](crate::FETCH): a map of `url`, `method`, `headers` (a
    /// list of pairs) and `body` (text, or undefined). It expects a map of `status`, `statusText`, `headers`, `url` and
    /// `text`.
    ///
    /// # Errors
    /// If there is no memory left.
    pub fn give_fetch(&mut self) -> Result<(), ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, shim::give_fetch)
    }

    /// Whether it can go on. It cannot after it ran out of memory, and after a script failed or was stopped that had more
    /// to do.
    pub fn is_usable(&self) -> bool {
        self.usable
    }

    /// `true` if it can go on and no call has left anything behind: no timer, no request, no job.
    pub fn is_at_rest(&self) -> bool {
        let Realm { timers, waiting, outbox, .. } = &*self.realm;
        let has_left = !timers.borrow().is_empty() || !waiting.borrow().is_empty() || !outbox.borrow().is_empty();
        self.usable && self.tasks.is_empty() && !has_left && !self.context.runtime().is_job_pending()
    }

    /// Gives a module that `import "specifier"` means, whoever imports it. Its text is JavaScript.
    pub fn builtin(&mut self, specifier: &str, source: &str) {
        let builtin = Builtin::Given(source.into());
        self.realm.builtins.borrow_mut().insert(specifier.to_owned(), builtin);
    }

    /// Loads and evaluates a module: a path beginning with `./`, `../` or `/`, or a package. `from` is the directory, or
    /// the file, it is imported from. A module is evaluated once; `budget` is for all it imports, too.
    ///
    /// # Errors
    /// What is missing, not valid, or thrown on the way.
    pub fn import(&mut self, specifier: &str, from: &Path, budget: Duration) -> Result<Module, ScriptError> {
        let directory = if from.is_file() { from.parent().unwrap_or(from) } else { from };
        let name = loader::name(&self.realm, directory, specifier, Asked::Import)
            .map_err(|error| error.into_script_error(from.display().to_string(), None))?;
        self.import_named(&name, budget)
    }

    /// Evaluates `text` as the module in the file `name`, whether there is one or not. TypeScript if the name says so.
    ///
    /// # Errors
    /// What is missing, not valid, or thrown on the way.
    pub fn import_source(&mut self, text: &str, name: &Path, budget: Duration) -> Result<Module, ScriptError> {
        let key = name.display().to_string();
        loader::provide(&self.realm, name, text)?;
        self.modules.remove(&key);
        self.import_named(&key, budget)
    }

    pub(crate) fn import_named(&mut self, name: &str, budget: Duration) -> Result<Module, ScriptError> {
        if let Some(known) = self.modules.get(name) {
            return Ok(known.clone());
        }
        let mut meter = Meter::new(budget);
        let promise = self.enter(&mut meter, None, |ctx, realm| {
            let promise = loader::import(ctx, realm, name)?;
            match begun(ctx, realm, promise.into_value())? {
                Begun::Promised(promise) => Ok(promise),
                Begun::Done(_) => Err(rquickjs::Error::Unknown),
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

    /// What `module` exports under `name`, if it exports that.
    ///
    /// # Errors
    /// If the value cannot cross.
    pub fn export(&mut self, module: &Module, name: &str) -> Result<Option<Value>, ScriptError> {
        self.at(module, &[Key::Name(name.to_owned())])
    }

    /// The names that `module` exports, in alphabetical order, `default` among them.
    ///
    /// # Errors
    /// If the module is another runtime's.
    pub fn exports(&mut self, module: &Module) -> Result<Vec<String>, ScriptError> {
        self.look(module, |_, _, namespace| namespace.keys().collect())
    }

    /// What is found in `module` along `path`, whose first step is the name of an export. With it a function can be found
    /// again in another runtime.
    ///
    /// # Errors
    /// If the value cannot cross, or a getter on the way throws.
    pub fn at(&mut self, module: &Module, path: &[Key]) -> Result<Option<Value>, ScriptError> {
        self.look(module, |ctx, realm, namespace| {
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

    pub(crate) fn look<T>(
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

    /// A property of a function, `undefined` if it has none of this name.
    ///
    /// # Errors
    /// If the function is another runtime's or the value cannot cross.
    pub fn property(&mut self, function: &Function, name: &str) -> Result<Value, ScriptError> {
        self.enter(&mut Meter::new(HOUSEKEEPING), None, |ctx, realm| {
            let value = realm.function(ctx, function)?.get(name)?;
            from_script(ctx, realm, value)
        })
    }

    /// Calls `function` and waits for what it promises. Requests it makes are put to `host`, one after the other; the
    /// host's time does not count, that of timers the function waits for does. What it leaves behind, timers it did not
    /// wait for and requests nobody awaits, is dropped, and functions in its result or its requests cannot be called
    /// once it is over.
    ///
    /// While [tasks](Runtime::begin) are under way, their requests are put to `host`, too.
    ///
    /// # Errors
    /// What it threw, or why it was stopped.
    pub fn call(
        &mut self,
        function: &Function,
        arguments: &[Value],
        budget: Duration,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        let since = self.realm.number();
        let mut meter = Meter::new(budget);
        let begun = self.start(function, arguments, &mut meter);
        self.complete(begun, since, &mut meter, None, host)
    }

    /// Sees what was begun at `since` to its end and leaves nothing of it behind: no timers, no requests, no handles of
    /// functions, no jobs. With tasks under way there is no telling whose they are.
    pub(crate) fn complete(
        &mut self,
        begun: Result<Begun, ScriptError>,
        since: u64,
        meter: &mut Meter,
        expression: Option<&str>,
        host: &mut dyn FnMut(Request) -> Result<Value, String>,
    ) -> Result<Value, ScriptError> {
        let value = begun.and_then(|begun| match begun {
            Begun::Done(value) => Ok(value),
            Begun::Promised(promise) => self.wait(&promise, since, meter, expression, host),
        });
        // A getter or a `toJSON` that was run to take the value out may have left something in the queue, too.
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
    ) -> Result<Begun, ScriptError> {
        self.enter(meter, None, |ctx, realm| {
            let function = realm.function(ctx, function)?;
            let mut given = rquickjs::function::Args::new(ctx.clone(), arguments.len());
            for argument in arguments {
                given.push_arg(to_script(ctx, realm, argument)?)?;
            }
            begun(ctx, realm, function.call_arg(given)?)
        })
    }

    /// Runs what a script left in the queue.
    pub(crate) fn drain(&mut self, meter: &mut Meter, expression: Option<&str>) -> Result<(), ScriptError> {
        self.timed(meter, expression, pump::run_jobs)
    }

    /// Runs until `promise` is settled, and takes out what it was fulfilled with.
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

    /// Does `work` with the engine, and stops it when what `meter` has left is over.
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
        let more = done.is_err() && realm.deadline.was_told();
        realm.deadline.end();
        if done.is_err() {
            // What else went wrong belongs to the same work.
            realm.rejected.take();
        }
        meter.used += deadline::used().saturating_sub(began);
        let done = done.map_err(|error| match error {
            // Of a null the engine does not say whether it was thrown for want of memory.
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

/// Whether nine tenths of the heap are in use.
fn is_nearly_full(context: &Context, limit: usize) -> bool {
    let used = usize::try_from(context.runtime().memory_usage().malloc_size).unwrap_or_default();
    used >= limit / 10 * 9
}

/// What `value` has of its own under `key`.
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

/// There is nobody to ask while a module is loaded or an expression evaluated.
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
