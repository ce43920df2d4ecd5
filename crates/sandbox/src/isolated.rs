//! Sandboxes whose processes see only the sandbox and the system.
//!
//! An isolated sandbox is a directory on this machine, laid out and inspected like a local one. Its processes run in
//! their own namespaces: they see the system's folders, read-only, the sandbox's own directories at their own paths,
//! and nothing else on the machine. `docs/design/sandbox.md` gives the reasons.

use std::sync::Arc;

use super::confinement::Confinement;
use super::local::LocalBackend;
use super::registry::Registry;
use super::{SandboxBackend, SandboxError, SandboxKind, SandboxOptions};
use crate::Host;

/// The kind `isolated`.
pub(super) struct Isolated;

impl SandboxKind for Isolated {
    fn name(&self) -> &'static str {
        "isolated"
    }

    fn summary(&self) -> &'static str {
        "a local sandbox whose processes see only it and the system, read-only (Linux)"
    }

    fn has_places(&self) -> bool {
        true
    }

    fn open(
        &self,
        host: &Host,
        registry: &Arc<Registry>,
        options: &SandboxOptions,
    ) -> Result<Box<dyn SandboxBackend>, SandboxError> {
        let confinement = Confinement::of(host, options)?;
        Ok(Box::new(LocalBackend::open(host, registry, Some(Arc::new(confinement)))?))
    }
}
