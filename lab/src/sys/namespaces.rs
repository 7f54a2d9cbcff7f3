//! Namespaces of the calling thread or process.

use std::io;

use rustix::thread::UnshareFlags;

use super::call::check;

/// Gives the process a user namespace, in which it has the capabilities of root. The process must have one thread.
///
/// # Errors
/// `InvalidInput` with more than one thread, `PermissionDenied` or `StorageFull` if the kernel forbids it to ordinary
/// users.
pub(crate) fn new_user_namespace() -> io::Result<()> {
    // SAFETY: descriptors stay shared.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWUSER) }?)
}

/// Gives the calling thread a network of its own.
///
/// # Errors
/// `PermissionDenied` without `CAP_SYS_ADMIN`.
pub(crate) fn new_network() -> io::Result<()> {
    // SAFETY: descriptors stay shared.
    Ok(unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }?)
}

/// Gives the calling thread a network and mounts of its own, and its children process numbers of their own.
///
/// # Errors
/// `PermissionDenied` without `CAP_SYS_ADMIN`.
pub(crate) fn new_host() -> io::Result<()> {
    let flags = UnshareFlags::NEWNET | UnshareFlags::NEWNS | UnshareFlags::NEWPID;
    // SAFETY: descriptors stay shared.
    Ok(unsafe { rustix::thread::unshare_unsafe(flags) }?)
}

/// Lets the kernel reap the children of this process, its own and those that it inherits as the first process of its
/// namespace.
///
/// # Errors
/// None known.
pub(crate) fn reap_children() -> io::Result<()> {
    // SAFETY: ignoring a signal runs no code.
    if unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) } == libc::SIG_ERR {
        return check(-1).map(drop);
    }
    Ok(())
}
