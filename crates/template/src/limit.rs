//! How much a template may cost, so that a mistake in it ends in a message and not in a full machine.

/// The most steps one text may take: expressions evaluated, items looked at, with large values counted as several.
pub(crate) const STEPS: usize = 200_000;

/// How many bytes of a text, or values of a variable, are looked at in one step.
pub(crate) const BYTES_A_STEP: usize = 256;
pub(crate) const VALUES_A_STEP: usize = 8;

/// The longest text, in bytes.
pub(crate) const TEXT: usize = 1 << 20;

/// The longest list.
pub(crate) const ITEMS: usize = 100_000;

/// How deep expressions, blocks and brackets may be nested in one text.
pub(crate) const NESTING: u16 = 32;

/// How deep the tree of one expression may become; long chains of operators count, too.
pub(crate) const EXPRESSION: u16 = 100;

/// How deep lists and maps may be nested.
pub(crate) const DATA: u16 = 100;

/// How deep evaluation may go in all: expressions, macros, variables that use variables.
pub(crate) const DEPTH: u32 = 128;

/// How much one resolution may make in all: values, with long texts counted as several.
pub(crate) const WEIGHT: usize = 500_000;

/// How many bytes of text weigh as much as a value.
pub(crate) const WEIGHED_BYTES: usize = 64;
