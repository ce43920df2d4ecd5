//! Models whose responses come from a file.

use std::sync::Arc;

use super::Provider;
use crate::opening::ProviderOptions;
use crate::{OpenError, Opened, Script};

pub(super) const PROVIDER: Provider = Provider {
    name: "scripted",
    argument: "FILE",
    summary: "Responses from a file: text, tool calls and faults; offline and deterministic",
    variables: &[],
    vendor: None,
};

/// Reads the script that `options` specifies.
pub(super) fn open(options: &ProviderOptions<'_>) -> Result<Opened, OpenError> {
    let node = (options.read)(options.argument).map_err(OpenError::Invalid)?;
    Script::from_node(&node).map(|script| Opened::Script(Arc::new(script))).map_err(OpenError::Invalid)
}
