//! Context for compiling assertions.

use std::path::Path;

use model::{Case, Mocks};

use crate::scripts::Scripts;

/// Context for compiling assertions.
#[derive(Debug, Clone, Copy, Default)]
pub struct Context<'a> {
    /// Tools of the agent.
    pub known_tools: KnownTools<'a>,
    /// Absolute path of the folder that contains the file with the assertion. Relative references to modules start
    /// here.
    pub directory: Option<&'a Path>,
    /// Script engine that runs the code of expectations.
    pub scripts: Option<&'a Scripts>,
    /// The case to which the assertion belongs. [`crate::compile`] fills it in.
    pub case: Option<&'a Case>,
    /// MCP servers and mocked programs of the trial, if they are known. Those of a plug-in under test are included in every
    /// arm.
    pub mocks: Option<&'a Mocks>,
    /// True if a trial with signs of tampering must not pass, whatever its case asserts.
    pub requires_integrity: bool,
    /// True if every answer is text, and never a value of another kind.
    pub answers_in_text: bool,
}

/// Names of the tools that an agent is known to have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KnownTools<'a> {
    /// It has no other tool.
    Only(&'a [&'a str]),
    /// It has tools with canonical names, and these. Its tools may take arguments other than the canonical ones.
    Canonical(&'a [&'a str]),
    /// It may call other tools, so no name is reported as unknown.
    AtLeast(&'a [&'a str]),
}

impl Default for KnownTools<'_> {
    fn default() -> Self {
        Self::AtLeast(&[])
    }
}
