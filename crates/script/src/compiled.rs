//! The program's own sources, compiled once for all runtimes of the process.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use rquickjs::loader::{Bundle, Loader};
use rquickjs::module::{Declared, WriteOptions};
use rquickjs::{Ctx, Module};

/// A module's name in the engine, and what the engine made of its text.
type Compiled = (&'static str, &'static [u8]);

/// By name. They stay as long as the process: there are as many as the program has sources.
static COMPILED: Mutex<BTreeMap<&'static str, &'static [Compiled]>> = Mutex::new(BTreeMap::new());

/// Declares the module `name`, which is one of the program's own: its `text` is always the same. Only the first runtime
/// that needs it compiles it.
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
    // Places stay: by them the program's own steps on the way to an error are told from the user's.
    let code = module.write(WriteOptions { strip_source: true, ..WriteOptions::default() })?;
    keep(name, code);
    Ok(module)
}

fn keep(name: &str, code: Vec<u8>) {
    let mut compiled = lock();
    if !compiled.contains_key(name) {
        let name: &'static str = name.to_owned().leak();
        compiled.insert(name, vec![(name, &*code.leak())].leak());
    }
}

/// Entries come whole or not at all, whoever panics.
fn lock() -> std::sync::MutexGuard<'static, BTreeMap<&'static str, &'static [Compiled]>> {
    COMPILED.lock().unwrap_or_else(PoisonError::into_inner)
}
