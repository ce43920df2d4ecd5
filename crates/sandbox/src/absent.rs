//! Kinds of sandboxes that projects may ask for but that this version does not support. A trial that needs one is
//! reported as broken; a trial that does not need one runs.

use std::sync::Arc;

use super::{Registry, Request, Sandbox, SandboxBackend, SandboxError, SandboxKind};
use crate::BoxFuture;
use crate::Host;

/// A kind of sandbox that is known only by name.
pub struct Absent(pub &'static str);

impl SandboxKind for Absent {
    fn name(&self) -> &'static str {
        self.0
    }

    fn summary(&self) -> &'static str {
        "known by name alone"
    }

    fn open(&self, _host: &Host, _registry: &Arc<Registry>) -> Result<Box<dyn SandboxBackend>, SandboxError> {
        Ok(Box::new(Nobody(self.0)))
    }
}

/// SandboxBackend that always fails.
struct Nobody(&'static str);

impl SandboxBackend for Nobody {
    fn make(&self, _request: Request) -> BoxFuture<'_, Result<Arc<dyn Sandbox>, SandboxError>> {
        Box::pin(async { Err(SandboxError::Absent { name: self.0 }) })
    }
}
