//! Rules for parts of an agent's model requests that differ between runs of the same trial.

/// Change to an agent's model request before it is compared with recorded ones. It removes or unifies parts that do not
/// influence the answer, or that differ between runs without a real change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRule {
    /// Removes the value at a JSON pointer.
    Remove(&'static str),
    /// Removes every field with this name, at any depth.
    RemoveField(&'static str),
    /// Removes items from the list at the pointer if their `text` starts with the second value.
    RemoveItems(&'static str, &'static str),
    /// Sorts the list at the first pointer by the value that each item has at the second pointer.
    Sort(&'static str, &'static str),
    /// Replaces matches of a regular expression in every string.
    Replace(&'static str, &'static str),
}
