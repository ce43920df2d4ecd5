//! Rules about parts of an agent's model requests that differ between two runs of the same trial.

/// Change of an agent's model requests before recorded and new ones are compared: it removes or unifies what has no
/// influence on the answer, or differs between runs although nothing has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestRule {
    /// Removes the value at a JSON pointer.
    Remove(&'static str),
    /// Removes every field with this name, at any depth.
    RemoveField(&'static str),
    /// Removes the items of the list at the pointer whose `text` starts like this.
    RemoveItems(&'static str, &'static str),
    /// Sorts the list at the first pointer by the value at the second pointer, within its items.
    Sort(&'static str, &'static str),
    /// Replaces the matches of a regular expression in every string.
    Replace(&'static str, &'static str),
}
