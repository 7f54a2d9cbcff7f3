//! Work that takes a while.

use tokio::task::spawn_blocking;

use super::refusal::Refusal;

/// Does work elsewhere than on the thread that serves the page.
///
/// # Errors
/// Those of the work.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Refusal> + Send + 'static,
) -> Result<T, Refusal> {
    let done = spawn_blocking(work).await;
    done.unwrap_or_else(|_| Err(Refusal::failed("the lab could not do that: its own fault")))
}
