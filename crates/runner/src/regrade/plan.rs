//! Plans which recorded trials are graded again, and with which checks.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use agent::{Agent, Description, RunState, Session, SessionContext, Setup};
use grade::{Check, Context, KnownTools};
use mask::Mask;
use model::{
    Arm, Case, Diagnostic, Fault, Limits, Outcome, PermissionMode, SettingSource, Suite, TrialId, TrialRecord,
};
use sandbox::{BoxFuture, Breakage};

use super::kept;
use crate::plan::{
    Earlier, Judging, ModelChoice, Plan, PlanRequest, PlannedCase, PlannedTrial, Settings, as_arm, directory_of,
    with_threshold,
};
use crate::trial::Shared;

/// Input for planning to grade again.
pub struct RegradeRequest<'a> {
    /// The current suites, and the settings. The selection is ignored.
    pub today: PlanRequest<'a>,
    /// The recorded trials, in order.
    pub records: Vec<TrialRecord>,
    /// All planned trials of their run.
    pub planned: &'a [TrialId],
}

/// A plan to grade a run again.
pub struct Regrade {
    pub(crate) plan: Plan,
    pub(crate) trials: Vec<RecordedTrial>,
    /// Reasons why trials are not graded again, one line each.
    pub notes: Vec<String>,
}

impl Regrade {
    /// Number of trials.
    pub fn trials(&self) -> usize {
        self.trials.len()
    }

    /// Returns the settings with which it is graded.
    pub fn settings(&self) -> &Settings {
        &self.plan.settings
    }

    /// Ids of the trials, in order.
    pub fn ids(&self) -> Vec<TrialId> {
        self.trials.iter().map(|recorded| id_of(&recorded.old)).collect()
    }
}

/// A recorded trial, and how it is graded again.
pub(crate) struct RecordedTrial {
    pub(crate) old: TrialRecord,
    pub(super) action: Action,
}

impl RecordedTrial {
    /// Returns the mask for the secrets of the trial.
    pub(crate) fn mask(&self, shared: &Shared) -> Arc<Mask> {
        match &self.action {
            Action::Grade(planned) => shared.mask_of(planned),
            Action::Keep(_) | Action::Skip(_) => Arc::clone(&shared.mask),
        }
    }

    /// Returns the outcome if the task that grades it panics.
    pub(crate) fn panicked(&self) -> TrialRecord {
        let reason = "grading it again panicked; this is a bug in trialrun";
        kept::broken(self.old.clone(), Fault::Harness, reason)
    }

    /// Returns the outcome if the run is stopped first.
    pub(crate) fn cancelled(&self) -> TrialRecord {
        let reason = "the run was stopped before it was graded";
        kept::without_verdict(self.old.clone(), Outcome::Cancelled, reason)
    }
}

/// Decision about a recorded trial.
pub(super) enum Action {
    /// Grade it again.
    Grade(PlannedTrial),
    /// Keep its record, with the reason unless the outcome is reason enough.
    Keep(Option<String>),
    /// Skip it, with the reason why it cannot be graded.
    Skip(String),
}

fn id_of(old: &TrialRecord) -> TrialId {
    TrialId { suite: old.suite.clone(), case: old.case.clone(), arm: old.arm.clone(), repetition: old.repetition }
}

/// Plans to grade again. The plan is complete only if no diagnostic is an error.
pub fn plan_regrade(request: RegradeRequest<'_>) -> (Regrade, Vec<Diagnostic>) {
    let RegradeRequest { today, records, planned } = request;
    let mut planner = Planner {
        today: &today,
        state: Arc::new(RunState::new(today.modules.clone(), today.cwd, today.settings.secrets.clone())),
        compiled: HashMap::new(),
        problems: Vec::new(),
        notes: Notes::default(),
    };
    let recorded: Vec<RecordedTrial> = records.into_iter().map(|old| planner.recorded(old)).collect();
    let Planner { mut problems, mut notes, .. } = planner;
    notes.find_others(today.suites, &recorded, planned);
    let trials: Vec<PlannedTrial> = recorded
        .iter()
        .filter_map(|recorded| match &recorded.action {
            Action::Grade(planned) => Some(planned.clone()),
            Action::Keep(_) | Action::Skip(_) => None,
        })
        .collect();
    let judging = Arc::new(Judging::plan(&today, &trials, &mut problems));
    let mut settings = today.settings.clone();
    // No sandbox is created.
    "local".clone_into(&mut settings.sandbox.kind);
    let cases_loaded = today.suites.iter().map(|suite| suite.cases.len()).sum();
    let plan = Plan {
        trials: Vec::new(),
        decisions: Vec::new(),
        settings,
        judging,
        agents: Vec::new(),
        skills: Vec::new(),
        cases_loaded,
        cases_matched: 0,
        hook: None,
        cleaner: None,
        place: None,
        earlier: Earlier::default(),
    };
    (Regrade { plan, trials: recorded, notes: notes.lines() }, problems)
}

/// The agent of every recorded trial, whatever its name: it has run, so the agent of today has no part in grading it.
struct AlreadyRun;

impl Agent for AlreadyRun {
    fn description(&self) -> &Description {
        const DESCRIPTION: Description = Description::new("recorded trial", "Has run already.");
        &DESCRIPTION
    }

    fn open<'a>(&'a self, _: SessionContext) -> BoxFuture<'a, Result<Box<dyn Session>, Breakage>> {
        Box::pin(std::future::ready(Err(Breakage::harness("a recorded trial is graded without its agent"))))
    }
}

/// A case in the variant of an arm, and its checks.
type Compiled = (Arc<Case>, Arc<Vec<Check>>);

struct Planner<'a> {
    today: &'a PlanRequest<'a>,
    state: Arc<RunState>,
    /// Keys are suite, case, variant and agent.
    compiled: HashMap<[String; 4], Compiled>,
    problems: Vec<Diagnostic>,
    notes: Notes,
}

impl Planner<'_> {
    fn recorded(&mut self, old: TrialRecord) -> RecordedTrial {
        let action = self.action(&old);
        RecordedTrial { old, action }
    }

    fn action(&mut self, old: &TrialRecord) -> Action {
        let mut suites = self.today.suites.iter().filter(|suite| *suite.name == *old.suite);
        let found = suites.find_map(|suite| Some((suite, suite.cases.iter().position(|case| *case.id == *old.case)?)));
        let Some((suite, at)) = found else {
            let is_loaded = self.today.suites.iter().any(|suite| *suite.name == *old.suite);
            let (count, reason) = match is_loaded {
                true => (&mut self.notes.gone, "its case is no longer in the suite"),
                false => (&mut self.notes.not_loaded, "its suite was not loaded"),
            };
            *count += 1;
            return Action::Skip(reason.to_owned());
        };
        let case = &suite.cases[at];
        match old.outcome {
            // These left nothing to grade.
            Outcome::Broken | Outcome::Stale | Outcome::Cancelled | Outcome::Skipped => {
                self.notes.without_evidence += 1;
                return Action::Keep(None);
            }
            Outcome::Passed | Outcome::Failed | Outcome::Undecided => {}
        }
        if let Some(reason) = &case.skip {
            return Action::Skip(reason.clone());
        }
        if case.code.is_some() || !case.broken.is_empty() {
            self.notes.code += 1;
            return Action::Keep(Some("its assertions are code that ran together with the agent".to_owned()));
        }
        Action::Grade(self.planned(old, suite, at))
    }

    fn planned(&mut self, old: &TrialRecord, suite: &Suite, at: usize) -> PlannedTrial {
        let agent = self.today.settings.agent_type(&old.agent);
        let (case, checks) = self.compiled(old, suite, &suite.cases[at], agent);
        let of = PlannedCase {
            suite: Arc::clone(&old.suite),
            case_id: Arc::clone(&old.case),
            arm_name: Arc::clone(&old.arm),
            file: suite.path.as_path().into(),
            directory: directory_of(suite).into(),
            position: at,
            state: Arc::clone(&self.state),
            arm: Arc::new(Arm { agent: old.agent.clone(), model: old.model.clone(), variant: old.variant.clone() }),
            agent: &AlreadyRun,
            argument: None,
            config: None,
            auto: old.auto_trials,
            model: ModelChoice::Vendor(old.model.clone()),
            setup: Arc::new(Setup {
                model: old.model.clone(),
                system_prompt: None,
                permission_mode: PermissionMode::BypassPermissions,
                closed_tools: None,
                approved_tools: Vec::new(),
                setting_sources: Vec::<SettingSource>::new(),
                reasoning_effort: None,
                max_turns: old.limits.turn_cap(),
                timeout_ms: old.limits.timeout_ms,
            }),
            // The recorded settings are kept.
            recorded_settings: Arc::default(),
            limits: Arc::new(limits(&old.limits, &case)),
            mocks: Arc::clone(&case.mocks),
            case,
            checks,
        };
        PlannedTrial { of: Arc::new(of), repetition: old.repetition }
    }

    fn compiled(
        &mut self,
        old: &TrialRecord,
        suite: &Suite,
        case: &Arc<Case>,
        agent: Option<&'static dyn Agent>,
    ) -> Compiled {
        let variant = old.variant.clone().unwrap_or_default();
        let key = [old.suite.to_string(), old.case.to_string(), variant, old.agent.clone()];
        if let Some(known) = self.compiled.get(&key) {
            return known.clone();
        }
        let case = with_threshold(case, self.today.settings.threshold);
        let case = as_arm(&case, old.variant.as_deref());
        let tools = agent.map_or_else(KnownTools::default, |agent| agent.known_tools(&case));
        let directory = directory_of(suite);
        let context = Context {
            directory: Some(Path::new(&directory)),
            scripts: Some(&self.state.scripts),
            known_tools: tools,
            requires_integrity: self.today.settings.requires_integrity,
            answers_in_text: agent.is_some_and(|agent| agent.description().answers_in_text),
            mocks: None,
            case: None,
        };
        let (checks, problems) = grade::compile(&case, &context);
        let is_known = |problem: &Diagnostic| self.problems.iter().any(|known| known == problem);
        let new: Vec<Diagnostic> = problems.into_iter().filter(|problem| !is_known(problem)).collect();
        self.problems.extend(new);
        let compiled = (case, Arc::new(checks));
        self.compiled.insert(key, compiled.clone());
        compiled
    }
}

/// Returns the limits of the recorded trial, with the current values of those that the suite sets.
fn limits(then: &Limits, case: &Case) -> Limits {
    let mut limits = then.clone();
    let is_suites = |from: &Option<String>| from.as_deref().is_none_or(|from| matches!(from, "scenario" | "skill"));
    if is_suites(&then.token_budget_from) {
        let own = case.token_budget.map(|budget| (budget, "scenario"));
        let skill = || case.subject.skill()?.token_budget.map(|budget| (budget, "skill"));
        let (budget, from) = own.or_else(skill).unzip();
        (limits.token_budget, limits.token_budget_from) = (budget, from.map(str::to_owned));
    }
    limits
}

/// Maximum number of names in a note.
const MAX_NAMES: usize = 5;

/// Counts of trials that are not graded again, by reason.
#[derive(Default)]
struct Notes {
    /// Trials whose suites were not loaded.
    not_loaded: usize,
    /// Trials whose cases no longer exist.
    gone: usize,
    /// Trials whose assertions are code.
    code: usize,
    /// Trials that were broken, cancelled or skipped.
    without_evidence: usize,
    /// Names of cases that are not in the run.
    others: Vec<String>,
}

impl Notes {
    /// Finds current cases that are not in the run.
    fn find_others(&mut self, suites: &[Suite], recorded: &[RecordedTrial], planned: &[TrialId]) {
        let is_known = |suite: &Suite, case: &Case| {
            recorded.iter().any(|trial| *trial.old.suite == *suite.name && *trial.old.case == *case.id)
                || planned.iter().any(|id| *id.suite == *suite.name && *id.case == *case.id)
        };
        let cases = suites.iter().flat_map(|suite| suite.cases.iter().map(move |case| (suite, case)));
        let others = cases.filter(|(suite, case)| !is_known(suite, case));
        self.others = others.map(|(suite, case)| format!("{}::{}", suite.name, case.id)).collect();
    }

    fn lines(&self) -> Vec<String> {
        let notes = [
            (
                self.not_loaded,
                "trial is skipped: its suite was not loaded",
                "trials are skipped: their suites were not loaded",
            ),
            (
                self.gone,
                "trial is skipped: its case is no longer in the suite",
                "trials are skipped: their cases are no longer in the suite",
            ),
            (
                self.code,
                "trial is kept as it was: its assertions are code, which ran together with the agent",
                "trials are kept as they were: their assertions are code, which ran together with the agent",
            ),
            (
                self.without_evidence,
                "trial is kept unchanged: it was broken, cancelled or skipped, so there is nothing to grade",
                "trials are kept as they were: broken, cancelled or skipped, they left nothing to grade",
            ),
        ];
        let counted = notes.into_iter().filter(|(count, ..)| *count > 0);
        let counted = counted.map(|(count, one, more)| format!("{count} {}", if count == 1 { one } else { more }));
        counted.chain(self.other_cases()).collect()
    }

    fn other_cases(&self) -> Option<String> {
        let names = self.others.iter().take(MAX_NAMES).map(String::as_str).collect::<Vec<_>>().join(", ");
        match self.others.len() {
            0 => None,
            1 => Some(format!("1 case is not in the run: {names}")),
            count if count > MAX_NAMES => Some(format!("{count} cases are not in the run: {names}, …")),
            count => Some(format!("{count} cases are not in the run: {names}")),
        }
    }
}
