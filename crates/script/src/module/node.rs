//! The parts of Node.js: small stands-in for a few, a clear word about the rest.

use crate::module::resolve::Unresolved;
use crate::trace::INTERNAL;

/// The stands-in, by the name without `node:`.
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

/// What several of them share. It is no part of Node.js, so nobody else can import it.
const COMPARE: &str = "compare";

/// The parts a script cannot have, and why.
const WITHOUT: [(&[&str], &str); 4] = [
    (
        &[
            "fs",
            "fs/promises",
            "os",
            "tty",
            "readline",
            "readline/promises",
            "sqlite",
            "trace_events",
            "inspector",
            "v8",
        ],
        "scripts have no access to the machine",
    ),
    (
        &["child_process", "cluster", "worker_threads", "repl", "vm", "wasi", "test"],
        "scripts cannot start programs or threads",
    ),
    (
        &["http", "http2", "https", "net", "dgram", "dns", "dns/promises", "tls"],
        "scripts have no access to the network",
    ),
    (
        &[
            "async_hooks",
            "console",
            "constants",
            "diagnostics_channel",
            "domain",
            "events",
            "module",
            "perf_hooks",
            "punycode",
            "querystring",
            "stream",
            "stream/promises",
            "stream/web",
            "string_decoder",
            "sys",
            "timers",
            "util/types",
            "zlib",
        ],
        "it belongs to Node.js, and scripts run without",
    ),
];

/// The name of the part of Node.js that `specifier` means, if it means one.
pub(crate) fn of_node(specifier: &str) -> Option<&str> {
    if let Some(name) = specifier.strip_prefix("node:") {
        return Some(name);
    }
    let known = SHIMS.iter().any(|(name, _)| *name == specifier && *name != COMPARE)
        || WITHOUT.iter().any(|(names, _)| names.contains(&specifier));
    known.then_some(specifier)
}

/// The module that stands in for `name`.
pub(crate) fn shimmed(name: &str) -> Option<String> {
    SHIMS.iter().any(|(shim, _)| *shim == name && *shim != COMPARE).then(|| format!("{INTERNAL}{name}"))
}

/// The text of the stand-in called `name` in the engine.
pub(crate) fn source(name: &str) -> Option<&'static str> {
    let name = name.strip_prefix(INTERNAL)?;
    SHIMS.iter().find(|(shim, _)| *shim == name).map(|(_, source)| *source)
}

/// Why a part of Node.js cannot be imported.
pub(crate) fn unavailable(name: &str, specifier: &str) -> Unresolved {
    let because =
        WITHOUT.iter().find(|(names, _)| names.contains(&name)).map_or("scripts run without Node.js", |(_, b)| b);
    Unresolved { what: format!("{specifier} is not available here: {because}"), help: None }
}
