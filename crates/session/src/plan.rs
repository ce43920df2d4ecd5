//! Loading and planning: everything that happens before a run starts.

mod idle_option;
mod sandbox_settings;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mask::Mask;
use model::{CassetteMode, Diagnostic, DiagnosticKind, Trials};
use runner::{Plan, PlanRequest, ReadScript, Regrade, RegradeRequest, Selection};
use script::RuntimeChoice;
use sha2::{Digest, Sha256};
use suite::{Coverage, Loaded, ProjectAgent};

use self::idle_option::idle_options;
use self::sandbox_settings::wrong_sandbox_settings;
use crate::error::Error;
use crate::invocation::hash_of;
use crate::javascript::runtime_for;
use crate::masking::without_secrets;
use crate::obstacles::{missing_programs, no_isolation, place_of_agent, sets_path, unset_variables};
use crate::overrides::Overrides;
use crate::path::shown;
use crate::sandbox_choice::AUTO_SANDBOX;
use crate::selection::{self, NamedCases, known_ids, nearest_case, unknown_cases, unknown_tags};
use crate::session::Session;
use crate::settings::{RunSpec, configured};

/// Result of loading and planning.
pub struct Planned {
    /// Specification of the run.
    pub spec: RunSpec,
    /// The plan of the run.
    pub plan: Plan,
    /// All problems found while loading and planning.
    pub diagnostics: Vec<Diagnostic>,
    /// Notes about questions that the design of a skill evaluation leaves open. These are not problems.
    pub design: Vec<Diagnostic>,
    /// The existing case whose id is nearest to a requested id that does not exist.
    pub nearest: Option<String>,
    /// Ids of all cases.
    pub case_ids: Vec<String>,
    /// Keys of the suites that were written for other tools.
    pub coverage: Vec<Coverage>,
    /// Number of the part of the run that these trials are, from 1, and number of all parts; `None` for the whole run.
    pub shard: Option<(u64, u64)>,
    /// For a part of the run, the hash of the cases of all parts and of their files.
    pub cases_hash: Option<String>,
}

/// Result of planning to grade recorded trials again.
pub struct PlannedRegrade {
    /// Specification of the run that grades them.
    pub spec: RunSpec,
    /// The recorded trials, and how they are graded.
    pub regrade: Regrade,
    /// All problems found while loading and planning.
    pub diagnostics: Vec<Diagnostic>,
}

impl Planned {
    /// Returns the first error among the problems; with one, nothing may run.
    pub fn first_error(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|problem| problem.is_error())
    }

    /// Returns the problems, also those of files without which a run continues.
    pub fn all_diagnostics(&self) -> Vec<Diagnostic> {
        let mut all = self.diagnostics.clone();
        for problem in self.plan.trials.iter().flat_map(|trial| &trial.case.broken) {
            if !all.contains(problem) {
                all.push(problem.clone());
            }
        }
        all
    }

    /// Returns the error for a plan without trials.
    pub fn nothing_selected(&self) -> Error {
        selection::nothing_selected(self.spec.overrides(), &self.plan, self.nearest.as_deref(), &self.case_ids)
    }
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
        self.check_choices(spec)?;
        let loaded = self.load_for(targets, spec.overrides());
        self.plan_loaded(spec, loaded)
    }

    /// Plans cases that are already loaded.
    ///
    /// # Errors
    /// See [`Self::plan`].
    pub fn plan_loaded(&self, spec: &RunSpec, loaded: Loaded) -> Result<Planned, Error> {
        let overrides = spec.overrides();
        let NamedCases { cases, .. } = NamedCases::of(overrides, &self.cwd)?;
        self.check_choices(spec)?;
        let settings = self.settings_for(spec, &loaded);
        let Loaded { suites, diagnostics, modules, coverage, agents } = loaded;
        let chosen = &overrides.selection;
        let selection = Selection {
            cases: cases.clone(),
            filter: chosen.filter.clone(),
            test: chosen.test.clone(),
            tags: chosen.tags.clone(),
            only: chosen.only.clone(),
            shard: spec.shard(),
        };
        let (plan, planning) = runner::plan(&self.request(&suites, &settings, &selection, modules));
        let tags =
            || suites.iter().flat_map(|suite| &suite.cases).flat_map(|case| case.tags.iter().map(String::as_str));
        let nearest_tag = || chosen.tags.iter().find_map(|wanted| model::nearest(wanted, tags())).map(str::to_owned);
        let nearest = cases.iter().find_map(|wanted| nearest_case(wanted, &suites)).or_else(nearest_tag);
        let case_ids = known_ids(&suites);
        let design =
            suites.iter().flat_map(|suite| suite::design_warnings(suite, &|case, spec| is_judged(&plan, case, spec)));
        let mut design: Vec<Diagnostic> = design.collect();
        let mut all = self.problems(spec, diagnostics);
        all.extend(unknown_cases(&cases, &suites));
        if matches!(settings.trials(Some(Trials::Fixed(1))), Trials::Auto { .. }) {
            all.retain(|problem| problem.kind != DiagnosticKind::UntestedRate);
        }
        all.extend(idle_options(spec, &plan));
        all.extend(missing_calibration(self, spec, &plan));
        all.extend(unknown_tags(&chosen.tags, &tags().collect()));
        all.extend(skipped_by_only(self, &plan));
        all.extend(wrong_sandbox_settings(self, &plan));
        let missing = missing_variables(self, &agents, &plan);
        // Other problems with a value that is not filled in only follow from that.
        let is_known = |problem: &Diagnostic| {
            let mut wrong = missing.iter().chain(self.diagnostics.iter().filter(|known| known.is_error()));
            wrong.any(|one| is_same_place(one, problem)) || all.iter().any(|cause| problem.follows_from(cause))
        };
        let planning: Vec<Diagnostic> = planning.into_iter().filter(|problem| !is_known(problem)).collect();
        all.extend(planning);
        all.extend(missing);
        // A mistake in the file may be the reason.
        design.retain(|note| !all.iter().any(|problem| problem.is_error() && is_same_file(problem, note)));
        all.extend(missing_programs(self, &plan));
        all.extend(no_isolation(self, &plan));
        let unset = unset_variables(self, &plan).into_iter();
        let unset: Vec<Diagnostic> = unset.filter(|one| !all.iter().any(|cause| one.follows_from(cause))).collect();
        all.extend(unset);
        explain_no_tests(&mut all);
        if all.iter().any(Diagnostic::is_error) {
            all.retain(|problem| problem.kind != DiagnosticKind::ScriptedCall);
        }
        if self.diagnostics.iter().any(Diagnostic::is_error) {
            // Other agents and settings may be meant than those that are read.
            all.retain(|problem| problem.is_error() || self.diagnostics.contains(problem));
        }
        if self.project.is_unread {
            // Without the configuration, almost anything may seem wrong.
            (all, design) = (self.diagnostics.clone(), Vec::new());
        }
        self.mask_all(&settings, &mut all);
        let (spec, shard) = (spec.clone(), spec.shard());
        let cases_hash = shard.map(|_| cases_hash(&suites, &selection, &self.cwd));
        Ok(Planned { spec, plan, diagnostics: all, design, nearest, case_ids, coverage, shard, cases_hash })
    }

    /// Plans to grade recorded trials again, with the current version of their cases. `planned` are all trials of their
    /// run, also those without a record.
    ///
    /// # Errors
    /// See [`Self::plan`].
    pub fn plan_regrade(
        &self,
        spec: RunSpec,
        records: Vec<model::TrialRecord>,
        planned: &[model::TrialId],
    ) -> Result<PlannedRegrade, Error> {
        let NamedCases { targets, cases } = NamedCases::of(spec.overrides(), &self.cwd)?;
        self.check_choices(&spec)?;
        let loaded = self.load_for(targets, spec.overrides());
        let settings = self.settings_for(&spec, &loaded);
        let Loaded { suites, diagnostics, modules, .. } = loaded;
        let selection = Selection { cases, tags: spec.overrides().selection.tags.clone(), ..Selection::default() };
        let today = self.request(&suites, &settings, &selection, modules);
        let (regrade, planning) = runner::plan_regrade(RegradeRequest { today, records, planned });
        let mut all = self.problems(&spec, diagnostics);
        all.extend(planning);
        self.mask_all(&settings, &mut all);
        Ok(PlannedRegrade { spec, regrade, diagnostics: all })
    }

    /// Loads `targets`, or the whole project if empty; suites of skills are about `skill` if it is given.
    pub fn load(&self, targets: Vec<String>, skill: Option<String>) -> Loaded {
        self.load_with(targets, skill, false)
    }

    /// Loads `targets` like [`load`](Self::load), for an agent that the user chooses later. Agents that suites configure
    /// are not used.
    pub fn load_for_chosen_agent(&self, targets: Vec<String>, skill: Option<String>) -> Loaded {
        self.load_with(targets, skill, true)
    }

    /// Loads `targets` for a run with these settings.
    fn load_for(&self, targets: Vec<String>, overrides: &Overrides) -> Loaded {
        self.load_with(targets, overrides.selection.skill.clone(), !overrides.arms.agent.is_empty())
    }

    fn load_with(&self, targets: Vec<String>, skill: Option<String>, agent_is_chosen: bool) -> Loaded {
        let chosen = self.project.code_runtime.as_ref();
        let choice = chosen.map(|setting| setting.value).unwrap_or_default();
        let mut loaded = suite::load(&suite::Request {
            root: self.project.root.clone(),
            skills_dir: self.project.skills_dir.clone(),
            tests: self.project.tests.clone(),
            cwd: self.cwd.clone(),
            targets,
            skill,
            fixtures: self.project.fixtures.clone(),
            environment: environment_of_scripts(self),
            runtime: Some(runtime_for(&self.host, &self.project.root, choice)),
            agent_is_chosen,
            now_ms: now_ms(),
        });
        let external = chosen.filter(|setting| matches!(setting.value, RuntimeChoice::External(_)));
        if let (Some(setting), Some(fault)) = (external, loaded.modules.runtime_fault()) {
            let help = "install a version that works, or write `auto`, the default, which needs none for most code";
            let problem = Diagnostic::error(fault).at(setting.source.clone()).help(help);
            loaded.diagnostics.push(problem);
        }
        loaded
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

    /// Checks the settings with which no case can run, so that nothing is loaded in vain.
    fn check_choices(&self, spec: &RunSpec) -> Result<(), Error> {
        check_sandbox(spec, self)?;
        check_source_repo(spec, self)?;
        check_calibration(spec, self)?;
        if spec.cassette() == CassetteMode::Record && self.is_ci() {
            return Err(Error::usage("cassettes are not recorded in CI (the variable `CI` is set)")
                .hint("record them on your machine and commit them; CI replays them with `--cassette replay`"));
        }
        Ok(())
    }

    /// Returns the settings of the runner for `loaded`, in which private folders are hidden.
    fn settings_for(&self, spec: &RunSpec, loaded: &Loaded) -> runner::Settings {
        let mut settings = self.settings(spec);
        let private = &mut settings.sandbox.isolation.private;
        private.extend(private_folders(&loaded.suites, &self.cwd));
        private.extend(settings.cassettes.directory.clone());
        let of_suites = loaded.agents.iter().map(|agent| configured(&agent.filled(self.environment()), true));
        settings.configured.extend(of_suites);
        settings
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

/// Returns a hash of the cases that `selection` selects in all shards, and of their files.
fn cases_hash(suites: &[model::Suite], selection: &Selection, directory: &Path) -> String {
    let (mut hash, mut files) = (Sha256::new(), HashSet::new());
    for (suite, case) in runner::cases_of_all_shards(suites, selection) {
        hash.update(format!("{}::{}\n", suite.name, case.id));
        if files.insert(&case.source.file) {
            // Cases in a folder have no file; their names are compared.
            hash.update(hash_of(&directory.join(&*case.source.file)).unwrap_or_default());
        }
    }
    model::text::hex(&hash.finalize())
}

/// Returns the variables that tests find in `process.env`: all except secrets.
fn environment_of_scripts(session: &Session) -> Vec<script::Variable> {
    let mask = Mask::of(session.environment());
    let given = |value: &String| Some(value.clone()).filter(|value| mask.text(value) == value.as_str());
    session.environment().iter().map(|(name, value)| (name.clone(), given(value))).collect()
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

/// Checks that a source repository that is a path exists.
fn check_source_repo(spec: &RunSpec, session: &Session) -> Result<(), Error> {
    let Some(written) = &spec.overrides().sandboxes.source_repo else { return Ok(()) };
    // `HOST:PATH` is an address for git.
    let is_address = written.contains(':');
    if is_address || session.cwd.join(written).exists() {
        return Ok(());
    }
    let error = Error::usage(format!("there is no repository `{written}`"));
    Err(error.hint("`--source-repo` takes the path of a repository on this machine, or the URL of one"))
}

/// Checks that the calibration that the command line names exists, also if nothing is judged.
fn check_calibration(spec: &RunSpec, session: &Session) -> Result<(), Error> {
    let named = spec.overrides().judging.judge_calibration.as_ref().filter(|file| !file.is_empty());
    match named.filter(|file| !session.cwd.join(file).exists()) {
        Some(file) => Err(Error::usage(format!("there is no calibration `{file}`"))
            .hint("`trialrun calibrate --output FILE` writes one")),
        None => Ok(()),
    }
}

/// Returns a warning about the project's calibration of the judge if it does not exist and no assertion shows that.
fn missing_calibration(session: &Session, spec: &RunSpec, plan: &Plan) -> Option<Diagnostic> {
    let file = session.project.judge.calibration.as_ref()?;
    let is_used = spec.overrides().judging.judge_calibration.is_none();
    let is_missing = is_used && !session.project.root.join(&file.value).exists();
    let is_shown = plan.trials.iter().any(|trial| runner::judged(trial) > 0);
    let problem = Diagnostic::warning(format!("there is no calibration `{}`", file.value)).at(file.source.clone());
    (is_missing && !is_shown).then(|| problem.help("`trialrun calibrate --output FILE` writes one"))
}

/// Returns a warning for each file in which `only: true` skips cases, or an error if this is a CI job: it is meant for
/// work on one case, and forgetting it would leave the others untested.
fn skipped_by_only(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let mut files: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let marked = |file: &str| {
        let mut of_file = plan.trials.iter().filter(|trial| &*trial.case.source.file == file);
        of_file.find_map(|trial| trial.case.only.clone())
    };
    let skipped = plan.trials.iter().map(|trial| &trial.case).filter(|case| suite::is_skipped_by_only(case));
    for case in skipped {
        files.entry(&*case.source.file).or_default().insert(&*case.id);
    }
    let error = |(file, cases): (&str, BTreeSet<&str>)| {
        let message = format!("`only` skips {} of `{file}`", report::counted(cases.len(), "other case"));
        let problem = match session.is_ci() {
            true => {
                Diagnostic::error(message).help("remove `only`: in CI (the variable `CI` is set) every case must run")
            }
            false => Diagnostic::warning(message).help("remove `only` when the case is done; in CI it is an error"),
        };
        Diagnostic { source: marked(file), ..problem }
    };
    files.into_iter().map(error).collect()
}

/// Merges the warning about a file or folder that is not read into the error that there are no tests.
fn explain_no_tests(problems: &mut Vec<Diagnostic>) {
    let is_unread = |problem: &Diagnostic| problem.kind == DiagnosticKind::UnreadTests;
    let cause = problems.iter().find(|problem| is_unread(problem)).cloned();
    let nothing = problems.iter_mut().find(|problem| problem.kind == DiagnosticKind::NoTests);
    if let (Some(cause), Some(nothing)) = (cause, nothing) {
        nothing.source = cause.source;
        nothing.help.splice(0..0, cause.help);
        problems.retain(|problem| !is_unread(problem));
    }
}

/// Returns a warning about each vendor's agent whose program is not on this machine. The files are correct without it, so
/// it is only for a run here. Workers may be other machines.
pub fn missing_agents(session: &Session, plan: &Plan) -> Vec<Diagnostic> {
    let has_own_system = sandbox::find(&plan.settings.sandbox.kind).is_none_or(|kind| kind.has_own_system());
    if has_own_system || session.project.workers.is_some() {
        return Vec::new();
    }
    let mut missing: BTreeMap<String, Diagnostic> = BTreeMap::new();
    let runs = plan.trials.iter().filter(|trial| trial.repetition == 1);
    for trial in runs.filter(|trial| trial.case.skip.is_none() && trial.case.broken.is_empty()) {
        let fixtures = &trial.case.fixtures;
        let agent = &trial.arm.agent;
        // These may bring the program.
        if missing.contains_key(agent) || !fixtures.setup_commands.is_empty() || sets_path(&fixtures.env) {
            continue;
        }
        let program = trial.agent.description().program;
        let absence = program.and_then(|program| program.absence(trial.config.as_deref(), &session.host));
        if let Some(absence) = absence {
            let problem = Diagnostic::warning(format!("`{agent}` cannot run here: {absence}"));
            let problem = problem.help("without it, its trials are broken; `--agent` runs another agent");
            missing.insert(agent.clone(), Diagnostic { source: place_of_agent(trial, plan), ..problem });
        }
    }
    missing.into_values().collect()
}

/// Returns the diagnostics about missing variables that the run needs.
fn missing_variables(session: &Session, of_suites: &[ProjectAgent], plan: &Plan) -> Vec<Diagnostic> {
    let runs = || plan.trials.iter().filter(|trial| trial.case.skip.is_none());
    let is_used = |name: &str| runs().any(|trial| trial.config.as_ref().is_some_and(|config| config.name == name));
    let project = &session.project;
    let of_suites: Vec<ProjectAgent> = of_suites.iter().map(|agent| agent.filled(session.environment())).collect();
    let mut missing: Vec<Diagnostic> = Vec::new();
    let agents = project.agents.iter().chain(&of_suites);
    for agent in agents.filter(|agent| !agent.missing.is_empty() && is_used(&agent.name)) {
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
        // On the command line, a file may follow.
        let bare = format.value.split('=').next().filter(|name| report::find(name).is_some());
        let near = bare.or_else(|| report::nearest(&format.value));
        let problem = match near {
            Some(_) => Diagnostic::error(message),
            None => Diagnostic::warning(format!("{message}; it is not written")),
        };
        let problem = problem.at(format.source.clone()).suggest(near);
        problem.help(format!("reports: {}", names().collect::<Vec<_>>().join(", ")))
    };
    unknown.map(problem).collect()
}

/// Returns `true` if a model must judge the assertion. For a case that is not planned this is unknown, so the result
/// is `false`.
fn is_judged(plan: &Plan, case: &model::Case, spec: &model::AssertionSpec) -> bool {
    let of_case = plan.trials.iter().filter(|trial| trial.case.source == case.source && trial.case.id == case.id);
    let mut checks = of_case.flat_map(|trial| trial.checks.iter()).filter(|check| check.id() == spec.id);
    checks.next().is_some_and(grade::Check::asks_judge)
}

fn is_same_file(one: &Diagnostic, other: &Diagnostic) -> bool {
    let file = |problem: &Diagnostic| problem.source.as_ref().map(|at| at.file.clone());
    one.source.is_some() && file(one) == file(other)
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

fn read_script(file: &Path, cwd: &Path) -> Result<llm::Script, Vec<Diagnostic>> {
    if file.as_os_str().is_empty() {
        return Err(vec![Diagnostic::error("`scripted:` needs the path of a script").help("write `scripted:FILE`")]);
    }
    let path = cwd.join(file);
    let node = suite::read_document(&path, &shown(&path, cwd))?;
    llm::Script::from_node(&node)
}
