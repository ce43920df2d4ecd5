//! Checks that a trial gets the isolation that its case and the project require.

use std::path::{Path, PathBuf};

use model::NetworkPolicy;
use sandbox::{Breakage, Sandbox};

use super::Attempt;

impl Attempt<'_> {
    /// Checks that the agent's sandbox does not show it the project or the suite, if the case or the project requires
    /// isolated files. Programs of the user may need folders that contain them.
    pub(super) fn check_shown(&self, sandbox: Option<&dyn Sandbox>) -> Result<(), Breakage> {
        const FILES: &str = "filesystem";
        let settings = &self.shared.settings.sandbox;
        let requires = |required: &[String]| required.iter().any(|layer| layer == FILES);
        let who = match (requires(&self.planned.case.required_isolation), requires(&settings.require)) {
            (true, _) => "the case",
            (_, true) => "the project",
            (false, false) => return Ok(()),
        };
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let shown = sandbox.map_or_else(Vec::new, |sandbox| sandbox.shown());
        let private: Vec<PathBuf> = settings.isolation.private.iter().map(|path| real(path)).collect();
        for path in shown.iter().chain(&settings.isolation.visible).map(|path| real(path)) {
            if private.iter().any(|private| private.starts_with(&path)) {
                let reason = format!(
                    "{who} requires `{FILES}` isolation, but the agent can read {}, a folder with tests or the record in \
                     it; put its program into a folder of its own, and list no folder with tests in `visible`",
                    path.display(),
                );
                return Err(Breakage::environment(reason).for_good());
            }
        }
        Ok(())
    }

    /// Checks that the run's isolation meets the case's requirements, and that the agent can work in it.
    pub(super) fn check_isolation(&self) -> Result<(), Breakage> {
        let policy = self.network_policy();
        let isolation = self.shared.factory.isolation().with_network(&policy);
        let never = |reason: String| Breakage::environment(reason).for_good();
        let kind = sandbox::find(&self.shared.settings.sandbox.kind);
        if let Some(reason) = kind.and_then(|kind| sandbox::image_refusal(kind, &self.planned.case.needs_image)) {
            return Err(never(reason));
        }
        let is_closed = self.planned.case.network.is_some() && !policy.is_open();
        let network = is_closed.then(|| "network".to_owned());
        let required: Vec<String> = self.planned.case.required_isolation.iter().cloned().chain(network).collect();
        isolation.check("the case", &required).map_err(|missing| never(missing.to_string()))?;
        let has_model = self.planned.agent.description().wire.is_some();
        if policy == NetworkPolicy::None && isolation.holds("network") && has_model {
            let reason =
                format!("`{}` reaches its model over the network, and `network` is `none`", self.planned.agent.name());
            return Err(never(reason));
        }
        Ok(())
    }
}
