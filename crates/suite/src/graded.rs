//! Reads the trees in which commands of assertions work.

use globset::Glob;
use model::decode::{Fields, Problems, text};
use model::{Graded, Node};

/// Reads `graded`.
pub fn graded(node: &Node, problems: &mut Problems) -> Graded {
    let Some(mut fields) = Fields::of(node, "`graded`", problems) else { return Graded::default() };
    let mut taken_files = Vec::new();
    for item in fields.list("take", problems).unwrap_or_default() {
        let Some(glob) = text(item, "an item of `take`", problems) else { continue };
        match Glob::new(&glob) {
            Ok(_) => taken_files.push(glob),
            Err(error) => problems.push(item.error(format!("`{glob}` is not a valid glob pattern: {}", error.kind()))),
        }
    }
    let is_shared = fields.boolean("shared", problems).unwrap_or_default();
    fields.finish(problems);
    Graded { taken_files, is_shared }
}
