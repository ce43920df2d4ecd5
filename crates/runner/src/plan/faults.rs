//! Checks that the faults of a case can be injected: a fault that silently never occurs would look like a recovery.

use agent::{ADVERSARIES, Agent};
use model::{Case, Diagnostic};

use super::planner::Planner;
use super::trial::{ModelChoice, WITH_SANDBOX, needs_sandbox};

/// Assertion that needs a fault.
const RECOVERED: &str = "recovered";

impl Planner<'_> {
    /// Reports the faults of `case` that cannot be injected with this agent, its model and the sandboxes of the run.
    pub(super) fn check_faults(&mut self, agent: &dyn Agent, case: &Case, model: &ModelChoice) {
        if case.skip.is_some() {
            return;
        }
        let settings = self.request.settings;
        if case.canaries.as_ref().is_some_and(|canaries| canaries.is_on) && !needs_sandbox(agent, case) {
            let message = format!("`canaries` need a sandbox, and `{}` runs without one", agent.name());
            let problem = Diagnostic::error(message).at(case.source.clone());
            self.problems.push(problem.help(WITH_SANDBOX));
        }
        let recovers = case.assertions.iter().find(|made| made.kind.value == RECOVERED);
        if let Some(made) = recovers.filter(|_| case.faults.is_empty()) {
            let problem = Diagnostic::warning(format!("`{RECOVERED}` stays undecided: the case has no `faults`"));
            let problem = problem.at(made.node.source.excerpt(made.kind.span));
            let problem =
                problem.help("write the faults that the agent meets: `faults: [{ http_status: { status: 529 } }]`");
            self.problems.extend(Some(problem).filter(|problem| !self.problems.contains(problem)));
        }
        for fault in &case.faults {
            let name = fault.action.kind().name();
            let problem = if fault.action.requests().is_some() {
                // An adversary asks no model, so nothing can fail.
                let asks_none = ADVERSARIES.iter().any(|adversary| adversary.name() == agent.name());
                model_refusal(agent, model)
                    .filter(|_| !asks_none)
                    .map(|(reason, help)| (format!("`{name}` cannot be injected: {reason}"), help))
            } else if !needs_sandbox(agent, case) {
                let reason = format!("`{name}` needs a sandbox, and `{}` runs without one", agent.name());
                Some((reason, WITH_SANDBOX.to_owned()))
            } else {
                sandbox::fault_refusal(&settings.sandbox.kind, &fault.action)
                    .map(|(reason, help)| (format!("`{name}` cannot be injected: {reason}"), help))
            };
            let problem = problem.map(|(message, help)| Diagnostic::error(message).at(fault.source.clone()).help(help));
            if let Some(problem) = problem.filter(|problem| !self.problems.contains(problem)) {
                self.problems.push(problem);
            }
        }
    }
}

/// Returns the reason why faults do not reach an agent's model requests, and what to do about it.
fn model_refusal(agent: &dyn Agent, model: &ModelChoice) -> Option<(String, String)> {
    let description = agent.description();
    let name = agent.name();
    let help = "use a scripted model (`model: scripted:FILE`) with `claude-code`, `codex` or `opencode`, or the agent \
                `chat`";
    let reason = match model {
        ModelChoice::Scripted(_) if description.wire.is_some() || description.calls_script => return None,
        ModelChoice::Vendor(Some(_)) if description.asks_providers => return None,
        ModelChoice::Vendor(_) if description.wire.is_some() || description.asks_providers => {
            format!("`{name}` sends its model requests to the vendor and not through the gateway")
        }
        ModelChoice::Vendor(_) if description.calls_script => {
            format!("`{name}` sends its model requests to its own server")
        }
        _ => format!("the model requests of `{name}` are not visible"),
    };
    Some((reason, help.to_owned()))
}
