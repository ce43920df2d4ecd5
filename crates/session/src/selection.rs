//! Selection of the cases of a run: by name, by tag, or because they failed in an earlier run.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Arc;

use model::{Answer, Diagnostic, Event, Outcome, TrialId};
use report::counted;
use runner::Plan;
use store::{Store, TrialFilter};

use crate::error::Error;
use crate::named_run::named_run;
use crate::overrides::Overrides;
use crate::path::{normalize, shown};

/// Separator between a suite or a file and one of its cases.
const OF_CASE: &str = "::";

/// Targets of the command line: what to load, and which cases of it to run.
pub(crate) struct NamedCases {
    /// Files, directories and skills to load.
    pub(crate) targets: Vec<String>,
    /// Names of the cases to run.
    pub(crate) cases: Vec<String>,
}

impl NamedCases {
    /// Separates targets such as `suite::case` and `tests/a.yaml::case` from files, directories and skills.
    pub(crate) fn of(args: &Overrides, directory: &Path) -> Result<Self, Error> {
        let named = args.named();
        let exists = |place: &str| directory.join(place).exists();
        let is_case = |target: &&String| target.contains(OF_CASE) && !exists(target);
        let (of_cases, whole): (Vec<&String>, Vec<&String>) = named.iter().partition(is_case);
        if let (Some(case), Some(other)) = (of_cases.first(), whole.first()) {
            return Err(Error::usage(format!("`{case}` names a case, and `{other}` does not"))
                .hint("name only cases, or select cases with `--case ID`"));
        }
        let mut cases = args.selection.cases.clone();
        let mut targets: Vec<String> = whole.into_iter().cloned().collect();
        for target in of_cases {
            let Some((place, _)) = target.rsplit_once(OF_CASE).filter(|(place, _)| exists(place)) else {
                cases.push(target.clone());
                continue;
            };
            if !targets.iter().any(|known| known == place) {
                targets.push(place.to_owned());
            }
            cases.push(target.replacen(place, &shown(&normalize(&directory.join(place)), directory), 1));
        }
        Ok(Self { targets, cases })
    }
}

/// Returns the id in `suite::case` and in `case`.
fn case_of(wanted: &str) -> &str {
    wanted.rsplit_once(OF_CASE).map_or(wanted, |(_, case)| case)
}

/// Returns `suite::case` of every case with a trial in that run that did not pass or did not finish. Baseline trials
/// need not pass.
pub(crate) fn failed_cases(store: &dyn Store, run: &str, notes: &mut Vec<String>) -> Result<HashSet<String>, Error> {
    let (run, note) = named_run(store, run)?;
    notes.extend(note);
    let rows = store.trials(&TrialFilter::of_run(&run.id))?;
    let outcomes: HashMap<&str, Outcome> = rows.iter().map(|row| (row.id.as_str(), row.outcome)).collect();
    let is_done = |trial: &TrialId| match outcomes.get(&*trial.to_string()) {
        Some(Outcome::Passed | Outcome::Skipped) => true,
        Some(Outcome::Failed | Outcome::Undecided) => trial.is_baseline(),
        Some(Outcome::Broken | Outcome::Stale | Outcome::Cancelled) | None => false,
    };
    let info = store.info(&run.id)?;
    // If a pass rate decides about a case, the outcomes of its single trials do not.
    let mut rates: HashMap<[Arc<str>; 3], Answer> = HashMap::new();
    if info.decisions > 0 {
        store.replay(&run.id, &mut |envelope| {
            if let Event::Decided(decision) = &envelope.event
                && let (Some(suite), Some(case), true) = (&decision.suite, &decision.case, decision.is_contract())
            {
                rates.insert([suite, case, &decision.arm].map(Arc::clone), decision.answer);
            }
        })?;
    }
    // Trials of a complete run that did not start were not needed to decide.
    let is_spared =
        |trial: &TrialId| info.decisions > 0 && !run.is_interrupted() && !outcomes.contains_key(&*trial.to_string());
    let is_open = |trial: &&TrialId| match rates.get(&[&trial.suite, &trial.case, &trial.arm].map(Arc::clone)) {
        Some(answer) => *answer != Answer::Met,
        None => !is_done(trial) && !is_spared(trial),
    };
    let open = info.trials.iter().filter(is_open);
    Ok(open.map(|trial| format!("{}::{}", trial.suite, trial.case)).collect())
}

/// Returns the diagnostics about requested ids that do not exist, if others do: part of the request would not run. If
/// none of them exists, the selection is empty.
pub(crate) fn unknown_cases(wanted: &[String], suites: &[model::Suite]) -> Vec<Diagnostic> {
    let is_there =
        |wanted: &str| suites.iter().any(|suite| suite.cases.iter().any(|case| runner::is_named(wanted, suite, case)));
    let (known, unknown): (Vec<&String>, Vec<&String>) = wanted.iter().partition(|wanted| is_there(wanted));
    if known.is_empty() {
        return Vec::new();
    }
    let problem = |wanted: &String| {
        let problem = Diagnostic::error(format!("unknown case `{wanted}`"));
        problem.suggest(nearest_case(wanted, suites).as_deref()).help(listed_ids(&known_ids(suites)))
    };
    unknown.into_iter().map(problem).collect()
}

/// Returns the name of the case that `wanted` probably means: `suite::case` if `wanted` has that form, otherwise its
/// id. Reports add the arm and the repetition to a name, as in `suite::case@codex#2`.
pub(crate) fn nearest_case(wanted: &str, suites: &[model::Suite]) -> Option<String> {
    let named = |suite: &model::Suite, id: &str| format!("{}{OF_CASE}{id}", suite.name);
    let cases = || suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case.id.as_str())));
    let names: Vec<String> = cases().map(|(suite, id)| named(suite, id)).collect();
    let is_trial = |name: &&String| wanted.strip_prefix(name.as_str()).is_some_and(|rest| rest.starts_with(['@', '#']));
    if let Some(name) = names.iter().filter(is_trial).max_by_key(|name| name.len()) {
        return Some(name.clone());
    }
    let is_full = wanted.contains(OF_CASE);
    if let Some(name) = model::nearest(wanted, names.iter().map(String::as_str)).filter(|_| is_full) {
        return Some(name.to_owned());
    }
    let id = model::nearest(case_of(wanted), cases().map(|(_, id)| id))?;
    let mut of_id = cases().filter(|(_, other)| *other == id).map(|(suite, id)| named(suite, id));
    if is_full { of_id.next() } else { Some(id.to_owned()) }
}

/// Returns warnings about selected tags that no case has.
pub(crate) fn unknown_tags(wanted: &[String], tags: &BTreeSet<&str>) -> Vec<Diagnostic> {
    let (known, unknown): (Vec<&String>, Vec<&String>) = wanted.iter().partition(|tag| tags.contains(tag.as_str()));
    if known.is_empty() {
        return Vec::new();
    }
    let problem = |wanted: &String| {
        let problem = Diagnostic::error(format!("no case has the tag `{wanted}`"));
        problem
            .suggest(model::nearest(wanted, tags.iter().copied()))
            .help("`trialrun list` shows all cases with their tags")
    };
    unknown.into_iter().map(problem).collect()
}

/// Returns the ids of all cases, sorted.
pub(crate) fn known_ids(suites: &[model::Suite]) -> Vec<String> {
    let ids: BTreeSet<&str> = suites.iter().flat_map(|suite| suite.cases.iter().map(|case| case.id.as_str())).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Returns the error for an empty selection.
pub(crate) fn nothing_selected(
    overrides: &Overrides,
    plan: &Plan,
    nearest: Option<&str>,
    case_ids: &[String],
) -> Error {
    if plan.cases_loaded == 0 {
        return Error::nothing("no case was found")
            .hint("`trialrun list` shows all cases; `trialrun init` creates a first test");
    }
    let by = &overrides.selection;
    if let (Some(run), true) = (by.failures_of(), plan.cases_matched > 0) {
        return Error::nothing(none_failed(run));
    }
    let names_cases = !by.cases.is_empty() || overrides.named().iter().any(|name| name.contains(OF_CASE));
    let several = by.tags.iter().find(|tag| tag.contains(','));
    let each = |tags: &String| tags.split(',').map(|tag| format!("--tag {}", tag.trim())).collect::<Vec<_>>().join(" ");
    Error::nothing(format!("none of {} was selected", counted(plan.cases_loaded, "case")))
        .maybe_hint(several.map(|tags| format!("give each tag on its own: `{}`", each(tags))))
        .maybe_hint(nearest.map(|near| format!("did you mean `{near}`?")))
        .maybe_hint(names_cases.then(|| listed_ids(case_ids)))
        .hint("`trialrun list` shows all cases with their tags")
}

/// Returns the message for a selection without any failures in `run`.
pub fn none_failed(run: &str) -> String {
    format!("no trial of a selected case failed, broke or stayed undecided in the run `{run}`")
}

/// Formats the available ids in one line.
fn listed_ids(ids: &[String]) -> String {
    let more = match ids.len().saturating_sub(MAX_IDS) {
        0 => String::new(),
        more => format!(" and {more} more, which `trialrun list` shows"),
    };
    let listed: Vec<&str> = ids.iter().take(MAX_IDS).map(String::as_str).collect();
    format!("available ids: {}{more}", listed.join(", "))
}

/// Maximum number of ids in a message.
const MAX_IDS: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn named(targets: &[&str]) -> Result<(Vec<String>, Vec<String>), Error> {
        let targets = targets.iter().map(|target| (*target).to_owned()).collect();
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        let named = NamedCases::of(&Overrides { targets, ..Overrides::default() }, here);
        named.map(|NamedCases { targets, cases }| (targets, cases))
    }

    #[test]
    fn a_target_can_name_a_case_of_a_suite_or_of_a_file() {
        let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(named(&["greet::first"]).unwrap(), (texts(&[]), texts(&["greet::first"])));
        assert_eq!(
            named(&["./src/lib.rs::a", "./src/lib.rs::b"]).unwrap(),
            (texts(&["./src/lib.rs"]), texts(&["src/lib.rs::a", "src/lib.rs::b"]))
        );
        let (_, cases) = named(&["src/../src/lib.rs::a", concat!(env!("CARGO_MANIFEST_DIR"), "/src::b")]).unwrap();
        assert_eq!(cases, ["src/lib.rs::a", "src::b"]);
        assert_eq!(named(&["src", "tests"]).unwrap(), (texts(&["src", "tests"]), texts(&[])));
        assert!(named(&["src", "greet::first"]).is_err(), "it is unclear which cases of `src` to run");
    }
}
