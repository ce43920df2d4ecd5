//! Reads whether canaries are planted, and where.

use model::decode::{Problems, text};
use model::{Canaries, CanaryPlace, Node, NodeKind};

/// Reads `canaries`: true, false, or a list of further places.
pub fn canaries(node: &Node, problems: &mut Problems) -> Option<Canaries> {
    let items = match &node.kind {
        NodeKind::Bool(is_on) => return Some(Canaries { is_on: *is_on, places: Vec::new() }),
        NodeKind::List(items) => items,
        _ => {
            let message = format!("`canaries` must be true, false or a list of places, not {}", node.kind_name());
            problems.push(node.error(message).help("a place is `$NAME`, `~/PATH` or a path in the working directory"));
            return None;
        }
    };
    let mut places = Vec::new();
    for item in items {
        let Some(written) = text(item, "an item of `canaries`", problems) else { continue };
        match CanaryPlace::parse(&written) {
            Ok(place) => places.push(place),
            Err(reason) => problems.push(item.error(reason.to_string())),
        }
    }
    Some(Canaries { is_on: true, places })
}
