//! Plans the trials of all selected cases, case by case.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{CaseContext, RunState};
use grade::Context;
use model::{AutoTrials, Case, Diagnostic, DiagnosticKind, Excerpt, MOST_TRIALS, Severity, Suite, Trials};

use super::compilation::{self, Compilation, SelectedCase};
use super::recorded_settings::recorded_settings;
use super::request::PlanRequest;
use super::trial::{PlannedCase, PlannedTrial, arm_name, directory_of, shown_argument};
use super::variant::{self, Variant};
use crate::select::Selector;

/// Plans one run.
pub(super) struct Planner<'a> {
    pub(super) request: &'a PlanRequest<'a>,
    pub(super) problems: Vec<Diagnostic>,
    /// Diagnostics about suites that are skipped because their agent cannot run them.
    pub(super) skipped_suites: Vec<Diagnostic>,
    /// Cases that have fewer trials than wanted, because the agent would only repeat an answer: the arm, the case, and
    /// both numbers.
    repeated: Vec<(Arc<str>, Arc<Case>, [u64; 2])>,
    /// Model scripts by file; `None` for one that cannot be read.
    pub(super) scripts: BTreeMap<PathBuf, Option<Arc<llm::Script>>>,
    /// Names of agents, with their arguments, whose configuration has been checked.
    pub(super) checked_agents: HashSet<String>,
    /// Arguments of agents as shown in the names of arms, by the agents as the user wrote them.
    shown_arguments: HashMap<String, String>,
    /// First case of a table with an empty text, by the problem.
    first_cases: HashMap<String, (String, Excerpt)>,
    /// Path of the last suite and its folder.
    last_suite: Option<(Arc<Path>, Arc<Path>)>,
    /// State of the run.
    pub(super) state: Arc<RunState>,
    trials: Vec<PlannedTrial>,
    /// Number of cases that were loaded.
    cases: usize,
    /// Number of cases that match the selection, before it is limited to listed cases and to a shard.
    matched: usize,
}

impl<'a> Planner<'a> {
    pub(super) fn new(request: &'a PlanRequest<'a>) -> Self {
        Self {
            request,
            problems: Vec::new(),
            skipped_suites: Vec::new(),
            repeated: Vec::new(),
            scripts: BTreeMap::new(),
            checked_agents: HashSet::new(),
            shown_arguments: HashMap::new(),
            first_cases: HashMap::new(),
            last_suite: None,
            state: Arc::new(
                RunState::new(request.modules.clone(), request.cwd, request.settings.secrets.clone())
                    .with_logs(request.settings.logs.clone())
                    .with_functions(request.settings.functions.clone()),
            ),
            trials: Vec::new(),
            cases: request.suites.iter().map(|suite| suite.cases.len()).sum(),
            matched: 0,
        }
    }

    /// Plans all cases. Returns their trials, the problems of the suites and settings, and the number of matching
    /// cases.
    pub(super) fn run(mut self) -> (Vec<PlannedTrial>, Vec<Diagnostic>, usize) {
        let selected = self.selected();
        let compiled = compilation::compile(&selected, self.request.settings, &self.state.scripts);
        for (case, compiled) in selected.iter().zip(compiled) {
            let (problems, trials) = (self.problems.len(), self.trials.len());
            self.case(case, compiled);
            if case.variant.case.fails_alone {
                self.contain_errors(&case.variant.case, problems, trials);
            }
        }
        self.report_skipped_suites();
        self.report_repeated();
        self.check_unused_agents();
        (self.trials, self.problems, self.matched)
    }

    /// Returns the selected cases, each as every one of its arms runs it.
    fn selected(&mut self) -> Vec<SelectedCase<'a>> {
        let selector = Selector::compile(self.request.selection, &mut self.problems);
        let mut seen: HashMap<(&str, &str), &Excerpt> = HashMap::new();
        let (mut selected, mut scored) = (Vec::new(), false);
        // Counted before the selection: a recorded answer found by its position must not be assigned to another case.
        let (mut position, mut ordinals) = (0, 0..);
        for suite in self.request.suites {
            for case in &suite.cases {
                if let Some(first) = seen.insert((&suite.name, &case.id), &case.source) {
                    self.problems.push(
                        Diagnostic::error(format!("two cases are called `{}::{}`", suite.name, case.id))
                            .at(case.source.clone())
                            .of(DiagnosticKind::TakenId)
                            .help(format!("the other one is at {first}; a case's id must be unique in its suite")),
                    );
                }
                // Cases outside the selection are not compiled: a run of one case must not wait for a thousand others.
                let is_matching = selector.matches(suite, case, &mut self.problems);
                self.matched += usize::from(is_matching);
                let is_wanted = is_matching && selector.is_listed(suite, case);
                if is_wanted && selector.in_shard(ordinals.next().unwrap_or(0)) {
                    scored |= case.ruling.scoring.is_some();
                    let case = &variant::with_threshold(case, self.request.settings.threshold);
                    let variants = variant::of(case, &self.request.settings.arms);
                    if variants.is_empty() {
                        self.warn_without_arm(suite, case);
                    }
                    self.problems.extend(variant::misleading_message(case, &variants));
                    let mocks = self.request.settings.sandbox.mocks_of(case);
                    let with = |variant| SelectedCase { position, suite, mocks: Arc::clone(&mocks), variant };
                    selected.extend(variants.into_iter().map(with));
                }
                position += 1;
            }
        }
        if self.request.settings.threshold.is_some() && !scored && !selected.is_empty() {
            let problem =
                Diagnostic::warning("no case is decided by its score, so the threshold of the run has no effect");
            self.problems
                .push(problem.help("cases of `claude plugin eval`, and those with a `threshold` or `passScore`, are"));
        }
        selected
    }

    /// Moves errors in the text of `case` from the run to its trials. `problems` and `trials` are the lengths of the
    /// lists before the case was planned.
    fn contain_errors(&mut self, case: &Arc<Case>, problems: usize, trials: usize) {
        if self.trials.len() == trials {
            return;
        }
        let found = self.problems.split_off(problems);
        // Some formats have assertions in other files than the case.
        let is_of_case = |file: &str| {
            *file == *case.source.file || case.assertions.iter().any(|made| *file == *made.node.source.path)
        };
        let is_own = |problem: &Diagnostic| {
            problem.is_error() && problem.source.as_ref().is_some_and(|place| is_of_case(&place.file))
        };
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_own);
        self.problems.extend(others);
        if own.is_empty() {
            return;
        }
        let mut case = Case::clone(case);
        for mut problem in own {
            if let (Some(row), DiagnosticKind::EmptyText) = (&case.table, &problem.kind) {
                let first = self.first_cases.entry(problem.to_string());
                let (first, row) = &*first.or_insert_with(|| (case.id.clone(), row.clone()));
                problem.help.push(format!("the first case with this problem is `{first}`"));
                // A cell of the row is empty.
                let filled = problem.source.take_if(|place| place.text.contains("{{"));
                if let Some(filled) = filled {
                    problem.help.push(format!("this row fills the text at {filled}"));
                    problem.source = Some(row.clone());
                }
            }
            if !case.broken.iter().any(|known| *known == problem || problem.follows_from(known)) {
                case.broken.push(problem);
            }
        }
        let case = Arc::new(case);
        for trials in self.trials[trials..].chunk_by_mut(|one, other| one.arm_name == other.arm_name) {
            let of = Arc::new(PlannedCase { case: Arc::clone(&case), ..PlannedCase::clone(&trials[0]) });
            for trial in trials {
                trial.of = Arc::clone(&of);
            }
        }
    }

    /// Plans the trials for one variant of a case. `compiled` are its assertions for the tools of its first agent.
    fn case(&mut self, selected: &SelectedCase<'_>, compiled: Compilation) {
        let SelectedCase { suite, variant: Variant { name: variant, case }, .. } = selected;
        let settings = self.request.settings;
        self.warn_about_default_agent(case);
        let (file, directory) = self.paths_of(suite);
        let state = Arc::clone(&self.state);
        let requires_integrity = self.request.settings.requires_integrity;
        let context = Context {
            directory: Some(&directory),
            scripts: Some(&state.scripts),
            mocks: Some(&selected.mocks),
            requires_integrity,
            answers_in_text: compilation::answer_in_text(settings, case),
            ..Context::default()
        };
        let Compilation { mut tools, checks, problems } = compiled;
        let mut checks = Arc::new(checks);
        let mut problems = Some(problems);
        for written in settings.agents_of(case).iter() {
            let Some(resolved) = self.resolve_agent(case, written) else { continue };
            let agent = resolved.agent;
            let case = &self.skip_if_not_its_subject(selected, agent, written);
            let Some((mut arm, model)) = self.arm(case, agent, written) else { continue };
            arm.variant.clone_from(variant);
            if let Some(config) = &resolved.config {
                arm.agent.clone_from(&config.name);
            }
            let mut setup = self.setup(case, agent, &arm);
            self.drop_effort(case, agent, &mut setup);
            self.warn_about_idle_settings(case, agent);
            // A case's assertions are the same under every arm; only the known tools differ.
            let known_tools = agent.known_tools(case);
            if tools != known_tools {
                let recompiled = grade::compile(case, &Context { known_tools, ..context });
                (tools, checks, problems) = (known_tools, Arc::new(recompiled.0), Some(recompiled.1));
            }
            self.problems.extend(problems.take().unwrap_or_default());
            // A case that is not run has no requirements for its agent.
            let mut answers = None;
            if case.skip.is_none() && case.broken.is_empty() {
                let defaults = &settings.defaults;
                let context = CaseContext {
                    model_source: defaults.model_source.as_ref().filter(|_| arm.model == defaults.model),
                    case,
                    position: selected.position,
                    cases: self.cases,
                    arm: &arm,
                    argument: resolved.argument,
                    config: resolved.config.as_deref(),
                    directory: &directory,
                    base_url: settings.arms.base_url.as_deref(),
                    providers: &settings.providers,
                    state: &state,
                };
                self.check_agent(agent, written, &context);
                answers = agent.answers(&context);
                self.check_costs(agent, &context, &model);
            }
            self.check_sandbox_needs(agent, case, &checks);
            self.warn_about_permissions(agent, &checks);
            self.check_faults(agent, case, &model);
            self.check_mocks(agent, case, &directory);
            self.warn_about_plugin(agent, case);
            self.check_sandbox_kind(agent, resolved.config.as_deref(), case);
            let shown = resolved.argument.map(|argument| {
                let shown = self.shown_arguments.entry(written.clone());
                &*shown.or_insert_with(|| shown_argument(agent.name(), argument, &settings.secrets))
            });
            let arm_name = arm_name(&arm, shown.map(String::as_str));
            let planned = PlannedCase {
                suite: suite.name.as_str().into(),
                case_id: case.id.as_str().into(),
                arm_name: arm_name.into(),
                file: Arc::clone(&file),
                directory: Arc::clone(&directory),
                case: Arc::clone(case),
                position: selected.position,
                limits: Arc::new(self.limits(case, agent, &setup, &model)),
                arm: Arc::new(arm),
                agent,
                argument: resolved.argument.map(Arc::from),
                config: resolved.config,
                auto: None,
                model,
                setup: Arc::new(setup),
                recorded_settings: Arc::default(),
                checks: if case.skip.is_some() { Arc::default() } else { Arc::clone(&checks) },
                mocks: settings.sandbox.mocks_of(case),
                state: Arc::clone(&self.state),
            };
            self.add(planned, answers);
        }
        // If no agent or model is valid, the assertions are still checked.
        self.problems.extend(problems.unwrap_or_default());
        let (_, problems) = grade::Responder::compile(&case.user_responses);
        self.problems.extend(problems);
    }

    /// Adds the trials of a case under one arm: at most as many as the agent has `answers`. Grading a recorded answer
    /// again is not another trial of the agent.
    fn add(&mut self, mut planned: PlannedCase, answers: Option<u64>) {
        let settings = self.request.settings;
        let mut of_case = self.trials.iter().rev().take_while(|other| other.position == planned.position);
        if of_case.any(|other| other.arm_name == planned.arm_name) {
            self.problems.push(Diagnostic::error(format!("two arms are called `{}`", planned.arm_name)).help(
                "name each agent and model once; arguments of one agent need different last parts, apart from secrets",
            ));
            return;
        }
        let trials = settings.trials(planned.case.trials);
        let wanted = match trials {
            // A case that does not run has exactly one result.
            Trials::Auto { .. } if planned.case.skip.is_some() || !planned.case.broken.is_empty() => 1,
            _ => trials.most(),
        };
        let repetitions = answers.map_or(wanted, |answers| wanted.min(answers.max(1)));
        if repetitions < wanted {
            self.repeated.push((Arc::clone(&planned.arm_name), Arc::clone(&planned.case), [repetitions, wanted]));
        }
        let most = repetitions.max(1);
        planned.auto = matches!(trials, Trials::Auto { .. }).then_some(AutoTrials { most, pass_rate: None });
        if repetitions > MOST_TRIALS {
            self.problems.push(
                Diagnostic::error(format!("{repetitions} trials per case exceed the maximum of {MOST_TRIALS}"))
                    .at(planned.case.source.clone()),
            );
            return;
        }
        planned.recorded_settings = Arc::new(recorded_settings(&planned, settings));
        self.check_script(&planned);
        let of = Arc::new(planned);
        self.trials.extend((1..=repetitions).map(|repetition| PlannedTrial { of: Arc::clone(&of), repetition }));
    }

    /// Returns the path of `suite` and its folder, cached for consecutive cases.
    fn paths_of(&mut self, suite: &Suite) -> (Arc<Path>, Arc<Path>) {
        if let Some((path, directory)) = &self.last_suite
            && **path == *suite.path
        {
            return (Arc::clone(path), Arc::clone(directory));
        }
        let paths = (Arc::from(suite.path.as_path()), Arc::from(directory_of(suite)));
        self.last_suite.insert(paths).clone()
    }

    /// Reports the cases that have fewer trials than wanted, because the agent would only repeat an answer: one warning
    /// for each arm.
    fn report_repeated(&mut self) {
        let mut repeated = std::mem::take(&mut self.repeated);
        repeated.sort_by(|(one, ..), (other, ..)| one.cmp(other));
        for cases in repeated.chunk_by(|(one, ..), (other, ..)| one == other) {
            let (arm, case, [answers, wanted]) = &cases[0];
            let again = "an answer that is graded again is not another trial";
            let (message, help) = match (cases, answers) {
                ([_], 1) => (
                    format!("`{arm}` has 1 answer for the case `{}`", case.id),
                    format!("the case runs once instead of {wanted} times: {again}"),
                ),
                ([_], _) => (
                    format!("`{arm}` has {answers} answers for the case `{}`", case.id),
                    format!("the case runs {answers} times instead of {wanted} times: {again}"),
                ),
                (cases, _) => (
                    format!("`{arm}` has fewer answers than trials for {} cases", cases.len()),
                    format!("each case runs as often as it has answers: {again}"),
                ),
            };
            self.problems.push(Diagnostic::warning(message).at(case.source.clone()).help(help));
        }
    }

    /// Reports the suites that are skipped because of their agent, as errors if nothing else is left to run.
    fn report_skipped_suites(&mut self) {
        let is_all = self.trials.iter().all(|trial| trial.case.skip.is_some());
        let skipped = std::mem::take(&mut self.skipped_suites).into_iter();
        self.problems.extend(skipped.map(|problem| match is_all {
            true => Diagnostic { severity: Severity::Error, ..problem },
            false => problem,
        }));
    }
}
