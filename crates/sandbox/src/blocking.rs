//! Work that blocks, such as work on files.

use super::SandboxError;

/// Runs file system work on a thread for blocking calls.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, SandboxError> + Send + 'static,
) -> Result<T, SandboxError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(_) => Err(SandboxError::Ending),
        },
    }
}
