//! Loading and planning: everything that happens before a run starts.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mask::Mask;
use model::{Answer, CassetteMode, Diagnostic, Event, Outcome, TrialId};
use report::counted;
use runner::{Plan, PlanRequest, ReadScript, Regrade, RegradeRequest, Selection};
use store::{Store, TrialFilter};
use suite::Loaded;

use crate::error::Error;
use crate::masking::without_secrets;
use crate::named_run::named_run;
use crate::overrides::Overrides;
use crate::sandbox_choice::AUTO_SANDBOX;
use crate::session::{Session, normalize, shown};
use crate::settings::RunSpec;

/// Result of loading and planning.
pub struct Planned {
    /// What the run does.
    pub spec: RunSpec,
    /// The plan of the run.
    pub plan: Plan,
    /// All problems found while loading and planning.
    pub diagnostics: Vec<Diagnostic>,
    /// Notes about how the run differs from what the settings say literally. These are not problems.
    pub notes: Vec<String>,
    /// Notes about questions that the design of a skill evaluation leaves open. These are not problems.
    pub design: Vec<Diagnostic>,
    /// The existing case whose id is nearest to a requested id that does not exist.
    pub nearest: Option<String>,
    /// Ids of all cases.
    pub case_ids: Vec<String>,
    /// Number of the part of the run that these trials are, from 1, and number of all parts; `None` for the whole run.
    pub shard: Option<(u64, u64)>,
}

impl Overrides {
    /// Returns the files, directories and skills that the run is about; a session is opened for these. `directory` is
    /// that of the session.
    ///
    /// # Errors
    /// Returns an error if some targets name cases and others do not.
    pub fn places(&self, directory: &Path) -> Result<Vec<String>, Error> {
        let NamedCases { targets, .. } = NamedCases::of(self, directory)?;
        // A skill that is named on its own belongs to a project, just like a suite.
        Ok(targets.into_iter().chain(self.selection.skill.clone()).collect())
    }
}

impl Session {
    /// Loads and plans the cases.
    ///
    /// # Errors
    /// Returns an error if the settings do not go together, or if the record cannot be read.
    pub fn plan(&self, spec: &RunSpec) -> Result<Planned, Error> {
        let NamedCases { targets, .. } = NamedCases::of(spec.overrides(), &self.cwd)?;
        let loaded = self.load(targets, spec.overrides().selection.skill.clone());
        self.plan_loaded(spec, loaded)
    }

    /// Plans cases that are already loaded.
    ///
    /// # Errors
    /// See [`Self::plan`].
    pub fn plan_loaded(&self, spec: &RunSpec, loaded: Loaded) -> Result<Planned, Error> {
        let overrides = spec.overrides();
        let NamedCases { cases, .. } = NamedCases::of(overrides, &self.cwd)?;
        let mut notes = spec.notes().to_vec();
        let settings = self.settings_for(spec, &loaded)?;
        let Loaded { suites, diagnostics, modules } = loaded;
        let chosen = &overrides.selection;
        let only = match (&chosen.only, chosen.failures_of()) {
            (None, Some(run)) => Some(failed_cases(&*self.read_store()?, run, &mut notes)?),
            (only, _) => only.clone(),
        };
        let selection = Selection {
            cases: cases.clone(),
            filter: chosen.filter.clone(),
            test: chosen.test.clone(),
            tags: chosen.tags.clone(),
            only,
            shard: chosen.shard,
        };
        let (plan, planning) = runner::plan(&self.request(&suites, &settings, &selection, modules));
        let tags =
            || suites.iter().flat_map(|suite| &suite.cases).flat_map(|case| case.tags.iter().map(String::as_str));
        let nearest_tag = || chosen.tags.iter().find_map(|wanted| model::nearest(wanted, tags())).map(str::to_owned);
        let nearest = cases.iter().find_map(|wanted| nearest_case(wanted, &suites)).or_else(nearest_tag);
        let case_ids = known_ids(&suites);
        let design =
            suites.iter().flat_map(|suite| suite::design_warnings(suite, &|case, spec| is_judged(&plan, case, spec)));
        let design = design.collect();
        let mut all = self.problems(spec, diagnostics);
        all.extend(unknown_cases(&cases, &suites));
        all.extend(unknown_tags(&chosen.tags, &tags().collect()));
        all.extend(skipped_in_ci(self, &plan));
        let missing = missing_variables(self, &plan);
        // Other problems with a value that is not filled in only follow from that.
        let is_known = |problem: &Diagnostic| missing.iter().any(|one| is_same_place(one, problem));
        all.extend(planning.into_iter().filter(|problem| !is_known(problem)));
        all.extend(missing);
        self.mask_all(&settings, &mut all);
        let shard = chosen.shard;
        Ok(Planned { spec: spec.clone(), plan, diagnostics: all, notes, design, nearest, case_ids, shard })
    }

    /// Plans to grade recorded trials again, with the current version of their cases. Returns the problems, too.
    ///
    /// # Errors
    /// See [`Self::plan`].
    pub fn plan_regrade(
        &self,
        spec: &RunSpec,
        records: Vec<model::TrialRecord>,
    ) -> Result<(Regrade, Vec<Diagnostic>), Error> {
        let NamedCases { targets, cases } = NamedCases::of(spec.overrides(), &self.cwd)?;
        let loaded = self.load(targets, spec.overrides().selection.skill.clone());
        let settings = self.settings_for(spec, &loaded)?;
        let Loaded { suites, diagnostics, modules } = loaded;
        let selection = Selection { cases, tags: spec.overrides().selection.tags.clone(), ..Selection::default() };
        let today = self.request(&suites, &settings, &selection, modules);
        let (regrade, planning) = runner::plan_regrade(RegradeRequest { today, records });
        let mut all = self.problems(spec, diagnostics);
        all.extend(planning);
        self.mask_all(&settings, &mut all);
        Ok((regrade, all))
    }

    /// Loads `targets`, or the whole project if empty; suites of skills are about `skill` if it is given.
    pub fn load(&self, targets: Vec<String>, skill: Option<String>) -> Loaded {
        suite::load(&suite::Request {
            root: self.project.root.clone(),
            skills_dir: self.project.skills_dir.clone(),
            tests: self.project.tests.clone(),
            cwd: self.cwd.clone(),
            targets,
            skill,
            fixtures: self.project.fixtures.clone(),
            environment: environment_of_scripts(self),
            now_ms: now_ms(),
        })
    }

    /// Returns the reader of scripted models.
    pub fn script_reader(&self) -> ReadScript {
        let cwd = self.cwd.clone();
        Arc::new(move |file: &Path| read_script(file, &cwd))
    }

    /// Reads the file of a scripted model with the parser for suites.
    ///
    /// # Errors
    /// Returns the problems in the file.
    pub fn read_script(&self, file: &Path) -> Result<llm::Script, Vec<Diagnostic>> {
        read_script(file, &self.cwd)
    }

    /// Returns the settings of the runner for `loaded`, in which private folders are hidden.
    fn settings_for(&self, spec: &RunSpec, loaded: &Loaded) -> Result<runner::Settings, Error> {
        check_sandbox(spec, self)?;
        let mut settings = self.settings(spec);
        if settings.cassettes.mode == CassetteMode::Record && self.is_ci() {
            return Err(Error::usage("cassettes are not recorded in CI (the variable `CI` is set)")
                .hint("record them on your machine and commit them; CI replays them with `--cassette replay`"));
        }
        let private = &mut settings.sandbox.isolation.private;
        private.extend(private_folders(&loaded.suites, &self.cwd));
        private.extend(settings.cassettes.directory.clone());
        Ok(settings)
    }

    fn request<'a>(
        &'a self,
        suites: &'a [model::Suite],
        settings: &'a runner::Settings,
        selection: &'a Selection,
        modules: script::Library,
    ) -> PlanRequest<'a> {
        PlanRequest { suites, settings, selection, cwd: &self.cwd, read_script: self.script_reader(), modules }
    }

    /// Returns the problems that are known before planning.
    fn problems(&self, spec: &RunSpec, loading: Vec<Diagnostic>) -> Vec<Diagnostic> {
        let reports = spec.overrides().output.report.reports.is_empty().then(|| unknown_reports(self));
        let known = self.diagnostics.iter().chain(spec.problems()).cloned();
        known.chain(loading).chain(reports.into_iter().flatten()).collect()
    }

    fn mask_all(&self, settings: &runner::Settings, problems: &mut [Diagnostic]) {
        let mask = Mask::of(self.environment()).with_secrets(&settings.secrets);
        problems.iter_mut().for_each(|problem| without_secrets(problem, &mask));
    }
}

/// Returns the folders of suites and skills, which contain the expected answers.
fn private_folders(suites: &[model::Suite], cwd: &Path) -> BTreeSet<PathBuf> {
    let of_suites = suites.iter().filter_map(|suite| suite.path.parent());
    let subjects = suites.iter().flat_map(|suite| &suite.cases).filter_map(|case| case.subject.skill());
    let of_skills = subjects.filter_map(|skill| skill.directory.as_deref());
    of_suites.chain(of_skills).map(|folder| cwd.join(folder)).collect()
}

/// Returns the variables that tests find in `process.env`: all except secrets.
fn environment_of_scripts(session: &Session) -> Vec<script::Variable> {
    let mask = Mask::of(session.environment());
    let given = |value: &String| Some(value.clone()).filter(|value| mask.text(value) == value.as_str());
    session.environment().iter().map(|(name, value)| (name.clone(), given(value))).collect()
}

/// Separator between a suite or a file and one of its cases.
const OF_CASE: &str = "::";

/// Targets of the command line: what to load, and which cases of it to run.
struct NamedCases {
    targets: Vec<String>,
    cases: Vec<String>,
}

impl NamedCases {
    /// Separates targets such as `suite::case` and `tests/a.yaml::case` from files, directories and skills.
    fn of(args: &Overrides, directory: &Path) -> Result<Self, Error> {
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

/// Checks that the chosen kind of sandbox exists.
fn check_sandbox(spec: &RunSpec, session: &Session) -> Result<(), Error> {
    let chosen = spec.sandbox();
    if sandbox::find(chosen).is_some() {
        return Ok(());
    }
    let names: Vec<&str> = sandbox::SANDBOXES.iter().map(|kind| kind.name()).chain([AUTO_SANDBOX]).collect();
    let written = session.project.defaults.sandbox.as_ref().filter(|set| set.value == chosen);
    let place = written.map(|set| format!("it is set in {}", set.source));
    Err(Error::usage(format!("unknown sandbox `{chosen}`"))
        .maybe_hint(place)
        .maybe_hint(model::nearest(chosen, names.iter().copied()).map(|near| format!("did you mean `{near}`?")))
        .hint(format!("sandboxes: {}", names.join(", "))))
}

/// Returns an error for each file in which `only: true` skips cases, if this is a CI job: it is meant for work on one
/// case, and forgetting it would leave the others untested.
fn skipped_in_ci(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let skipped = plan.trials.iter().map(|trial| &trial.case).filter(|case| suite::is_skipped_by_only(case));
    for case in skipped.filter(|_| session.is_ci()) {
        files.entry(&*case.source.file).or_default().insert(&*case.id);
    }
    let error = |(file, cases): (&str, BTreeSet<&str>)| {
        let message = format!("`only: true` skips {} of `{file}`", report::counted(cases.len(), "other case"));
        Diagnostic::error(message).help("remove `only: true`: in CI (the variable `CI` is set) every case must run")
    };
    files.into_iter().map(error).collect()
}

/// Returns the diagnostics about missing variables that the run needs.
fn missing_variables(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let runs = || plan.trials.iter().filter(|trial| trial.case.skip.is_none());
    let is_used = |name: &str| runs().any(|trial| trial.config.as_ref().is_some_and(|config| config.name == name));
    let project = &session.project;
    let mut missing: Vec<Diagnostic> = Vec::new();
    for agent in project.agents.iter().filter(|agent| !agent.missing.is_empty() && is_used(&agent.name)) {
        missing.extend(agent.missing.iter().cloned());
    }
    missing
}

/// Returns the diagnostics about unknown reports in the configuration. The run and its verdicts do not depend on them,
/// so only a misspelt name is an error.
fn unknown_reports(session: &Session) -> Vec<Diagnostic> {
    let names = || report::REPORTS.iter().map(|kind| kind.name);
    let wanted = session.project.reports.formats.iter().flatten();
    let unknown = wanted.filter(|format| report::find(&format.value).is_none());
    let problem = |format: &suite::Setting<String>| {
        let message = format!("unknown report `{}`", format.value);
        let near = report::nearest(&format.value);
        let problem = match near {
            Some(_) => Diagnostic::error(message),
            None => Diagnostic::warning(format!("{message}; it is not written")),
        };
        let problem = problem.at(format.source.clone()).suggest(near);
        problem.help(format!("reports: {}", names().collect::<Vec<_>>().join(", ")))
    };
    unknown.map(problem).collect()
}

/// Returns the diagnostics about requested ids that do not exist, if others do: part of the request would not run. If
/// none of them exists, the selection is empty.
fn unknown_cases(wanted: &[String], suites: &[model::Suite]) -> Vec<Diagnostic> {
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
fn nearest_case(wanted: &str, suites: &[model::Suite]) -> Option<String> {
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
fn unknown_tags(wanted: &[String], tags: &BTreeSet<&str>) -> Vec<Diagnostic> {
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
fn known_ids(suites: &[model::Suite]) -> Vec<String> {
    let ids: BTreeSet<&str> = suites.iter().flat_map(|suite| suite.cases.iter().map(|case| case.id.as_str())).collect();
    ids.into_iter().map(str::to_owned).collect()
}

/// Returns the error for an empty selection.
pub fn nothing_selected(planned: &Planned) -> Error {
    let (plan, overrides) = (&planned.plan, planned.spec.overrides());
    if plan.cases_loaded == 0 {
        return Error::nothing("no case was found")
            .hint("`trialrun list` shows all cases; `trialrun init` creates a first test");
    }
    let by = &overrides.selection;
    if let (Some(run), true) = (by.failures_of(), plan.cases_matched > 0) {
        return Error::nothing(none_failed(run));
    }
    let names_cases = !by.cases.is_empty() || overrides.named().iter().any(|name| name.contains(OF_CASE));
    Error::nothing(format!("none of {} was selected", counted(plan.cases_loaded, "case")))
        .maybe_hint(planned.nearest.as_ref().map(|near| format!("did you mean `{near}`?")))
        .maybe_hint(names_cases.then(|| listed_ids(&planned.case_ids)))
        .hint("`trialrun list` shows all cases with their tags")
}

/// Returns the message for a selection without any failures in `run`.
pub fn none_failed(run: &str) -> String {
    format!("every selected case passed in the run `{run}`")
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

/// Returns `true` if a model must judge the assertion. For a case that is not planned this is unknown, so the result
/// is `false`.
fn is_judged(plan: &Plan, case: &model::Case, spec: &model::AssertionSpec) -> bool {
    let of_case = plan.trials.iter().filter(|trial| trial.case.source == case.source && trial.case.id == case.id);
    let mut checks = of_case.flat_map(|trial| trial.checks.iter()).filter(|check| check.id() == spec.id);
    checks.next().is_some_and(grade::Check::asks_judge)
}

fn is_same_place(one: &Diagnostic, other: &Diagnostic) -> bool {
    let place = |problem: &Diagnostic| problem.source.as_ref().map(|at| (at.file.clone(), at.line, at.column));
    one.source.is_some() && place(one) == place(other)
}

/// Milliseconds since 1970.
fn now_ms() -> Option<i64> {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
    i64::try_from(since.as_millis()).ok()
}

/// Returns `suite::case` of every case with a trial in that run that did not pass or did not finish. Baseline trials
/// need not pass.
fn failed_cases(store: &dyn Store, run: &str, notes: &mut Vec<String>) -> Result<HashSet<String>, Error> {
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

fn read_script(file: &Path, cwd: &Path) -> Result<llm::Script, Vec<Diagnostic>> {
    let path = cwd.join(file);
    let node = suite::read_document(&path, &shown(&path, cwd))?;
    llm::Script::from_node(&node)
}

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
