//! Real-time priority.

use std::io;

use super::call::check;

/// Gives the calling thread priority over all ordinary threads (`SCHED_FIFO`, `sched(7)`), but not its children.
///
/// # Errors
/// `PermissionDenied` for users without `CAP_SYS_NICE` or a limit on real-time priority (`ulimit -r`).
pub(crate) fn make_real_time() -> io::Result<()> {
    // The lowest priority is enough: it is above every thread that is not real-time, and below the kernel's real-time
    // threads.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the pointer is to a value that lives through the call; 0 is the calling thread.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters) })?;
    Ok(())
}
