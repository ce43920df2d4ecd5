//! Reads which of the agent's files commands of assertions work with.

use globset::Glob;
use model::Node;
use model::decode::{Fields, Problems, text};

/// Reads `graded`, and returns the globs of the files to take from the agent although they steer tools.
pub fn graded(node: &Node, problems: &mut Problems) -> Vec<String> {
    let Some(mut fields) = Fields::of(node, "`graded`", problems) else { return Vec::new() };
    let mut globs = Vec::new();
    for item in fields.list("take", problems).unwrap_or_default() {
        let Some(glob) = text(item, "an item of `take`", problems) else { continue };
        match Glob::new(&glob) {
            Ok(_) => globs.push(glob),
            Err(error) => problems.push(item.error(format!("`{glob}` is not a valid glob pattern: {}", error.kind()))),
        }
    }
    fields.finish(problems);
    globs
}
