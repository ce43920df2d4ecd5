//! Models that answer from a file.

use std::sync::Arc;

use super::Provider;
use crate::opening::Opening;
use crate::{OpenError, Opened, Script};

pub(super) const PROVIDER: Provider = Provider {
    name: "scripted",
    argument: "FILE",
    summary: "Answers from a file: text, tool calls and faults; offline and deterministic",
    variables: &[],
    vendor: None,
};

/// Reads the script that `opening` names.
pub(super) fn open(opening: &Opening<'_>) -> Result<Opened, OpenError> {
    let node = (opening.read)(opening.argument).map_err(OpenError::Invalid)?;
    Script::from_node(&node).map(|script| Opened::Script(Arc::new(script))).map_err(OpenError::Invalid)
}
