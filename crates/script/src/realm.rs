//! What one runtime's scripts share with the program: kept functions, requests on their way, timers, modules.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use rquickjs::{Ctx, Exception, Object, Persistent};

use crate::convert::to_script;
use crate::deadline::Deadline;
use crate::error::ScriptError;
use crate::module::library::{Library, Text};
use crate::pump::Request;
use crate::value::{Function, Value};

/// How loud a line on the console is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Level {
    /// `console.debug`, `console.trace`.
    Debug,
    /// `console.log`, `console.info` and everything else.
    Info,
    /// `console.warn`.
    Warning,
    /// `console.error`, a failed `console.assert`.
    Error,
}

/// Takes what scripts write to the console, line by line.
pub type Console = Box<dyn FnMut(Level, &str)>;

type Kept<T> = RefCell<Vec<Persistent<T>>>;

/// A promise the host will settle.
pub(crate) struct Pending {
    resolve: Persistent<rquickjs::Function<'static>>,
    reject: Persistent<rquickjs::Function<'static>>,
}

/// A callback that waits for its time.
pub(crate) struct Timer {
    pub callback: Persistent<rquickjs::Function<'static>>,
    /// For those that fire again.
    pub every: Option<std::time::Duration>,
}

/// Everything here holds values of the engine and must be [cleared](Realm::clear) before the engine goes.
pub(crate) struct Realm {
    pub id: u64,
    pub library: Library,
    pub base_dir: PathBuf,
    pub shown_from: PathBuf,
    pub deadline: Deadline,
    pub builtins: RefCell<HashMap<String, Arc<str>>>,
    /// The text of every module that was loaded, by its name in the engine.
    pub texts: RefCell<HashMap<String, Arc<Text>>>,
    pub commonjs: RefCell<HashMap<PathBuf, Persistent<Object<'static>>>>,
    /// Imports that failed, by the message that was thrown for them.
    pub missing: RefCell<Vec<(String, ScriptError)>>,
    pub console: RefCell<Option<Console>>,
    tools: RefCell<Option<Persistent<Object<'static>>>>,
    functions: Kept<rquickjs::Function<'static>>,
    pub namespaces: Kept<Object<'static>>,
    pub outbox: RefCell<Vec<Request>>,
    pub waiting: RefCell<BTreeMap<u64, Pending>>,
    pub timers: RefCell<BTreeMap<(Instant, u64), Timer>>,
    /// The promises that were rejected with nobody to see it, and why.
    pub rejected: RefCell<Vec<(Persistent<rquickjs::Value<'static>>, Persistent<rquickjs::Value<'static>>)>>,
    next: Cell<u64>,
}

impl Realm {
    pub fn new(id: u64, library: Library, base_dir: PathBuf, shown_from: PathBuf, console: Option<Console>) -> Self {
        Self {
            id,
            library,
            base_dir,
            shown_from,
            deadline: Deadline::default(),
            builtins: RefCell::default(),
            texts: RefCell::default(),
            commonjs: RefCell::default(),
            missing: RefCell::default(),
            console: RefCell::new(console),
            tools: RefCell::default(),
            functions: RefCell::default(),
            namespaces: RefCell::default(),
            outbox: RefCell::default(),
            waiting: RefCell::default(),
            timers: RefCell::default(),
            rejected: RefCell::default(),
            next: Cell::new(1),
        }
    }

    /// A number that was not given before: requests and timers share one sequence, so that what came after a moment can
    /// be told from what was before.
    pub fn number(&self) -> u64 {
        let number = self.next.get();
        self.next.set(number + 1);
        number
    }

    /// The path as the user would write it.
    pub fn shown(&self, path: &Path) -> String {
        path.strip_prefix(&self.shown_from).unwrap_or(path).display().to_string()
    }

    /// The functions of the language that Rust needs, as they were before any script could change them.
    pub fn tools<'js>(&self, ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
        match &*self.tools.borrow() {
            Some(tools) => tools.clone().restore(ctx),
            None => Err(rquickjs::Error::Unknown),
        }
    }

    pub fn set_tools<'js>(&self, ctx: &Ctx<'js>, tools: Object<'js>) {
        *self.tools.borrow_mut() = Some(Persistent::save(ctx, tools));
    }

    /// A handle to `function`, the same one every time.
    pub fn keep<'js>(&self, ctx: &Ctx<'js>, function: rquickjs::Function<'js>) -> rquickjs::Result<Function> {
        let index: rquickjs::Function<'js> = self.tools(ctx)?.get("index")?;
        let index: u32 = index.call((function.clone(),))?;
        let handle = Function::new(self.id, index, &function);
        let mut functions = self.functions.borrow_mut();
        if functions.len() == index as usize {
            functions.push(Persistent::save(ctx, function));
        }
        Ok(handle)
    }

    pub fn function<'js>(&self, ctx: &Ctx<'js>, handle: &Function) -> rquickjs::Result<rquickjs::Function<'js>> {
        let known = self.functions.borrow().get(handle.index as usize).filter(|_| handle.runtime == self.id).cloned();
        match known {
            Some(function) => function.restore(ctx),
            None => Err(Exception::throw_type(ctx, &format!("`{}` is a function of another runtime", handle.name))),
        }
    }

    /// Puts a request into the outbox and gives the promise of its answer.
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

    /// Settles the promise of request `id`, if it still waits.
    pub fn settle(self: &Rc<Self>, ctx: &Ctx<'_>, id: u64, answer: &Result<Value, String>) -> rquickjs::Result<bool> {
        let Some(pending) = self.waiting.borrow_mut().remove(&id) else { return Ok(false) };
        match answer {
            Ok(value) => pending.resolve.restore(ctx)?.call::<_, ()>((to_script(ctx, self, value)?,))?,
            Err(message) => {
                let error: rquickjs::Function<'_> = self.tools(ctx)?.get("error")?;
                let error: rquickjs::Value<'_> = error.call((message.as_str(),))?;
                pending.reject.restore(ctx)?.call::<_, ()>((error,))?;
            }
        }
        Ok(true)
    }

    /// Forgets requests and timers that were made at or after `number`.
    pub fn forget_since(&self, number: u64) {
        self.outbox.borrow_mut().retain(|request| request.id < number);
        self.waiting.borrow_mut().retain(|id, _| *id < number);
        self.timers.borrow_mut().retain(|(_, id), _| *id < number);
    }

    /// Lets go of every value of the engine.
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
    }
}
