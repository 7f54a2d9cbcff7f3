//! A path in virtual time: a sender with a [`Recovery`], and a receiver that reports arrivals. For the tests of
//! controllers, here and in other crates.

use super::{AckInfo, CongestionConfig, Content, Recovery, RecoveryConfig, SendAllowance, SentPacket, Timeout};
use crate::time::{Rate, Time};
use crate::wire::PacketRanges;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// IP and UDP headers.
pub const OVERHEAD: u32 = 28;
/// IP bytes of a full packet.
pub const PACKET: u32 = 1479;

const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Randomness: the same seed gives the same numbers (splitmix64).
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the sequence of this seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`, which is not 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Returns true with this probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64 <= probability && probability > 0.0
    }
}

/// The impairments of a path.
#[derive(Clone, Copy)]
pub struct Conditions {
    /// The round-trip time without queues.
    pub rtt: Duration,
    /// Bernoulli loss.
    pub loss: f64,
    /// One in this many packets is lost.
    pub periodic_loss: u64,
    /// Packets are delayed by up to this much more.
    pub jitter: Duration,
    /// The bottleneck's rate and its queue in bytes.
    pub bottleneck: Option<(Rate, u64)>,
    /// Nothing arrives from this time on.
    pub dark_from: Time,
    /// Packets arrive again from this time on.
    pub dark_until: Time,
}

impl Conditions {
    /// Returns a path without impairments.
    pub const fn clean(rtt: Duration) -> Self {
        let never = Time::from_nanos(u64::MAX);
        Self {
            rtt,
            loss: 0.0,
            periodic_loss: u64::MAX,
            jitter: Duration::ZERO,
            bottleneck: None,
            dark_from: never,
            dark_until: never,
        }
    }
}

/// Sender, path and receiver.
pub struct Path {
    /// The sender.
    pub recovery: Recovery,
    /// The impairments.
    pub conditions: Conditions,
    /// The chance of losses and delays.
    pub random: Random,
    /// The time.
    pub now: Time,
    /// The number of the next packet.
    pub next_number: u64,
    /// When the application has data: always, unless a test sets it otherwise.
    pub sending: bool,
    /// When the pacer allows the next packet.
    pub wake: Time,
    arrivals: BTreeMap<(Time, u64), ()>,
    bottleneck_free: Time,
    /// Ranges received, lowest first.
    pub received: VecDeque<(u64, u64)>,
    /// When the last packet arrived.
    pub newest_arrival: Time,
    unreported: bool,
    next_feedback: Time,
    feedback: VecDeque<(Time, PacketRanges)>,
    /// Window and time of every report.
    pub windows: Vec<(Time, u64)>,
    /// The most bytes in flight so far.
    pub most_in_flight: u64,
}

impl Path {
    /// Creates a path under this controller.
    pub fn new(congestion: &CongestionConfig, conditions: Conditions, seed: u64) -> Self {
        let config = RecoveryConfig { congestion: congestion.clone(), ..RecoveryConfig::default() };
        let mut recovery = Recovery::new(&config, Time::ZERO, OVERHEAD);
        recovery.set_max_packet(PACKET);
        recovery.set_rtt_from_handshake(Time::ZERO, conditions.rtt);
        Self {
            recovery,
            conditions,
            random: Random::new(seed),
            now: Time::ZERO,
            next_number: 0,
            sending: true,
            wake: Time::ZERO,
            arrivals: BTreeMap::new(),
            bottleneck_free: Time::ZERO,
            received: VecDeque::new(),
            newest_arrival: Time::ZERO,
            unreported: false,
            next_feedback: Time::ZERO,
            feedback: VecDeque::new(),
            windows: Vec::new(),
            most_in_flight: 0,
        }
    }

    /// Sends a packet.
    pub fn send(&mut self, probe: bool) {
        let number = self.next_number;
        self.next_number += 1;
        let sent = SentPacket { number, time: self.now, bytes: PACKET, content: Content::Control(number as u32) };
        self.recovery.on_sent(sent, probe);
        self.most_in_flight = self.most_in_flight.max(self.recovery.bytes_in_flight());
        let Conditions { rtt, loss, periodic_loss, jitter, dark_from, dark_until, bottleneck } = self.conditions;
        let lost = self.random.chance(loss) || number % periodic_loss == periodic_loss - 1;
        let dark = (dark_from..dark_until).contains(&self.now);
        let queued = self.bottleneck_free.since(self.now);
        let mut leaves = self.now;
        let mut full = false;
        if let Some((rate, queue)) = bottleneck {
            full = rate.bytes_in(queued) > queue;
            leaves += if full { Duration::ZERO } else { queued + rate.time_for(u64::from(PACKET)) };
            self.bottleneck_free = self.bottleneck_free.max(leaves);
        }
        if !lost && !dark && !full {
            let extra = Duration::from_nanos(self.random.below(jitter.as_nanos() as u64 + 1));
            self.arrivals.insert((leaves + rtt / 2 + extra, number), ());
        }
    }

    /// Sends what the window allows.
    pub fn fill(&mut self) {
        self.wake = Time::from_nanos(u64::MAX);
        while self.sending {
            match self.recovery.send_allowance(self.now) {
                SendAllowance::Bytes(bytes) => (0..bytes / u64::from(PACKET)).for_each(|_| self.send(false)),
                SendAllowance::Wait(until) => {
                    self.wake = until;
                    return;
                }
                SendAllowance::Blocked => return,
            }
        }
    }

    /// A packet arrives.
    pub fn receive(&mut self, number: u64) {
        let at = self.received.partition_point(|&(low, _)| low <= number);
        let joins_before = at > 0 && self.received[at - 1].1 + 1 == number;
        let joins_after = at < self.received.len() && self.received[at].0 == number + 1;
        match (joins_before, joins_after) {
            (true, true) => {
                self.received[at - 1].1 = self.received[at].1;
                self.received.remove(at);
            }
            (true, false) => self.received[at - 1].1 = number,
            (false, true) => self.received[at].0 = number,
            (false, false) => self.received.insert(at, (number, number)),
        }
        self.newest_arrival = self.now;
        self.unreported = true;
        while self.received.len() > 256 {
            self.received.pop_front();
        }
    }

    /// Handles whatever is due next. Returns false when nothing is.
    pub fn step(&mut self, end: Time) -> bool {
        let spacing = (self.conditions.rtt / 32).max(millis(1));
        let arrival = self.arrivals.first_key_value().map(|(&(time, _), ())| time);
        let report = self.unreported.then_some(self.next_feedback.max(self.newest_arrival));
        let feedback = self.feedback.front().map(|(time, _)| *time);
        let due = [arrival, report, feedback, self.recovery.next_timeout(), Some(self.wake)];
        let next = due.into_iter().flatten().min().filter(|&next| next <= end);
        let Some(next) = next else {
            self.now = end;
            return false;
        };
        self.now = self.now.max(next);
        if arrival == Some(next) {
            let ((_, number), ()) = self.arrivals.pop_first().expect("it is due");
            self.receive(number);
        } else if report == Some(next) {
            self.unreported = false;
            self.next_feedback = self.now + spacing;
            let delay = self.now.since(self.newest_arrival).as_micros() as u32;
            let ranges = self.received.iter().rev().copied().collect();
            self.feedback.push_back((self.now + self.conditions.rtt / 2, PacketRanges { delay_micros: delay, ranges }));
        } else if feedback == Some(next) {
            let (_, packets) = self.feedback.pop_front().expect("it is due");
            self.recovery.on_feedback(self.now, AckInfo::Ranges(&packets), None).expect("packets that were sent");
            self.windows.push((self.now, self.recovery.window()));
        } else if self.recovery.next_timeout() == Some(next) && self.recovery.on_timeout(self.now) == Timeout::Probe {
            self.send(true);
        }
        self.fill();
        true
    }

    /// Runs until this time.
    pub fn run_until(&mut self, end: Time) {
        self.fill();
        while self.step(end) {}
    }

    /// Sends no more and waits until the outcome of everything is known.
    pub fn finish(&mut self) {
        self.sending = false;
        self.recovery.set_app_limited();
        self.run_until(self.now + Duration::from_secs(30));
    }

    /// Returns the mean window in packets since `from`, over time.
    pub fn mean_window(&self, from: Time) -> f64 {
        let since: Vec<_> = self.windows.iter().filter(|(time, _)| *time >= from).collect();
        let weighed: f64 =
            since.windows(2).map(|pair| pair[1].0.since(pair[0].0).as_secs_f64() * pair[0].1 as f64).sum();
        weighed / since[since.len() - 1].0.since(since[0].0).as_secs_f64() / f64::from(PACKET)
    }
}
