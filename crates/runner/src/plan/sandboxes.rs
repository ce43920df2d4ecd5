//! Checks that cases can run in the run's kind of sandbox.

use agent::{Agent, Configured};
use model::{Case, Diagnostic, Isolation};
use sandbox::SandboxKind;

use super::planner::Planner;
use super::trial::needs_sandbox;

/// How to get isolation.
pub const WITH_ISOLATION: &str =
    "use `isolated`, `docker` or `podman` sandboxes, such as with `sandbox: {provider: isolated}` in the configuration";

impl Planner<'_> {
    /// Reports agents and remotes that the sandbox kind does not support.
    pub(super) fn check_sandbox_kind(&mut self, agent: &dyn Agent, config: Option<&Configured>, case: &Case) {
        let settings = &self.request.settings.sandbox;
        let Some(kind) = sandbox::find(&settings.kind) else { return };
        if case.skip.is_some() {
            return;
        }
        self.check_isolation(kind, case);
        if !needs_sandbox(agent, case) {
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
            let place = case.fixtures.absolute_source.as_ref().or(case.graded.absolute_source.as_ref());
            let place = place.unwrap_or(&case.source);
            self.problems.push(Diagnostic::error(message).at(place.clone()).help(help));
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

    /// Reports a case that requires isolation that this kind of sandbox never has.
    fn check_isolation(&mut self, kind: &dyn SandboxKind, case: &Case) {
        if kind.isolates() {
            return;
        }
        let policy = self.request.settings.sandbox.network_of(case).cloned().unwrap_or_default();
        let is_closed = case.network.is_some() && !policy.is_open();
        let required: Vec<String> =
            case.required_isolation.iter().cloned().chain(is_closed.then(|| "network".to_owned())).collect();
        let isolation = Isolation::none(kind.name()).with_network(&policy);
        if let Err(missing) = isolation.check("it", &required) {
            let place = case.isolation_source.as_ref().unwrap_or(&case.source);
            let problem = Diagnostic::warning(format!("`{}` is broken: {missing}", case.id)).at(place.clone());
            let problem = problem.help(WITH_ISOLATION);
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
    }
}
