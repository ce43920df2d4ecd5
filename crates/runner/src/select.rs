//! Selection of the cases to run.

use std::collections::HashSet;
use std::path::Path;

use model::{Case, Diagnostic, Suite};
use script::Regex;

/// The user's criteria; without any, everything is selected.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// Names of cases as for [`is_named`]; any of them.
    pub cases: Vec<String>,
    /// Regular expression for case ids.
    pub filter: Option<String>,
    /// Text in a case's name `suite::case` or its description, in the name of its file, or in one of its tags. Text
    /// with a `/` is searched for in the path of the file.
    pub test: Option<String>,
    /// Tags; any of them.
    pub tags: Vec<String>,
    /// `suite::case` of the only cases to run, such as the failures of an earlier run.
    pub only: Option<HashSet<String>>,
    /// Every n-th case starting with the k-th: (k, n), k from 1.
    pub shard: Option<(u64, u64)>,
}

/// A selection whose pattern is compiled.
pub(crate) struct Selector<'a> {
    selection: &'a Selection,
    filter: Option<Regex>,
}

impl<'a> Selector<'a> {
    /// Compiles `selection`; reports an invalid pattern.
    pub(crate) fn compile(selection: &'a Selection, problems: &mut Vec<Diagnostic>) -> Self {
        let filter = selection.filter.as_deref().and_then(|pattern| match Regex::parse(pattern) {
            Ok(regex) => Some(regex),
            Err(error) => {
                problems.push(Diagnostic::error(format!("--filter: {error}")));
                None
            }
        });
        Self { selection, filter }
    }

    /// Returns `true` if `case` matches all criteria, apart from `only` and the shard.
    pub(crate) fn matches(&self, suite: &Suite, case: &Case, problems: &mut Vec<Diagnostic>) -> bool {
        let Selection { cases, test, tags, .. } = self.selection;
        let filtered = self.filter.as_ref().is_none_or(|filter| {
            filter.is_match(&case.id).unwrap_or_else(|error| {
                problems.push(Diagnostic::error(format!("--filter: {error}")));
                false
            })
        });
        let tested = test.as_ref().is_none_or(|test| {
            let test = test.to_lowercase();
            let path = if suite.path.is_dir() { Path::new(&*case.source.file) } else { suite.path.as_path() };
            let file =
                if test.contains('/') { Some(Path::new(&*case.source.file).as_os_str()) } else { path.file_name() };
            format!("{}::{}", suite.name, case.id).to_lowercase().contains(&test)
                || case.description.as_ref().is_some_and(|text| text.to_lowercase().contains(&test))
                || case.tags.iter().any(|tag| tag.to_lowercase().contains(&test))
                || file.is_some_and(|file| file.to_string_lossy().to_lowercase().contains(&test))
        });
        filtered
            && tested
            && (cases.is_empty() || cases.iter().any(|wanted| is_named(wanted, suite, case)))
            && (tags.is_empty() || case.tags.iter().any(|tag| tags.contains(tag)))
    }

    /// Returns `true` if `case` is one of the only cases to run.
    pub(crate) fn is_listed(&self, suite: &Suite, case: &Case) -> bool {
        let only = self.selection.only.as_ref();
        only.is_none_or(|only| only.contains(&format!("{}::{}", suite.name, case.id)))
    }

    /// Returns `true` if the selected case number `ordinal`, from 0, belongs to this shard.
    pub(crate) fn in_shard(&self, ordinal: usize) -> bool {
        self.selection.shard.is_none_or(|(k, n)| ordinal as u64 % n == k - 1)
    }
}

/// Returns the cases of all shards that `selection` selects. Problems with its pattern are left to planning.
pub fn cases_of_all_shards<'a>(suites: &'a [Suite], selection: &Selection) -> Vec<(&'a Suite, &'a Case)> {
    let mut problems = Vec::new();
    let selector = Selector::compile(selection, &mut problems);
    let all = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, &**case)));
    all.filter(|(suite, case)| selector.matches(suite, case, &mut problems) && selector.is_listed(suite, case))
        .collect()
}

/// Returns `true` if `wanted` names the case: `case`, `suite::case` or `file::case`, where the file is its path, its
/// name or a folder that contains it.
pub fn is_named(wanted: &str, suite: &Suite, case: &Case) -> bool {
    if wanted == case.id {
        return true;
    }
    let owner = wanted.strip_suffix(&case.id).or_else(|| wanted.strip_suffix('*'));
    let owner = owner.and_then(|before| before.strip_suffix("::"));
    owner.filter(|owner| !owner.is_empty()).is_some_and(|owner| {
        let file = Path::new(&*case.source.file);
        owner == suite.name || file.starts_with(owner) || file.file_name().is_some_and(|name| name == owner)
    })
}

#[cfg(test)]
mod tests {
    use model::Excerpt;

    use super::*;

    #[test]
    fn a_case_is_selected_by_its_id_with_its_suite_or_with_its_file() {
        let case = std::sync::Arc::new(Case::new("first", Excerpt::of_file("tests/greet.yaml")));
        let suite = Suite {
            name: "greet".into(),
            path: "tests/greet.yaml".into(),
            format: "scenario",
            cases: vec![case.clone()],
        };
        for (wanted, is_selected) in [
            ("first", true),
            ("greet::first", true),
            ("tests/greet.yaml::first", true),
            ("greet.yaml::first", true),
            ("greet::*", true),
            ("great::*", false),
            ("tests::first", true),
            ("::first", false),
            ("test::first", false),
            ("greet::second", false),
            ("tests/other.yaml::first", false),
        ] {
            let selection = Selection { cases: vec![wanted.to_owned()], ..Selection::default() };
            let selector = Selector::compile(&selection, &mut Vec::new());
            assert_eq!(selector.matches(&suite, &case, &mut Vec::new()), is_selected, "{wanted}");
        }
    }
}
