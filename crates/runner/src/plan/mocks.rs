//! Checks that a case's MCP servers, mocked programs and earlier conversation can be given to its agent: an agent without
//! them would be judged by what it cannot do.

use agent::Agent;
use model::{Case, Diagnostic};

use super::planner::Planner;
use super::trial::needs_sandbox;

impl Planner<'_> {
    /// Reports the servers, mocks and earlier conversation of `case` that this agent or the sandboxes of the run cannot
    /// have.
    pub(super) fn check_mocks(&mut self, agent: &dyn Agent, case: &Case) {
        let settings = &self.request.settings.sandbox;
        let mocks = settings.mocks_of(case);
        if case.skip.is_some() {
            return;
        }
        if case.history.is_some() {
            self.check_accepts(agent, case, "history_file", |agent| agent.description().takes_history);
        }
        if !case.mocks.servers.is_empty() {
            self.check_accepts(agent, case, "mcp_servers", |agent| agent.description().takes_servers);
        }
        let has_sandbox = needs_sandbox(agent, case);
        if case.mocks.is_empty() && !mocks.is_empty() {
            let lacks_servers = !mocks.servers.is_empty() && !agent.description().takes_servers;
            if lacks_servers || !has_sandbox {
                let what = if has_sandbox { "MCP servers" } else { "MCP servers and mocked programs" };
                let message = format!("`{}` does not get the project's {what}", agent.name());
                let problem =
                    Diagnostic::warning(message).help("it cannot be given servers, or runs without a sandbox");
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
            if !has_sandbox {
                return;
            }
        }
        let kind = sandbox::find(&settings.kind).and_then(sandbox::mock_refusal);
        let refusal = if !mocks.is_empty() && !has_sandbox {
            let reason = format!("mocks need a sandbox, and `{}` runs without one", agent.name());
            Some((reason, "a case with `fixtures` always has a sandbox".to_owned()))
        } else {
            kind.filter(|_| mocks.has_mocks())
        };
        let problem = refusal.map(|(reason, help)| Diagnostic::error(reason).at(case.source.clone()).help(help));
        self.problems.extend(problem.filter(|problem| !self.problems.contains(problem)));
    }
}
