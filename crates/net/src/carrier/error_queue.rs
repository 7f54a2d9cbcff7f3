//! Network errors about datagrams that have been sent: a socket's error queue (ip(7), `IP_RECVERR`).
//!
//! The kernel accepts only messages about a datagram with this socket's port as its source, and reports the datagram's
//! destination. Platforms other than Linux have no such queue, and an unreachable peer shows only by its silence.

use std::net::SocketAddr;

/// A message of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SocketError {
    /// Port unreachable: ICMP type 3 code 3 (RFC 792), ICMPv6 type 1 code 4 (RFC 4443 section 3.1).
    Unreachable(SocketAddr),
    /// Any other message of the network.
    Other,
    /// An error of the local kernel, for a datagram too large for the path.
    Local,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{enable, is_of_an_earlier_datagram, next};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::libc::{SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, SO_EE_ORIGIN_LOCAL, sock_extended_err};
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
    use rustix::io::Errno;

    use super::SocketError;

    /// Bytes for the error and for the control messages that the socket requests with each datagram.
    const CONTROL: usize = 512;

    /// Enables the queue. A dual-stack socket has to enable it for both address families.
    ///
    /// # Errors
    /// An error of the kernel.
    pub(crate) fn enable(socket: &UdpSocket) -> io::Result<()> {
        if socket.local_addr()?.is_ipv6() {
            setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
        }
        Ok(setsockopt(socket, sockopt::Ipv4RecvErr, &true)?)
    }

    /// Takes the first message of the queue; `None` if it is empty.
    pub(crate) fn next(socket: &UdpSocket) -> Option<SocketError> {
        let mut control = nix::cmsg_space!([u8; CONTROL]);
        // The contents of the failed datagram are not needed.
        let mut slices = [IoSliceMut::new(&mut [])];
        let flags = MsgFlags::MSG_ERRQUEUE | MsgFlags::MSG_DONTWAIT;
        let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut slices, Some(&mut control), flags).ok()?;
        let destination = message.address.as_ref().and_then(address);
        let error = message.cmsgs().ok().and_then(|mut parts| {
            parts.find_map(|part| match part {
                ControlMessageOwned::Ipv4RecvErr(error, _) | ControlMessageOwned::Ipv6RecvErr(error, _) => Some(error),
                _ => None,
            })
        });
        Some(match (error, destination) {
            (Some(error), Some(destination)) if is_port_unreachable(&error) => SocketError::Unreachable(destination),
            (Some(error), _) if error.ee_origin == SO_EE_ORIGIN_LOCAL => SocketError::Local,
            _ => SocketError::Other,
        })
    }

    /// Whether a call may have failed because of an earlier datagram: the kernel reports such an error once, to the
    /// next call.
    pub(crate) fn is_of_an_earlier_datagram(error: &io::Error) -> bool {
        // The errors to which the kernel maps ICMP and ICMPv6 (net/ipv4/icmp.c, net/ipv6/icmp.c).
        let made = [
            Errno::CONNREFUSED,
            Errno::HOSTUNREACH,
            Errno::NETUNREACH,
            Errno::HOSTDOWN,
            Errno::NONET,
            Errno::NOPROTOOPT,
            Errno::OPNOTSUPP,
            Errno::PROTO,
            Errno::ACCESS,
            Errno::MSGSIZE,
        ];
        Errno::from_io_error(error).is_some_and(|error| made.contains(&error))
    }

    const fn is_port_unreachable(error: &sock_extended_err) -> bool {
        matches!(
            (error.ee_origin, error.ee_type, error.ee_code),
            (SO_EE_ORIGIN_ICMP, 3, 3) | (SO_EE_ORIGIN_ICMP6, 1, 4)
        )
    }

    fn address(storage: &SockaddrStorage) -> Option<SocketAddr> {
        let v4 = || storage.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
        let v6 = || storage.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address)));
        v4().or_else(v6)
    }
}

#[cfg(not(target_os = "linux"))]
pub(crate) use without_queue::{enable, is_of_an_earlier_datagram, next};

#[cfg(not(target_os = "linux"))]
mod without_queue {
    use std::io;
    use std::net::UdpSocket;

    use super::SocketError;

    /// Does nothing: this system has no queue.
    pub(crate) const fn enable(_: &UdpSocket) -> io::Result<()> {
        Ok(())
    }

    /// Returns `None`: this system has no queue.
    pub(crate) const fn next(_: &UdpSocket) -> Option<SocketError> {
        None
    }

    /// Returns false: an unconnected socket gets no such errors.
    pub(crate) const fn is_of_an_earlier_datagram(_: &io::Error) -> bool {
        false
    }
}
