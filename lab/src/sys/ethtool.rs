//! Offloads of an interface.

use std::io;
use std::os::fd::AsRawFd;

use rustix::net::{AddressFamily, SocketType, socket};

use super::call::{check, interface_request};

/// Numbers of `linux/ethtool.h`: the commands for transmit checksums, TCP segmentation offload, and generic
/// segmentation and receive offload.
const SWITCHES: [u32; 4] = [0x17, 0x1f, 0x24, 0x2c];
const SIOCETHTOOL: libc::Ioctl = 0x8946;

#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// Switches off the offloads that would let packets larger than the MTU, or without a checksum, onto an interface of
/// the current namespace.
///
/// # Errors
/// An interface that does not exist, or a device whose offloads cannot be switched.
pub(crate) fn switch_offloads_off(interface: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    for command in SWITCHES {
        let mut value = Value { command, data: 0 };
        let mut request = interface_request(interface)?;
        request.ifr_ifru.ifru_data = std::ptr::from_mut(&mut value).cast();
        // SAFETY: the request names an interface by a terminated string, and points to a value of this command that
        // outlives the call.
        check(unsafe { libc::ioctl(socket.as_raw_fd(), SIOCETHTOOL, &raw mut request) })?;
    }
    Ok(())
}
