//! Selection of the address and port of an endpoint's UDP socket.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::Arc;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Protocol, Socket, Type};

use crate::error::NetError;

/// Where an endpoint binds its UDP socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bind {
    /// This address. Port 0 means any free port, and `[::]` every address of this host, including IPv4.
    Address(SocketAddr),
    /// Every address of this host, with a port from a range.
    Ports {
        /// The IP versions.
        family: Family,
        /// The first free port of these is used; 0 means any free port.
        ports: RangeInclusive<u16>,
    },
}

/// The IP versions in use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Family {
    #[default]
    /// IPv6 and IPv4, or the one supported by the host.
    Any,
    /// IPv4 only.
    V4,
    /// IPv6 only.
    V6,
}

impl Default for Bind {
    fn default() -> Self {
        Self::Ports { family: Family::Any, ports: 0..=0 }
    }
}

impl From<SocketAddr> for Bind {
    fn from(address: SocketAddr) -> Self {
        Self::Address(address)
    }
}

impl From<&Self> for Bind {
    fn from(bind: &Self) -> Self {
        bind.clone()
    }
}

impl From<Option<SocketAddr>> for Bind {
    fn from(address: Option<SocketAddr>) -> Self {
        address.map_or_else(Self::default, Self::Address)
    }
}

impl Bind {
    /// Binds the socket.
    ///
    /// # Errors
    /// [`NetError::PortsTaken`] if every port of the range is in use, [`NetError::Bind`] for other errors of the
    /// kernel.
    pub(crate) fn open(&self) -> Result<UdpSocket, NetError> {
        let (family, ports) = match self {
            Self::Address(address) => {
                return open_address(*address)
                    .map_err(|source| NetError::Bind { address: *address, source: Arc::new(source) });
            }
            Self::Ports { family, ports } => (*family, ports),
        };
        let ip = if family == Family::V4 { IpAddr::from(Ipv4Addr::UNSPECIFIED) } else { Ipv6Addr::UNSPECIFIED.into() };
        for port in ports.clone() {
            let address = SocketAddr::new(ip, port);
            let result =
                if family == Family::Any { open_address(address) } else { open(address, family == Family::V6) };
            match result {
                Ok(socket) => return Ok(socket),
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => {}
                Err(source) => return Err(NetError::Bind { address, source: Arc::new(source) }),
            }
        }
        Err(NetError::PortsTaken { ports: ports.clone() })
    }
}

fn open_address(address: SocketAddr) -> io::Result<UdpSocket> {
    match open(address, false) {
        // A host without IPv6: use IPv4.
        Err(error) if address.ip() == Ipv6Addr::UNSPECIFIED && no_such_family(&error) => {
            open((Ipv4Addr::UNSPECIFIED, address.port()).into(), false)
        }
        other => other,
    }
}

fn open(address: SocketAddr, only_v6: bool) -> io::Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.bind(&address.into())?;
    Ok(socket.into())
}

fn no_such_family(error: &io::Error) -> bool {
    matches!(Errno::from_io_error(error), Some(Errno::AFNOSUPPORT | Errno::ADDRNOTAVAIL))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ports(family: Family, ports: RangeInclusive<u16>) -> Bind {
        Bind::Ports { family, ports }
    }

    fn every_v4(port: u16) -> SocketAddr {
        (Ipv4Addr::UNSPECIFIED, port).into()
    }

    /// Binds sockets to `count` consecutive ports.
    fn taken(count: u16) -> Vec<UdpSocket> {
        for _ in 0..1000 {
            let first = open(every_v4(0), false).unwrap();
            let port = first.local_addr().unwrap().port();
            let others = (1..count).map(|next| open(every_v4(port.checked_add(next)?), false).ok());
            if let Some(sockets) = [Some(first)].into_iter().chain(others).collect() {
                return sockets;
            }
        }
        panic!("no {count} ports in a row are free");
    }

    #[test]
    fn the_first_free_port_of_a_range_is_taken_and_a_full_range_is_named() {
        let mut sockets = taken(4);
        let first = sockets[0].local_addr().unwrap().port();
        let range = first..=first + 3;
        let error = ports(Family::V4, range.clone()).open().unwrap_err();
        assert!(matches!(&error, NetError::PortsTaken { ports } if *ports == range), "{error:?}");
        assert_eq!(error.to_string(), format!("every UDP port from {first} to {} is taken", first + 3));
        let alone = ports(Family::V4, first..=first).open().unwrap_err();
        assert_eq!(alone.to_string(), format!("UDP port {first} is taken"));
        drop((sockets.remove(3), sockets.remove(2)));
        let socket = ports(Family::V4, range).open().unwrap();
        assert_eq!(socket.local_addr().unwrap(), every_v4(first + 2));
    }

    #[test]
    fn a_family_is_kept_to() {
        let v4 = ports(Family::V4, 0..=0).open().unwrap().local_addr().unwrap();
        assert!(v4.is_ipv4() && v4.port() != 0, "{v4}");
        let any = Bind::default().open().unwrap().local_addr().unwrap();
        match ports(Family::V6, 0..=0).open() {
            Ok(v6) => {
                let port = v6.local_addr().unwrap().port();
                assert!(any.is_ipv6());
                // The port is free for IPv4, so the socket is not bound for both.
                open(every_v4(port), false).unwrap();
            }
            // A host without IPv6.
            Err(error) => assert!(any.is_ipv4(), "{error}"),
        }
    }

    #[test]
    fn a_foreign_address_is_reported() {
        let address = "192.0.2.1:0".parse().unwrap();
        let error = Bind::from(Some(address)).open().unwrap_err();
        assert!(error.to_string().starts_with("cannot listen on 192.0.2.1:0: "), "{error}");
    }
}
