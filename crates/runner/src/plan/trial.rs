//! One planned trial, and the queries about its agent and its case that planning and running share.

use std::collections::HashSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use agent::{Agent, Configured, RunState, Setup};
use grade::Check;
use mask::{Mask, Secrets};
use model::{
    Arm, AutoTrials, Case, Diagnostic, DiagnosticKind, Excerpt, Limits, MockedReply, Mocks, PlayedMock, SkillInfo,
    Suite, TrialId, WITHOUT_SKILL,
};
use serde_json::{Map, Value};

/// Prefix in the name of a model that answers from a file.
pub(crate) const SCRIPTED: &str = "scripted:";

/// Returns `problem` with a script at `setting`, which names it, if the script cannot be read at all.
pub(super) fn unread_script(problem: Diagnostic, what: &str, setting: Option<&Excerpt>) -> Diagnostic {
    match (&problem.kind, &problem.source) {
        (DiagnosticKind::UnreadFile(reason), Some(script)) => {
            let message = format!("cannot read {what} `{}`: {reason}", script.file);
            Diagnostic { source: setting.cloned(), ..Diagnostic::error(message) }
        }
        _ => match setting {
            Some(setting) if problem.source.is_none() => problem.at(setting.clone()),
            _ => problem,
        },
    }
}

/// Model of a trial.
#[derive(Debug, Clone)]
pub enum ModelChoice {
    /// A vendor's model, by name; `None` leaves the choice to the agent.
    Vendor(Option<String>),
    /// A scripted model.
    Scripted(Arc<llm::Script>),
}

/// One planned trial. It is small, because a plan may have a million of them.
#[derive(Clone)]
pub struct PlannedTrial {
    /// What it shares with the other repetitions.
    pub of: Arc<PlannedCase>,
    /// Number of the repetition, from 1.
    pub repetition: u64,
}

impl PlannedTrial {
    /// Returns the id of the trial.
    pub fn id(&self) -> TrialId {
        let [suite, case, arm] = self.group();
        TrialId { suite, case, arm, repetition: self.repetition }
    }
}

/// Returns the first of the trials of each case under each arm. What they share need not be read again for each of a
/// million repetitions.
pub fn first_of_each_case(trials: &[PlannedTrial]) -> impl Iterator<Item = &PlannedTrial> {
    let mut known = HashSet::new();
    trials.iter().filter(move |trial| known.insert(Arc::as_ptr(&trial.of).addr()))
}

/// A case under one arm, with everything that its trials need compiled.
#[derive(Clone)]
pub struct PlannedCase {
    /// Name of the suite.
    pub suite: Arc<str>,
    /// Id of the case.
    pub case_id: Arc<str>,
    /// Printed form of the arm.
    pub arm_name: Arc<str>,
    /// File of the suite.
    pub file: Arc<Path>,
    /// Folder of the suite; relative paths in the case start there.
    pub directory: Arc<Path>,
    /// The case as the user wrote it.
    pub case: Arc<Case>,
    /// Position of the case among all loaded ones, from 0.
    pub position: usize,
    /// The arm.
    pub arm: Arc<Arm>,
    /// The agent.
    pub agent: &'static dyn Agent,
    /// Argument after the agent's name.
    pub argument: Option<Arc<str>>,
    /// Configuration of the agent in the project.
    pub config: Option<Arc<Configured>>,
    /// Rule that decides the number of repetitions; `None` if it is fixed.
    pub auto: Option<AutoTrials>,
    /// The model.
    pub model: ModelChoice,
    /// Setup of the agent.
    pub setup: Arc<Setup>,
    /// Settings that records contain.
    pub recorded_settings: Arc<Map<String, Value>>,
    /// The limits in force.
    pub limits: Arc<Limits>,
    /// The compiled assertions; empty for a case that is not to be run.
    pub checks: Arc<Vec<Check>>,
    /// MCP servers and mocked programs.
    pub mocks: Arc<Mocks>,
    /// State of the run.
    pub state: Arc<RunState>,
}

impl Deref for PlannedTrial {
    type Target = PlannedCase;

    fn deref(&self) -> &PlannedCase {
        &self.of
    }
}

impl PlannedCase {
    /// Returns `true` if its trials serve only for comparison.
    pub fn is_baseline(&self) -> bool {
        self.arm.variant.as_deref() == Some(WITHOUT_SKILL)
    }

    /// Returns the suite, the case and the arm, which together identify it.
    pub fn group(&self) -> [Arc<str>; 3] {
        [&self.suite, &self.case_id, &self.arm_name].map(Arc::clone)
    }

    /// Returns the skill under test, in the form that records have.
    pub fn skill_info(&self) -> Option<SkillInfo> {
        self.case.subject.skill().map(|skill| SkillInfo {
            name: skill.name.clone(),
            version: skill.version.clone(),
            content_hash: skill.content_hash.clone(),
        })
    }

    /// Returns the mocks that are played by a model.
    pub(crate) fn played_mocks(&self) -> impl Iterator<Item = &PlayedMock> {
        let tools = self.mocks.mocked().flat_map(|(_, server)| &server.tools).chain(&self.mocks.commands);
        tools.flat_map(|tool| &tool.answers).filter_map(|answer| match &answer.reply {
            MockedReply::Played(played) => Some(&**played),
            _ => None,
        })
    }

    /// Returns the models that play the user and mocks; `None` stands for the judge.
    pub(crate) fn players(&self) -> impl Iterator<Item = Option<&str>> {
        let user = self.case.user.iter().map(|user| user.model.as_deref());
        user.chain(self.played_mocks().map(|mock| mock.model.as_deref()))
    }

    /// Returns `true` if the trial needs a sandbox.
    pub fn needs_sandbox(&self) -> bool {
        needs_sandbox(self.agent, &self.case)
    }
}

/// Help for a case that needs a sandbox and has none.
pub(super) const WITH_SANDBOX: &str =
    "a case has a sandbox if its `fixtures` have `git_init: true`, files, commands or variables";

/// Returns `true` if trials of `case` with `agent` need a sandbox.
pub(crate) fn needs_sandbox(agent: &dyn Agent, case: &Case) -> bool {
    // The files that it left behind are not known. Code may use a sandbox for itself.
    if agent.description().is_replay && case.code.is_none() {
        return false;
    }
    let fixtures = &case.fixtures;
    // To measure whether a skill helps, a folder without it is needed too.
    let has_skill = case.skill_eval.is_some() || case.subject.installed().is_some();
    let installs = has_skill && agent.description().folder_of(case.definition).is_some();
    installs || agent.description().needs_sandbox || !fixtures.is_empty() || !fixtures.env.is_empty()
}

pub(super) fn brings_tools(case: &Case) -> bool {
    case.all_tools().next().is_some()
}

/// Returns the absolute folder of `suite`: that of its file, or the suite itself if it is a folder.
pub(crate) fn directory_of(suite: &Suite) -> PathBuf {
    let directory = match suite.path.parent() {
        _ if suite.path.is_dir() => suite.path.as_path(),
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned())
}

/// Returns the printed name of an arm. It includes the agent's argument, as [`shown_argument`] returns it; otherwise
/// two files of answers would be the same arm.
pub(super) fn arm_name(arm: &Arm, argument: Option<&str>) -> String {
    let Some(argument) = argument else { return arm.to_string() };
    Arm { agent: format!("{}:{argument}", arm.agent), ..arm.clone() }.to_string()
}

/// Returns the part of an agent's argument that appears in the arm's name: the last part of a path or an address,
/// without secrets. Names of arms are ids, which are not masked later.
pub(super) fn shown_argument(agent: &str, argument: &str, secrets: &Secrets) -> String {
    // After the agent's name is removed, `http://host` is parsed as an address again.
    let mut masked = format!("{agent}:{argument}");
    Mask::of([]).with_secrets(secrets).string(&mut masked);
    // A user name without a password may be a token, which has no known shape.
    Mask::of([(&"argument".to_owned(), &masked.clone())]).string(&mut masked);
    let shown = masked.split_once(':').map_or(masked.as_str(), |(_, argument)| argument);
    // An address such as `http://host/` is represented by its host.
    let named = shown.trim_end_matches('/');
    named.rsplit('/').next().filter(|part| !part.is_empty()).unwrap_or(shown).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_an_arm_has_the_last_part_of_its_agents_argument() {
        let shown = |argument: &str| shown_argument("http", argument, &Secrets::default());
        assert_eq!(shown("http://127.0.0.1:3107/"), "127.0.0.1:3107");
        assert_eq!(shown("http://127.0.0.1:3107"), "127.0.0.1:3107");
        assert_eq!(shown("https://shop.example/api/chat"), "chat");
        assert_eq!(shown("answers/good.jsonl"), "good.jsonl");
        assert_eq!(shown("/"), "/");
    }
}
