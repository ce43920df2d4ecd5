//! Warnings about files in the parents of the directory for sandboxes, which steer tools in every local sandbox.

use std::path::Path;

use model::Diagnostic;
use runner::Plan;
use sandbox::Host;

/// Returns a warning for each such file if trials of the plan run in local sandboxes. Other sandboxes do not show it.
pub fn warnings(plan: &Plan, host: &Host) -> Vec<Diagnostic> {
    if plan.settings.sandbox.kind != "local" || !plan.trials.iter().any(|trial| trial.needs_sandbox()) {
        return Vec::new();
    }
    let found = steering(&host.temp);
    found.into_iter().map(|(what, help)| Diagnostic::warning(what).help(help)).collect()
}

/// Describes each file in `temp` and its parents that steers tools, and what to do about it.
pub fn steering(temp: &Path) -> Vec<(String, &'static str)> {
    let found = sandbox::parent_files(temp).into_iter();
    let help = "remove it if a test left it there, or set TMPDIR to a directory below which there is none";
    found.map(|file| (format!("{} may use {} in every local sandbox", file.tool, file.path.display()), help)).collect()
}
