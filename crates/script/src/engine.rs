//! JavaScript engine with limits on memory, stack and time.

use std::rc::Rc;
use std::time::Duration;

use rquickjs::context::Intrinsic;
use rquickjs::{Context, Ctx, Object, Runtime};

use crate::deadline::Deadline;

/// Limits of an engine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Total heap size in bytes.
    pub memory: usize,
    /// Native stack size in bytes. It must leave room on the smallest thread that uses the engine.
    pub stack: usize,
}

/// Error of a piece of work.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EngineError {
    /// It exceeded its time limit. The engine remains usable.
    #[error("stopped after {} s", budget.as_millis() as f64 / 1000.0)]
    TimedOut { budget: Duration },
    /// It needed more memory than the limit. The engine must not be used again.
    #[error("needed more than {} MiB of memory", limit >> 20)]
    OutOfMemory { limit: usize },
    /// It threw an exception.
    #[error("{name}: {message}")]
    Thrown { name: String, message: String },
    /// The engine itself failed.
    #[error("the script engine failed: {0}")]
    Failed(String),
}

/// One runtime with one context. Limits apply to a runtime, so engines never share one.
pub(crate) struct Engine {
    context: Context,
    deadline: Rc<Deadline>,
    limits: Limits,
}

impl Engine {
    /// Creates an engine that has the built-in objects `I` in addition to those of the language.
    pub fn new<I: Intrinsic>(limits: Limits) -> Result<Self, EngineError> {
        let failed = |error: rquickjs::Error| EngineError::Failed(error.to_string());
        let runtime = Runtime::new().map_err(failed)?;
        runtime.set_memory_limit(limits.memory);
        runtime.set_max_stack_size(limits.stack);
        let deadline = Rc::new(Deadline::default());
        let seen_by_handler = Rc::clone(&deadline);
        runtime.set_interrupt_handler(Some(Box::new(move || seen_by_handler.has_passed())));
        let context = Context::custom::<I>(&runtime).map_err(failed)?;
        Ok(Self { context, deadline, limits })
    }

    /// Runs `work`, and stops it when `budget` is exceeded.
    pub fn run<T>(
        &self,
        budget: Duration,
        work: impl FnOnce(&Ctx<'_>) -> rquickjs::Result<T>,
    ) -> Result<T, EngineError> {
        self.deadline.begin(budget);
        let done = self.context.with(|ctx| work(&ctx).map_err(|error| self.explain(&ctx, &error, budget)));
        self.deadline.end();
        done
    }

    fn explain(&self, ctx: &Ctx<'_>, error: &rquickjs::Error, budget: Duration) -> EngineError {
        let thrown = match error {
            rquickjs::Error::Allocation => return EngineError::OutOfMemory { limit: self.limits.memory },
            rquickjs::Error::Exception => ctx.catch(),
            other => return EngineError::Failed(other.to_string()),
        };
        if self.deadline.was_reported() {
            return EngineError::TimedOut { budget };
        }
        // If there is no memory for an error object, the engine throws null.
        if thrown.is_null() {
            return EngineError::OutOfMemory { limit: self.limits.memory };
        }
        let text = |object: &Object<'_>, key: &str| object.get::<_, Option<String>>(key).ok().flatten();
        let Some(object) = thrown.as_object() else {
            return EngineError::Thrown { name: "Error".into(), message: format!("{thrown:?}") };
        };
        let name = text(object, "name").unwrap_or_else(|| "Error".into());
        let message = text(object, "message").unwrap_or_default();
        if name == "InternalError" && message.contains("out of memory") {
            return EngineError::OutOfMemory { limit: self.limits.memory };
        }
        EngineError::Thrown { name, message }
    }
}
