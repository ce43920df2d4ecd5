//! Settings for runs with the built-in adversaries.

use agent::{ADVERSARIES, Agent};

/// Sandbox for adversaries, unless the project uses [`ISOLATED`].
const LOCAL: &str = "local";

/// Sandbox that also runs on this machine.
const ISOLATED: &str = "isolated";

/// Reason why judged assertions are not decided.
const NO_MODEL: &str = "an audit does not ask a model";

/// Replaces the agents with the adversaries, and makes sure that no model is asked.
pub(super) fn play(settings: &mut runner::Settings) {
    settings.embedded = ADVERSARIES.iter().map(|adversary| *adversary as &'static dyn Agent).collect();
    settings.arms.agents = ADVERSARIES.iter().map(|adversary| adversary.name().to_owned()).collect();
    settings.arms.models = vec![(None, "none".to_owned())];
    settings.arms.baseline = Some(false);
    // Adversaries do only what they are known to do, so they need no container or other machine.
    // An unknown kind stays, and is refused like anywhere else.
    if settings.sandbox.kind != ISOLATED && sandbox::find(&settings.sandbox.kind).is_some() {
        settings.sandbox.kind = LOCAL.to_owned();
    }
    // An adversary could change and publish what it finds.
    settings.sandbox.source_repo = None;
    // Nothing is recorded, so the state of a repository is read only for assertions that need it.
    settings.sandbox.records_repository = false;
    settings.judge.missing = Some(NO_MODEL.to_owned());
    (settings.retry.retries, settings.retry.reruns) = (0, 0);
    settings.providers = llm::Providers::default();
    settings.cassettes.mode = model::CassetteMode::Off;
}
