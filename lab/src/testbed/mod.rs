//! Hosts: network namespaces in which real programs run, and their cables to the emulator.
//!
//! No hosts remain after this process, even if it is killed: namespaces have no names, and the kernel kills the
//! processes in them.

mod directory;
mod host;
mod netlink;
mod place;
mod ports;
mod privilege;

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use directory::{RunDirectory, clean};
pub(crate) use host::MAC;
pub use host::{Host, keep};
use netlink::{Netlink, interface_index};
use netlink_packet_route::link::LinkFlags;
pub use place::InterfaceCounts;
use place::NamespaceThread;
pub(crate) use ports::Protocol;
pub use privilege::{NamespacesDenied, acquire};

use crate::sys::ethtool;
use crate::sys::namespaces::new_network;
use crate::sys::packet::PacketSocket;
use crate::sys::tun::Tun;
pub use crate::sys::tun::TunError;

/// The name of the other end of a link.
const PEER_NAME: &str = "peer";
/// Capacity of a TUN device in packets of any size: a stall of tens of milliseconds should not fill it.
const TUN_QUEUE: u32 = 10_000;

/// Hosts without connections: the code that connects them takes their cables.
#[derive(Debug)]
pub struct Testbed {
    hosts: Vec<Host>,
    /// The namespace in which the cables end.
    wires: NamespaceThread,
    /// Keeps the devices of fast cables until they have been counted; empty for others.
    tunnels: Vec<Arc<Tun>>,
    /// Holds the `/etc/hosts` of each.
    _directory: RunDirectory,
}

/// An error in creating a testbed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// No directory for the files of hosts.
    #[error("cannot create a directory for a run in {}: {source}", .directory.display())]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// The error.
        source: io::Error,
    },
    /// No fast cable to a host.
    #[error(transparent)]
    Tun(#[from] TunError),
    /// The kernel denies a namespace or an interface.
    #[error("cannot create the network of host {host}: {source}")]
    Host {
        /// The host's name.
        host: String,
        /// The error.
        source: io::Error,
    },
}

impl Testbed {
    /// Creates a host for each of `names`, and a cable of this kind to each. `pairs` are the hosts that are `peer` to
    /// each other, as indices into `names`. `keeper` is a program that calls [`keep`] when its one argument is
    /// `keep-host`: this one.
    ///
    /// # Errors
    /// A kernel that does not let this process make namespaces: see [`acquire`]. For fast cables also a user without
    /// TUN devices.
    pub fn new(
        names: &[String],
        pairs: &[(usize, usize)],
        kind: CableKind,
        keeper: &Path,
    ) -> Result<(Self, Vec<Cable>), TestbedError> {
        let in_directory = |source| TestbedError::Directory { directory: std::env::temp_dir(), source };
        let directory = RunDirectory::new().map_err(in_directory)?;
        let failed = |host: &str| {
            let host = host.to_owned();
            move |source| TestbedError::Host { host, source }
        };
        let (wires, ()) = NamespaceThread::new("wires", new_network).map_err(failed("wires"))?;
        let no_servers = directory.path().join("resolv.conf");
        fs::write(&no_servers, "# No name server is reachable.\n").map_err(in_directory)?;
        let (mut hosts, mut cables, mut tunnels) = (Vec::new(), Vec::new(), Vec::new());
        for (index, name) in names.iter().enumerate() {
            let table = directory.path().join(format!("hosts-{index}"));
            fs::write(&table, hosts_table(names, pairs, index)).map_err(in_directory)?;
            let files = (table, no_servers.clone());
            let host = Host::apart(name, address_of(index), files, keeper.to_owned()).map_err(failed(name))?;
            let end = match kind {
                CableKind::Veth => {
                    let namespace = host.namespace().map_err(failed(name))?;
                    let socket = wires.within(move || lay_veth(&cable_name(index), namespace.as_fd()));
                    let socket = socket.map_err(failed(name))?;
                    host.within(|| ethtool::switch_offloads_off(host::INTERFACE)).map_err(failed(name))?;
                    CableEnd::Veth(socket)
                }
                CableKind::Tun => {
                    let tunnel = Arc::new(host.within(lay_tun)?);
                    tunnels.push(Arc::clone(&tunnel));
                    CableEnd::Tun(tunnel)
                }
            };
            cables.push(Cable { end });
            host.configure().map_err(failed(name))?;
            hosts.push(host);
        }
        Ok((Self { hosts, wires, tunnels, _directory: directory }, cables))
    }

    /// Returns the counts of the two ends of the cable to a host: the emulator's, and the host's. A fast one has only
    /// that of the host.
    ///
    /// # Errors
    /// A `/proc` that does not show networks.
    pub fn cable_counts(&self, index: usize) -> io::Result<(InterfaceCounts, InterfaceCounts)> {
        let near =
            if self.tunnels.is_empty() { self.wires.counts(&cable_name(index))? } else { InterfaceCounts::default() };
        Ok((near, self.hosts[index].counts()?))
    }

    /// Returns the hosts, in the order of their names.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }
}

/// Returns the address of the host with this index among the names.
pub fn address_of(index: usize) -> Ipv4Addr {
    let [.., high, low] = (index + 1).to_be_bytes();
    Ipv4Addr::new(10, 77, high, low)
}

/// Returns the index of the host that has an address; the reverse of [`address_of`].
pub fn index_of(address: Ipv4Addr) -> Option<usize> {
    let [10, 77, high, low] = address.octets() else { return None };
    usize::from(u16::from_be_bytes([high, low])).checked_sub(1)
}

/// The kind of cable that connects hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CableKind {
    /// Ethernet interfaces, one packet at a time, each with the kernel's stamp. Needs nothing but namespaces.
    #[default]
    Veth,
    /// TUN devices with offloads, for high rates: many packets at a time, and no stamps.
    Tun,
}

/// A cable to a host, seen from the emulator.
#[derive(Debug)]
pub struct Cable {
    pub(crate) end: CableEnd,
}

/// The device through which packets enter and leave.
#[derive(Debug)]
pub(crate) enum CableEnd {
    /// Of [`CableKind::Veth`].
    Veth(PacketSocket),
    /// Of [`CableKind::Tun`].
    Tun(Arc<Tun>),
}

/// Creates a cable to a host, from the namespace of the calling thread.
fn lay_veth(name: &str, host_namespace: BorrowedFd<'_>) -> io::Result<PacketSocket> {
    let netlink = Netlink::open()?;
    netlink.add_veth(name, host::INTERFACE, host::MAC, host_namespace)?;
    ethtool::switch_offloads_off(name)?;
    let interface = interface_index(name)?;
    // Switched on first: a packet socket on an interface that is down starts with an error.
    netlink.set_up(interface, LinkFlags::Noarp)?;
    PacketSocket::open(interface)
}

/// Creates a fast cable to the host of the calling thread.
fn lay_tun() -> Result<Tun, TunError> {
    let tunnel = Tun::create(host::INTERFACE)?;
    Netlink::open()?.set_queue_length(interface_index(host::INTERFACE)?, TUN_QUEUE)?;
    Ok(tunnel)
}

/// Returns the name of the interface at the emulator's end of the cable to a host.
fn cable_name(index: usize) -> String {
    format!("wire{index}")
}

/// Returns the host's peer in these pairs.
pub(crate) fn peer_of(own: usize, pairs: &[(usize, usize)]) -> Option<usize> {
    pairs.iter().find_map(|&(from, to)| match own {
        own if own == from => Some(to),
        own if own == to => Some(from),
        _ => None,
    })
}

/// Returns the `/etc/hosts` of a host: itself, all others, and its peer.
fn hosts_table(names: &[String], pairs: &[(usize, usize)], own: usize) -> String {
    let mut table = String::from("127.0.0.1 localhost\n");
    let peer = peer_of(own, pairs);
    for (index, name) in names.iter().enumerate() {
        let alias = if peer == Some(index) { format!(" {PEER_NAME}") } else { String::new() };
        let _ = writeln!(table, "{} {name}{alias}", address_of(index));
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_of_and_index_of_are_inverse() {
        for index in [0, 1, 253, 254, 255, 256, 65_534] {
            assert_eq!(index_of(address_of(index)), Some(index));
        }
        assert_eq!(address_of(0), Ipv4Addr::new(10, 77, 0, 1));
        assert_eq!(address_of(255), Ipv4Addr::new(10, 77, 1, 0));
        assert_eq!(index_of(Ipv4Addr::new(10, 77, 0, 0)), None);
        assert_eq!(index_of(Ipv4Addr::new(10, 78, 0, 1)), None);
    }

    #[test]
    fn hosts_table_has_the_peer() {
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let table = hosts_table(&names, &[(0, 2)], 2);
        assert_eq!(table, "127.0.0.1 localhost\n10.77.0.1 a peer\n10.77.0.2 b\n10.77.0.3 c\n");
        assert!(!hosts_table(&names, &[(0, 2)], 1).contains("peer"));
    }
}
