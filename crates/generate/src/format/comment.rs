//! Comments at the top of a test: its purpose and what it covers.

use model::text::one_line;

use super::Context;
use crate::candidate::Candidate;

/// Maximum length of a comment line, in characters.
const LONGEST: usize = 200;

/// Beginning of a comment line that names a covered fact.
pub(crate) const COVERS: &str = "Covers ";

/// Returns the comment lines without comment markers.
pub(super) fn lines(candidate: &Candidate, context: &Context<'_>) -> Vec<String> {
    let mut lines = vec![one_line(&candidate.planned.why, LONGEST)];
    for id in &candidate.planned.covers {
        if let Some(target) = context.targets.iter().find(|target| target.id == *id) {
            let place = if target.place.is_empty() { String::new() } else { format!(" ({})", target.place) };
            lines.push(format!("{COVERS}{}{place}", target.text));
        }
    }
    lines
}

/// Returns the comment with `marker` before each line.
pub(super) fn block(marker: &str, candidate: &Candidate, context: &Context<'_>) -> String {
    lines(candidate, context).iter().map(|line| format!("{marker} {line}\n")).collect()
}
