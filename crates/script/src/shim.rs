//! What scripts find beside the language: console, timers, URL and a few others.

use std::rc::Rc;
use std::time::{Duration, Instant};

use rquickjs::{Ctx, Function, Object, Persistent, Value};

use crate::compiled;
use crate::convert::{function, text};
use crate::realm::{Level, Realm, Timer};
use crate::trace::INTERNAL;

/// Made when a script first looks at them, most never are.
const LAZY: [(&str, &str); 4] = [
    ("url", include_str!("shim/url.js")),
    ("text", include_str!("shim/text.js")),
    ("inspect", include_str!("shim/inspect.js")),
    ("clone", include_str!("shim/clone.js")),
];

/// A timer is never further away.
const LONGEST: f64 = 2_147_483_647.0;

/// Puts everything in its place.
pub(crate) fn install(ctx: &Ctx<'_>, realm: &Rc<Realm>, environment: &[(String, String)]) -> rquickjs::Result<()> {
    let tools: Function<'_> = eval(ctx, "tools", include_str!("shim/tools.js"))?;
    realm.set_tools(ctx, tools.call(())?);
    let globals: Function<'_> = eval(ctx, "globals", include_str!("shim/globals.js"))?;
    globals.call((hooks(ctx, realm)?, variables(ctx, environment)?, realm.base_dir.display().to_string()))
}

/// Makes everything that is there unchangeable.
pub(crate) fn freeze(ctx: &Ctx<'_>) -> rquickjs::Result<()> {
    eval(ctx, "freeze", include_str!("shim/freeze.js"))?.call(())
}

/// What `source`, an expression, is.
fn eval<'js>(ctx: &Ctx<'js>, name: &str, source: &str) -> rquickjs::Result<Function<'js>> {
    let module = compiled::declare(ctx, &format!("{INTERNAL}shim/{name}"), || format!("export default {source}"))?;
    let (module, evaluated) = module.eval()?;
    evaluated.result::<Value<'js>>().unwrap_or(Err(rquickjs::Error::Unknown))?;
    module.get("default")
}

/// What makes text of values: `inspect` and `format`.
pub(crate) fn inspector<'js>(ctx: &Ctx<'js>) -> rquickjs::Result<Object<'js>> {
    eval(ctx, "inspect", include_str!("shim/inspect.js"))?.call(())
}

fn variables<'js>(ctx: &Ctx<'js>, environment: &[(String, String)]) -> rquickjs::Result<Object<'js>> {
    let variables = Object::new(ctx.clone())?;
    for (name, value) in environment {
        variables.set(name.as_str(), value.as_str())?;
    }
    Ok(variables)
}

/// What the sources in `shim` need of Rust. Only they ever see it.
fn hooks<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>) -> rquickjs::Result<Object<'js>> {
    let hooks = Object::new(ctx.clone())?;
    let add = |name: &str, function: Function<'js>| hooks.set(name, function);
    let own = Rc::clone(realm);
    add("write", function(ctx, &"write".into(), move |ctx, given| write(&ctx, &own, &given))?)?;
    let own = Rc::clone(realm);
    add("timer", function(ctx, &"timer".into(), move |ctx, given| timer(&ctx, &own, &given))?)?;
    let own = Rc::clone(realm);
    add("clear", function(ctx, &"clear".into(), move |ctx, given| clear(&ctx, &own, &given))?)?;
    add("source", function(ctx, &"source".into(), |ctx, given| source(&ctx, &given))?)?;
    Ok(hooks)
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

/// `(callback, milliseconds, again)` to the number of a timer.
fn timer<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let Some(callback) = given.first().and_then(Value::as_function) else { return Ok(undefined(ctx)) };
    let milliseconds = given.get(1).and_then(Value::as_number).filter(|number| number.is_finite()).unwrap_or_default();
    let wait = Duration::from_secs_f64(milliseconds.clamp(0.0, LONGEST) / 1e3);
    let again = given.get(2).and_then(Value::as_bool).unwrap_or_default();
    let id = realm.number();
    let timer = Timer {
        callback: Persistent::save(ctx, callback.clone()),
        // One that fires without a pause would never let anything else go on.
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

/// What the source of this name evaluates to.
fn source<'js>(ctx: &Ctx<'js>, given: &[Value<'js>]) -> rquickjs::Result<Value<'js>> {
    let name = given.first().and_then(Value::as_string).map(rquickjs::String::to_string).transpose()?;
    let known = LAZY.iter().find(|(known, _)| name.as_deref() == Some(known));
    known.map_or(Ok(undefined(ctx)), |(name, source)| eval(ctx, name, source).map(Function::into_value))
}

#[cfg(test)]
mod tests;
