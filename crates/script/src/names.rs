//! Names for sources in the engine that are not files.

/// Prefix of the names of the program's own sources, which are not shown in stacks.
pub(crate) const INTERNAL: &str = "internal:";

/// Prefix of the names of built-in modules.
pub(crate) const BUILTIN: &str = "builtin:";

/// Name of an expression's text.
pub(crate) const EXPRESSION: &str = "expression";
