//! The kernel's information about a TCP connection.

use std::io;
use std::mem;
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;

use super::call::check;

/// Bytes of the headers of IPv4 and TCP, without options.
const HEADERS: u32 = 40;
/// The bit of `tcpi_options` for timestamps (`TCPI_OPT_TIMESTAMPS` of `linux/tcp.h`).
const TIMESTAMPS: u8 = 1;

/// The state of a sending connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TcpInfo {
    /// Unacknowledged IP bytes: segments times their largest size.
    pub(crate) in_flight: u64,
    /// Segments retransmitted so far.
    pub(crate) resent: u64,
}

/// Asks the kernel (`tcp(7)`, `TCP_INFO`).
///
/// # Errors
/// Those of `getsockopt`.
pub(crate) fn of(socket: &TcpStream) -> io::Result<TcpInfo> {
    // SAFETY: all zeroes is a valid `tcp_info`: it holds plain numbers.
    let mut info: libc::tcp_info = unsafe { mem::zeroed() };
    let mut length = libc::socklen_t::try_from(mem::size_of_val(&info)).expect("it is small");
    // SAFETY: the pointers are valid for the call, and the kernel writes at most `length` bytes.
    check(unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            std::ptr::from_mut(&mut info).cast(),
            &raw mut length,
        )
    })?;
    // The kernel's largest segment is without any header.
    let options = if info.tcpi_options & TIMESTAMPS == 0 { 0 } else { 12 };
    let in_flight = u64::from(info.tcpi_unacked) * u64::from(info.tcpi_snd_mss + HEADERS + options);
    Ok(TcpInfo { in_flight, resent: u64::from(info.tcpi_total_retrans) })
}
