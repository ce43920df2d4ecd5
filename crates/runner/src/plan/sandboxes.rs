//! Checks that cases can run in the run's kind of sandbox.

use agent::Agent;
use model::{Case, Diagnostic};

use super::planner::Planner;
use super::trial::needs_sandbox;

impl Planner<'_> {
    /// Reports agents and remotes that the sandbox kind does not support.
    pub(super) fn check_sandbox_kind(&mut self, agent: &dyn Agent, case: &Case) {
        let settings = &self.request.settings.sandbox;
        let Some(kind) = sandbox::find(&settings.kind) else { return };
        if case.skip.is_some() || !needs_sandbox(agent, case) {
            return;
        }
        let mut problems = Vec::new();
        if kind.is_remote() && !agent.description().works_remotely {
            let message =
                format!("`{}` cannot work in `{}` sandboxes: it uses files on this machine", agent.name(), kind.name());
            let help = "use `isolated`, `docker` or `podman` sandboxes, which support every agent";
            problems.push((message, help.to_owned()));
        }
        if kind.is_remote() && agent.description().reads_model_variables && self.request.settings.observes() {
            let message = format!("programs in `{}` sandboxes cannot reach the gateway or a cassette", kind.name());
            let help = "set `gateway` and `cassette` to `off`, or use `isolated`, `docker` or `podman` sandboxes";
            problems.push((message, help.to_owned()));
        }
        if settings.source_repo.is_some()
            && let Some((reason, help)) = sandbox::remote_refusal(kind, settings.remote_of(case))
        {
            problems.push((reason, help));
        }
        for (message, help) in problems {
            let problem = Diagnostic::error(message).at(case.source.clone()).help(help);
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}
