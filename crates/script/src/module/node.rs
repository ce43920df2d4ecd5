//! Node.js modules: shims for a few, and explanatory errors for the rest.

use std::collections::HashSet;

use crate::module::resolve::Unresolved;
use crate::names::INTERNAL;

/// Shims, by their names without `node:`.
const SHIMS: [(&str, &str); 11] = [
    ("assert", include_str!("../shim/assert.js")),
    ("assert/strict", include_str!("../shim/assert_strict.js")),
    ("path", include_str!("../shim/path.js")),
    ("path/posix", include_str!("../shim/path.js")),
    ("util", include_str!("../shim/util.js")),
    ("url", include_str!("../shim/node_url.js")),
    ("process", include_str!("../shim/process.js")),
    ("buffer", include_str!("../shim/node_buffer.js")),
    ("crypto", include_str!("../shim/node_crypto.js")),
    ("timers/promises", include_str!("../shim/timers.js")),
    (COMPARE, include_str!("../shim/compare.js")),
];

/// Module shared by several shims. It is not part of Node.js, so it cannot be imported by scripts.
const COMPARE: &str = "compare";

/// Node.js modules that are not available, with the reasons.
const WITHOUT: [(&str, &str); 4] = [
    (
        "fs fs/promises os tty readline readline/promises sqlite trace_events inspector v8",
        "scripts have no access to the machine",
    ),
    ("child_process cluster worker_threads repl vm wasi test", "scripts cannot start programs or threads"),
    ("http http2 https net dgram dns dns/promises tls", "scripts have no access to the network"),
    (
        "async_hooks console constants diagnostics_channel domain events module perf_hooks punycode querystring stream \
         stream/promises stream/web string_decoder sys timers util/types zlib",
        "it belongs to Node.js, and scripts run without it",
    ),
];

/// Returns the reason why the Node.js module `name` is not available, if it is known.
fn reason(name: &str) -> Option<&'static str> {
    WITHOUT.iter().find(|(names, _)| names.split(' ').any(|known| known == name)).map(|(_, reason)| *reason)
}

/// Returns the name of the Node.js module to which `specifier` refers, if it does.
pub(crate) fn of_node(specifier: &str) -> Option<&str> {
    if let Some(name) = specifier.strip_prefix("node:") {
        return Some(name);
    }
    let known = SHIMS.iter().any(|(name, _)| *name == specifier && *name != COMPARE) || reason(specifier).is_some();
    known.then_some(specifier)
}

/// Returns the name of the shim for `name`.
pub(crate) fn shimmed(name: &str) -> Option<String> {
    SHIMS.iter().any(|(shim, _)| *shim == name && *shim != COMPARE).then(|| format!("{INTERNAL}{name}"))
}

/// Returns the source of the shim that the engine calls `name`.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix(INTERNAL)?;
    SHIMS.iter().find(|(shim, _)| *shim == name).map(|(_, source)| *source)
}

/// Returns the names in the shim for the module `name`, among them all that it exports.
pub(crate) fn names(name: &str) -> Option<HashSet<&'static str>> {
    let (_, source) = SHIMS.iter().find(|(shim, _)| *shim == name)?;
    Some(source.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).collect())
}

/// Returns the error for a Node.js module that is not available.
pub(crate) fn unavailable(name: &str, specifier: &str) -> Unresolved {
    let reason = reason(name).unwrap_or("scripts run without Node.js");
    Unresolved { what: format!("{specifier} is not available here: {reason}"), help: None }
}
