//! Reports about files that no format recognises.

use std::collections::BTreeSet;

use model::{Diagnostic, Excerpt};

use crate::format::{FORMATS, NAMED};

/// Reports a file that no format recognises. If a key resembles one of a format, only that one is suggested. Otherwise
/// the formats of trialrun are described, and those of other tools are named.
pub(crate) fn unrecognised(place: Excerpt, near: Option<(&str, &str)>) -> Diagnostic {
    let problem = Diagnostic::error("this is not a test in a known format").at(place);
    if let Some((near, key)) = near {
        return problem.help(format!("did you mean `{key}` instead of `{near}`?"));
    }
    // The most common formats are the last ones that are tried.
    let by_content = FORMATS.iter().rev().map(|format| (format.name, format.mark, format.tool));
    let formats = || by_content.clone().chain(NAMED.iter().map(|format| (format.name, format.mark, format.tool)));
    let own = formats().filter(|(.., tool)| tool.is_none()).map(|(name, mark, _)| format!("{name}: {mark}"));
    let tools: BTreeSet<&str> = formats().filter_map(|(.., tool)| tool).collect();
    let tools: Vec<&str> = tools.into_iter().collect();
    own.fold(problem, Diagnostic::help).help(format!("or a file of {}", tools.join(", ")))
}

/// Returns the first of the reports about files in a folder of tests that has no test, with the number of the others.
pub(crate) fn instead_of_tests(mut reports: Vec<Diagnostic>) -> Option<Diagnostic> {
    let others = reports.len().checked_sub(1)?;
    let first = reports.swap_remove(0);
    Some(match others {
        0 => first,
        1 => first.help("another file there is not a test either"),
        _ => first.help(format!("{others} other files there are not tests either")),
    })
}
