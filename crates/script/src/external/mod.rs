//! Code on the user's own JavaScript runtime. The text `modules.js` runs in a process of its own; it loads the user's modules
//! and exchanges messages with an [`ExternalRuntime`]: values, calls, requests, and the texts of the user's files.

mod codec;
mod platform;
mod runtime;

pub use self::platform::{BUN, DENO, NODE, Platform};
pub(crate) use self::runtime::ExternalRuntime;
