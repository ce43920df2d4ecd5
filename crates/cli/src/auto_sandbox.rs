//! The sandbox `auto`: the most isolated kind that this machine can create without an image or an account.

use crate::error::CliError;
use crate::machine;

/// Name of the setting's value.
pub const AUTO_SANDBOX: &str = "auto";

/// Replaces the sandbox `auto` with `isolated` if this machine can create such sandboxes, otherwise with `local`.
/// Returns the note that says why.
///
/// # Errors
/// Returns an error if this machine cannot be examined.
pub fn choose(settings: &mut runner::Settings) -> Result<Option<String>, CliError> {
    if settings.sandbox.kind != AUTO_SANDBOX {
        return Ok(None);
    }
    let refusal = match sandbox::find("isolated") {
        Some(kind) => kind.open(&machine::host()?, &sandbox::Registry::new(), &settings.sandbox.isolation).err(),
        None => None,
    };
    let kind = if refusal.is_none() { "isolated" } else { "local" };
    kind.clone_into(&mut settings.sandbox.kind);
    Ok(refusal.map(|reason| {
        format!("`sandbox: auto` uses `local` sandboxes, in which agents can reach your files: {reason}")
    }))
}
