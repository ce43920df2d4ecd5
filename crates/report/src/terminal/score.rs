//! How a score is composed.

use model::{Detail, Finding, Outcome, Status, TrialRecord};

use super::Paint;
use crate::format::points;
use crate::{columns, score};

/// Maximum number of parts of one finding.
const PARTS: usize = 16;
/// Maximum nesting depth of parts.
const DEEP: usize = 4;
/// Maximum length of a name.
const NAME: usize = 48;
/// Maximum number of critical paths.
const PATHS: usize = 5;

/// Formats the score, the dimensions, and the failed critical parts. Empty if there are none.
pub(super) fn head(record: &TrialRecord, paint: &Paint) -> String {
    let mut text = String::new();
    let failed = record.outcome == Outcome::Failed;
    if !matches!(record.outcome, Outcome::Passed | Outcome::Failed) {
        return text;
    }
    let scored = score::describe(record);
    if let Some((score, needs)) = &scored {
        let score = format!("score {score}");
        let score = if failed { paint.bold(&score) } else { score };
        text.push_str(&format!("    {score} {}\n", paint.dim(needs)));
    }
    let dimensions = score::dimension_shares(&record.findings);
    if !dimensions.is_empty() && (scored.is_some() || failed) {
        let shares: Vec<String> =
            dimensions.iter().map(|(name, share)| format!("{} {share}", paint.folded(name, NAME))).collect();
        text.push_str(&format!("    {} {}\n", paint.dim("by dimension:"), paint.join(&shares)));
    }
    if scored.is_some() && failed && !record.not {
        text.push_str(&critical(record, paint));
    }
    text
}

/// Formats the unmet critical parts, which must hold regardless of the score.
fn critical(record: &TrialRecord, paint: &Paint) -> String {
    let mut paths: Vec<String> = Vec::new();
    for finding in &record.findings {
        for path in &finding.failed_critical {
            let path = if path.is_empty() { &finding.id } else { path };
            let path = paint.one_line(path, NAME);
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
    if paths.is_empty() {
        return String::new();
    }
    let more = paths.len().saturating_sub(PATHS);
    paths.truncate(PATHS);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("    {} {}{more}\n", paint.red("critical and failed:"), paths.join(", "))
}

/// Formats a finding's part of the trial's score, such as `38 of 50`. `None` if it has no part in it.
pub(super) fn share(finding: &Finding) -> Option<String> {
    if finding.weight == 0.0 {
        return None;
    }
    Some(format!("{} of {}", points(finding.weight * finding.score?), points(finding.weight)))
}

/// Line for a part of a finding.
struct Line {
    mark: String,
    name: String,
    /// Width of the text to the left of the points, in characters.
    width: usize,
    points: String,
    note: String,
}

/// Formats the parts of a finding's score; for parts with a full score, their own parts are omitted. Empty if it has
/// none.
pub(super) fn tree(finding: &Finding, paint: &Paint) -> String {
    let mut lines = Vec::new();
    let parent = finding.key.as_deref().unwrap_or_default();
    grow(
        &finding.details,
        finding.weight,
        ParentLine { path: parent, title: finding.title.as_deref() },
        0,
        paint,
        &mut lines,
    );
    let hidden = lines.len().saturating_sub(PARTS);
    lines.truncate(PARTS);
    let width = lines.iter().map(|line| line.width).max().unwrap_or(0);
    let points = lines.iter().map(|line| line.points.len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in lines {
        let gap = " ".repeat(width - line.width);
        let earned = if line.note.is_empty() { line.points } else { format!("{:<points$}  ", line.points) };
        let shown = format!("{} {}{gap}  {}{}", line.mark, line.name, paint.dim(&earned), line.note);
        text.push_str(shown.trim_end());
        text.push('\n');
    }
    if hidden > 0 {
        text.push_str(&format!("{}\n", paint.dim(&format!("and {hidden} more parts; the record has all"))));
    }
    text
}

/// The line above a part.
#[derive(Clone, Copy)]
struct ParentLine<'a> {
    path: &'a str,
    title: Option<&'a str>,
}

fn grow(details: &[Detail], weight: f64, parent: ParentLine<'_>, depth: usize, paint: &Paint, lines: &mut Vec<Line>) {
    for detail in details {
        let weight = weight * detail.weight;
        lines.push(line(detail, weight, parent, depth, paint));
        let is_whole = detail.weight >= 0.0 && detail.score >= 1.0;
        if !is_whole && depth + 1 < DEEP {
            let here = ParentLine { path: &detail.key, title: detail.title.as_deref() };
            grow(&detail.details, weight, here, depth + 1, paint, lines);
        }
    }
}

fn line(detail: &Detail, weight: f64, parent: ParentLine<'_>, depth: usize, paint: &Paint) -> Line {
    let earned = points(weight * detail.score);
    let (outcome, points) = if weight < 0.0 {
        let outcome = if detail.score > 0.0 { Outcome::Failed } else { Outcome::Passed };
        (outcome, format!("{earned} (penalty)"))
    } else {
        // A part that reaches its threshold holds, even with less than the full score.
        let outcome = match detail.status {
            Status::Met => Outcome::Passed,
            Status::Unmet => Outcome::Failed,
            Status::Undecided => Outcome::Undecided,
        };
        // Parts of a finding without weight have no points.
        let points = if weight > 0.0 { format!("{earned} of {}", points(weight)) } else { String::new() };
        (outcome, points)
    };
    // A title that a part inherits does not describe it.
    let name = match detail.title.as_deref().filter(|title| parent.title != Some(*title)) {
        Some(title) => paint.folded(title, NAME),
        None => paint.one_line(below(&detail.key, parent.path), NAME),
    };
    let margin = "  ".repeat(depth);
    let mut notes = Vec::new();
    notes.extend(detail.dimension.as_ref().map(|dimension| paint.cyan(&paint.folded(dimension, NAME))));
    let critical = |word| if outcome == Outcome::Failed { paint.red(word) } else { paint.dim(word) };
    notes.extend(detail.critical.then(|| critical("critical")));
    Line {
        mark: format!("{margin}{}", paint.as_outcome(outcome, paint.mark(outcome))),
        width: margin.len() + columns::width(&name),
        name,
        points,
        note: paint.join(&notes),
    }
}

/// Returns the part of a path that the line above does not already contain.
fn below<'a>(path: &'a str, parent: &str) -> &'a str {
    let rest = path.strip_prefix(parent).filter(|_| !parent.is_empty());
    let rest = rest.filter(|rest| rest.starts_with(['.', '[', '$']));
    rest.map_or(path, |rest| rest.strip_prefix('.').unwrap_or(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_omits_the_part_shown_above_it() {
        assert_eq!(below("user.name", "user"), "name");
        assert_eq!(below("items[0]", "items"), "[0]");
        assert_eq!(below("username", "user"), "username");
        assert_eq!(below("name", ""), "name");
        assert_eq!(below("user", "user"), "user");
        assert_eq!(below("name$and[1]", "name"), "$and[1]");
    }
}
