//! Coverage: which facts of a profile have tests.

use serde::Serialize;

use crate::format::COVERS;
use crate::target::Target;

/// A fact and the tests that cover it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Covered {
    /// The fact.
    #[serde(flatten)]
    pub target: Target,
    /// Names of the tests, for example of their files.
    pub tests: Vec<String>,
}

/// An existing test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingTest {
    /// File name without its extension, or the id.
    pub name: String,
    /// Content.
    pub text: String,
}

/// Returns which of `targets` have tests. The `existing` tests name facts in comments; `new` tests list their ids.
pub(crate) fn coverage(targets: &[Target], existing: &[ExistingTest], new: &[(&str, &[String])]) -> Vec<Covered> {
    let covers = |target: &Target, text: &str| text.lines().any(|line| names(line, target));
    let covered = |target: &Target| {
        let old = existing.iter().filter(|test| covers(target, &test.text)).map(|test| test.name.clone());
        let new = new.iter().filter(|(_, covers)| covers.contains(&target.id)).map(|(name, _)| (*name).to_owned());
        Covered { target: target.clone(), tests: old.chain(new).collect() }
    };
    targets.iter().map(covered).collect()
}

/// Returns `true` if the line is a comment that names the fact. The location of the fact may have changed since.
fn names(line: &str, target: &Target) -> bool {
    let comment = line.trim_start().trim_start_matches(['/', '#']).trim_start();
    let Some(named) = comment.strip_prefix(COVERS) else { return false };
    named.strip_prefix(target.text.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with(" ("))
}
