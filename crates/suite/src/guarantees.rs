//! Guarantees of isolation that a project or a case requires.

use model::decode::{Fields, Problems, choice};
use model::{GUARANTEES, NodeKind};

/// Reads `require`: a list of guarantees.
pub fn guarantees(fields: &mut Fields<'_>, problems: &mut Problems) -> Vec<String> {
    let Some(node) = fields.get("require") else { return Vec::new() };
    let NodeKind::List(items) = &node.kind else {
        problems.push(node.error("`require` must be a list").help(format!("possible: {}", GUARANTEES.join(", "))));
        return Vec::new();
    };
    let choices = GUARANTEES.map(|name| (name, name));
    let items = items.iter().filter_map(|item| choice(item, "an item of `require`", &choices, problems));
    items.map(str::to_owned).collect()
}
