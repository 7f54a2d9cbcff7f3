//! One host.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::Ipv4Addr;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};

use netlink_packet_route::link::LinkFlags;
use rustix::mount::{MountPropagationFlags, mount_bind, mount_change};

use super::netlink::{Netlink, interface_index};
use super::place::{InterfaceCounts, NamespaceThread};
use super::ports::{self, Protocol};
use crate::sys::namespaces;

/// The interface of a host.
pub(super) const INTERFACE: &str = "eth0";
/// All hosts have this hardware address: without ARP a host takes its own for that of the others, which avoids requests
/// over a lossy link.
pub(crate) const MAC: [u8; 6] = [0x02, 0, 0, 0, 0, 1];
/// A single address: a network would add a route before the one that pins congestion control.
const PREFIX_LENGTH: u8 = 32;
/// Settings under which buffers are not the bottleneck: up to 64 MB, as recommended for hosts on long fast paths.
const SETTINGS: [(&str, &str); 5] = [
    ("/proc/sys/net/ipv4/tcp_rmem", "4096 131072 67108864"),
    ("/proc/sys/net/ipv4/tcp_wmem", "4096 16384 67108864"),
    // A run must not learn from the previous one.
    ("/proc/sys/net/ipv4/tcp_no_metrics_save", "1"),
    // Neighbour and router discovery would use draws of the link intended for the measured packets.
    ("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1"),
    ("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1"),
];

/// A host, and its thread. Processes started by the thread are on the host too, and end with the host or with this
/// process, even if it is killed.
#[derive(Debug)]
pub struct Host {
    name: String,
    address: Ipv4Addr,
    place: NamespaceThread,
    /// The first process of the host: all others end with it, and it ends when its stdin does. `None` for this machine.
    init: Mutex<Option<Child>>,
}

impl Host {
    /// Returns this machine as a host: without a namespace, at 127.0.0.1.
    ///
    /// # Errors
    /// A system that provides no thread.
    pub fn local(name: &str) -> io::Result<Self> {
        let (place, ()) = NamespaceThread::new(name, || Ok(()))?;
        Ok(Self { name: name.to_owned(), address: Ipv4Addr::LOCALHOST, place, init: Mutex::new(None) })
    }

    /// Creates a host with namespaces of its own, and no network yet. The files are its `/etc/hosts` and its
    /// `/etc/resolv.conf`, which replaces this machine's name servers; `keeper` is a program that calls [`keep`] when
    /// it is started as [`NAME`](crate::NAME) with the one argument `keep-host`.
    pub(super) fn apart(
        name: &str,
        address: Ipv4Addr,
        (names, no_servers): (PathBuf, PathBuf),
        keeper: PathBuf,
    ) -> io::Result<Self> {
        let (place, init) = NamespaceThread::new(name, move || {
            namespaces::new_host()?;
            mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
            for (file, place) in [(&names, "/etc/hosts"), (&no_servers, "/etc/resolv.conf")] {
                if Path::new(place).exists() {
                    mount_bind(file, place)?;
                }
            }
            for (path, value) in SETTINGS {
                // If /proc/sys is read-only, the host has the defaults.
                let _ = fs::write(path, value);
            }
            let mut init = Command::new(&keeper);
            init.arg0(crate::NAME).arg("keep-host").stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
            let mut init = init
                .spawn()
                .map_err(|error| io::Error::other(format!("cannot start {}: {error}", keeper.display())))?;
            // It writes a byte when it is ready for children.
            init.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?.read_exact(&mut [0])?;
            Ok(init)
        })?;
        Ok(Self { name: name.to_owned(), address, place, init: Mutex::new(Some(init)) })
    }

    /// Returns its name, as in its `/etc/hosts`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its address for the others.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// Runs `work` on the host, whose network its sockets use.
    ///
    /// # Panics
    /// If `work` does, or that of an earlier call did.
    pub fn within<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> T {
        self.place.within(work)
    }

    /// Starts a command on the host. It has a process group of its own, and ends with the host at the latest.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn spawn(&self, mut command: Command) -> io::Result<Child> {
        self.within(move || command.process_group(0).spawn())
    }

    /// Starts a command on the host in the process group of this process, so that it has the terminal.
    ///
    /// # Errors
    /// Those of [`Command::spawn`].
    pub fn spawn_in_front(&self, mut command: Command) -> io::Result<Child> {
        self.within(move || command.spawn())
    }

    /// Returns the number of datagrams dropped because their receiving socket was full.
    pub(crate) fn full_sockets(&self) -> u64 {
        self.within(|| fs::read_to_string("/proc/thread-self/net/snmp")).map_or(0, |table| full_sockets(&table))
    }

    /// Kills all processes of the host; none can be started on it afterwards. Has no effect on this machine itself.
    pub fn end(&self) {
        let init = self.init.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(mut init) = init {
            drop(init.stdin.take());
            // It exits when all others have.
            let _ = init.wait();
        }
    }

    /// Returns the ports on which programs listen on the host.
    pub(crate) fn listening(&self) -> Vec<(Protocol, u16)> {
        self.within(ports::listening)
    }

    /// Makes TCP of the host ask for ECN in its outgoing connections; by default Linux only accepts it.
    ///
    /// # Errors
    /// `/proc/sys` cannot be written.
    pub fn ask_for_ecn(&self) -> io::Result<()> {
        const SETTING: &str = "/proc/sys/net/ipv4/tcp_ecn";
        self.within(|| fs::write(SETTING, "1"))
            .map_err(|error| io::Error::new(error.kind(), format!("cannot set {SETTING} to 1: {error}")))
    }

    /// Sets the congestion control of all TCP that leaves the host, whatever its programs request; `None` leaves the
    /// choice to them.
    ///
    /// # Errors
    /// A congestion control that the kernel does not have.
    pub fn pin_congestion(&self, congestion: Option<&str>) -> io::Result<()> {
        let congestion = congestion.map(str::to_owned);
        self.within(move || Netlink::open()?.set_default_route(interface_index(INTERFACE)?, congestion.as_deref()))
    }

    /// Returns the network namespace, to put an interface into.
    pub(super) fn namespace(&self) -> io::Result<File> {
        self.within(|| File::open("/proc/thread-self/ns/net"))
    }

    /// Gives its interface, once it exists, an address and a default route.
    pub(super) fn configure(&self) -> io::Result<()> {
        let address = self.address;
        self.within(move || {
            let netlink = Netlink::open()?;
            netlink.set_up(interface_index("lo")?, LinkFlags::empty())?;
            let interface = interface_index(INTERFACE)?;
            netlink.set_up(interface, LinkFlags::Noarp)?;
            netlink.add_address(interface, address, PREFIX_LENGTH)?;
            netlink.set_default_route(interface, None)
        })
    }

    /// Returns the counts of its interface so far.
    ///
    /// # Errors
    /// A `/proc` that does not show networks.
    pub fn counts(&self) -> io::Result<InterfaceCounts> {
        self.place.counts(INTERFACE)
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.end();
    }
}

/// Reads a table of `/proc/net/snmp`: a line with the names of UDP's counters, and one with the numbers.
fn full_sockets(table: &str) -> u64 {
    let mut udp = table.lines().filter_map(|line| line.strip_prefix("Udp: ")).map(str::split_whitespace);
    let (Some(names), Some(numbers)) = (udp.next(), udp.next()) else { return 0 };
    let number = names.zip(numbers).find_map(|(name, number)| (name == "RcvbufErrors").then_some(number));
    number.and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// Runs as the first process of the host: it adopts orphans, and exits at the end of stdin, which kills all others.
///
/// # Errors
/// A missing stdin or stdout.
pub fn keep() -> io::Result<()> {
    use std::io::Write as _;
    namespaces::reap_children()?;
    io::stdout().write_all(b".")?;
    io::stdout().flush()?;
    io::copy(&mut io::stdin(), &mut io::sink()).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_sockets_reads_rcvbuf_errors() {
        let table = "Tcp: RtoAlgorithm\nTcp: 1\nUdp: InDatagrams NoPorts InErrors OutDatagrams RcvbufErrors\nUdp: 10 1 9 20 8\n";
        assert_eq!((full_sockets(table), full_sockets("Udp: InDatagrams\n")), (8, 0));
    }
}
