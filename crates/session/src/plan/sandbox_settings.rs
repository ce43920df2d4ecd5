//! Settings of sandboxes that the planned run lacks, or that have no effect on it.

use model::Diagnostic;
use runner::Plan;

use crate::session::Session;

/// Returns the problems with the project's settings of sandboxes, with the sandboxes of `plan`.
pub(super) fn wrong_sandbox_settings(session: &Session, plan: &Plan) -> impl Iterator<Item = Diagnostic> {
    [missing_image, unused_image, unused_limit].into_iter().filter_map(|find| find(session, plan))
}

/// Returns an error if the kind of sandbox needs an image and none is set.
fn missing_image(session: &Session, plan: &Plan) -> Option<Diagnostic> {
    let settings = &plan.settings.sandbox;
    // A wrong image is reported where it is read.
    let image = session.project.tree.as_ref().and_then(|tree| tree.get("sandbox")?.get("image"));
    let is_reported = image.is_some() && session.project.isolation.image.is_none();
    let is_used = !plan.trials.is_empty() && session.project.sandbox_fallback.is_none() && !is_reported;
    let reason = sandbox::find(&settings.kind).filter(|_| is_used)?.missing_image(&settings.isolation)?;
    let problem = Diagnostic::error(format!("`{}` sandboxes cannot be made here: {reason}", settings.kind));
    let written = session.project.defaults.sandbox.as_ref().filter(|set| set.value == settings.kind);
    Some(Diagnostic { source: written.map(|set| set.source.clone()), ..problem })
}

/// Returns a warning about the project's image if the kind of sandbox has no images, unless the run chose it instead of
/// the project.
fn unused_image(session: &Session, plan: &Plan) -> Option<Diagnostic> {
    let image = session.project.isolation.image.as_ref()?;
    let kind = &plan.settings.sandbox.kind;
    let has_images = sandbox::find(kind).is_none_or(|kind| kind.has_own_system() && !kind.is_remote());
    if has_images || !is_of_project(session, kind) {
        return None;
    }
    let problem = Diagnostic::warning(format!("`image` has no effect in `{kind}` sandboxes"));
    let other = "write `provider: docker` or `provider: podman`";
    Some(problem.at(image.source.clone()).help(match session.project.defaults.sandbox {
        Some(_) => format!("{other} instead of `provider: {kind}`"),
        None => format!("{other} beside it"),
    }))
}

/// Returns `true` if the project names this `kind` of sandbox, or none.
fn is_of_project(session: &Session, kind: &str) -> bool {
    session.project.defaults.sandbox.as_ref().is_none_or(|named| named.value == kind)
}

/// Returns a warning about the project's limits, or its `visible` paths, if the kind of sandbox has none, unless the run
/// chose it instead of the project.
fn unused_limit(session: &Session, plan: &Plan) -> Option<Diagnostic> {
    let limit = session.project.isolation.limit.as_ref()?;
    let is_unlimited = plan.settings.sandbox.kind == "local" && is_of_project(session, "local");
    let problem = Diagnostic::warning(format!("`{}` has no effect in `local` sandboxes", limit.value));
    let problem = problem.at(limit.source.clone()).help(match session.project.defaults.sandbox {
        Some(_) => "write `provider: isolated` instead of `provider: local`",
        None => "write `provider: isolated` in `sandbox`",
    });
    is_unlimited.then_some(problem)
}
