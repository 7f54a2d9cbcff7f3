//! An emulated network on this machine: real UDP sockets, with a [`netsim::Link`] between them in each direction.
//!
//! The client sends to [`Relay::address`]. Packets that survive the forward link reach the server, and the server's
//! answers return through the backward link. One thread waits for packets and for the next due one, and does nothing in
//! between.

mod lateness;

use std::collections::BinaryHeap;
use std::io::{self, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Instant;

use netsim::{Duplex, Ecn, Link, LinkError, LinkStats, OfferOutcome, Time};
use quinn_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};

pub use lateness::Lateness;

/// IPv4 and UDP header: links count whole packets, sockets give payloads.
const HEADERS: u32 = 28;
/// The kernel grants up to its limit (`net.core.rmem_max`). At 1 Gbit/s this is 30 ms.
const SOCKET_BUFFER: usize = 4 << 20;
/// The largest UDP datagram, and the largest bundle of them that the kernel hands over at once (GRO).
const LARGEST_BUFFER: usize = 65_535;

/// A relay that runs until it is dropped.
#[derive(Debug)]
pub struct Relay {
    address: SocketAddr,
    report: Arc<Mutex<RelayReport>>,
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
}

/// The counters of a relay so far.
#[derive(Clone, Debug, Default)]
pub struct RelayReport {
    /// From the client to the server.
    pub forward: LinkStats,
    /// From the server to the client.
    pub backward: LinkStats,
    /// The lateness of packets, against the link's departure times.
    pub lateness: Lateness,
    /// When the first datagram of the client arrived.
    pub first: Option<Instant>,
    /// Packets that the kernel dropped because the relay did not read them in time, or did not send: loss that no link
    /// configured.
    pub kernel_drops: u64,
}

/// The reason why a relay cannot start.
#[derive(Debug, thiserror::Error)]
pub enum RelayError {
    /// The link makes no sense.
    #[error(transparent)]
    Link(#[from] LinkError),
    /// No socket, thread or event.
    #[error("the relay cannot start: {0}")]
    Io(#[from] io::Error),
}

impl Relay {
    /// Starts a relay between the first client that sends to its address and `server`.
    ///
    /// # Errors
    /// A link that makes no sense, or a system that gives no sockets.
    pub fn start(server: SocketAddr, network: Duplex) -> Result<Self, RelayError> {
        let client = Port::open()?;
        let address = client.socket.local_addr()?;
        let stop = Arc::new(eventfd(0, EventfdFlags::CLOEXEC).map_err(io::Error::from)?);
        let report = Arc::new(Mutex::new(RelayReport::default()));
        let mut worker = Worker {
            client,
            server: Port { peer: Some(server), ..Port::open()? },
            forward: RelayDirection::new(network.forward)?,
            backward: RelayDirection::new(network.backward)?,
            clock: LinkClock::start(),
            buffers: vec![0; BATCH_SIZE * LARGEST_BUFFER],
            spare: Vec::new(),
            report: Arc::clone(&report),
            stop: Arc::clone(&stop),
        };
        let thread = thread::Builder::new().name("relay".to_owned()).spawn(move || worker.run())?;
        Ok(Self { address, report, stop, thread: Some(thread) })
    }

    /// Where the client sends to.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its counters so far.
    pub fn report(&self) -> RelayReport {
        let mut report = lock(&self.report).clone();
        report.kernel_drops += kernel_drops(self.address.port());
        report
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        // A full counter wakes the thread as well.
        let _ = rustix::io::write(&*self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Packets that the kernel dropped at the local socket of `port`, as counted in `/proc/net/udp`; 0 without it.
fn kernel_drops(port: u16) -> u64 {
    let table = std::fs::read_to_string("/proc/net/udp").unwrap_or_default();
    let ours = format!(":{port:04X}");
    let drops = |line: &str| {
        let local = line.split_whitespace().nth(1)?;
        local.ends_with(&ours).then(|| line.split_whitespace().next_back()?.parse::<u64>().ok())?
    };
    table.lines().filter_map(drops).sum()
}

/// A panic of the other thread leaves plain numbers behind.
fn lock(report: &Mutex<RelayReport>) -> MutexGuard<'_, RelayReport> {
    report.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Virtual time of the links on the clock of the machine.
struct LinkClock {
    start: Instant,
}

impl LinkClock {
    fn start() -> Self {
        Self { start: Instant::now() }
    }

    fn now(&self) -> Time {
        Time::from(self.start.elapsed())
    }
}

/// A socket and its peer.
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    peer: Option<SocketAddr>,
}

impl Port {
    fn open() -> io::Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        let state = UdpSocketState::new((&socket).into())?;
        // Packets that the kernel rejects count as drops in the report.
        let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
        let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
        Ok(Self { socket, state, peer: None })
    }

    fn send(&self, payload: &[u8], ecn: Ecn) -> io::Result<()> {
        let Some(destination) = self.peer else { return Ok(()) };
        let ecn = match ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
            Ecn::Ect1 => Some(EcnCodepoint::Ect1),
            Ecn::Ce => Some(EcnCodepoint::Ce),
        };
        let transmit = Transmit { destination, ecn, contents: payload, segment_size: None, src_ip: None };
        self.state.try_send((&self.socket).into(), &transmit)
    }
}

/// One direction: its link and the packets in flight.
struct RelayDirection {
    link: Link,
    held: BinaryHeap<QueuedPacket>,
    offered: u64,
}

impl RelayDirection {
    fn new(config: netsim::LinkConfig) -> Result<Self, LinkError> {
        Ok(Self { link: Link::new(config)?, held: BinaryHeap::new(), offered: 0 })
    }

    /// Passes a packet to the link and queues its deliveries.
    fn offer(&mut self, now: Time, payload: &[u8], ecn: Ecn, spare: &mut Vec<Vec<u8>>) {
        let ip_bytes = u32::try_from(payload.len()).unwrap_or(u32::MAX).saturating_add(HEADERS);
        let OfferOutcome::Delivered(deliveries) = self.link.offer(now, ip_bytes, ecn) else { return };
        for delivery in deliveries {
            let mut copy = spare.pop().unwrap_or_default();
            copy.clear();
            copy.extend_from_slice(payload);
            if let Some(entropy) = delivery.corrupt {
                netsim::corrupt(&mut copy, entropy);
            }
            self.held.push(QueuedPacket { due: delivery.at, number: self.offered, ecn: delivery.ecn, payload: copy });
            self.offered += 1;
        }
    }
}

/// A packet under way. The greatest is the one due first, and of several due at once the one offered first.
struct QueuedPacket {
    due: Time,
    number: u64,
    ecn: Ecn,
    payload: Vec<u8>,
}

impl Ord for QueuedPacket {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

impl PartialOrd for QueuedPacket {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for QueuedPacket {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for QueuedPacket {}

/// The thread.
struct Worker {
    client: Port,
    server: Port,
    forward: RelayDirection,
    backward: RelayDirection,
    clock: LinkClock,
    /// One receive buffer per datagram of a batch.
    buffers: Vec<u8>,
    /// Buffers of packets that left.
    spare: Vec<Vec<u8>>,
    report: Arc<Mutex<RelayReport>>,
    stop: Arc<OwnedFd>,
}

impl Worker {
    fn run(&mut self) {
        // 50 us by default, which at 1 Gbit/s is four packets. If it cannot be changed, the lateness shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        while self.wait() {
            self.receive();
            self.deliver();
        }
    }

    /// Waits for a packet or until one is due; false when the relay is to stop.
    fn wait(&self) -> bool {
        let next = self.forward.held.peek().into_iter().chain(self.backward.held.peek()).map(|held| held.due).min();
        let timeout = next.and_then(|due| Timespec::try_from(due - self.clock.now()).ok());
        let mut ready = [
            PollFd::from_borrowed_fd(self.stop.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.client.socket.as_fd(), PollFlags::IN),
            PollFd::from_borrowed_fd(self.server.socket.as_fd(), PollFlags::IN),
        ];
        match poll(&mut ready, timeout.as_ref()) {
            Ok(_) => ready[0].revents().is_empty(),
            Err(error) => error == rustix::io::Errno::INTR,
        }
    }

    /// Offers everything that arrived to its link.
    fn receive(&mut self) {
        for from_client in [true, false] {
            while self.receive_batch(from_client) {}
        }
    }

    /// Offers one batch; returns false without one.
    fn receive_batch(&mut self, from_client: bool) -> bool {
        let (port, way) =
            if from_client { (&mut self.client, &mut self.forward) } else { (&mut self.server, &mut self.backward) };
        let mut metas = [RecvMeta::default(); BATCH_SIZE];
        let mut slices: Vec<IoSliceMut<'_>> =
            self.buffers.chunks_exact_mut(LARGEST_BUFFER).map(IoSliceMut::new).collect();
        // An error other than `WouldBlock` is one of an earlier send, and reported by it.
        let Ok(received) = port.state.recv((&port.socket).into(), &mut slices, &mut metas) else { return false };
        // The time of the wake-up. A thread that overslept would make these packets late uncounted, but others due
        // meanwhile are late as well, and counted.
        let now = self.clock.now();
        if from_client {
            lock(&self.report).first.get_or_insert_with(Instant::now);
        }
        for (meta, buffer) in metas.iter().zip(&slices).take(received) {
            if from_client {
                port.peer = Some(meta.addr);
            }
            let ecn = match meta.ecn {
                None => Ecn::NotEct,
                Some(EcnCodepoint::Ect0) => Ecn::Ect0,
                Some(EcnCodepoint::Ect1) => Ecn::Ect1,
                Some(EcnCodepoint::Ce) => Ecn::Ce,
            };
            for payload in buffer[..meta.len].chunks(meta.stride.max(1)) {
                way.offer(now, payload, ecn, &mut self.spare);
            }
        }
        received == BATCH_SIZE
    }

    /// Sends all due packets.
    fn deliver(&mut self) {
        let mut report = lock(&self.report);
        for (way, port) in [(&mut self.forward, &self.server), (&mut self.backward, &self.client)] {
            let mut now = self.clock.now();
            while let Some(first) = way.held.peek()
                && first.due <= now
            {
                let Some(packet) = way.held.pop() else { break };
                if port.send(&packet.payload, packet.ecn).is_err() {
                    report.kernel_drops += 1;
                }
                // After the send, so that its own time counts.
                now = self.clock.now();
                report.lateness.add(now - packet.due);
                self.spare.push(packet.payload);
            }
        }
        report.forward = *self.forward.link.stats();
        report.backward = *self.backward.link.stats();
    }
}

#[cfg(test)]
mod tests;
