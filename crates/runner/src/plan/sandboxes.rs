//! Checks that cases can run in the run's kind of sandbox.

use agent::{Agent, Configured};
use model::{Case, Diagnostic};

use super::planner::Planner;
use super::trial::needs_sandbox;

impl Planner<'_> {
    /// Reports agents and remotes that the sandbox kind does not support.
    pub(super) fn check_sandbox_kind(&mut self, agent: &dyn Agent, config: Option<&Configured>, case: &Case) {
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
        if kind.is_remote() && agent.needs_own_ports(config) {
            let message = format!("programs in `{}` sandboxes cannot send their spans to this machine", kind.name());
            let help = "remove `traces`, or use `local`, `isolated`, `docker` or `podman` sandboxes";
            problems.push((message, help.to_owned()));
        }
        if settings.source_repo.is_some()
            && let Some((reason, help)) = sandbox::remote_refusal(kind, settings.remote_of(case))
        {
            problems.push((reason, help));
        }
        if let Some((message, help)) = sandbox::place_refusal(kind, &case.fixtures, &case.graded)
            && !self.problems.iter().any(|problem| problem.message == message)
        {
            problems.push((message, help));
        }
        if let Some(message) = sandbox::image_refusal(kind, &case.needs_image) {
            let problem = Diagnostic::warning(format!("`{}` is broken: {message}", case.id)).at(case.source.clone());
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        for (message, help) in problems {
            let problem = Diagnostic::error(message).at(case.source.clone()).help(help);
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}
