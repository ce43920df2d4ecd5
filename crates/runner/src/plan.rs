//! PLAN: turns suites and settings into the trials that will run, with everything compiled and checked. Planning does
//! not start anything, and reports all problems together.

mod agents;
mod arm;
mod compilation;
mod costs;
mod decisions;
mod faults;
mod judging;
mod mocks;
mod order;
mod pairwise;
mod planner;
mod recorded_settings;
mod request;
mod sandboxes;
mod scripts;
mod settings;
pub(crate) mod trial;
mod variant;

use std::collections::HashSet;
use std::sync::Arc;

use model::{AgentInfo, Diagnostic, Outcome, SkillInfo, Summary, TrialRecord};

use self::planner::Planner;
use crate::cleanup::RemoteCleaner;
use crate::hook::Hook;
use crate::place::Place;

pub use self::decisions::PlannedDecision;
pub(crate) use self::decisions::contract;
pub use self::judging::{Judging, judged};
pub use self::pairwise::PairwiseJudging;
pub use self::request::{PlanRequest, ReadScript};
pub use self::sandboxes::WITH_ISOLATION;
pub use self::settings::{
    ArmSettings, CassetteSettings, Defaults, Fork, JudgeSettings, LimitNames, LimitSettings, RetryOn, RetrySettings,
    SandboxSettings, Settings,
};
pub(crate) use self::trial::directory_of;
pub use self::trial::{ModelChoice, PlannedCase, PlannedTrial, first_of_each_case};
pub(crate) use self::variant::{as_arm, with_threshold};

/// A planned run.
pub struct Plan {
    /// The trials in order.
    pub trials: Vec<PlannedTrial>,
    /// Questions that decide how many trials run; empty if all of them run.
    pub decisions: Vec<PlannedDecision>,
    /// The settings.
    pub settings: Settings,
    /// The judge.
    pub judging: Arc<Judging>,
    /// The agents of the trials.
    pub agents: Vec<AgentInfo>,
    /// The skills of the trials, by name.
    pub skills: Vec<SkillInfo>,
    /// Number of cases that were loaded, before selection.
    pub cases_loaded: usize,
    /// Number of cases that match the selection, before it is limited to listed cases and to a shard.
    pub cases_matched: usize,
    /// The commands around trials; planning sets none.
    pub hook: Option<Arc<dyn Hook>>,
    /// Removes what trials create on real remotes; planning leaves it unset.
    pub cleaner: Option<Arc<dyn RemoteCleaner>>,
    /// Place where the trials run; planning sets none, so that they run in this process.
    pub place: Option<Arc<dyn Place>>,
    /// The part of the run that was already run; planning sets none.
    pub earlier: Earlier,
}

/// The part of a resumed run that was already run.
#[derive(Debug, Clone, Default)]
pub struct Earlier {
    /// Number of its last event; 0 for a new run.
    pub last_seq: u64,
    /// Counts of its finished trials.
    pub summary: Summary,
    /// Its duration in milliseconds.
    pub duration_ms: u64,
    /// Results of finished trials whose number is not fixed.
    pub results: Vec<TrialResult>,
}

/// Result of a finished trial, reduced to what decides whether more trials run.
#[derive(Debug, Clone)]
pub struct TrialResult {
    /// Suite, case and arm.
    pub(crate) group: [Arc<str>; 3],
    /// Number of the repetition, from 1.
    pub(crate) repetition: u64,
    /// Outcome of the first attempt that is not broken.
    pub(crate) outcome: Outcome,
    /// Cost in US dollars of all attempts, judges and simulated users, if known.
    pub(crate) cost_usd: Option<f64>,
}

impl From<&TrialRecord> for TrialResult {
    fn from(record: &TrialRecord) -> Self {
        let attempts = record.attempts.iter().map(|attempt| attempt.cost_usd);
        let asides = [record.judge, record.user].into_iter().flatten().map(|aside| aside.cost_usd);
        Self {
            group: [&record.suite, &record.case, &record.arm].map(Arc::clone),
            repetition: record.repetition,
            outcome: record.first_outcome(),
            cost_usd: attempts.chain(asides).flatten().reduce(|sum, cost| sum + cost),
        }
    }
}

impl Earlier {
    /// Returns its cost in US dollars, as far as it is known, including judges and simulated users.
    pub(crate) fn cost_usd(&self) -> f64 {
        let asides = [self.summary.judge, self.summary.user].into_iter().flatten().filter_map(|aside| aside.cost_usd);
        self.summary.cost_usd.into_iter().chain(asides).sum()
    }
}

/// Plans a run. The plan is complete only if no diagnostic is an error.
pub fn plan(request: &PlanRequest<'_>) -> (Plan, Vec<Diagnostic>) {
    let cases_loaded = request.suites.iter().map(|suite| suite.cases.len()).sum();
    let (mut trials, mut problems, cases_matched) = Planner::new(request).run();
    let decisions = decisions::decisions(&mut trials, request, &mut problems);
    order::interleave(&mut trials, request.settings.arms.seed);
    let mut reported = HashSet::new();
    problems.retain(|problem| reported.insert(problem.to_string()));
    let mut agents: Vec<AgentInfo> = Vec::new();
    let mut skills: Vec<SkillInfo> = Vec::new();
    for trial in first_of_each_case(&trials) {
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
    // By name, so that merged shards list them in the order of the whole run.
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    let judging = Arc::new(Judging::plan(request, &trials, &mut problems));
    let mut settings = request.settings.clone();
    settings.judge.model = judging.model().map(str::to_owned).or(settings.judge.model);
    (
        Plan {
            trials,
            decisions,
            settings,
            judging,
            agents,
            skills,
            cases_loaded,
            cases_matched,
            hook: None,
            cleaner: None,
            place: None,
            earlier: Earlier::default(),
        },
        problems,
    )
}

#[cfg(test)]
mod tests;
