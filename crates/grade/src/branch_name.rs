//! Name of the branch that an assertion is about.

use crate::glob;
use crate::pattern::{Pattern, RegexBudget};
use crate::reading::Reading;
use expect::SourceLocation;
use model::{Diagnostic, is_branch_name};

/// Starts of refs that people write in place of the branch. Nobody calls a branch of their own so.
const REFS: [&str; 5] = ["refs/heads/", "heads/", "refs/remotes/origin/", "remotes/origin/", "origin/"];

/// Branch name with wildcards, or a regular expression.
#[derive(Debug, Clone)]
pub(crate) enum BranchName {
    /// Name as written, and where it is written.
    Name(String, Option<SourceLocation>),
    /// Some part of the name matches.
    Pattern(Pattern),
}

impl BranchName {
    /// Reads `name` or `pattern`. Returns `None` if neither is given. Errors are already reported.
    pub fn read(reading: &mut Reading<'_>) -> Result<Option<Self>, ()> {
        match (reading.fields.get("name"), reading.fields.get("pattern")) {
            (None, None) => Ok(None),
            (Some(_), None) => Self::read_name(reading, "name").map(Some).ok_or(()),
            (None, Some(_)) => Self::read_pattern(reading).map(Some).ok_or(()),
            (Some(_), Some(node)) => {
                reading.problems.push(node.error("`name` and `pattern` cannot be combined; use one of them"));
                Err(())
            }
        }
    }

    /// Reads the name under `key`, which may have wildcards. One that git refuses is reported: what forbids such a branch
    /// could never fail.
    pub fn read_name(reading: &mut Reading<'_>, key: &'static str) -> Option<Self> {
        let (name, place) = reading.required_name(key)?;
        let is_class = name.contains('[') && name.contains(']');
        if let Some(bare) = REFS.iter().find_map(|start| name.strip_prefix(start)) {
            let problem = Diagnostic::error(format!("`{name}` is the name of a ref, not of a branch"));
            reading.problems.push(problem.at(place.excerpt()).suggest(Some(bare)));
            return None;
        }
        if name.starts_with("refs/") {
            let problem = Diagnostic::error(format!("`{name}` is the name of a ref, not of a branch"));
            reading.problems.push(problem.at(place.excerpt()));
            return None;
        }
        if glob::has_alternatives(&name) || name.contains('|') {
            let problem = Diagnostic::warning(format!("`{name}` is compared with whole names, without alternatives"));
            reading.problems.push(problem.at(place.excerpt()).help("write an assertion for each"));
        } else if name
            .strip_prefix('$')
            .is_some_and(|rest| rest.starts_with(|c: char| c == '{' || c.is_ascii_uppercase()))
        {
            let problem = Diagnostic::warning(format!("`{name}` is compared as it is written, without variables"));
            reading.problems.push(problem.at(place.excerpt()));
        }
        if !is_class && !is_branch_name(&name.replace(['*', '?'], "x")) {
            let problem =
                Diagnostic::error(format!("`{name}` is not a valid name of a git branch")).at(place.excerpt());
            reading.problems.push(match key {
                "name" => problem.help("a regular expression is written `pattern: …`"),
                _ => problem,
            });
            return None;
        }
        Some(Self::Name(name, Some(place)))
    }

    /// Reads `pattern`. One for a ref is reported: names of branches do not begin like that.
    fn read_pattern(reading: &mut Reading<'_>) -> Option<Self> {
        let pattern = reading.literal("pattern")?;
        let source = pattern.regex.source();
        let plain = source.trim_start_matches('^').replace("\\/", "/");
        if let Some(bare) = REFS.iter().find_map(|start| plain.strip_prefix(start)) {
            let message = format!("{pattern} is for the name of a ref, and is compared with that of a branch");
            let anchor = if source.starts_with('^') { "^" } else { "" };
            let problem = Diagnostic::warning(message).at(pattern.place.excerpt());
            reading.problems.push(problem.help(format!("write `{anchor}{bare}`")));
        }
        Some(Self::Pattern(pattern))
    }

    /// Returns `true` if it matches `branch`. The error says why the match cannot be decided.
    pub fn is(&self, branch: &str) -> Result<bool, String> {
        match self {
            Self::Name(name, _) => Ok(glob::matches(name, branch)),
            Self::Pattern(pattern) => pattern.test(branch, &RegexBudget::new()),
        }
    }

    /// Returns where it is written.
    pub fn place(&self) -> Option<&SourceLocation> {
        match self {
            Self::Name(_, place) => place.as_ref(),
            Self::Pattern(pattern) => Some(&pattern.place),
        }
    }
}

impl std::fmt::Display for BranchName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Name(name, _) => write!(f, "`{name}`"),
            Self::Pattern(pattern) => write!(f, "a match for {pattern}"),
        }
    }
}

/// Returns the `branches` that match. The error says why a match cannot be decided.
pub(crate) fn wanted<'b>(name: Option<&BranchName>, branches: Vec<&'b str>) -> Result<Vec<&'b str>, String> {
    let Some(name) = name else { return Ok(branches) };
    let mut found = Vec::new();
    for branch in branches {
        if name.is(branch)? {
            found.push(branch);
        }
    }
    Ok(found)
}

/// Returns `branch` or `branch NAME`, for messages.
pub(crate) fn branch_told(name: Option<&BranchName>) -> String {
    name.map_or_else(|| "branch".to_owned(), |name| format!("branch {name}"))
}
