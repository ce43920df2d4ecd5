//! Names of other environments that scripts do not have, and why.

/// Global names of browsers and of Node.js that the engine does not have.
const PLATFORM: &str = "Blob BroadcastChannel ByteLengthQueuingStrategy CompressionStream CountQueuingStrategy \
    DOMException DecompressionStream File FormData Headers MessageChannel MessageEvent MessagePort PerformanceObserver \
    ReadableStream Request Response TextDecoderStream TextEncoderStream TransformStream URLPattern WebAssembly \
    WritableStream";

/// Returns the reason why `name`, which exists in other environments, does not exist in scripts.
pub(crate) fn absence(name: &str) -> Option<&'static str> {
    Some(match name {
        "fetch" => {
            "scripts have no access to the network; a `custom` agent has it for the hosts in its `network: [HOST]`"
        }
        "WebSocket" | "XMLHttpRequest" | "EventSource" => "scripts have no access to the network",
        "Deno" | "Bun" => "scripts do not run in this runtime",
        "Worker" | "SharedWorker" => "a script has one thread",
        "document" | "window" | "localStorage" | "sessionStorage" | "navigator" => "scripts do not run in a browser",
        "require" | "module" | "__dirname" | "__filename" => "this file is an ECMAScript module, use `import`",
        "setImmediate" | "clearImmediate" | "global" => "it belongs to Node.js",
        name if PLATFORM.split_whitespace().any(|known| known == name) => "the script engine does not have it",
        "Intl" => "the script engine has no locale data; use `toFixed` or `toISOString`",
        "describe" | "it" | "test" | "suite" => {
            "it belongs to another test runner; write `export default scenario(name, async ({ agent, assert }) => { … })`"
        }
        "beforeEach" | "beforeAll" | "afterEach" | "afterAll" | "before" | "after" => {
            "it belongs to another test runner; call a function of your own in each scenario"
        }
        "expect" => {
            "it belongs to another test runner; write `assert.contains(reply, text)` or `assert.custom(name, fn)`"
        }
        "jest" | "vi" => "it belongs to another test runner",
        _ => return None,
    })
}

/// Returns `true` if something that is absent for this reason is absent in Node.js, too.
pub(crate) fn is_absent_in_node(reason: &str) -> bool {
    /// Words in the reasons.
    const WORDS: [&str; 5] =
        ["another test runner", "a browser", "this runtime", "an ECMAScript module", "without a sandbox"];
    WORDS.iter().any(|words| reason.contains(words))
}
