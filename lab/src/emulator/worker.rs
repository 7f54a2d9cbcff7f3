//! The thread of the emulator.

use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use linkrelay::Lateness;
use netsim::{Arrival, Fabric, Header, LinkConfig, LinkId, NetworkError, NodeId, Refusal, Time, Undelivered};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd as _, OwnedFd};

use super::clock::{Clock, thread_cpu};
use super::meter::{Measuring, Meter};
use super::port::{ArrivedFrame, Port};
use super::run_queue::RunQueue;
use super::segments::{Gather, SuperPacket};
use super::{EmulatorCounters, EmulatorReport, Packet, Scheduling};
use crate::sys::scheduling;
use crate::testbed::index_of;

/// Frames taken from one port before due packets are delivered.
const MOST_AT_ONCE: usize = 64;
/// The time before a deadline at which an ordinary thread stops sleeping, since it would be woken late. A real-time
/// thread would not, and one that spins would be stopped by the kernel for 50 ms of each second (`sched(7)`,
/// `sched_rt_runtime_us`).
const SPIN: Duration = Duration::from_micros(50);
/// A shorter wait was not a sleep: an arrival was already pending.
const SHORTEST_SLEEP: Duration = Duration::from_micros(10);
/// A thread that was delayed for longer than this since its last read reads again before it sleeps. Otherwise a packet
/// that arrived meanwhile would end the sleep at once, and a slow return would count as a sleep during which no packet
/// can have waited.
const FRESH: Duration = Duration::from_micros(100);
/// Longest sleep with ports that have no stamps, so that a stop of the thread during its sleep is noticed.
const LONGEST_SLEEP: Duration = Duration::from_millis(5);

/// A command to the thread.
#[derive(Debug)]
pub(super) enum Order {
    /// Switch impairments on or off.
    SetImpaired {
        /// Whether they are on.
        impaired: bool,
        /// Notified when it is done.
        done: Sender<()>,
    },
    /// Change a link.
    SetLink {
        /// Its number.
        link: LinkId,
        /// Its new configuration.
        config: Box<LinkConfig>,
        /// Notified when it is done.
        done: Sender<Result<(), NetworkError>>,
    },
    /// Report the counts.
    Count {
        /// The receiver of the counts.
        answer: Sender<EmulatorCounters>,
    },
    /// Count traffic and queues.
    Measure {
        /// From this time of `CLOCK_MONOTONIC` on.
        from: Duration,
        /// The times of counting.
        how: Measuring,
    },
    /// End.
    Stop,
}

/// The thread and its state.
pub(super) struct Worker {
    fabric: Fabric<Packet>,
    /// Parallel to `ports`.
    hosts: Vec<NodeId>,
    ports: Vec<HostPort>,
    clock: Clock,
    orders: Receiver<Order>,
    wake: Arc<OwnedFd>,
    /// Arrivals with their ports; between two rounds those beyond the horizon.
    arrived: Vec<(usize, ArrivedFrame)>,
    /// Every arrival at any port up to this time has been seen.
    horizon: Time,
    /// When the ports were last read.
    looked_at: Time,
    /// For ports that must be notified of sleeps: the run queue and its last reading.
    run_queue: Option<(RunQueue, Duration)>,
    meter: Option<Meter>,
    unseen: Lateness,
    send_failures: u64,
    refused: u64,
    spin: Duration,
    /// Least time between two rounds of deliveries, and when the next may be.
    moderation: Duration,
    next_round: Time,
}

/// The entry and exit of a host's packets.
struct HostPort {
    port: Box<dyn Port + Send>,
    /// The packets about to be delivered to the host.
    gather: Gather,
    /// IP bytes.
    arrived: u64,
    handed: u64,
    pieces: u64,
    lateness: Lateness,
}

impl HostPort {
    fn new(port: Box<dyn Port + Send>) -> Self {
        Self { gather: Gather::new(), port, arrived: 0, handed: 0, pieces: 0, lateness: Lateness::default() }
    }
}

impl Worker {
    pub(super) fn new(
        fabric: Fabric<Packet>,
        hosts: Vec<NodeId>,
        ports: Vec<Box<dyn Port + Send>>,
        orders: Receiver<Order>,
        wake: Arc<OwnedFd>,
    ) -> Self {
        Self {
            fabric,
            hosts,
            moderation: ports.iter().map(|port| port.moderation()).max().unwrap_or_default(),
            next_round: Time::ZERO,
            ports: ports.into_iter().map(HostPort::new).collect(),
            clock: Clock::start(),
            orders,
            wake,
            arrived: Vec::new(),
            horizon: Time::MAX,
            looked_at: Time::ZERO,
            run_queue: None,
            meter: None,
            unseen: Lateness::default(),
            send_failures: 0,
            refused: 0,
            spin: SPIN,
        }
    }

    /// Works until it receives the command to stop.
    pub(super) fn run(mut self) -> EmulatorReport {
        // 50 us by default. If it cannot be changed, the lateness shows it.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        let scheduling = if scheduling::make_real_time().is_ok() {
            self.spin = Duration::ZERO;
            Scheduling::RealTime
        } else {
            Scheduling::Ordinary
        };
        if self.ports.iter().any(|host| !host.port.stamps_arrivals()) {
            // `start` has checked this. If it fails, only the times of empty reads are known.
            self.run_queue = RunQueue::open().ok().map(|queue| (queue, Duration::ZERO));
        }
        let began = thread_cpu();
        while self.execute_commands() {
            let busy = self.receive();
            self.hand_over_due();
            if !busy {
                self.wait();
            }
        }
        self.report(scheduling, thread_cpu().saturating_sub(began))
    }

    /// Executes its commands; returns false when it should stop.
    fn execute_commands(&mut self) -> bool {
        while let Ok(order) = self.orders.try_recv() {
            match order {
                Order::SetImpaired { impaired, done } => {
                    self.fabric.set_impaired(impaired);
                    // The sender may not be waiting.
                    let _ = done.send(());
                }
                Order::SetLink { link, config, done } => {
                    let _ = done.send(self.fabric.set_link(link, *config));
                }
                Order::Count { answer } => {
                    let links = self.fabric.links().map(|(_, link)| *link.stats()).collect();
                    let _ = answer.send(EmulatorCounters {
                        links,
                        arrived: self.ports.iter().map(|host| host.arrived).collect(),
                    });
                }
                Order::Measure { from, how } => {
                    self.meter = Some(Meter::new(self.clock.at(from), how, self.ports.len()));
                }
                Order::Stop => return false,
            }
        }
        if let Some(meter) = &mut self.meter {
            meter.check_warm_up(self.clock.now(), &self.fabric);
        }
        true
    }

    /// Offers arrivals to the model, in the order of arrival. Returns whether a port may have more.
    fn receive(&mut self) -> bool {
        let Self { ports, clock, arrived, .. } = self;
        self.horizon = Time::MAX;
        self.looked_at = clock.now();
        for (number, host) in ports.iter_mut().enumerate() {
            let before = arrived.len();
            host.port.receive(clock, MOST_AT_ONCE, &mut |piece| arrived.push((number, piece)));
            if arrived.len() - before == MOST_AT_ONCE {
                // The port may have more, later than its last frame. Later frames of others have to wait for them.
                self.horizon = arrived.last().map_or(self.horizon, |(_, last)| self.horizon.min(last.at));
            }
        }
        self.arrived.sort_by_key(|(_, piece)| piece.at);
        let later = self.arrived.partition_point(|(_, piece)| piece.at <= self.horizon);
        let later = self.arrived.split_off(later);
        for (number, ArrivedFrame { at, waited, packet }) in std::mem::replace(&mut self.arrived, later) {
            // Earlier events of the model happen first.
            self.deliver(at);
            self.unseen.add(waited);
            self.offer(at, number, packet);
        }
        self.horizon < Time::MAX
    }

    fn offer(&mut self, at: Time, from: usize, packet: SuperPacket) {
        let to = match packet.destination() {
            IpAddr::V4(address) => index_of(address).and_then(|index| self.hosts.get(index).copied()),
            IpAddr::V6(_) => None,
        };
        let Some(to) = to else {
            // A host that joins a group informs all routers, of which there are none.
            self.refused += u64::from(!packet.destination().is_multicast());
            return;
        };
        let (ecn, flow) = (packet.ecn(), packet.flow());
        for segment in packet.split() {
            let ip_bytes = segment.packet.ip_bytes(segment.index);
            if let Some(meter) = &mut self.meter {
                meter.sent(from, at, ip_bytes);
            }
            let (header, packet) = (Header { ip_bytes, ecn, flow }, Packet { segment, offered: at });
            // Drops by a link are in its counts.
            if let Err(Undelivered { reason: Refusal::Unroutable, .. }) =
                self.fabric.offer(at, self.hosts[from], to, header, packet)
            {
                self.refused += 1;
            }
        }
    }

    /// Passes arrivals up to `by` to the ports.
    fn deliver(&mut self, by: Time) {
        while let Some(Arrival { host, at, ecn, corrupt, item: packet, .. }) = self.fabric.pop(by) {
            let Some(number) = self.hosts.iter().position(|&known| known == host) else { continue };
            if let Some(meter) = &mut self.meter {
                meter.arrived(number, at, &packet);
            }
            self.ports[number].arrived += u64::from(packet.segment.packet.ip_bytes(packet.segment.index));
            let mut segment = packet.segment;
            while let Err(again) = self.ports[number].gather.push(at, segment, ecn, corrupt) {
                self.hand_over(number);
                segment = again;
            }
        }
    }

    /// Delivers all due packets, if it is time for a round.
    fn hand_over_due(&mut self) {
        let now = self.clock.now();
        if now < self.next_round {
            return;
        }
        self.deliver(now.min(self.horizon));
        for number in 0..self.ports.len() {
            if self.ports[number].gather.open().is_some() {
                self.hand_over(number);
                self.next_round = now + self.moderation;
            }
        }
    }

    fn hand_over(&mut self, number: usize) {
        let HostPort { port, gather, handed, pieces, lateness, .. } = &mut self.ports[number];
        let Some((run, due)) = gather.open() else { return };
        match port.send(run) {
            Ok(()) => {
                *handed += u64::from(run.count());
                *pieces += 1;
            }
            Err(_) => self.send_failures += u64::from(run.count()),
        }
        // Read after the delivery, so that its duration counts too.
        let now = self.clock.now();
        due.iter().for_each(|&at| lateness.add(now - at));
        gather.clear();
    }

    /// Waits for a packet, a command, or the next deadline.
    fn wait(&mut self) {
        let before = self.clock.now();
        if self.run_queue.is_some() && before - self.looked_at > FRESH {
            return;
        }
        let is_open = self.ports.iter().any(|host| host.gather.open().is_some());
        let due = if is_open { Some(before) } else { self.fabric.next_event() };
        let left = due.map(|due| due.max(self.next_round) - before);
        if let Some(left) = left
            && left <= self.spin
        {
            std::hint::spin_loop();
            return;
        }
        let bound = self.run_queue.as_ref().map(|_| LONGEST_SLEEP);
        let sleep = left.map(|left| left.saturating_sub(self.spin)).into_iter().chain(bound).min();
        let timeout = sleep.and_then(|sleep| Timespec::try_from(sleep).ok());
        let mut ready: Vec<PollFd<'_>> = vec![PollFd::from_borrowed_fd(self.wake.as_fd(), PollFlags::IN)];
        ready.extend(self.ports.iter().map(|host| PollFd::from_borrowed_fd(host.port.readable(), PollFlags::IN)));
        // An interrupted wait merely ends early.
        if poll(&mut ready, timeout.as_ref()).is_ok() && !ready[0].revents().is_empty() {
            let _ = rustix::io::read(&*self.wake, &mut [0; 8]);
        }
        self.notify_ports_of_sleep(before, sleep.unwrap_or(Duration::MAX));
    }

    /// Notifies ports of sleeps: the thread has slept since `before`, for at most `sleep`, until it could have run
    /// again.
    fn notify_ports_of_sleep(&mut self, before: Time, sleep: Duration) {
        let Some((queue, known)) = &mut self.run_queue else { return };
        let waited = queue.waited();
        let delay = waited - std::mem::replace(known, waited);
        // A stopped thread does not wait for a processor, but its timer continues.
        let slept = (self.clock.now() - before).saturating_sub(delay).min(sleep);
        if slept >= SHORTEST_SLEEP {
            self.ports.iter_mut().for_each(|host| host.port.slept_until(before + slept));
        }
    }

    fn report(mut self, scheduling: Scheduling, cpu: Duration) -> EmulatorReport {
        let (traffic, waits) = self.meter.map(|meter| meter.result(&self.fabric)).unwrap_or_default();
        let mut report = EmulatorReport {
            links: self.fabric.links().map(|(_, link)| *link.stats()).collect(),
            lateness: self.ports.iter().map(|host| host.lateness.clone()).collect(),
            traffic,
            waits,
            unseen: self.unseen,
            handed: self.ports.iter().map(|host| host.handed).collect(),
            pieces: self.ports.iter().map(|host| host.pieces).collect(),
            ring_drops: 0,
            send_failures: self.send_failures,
            refused: self.refused,
            unstamped: 0,
            elapsed: self.clock.now() - Time::ZERO,
            cpu,
            scheduling,
        };
        for host in &mut self.ports {
            let losses = host.port.losses();
            report.ring_drops += losses.ring;
            report.refused += losses.refused;
            report.unstamped += losses.unstamped;
        }
        report
    }
}
