//! Work on a background thread.

use tokio::task::spawn_blocking;

use super::refusal::Refusal;

/// Does work on another thread than the one that serves the page.
///
/// # Errors
/// Those of the work.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Refusal::failed("internal error: the request failed")))
}
