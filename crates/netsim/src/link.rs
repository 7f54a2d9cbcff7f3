//! The link: a calculator that determines the outcome of a packet and when it leaves.

use std::collections::VecDeque;
use std::time::Duration;

use crate::codel::CodelState;
use crate::random::{Draws, Streams, mix, unit, up_to};
use crate::shaper::{Policer, Shaper};
use crate::time::picos;
use crate::{LinkConfig, LinkError, LinkStats, Loss, QueueDelays, Rate, Time};

/// The ECN field of an IP header (RFC 3168 section 5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not capable of ECN: never marked.
    #[default]
    NotEct,
    /// ECT(0).
    Ect0,
    /// ECT(1).
    Ect1,
    /// Congestion experienced.
    Ce,
}

/// The outcome of an offered packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferOutcome {
    /// It is dropped.
    Dropped(DropReason),
    /// It arrives, once or twice.
    Delivered(Deliveries),
}

/// The reason for a drop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// The queue had no room for it, or it made room for another.
    QueueFull,
    /// It had waited too long for CoDel.
    Codel,
    /// Random loss.
    Random,
    /// The packet was larger than the link's MTU.
    TooLarge,
    /// It exceeded the policer's rate.
    Policed,
    /// It was offered during an outage.
    Down,
}

/// The arrivals of one packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deliveries {
    /// The packet.
    pub first: Delivery,
    /// Its copy, right behind it and never corrupt.
    pub duplicate: Option<Delivery>,
}

impl Delivery {
    /// Returns the arrival of a packet of which this and `other` are fragments.
    fn with(self, other: Self) -> Self {
        Self {
            at: self.at.max(other.at),
            // RFC 3168 section 5.3: a packet is marked if one of its fragments is.
            ecn: if other.ecn == Ecn::Ce { Ecn::Ce } else { self.ecn },
            corrupt: self.corrupt.or(other.corrupt),
            reordered: self.reordered || other.reordered,
        }
    }
}

/// Bytes of the IPv4 header that each fragment has.
const FRAGMENT_HEADER: u32 = 20;

/// Returns the IP bytes of the fragments of a packet: all but the last carry a multiple of 8 bytes (RFC 791 section 2.3).
fn fragments(ip_bytes: u32, mtu: u32) -> impl Iterator<Item = u32> {
    let room = (mtu - FRAGMENT_HEADER) / 8 * 8;
    let carried = ip_bytes.saturating_sub(FRAGMENT_HEADER);
    (0..carried.div_ceil(room)).map(move |number| FRAGMENT_HEADER + room.min(carried - number * room))
}

impl IntoIterator for Deliveries {
    type Item = Delivery;
    type IntoIter = std::iter::Chain<std::iter::Once<Delivery>, std::option::IntoIter<Delivery>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(self.first).chain(self.duplicate)
    }
}

/// One arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// When the last bit arrives.
    pub at: Time,
    /// The ECN field with which it arrives.
    pub ecn: Ecn,
    /// Entropy that picks the bits to flip, for [`corrupt`].
    pub corrupt: Option<u64>,
    /// Held back or scattered, so that later packets may arrive before it. All others arrive in the order of their
    /// offers.
    pub reordered: bool,
}

/// A packet that passed outages, MTU and policer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// When it was offered.
    pub(crate) at: Time,
    /// The bytes in the queue then.
    found: u64,
    draws: Draws,
}

/// One direction of a link.
///
/// The queue is virtual: when a packet is offered, its departure follows from those of the packets before it. Nothing
/// happens between offers. So it has no `fq-codel`, under which later packets may leave earlier; a [`crate::Fabric`]
/// has it.
#[derive(Clone, Debug)]
pub struct Link {
    config: LinkConfig,
    streams: Streams,
    /// Whether packets are lost, delayed at random, reordered, duplicated, corrupted and marked.
    impaired: bool,
    /// State of the Gilbert-Elliott chain; `None` before its first packet.
    losing: Option<bool>,
    /// When the last burst of losses began.
    burst_since: Time,
    /// Departures that may still be in the future, and the size of each packet.
    queue: VecDeque<(Time, u32)>,
    queued_bytes: u64,
    shaper: Shaper,
    codel: CodelState,
    policer: Option<Policer>,
    /// Latest arrival of a packet in order.
    last_arrival: Time,
    stats: LinkStats,
    waits: QueueDelays,
}

impl Link {
    /// Creates an idle, empty link.
    ///
    /// # Errors
    /// Those of [`LinkConfig::check`], an unloaded trace, and `fq-codel`.
    pub fn new(config: LinkConfig) -> Result<Self, LinkError> {
        config.check_alone()?;
        Self::behind_queue(config)
    }

    /// Creates a link like [`Link::new`], but behind a fair queue if it has `fq-codel`.
    pub(crate) fn behind_queue(config: LinkConfig) -> Result<Self, LinkError> {
        config.check_loaded()?;
        Ok(Self {
            streams: Streams::new(config.seed),
            shaper: Shaper::new(&config),
            codel: CodelState::default(),
            policer: config.police.map(Policer::new),
            config,
            impaired: true,
            losing: None,
            burst_since: Time::ZERO,
            queue: VecDeque::new(),
            queued_bytes: 0,
            last_arrival: Time::ZERO,
            stats: LinkStats::default(),
            waits: QueueDelays::default(),
        })
    }

    /// Offers a packet at `now`; `ip_bytes` counts IP header, UDP header and payload. `now` should not decrease from
    /// call to call; if it does, the packet arrives as if offered late.
    pub fn offer(&mut self, now: Time, ip_bytes: u32, ecn: Ecn) -> OfferOutcome {
        match self.config.mtu {
            Some(mtu) if ip_bytes > mtu && self.config.fragment => self.offer_fragments(now, ip_bytes, ecn, mtu),
            _ => self.offer_whole(now, ip_bytes, ecn),
        }
    }

    /// Offers a packet as fragments: it arrives if all of them do, and then once.
    fn offer_fragments(&mut self, now: Time, ip_bytes: u32, ecn: Ecn, mtu: u32) -> OfferOutcome {
        let mut packet: Option<Delivery> = None;
        let mut dropped = None;
        for fragment in fragments(ip_bytes, mtu) {
            match self.offer_whole(now, fragment, ecn) {
                OfferOutcome::Delivered(Deliveries { first, .. }) => {
                    packet = Some(packet.map_or(first, |others| others.with(first)));
                }
                OfferOutcome::Dropped(reason) => _ = dropped.get_or_insert(reason),
            }
        }
        match (dropped, packet) {
            (None, Some(first)) => OfferOutcome::Delivered(Deliveries { first, duplicate: None }),
            (reason, _) => OfferOutcome::Dropped(reason.unwrap_or(DropReason::TooLarge)),
        }
    }

    #[inline(always)]
    fn offer_whole(&mut self, now: Time, ip_bytes: u32, ecn: Ecn) -> OfferOutcome {
        // Its steps are inlined: called, they cost half as much again.
        let found = self.queued_bytes(now);
        let fate = self.admit(now, found, ip_bytes).and_then(|admitted| {
            let left_as = self.enqueue(&admitted, ip_bytes, ecn)?;
            self.send(&admitted, ip_bytes, ecn, left_as)
        });
        match fate {
            Ok(deliveries) => OfferOutcome::Delivered(deliveries),
            Err(reason) => {
                self.count_drop(reason, ip_bytes);
                OfferOutcome::Dropped(reason)
            }
        }
    }

    /// Lets a packet in that finds `found` bytes in the queue, unless an outage, the MTU or the policer stops it.
    #[inline(always)]
    pub(crate) fn admit(&mut self, now: Time, found: u64, ip_bytes: u32) -> Result<Admitted, DropReason> {
        // Drawn before anything is decided, so that the n-th packet gets the n-th draw whatever the outcome of the
        // earlier ones.
        let draws = self.streams.draw();
        self.stats.offered.add(ip_bytes);
        if self.is_down(now) {
            return Err(DropReason::Down);
        }
        if self.config.mtu.is_some_and(|mtu| ip_bytes > mtu) {
            return Err(DropReason::TooLarge);
        }
        if self.policer.as_mut().is_some_and(|policer| !policer.passes(now, ip_bytes)) {
            return Err(DropReason::Policed);
        }
        Ok(Admitted { at: now, found, draws })
    }

    /// Sends a packet behind those sent before, and returns its arrivals unless it is lost at random. CoDel left its
    /// ECN field, once `ecn`, as `left_as`.
    #[inline(always)]
    pub(crate) fn send(
        &mut self,
        admitted: &Admitted,
        ip_bytes: u32,
        ecn: Ecn,
        left_as: Ecn,
    ) -> Result<Deliveries, DropReason> {
        let came = admitted.at;
        let departure = self.shaper.depart(came, ip_bytes, &self.config);
        self.hold(departure, ip_bytes);
        if self.loses(came, admitted.draws.loss) && self.impaired {
            return Err(DropReason::Random);
        }
        self.stats.delivered.add(ip_bytes);
        if left_as != ecn {
            self.stats.marked.add(ip_bytes);
        }
        self.waits.add(departure - came);
        Ok(self.deliver(self.delay(came), departure, admitted.found, ip_bytes, left_as, admitted.draws))
    }

    /// Counts a dropped packet.
    pub(crate) fn count_drop(&mut self, reason: DropReason, ip_bytes: u32) {
        self.stats.drop(reason, ip_bytes);
    }

    /// Returns when a packet that arrived at `came` would be taken from the queue, as the next one.
    pub(crate) fn takes(&self, came: Time, ip_bytes: u32) -> Time {
        self.shaper.takes(came, ip_bytes, &self.config)
    }

    /// Returns when the last bit of all sent packets has left.
    pub(crate) fn free_at(&self) -> Time {
        self.shaper.free_at()
    }

    /// Returns whether a queue of so many packets and bytes is within its bounds, without those being sent at `now`.
    pub(crate) fn has_room(&mut self, now: Time, packets: usize, bytes: u64) -> bool {
        let sending = self.queued_bytes(now);
        self.is_within_bounds(self.queue.len() + packets, sending + bytes)
    }

    fn is_within_bounds(&self, packets: usize, bytes: u64) -> bool {
        self.config.queue_packets.is_none_or(|bound| packets <= bound as usize)
            && self.config.queue_bytes.is_none_or(|bound| bytes <= bound)
    }

    /// Returns the bytes in the queue at `now`, including the packet being sent; with `fq-codel` that packet only.
    pub fn queued_bytes(&mut self, now: Time) -> u64 {
        while let Some(&(departure, ip_bytes)) = self.queue.front()
            && departure <= now
        {
            self.queue.pop_front();
            self.queued_bytes -= u64::from(ip_bytes);
        }
        self.queued_bytes
    }

    /// Returns the counters of the link.
    pub fn stats(&self) -> &LinkStats {
        &self.stats
    }

    /// Returns how long the packets that it did not drop have waited.
    pub fn waits(&self) -> &QueueDelays {
        &self.waits
    }

    /// Returns the present configuration.
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Changes the rate for packets offered from now on, permanently: rate steps are dropped. Packets in the queue
    /// leave as already determined.
    ///
    /// # Errors
    /// Those of [`LinkConfig::check`]; the link is then unchanged.
    pub fn set_rate(&mut self, rate: Option<Rate>) -> Result<(), LinkError> {
        self.set_config(LinkConfig { rate, steps: Vec::new(), ..self.config.clone() })
    }

    /// Changes the configuration for packets offered from now on; those in the queue leave as already determined. Order
    /// is kept across the change, and the random streams continue: the new seed is ignored. A token bucket keeps its
    /// content, and a new one is full.
    ///
    /// # Errors
    /// Those of [`Link::new`]; the link is then unchanged.
    pub fn set_config(&mut self, config: LinkConfig) -> Result<(), LinkError> {
        config.check_alone()?;
        config.check_loaded()?;
        self.set_checked_config(config);
        Ok(())
    }

    /// Changes the configuration like [`Link::set_config`], with `fq-codel` or without, to a checked one.
    pub(crate) fn set_checked_config(&mut self, config: LinkConfig) {
        self.shaper.change(&self.config, &config);
        match (&mut self.policer, config.police) {
            (Some(policer), Some(police)) => policer.change(police),
            (policer, police) => *policer = police.map(Policer::new),
        }
        self.config = LinkConfig { seed: self.config.seed, ..config };
    }

    /// Switches loss, slots, jitter, scatter, reordering, duplication, corruption and marking off, for packets offered
    /// from now on, or on again. Rate, queue, CoDel with its marks, policer and delay stay. Draws continue meanwhile,
    /// including those of the bursts: switched on again, the link treats each packet as it would have without the
    /// interruption. A link begins impaired.
    pub fn set_impaired(&mut self, impaired: bool) {
        self.impaired = impaired;
    }

    /// Passes a packet through the bounds of the queue and CoDel, and returns its ECN field then.
    #[inline(always)]
    fn enqueue(&mut self, admitted: &Admitted, ip_bytes: u32, ecn: Ecn) -> Result<Ecn, DropReason> {
        let (came, found) = (admitted.at, admitted.found);
        if !self.is_within_bounds(self.queue.len() + 1, found + u64::from(ip_bytes)) {
            return Err(DropReason::QueueFull);
        }
        let Some(codel) = self.config.codel else { return Ok(ecn) };
        let taken = self.takes(came, ip_bytes);
        // Departs: RFC 8289 section 5 uses the bytes behind a packet when it leaves, which are not known yet; these are
        // the bytes ahead of it when it arrived. Over time a queue has as many bytes when packets leave as when they
        // arrive.
        if !self.codel.acts(codel, taken, taken - came, found) {
            return Ok(ecn);
        }
        if ecn == Ecn::NotEct {
            self.hold(taken, ip_bytes);
            return Err(DropReason::Codel);
        }
        Ok(Ecn::Ce)
    }

    /// Counts a packet in the queue until it leaves.
    fn hold(&mut self, until: Time, ip_bytes: u32) {
        if self.config.has_queue() {
            self.queue.push_back((until, ip_bytes));
            self.queued_bytes += u64::from(ip_bytes);
        }
    }

    fn is_down(&self, now: Time) -> bool {
        // The ends of outages are whole nanoseconds, so no precision is lost.
        let since_start = Duration::from_nanos(now.as_nanos());
        self.config.outages.iter().any(|outage| (outage.from..outage.until).contains(&since_start))
    }

    /// Returns whether random loss takes a packet that passed the queue. The chain advances only for these: a packet
    /// refused by the queue never reached the channel, and would shorten the bursts that others see.
    fn loses(&mut self, now: Time, draw: u64) -> bool {
        let draw = unit(draw);
        let step = self.config.loss_steps.iter().rev().find(|step| Time::from(step.at) <= now);
        match step.map_or(self.config.loss, |step| self.config.loss.with_mean(step.loss)) {
            Loss::None => false,
            Loss::Bernoulli(loss) => draw < loss,
            Loss::GilbertElliott { loss, mean_burst } => {
                let is_over = |time| now.checked_since(self.burst_since).is_some_and(|lasted| lasted >= time);
                let in_burst = self.losing.map(|losing| losing && !self.config.burst_time.is_some_and(is_over));
                let losing = match in_burst {
                    None => draw < loss,
                    Some(false) => draw < loss / (mean_burst * (1.0 - loss)),
                    Some(true) => draw >= 1.0 / mean_burst,
                };
                if losing && in_burst != Some(true) {
                    self.burst_since = now;
                }
                self.losing = Some(losing);
                losing
            }
        }
    }

    /// Returns the propagation delay of packets that arrive now.
    fn delay(&self, now: Time) -> Duration {
        let step = self.config.delay_steps.iter().rev().find(|step| Time::from(step.at) <= now);
        step.map_or(self.config.delay, |step| step.delay)
    }

    #[inline(always)]
    fn deliver(
        &mut self,
        delay: Duration,
        departure: Time,
        found: u64,
        ip_bytes: u32,
        ecn: Ecn,
        draws: Draws,
    ) -> Deliveries {
        let config = &self.config;
        let stats = &mut self.stats;
        let impaired = self.impaired;
        let happens = |draw, probability| impaired && unit(draw) < probability;
        let jitter = if impaired { up_to(picos(config.jitter), draws.jitter) } else { 0 };
        let released = if impaired { departure.next_multiple_of(config.slot) } else { departure };
        let mut at = released.plus_picos(picos(delay)).plus_picos(jitter);
        let reordered = happens(draws.reorder, config.reorder.probability);
        if reordered {
            at = at.plus_picos(picos(config.reorder.extra));
            stats.reordered.add(ip_bytes);
        } else {
            at = at.max(self.last_arrival);
            self.last_arrival = at;
        }
        let scattered = impaired && !config.scatter.is_none();
        if scattered {
            at = at.plus_picos(config.scatter.picos(draws.scatter));
        }
        let reordered = reordered || scattered;
        let congested = impaired && config.mark.above_bytes.is_some_and(|threshold| found > threshold);
        let marks = congested || happens(draws.mark, config.mark.probability);
        let ecn = match ecn {
            Ecn::Ect0 | Ecn::Ect1 if marks => {
                stats.marked.add(ip_bytes);
                Ecn::Ce
            }
            ecn => ecn,
        };
        let corrupt = happens(draws.corrupt, config.corrupt).then(|| {
            stats.corrupted.add(ip_bytes);
            // Mixed, since a draw below a small probability has few random bits left.
            mix(draws.corrupt)
        });
        let duplicate = happens(draws.duplicate, config.duplicate).then(|| {
            stats.duplicated.add(ip_bytes);
            Delivery { at, ecn, corrupt: None, reordered }
        });
        Deliveries { first: Delivery { at, ecn, corrupt, reordered }, duplicate }
    }
}

/// Flips one to eight bits of one byte of `packet`, picked by `entropy`. An empty packet is unchanged.
pub fn corrupt(packet: &mut [u8], entropy: u64) {
    let Some(last) = packet.len().checked_sub(1) else {
        return;
    };
    // The high bits pick the byte, the low ones the bits.
    let index = up_to(last as u64, entropy) as usize;
    packet[index] ^= (entropy as u8).max(1);
}
