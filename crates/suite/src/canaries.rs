//! Reads whether canaries are planted, and where.

use model::decode::{Problems, boolean, boolean_help, described, text};
use model::{Canaries, CanaryPlace, Node, NodeKind};

/// Reads `canaries`: true, false, or a list of further places.
pub fn canaries(node: &Node, problems: &mut Problems) -> Option<Canaries> {
    if let Some(is_on) = boolean(node) {
        return Some(Canaries { is_on, places: Vec::new() });
    }
    let NodeKind::List(items) = &node.kind else {
        let message = format!("`canaries` must be true, false or a list of places, not {}", described(node));
        let problem = boolean_help(node, node.error(message));
        problems.push(match problem.help.is_empty() {
            true => problem.help("a place is `$NAME`, `~/PATH` or a path in the working directory"),
            false => problem,
        });
        return None;
    };
    let mut places = Vec::new();
    for item in items {
        let Some(written) = text(item, "an item of `canaries`", problems) else { continue };
        match CanaryPlace::parse(&written) {
            Ok(place) => {
                if is_variable(&written) {
                    let problem = item.warning(format!("`{written}` is the path of a file here, not a variable"));
                    problems.push(problem.suggest(Some(&format!("${written}"))));
                }
                places.push(place);
            }
            Err(reason) => problems.push(item.error(reason.to_string())),
        }
    }
    Some(Canaries { is_on: true, places })
}

/// Returns `true` if a path is written like the name of a variable: `API_KEY`.
fn is_variable(path: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_uppercase() || letter.is_ascii_digit() || letter == '_';
    path.contains('_') && path.chars().all(is_letter)
}
