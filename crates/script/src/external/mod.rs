//! Code on the user's own JavaScript runtime. The text `modules.js` runs in a process of its own; it loads the user's modules
//! and exchanges messages with an [`ExternalRuntime`]: values, calls, requests, and the texts of the user's files.

mod codec;
mod runtime;

pub(crate) use self::runtime::ExternalRuntime;
