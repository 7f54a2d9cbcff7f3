//! The engine between two hosts, over UDP sockets of the kernel.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use netsim::{Duplex, Ecn, Node as _, NodeId, Packet, Time};
use quinn_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use sim::{Host, ObservedTransfer, TransferPair, watched_hosts};
use transport::Profile;

use super::{Begin, LinkHandle, TransferCounts, wait_for};
use crate::testbed;
use crate::web::demonstration::transfer::{Transfer, TransferProgress};
use crate::web::lock;

/// Datagrams per system call, and bytes for each: the kernel may put several into one buffer.
const BATCH: usize = 16;
const BUFFER: usize = 1 << 16;
/// Bytes of IP header and UDP header.
const OVERHEAD: u32 = 28;
/// Bytes that the kernel buffers for a busy host.
const KERNEL_BUFFER: usize = 4 << 20;
/// The longest wait for a packet or a deadline.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// A transfer by the engine, for the lifetime of the process.
pub(super) struct Engine {
    watched: Arc<Mutex<ObservedTransfer<Sockets>>>,
    link: LinkHandle,
    driver: JoinHandle<()>,
}

/// The two hosts with the engine, each with a socket.
pub(super) struct Sockets {
    hosts: [Host; 2],
    lost: u64,
}

impl TransferPair for Sockets {
    fn hosts(&self) -> [&Host; 2] {
        self.hosts.each_ref()
    }

    fn sender(&mut self) -> &mut Host {
        &mut self.hosts[0]
    }

    fn receiver(&mut self) -> &mut Host {
        &mut self.hosts[1]
    }

    fn lost(&self) -> u64 {
        self.lost
    }
}

impl Engine {
    /// Starts a transfer of `picture`.
    ///
    /// # Errors
    /// A host without sockets, or a system without threads.
    pub(super) fn start(
        link: LinkHandle,
        hosts: &[testbed::Host; 2],
        picture: &Arc<[u8]>,
        profile: &Profile,
        seed: u64,
        begin: &Begin,
    ) -> Result<Self, String> {
        let failed = |error: io::Error| format!("cannot send over a link: {error}");
        let sockets = HostSocket::pair(hosts).map_err(failed)?;
        let ends = Sockets { hosts: watched_hosts(picture, profile, seed), lost: 0 };
        let watched = Arc::new(Mutex::new(ObservedTransfer::between(ends, picture.len())));
        let (driving, begin) = (Arc::clone(&watched), Arc::clone(begin));
        let driver = thread::Builder::new()
            .name("engine".to_owned())
            .spawn(move || Driver { watched: driving, sockets, begin: wait_for(&begin) }.run())
            .map_err(failed)?;
        Ok(Self { watched, link, driver })
    }
}

impl Transfer for Engine {
    fn run_until(&mut self, _: Duration) -> Result<(), String> {
        if self.driver.is_finished() { Err("internal error: the engine panicked".to_owned()) } else { Ok(()) }
    }

    fn set_link(&mut self, link: &Duplex) -> Result<(), String> {
        self.link.set_link(link)
    }

    fn take_progress(&mut self) -> TransferProgress {
        let TransferCounts { lost, arrived } = self.link.counted();
        let mut watched = lock(&self.watched);
        watched.ends_mut().lost = lost;
        let mut take_progress = TransferProgress::at(&mut watched);
        take_progress.state.arrived = arrived;
        take_progress
    }
}

/// The thread of two hosts.
struct Driver {
    watched: Arc<Mutex<ObservedTransfer<Sockets>>>,
    sockets: [HostSocket; 2],
    begin: Instant,
}

impl Driver {
    fn run(mut self) {
        loop {
            let due = self.run_once();
            self.wait(due);
        }
    }

    fn now(begin: Instant) -> Time {
        Time::ZERO + begin.elapsed()
    }

    /// Runs one round. Returns the next deadline.
    fn run_once(&mut self) -> Option<Time> {
        let begin = self.begin;
        let mut watched = lock(&self.watched);
        let hosts = &mut watched.ends_mut().hosts;
        for (socket, host) in self.sockets.iter_mut().zip(hosts.iter_mut()) {
            socket.receive(|packet| host.handle_packet(Self::now(begin), packet));
            let now = Self::now(begin);
            if host.poll_timeout().is_some_and(|due| due <= now) {
                host.handle_timeout(now);
            }
            if let Some(packet) = socket.blocked.take() {
                socket.send(host, packet);
            }
            while socket.blocked.is_none()
                && let Some(packet) = host.poll_transmit(Self::now(begin))
            {
                socket.send(host, packet);
            }
        }
        hosts.iter().filter_map(Host::poll_timeout).min()
    }

    /// Waits for a packet, for room to send one, or for a deadline.
    fn wait(&mut self, due: Option<Time>) {
        let left = due.map_or(LONGEST_WAIT, |due| (due - Time::ZERO).saturating_sub(self.begin.elapsed()));
        let timeout = Timespec::try_from(left.min(LONGEST_WAIT)).ok();
        let flags = |socket: &HostSocket| match socket.blocked {
            Some(_) => PollFlags::IN | PollFlags::OUT,
            None => PollFlags::IN,
        };
        let mut ready = self.sockets.each_ref().map(|socket| PollFd::new(&socket.socket, flags(socket)));
        // An interrupted wait merely ends early.
        let _ = poll(&mut ready, timeout.as_ref());
    }
}

/// The socket of a host.
struct HostSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    own: NodeId,
    peer: SocketAddr,
    /// The packet that did not fit into the socket buffer.
    blocked: Option<Packet>,
    buffers: Vec<u8>,
}

impl HostSocket {
    /// Opens the sockets of both hosts.
    fn pair([a, b]: &[testbed::Host; 2]) -> io::Result<[Self; 2]> {
        let open = |host: &testbed::Host| {
            let address = host.address();
            host.within(move || UdpSocket::bind((address, 0)))
        };
        let (a, b) = (open(a)?, open(b)?);
        let addresses = [a.local_addr()?, b.local_addr()?];
        Ok([Self::new(a, 0, addresses[1])?, Self::new(b, 1, addresses[0])?])
    }

    fn new(socket: UdpSocket, own: u32, peer: SocketAddr) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // Beyond the administrator's limit if permitted, otherwise up to it. Drops are counted.
        let _ = set_socket_recv_buffer_size_force(&socket, KERNEL_BUFFER)
            .or_else(|_| set_socket_recv_buffer_size(&socket, KERNEL_BUFFER));
        let (own, buffers) = (NodeId::from_index(own), vec![0; BATCH * BUFFER]);
        Ok(Self { socket, state, own, peer, blocked: None, buffers })
    }

    /// Passes on all arrived packets.
    fn receive(&mut self, mut each: impl FnMut(Packet)) {
        let other = NodeId::from_index(1 - self.own.index() as u32);
        loop {
            let mut metas = [RecvMeta::default(); BATCH];
            let mut chunks = self.buffers.chunks_mut(BUFFER);
            let mut slices: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            // An error that the kernel reports for an earlier packet is a loss, which the engine detects by itself.
            let Ok(count) = self.state.recv((&self.socket).into(), &mut slices, &mut metas) else { return };
            for (meta, slice) in metas[..count].iter().zip(&slices).filter(|(meta, _)| meta.addr == self.peer) {
                for payload in slice[..meta.len].chunks(meta.stride.max(1)) {
                    each(Packet {
                        source: other,
                        destination: self.own,
                        ecn: ecn_of(meta.ecn),
                        overhead: OVERHEAD,
                        payload: payload.to_vec(),
                    });
                }
            }
        }
    }

    /// Sends a packet of the host; it is stored if there is no room.
    fn send(&mut self, host: &mut Host, packet: Packet) {
        let transmit = Transmit {
            destination: self.peer,
            ecn: codepoint(packet.ecn),
            contents: &packet.payload,
            segment_size: None,
            src_ip: None,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.blocked = Some(packet),
            // A packet that the kernel rejects is lost, as on the link.
            Ok(()) | Err(_) => host.recycle(packet.payload),
        }
    }
}

const fn ecn_of(codepoint: Option<EcnCodepoint>) -> Ecn {
    match codepoint {
        None => Ecn::NotEct,
        Some(EcnCodepoint::Ect0) => Ecn::Ect0,
        Some(EcnCodepoint::Ect1) => Ecn::Ect1,
        Some(EcnCodepoint::Ce) => Ecn::Ce,
    }
}

const fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}
