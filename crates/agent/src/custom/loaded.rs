//! Modules that are loaded into engines, and the pool of engines that trials share.

use std::sync::{Arc, Mutex, PoisonError};

use script::ScriptError;

use super::export::Export;
use crate::engine::{Engine, Program};

/// Maximum number of idle shared engines. Each has a thread.
const IDLE: usize = 32;
/// Maximum number of trials that share an engine. It limits the memory that a module can accumulate in its variables.
const USES: usize = 1_000;

/// Idle engines that trials of a run share.
#[derive(Default)]
pub(crate) struct EnginePool(Mutex<Vec<Loaded>>);

/// A module in an engine.
pub(super) struct Loaded {
    pub(super) engine: Engine,
    pub(super) export: Export,
    program: Program,
    /// Timeout of a trial, which also limits calls.
    timeout_ms: u64,
    /// `true` if other trials may use the engine after this one.
    is_shared: bool,
    uses: usize,
}

impl Loaded {
    /// Loads `program`. If it `may_be_shared` and exports `execute`, the engine may be one that another trial has
    /// finished using. `None` if the module exports nothing that can be called.
    pub(super) async fn load(
        mut program: Program,
        timeout_ms: u64,
        may_be_shared: bool,
    ) -> Result<Option<Self>, ScriptError> {
        if may_be_shared && let Some(mut known) = program.state.engines.take(&program, timeout_ms) {
            known.uses += 1;
            return Ok(Some(known));
        }
        program.is_shared = may_be_shared;
        Self::start(program, timeout_ms).await
    }

    /// Loads `program` in a new engine.
    async fn start(program: Program, timeout_ms: u64) -> Result<Option<Self>, ScriptError> {
        let (mut engine, exported) = Engine::start(program.clone(), timeout_ms).await?;
        let Some(export) = Export::read(&exported) else { return Ok(None) };
        let is_shared = program.is_shared && matches!(export, Export::Execute(_));
        if is_shared {
            engine.share().await?;
        }
        Ok(Some(Self { engine, export, program, timeout_ms, is_shared, uses: 1 }))
    }

    /// Loads the same module in an engine that no trial has used, if other trials have used this one. Values that they
    /// left in the module's variables, such as a growing cache, may have caused an error.
    pub(super) async fn unused(&self) -> Result<Option<Self>, ScriptError> {
        match self.is_shared && self.uses > 1 {
            true => Self::start(self.program.clone(), self.timeout_ms).await,
            false => Ok(None),
        }
    }

    /// Releases the module after a call: a shared engine returns to the pool, any other engine stays with its trial.
    pub(super) fn done(mut self) -> Option<Self> {
        if !self.is_shared {
            return Some(self);
        }
        if self.uses < USES && self.engine.renew() {
            Arc::clone(&self.program.state).engines.put(self);
        }
        None
    }
}

impl EnginePool {
    /// Returns an engine to the pool.
    fn put(&self, loaded: Loaded) {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if pool.len() == IDLE {
            pool.remove(0);
        }
        pool.push(loaded);
    }

    /// Takes the engine that was returned last, because its memory is still in the CPU caches.
    fn take(&self, program: &Program, timeout_ms: u64) -> Option<Loaded> {
        let mut pool = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index =
            pool.iter().rposition(|idle| idle.timeout_ms == timeout_ms && idle.program.modules == program.modules)?;
        Some(pool.remove(index))
    }
}
