//! The kind of sandbox: `auto`, and kinds that cannot be created and are replaced if the project allows another one.

use std::sync::Arc;
use std::time::Duration;

use model::Diagnostic;
use runner::Plan;
use sandbox::{Host, Registry, SandboxFactory};

use crate::error::Error;
use crate::session::Session;

/// Name of the setting's value for the most isolated kind that this machine can create without an image or an account.
pub const AUTO_SANDBOX: &str = "auto";

/// Replaces the sandbox `auto` with `isolated` if this machine can create such sandboxes, otherwise with `local`.
/// Returns the note that says why.
pub fn choose_auto(settings: &mut runner::Settings, host: &Host) -> Option<String> {
    if settings.sandbox.kind != AUTO_SANDBOX {
        return None;
    }
    let kind = sandbox::find("isolated");
    let refusal = kind.and_then(|kind| kind.open(host, &Registry::new(), &settings.sandbox.isolation).err());
    let kind = if refusal.is_none() { "isolated" } else { "local" };
    kind.clone_into(&mut settings.sandbox.kind);
    refusal
        .map(|reason| format!("`sandbox: auto` uses `local` sandboxes, in which agents can reach your files: {reason}"))
}

/// Replaces the chosen kind of sandbox if the project allows another kind and a setting without which no such sandbox
/// can be created is missing. Returns a warning about it.
pub fn choose(settings: &mut runner::Settings, session: &Session) -> Option<Diagnostic> {
    let fallback = session.project.sandbox_fallback.as_ref()?;
    let missing = sandbox::find(&settings.sandbox.kind)?.missing(&session.host, &settings.sandbox.isolation)?;
    let warning = replaced(&settings.sandbox.kind, fallback, &missing, session);
    fallback.clone_into(&mut settings.sandbox.kind);
    Some(warning)
}

/// Creates and removes a sandbox if a trial of the plan needs one. Returns the reason if this fails.
///
/// # Errors
/// Returns an error if it is not possible to wait for a sandbox.
pub fn try_out(plan: &Plan, host: &Host) -> Result<Option<String>, Error> {
    if !plan.trials.iter().any(|trial| trial.needs_sandbox()) {
        return Ok(None);
    }
    let settings = &plan.settings.sandbox;
    let limit = Duration::from_millis(settings.setup_timeout_ms);
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let created = runtime.block_on(async {
            let registry: Arc<Registry> = Registry::new();
            let factory = SandboxFactory::open_isolated(&settings.kind, host, &registry, &settings.isolation)?;
            factory.try_out(limit).await
        });
        Ok(created.err().map(|error| error.to_string()))
    };
    // The caller may be in a runtime of its own, in which another one cannot wait.
    let waited = std::thread::scope(|scope| scope.spawn(wait).join());
    let waited = waited.unwrap_or_else(|_| Err(std::io::Error::other("the thread panicked")));
    waited.map_err(|error: std::io::Error| Error::environment(format!("cannot wait for a sandbox: {error}")))
}

/// Returns the warning about a kind of sandbox that is replaced.
pub fn replaced(chosen: &str, by: &str, reason: &str, session: &Session) -> Diagnostic {
    let written = session.project.defaults.sandbox.as_ref().filter(|set| set.value == chosen);
    let warning = Diagnostic::warning(format!("{reason}: trials run in `{by}` sandboxes instead of `{chosen}`"))
        .help("agents can access everything on this machine that you can access");
    match written {
        Some(set) => warning.at(set.source.clone()),
        None => warning,
    }
}
