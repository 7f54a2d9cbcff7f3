//! The thread of the emulator.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use netsim::{Arrival, Ecn, Fabric, NodeId, Refused, Time};
use relay::Lateness;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};

use super::clock::{Clock, thread_cpu};
use super::ipv4::{self, Header};
use super::port::Port;
use super::{Packet, Report, Scheduling};
use crate::space::index_of;
use crate::sys::scheduling;

/// Packets taken from one port before due ones get their turn.
const MOST_AT_ONCE: usize = 64;
/// How long before something is due an ordinary thread stops sleeping: it would be woken late. A real-time thread is not, and one that
/// spins would be stopped by the kernel for 50 ms of each second (`sched(7)`, `sched_rt_runtime_us`).
const SPIN: Duration = Duration::from_micros(50);

/// What the thread is told.
#[derive(Debug)]
pub(super) enum Order {
    /// Impairments on or off.
    SetImpaired {
        /// Whether on.
        impaired: bool,
        /// Told when it is done.
        done: Sender<()>,
    },
    /// To end.
    Stop,
}

/// The thread, and all it works with.
pub(super) struct Worker<P> {
    fabric: Fabric<Packet>,
    /// Beside `ports`.
    hosts: Vec<NodeId>,
    ports: Vec<P>,
    clock: Clock,
    orders: Receiver<Order>,
    wake: Arc<OwnedFd>,
    /// Buffers of packets that left.
    spare: Vec<Packet>,
    /// What arrived, with its port; empty between two turns.
    arrived: Vec<(Time, usize, Packet)>,
    lateness: Lateness,
    taken: Vec<u64>,
    handed: Vec<u64>,
    send_failures: u64,
    refused: u64,
    spin: Duration,
}

impl<P: Port> Worker<P> {
    pub(super) fn new(
        fabric: Fabric<Packet>,
        hosts: Vec<NodeId>,
        ports: Vec<P>,
        orders: Receiver<Order>,
        wake: Arc<OwnedFd>,
    ) -> Self {
        Self {
            fabric,
            clock: Clock::start(),
            orders,
            wake,
            spare: Vec::new(),
            arrived: Vec::new(),
            lateness: Lateness::default(),
            taken: vec![0; hosts.len()],
            handed: vec![0; hosts.len()],
            send_failures: 0,
            refused: 0,
            spin: SPIN,
            hosts,
            ports,
        }
    }

    /// Works until it is told to stop.
    pub(super) fn run(mut self) -> Report {
        // 50 us by default. Where it cannot be changed, the lateness tells.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let scheduling = if scheduling::make_real_time().is_ok() {
            self.spin = Duration::ZERO;
            Scheduling::RealTime
        } else {
            Scheduling::Ordinary
        };
        let began = thread_cpu();
        while self.obey() {
            let busy = self.receive();
            self.deliver(self.clock.now());
            if !busy {
                self.wait();
            }
        }
        self.report(scheduling, thread_cpu().saturating_sub(began))
    }

    /// Does what it is told; false when that is to stop.
    fn obey(&mut self) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::SetImpaired { impaired, done } => {
                    self.fabric.set_impaired(impaired);
                    // Not everybody waits.
                    let _ = done.send(());
                }
                Order::Stop => return false,
            }
        }
        true
    }

    /// Offers what arrived to the model, in the order of arrival. Whether a port may have more.
    fn receive(&mut self) -> bool {
        let Self { ports, clock, spare, arrived, .. } = self;
        let mut busy = false;
        for (number, port) in ports.iter_mut().enumerate() {
            let before = arrived.len();
            port.receive(clock, MOST_AT_ONCE, spare, &mut |at, packet| arrived.push((at, number, packet)));
            busy |= arrived.len() - before == MOST_AT_ONCE;
        }
        self.arrived.sort_by_key(|&(at, ..)| at);
        let mut arrived = std::mem::take(&mut self.arrived);
        for (at, port, packet) in arrived.drain(..) {
            // What happened before happens first, wherever it is.
            self.deliver(at);
            self.offer(at, port, packet);
        }
        self.arrived = arrived;
        busy
    }

    fn offer(&mut self, at: Time, port: usize, mut packet: Packet) {
        self.taken[port] += 1;
        let header = Header::read(&packet);
        let to = header.and_then(|header| self.hosts.get(index_of(header.destination)?).copied());
        let (Some(header), Some(to)) = (header, to) else {
            self.refused += 1;
            self.spare.push(packet);
            return;
        };
        packet.truncate(header.bytes);
        let ip_bytes = u32::try_from(header.bytes).unwrap_or(u32::MAX);
        if let Err(Refused { item, .. }) = self.fabric.offer(at, self.hosts[port], to, ip_bytes, header.ecn, packet) {
            self.spare.push(item);
        }
    }

    /// Hands the hosts what is there by `by`.
    fn deliver(&mut self, by: Time) {
        while let Some(Arrival { host, at, ecn, corrupt, item: mut packet, .. }) = self.fabric.pop(by) {
            let Some(number) = self.hosts.iter().position(|&known| known == host) else { continue };
            if ecn == Ecn::Ce {
                ipv4::mark(&mut packet);
            }
            if let Some(entropy) = corrupt {
                // Behind the header: a packet that finds no host would be lost, not corrupt.
                let start = Header::read(&packet).map_or(0, |header| header.header_bytes);
                netsim::corrupt(&mut packet[start..], entropy);
            }
            match self.ports[number].send(&packet) {
                Ok(()) => self.handed[number] += 1,
                Err(_) => self.send_failures += 1,
            }
            // After it was handed over, so that this counts too.
            self.lateness.add(self.clock.now() - at);
            self.spare.push(packet);
        }
    }

    /// Waits for a packet, an order, or until something is due.
    fn wait(&mut self) {
        let next = self.fabric.next_event();
        let left = next.map(|due| due - self.clock.now());
        if let Some(left) = left
            && left <= self.spin
        {
            std::hint::spin_loop();
            return;
        }
        let timeout = left.and_then(|left| Timespec::try_from(left.saturating_sub(self.spin)).ok());
        let mut ready: Vec<PollFd<'_>> = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        ready.extend(self.ports.iter().map(|port| PollFd::from_borrowed_fd(port.readable(), PollFlags::IN)));
        // An interrupted wait is one that ends early.
        if poll(&mut ready, timeout.as_ref()).is_ok() && !ready[0].revents().is_empty() {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
    }

    fn report(mut self, scheduling: Scheduling, cpu: Duration) -> Report {
        let mut report = Report {
            links: self.fabric.links().map(|(_, link)| *link.stats()).collect(),
            lateness: self.lateness,
            taken: self.taken,
            handed: self.handed,
            ring_drops: 0,
            send_failures: self.send_failures,
            refused: self.refused,
            unstamped: 0,
            under_way: self.fabric.under_way() as u64,
            elapsed: self.clock.now() - Time::ZERO,
            cpu,
            scheduling,
        };
        for port in &mut self.ports {
            let losses = port.losses();
            report.ring_drops += losses.ring;
            report.refused += losses.refused;
            report.unstamped += losses.unstamped;
        }
        report
    }
}
