//! Modules that are loaded into engines, and the pool of those that trials share.

use std::sync::{Mutex, PoisonError};

use script::{Library, ScriptError};

use super::export::Export;
use crate::engine::{Engine, Program};

/// Maximum number of idle shared engines. Each has a thread.
const IDLE: usize = 32;
/// Maximum number of trials that share an engine. It bounds the memory that a module collects in its variables.
const USES: usize = 1_000;

static POOL: Mutex<Vec<Loaded>> = Mutex::new(Vec::new());

/// A module in an engine.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) export: Export,
    /// Says which trials share the engine, if any do.
    shared: Option<Key>,
    uses: usize,
    program: Program,
}

/// Module sources, and the timeout of a trial, which also limits calls.
struct Key {
    modules: Vec<String>,
    library: Library,
    timeout_ms: u64,
}

impl Key {
    fn is(&self, other: &Self) -> bool {
        self.modules == other.modules && self.library.is_same(&other.library) && self.timeout_ms == other.timeout_ms
    }
}

impl Loaded {
    /// Loads `program`. If it `may_be_shared` and exports `execute`, the engine may be one that another trial has
    /// finished using. `None` if the module exports nothing that can be called.
    ///
    /// # Errors
    /// Returns the error of the program.
    pub(super) async fn load(
        mut program: Program,
        timeout_ms: u64,
        may_be_shared: bool,
    ) -> Result<Option<Self>, ScriptError> {
        let key = Key { modules: program.modules.clone(), library: program.library.clone(), timeout_ms };
        if may_be_shared && let Some(mut known) = take(&key) {
            known.uses += 1;
            return Ok(Some(known));
        }
        program.is_shared = may_be_shared;
        let (mut engine, exported) = Engine::start(program.clone(), timeout_ms).await?;
        let Some(export) = Export::read(&exported) else { return Ok(None) };
        let is_shared = may_be_shared && matches!(export, Export::Execute(_));
        if is_shared {
            engine.share().await?;
        }
        Ok(Some(Self { engine, export, shared: is_shared.then_some(key), uses: 1, program }))
    }

    /// Loads the same module in an engine that no trial has used, if other trials have used this one. Values that
    /// those trials left in the module's variables, such as a growing cache, may be the cause of an error.
    ///
    /// # Errors
    /// Returns the error of the program.
    pub(super) async fn unused(&self) -> Result<Option<Self>, ScriptError> {
        let Some(key) = self.shared.as_ref().filter(|_| self.uses > 1) else { return Ok(None) };
        let (mut engine, exported) = Engine::start(self.program.clone(), key.timeout_ms).await?;
        let Some(export) = Export::read(&exported) else { return Ok(None) };
        engine.share().await?;
        let key = Key { modules: key.modules.clone(), library: key.library.clone(), timeout_ms: key.timeout_ms };
        Ok(Some(Self { engine, export, shared: Some(key), uses: 1, program: self.program.clone() }))
    }

    /// Releases the module after a call: a shared engine goes back to the pool, any other stays with its trial.
    pub(super) fn done(mut self) -> Option<Self> {
        let Some(key) = &self.shared else { return Some(self) };
        if self.uses < USES && self.engine.renew() {
            let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
            // Drops the engines of other plans, whose modules may be out of date.
            pool.retain(|idle| idle.shared.as_ref().is_some_and(|idle| idle.library.is_same(&key.library)));
            if pool.len() == IDLE {
                pool.remove(0);
            }
            pool.push(self);
        }
        None
    }
}

/// Takes the engine that was returned last, because its memory is still in the processor's caches.
fn take(key: &Key) -> Option<Loaded> {
    let mut pool = POOL.lock().unwrap_or_else(PoisonError::into_inner);
    let at = pool.iter().rposition(|idle| idle.shared.as_ref().is_some_and(|idle| idle.is(key)))?;
    Some(pool.remove(at))
}
