//! PLAN: turns suites and settings into the trials that will run, with everything compiled and checked. Planning starts
//! nothing, and reports all problems at once.

mod compilation;
mod order;
mod settings;
mod told;
mod variant;

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{self, AGENTS, Agent, CaseContext, Configured, Setup};
use grade::{Check, Context, Scripts};
use model::{
    AgentInfo, Arm, Case, Diagnostic, Excerpt, Limits, OnBudget, PermissionMode, Severity, SkillInfo, Subject, Suite,
    TrialId, nearest,
};
use serde_json::{Map, Value};

use self::compilation::{Compilation, Compiling, Wanted, embedded};
use self::variant::Variant;
use crate::hook::Hook;
use crate::select::{Selection, Selector};
use crate::trial::judging::Judging;

pub(crate) use self::compilation::kind_of_agent;
use self::settings::DEFAULT_AGENT;
pub use self::settings::{
    ArmSettings, Defaults, JudgeSettings, LimitSettings, RetryOn, RetrySettings, SandboxSettings, Settings,
};
pub(crate) use self::variant::as_arm;

/// Maximum number of trials of one case. More repetitions are a typing mistake; the plan alone would fill the memory.
const MOST_TRIALS: u64 = 100_000;
/// Prefix of the name of a model that answers from a file.
pub(crate) const SCRIPTED: &str = "scripted:";

/// Model of a trial.
#[derive(Debug, Clone)]
pub enum ModelChoice {
    /// A vendor's model, by name; `None` leaves the choice to the agent.
    Vendor(Option<String>),
    /// A scripted model.
    Scripted(Arc<llm::Script>),
}

/// Input of planning.
pub struct PlanRequest<'a> {
    /// The loaded suites.
    pub suites: &'a [Suite],
    /// The settings of the run.
    pub settings: &'a Settings,
    /// The selection of cases.
    pub selection: &'a Selection,
    /// Working directory of the user; messages about code show paths relative to it.
    pub cwd: &'a Path,
    /// Reads the file of a scripted model. Planning itself knows no file format.
    pub read_script: ReadScript,
    /// Test modules that were read with the suites, so that no trial reads them again.
    pub modules: script::Library,
}

/// Function that reads the file of a scripted model.
pub type ReadScript = Arc<dyn Fn(&Path) -> Result<llm::Script, Vec<Diagnostic>> + Send + Sync>;

/// A planned run.
pub struct Plan {
    /// The trials in order.
    pub trials: Vec<Arc<PlannedTrial>>,
    /// The settings.
    pub settings: Settings,
    /// The judge.
    pub judging: Arc<Judging>,
    /// The agents of the trials.
    pub agents: Vec<AgentInfo>,
    /// The skills of the trials.
    pub skills: Vec<SkillInfo>,
    /// Number of cases that were loaded, before selection.
    pub cases_loaded: usize,
    /// The commands around trials; planning sets none.
    pub hook: Option<Arc<dyn Hook>>,
}

/// One planned trial, with everything it needs compiled.
#[derive(Clone)]
pub struct PlannedTrial {
    /// Id of the trial.
    pub id: TrialId,
    /// File of the suite.
    pub file: Arc<Path>,
    /// Folder of the suite; relative paths in the case start there.
    pub directory: Arc<Path>,
    /// The case as the user wrote it.
    pub case: Arc<Case>,
    /// Position of the case in the plan, from 0.
    pub position: usize,
    /// The arm. This and the following fields are the same for many trials, which share them.
    pub arm: Arc<Arm>,
    /// The agent.
    pub agent: &'static dyn Agent,
    /// Argument behind the agent's name.
    pub argument: Option<Arc<str>>,
    /// Configuration of the agent in the project.
    pub config: Option<Arc<Configured>>,
    /// The model.
    pub model: ModelChoice,
    /// Setup of the agent.
    pub setup: Arc<Setup>,
    /// Settings that records contain.
    pub told: Arc<Map<String, Value>>,
    /// The limits in force.
    pub limits: Arc<Limits>,
    /// The compiled assertions; empty for a case that is not to be run.
    pub checks: Arc<Vec<Check>>,
}

impl PlannedTrial {
    /// Returns the skill under test, in the form that records have.
    pub fn skill_info(&self) -> Option<SkillInfo> {
        self.case.subject.skill().map(|skill| SkillInfo {
            name: skill.name.clone(),
            version: skill.version.clone(),
            content_hash: skill.content_hash.clone(),
        })
    }
}

/// Returns `name` as an `Arc`, shared with the `last` trial where it is the same: one suite and arm may have thousands
/// of trials.
fn shared(last: Option<&Arc<str>>, name: &str) -> Arc<str> {
    last.filter(|last| ***last == *name).map_or_else(|| name.into(), Arc::clone)
}

/// Returns `value` as an `Arc`, shared with the `last` trial where it is the same.
fn kept<T: PartialEq>(last: Option<&Arc<T>>, value: T) -> Arc<T> {
    last.filter(|last| ***last == value).map_or_else(|| Arc::new(value), Arc::clone)
}

/// Plans a run. The plan is complete only if no diagnostic is an error.
pub fn plan(request: &PlanRequest<'_>) -> (Plan, Vec<Diagnostic>) {
    agent::use_modules(&request.modules);
    let mut planner = Planner {
        request,
        problems: Vec::new(),
        unserved: Vec::new(),
        scripts: BTreeMap::new(),
        arguments: HashSet::new(),
        places: None,
        engine: Scripts::new(request.cwd),
        trials: Vec::new(),
        latest: HashMap::new(),
    };
    let cases_loaded = request.suites.iter().map(|suite| suite.cases.len()).sum();
    planner.run();
    let Planner { mut problems, mut trials, .. } = planner;
    order::interleave(&mut trials, request.settings.arms.seed);
    let mut told = HashSet::new();
    problems.retain(|problem| told.insert(problem.to_string()));
    let mut agents: Vec<AgentInfo> = Vec::new();
    let mut skills: Vec<SkillInfo> = Vec::new();
    for trial in &trials {
        let info = AgentInfo {
            name: trial.arm.agent.clone(),
            version: None,
            model: trial.arm.model.clone(),
            reasoning_effort: trial.setup.reasoning_effort.clone(),
            base_url: request.settings.arms.base_url.clone(),
        };
        if !agents.contains(&info) {
            agents.push(info);
        }
        skills.extend(trial.skill_info().filter(|skill| !skills.contains(skill)));
    }
    let judging = Arc::new(Judging::plan(request, &trials, &mut problems));
    let mut settings = request.settings.clone();
    settings.judge.model = judging.model().map(str::to_owned).or(settings.judge.model);
    (Plan { trials, settings, judging, agents, skills, cases_loaded, hook: None }, problems)
}

/// An agent that was found by its name.
struct ResolvedAgent<'w> {
    agent: &'static dyn Agent,
    /// Argument behind the agent's name.
    argument: Option<&'w str>,
    config: Option<Arc<Configured>>,
}

/// Checks of a case and the tools that they were compiled for.
type Compiled = (Option<&'static [&'static str]>, Arc<Vec<Check>>);

struct Planner<'a> {
    request: &'a PlanRequest<'a>,
    problems: Vec<Diagnostic>,
    /// Diagnostics about suites that are skipped because their agent cannot run them.
    unserved: Vec<Diagnostic>,
    scripts: BTreeMap<PathBuf, Option<Arc<llm::Script>>>,
    /// Names of agents, with their arguments, whose configuration has been checked.
    arguments: HashSet<String>,
    /// Path of the last suite and its folder.
    places: Option<(Arc<Path>, Arc<Path>)>,
    /// Engine for the code in expectations.
    engine: Scripts,
    trials: Vec<Arc<PlannedTrial>>,
    /// Last trial of each arm by its name, so that the next trial can share its parts.
    latest: HashMap<Arc<str>, Arc<PlannedTrial>>,
}

impl Planner<'_> {
    fn run(&mut self) {
        let selector = Selector::compile(self.request.selection, &mut self.problems);
        let mut seen: HashMap<(&str, &str), &Excerpt> = HashMap::new();
        let mut wanted: Vec<Wanted<'_>> = Vec::new();
        // Counted before the selection: a recorded answer found by its position must not be used for another case.
        let (mut position, mut ordinals) = (0, 0..);
        for suite in self.request.suites {
            for case in &suite.cases {
                if let Some(first) = seen.insert((&suite.name, &case.id), &case.source) {
                    self.problems.push(
                        Diagnostic::error(format!("two cases are called `{}::{}`", suite.name, case.id))
                            .at(case.source.clone())
                            .help(format!("the other one is at {first}; a case's id must be unique in its suite")),
                    );
                }
                // Cases outside the selection are not compiled: a run of one case must not wait for a thousand others.
                if selector.wants(suite, case, &mut self.problems) && selector.in_shard(ordinals.next().unwrap_or(0)) {
                    let variants = variant::of(case, self.request.settings.arms.baseline).into_iter();
                    wanted.extend(variants.map(|variant| Wanted { position, suite, variant }));
                }
                position += 1;
            }
        }
        let (settings, engine) = (self.request.settings, self.engine.clone());
        std::thread::scope(|scope| {
            let mut compiling = Compiling::begin(scope, &wanted, settings, &engine);
            for wanted in &wanted {
                let compiled = compiling.next();
                let (problems, trials) = (self.problems.len(), self.trials.len());
                self.case(wanted, compiled);
                if wanted.variant.case.fails_alone {
                    self.contain_errors(&wanted.variant.case, problems, trials);
                }
            }
        });
        self.tell_of_the_unserved();
        self.look_at_unused_agents();
    }

    /// Moves the errors in the text of `case` from the run to its trials. `problems` and `trials` are the lengths of
    /// the lists before the case was planned.
    fn contain_errors(&mut self, case: &Arc<Case>, problems: usize, trials: usize) {
        if self.trials.len() == trials {
            return;
        }
        let found = self.problems.split_off(problems);
        let is_own = |problem: &Diagnostic| {
            problem.is_error() && problem.source.as_ref().is_some_and(|place| place.file == case.source.file)
        };
        let (own, others): (Vec<_>, Vec<_>) = found.into_iter().partition(is_own);
        self.problems.extend(others);
        if own.is_empty() {
            return;
        }
        let mut case = Case::clone(case);
        for problem in own {
            if !case.broken.contains(&problem) {
                case.broken.push(problem);
            }
        }
        let case = Arc::new(case);
        for trial in &mut self.trials[trials..] {
            *trial = Arc::new(PlannedTrial { case: Arc::clone(&case), ..PlannedTrial::clone(trial) });
        }
    }

    /// Plans the trials of one variant of a case. Its assertions may have been compiled already, in `ready`.
    fn case(&mut self, wanted: &Wanted<'_>, mut ready: Option<Compilation>) {
        let Wanted { position, suite, variant: Variant { name: variant, case } } = wanted;
        let position = *position;
        let settings = self.request.settings;
        let agents = agents_of(settings, case);
        self.tell_of_the_default(case);
        let (file, directory) = self.places_of(suite);
        let engine = self.engine.clone();
        let context = Context { directory: Some(&directory), scripts: Some(&engine), ..Context::default() };
        let mut compiled: Option<Compiled> = None;
        for written in agents.iter() {
            let Some(ResolvedAgent { agent, argument, config }) = self.cast(case, written) else { continue };
            let case = &self.served(wanted, agent, written);
            let Some((mut arm, model)) = self.arm(case, agent, written) else { continue };
            arm.variant = variant.map(str::to_owned);
            if let Some(config) = &config {
                arm.agent.clone_from(&config.name);
            }
            let mut setup = self.setup(case, agent, &arm);
            self.drop_effort(case, agent, &mut setup);
            // The assertions of a case are the same under every arm; only the known tools differ.
            let known_tools = known_tools(agent, case);
            let checks = match &compiled {
                Some((tools, checks)) if *tools == known_tools => Arc::clone(checks),
                _ => {
                    let (checks, problems) = match ready.take_if(|ready| ready.tools == known_tools) {
                        Some(ready) => (ready.checks, ready.problems),
                        None => grade::compile(case, &Context { known_tools, ..context }),
                    };
                    self.problems.extend(problems);
                    let checks = Arc::new(checks);
                    compiled = Some((known_tools, Arc::clone(&checks)));
                    checks
                }
            };
            // A case that is not run has no requirements for its agent.
            if case.skip.is_none() && case.broken.is_empty() {
                let base_url = settings.arms.base_url.as_deref();
                let providers = &settings.providers;
                self.ask(
                    agent,
                    written,
                    &CaseContext {
                        case,
                        arm: &arm,
                        argument,
                        config: config.as_deref(),
                        directory: &directory,
                        base_url,
                        providers,
                    },
                );
            }
            self.refuse_needs(agent, case, &checks);
            let arm_name = arm_name(&arm, argument);
            if self
                .trials
                .iter()
                .rev()
                .take_while(|trial| trial.position == position)
                .any(|trial| *trial.id.arm == *arm_name)
            {
                self.problems.push(
                    Diagnostic::error(format!("two arms are called `{arm_name}`"))
                        .help("name each agent and model once; files that answer need different names"),
                );
                continue;
            }
            let trials = settings.trials(case.trials);
            if trials > MOST_TRIALS {
                self.problems.push(
                    Diagnostic::error(format!("{trials} trials of one case are more than {MOST_TRIALS}"))
                        .at(case.source.clone()),
                );
                continue;
            }
            let last = self.latest.get(&*arm_name);
            let limits = kept(last.map(|last| &last.limits), self.limits(case, agent, &setup));
            let setup = kept(last.map(|last| &last.setup), setup);
            let arm = kept(last.map(|last| &last.arm), arm);
            let told = told::of(case, &setup, settings, last.map(|last| &**last));
            let argument = argument.map(|argument| shared(last.and_then(|last| last.argument.as_ref()), argument));
            let id = TrialId {
                suite: shared(last.map(|last| &last.id.suite), &suite.name),
                case: case.id.as_str().into(),
                arm: shared(last.map(|last| &last.id.arm), &arm_name),
                repetition: 1,
            };
            for repetition in 1..=trials {
                let id = TrialId { repetition, ..id.clone() };
                let trial = Arc::new(PlannedTrial {
                    id,
                    file: Arc::clone(&file),
                    directory: Arc::clone(&directory),
                    case: Arc::clone(case),
                    position,
                    arm: Arc::clone(&arm),
                    agent,
                    argument: argument.clone(),
                    config: config.clone(),
                    model: model.clone(),
                    setup: Arc::clone(&setup),
                    told: Arc::clone(&told),
                    limits: Arc::clone(&limits),
                    checks: if case.skip.is_some() { Arc::default() } else { Arc::clone(&checks) },
                });
                if repetition == 1 {
                    self.latest.insert(Arc::clone(&trial.id.arm), Arc::clone(&trial));
                }
                self.trials.push(trial);
            }
        }
        if compiled.is_none() {
            // No agent or model is valid; the assertions are checked all the same.
            let problems = match ready.take_if(|ready| ready.tools.is_none()) {
                Some(ready) => ready.problems,
                None => grade::compile(case, &context).1,
            };
            self.problems.extend(problems);
        }
        let (_, problems) = grade::Responder::compile(&case.user_responses);
        self.problems.extend(problems);
    }

    /// Returns the agent that `written` names: one that the project configures, or a built-in one.
    fn cast<'w>(&mut self, case: &Case, written: &'w str) -> Option<ResolvedAgent<'w>> {
        let settings = self.request.settings;
        let Some(config) = settings.configured.iter().find(|configured| configured.name == written) else {
            let found = embedded(settings, written).map(|agent| (agent, None)).or_else(|| agent::find(written));
            if found.is_none() {
                self.unknown_agent(case, written);
            }
            return found.map(|(agent, argument)| ResolvedAgent { agent, argument, config: None });
        };
        match config.agent() {
            Ok(agent) => Some(ResolvedAgent { agent, argument: None, config: Some(Arc::clone(config)) }),
            Err(problem) => {
                self.problems.push(*problem);
                None
            }
        }
    }

    /// Warns of mistakes in configured agents that no selected case uses; they do not prevent the run. An agent that
    /// lacks an environment variable is not checked until it is used.
    fn look_at_unused_agents(&mut self) {
        let unused = self.request.settings.configured.iter().filter(|config| config.is_filled);
        for config in unused.filter(|config| !self.arguments.contains(&config.name)) {
            let problems = match config.agent() {
                Ok(agent) => agent.check_config(&config.node, &config.directory),
                Err(problem) => vec![*problem],
            };
            let help = format!("no selected case uses the agent `{}`", config.name);
            let warning = |problem| Diagnostic { severity: Severity::Warning, ..problem };
            self.problems.extend(problems.into_iter().map(|problem| warning(problem).help(help.as_str())));
        }
    }

    /// Warns when the default agent is used although the project configures agents and names none of them as its
    /// default.
    fn tell_of_the_default(&mut self, case: &Case) {
        let settings = self.request.settings;
        let is_named =
            !settings.arms.agents.is_empty() || case.runner.agent.is_some() || settings.defaults.agent.is_some();
        if is_named || settings.configured.is_empty() || case.skip.is_some() {
            return;
        }
        let own: Vec<String> = settings.configured.iter().map(|config| format!("`{}`", config.name)).collect();
        let problem = Diagnostic::warning(format!("no agent is named, so `{DEFAULT_AGENT}` is run"));
        self.problems
            .push(problem.help(format!("the project configures {}: set `agent` to one of them", own.join(", "))));
    }

    /// Checks that `agent`, written as `written`, can run `case_context`.
    fn ask(&mut self, agent: &dyn Agent, written: &str, case_context: &CaseContext<'_>) {
        let case = case_context.case;
        if self.arguments.insert(written.to_owned()) {
            let own = case.runner.agent.as_ref().filter(|(own, _)| own == written).map(|(_, source)| source);
            let problems = match case_context.config {
                Some(config) => agent.check_config(&config.node, &config.directory),
                None => agent.check_argument(case_context.argument),
            };
            self.problems.extend(problems.into_iter().map(|problem| match own {
                Some(source) if problem.source.is_none() => problem.at(source.clone()),
                _ => problem,
            }));
        }
        if case.messages.iter().any(|message| message.script.is_some()) {
            self.takes(agent, case, "script", |agent| agent.description().takes_script);
        }
        if brings_tools(case) {
            self.takes(agent, case, "tools", |agent| agent.description().takes_tools);
        }
        for problem in agent.check(case_context) {
            // Some diagnostics are about the whole file.
            if problem.is_error() || !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    /// Reports an agent that does not support `what`, which the case brings.
    fn takes(&mut self, agent: &dyn Agent, case: &Case, what: &str, takes: fn(&dyn Agent) -> bool) {
        if takes(agent) {
            return;
        }
        let others: Vec<&str> = AGENTS.iter().filter(|other| takes(**other)).map(|other| other.name()).collect();
        self.problems.push(
            Diagnostic::error(format!("`{}` takes no `{what}`", agent.name()))
                .at(case.source.clone())
                .help(format!("agents that do: {}", others.join(", "))),
        );
    }

    /// Reports assertions that look into a sandbox where there is none.
    fn refuse_needs(&mut self, agent: &dyn Agent, case: &Case, checks: &[Check]) {
        if case.skip.is_some() || crate::trial::has_sandbox(agent, case) {
            return;
        }
        for check in checks.iter().filter(|check| !check.needs().is_empty()) {
            let message = format!("`{}` looks into the sandbox, and `{}` works in none", check.kind(), agent.name());
            let problem = Diagnostic::error(message).at(check.source());
            self.problems.push(problem.help("a case with `fixtures` has a sandbox, whatever its agent is"));
        }
    }

    /// Returns the case, marked as skipped where both of its arms would be the same. That is an error if the suite
    /// itself names the agent; any other agent may be meant for other suites.
    fn served(&mut self, wanted: &Wanted<'_>, agent: &dyn Agent, written: &str) -> Arc<Case> {
        let Wanted { suite, variant: Variant { name, case }, .. } = wanted;
        let settings = self.request.settings;
        let is_compared = name.is_some() && settings.arms.baseline != Some(false);
        if !is_compared || agent.description().folder_of(case.definition).is_some() || case.skip.is_some() {
            return Arc::clone(case);
        }
        let what = case.definition.name();
        let because = format!("`{written}` reads no {what}s from files, so it would be the same with and without one");
        let others = AGENTS
            .iter()
            .filter(|other| other.description().folder_of(case.definition).is_some())
            .map(|other| other.name());
        let others = format!("agents that do: {}", others.collect::<Vec<_>>().join(", "));
        let without = "with `baseline` switched off, the cases run without the comparison";
        let own = case.runner.agent.as_ref().filter(|_| settings.arms.agents.is_empty());
        if let Some((_, source)) = own {
            self.problems.push(Diagnostic::error(because).at(source.clone()).help(others).help(without));
            return Arc::clone(case);
        }
        self.unserved.push(
            Diagnostic::warning(&*because)
                .at(Excerpt::of_file(Arc::clone(&case.source.file)))
                .help(format!("the suite `{}` is skipped with it", suite.name))
                .help("set another `agent`, in the suite or for the run")
                .help(others)
                .help(without),
        );
        Arc::new(Case { skip: Some(because), ..Case::clone(case) })
    }

    /// Reports the suites that are skipped because of their agent: as errors if nothing else is left to run.
    fn tell_of_the_unserved(&mut self) {
        let is_all = self.trials.iter().all(|trial| trial.case.skip.is_some());
        let unserved = std::mem::take(&mut self.unserved).into_iter();
        self.problems.extend(unserved.map(|problem| match is_all {
            true => Diagnostic { severity: Severity::Error, ..problem },
            false => problem,
        }));
    }

    /// Returns the path of `suite` and its folder, cached for consecutive cases.
    fn places_of(&mut self, suite: &Suite) -> (Arc<Path>, Arc<Path>) {
        if let Some((path, directory)) = &self.places
            && **path == *suite.path
        {
            return (Arc::clone(path), Arc::clone(directory));
        }
        let places = (Arc::from(suite.path.as_path()), Arc::from(directory_of(suite)));
        self.places.insert(places).clone()
    }

    fn unknown_agent(&mut self, case: &Case, written: &str) {
        let name = written.split(':').next().unwrap_or(written);
        let names = AGENTS.iter().map(|agent| agent.name());
        let aliases = AGENTS.iter().flat_map(|agent| agent.description().aliases.iter().copied());
        let own_names = self.request.settings.configured.iter().map(|configured| configured.name.as_str());
        let mut problem = Diagnostic::error(format!("unknown agent `{name}`"))
            .suggest(nearest(name, names.clone().chain(aliases).chain(own_names.clone())))
            .help(format!("agents: {}", names.chain(own_names.clone()).collect::<Vec<_>>().join(", ")));
        if self.request.settings.arms.agents.is_empty() {
            let own = case.runner.agent.as_ref().map(|(_, source)| source);
            if let Some(source) = own.or(self.request.settings.defaults.agent_source.as_ref()) {
                problem = problem.at(source.clone());
            }
        }
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Returns the arm of `case` with `agent`, written as `written`, and its model.
    fn arm(&mut self, case: &Case, agent: &'static dyn Agent, written: &str) -> Option<(Arm, ModelChoice)> {
        let settings = self.request.settings;
        let given = settings
            .arms
            .models
            .iter()
            .rev()
            .find(|(of, _)| {
                of.as_deref().is_none_or(|of| of == agent.name() || agent.description().aliases.contains(&of))
            })
            .map(|(_, model)| model.clone());
        let is_given = given.is_some();
        // A model belongs to the agent that is named beside it.
        let of_case = case.runner.model.clone().filter(|model| {
            let owner = case.runner.agent.as_ref().map(|(owner, _)| owner.as_str());
            owner.is_none_or(|owner| is_for(model, owner, written))
        });
        let of_project = settings.defaults.model.clone().filter(|model| match &settings.defaults.agent {
            Some(owner) => is_for(model, owner, written),
            None => self.refused(agent, model).is_none(),
        });
        let name = given
            .or_else(|| of_case.clone())
            .or(of_project)
            .or_else(|| agent.description().default_model.map(str::to_owned));
        if let Some(because) = name.as_deref().and_then(|name| self.refused(agent, name)) {
            let own = name == of_case;
            let place = own.then(|| case.runner.model_source.clone().unwrap_or_else(|| case.source.clone()));
            let problem = Diagnostic::error(format!("`{}` cannot have this model: {because}", agent.name()))
                .help(format!("set another `model` for `{}`", agent.name()));
            self.problems.push(match place {
                Some(place) => problem.at(place),
                None => problem,
            });
        }
        let (name, model) = match name.as_deref().and_then(|name| name.strip_prefix(SCRIPTED)) {
            // A missing file was already reported when the case or the project was read.
            Some(file) if !is_given && !Path::new(file).is_file() => return None,
            Some(file) => {
                // The script is named as the user would write it, so that records of two machines are the same.
                let script = self.script(case, Path::new(file))?;
                (Some(format!("{SCRIPTED}{}", script.name())), ModelChoice::Scripted(script))
            }
            None => (name.clone(), ModelChoice::Vendor(name)),
        };
        Some((Arm { agent: agent.name().to_owned(), model: name, variant: None }, model))
    }

    /// Returns the reason why `agent` cannot use the model `name`. Every agent can use a scripted model.
    fn refused(&self, agent: &dyn Agent, name: &str) -> Option<String> {
        let settings = self.request.settings;
        let vendors = Some(name).filter(|name| !name.starts_with(SCRIPTED))?;
        agent.refuses_model(vendors, settings.arms.base_url.as_deref(), &settings.providers)
    }

    /// Returns the script in `file`, which is read once; a problem with it is reported once.
    fn script(&mut self, case: &Case, file: &Path) -> Option<Arc<llm::Script>> {
        if let Some(known) = self.scripts.get(file) {
            return known.clone();
        }
        let read = match (self.request.read_script)(file) {
            Ok(script) => Some(Arc::new(script)),
            Err(problems) => {
                self.problems.extend(problems.into_iter().map(|problem| match problem.source {
                    Some(_) => problem,
                    None => problem.at(case.source.clone()),
                }));
                None
            }
        };
        self.scripts.insert(file.to_owned(), read.clone());
        read
    }

    fn setup(&self, case: &Case, agent: &'static dyn Agent, arm: &Arm) -> Setup {
        let settings = self.request.settings;
        Setup {
            model: arm.model.clone(),
            system_prompt: system_prompt(&case.subject, agent.description().skills_folder),
            permission_mode: case
                .runner
                .permission_mode
                .or(settings.defaults.permission_mode)
                .or_else(|| case.skill_eval.is_some().then(|| agent.description().evaluation_mode))
                .unwrap_or(PermissionMode::BypassPermissions),
            closed_tools: case.runner.allowed_tools_override.clone(),
            approved_tools: case.subject.skill().map(|skill| skill.allowed_tools_raw.clone()).unwrap_or_default(),
            setting_sources: case.runner.setting_sources.clone(),
            reasoning_effort: settings.arms.reasoning_effort.clone().or_else(|| case.runner.reasoning_effort.clone()),
            max_turns: settings.limits.max_turns.or(case.max_turns).or(settings.defaults.max_turns),
            timeout_ms: self.timeout(case).0,
        }
    }

    /// Drops a reasoning effort that `agent` does not take, with a warning; the record then has none.
    fn drop_effort(&mut self, case: &Case, agent: &dyn Agent, setup: &mut Setup) {
        let Some(efforts) = agent.description().efforts else { return };
        let Some(effort) = setup.reasoning_effort.take_if(|effort| !efforts.contains(&effort.as_str())) else { return };
        let name = agent.name();
        let message = match efforts {
            [] => format!("`{name}` has no setting for the reasoning effort, so `{effort}` is not used"),
            _ => format!("`{name}` has no reasoning effort `{effort}`, so none is set"),
        };
        let mut problem = Diagnostic::warning(message).suggest(nearest(&effort, efforts.iter().copied()));
        if !efforts.is_empty() {
            problem = problem.help(format!("efforts: {}", efforts.join(", ")));
        }
        let is_own = case.runner.reasoning_effort.as_ref() == Some(&effort);
        self.problems.push(if is_own { problem.at(case.source.clone()) } else { problem });
    }

    /// Returns the wall clock in milliseconds, and the setting that it comes from.
    fn timeout(&self, case: &Case) -> (u64, &'static str) {
        let settings = self.request.settings;
        let clock = settings.timeout(case.timeout_ms, case.code.is_some());
        // A time budget that stops a trial acts as a clock.
        let budget = settings.limits.budgets.duration_ms.filter(|_| settings.limits.on_budget != OnBudget::Warn);
        match budget.map(|budget| budget as u64) {
            Some(budget) if budget < clock.0 => (budget, settings.limits.max_duration_from),
            _ => clock,
        }
    }

    fn limits(&self, case: &Case, agent: &dyn Agent, setup: &Setup) -> Limits {
        let settings = self.request.settings;
        // Turns of an agent without a model cost nothing.
        let has_model = agent.description().wire.is_some() || agent.description().asks_providers;
        let warn_turns = case.warn_turns.filter(|_| has_model);
        let skill = case.subject.skill().and_then(|skill| skill.token_budget);
        let (token_budget, token_budget_from) = if let Some(budget) = settings.limits.max_total_tokens {
            (Some(budget), Some(settings.limits.max_total_tokens_from))
        } else if let Some(budget) = case.token_budget {
            (Some(budget), Some("scenario"))
        } else if let Some(budget) = skill {
            (Some(budget), Some("skill"))
        } else {
            (settings.defaults.token_budget, settings.defaults.token_budget.map(|_| "project"))
        };
        Limits {
            max_turns: setup.max_turns.or(warn_turns).unwrap_or(0),
            max_turns_set: setup.max_turns.is_some(),
            token_budget,
            token_budget_from: token_budget_from.map(str::to_owned),
            timeout_ms: setup.timeout_ms,
            timeout_from: Some(self.timeout(case).1.to_owned()),
            budgets: settings.limits.budgets,
            on_budget: settings.limits.on_budget,
            earlier: None,
        }
    }
}

/// Returns the folder of `suite`: that of its file, or the suite itself if it is a folder; absolute.
pub(crate) fn directory_of(suite: &Suite) -> PathBuf {
    let directory = match suite.path.parent() {
        _ if suite.path.is_dir() => suite.path.as_path(),
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Returns `true` if the agent `written` may use `model`, which is named beside the agent `owner`. Every agent can use
/// a scripted model.
fn is_for(model: &str, owner: &str, written: &str) -> bool {
    let name = |written: &str| agent::find(written).map(|(agent, _)| agent.name());
    model.starts_with(SCRIPTED) || owner == written || name(owner).is_some_and(|owner| name(written) == Some(owner))
}

/// Returns the agents that `case` runs with, as they are written.
fn agents_of<'a>(settings: &'a Settings, case: &Case) -> Cow<'a, [String]> {
    if !settings.arms.agents.is_empty() {
        return Cow::Borrowed(&settings.arms.agents);
    }
    let own = case.runner.agent.as_ref().map(|(name, _)| name.clone());
    Cow::Owned(vec![own.unwrap_or_else(|| settings.default_agent().to_owned())])
}

/// Returns the tools that the assertions of `case` may name with `agent`. `None` if the case brings tools, which may
/// have any name.
pub(crate) fn known_tools(agent: &dyn Agent, case: &Case) -> Option<&'static [&'static str]> {
    agent.description().tools.filter(|_| !brings_tools(case))
}

fn brings_tools(case: &Case) -> bool {
    case.all_tools().next().is_some()
}

/// Returns the printed name of an arm. It includes the argument of the agent, or two files of answers would be the same
/// arm.
fn arm_name(arm: &Arm, argument: Option<&str>) -> String {
    let Some(argument) = argument else { return arm.to_string() };
    let file = argument.rsplit('/').next().unwrap_or(argument);
    Arm { agent: format!("{}:{file}", arm.agent), ..arm.clone() }.to_string()
}

/// Returns the addition to the agent's system prompt: the skill's body and the folder of its files, or the prompt as it
/// is.
fn system_prompt(subject: &Subject, folder: Option<&str>) -> Option<String> {
    match subject {
        Subject::Agent | Subject::Installed(_) => None,
        Subject::Prompt(prompt) => Some(prompt.body.clone()),
        Subject::Skill(skill) => {
            let mut text = skill.body.clone();
            if let Some(folder) = folder {
                let place = format!("{folder}/{}", skill.name);
                text.push_str(&format!(
                    "\n\n## Where this skill is installed\n\nThe files of the `{}` skill are in `{place}/` below the \
                     working directory. Where the text above names a file of the skill, such as `references/X`, read \
                     `{place}/references/X`.\n",
                    skill.name
                ));
            }
            Some(text)
        }
    }
}

#[cfg(test)]
mod tests;
