//! The program's own sources, and modules from packages, compiled once for all runtimes in the process.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, PoisonError};

use rquickjs::loader::{Bundle, Loader};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Module};

/// Name of a module in the engine, and its compiled code.
type Compiled = (&'static str, &'static [u8]);

/// Compiled modules by name, with a hash of their text. They are never freed, not even after a package is installed
/// again.
static COMPILED: Mutex<BTreeMap<String, (u64, &'static [Compiled])>> = Mutex::new(BTreeMap::new());

/// Declares the module called `name` from a package. The first runtime that needs it compiles it. The others load the
/// compiled code, which does not include the text.
pub(crate) fn declare_of_package<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    text: &str,
) -> rquickjs::Result<Module<'js, Declared>> {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    declare_as(ctx, name, hasher.finish(), || Cow::Borrowed(text))
}

/// Declares the module called `name`, one of the program's own, with a constant `text`. Only the first runtime that
/// needs it compiles it.
pub(crate) fn declare<'js>(
    ctx: &Ctx<'js>,
    name: &str,
    text: impl FnOnce() -> String,
) -> rquickjs::Result<Module<'js, Declared>> {
    declare_as(ctx, name, 0, || Cow::Owned(text()))
}

fn declare_as<'js, 't>(
    ctx: &Ctx<'js>,
    name: &str,
    hash: u64,
    text: impl FnOnce() -> Cow<'t, str>,
) -> rquickjs::Result<Module<'js, Declared>> {
    // Entries are inserted completely or not at all, so a panic on another thread does no harm.
    let compiled = || COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = compiled().get(name).filter(|(known_hash, _)| *known_hash == hash).map(|(_, known)| *known);
    if let Some(known) = known {
        return (Bundle { 0: known }).load(ctx, name, None);
    }
    let module = Module::declare(ctx.clone(), name, &*text())?;
    // Positions are kept, because they distinguish the program's own stack frames from the user's.
    let code = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() })?;
    let mut compiled = compiled();
    // Another thread may have compiled it first.
    if compiled.get(name).is_none_or(|(known_hash, _)| *known_hash != hash) {
        let kept: &'static [Compiled] = vec![(&*name.to_owned().leak(), &*code.leak())].leak();
        compiled.insert(name.to_owned(), (hash, kept));
    }
    Ok(module)
}
