//! Limits on the cost of a template, so that a mistake in it causes an error instead of exhausting the machine's
//! memory.

/// Maximum number of steps per template: expressions evaluated and items read, with large values counted as several.
pub(crate) const STEPS: usize = 200_000;

/// Number of bytes in a string, or of values in a variable, that count as one step.
pub(crate) const BYTES_A_STEP: usize = 256;
pub(crate) const VALUES_A_STEP: usize = 8;

/// Maximum length of a string, in bytes.
pub(crate) const TEXT: usize = 1 << 20;

/// Maximum length of a list.
pub(crate) const ITEMS: usize = 100_000;

/// Maximum nesting of expressions, blocks and brackets in a template.
pub(crate) const NESTING: u16 = 32;

/// Maximum depth of an expression's tree. Long chains of operators count as well.
pub(crate) const EXPRESSION: u16 = 100;

/// Maximum nesting of lists and maps.
pub(crate) const DATA: u16 = 100;

/// Maximum total depth of evaluation: expressions, macros, variables that use variables.
pub(crate) const DEPTH: u32 = 128;

/// Maximum total size of the values that one resolution creates. Long strings count as several values.
pub(crate) const WEIGHT: usize = 500_000;

/// Number of bytes of text that count as one value.
pub(crate) const WEIGHED_BYTES: usize = 64;
