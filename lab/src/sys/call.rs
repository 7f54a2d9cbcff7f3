//! Return values of system calls as results.

use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Returns the result of a call that returns -1 for an error.
pub(super) fn check(returned: libc::c_int) -> io::Result<libc::c_int> {
    if returned == -1 { Err(io::Error::last_os_error()) } else { Ok(returned) }
}

/// Calls `setsockopt` with a plain value.
///
/// # Safety
/// `T` is the kernel's type of this option, without padding.
pub(super) unsafe fn set_option<T>(
    socket: BorrowedFd<'_>,
    level: libc::c_int,
    name: libc::c_int,
    value: &T,
) -> io::Result<()> {
    let length = libc::socklen_t::try_from(mem::size_of::<T>()).expect("options are small");
    // SAFETY: the pointer and the length are those of `value`; the caller guarantees that the kernel may read it so.
    check(unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, std::ptr::from_ref(value).cast(), length) })?;
    Ok(())
}

/// Returns a request about the interface `name`, which carries nothing yet.
pub(super) fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: all zeroes is a valid `ifreq`: it holds plain numbers and null pointers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from.cast_signed();
    }
    Ok(request)
}
