//! State shared between the scripts of a runtime and the program: functions, pending requests, timers, modules.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use model::Source;
use rquickjs::{Ctx, Exception, Object, Persistent};

use crate::deadline::Deadline;
use crate::error::ScriptError;
use crate::module::library::{Library, Text};
use crate::options::{Console, Options};
use crate::value::{Function, Request, Value};

/// Text of a built-in module.
#[derive(Clone)]
pub(crate) enum Builtin {
    /// One of the program's own, the same in every runtime.
    Own(&'static str),
    /// Any other text.
    Given(Arc<str>),
}

/// A promise that the host settles.
pub(crate) struct Pending {
    pub resolve: Persistent<rquickjs::Function<'static>>,
    pub reject: Persistent<rquickjs::Function<'static>>,
}

/// Scheduled callback.
pub(crate) struct Timer {
    pub callback: Persistent<rquickjs::Function<'static>>,
    /// Interval, for repeated timers.
    pub every: Option<std::time::Duration>,
}

/// State of a runtime. It contains values of the engine, so it must be [cleared](Realm::clear) before the engine is
/// dropped.
#[derive(Default)]
pub(crate) struct Realm {
    pub id: u64,
    /// Limit in bytes on the engine's heap, and on pending requests outside it.
    pub memory: usize,
    pub library: Library,
    pub base_dir: PathBuf,
    pub shown_from: PathBuf,
    pub deadline: Deadline,
    pub builtins: RefCell<HashMap<String, Builtin>>,
    /// Texts of all loaded modules, by their names in the engine.
    pub texts: RefCell<HashMap<String, Arc<Text>>>,
    /// The modules in which calls were searched, as shown in messages.
    pub sources: RefCell<HashMap<String, Arc<Source>>>,
    pub commonjs: RefCell<HashMap<PathBuf, Persistent<Object<'static>>>>,
    /// Failed imports, by the message that was thrown for them.
    pub missing: RefCell<Vec<(String, ScriptError)>>,
    pub console: RefCell<Option<Console>>,
    /// Function that resets the indentation and the counts of `console`, if a script has used it.
    pub reset_console: RefCell<Option<Persistent<rquickjs::Function<'static>>>>,
    tools: RefCell<Option<Persistent<Object<'static>>>>,
    /// Functions by index, with the value of `next` at the time they were stored.
    functions: RefCell<HashMap<u32, (u64, Persistent<rquickjs::Function<'static>>)>>,
    pub namespaces: RefCell<Vec<Persistent<Object<'static>>>>,
    pub outbox: RefCell<Vec<Request>>,
    /// Approximate size of the arguments in the outbox, in bytes.
    pub owed: Cell<usize>,
    /// Name of the module that the program is about to import, which is not resolved.
    pub entry: RefCell<Option<String>>,
    pub waiting: RefCell<BTreeMap<u64, Pending>>,
    pub timers: RefCell<BTreeMap<(Instant, u64), Timer>>,
    /// Promises that were rejected without a handler, and the reasons.
    pub rejected: RefCell<Vec<(Persistent<rquickjs::Value<'static>>, Persistent<rquickjs::Value<'static>>)>>,
    next: Cell<u64>,
}

impl Realm {
    pub fn new(id: u64, options: Options) -> Self {
        let Options { memory, base_dir, shown_from, console, library, stop, .. } = options;
        Self {
            id,
            memory,
            library,
            base_dir,
            shown_from,
            deadline: Deadline::stopped_by(stop),
            console: RefCell::new(console),
            next: Cell::new(1),
            ..Self::default()
        }
    }

    /// Returns a new number. Requests and timers share one sequence, so that later ones can be told apart from earlier
    /// ones.
    pub fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// Returns the path as the user would write it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.shown_from).unwrap_or(path).display().to_string()
    }

    /// Returns `true` if a file is in the project.
    pub fn is_own(&self, path: &Path) -> bool {
        [&self.base_dir, &self.shown_from]
            .into_iter()
            .any(|root| path.starts_with(root) || root.canonicalize().is_ok_and(|root| path.starts_with(root)))
    }

    /// Returns the built-in functions that Rust needs, in their state before a script could change them.
    pub fn tools<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        match &*self.tools.borrow() {
            Some(tools) => tools.clone().restore(ctx),
            None => Err(rquickjs::Error::Unknown),
        }
    }

    pub fn set_tools<'js>(&self, ctx: &Ctx<'js>, tools: Object<'js>) {
        *self.tools.borrow_mut() = Some(Persistent::save(ctx, tools));
    }

    /// Returns a handle to `function`, the same one every time.
    pub fn keep<'js>(&self, ctx: &Ctx<'js>, function: rquickjs::Function<'js>) -> rquickjs::Result<Function> {
        let index: rquickjs::Function<'js> = self.tools(ctx)?.get("index")?;
        let index: u32 = index.call((function.clone(),))?;
        let (name, length) = name_and_length(&function);
        let handle = Function { runtime: self.id, index, name: name.into(), length };
        let kept = || (self.next.get(), Persistent::save(ctx, function));
        self.functions.borrow_mut().entry(index).or_insert_with(kept);
        Ok(handle)
    }

    pub fn function<'js>(&self, ctx: &Ctx<'js>, handle: &Function) -> rquickjs::Result<rquickjs::Function<'js>> {
        let Function { runtime, index, name, .. } = handle;
        let known = self.functions.borrow().get(index).filter(|_| *runtime == self.id).cloned();
        match known {
            Some((_, function)) => function.restore(ctx),
            None if *runtime == self.id => {
                Err(Exception::throw_type(ctx, &format!("`{name}` came from a call that has ended")))
            }
            None => Err(Exception::throw_type(ctx, &format!("`{name}` is a function of another runtime"))),
        }
    }

    /// Adds a request to the outbox and returns the promise for its answer.
    pub fn ask<'js>(
        &self,
        ctx: &Ctx<'js>,
        name: &Arc<str>,
        arguments: Vec<Value>,
    ) -> rquickjs::Result<rquickjs::Value<'js>> {
        let (promise, resolve, reject) = ctx.promise()?;
        let id = self.number();
        let pending = Pending { resolve: Persistent::save(ctx, resolve), reject: Persistent::save(ctx, reject) };
        self.waiting.borrow_mut().insert(id, pending);
        self.outbox.borrow_mut().push(Request { id, name: Arc::clone(name), arguments });
        Ok(promise.into_value())
    }

    /// Returns the requests since the last call.
    pub fn requests(&self) -> Vec<Request> {
        self.owed.set(0);
        self.outbox.take()
    }

    /// Drops requests, timers and function handles that were created at or after `number`.
    pub fn forget_since(&self, number: u64) {
        let mut outbox = self.outbox.borrow_mut();
        outbox.retain(|request| request.id < number);
        if outbox.is_empty() {
            self.owed.set(0);
        }
        drop(outbox);
        self.functions.borrow_mut().retain(|_, (next, _)| *next <= number);
        self.waiting.borrow_mut().retain(|id, _| *id < number);
        self.timers.borrow_mut().retain(|(_, id), _| *id < number);
    }

    /// Drops all values of the engine.
    pub fn clear(&self) {
        self.tools.take();
        self.functions.take();
        self.namespaces.take();
        self.commonjs.take();
        self.outbox.take();
        self.waiting.take();
        self.timers.take();
        self.rejected.take();
        self.console.take();
        self.reset_console.take();
    }
}

/// Returns the name and the number of parameters of `function`.
fn name_and_length(function: &rquickjs::Function<'_>) -> (String, usize) {
    let name = function.get::<_, Option<String>>("name").ok().flatten().unwrap_or_default();
    let length = function.get::<_, Option<f64>>("length").ok().flatten().unwrap_or_default();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let length = if length.is_finite() && length > 0.0 { length as usize } else { 0 };
    (name, length)
}
