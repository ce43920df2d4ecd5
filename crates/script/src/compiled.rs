//! The program's own sources, and modules of packages, compiled once for all runtimes of the process.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use rquickjs::loader::{Bundle, Loader};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Module};

/// Name of a module in the engine, and its compiled code.
type Compiled = (&'static str, &'static [u8]);

/// Compiled sources by name. They are never freed, since their number is that of the program's sources.
static COMPILED: Mutex<BTreeMap<&'static str, &'static [Compiled]>> = Mutex::new(BTreeMap::new());

/// Modules of packages by name, with a hash of their text. They are never freed, not even after the package was
/// installed again.
static PACKAGES: Mutex<BTreeMap<String, (u64, &'static [Compiled])>> = Mutex::new(BTreeMap::new());

/// Declares the module `name` of a package. The first runtime that needs it compiles it. The others load the compiled
/// code, which does not include the text.
pub(crate) fn declare_of_package<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    text: &str,
) -> rquickjs::Result<Module<'js, Declared>> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    let hash = hasher.finish();
    let packages = || PACKAGES.lock().unwrap_or_else(PoisonError::into_inner);
    let known = packages().get(name).filter(|(of, _)| *of == hash).map(|(_, known)| *known);
    if let Some(known) = known {
        return (Bundle { 0: known }).load(ctx, name, None);
    }
    let module = Module::declare(ctx.clone(), name, text)?;
    let code = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() })?;
    let mut packages = packages();
    // Another thread may have been faster.
    if packages.get(name).is_none_or(|(of, _)| *of != hash) {
        packages.insert(name.to_owned(), (hash, kept(name, &code)));
    }
    Ok(module)
}

/// Keeps compiled code for the lifetime of the process.
fn kept(name: &str, code: &[u8]) -> &'static [Compiled] {
    let name: &'static str = name.to_owned().leak();
    vec![(name, &*code.to_vec().leak())].leak()
}

/// Declares the module `name`, which is one of the program's own, with a constant `text`. Only the first runtime that
/// needs it compiles it.
pub(crate) fn declare<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    text: impl FnOnce() -> String,
) -> rquickjs::Result<Module<'js, Declared>> {
    let known = lock().get(name).copied();
    if let Some(known) = known {
        return (Bundle { 0: known }).load(ctx, name, None);
    }
    let module = Module::declare(ctx.clone(), name, text())?;
    // Positions are kept, because they distinguish the program's own stack frames from the user's.
    let code = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() })?;
    keep(name, &code);
    Ok(module)
}

fn keep(name: &str, code: &[u8]) {
    let mut compiled = lock();
    if !compiled.contains_key(name) {
        let kept = kept(name, code);
        compiled.insert(kept[0].0, kept);
    }
}

/// Entries are inserted completely or not at all, so a panic of another thread does no harm.
fn lock() -> std::sync::MutexGuard<'static, BTreeMap<&'static str, &'static [Compiled]>> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner)
}
