//! The agents of cases: finds them, and checks that they can run the cases.

use std::sync::Arc;

use agent::{AGENTS, Agent, CaseContext, Configured};
use grade::{Check, Reported};
use model::{
    Case, Diagnostic, Excerpt, Having, Node, SKILLS_ONLY, Severity, Suite, WITH_SKILL, WITHOUT_SKILL, nearest,
};

use super::compilation::SelectedCase;
use super::planner::Planner;
use super::settings::DEFAULT_AGENT;
use super::trial::{WITH_SANDBOX, brings_tools, needs_sandbox};
use super::variant::Variant;

/// Name of the format of suites that test MCP servers, and of the agent that is one.
pub(super) const SERVERS: &str = "mcp";

/// An agent found by its name.
pub(super) struct ResolvedAgent<'w> {
    pub(super) agent: &'static dyn Agent,
    /// Argument after the agent's name.
    pub(super) argument: Option<&'w str>,
    pub(super) config: Option<Arc<Configured>>,
}

impl Planner<'_> {
    /// Returns the agent to which `written` refers: one that the project configures, or a built-in one.
    pub(super) fn resolve_agent<'w>(&mut self, case: &Case, written: &'w str) -> Option<ResolvedAgent<'w>> {
        let settings = self.request.settings;
        let named = settings.configured.iter().find(|configured| configured.name == written);
        let Some(config) = named.or_else(|| self.configured_for(written)) else {
            let found = settings.embedded_agent(written).map(|agent| (agent, None)).or_else(|| agent::find(written));
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

    /// Returns the configured agent that the name of a built-in one means if that cannot run without an argument or a
    /// configuration: the project's default agent if it has this type, otherwise the only one of this type.
    fn configured_for(&self, written: &str) -> Option<&Arc<Configured>> {
        let found = self.of_type(written);
        let default = self.request.settings.defaults.agent.as_deref();
        let is_default = |config: &&&Arc<Configured>| Some(config.name.as_str()) == default;
        found.iter().find(is_default).or(found.first().filter(|_| found.len() == 1)).copied()
    }

    /// Returns the agents of the type `written` that the project configures; none if this built-in agent can run
    /// without a configuration.
    fn of_type(&self, written: &str) -> Vec<&Arc<Configured>> {
        let agent = agent::find(written).filter(|(agent, argument)| agent.name() == written && argument.is_none());
        let Some((agent, _)) = agent.filter(|(agent, _)| agent.description().takes_config) else { return Vec::new() };
        let is_of_type = |config: &&Arc<Configured>| {
            !config.is_of_suite && config.agent().is_ok_and(|found| found.name() == agent.name())
        };
        let found: Vec<_> = self.request.settings.configured.iter().filter(is_of_type).collect();
        let needs_config =
            !found.is_empty() && agent.check_argument(None, &self.state).iter().any(Diagnostic::is_error);
        if needs_config { found } else { Vec::new() }
    }

    /// Reports mistakes in configured agents that no selected case uses: a wrong value is wrong whoever uses it. Where the
    /// value of an environment variable is missing, nothing is known. A module of the user may need something that is only
    /// there where its agent is used, so its mistakes are warnings.
    pub(super) fn check_unused_agents(&mut self) {
        for config in self.request.settings.configured.iter() {
            if self.checked_agents.contains(&config.name) {
                continue;
            }
            let problems = match config.agent() {
                Ok(agent) => config.problems(agent, &self.state),
                Err(problem) => vec![*problem],
            };
            let help = format!("no selected case uses the agent `{}`", config.name);
            for problem in problems {
                let place = problem.source.as_ref();
                if !config.is_filled && place.is_none_or(is_unfilled) {
                    continue;
                }
                let module = config.node.get("module").filter(|module| module.as_str().is_some()).map(Node::excerpt);
                let is_in_settings = |place: &Excerpt| *place.file == *config.node.source.path;
                let is_value = place.is_some_and(is_in_settings) && place != module.as_ref();
                let severity = if is_value { problem.severity } else { Severity::Warning };
                self.problems.push(Diagnostic { severity, ..problem }.help(help.as_str()));
            }
        }
    }

    /// Warns if the default agent is used although the project configures agents and makes none of them its default.
    pub(super) fn warn_about_default_agent(&mut self, case: &Case) {
        let settings = self.request.settings;
        let is_named =
            !settings.arms.agents.is_empty() || case.runner.agent.is_some() || settings.defaults.agent.is_some();
        let own = settings.configured.iter().filter(|config| !config.is_of_suite);
        let own: Vec<String> = own.map(|config| format!("`{}`", config.name)).collect();
        if is_named || own.is_empty() || case.skip.is_some() || !case.broken.is_empty() {
            return;
        }
        let problem = Diagnostic::warning(format!("no agent is set, so `{DEFAULT_AGENT}` is used"));
        let problem = problem.of_missing(&["agent", "defaults"]);
        self.problems
            .push(problem.help(format!("the project configures {}: set `agent` to one of them", own.join(", "))));
    }

    /// Checks that `agent`, which the user calls `written`, can run `case_context`.
    pub(super) fn check_agent(&mut self, agent: &dyn Agent, written: &str, case_context: &CaseContext<'_>) {
        let (case, settings) = (case_context.case, self.request.settings);
        let name = case_context.config.map_or(written, |config| config.name.as_str());
        if self.checked_agents.insert(name.to_owned()) {
            let own = case.runner.agent.as_ref().filter(|(own, _)| own == written).map(|(_, source)| source);
            let is_of_project = settings.arms.agents.is_empty() && settings.defaults.agent.as_deref() == Some(written);
            let own = own.or_else(|| settings.defaults.agent_source.as_ref().filter(|_| is_of_project));
            let problems = match case_context.config {
                Some(config) => config.problems(agent, &self.state),
                None => {
                    let mut problems = agent.check_argument(case_context.argument, &self.state);
                    let names: Vec<_> =
                        self.of_type(written).iter().map(|config| format!("`{}`", config.name)).collect();
                    if let Some(problem) = problems.first_mut().filter(|_| !names.is_empty()) {
                        problem.help =
                            vec![format!("set `agent` to one that the project configures: {}", names.join(", "))];
                    }
                    problems
                }
            };
            self.problems.extend(problems.into_iter().map(|problem| match own {
                Some(source) if problem.source.is_none() => problem.at(source.clone()),
                _ => problem,
            }));
        }
        if case.messages.iter().any(|message| message.script.is_some()) {
            self.check_accepts(agent, case, "script", |agent| agent.description().takes_script);
        }
        if brings_tools(case) {
            self.check_accepts(agent, case, "tools", |agent| agent.description().takes_tools);
        }
        for problem in agent.check(case_context) {
            // Some diagnostics are about the whole file.
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }

    /// Warns about a suite whose cases have none of the arms of the run.
    pub(super) fn warn_without_arm(&mut self, suite: &Suite, case: &Case) {
        if !self.request.settings.arms.having.contains(&Having::Plugin) {
            return;
        }
        let message = format!("the suite `{}` does not run: it tests a skill, and not a plug-in", suite.name);
        let problem = Diagnostic::warning(message).at(Excerpt::of_file(Arc::clone(&case.source.file)));
        let problem = problem.help("the arms of the run have only the plug-in or nothing");
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Warns about the parts of a plug-in that `agent` does not load.
    pub(super) fn warn_about_plugin(&mut self, agent: &dyn Agent, case: &Case) {
        let is_loaded = agent.description().plugins_folder.is_some() || agent.description().skills_folder.is_none();
        let Some(skill) = case.subject.installed().filter(|_| !is_loaded) else { return };
        let Some(plugin) = &skill.plugin else { return };
        let loads_sub_agents = agent.description().sub_agents_folder.is_some();
        let count = if loads_sub_agents { 0 } else { plugin.sub_agents.len() };
        let sub_agents = (count > 0).then(|| model::text::counted(count, "sub-agent"));
        let others: Vec<String> = sub_agents.into_iter().chain(plugin.others.iter().cloned()).collect();
        if others.is_empty() {
            return;
        }
        let message = format!("`{}` does not load the whole plug-in `{}`", agent.name(), skill.name);
        let help = format!("it does not have: {}", others.join(", "));
        let problem = Diagnostic::warning(message).help(help);
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// Reports an agent that does not support `what`, which the case needs.
    pub(super) fn check_accepts(
        &mut self,
        agent: &dyn Agent,
        case: &Case,
        what: &str,
        accepts: fn(&dyn Agent) -> bool,
    ) {
        if accepts(agent) {
            return;
        }
        let others: Vec<&str> = AGENTS.iter().filter(|other| accepts(**other)).map(|other| other.name()).collect();
        self.problems.push(
            Diagnostic::error(format!("`{}` does not accept `{what}`", agent.name()))
                .at(case.source.clone())
                .help(format!("agents that do: {}", others.join(", "))),
        );
    }

    /// Reports assertions that inspect a sandbox if the trial has none.
    pub(super) fn check_sandbox_needs(&mut self, agent: &dyn Agent, case: &Case, checks: &[Check]) {
        if case.skip.is_some() || needs_sandbox(agent, case) {
            return;
        }
        for check in checks.iter().filter(|check| !check.needs().is_empty()) {
            if agent.description().is_replay {
                let message = format!("`{}` is undecided: `{}` has no files of the agent", check.kind(), agent.name());
                self.problems.push(Diagnostic::warning(message).at(check.source()));
                continue;
            }
            let message = format!("`{}` needs a sandbox, and `{}` runs without one", check.kind(), agent.name());
            let problem = Diagnostic::error(message).at(check.source());
            self.problems.push(problem.help(WITH_SANDBOX));
        }
    }

    /// Warns about `checks` of requests for permission that `agent` does not report. A replay may have them.
    pub(super) fn warn_about_permissions(&mut self, agent: &dyn Agent, checks: &[Check]) {
        let is_known = AGENTS.iter().any(|known| known.name() == agent.name());
        if !is_known || agent.description().reports_permissions || agent.description().is_replay {
            return;
        }
        for check in checks.iter().filter(|check| check.reported() == Some(Reported::Permissions)) {
            let kind = check.kind();
            let message =
                format!("`{kind}` is undecided: `{}` does not report its requests for permission", agent.name());
            let help = "agents that speak the Agent Client Protocol report them";
            self.problems.push(Diagnostic::warning(message).at(check.source()).help(help));
        }
    }

    /// Returns the case, marked as skipped if `agent` cannot be its subject: it tests an MCP server, and `agent` would read
    /// its calls as text, or both of its arms would be the same. If the suite itself sets the agent, that is an error. Any
    /// other agent may be intended for other suites.
    pub(super) fn skip_if_not_its_subject(
        &mut self,
        selected: &SelectedCase<'_>,
        agent: &dyn Agent,
        written: &str,
    ) -> Arc<Case> {
        let SelectedCase { suite, variant: Variant { name, case }, .. } = selected;
        let settings = self.request.settings;
        let compares_skill = matches!(name.as_deref(), Some(WITH_SKILL | SKILLS_ONLY | WITHOUT_SKILL));
        let is_compared = compares_skill && settings.arms.baseline != Some(false);
        let (reason, help) = if suite.format == SERVERS && agent.name() != SERVERS {
            let help = "only an agent `mcp:COMMAND` or `mcp:URL` can be its subject".to_owned();
            (format!("the suite tests an MCP server, and `{written}` is none"), vec![help])
        } else if is_compared && agent.description().folder_of(case.definition).is_none() {
            let what = case.definition.name();
            let others = AGENTS
                .iter()
                .filter(|other| other.description().folder_of(case.definition).is_some())
                .map(|other| other.name());
            let others = format!("agents that do: {}", others.collect::<Vec<_>>().join(", "));
            let without = "with `baseline` switched off, the cases run without the comparison".to_owned();
            let reason = format!("`{written}` does not read {what}s from files, so both arms would be the same");
            (reason, vec![others, without])
        } else {
            return Arc::clone(case);
        };
        if case.skip.is_some() {
            return Arc::clone(case);
        }
        let own = case.runner.agent.as_ref().filter(|_| settings.arms.agents.is_empty());
        if let Some((_, source)) = own {
            let problem = help.into_iter().fold(Diagnostic::error(reason).at(source.clone()), Diagnostic::help);
            self.problems.push(problem.clone());
            // Whatever else such an agent needs is not asked.
            let broken = case.broken.iter().cloned().chain([problem]).collect();
            return Arc::new(Case { broken, ..Case::clone(case) });
        }
        let problem = Diagnostic::warning(&*reason)
            .at(Excerpt::of_file(Arc::clone(&case.source.file)))
            .help(format!("the suite `{}` is skipped with it", suite.name))
            .help("set another `agent`, in the suite or for the run");
        self.skipped_suites.push(help.into_iter().fold(problem, Diagnostic::help));
        Arc::new(Case { skip: Some(reason), ..Case::clone(case) })
    }

    /// Reports an agent that does not exist.
    fn unknown_agent(&mut self, case: &Case, written: &str) {
        let name = written.split(':').next().unwrap_or(written);
        let names = AGENTS.iter().map(|agent| agent.name());
        let aliases = AGENTS.iter().flat_map(|agent| agent.description().aliases.iter().copied());
        let settings = self.request.settings;
        let own_names = settings.configured.iter().map(|configured| configured.name.as_str());
        let own_names = own_names.chain(settings.embedded.iter().map(|agent| agent.name()));
        let mut problem = Diagnostic::error(format!("unknown agent `{name}`"))
            .suggest(nearest(name, names.clone().chain(aliases).chain(own_names.clone())))
            .help(format!("agents: {}", names.clone().chain(own_names.clone()).collect::<Vec<_>>().join(", ")));
        let is_module = || ["js", "mjs", "mts", "ts"].iter().any(|end| written.ends_with(&format!(".{end}")));
        if llm::provider_of(written).is_some() {
            problem.help = vec![format!("`{written}` is a model: use the agent `chat` with it")];
        } else if is_module() {
            problem.help.insert(0, format!("a module is written `custom:{written}`"));
        } else if written.contains(' ') {
            problem.help.insert(0, format!("a program is written `subprocess:{written}`"));
        }
        let is_known = |part: &str| names.clone().chain(own_names.clone()).any(|known| known == part.trim());
        if name.contains(',') && name.split(',').all(is_known) {
            problem.help.insert(0, "this is one agent: give each of them on its own".to_owned());
        }
        // `localhost:3000`, which is not the agent `localhost` with the argument `3000`.
        if written.split_once(':').is_some_and(|(_, port)| port.starts_with(|first: char| first.is_ascii_digit())) {
            problem = problem.help(format!("an address begins with `http://`: write `http://{written}`"));
        }
        if settings.arms.agents.is_empty() {
            let own = case.runner.agent.as_ref().map(|(_, source)| source);
            if let Some(source) = own.or(settings.defaults.agent_source.as_ref()) {
                problem = problem.at(source.clone());
            }
        }
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }
}

/// Returns `true` if the text at `place` refers to an environment variable.
fn is_unfilled(place: &Excerpt) -> bool {
    let before = place.column.saturating_sub(1).saturating_sub(place.skipped);
    place.text.chars().skip(before).take(place.length).collect::<String>().contains("${env.")
}
