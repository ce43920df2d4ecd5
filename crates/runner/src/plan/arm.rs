//! The arm for a case: its model, the setup of its agent, and its limits.

use std::path::Path;
use std::sync::Arc;

use agent::{Agent, Setup};
use model::{Arm, Case, Diagnostic, Limits, OnBudget, PermissionMode, Subject, nearest};

use super::agents::SERVERS;
use super::planner::Planner;
use super::trial::{ModelChoice, SCRIPTED, unread_script};

impl Planner<'_> {
    /// Returns the arm for `case` with `agent`, which the user calls `written`, and its model.
    pub(super) fn arm(&mut self, case: &Case, agent: &'static dyn Agent, written: &str) -> Option<(Arm, ModelChoice)> {
        let settings = self.request.settings;
        let given = settings
            .arms
            .models
            .iter()
            .rev()
            .find(|(name, _)| {
                name.as_deref().is_none_or(|name| {
                    [agent.name(), written].contains(&name) || agent.description().aliases.contains(&name)
                })
            })
            .map(|(_, model)| model.clone());
        let is_given = given.is_some();
        // A model belongs to the agent that is set together with it.
        let of_case = case.runner.model.clone().filter(|model| {
            let owner = case.runner.agent.as_ref().map(|(owner, _)| owner.as_str());
            owner.is_none_or(|owner| is_for(model, owner, written))
        });
        // If no agent is set anywhere, the model is for the default agent, even if that cannot use it.
        let is_default = settings.arms.agents.is_empty() && case.runner.agent.is_none();
        let of_project = settings.defaults.model.clone().filter(|_| !agent.description().is_free());
        let of_project = of_project.filter(|model| match &settings.defaults.agent {
            Some(owner) => is_for(model, owner, written),
            None => is_default || settings.refused(agent, model).is_none(),
        });
        let name = given
            .or_else(|| of_case.clone())
            .or_else(|| of_project.clone())
            .or_else(|| agent.description().default_model.map(str::to_owned));
        if let Some(reason) = name.as_deref().and_then(|name| settings.refused(agent, name)) {
            let place = if is_given {
                None
            } else if name == of_case {
                Some(case.runner.model_source.clone().unwrap_or_else(|| case.source.clone()))
            } else {
                settings.defaults.model_source.clone().filter(|_| name == of_project)
            };
            let problem = Diagnostic::error(format!("`{}` cannot use this model: {reason}", agent.name()));
            let help = match is_default && settings.defaults.agent.is_none() {
                true => format!("no agent is set, so `{}` is used; set `agent` next to the model", agent.name()),
                false => format!("set another `model` for `{}`", agent.name()),
            };
            let problem = Diagnostic { source: place, ..problem.help(help) };
            // The project's model is the same for every case.
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        let (name, model) = match name.as_deref().and_then(|name| name.strip_prefix(SCRIPTED)) {
            // A missing file was already reported when the case or the project was read.
            Some(file) if !is_given && !Path::new(file).is_file() => {
                // A broken case keeps its trials, so that the error is reported.
                return (!case.broken.is_empty()).then(|| {
                    let arm = Arm { agent: agent.name().to_owned(), model: name.clone(), variant: None };
                    (arm, ModelChoice::Vendor(None))
                });
            }
            Some(file) => {
                // The script is named as the user would write it, so that records from different machines are equal.
                let script = self.script(case, Path::new(file))?;
                (Some(format!("{SCRIPTED}{}", script.name())), ModelChoice::Scripted(script))
            }
            None => (name.clone(), ModelChoice::Vendor(name)),
        };
        Some((Arm { agent: agent.name().to_owned(), model: name, variant: None }, model))
    }

    /// Returns the script in `file`. It is read once, and a problem with it is reported once.
    fn script(&mut self, case: &Case, file: &Path) -> Option<Arc<llm::Script>> {
        if let Some(known) = self.scripts.get(file) {
            return known.clone();
        }
        let read = match (self.request.read_script)(file) {
            Ok(mut script) => {
                self.problems.extend(script.take_warnings());
                Some(Arc::new(script))
            }
            Err(problems) => {
                // A setting in a file that names a script has already been checked; this one is on the command line.
                let problems = problems.into_iter().map(|problem| problem.or_at(|| case.source.clone()));
                self.problems.extend(problems.map(|problem| unread_script(problem, "the script", None)));
                None
            }
        };
        self.scripts.insert(file.to_owned(), read.clone());
        read
    }

    /// Returns the setup of `agent` for `case`.
    pub(super) fn setup(&self, case: &Case, agent: &'static dyn Agent, arm: &Arm) -> Setup {
        let settings = self.request.settings;
        Setup {
            model: arm.model.clone(),
            system_prompt: settings
                .arms
                .system_prompt
                .clone()
                .or_else(|| system_prompt(&case.subject, agent.description().skills_folder))
                .or_else(|| case.system_prompt.clone()),
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
    pub(super) fn drop_effort(&mut self, case: &Case, agent: &dyn Agent, setup: &mut Setup) {
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
        let place = ["reasoning_effort", "reasoning"].into_iter().find_map(|key| case.runner.place_of(key));
        let place = place.unwrap_or(&case.source);
        self.problems.push(if is_own { problem.at(place.clone()) } else { problem });
    }

    /// Warns about settings of a case that have no effect with the `agent` that the case itself names.
    pub(super) fn warn_about_idle_settings(&mut self, case: &Case, agent: &dyn Agent) {
        let is_own = case.runner.agent.is_some() && self.request.settings.arms.agents.is_empty();
        if !is_own || agent.description().efforts != Some(&[]) {
            return;
        }
        if let Some(place) = case.runner.model_source.as_ref().filter(|_| agent.name() == SERVERS) {
            let problem = Diagnostic::warning("`model` has no effect, because an MCP server is tested without a model");
            let problem = problem.at(place.clone()).help("remove it");
            // It is that of all cases of the suite.
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        // The default restricts no agent.
        let is_default = case.runner.permission_mode == Some(PermissionMode::BypassPermissions);
        let keys = ["permission_mode", "allowed_tools_override", "setting_sources"];
        for key in keys.into_iter().skip(usize::from(is_default)) {
            if let Some(place) = case.runner.place_of(key) {
                let problem = Diagnostic::warning(format!("`{key}` has no effect with `{}`", agent.name()));
                self.problems
                    .push(problem.at(place.clone()).help("remove it, or use an agent that has such a setting"));
            }
        }
    }

    /// Returns the timeout in milliseconds, and the setting from which it comes.
    fn timeout(&self, case: &Case) -> (u64, &'static str) {
        let settings = self.request.settings;
        let clock = settings.timeout(case.timeout_ms, case.code.is_some());
        // A time budget that stops a trial acts as a timeout.
        let budget = settings.limits.budgets.duration_ms.filter(|_| settings.limits.on_budget != OnBudget::Warn);
        match budget.map(|budget| budget as u64) {
            Some(budget) if budget < clock.0 => (budget, settings.limits.max_duration_from),
            _ => clock,
        }
    }

    /// Returns the limits in force for `case`.
    pub(super) fn limits(&self, case: &Case, agent: &dyn Agent, setup: &Setup, model: &ModelChoice) -> Limits {
        let settings = self.request.settings;
        // Turns cost nothing for an agent without a model.
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
            costs_nothing: matches!(model, ModelChoice::Scripted(_)) || agent.description().is_free(),
            earlier: None,
        }
    }
}

/// Returns `true` if the agent `written` may use `model`, which was set together with the agent `owner`. Every agent
/// can use a scripted model.
fn is_for(model: &str, owner: &str, written: &str) -> bool {
    let name = |written: &str| agent::find(written).map(|(agent, _)| agent.name());
    model.starts_with(SCRIPTED) || owner == written || name(owner).is_some_and(|owner| name(written) == Some(owner))
}

/// Returns the addition to the agent's system prompt: the skill's body and the folder with its files, or the prompt
/// unchanged.
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
