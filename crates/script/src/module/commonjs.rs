//! CommonJS modules: `require`, `module.exports`, and importing them with `import`.

use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;

use rquickjs::context::EvalOptions;
use rquickjs::function::This;
use rquickjs::module::Declared;
use rquickjs::promise::PromiseState;
use rquickjs::{Ctx, Exception, Function, Module, Object, Persistent, Value};

use crate::convert::function;
use crate::module::library::Kind;
use crate::module::resolve::ImportKind;
use crate::module::{json, lookup};
use crate::realm::Realm;

/// Evaluates the module at `path` once, and returns its `module.exports`. In an import cycle, returns the exports so
/// far.
pub(crate) fn load<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, path: &Path) -> rquickjs::Result<Value<'js>> {
    let known = realm.commonjs.borrow().get(path).cloned();
    if let Some(module) = known {
        return module.restore(ctx)?.get("exports");
    }
    let name = path.display().to_string();
    let text = lookup::text(ctx, realm, &name)?;
    if text.kind == Kind::Json {
        let module = Object::new(ctx.clone())?;
        let value = json::parse(ctx, realm, &name, &text)?;
        module.set("exports", value.clone())?;
        realm.commonjs.borrow_mut().insert(path.to_path_buf(), Persistent::save(ctx, module));
        return Ok(value);
    }
    let module = Object::new(ctx.clone())?;
    let exports = Object::new(ctx.clone())?;
    module.set("exports", exports.clone())?;
    module.set("id", name.as_str())?;
    module.set("filename", name.as_str())?;
    module.set("loaded", false)?;
    realm.commonjs.borrow_mut().insert(path.to_path_buf(), Persistent::save(ctx, module.clone()));
    let result = evaluate(ctx, realm, &name, text.code(), &module, exports);
    if let Err(error) = result {
        realm.commonjs.borrow_mut().remove(path);
        return Err(error);
    }
    module.set("loaded", true)?;
    module.get("exports")
}

fn evaluate<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    name: &str,
    code: &str,
    module: &Object<'js>,
    exports: Object<'js>,
) -> rquickjs::Result<()> {
    let mut options = EvalOptions::default();
    options.strict = false;
    options.filename = Some(name.to_owned());
    let code = lookup::without_nul(code);
    let comment_prefix = if code.starts_with("#!") { "//" } else { "" };
    // The text begins on the second line: see `Text::lines_above`.
    let wrapped =
        format!("(function (exports, require, module, __filename, __dirname) {{\n{comment_prefix}{code}\n}})");
    let body: Function<'js> = ctx.eval_with_options(wrapped, options)?;
    let require = require(ctx, realm, name)?;
    module.set("require", require.clone())?;
    let directory = Path::new(name).parent().map(|directory| directory.display().to_string()).unwrap_or_default();
    body.call::<_, Value<'js>>((This(exports.clone()), exports, require, module.clone(), name, directory))?;
    Ok(())
}

fn require<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, base: &str) -> rquickjs::Result<Function<'js>> {
    let (realm, base) = (Rc::clone(realm), base.to_owned());
    let resolving = (Rc::clone(&realm), base.clone());
    let require = function(ctx, &Rc::from("require"), move |ctx, arguments| {
        let name = resolve(&ctx, &realm, &base, &arguments)?;
        load_required(&ctx, &realm, &name)
    })?;
    let resolve = function(ctx, &Rc::from("resolve"), move |ctx, arguments| {
        let (realm, base) = &resolving;
        let name = resolve(&ctx, realm, base, &arguments)?;
        rquickjs::String::from_str(ctx.clone(), &name).map(rquickjs::String::into_value)
    })?;
    require.set("resolve", resolve)?;
    require.set("cache", Object::new(ctx.clone())?)?;
    Ok(require)
}

fn resolve<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, base: &str, arguments: &[Value<'js>]) -> rquickjs::Result<String> {
    match arguments.first().and_then(Value::as_string) {
        Some(specifier) => lookup::find(ctx, realm, base, &specifier.to_string()?, ImportKind::Require),
        None => Err(Exception::throw_type(ctx, "`require` expects a module name")),
    }
}

/// Returns the result of `require` for the module called `name`.
fn load_required<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, name: &str) -> rquickjs::Result<Value<'js>> {
    let path = Path::new(name);
    if path.is_absolute() && lookup::text(ctx, realm, name)?.kind != Kind::Module {
        return load(ctx, realm, path);
    }
    let promise = lookup::import(ctx, realm, name)?;
    // The caller of `require` handles errors, so the promise must not count as unhandled.
    let mark_handled: Function<'js> = realm.tools(ctx)?.get("promise")?;
    mark_handled.call::<_, Value<'js>>((promise.clone(),))?;
    // Running pending jobs settles the promise, even if nothing awaits it.
    while promise.state() == PromiseState::Pending && !realm.deadline.has_passed() && ctx.execute_pending_job() {}
    match promise.result::<Object<'js>>() {
        Some(namespace) => {
            let namespace = namespace?;
            let is_builtin = !path.is_absolute() && namespace.contains_key("default")?;
            if is_builtin { namespace.get("default") } else { Ok(namespace.into_value()) }
        }
        None => {
            let message =
                format!("`{}` uses top-level `await`, so it cannot be loaded with `require`", realm.shown(path));
            Err(Exception::throw_message(ctx, &message))
        }
    }
}

/// Creates an ECMAScript module for a CommonJS module. `module.exports` is the default export, and each of its
/// properties is a named export.
pub(crate) fn as_module<'js>(
    ctx: &Ctx<'js>,
    realm: &Rc<Realm>,
    name: &str,
    exports: Value<'js>,
) -> rquickjs::Result<Module<'js, Declared>> {
    let mut source = String::from("const all = import.meta.value;\nexport default all;\n");
    if let Some(object) = exports.as_object() {
        let names = object.keys::<String>().flatten().filter(|name| name != "default");
        for (index, name) in names.enumerate() {
            let name = serde_json::Value::String(name);
            let _ = writeln!(source, "const _{index} = all[{name}];\nexport {{ _{index} as {name} }};");
        }
    }
    let module = Module::declare(ctx.clone(), name, source).inspect_err(|_| {
        realm.commonjs.borrow_mut().remove(Path::new(name));
    })?;
    module.meta()?.set("value", exports)?;
    Ok(module)
}
