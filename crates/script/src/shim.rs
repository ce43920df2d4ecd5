//! Globals of scripts in addition to those of the language: console, timers, URL and a few others.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::module::Evaluated;
use rquickjs::{ArrayBuffer, Ctx, Exception, Function, Module, Object, Persistent, Value};

use crate::compiled;
use crate::convert::{function, text, to_script};
use crate::names::INTERNAL;
use crate::options::Level;
use crate::realm::{Realm, Timer};
use crate::value::HostFunction;

/// Sources that run at startup: functions that the program needs, the names of the globals, and methods that depend on
/// a locale.
const START: [&str; 3] =
    [include_str!("shim/tools.js"), include_str!("shim/globals.js"), include_str!("shim/locale.js")];

/// Sources of globals that are created on first use, because most scripts do not use them.
const LAZY: [(&str, &str); 9] = [
    ("console", include_str!("shim/console.js")),
    ("schedule", include_str!("shim/schedule.js")),
    ("process", include_str!("shim/process_object.js")),
    ("url", include_str!("shim/url.js")),
    ("text", include_str!("shim/text.js")),
    ("clone", include_str!("shim/clone.js")),
    ("crypto", include_str!("shim/crypto.js")),
    ("buffer", include_str!("shim/buffer.js")),
    ("event", include_str!("shim/event.js")),
];

/// Name of the requests that `fetch` makes.
pub const FETCH: &str = "fetch";

/// Maximum delay of a timer, in milliseconds.
const MAX_DELAY_MS: f64 = 2_147_483_647.0;

/// Returns `true` if a thrown value is about a limit of the engine.
pub(crate) type IsLimit = for<'js> fn(&Ctx<'js>, &Rc<Realm>, Value<'js>) -> bool;

/// Installs the globals.
pub(crate) fn install(ctx: &Ctx<'_>, realm: &Rc<Realm>, is_limit: IsLimit) -> rquickjs::Result<()> {
    let [tools, globals, locale] = START;
    let start = module(ctx, "start", || {
        format!("export const tools = {tools};\nexport const globals = {globals};\nexport const locale = {locale};")
    })?;
    let tools: Function<'_> = start.get("tools")?;
    realm.set_tools(ctx, tools.call(())?);
    let globals: Function<'_> = start.get("globals")?;
    let own = Rc::clone(realm);
    let source = function(ctx, &"source".into(), move |ctx, given| source(&ctx, &own, given.first()))?;
    let own = Rc::clone(realm);
    let is_limit = function(ctx, &"isLimit".into(), move |ctx, given| {
        let is_limit = given.into_iter().next().is_some_and(|thrown| is_limit(&ctx, &own, thrown));
        Ok(Value::new_bool(ctx, is_limit))
    })?;
    globals.call::<_, ()>((source, is_limit))?;
    start.get::<_, Function<'_>>("locale")?.call(())
}

/// Freezes all existing objects.
pub(crate) fn freeze(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    freezer(ctx, true).and_then(|freeze| freeze.call(()))
}

/// Returns a function that freezes all objects, or all except global variables created before it is called.
pub(crate) fn freezer<'js>(ctx: &Ctx<'js>, everything: bool) -> rquickjs::Result<Function<'js>> {
    eval(ctx, "freeze", include_str!("shim/freeze.js"))?.call((everything,))
}

/// Provides `fetch`, which sends requests with this name to the host.
pub(crate) fn give_fetch(ctx: &Ctx<'_>, realm: &Rc<Realm>) -> rquickjs::Result<()> {
    let ask = to_script(ctx, realm, &HostFunction::new(FETCH).into())?;
    eval(ctx, FETCH, include_str!("shim/fetch.js"))?.call((ask,))
}

/// Evaluates `source`, an expression.
fn eval<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> rquickjs::Result<Function<'js>> {
    module(ctx, name, || format!("export default {source}"))?.get("default")
}

/// Evaluates a module of the program's own, which does not wait for anything.
fn module<'js>(ctx: &Ctx<'js>, name: &str, text: impl FnOnce() -> String) -> rquickjs::Result<Module<'js, Evaluated>> {
    let (module, evaluated) = compiled::declare(ctx, &format!("{INTERNAL}shim/{name}"), text)?.eval()?;
    evaluated.result::<Value<'js>>().unwrap_or(Err(rquickjs::Error::Unknown))?;
    Ok(module)
}

/// Returns the functions that format values: `inspect` and `format`.
pub(crate) fn inspector<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    eval(ctx, "inspect", include_str!("shim/inspect.js"))?.call(())
}

/// Returns the variables of `process.env`, and the names of secrets, whose values are withheld from scripts.
fn variables<'js>(ctx: &Ctx<'js>, realm: &Realm) -> rquickjs::Result<(Object<'js>, Vec<String>)> {
    let variables = Object::new(ctx.clone())?;
    let mut withheld = Vec::new();
    for (name, value) in realm.library.environment() {
        match value {
            Some(value) => variables.set(name.as_str(), value.as_str())?,
            None => withheld.push(name.clone()),
        }
    }
    Ok((variables, withheld))
}

/// Implements `(length)`, which returns an `ArrayBuffer` of random bytes.
fn random<'js>(ctx: &Ctx<'js>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let length = given.first().and_then(Value::as_int).and_then(|length| usize::try_from(length).ok());
    let mut bytes = vec![0; length.unwrap_or_default()];
    getrandom::fill(&mut bytes).map_err(|error| {
        Exception::throw_message(ctx, &format!("the system did not provide random numbers: {error}"))
    })?;
    ArrayBuffer::new(ctx.clone(), bytes).map(ArrayBuffer::into_value)
}

/// Implements `(host)`, which returns an international host name in its ASCII form, or `undefined` if it is not valid.
fn ascii<'js>(ctx: &Ctx<'js>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let host = given.first().and_then(Value::as_string).map(rquickjs::String::to_string).transpose()?;
    match host.and_then(|host| url::Host::parse(&host).ok()) {
        Some(host) => rquickjs::String::from_str(ctx.clone(), &host.to_string()).map(rquickjs::String::into_value),
        None => Ok(undefined(ctx)),
    }
}

fn undefined<'js>(ctx: &Ctx<'js>) -> Value<'js> {
    Value::new_undefined(ctx.clone())
}

fn write<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let level = match given.first().and_then(Value::as_int) {
        Some(0) => Level::Debug,
        Some(2) => Level::Warning,
        Some(3) => Level::Error,
        _ => Level::Info,
    };
    let text = given.get(1).map(|line| text(ctx, realm, line.clone())).transpose()?;
    if let Ok(mut console) = realm.console.try_borrow_mut()
        && let Some(console) = &mut *console
    {
        console(level, &text.unwrap_or_default());
    }
    Ok(undefined(ctx))
}

/// Implements `(callback, milliseconds, again)`, which returns the id of a timer.
fn timer<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let Some(callback) = given.first().and_then(Value::as_function) else { return Ok(undefined(ctx)) };
    let milliseconds = given.get(1).and_then(Value::as_number).filter(|number| number.is_finite()).unwrap_or_default();
    let wait = Duration::from_secs_f64(milliseconds.clamp(0.0, MAX_DELAY_MS) / 1e3);
    let again = given.get(2).and_then(Value::as_bool).unwrap_or_default();
    let id = realm.number();
    let timer = Timer {
        callback: Persistent::save(ctx, callback.clone()),
        // A repeated timer without a pause would block everything else.
        every: again.then_some(wait.max(Duration::from_millis(1))),
    };
    if let Some(at) = Instant::now().checked_add(wait) {
        realm.timers.borrow_mut().insert((at, id), timer);
    }
    #[allow(clippy::cast_precision_loss)]
    Ok(Value::new_number(ctx.clone(), id as f64))
}

fn clear<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    if let Some(id) = given.first().and_then(Value::as_number) {
        #[allow(clippy::cast_precision_loss)]
        realm.timers.borrow_mut().retain(|(_, timer), _| *timer as f64 != id);
    }
    Ok(undefined(ctx))
}

/// Evaluates the source with this name, giving it the Rust functions that it needs. Only these sources have access to
/// them.
fn source<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, name: Option<&Value<'js>>) -> rquickjs::Result<Value<'js>> {
    let name = name.and_then(Value::as_string).map(rquickjs::String::to_string).transpose()?.unwrap_or_default();
    let Some((_, source)) = LAZY.iter().find(|(known, _)| name == *known) else { return Ok(undefined(ctx)) };
    let make = eval(ctx, &name, source)?;
    let own = Rc::clone(realm);
    match name.as_str() {
        "console" => {
            let write = function(ctx, &"write".into(), move |ctx, given| write(&ctx, &own, &given))?;
            let inspector = function(ctx, &"inspector".into(), |ctx, _| inspector(&ctx).map(Object::into_value))?;
            let made: Object<'js> = make.call((write, inspector))?;
            let reset: Function<'js> = made.get("reset")?;
            *realm.reset_console.borrow_mut() = Some(Persistent::save(ctx, reset));
            Ok(made.into_value())
        }
        "schedule" => {
            let timer = function(ctx, &"timer".into(), move |ctx, given| timer(&ctx, &own, &given))?;
            let own = Rc::clone(realm);
            let clear = function(ctx, &"clear".into(), move |ctx, given| clear(&ctx, &own, &given))?;
            make.call((timer, clear))
        }
        "process" => {
            let (variables, withheld) = variables(ctx, realm)?;
            make.call((variables, withheld, realm.base_dir.display().to_string()))
        }
        "url" => make.call((function(ctx, &"ascii".into(), |ctx, given| ascii(&ctx, &given))?,)),
        "crypto" => make.call((function(ctx, &"random".into(), |ctx, given| random(&ctx, &given))?,)),
        _ => make.call(()),
    }
}

#[cfg(test)]
mod tests;
