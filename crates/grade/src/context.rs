//! Context for compiling assertions.

use std::path::Path;

use model::Case;

use crate::scripts::Scripts;

/// Context for compiling assertions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Names of the tools that the agent may have. `None` if any tool may be called, so that no name is reported as
    /// unknown.
    pub known_tools: Option<&'a [&'a str]>,
    /// Absolute path of the folder that contains the asserting file. Relative references to modules start here.
    pub directory: Option<&'a Path>,
    /// Script engine that runs the code of expectations.
    pub scripts: Option<&'a Scripts>,
    /// The case that asserts. [`crate::compile`] fills it in.
    pub case: Option<&'a Case>,
}
