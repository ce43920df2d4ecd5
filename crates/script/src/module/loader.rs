//! Module loader of the engine.

use std::path::Path;
use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{Ctx, Module};

use crate::compiled;
use crate::module::library::Kind;
use crate::module::lookup::{find, text, without_nul};
use crate::module::resolve::ImportKind;
use crate::module::{commonjs, json, node};
use crate::names::{BUILTIN, INTERNAL};
use crate::realm::{Builtin, Realm};
use crate::shim;

/// Installs the module loader in `engine`.
pub(crate) fn install(engine: &rquickjs::Runtime, realm: &Rc<Realm>) {
    engine.set_loader(Names(Rc::clone(realm)), Texts(Rc::clone(realm)));
}

struct Names(Rc<Realm>);

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        match self.0.entry.take() {
            Some(entry) if entry == name => Ok(entry),
            // The program's own sources import each other by name.
            _ if base.starts_with(INTERNAL) => Ok(name.to_owned()),
            _ if base.starts_with(BUILTIN) && self.0.builtins.borrow().contains_key(name) => {
                Ok(format!("{BUILTIN}{name}"))
            }
            _ => find(ctx, &self.0, base, name, ImportKind::Import),
        }
    }
}

struct Texts(Rc<Realm>);

impl Loader for Texts {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        load(ctx, &self.0, name)
    }
}

fn load<'js>(ctx: &Ctx<'js>, realm: &Rc<Realm>, name: &str) -> rquickjs::Result<Module<'js, Declared>> {
    if let Some(specifier) = name.strip_prefix(BUILTIN) {
        let builtin = realm.builtins.borrow().get(specifier).cloned();
        return match builtin {
            Some(Builtin::Own(text)) => compiled::declare(ctx, name, || text.to_owned()),
            Some(Builtin::Given(text)) => Module::declare(ctx.clone(), name, &*without_nul(&text)),
            None => Err(rquickjs::Error::new_loading(name)),
        };
    }
    if let Some(source) = node::source(name) {
        let module = compiled::declare(ctx, name, || source.to_owned())?;
        if source.contains("import.meta") {
            module.meta()?.set("value", shim::inspector(ctx)?)?;
        }
        return Ok(module);
    }
    let text = text(ctx, realm, name)?;
    match text.kind {
        Kind::Module => {
            let code = without_nul(text.code());
            let module = match Path::new(name).components().any(|part| part.as_os_str() == "node_modules") {
                true => compiled::declare_of_package(ctx, name, &code)?,
                false => Module::declare(ctx.clone(), name, &*code)?,
            };
            if text.original.contains("import.meta") {
                set_meta(&module, name)?;
            }
            Ok(module)
        }
        Kind::CommonJs => {
            let exports = commonjs::load(ctx, realm, Path::new(name))?;
            commonjs::as_module(ctx, realm, name, exports)
        }
        Kind::Json => {
            let value = json::parse(ctx, realm, name, &text)?;
            json::as_module(ctx, name, value)
        }
    }
}

/// Fills in `import.meta`.
fn set_meta(module: &Module<'_, Declared>, name: &str) -> rquickjs::Result<()> {
    let meta = module.meta()?;
    meta.set("url", format!("file://{name}"))?;
    meta.set("filename", name)?;
    let directory = Path::new(name).parent().map(|directory| directory.display().to_string());
    meta.set("dirname", directory.unwrap_or_default())
}
