//! Removal of secrets from diagnostics.

use mask::{Mask, Secrets};
use model::Diagnostic;

/// Removes secrets from a problem. A source line is not shown if it contains a secret, or assigns a value to a name
/// that suggests one.
pub fn without_secrets(problem: &mut Diagnostic, mask: &Mask) {
    mask.string(&mut problem.message);
    problem.help.iter_mut().chain(&mut problem.label).for_each(|line| mask.string(line));
    let has_secret = |line: &str| Secrets::are_assigned_in(line) || mask.text(line) != line;
    if let Some(place) = problem.source.as_mut().filter(|place| has_secret(&place.text)) {
        place.text.clear();
    }
}
