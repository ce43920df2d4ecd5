//! Names for sources in the engine that are not files, and of the module that tests import.

/// Prefix of the names of the program's own sources, which are not shown in stacks.
pub(crate) const INTERNAL: &str = "internal:";

/// Prefix of the names of built-in modules.
pub(crate) const BUILTIN: &str = "builtin:";

/// Name of an expression's text.
pub(crate) const EXPRESSION: &str = "expression";

/// Names of the module that configurations import.
pub(crate) const CONFIGURATION_MODULES: &[&str] = &["trialrun/config", "@fabrik/cli", "@fabriklabs/cli"];

/// Names of the module that tests import.
pub(crate) const TEST_MODULES: &[&str] = &["trialrun", "@fabrik/core", "@fabriklabs/core"];
