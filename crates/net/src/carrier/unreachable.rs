//! What the network says of datagrams that have left: a socket's queue of errors (ip(7), `IP_RECVERR`).
//!
//! The kernel takes only messages about a datagram with this socket's port as its source, and gives the address that the datagram went to.
//! Elsewhere than on Linux there is no such queue, and silence alone tells.

use std::net::SocketAddr;

/// One of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// Nobody listens there: ICMP type 3 code 3 (RFC 792), ICMPv6 type 1 code 4 (RFC 4443 section 3.1).
    Unreachable(SocketAddr),
    /// Any other message of the network.
    Other,
    /// The kernel's own word, of a datagram too large for the path.
    Local,
}

#[cfg(target_os = "linux")]
pub(crate) use linux::{ask, is_of_an_earlier_datagram, next};

#[cfg(target_os = "linux")]
mod linux {
    use std::io::{self, IoSliceMut};
    use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
    use std::os::fd::AsRawFd;

    use nix::libc::{SO_EE_ORIGIN_ICMP, SO_EE_ORIGIN_ICMP6, SO_EE_ORIGIN_LOCAL, sock_extended_err};
    use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt, sockopt};
    use rustix::io::Errno;

    use super::Told;

    /// Bytes for the error and for what the socket asks to be told with each datagram.
    const CONTROL: usize = 512;

    /// Asks for the queue. A socket for both kinds of address has to ask for both.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn ask(socket: &UdpSocket) -> io::Result<()> {
        if socket.local_addr()?.is_ipv6() {
            setsockopt(socket, sockopt::Ipv6RecvErr, &true)?;
        }
        Ok(setsockopt(socket, sockopt::Ipv4RecvErr, &true)?)
    }

    /// Takes the first of the queue; `None` when it is empty.
    pub(crate) fn next(socket: &UdpSocket) -> Option<Told> {
        let mut control = nix::cmsg_space!([u8; CONTROL]);
        // Of the datagram that it is about nothing is wanted.
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
            (Some(error), Some(destination)) if is_port_unreachable(&error) => Told::Unreachable(destination),
            (Some(error), _) if error.ee_origin == SO_EE_ORIGIN_LOCAL => Told::Local,
            _ => Told::Other,
        })
    }

    /// Whether a call may have failed for a datagram that left before: the kernel says so once, to whoever calls next.
    pub(crate) fn is_of_an_earlier_datagram(error: &io::Error) -> bool {
        // What the kernel makes of ICMP and ICMPv6 (net/ipv4/icmp.c, net/ipv6/icmp.c).
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
pub(crate) use elsewhere::{ask, is_of_an_earlier_datagram, next};

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::io;
    use std::net::UdpSocket;

    use super::Told;

    /// There is none to ask for.
    pub(crate) const fn ask(_: &UdpSocket) -> io::Result<()> {
        Ok(())
    }

    /// It is always empty.
    pub(crate) const fn next(_: &UdpSocket) -> Option<Told> {
        None
    }

    /// A socket without a peer of its own hears of none.
    pub(crate) const fn is_of_an_earlier_datagram(_: &io::Error) -> bool {
        false
    }
}
