//! Sandboxes that cannot be created: they are found before a run, and replaced if the project allows another kind.

use std::sync::Arc;
use std::time::Duration;

use model::Diagnostic;
use runner::Plan;
use sandbox::{Registry, SandboxFactory};

use crate::error::CliError;
use crate::machine;
use crate::project::ProjectContext;

/// Replaces the chosen kind of sandbox if the project allows another kind and a setting without which no such sandbox
/// can be created is missing. Returns a warning about it.
///
/// # Errors
/// Returns an error if this machine cannot be examined.
pub fn choose(settings: &mut runner::Settings, context: &ProjectContext) -> Result<Option<Diagnostic>, CliError> {
    let Some(fallback) = &context.project.sandbox_fallback else { return Ok(None) };
    let Some(kind) = sandbox::find(&settings.sandbox.kind) else { return Ok(None) };
    let missing = kind.missing(&machine::host()?, &settings.sandbox.isolation);
    Ok(missing.map(|missing| replace(settings, fallback, &missing, context)))
}

/// Creates a sandbox before the run if the project allows another kind, which replaces the chosen kind if that fails.
/// Returns a warning about it.
///
/// # Errors
/// Returns an error if this machine cannot be examined.
pub fn try_out(plan: &mut Plan, context: &ProjectContext) -> Result<Option<Diagnostic>, CliError> {
    let Some(fallback) = &context.project.sandbox_fallback else { return Ok(None) };
    if plan.settings.sandbox.kind == *fallback {
        return Ok(None);
    }
    let failure = create_one(plan)?;
    Ok(failure.map(|reason| replace(&mut plan.settings, fallback, &reason, context)))
}

/// Creates and removes a sandbox if a trial of the plan needs one. Returns the reason if this fails.
///
/// # Errors
/// Returns an error if this machine cannot be examined.
pub fn create_one(plan: &Plan) -> Result<Option<String>, CliError> {
    if !plan.trials.iter().any(|trial| trial.needs_sandbox()) {
        return Ok(None);
    }
    let (settings, host) = (&plan.settings.sandbox, machine::host()?);
    let limit = Duration::from_millis(settings.setup_timeout_ms);
    let failed = |error: std::io::Error| CliError::environment(format!("cannot wait for a sandbox: {error}"));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let created = runtime.block_on(async {
        let registry: Arc<Registry> = Registry::new();
        let factory = SandboxFactory::open_isolated(&settings.kind, &host, &registry, &settings.isolation)?;
        factory.try_out(limit).await
    });
    Ok(created.err().map(|error| error.to_string()))
}

fn replace(settings: &mut runner::Settings, by: &str, reason: &str, context: &ProjectContext) -> Diagnostic {
    let chosen = std::mem::replace(&mut settings.sandbox.kind, by.to_owned());
    let written = context.project.defaults.sandbox.as_ref().filter(|set| set.value == chosen);
    let warning = Diagnostic::warning(format!("{reason}: trials run in `{by}` sandboxes instead of `{chosen}`"))
        .help("agents can access everything on this machine that you can access");
    match written {
        Some(set) => warning.at(set.source.clone()),
        None => warning,
    }
}
