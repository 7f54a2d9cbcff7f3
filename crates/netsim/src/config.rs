//! The configuration of a link, as plain numbers.

use std::io;
use std::time::Duration;

use crate::{Codel, Rate, ReorderingDelay, TraceFile, TraceFileError};

/// One direction of a link. The default is a perfect wire: no rate, no delay, no loss.
///
/// A packet passes the outages, then the policer, then queue and rate, then loss, then slots, delay and jitter, then
/// reordering: a packet dropped by the policer never enters the queue, and one dropped by the queue has still used the
/// policer's tokens. `FromStr` reads the text form (`rate=100M,delay=50ms,loss=5%,queue=256KB`), and `Display` prints
/// it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LinkConfig {
    /// How fast packets leave the queue, in IP bits per second. `None`: at once and without a queue, unless a trace is
    /// set.
    pub rate: Option<Rate>,
    /// Other rates from given times on, in order. They apply to every bit that leaves afterwards, including those of
    /// waiting packets.
    pub steps: Vec<RateStep>,
    /// A recorded link instead of a rate.
    pub trace: Option<TraceFile>,
    /// Token bucket of the rate in IP bytes. Unused rate fills it, it begins full, and a packet leaves at once when its
    /// bytes are available, as with tbf in Linux (which drops packets larger than the bucket; in this model they wait
    /// for the missing bytes). `None`: every bit takes its time.
    pub bucket_bytes: Option<u64>,
    /// When the link is down, in order: packets offered then are dropped. Packets in the queue or in flight continue.
    pub outages: Vec<Outage>,
    /// Packets above a rate are dropped on arrival.
    pub police: Option<Police>,
    /// Drop-tail bound of the queue in IP bytes; the packet being sent counts until its last bit has left. `None`: no
    /// bound.
    pub queue_bytes: Option<u64>,
    /// Drop-tail bound of the queue in packets, of any size, counted likewise. With both bounds a packet needs room
    /// under each.
    pub queue_packets: Option<u32>,
    /// CoDel in front of the rate: packets that have waited too long are marked if they allow it (ECT), and dropped
    /// otherwise, which leaves their time to the next ones. `None`: they wait as long as it takes.
    pub codel: Option<Codel>,
    /// FlowQueue-CoDel (RFC 8290) instead: each flow has a queue of its own with CoDel, and the queues take turns. Where
    /// the bounds are exceeded, the first packets of the longest queue are dropped. Only in a [`crate::Fabric`].
    pub fq_codel: Option<Codel>,
    /// Largest packet in IP bytes that passes; larger ones are dropped silently. `None`: any passes.
    pub mtu: Option<u32>,
    /// Larger packets pass as fragments of IPv4 instead (RFC 791 section 2.3), each with a header of 20 bytes and an
    /// outcome of its own; the packet arrives when all of them have. All counts are then of fragments.
    pub fragment: bool,
    /// One-way propagation delay.
    pub delay: Duration,
    /// Other delays from given times on, in order, for packets that arrive then. Packets stay in order when the delay
    /// falls.
    pub delay_steps: Vec<DelayStep>,
    /// Up to this much more delay for each packet, uniform. Packets stay in order: none overtakes the one before.
    pub jitter: Duration,
    /// Packets that have left the queue travel on together at the next multiple of this time since the start of the
    /// run, as with the schedulers of Wi-Fi and cellular networks. Zero: each at once.
    pub slot: Duration,
    /// A delay of each packet's own, which does not keep order.
    pub scatter: ReorderingDelay,
    /// Random loss, after the queue: a lost packet has used its share of the rate.
    pub loss: Loss,
    /// A burst of losses is over after this long, however few packets it has met. `None`: it lasts a number of packets,
    /// and as long as it takes until they are sent. Without effect unless `loss` has bursts.
    pub burst_time: Option<Duration>,
    /// Other shares of packets lost from given times on, in order, for packets that arrive then; in bursts if `loss`
    /// has bursts.
    pub loss_steps: Vec<LossStep>,
    /// Packets that arrive late, out of order.
    pub reorder: Reorder,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet arrives with bits flipped.
    pub corrupt: f64,
    /// Marking of congestion instead of loss (ECN, RFC 3168).
    pub mark: Mark,
    /// Seed of every random choice of this link.
    pub seed: u64,
}

/// A rate from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateStep {
    /// When it begins, since the start of the run.
    pub at: Duration,
    /// The rate then.
    pub rate: Rate,
}

/// A delay from some time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayStep {
    /// When it begins, since the start of the run.
    pub at: Duration,
    /// The one-way delay then.
    pub delay: Duration,
}

/// A share of packets lost from some time on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LossStep {
    /// When it begins, since the start of the run.
    pub at: Duration,
    /// The share then, 0 to 1.
    pub loss: f64,
}

/// A time during which the link is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outage {
    /// When it begins, since the start of the run.
    pub from: Duration,
    /// When it ends: the first instant at which packets pass again.
    pub until: Duration,
}

/// A policer: it drops packets above a rate. They pass while a token bucket has their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Police {
    /// Rate at which the bucket fills, in IP bits per second.
    pub rate: Rate,
    /// Capacity of the bucket, in IP bytes; it begins full. A larger packet never passes.
    pub burst_bytes: u64,
}

/// How packets are lost at random.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Loss {
    /// No random loss.
    #[default]
    None,
    /// Each packet with this probability, independently.
    Bernoulli(f64),
    /// Two states, in one of which every packet is lost (Gilbert 1960, Elliott 1963). With loss `p` and mean burst `E`,
    /// the bad state is entered with probability `p / (E (1 - p))` and left with `1 / E` at each packet.
    GilbertElliott {
        /// Share of packets lost, below 1.
        loss: f64,
        /// Mean number of packets lost in a row, at least `1 / (1 - loss)`, the mean of independent loss.
        mean_burst: f64,
    },
}

impl Loss {
    /// Returns loss of the same kind with another share.
    #[must_use]
    pub fn with_mean(self, share: f64) -> Self {
        match self {
            Self::None | Self::Bernoulli(_) => Self::Bernoulli(share),
            Self::GilbertElliott { mean_burst, .. } => Self::GilbertElliott { loss: share, mean_burst },
        }
    }

    fn check_bursts(self) -> Result<(), LinkError> {
        let Self::GilbertElliott { loss, mean_burst } = self else { return Ok(()) };
        if loss >= 1.0 {
            return Err(LinkError::BurstOfEverything);
        }
        let least = 1.0 / (1.0 - loss);
        if !mean_burst.is_finite() || mean_burst < least {
            return Err(LinkError::BurstTooShort { loss, mean_burst, least });
        }
        Ok(())
    }

    /// Returns the share of packets lost in the long run.
    pub fn mean(self) -> f64 {
        match self {
            Self::None => 0.0,
            Self::Bernoulli(loss) | Self::GilbertElliott { loss, .. } => loss,
        }
    }
}

/// Some packets are held back for a while, and later ones overtake them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Reorder {
    /// Probability that a packet is held back.
    pub probability: f64,
    /// How long, in addition to other delays.
    pub extra: Duration,
}

/// When a packet that allows it (ECT) is marked CE. The two rules are cumulative.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Mark {
    /// Mark packets that find more than this many bytes in the queue.
    pub above_bytes: Option<u64>,
    /// Mark packets with this probability, whatever the queue.
    pub probability: f64,
}

/// The reason why a [`LinkConfig`] is invalid.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub enum LinkError {
    /// A probability is outside 0..=1, or not a number.
    #[error("{name} is {value}: write a probability from 0% to 100%")]
    Probability {
        /// The key of the text form.
        name: &'static str,
        /// The given value.
        value: f64,
    },
    /// Bursts shorter than independent loss gives, or of unknown length.
    #[error("burst is {mean_burst}: with {loss} loss write at least {least:.3}, or omit burst for independent loss")]
    BurstTooShort {
        /// The requested loss.
        loss: f64,
        /// The requested mean burst.
        mean_burst: f64,
        /// The mean burst of independent loss, `1 / (1 - loss)`.
        least: f64,
    },
    /// Every packet is lost, in one endless burst.
    #[error("a link that loses everything has no bursts: write loss=100% without burst")]
    BurstOfEverything,
    /// A rate of zero.
    #[error("rate is 0: write a rate such as 100M, or omit it for a link without one (a dead link is loss=100%)")]
    ZeroRate,
    /// A queue that holds nothing.
    #[error("queue is 0: write a size such as 256KB, or omit it for a queue without bound")]
    ZeroQueue,
    /// A bucket that holds nothing.
    #[error("bucket is 0: write a size such as 10KB, or omit it for packets that keep their distance")]
    ZeroBucket,
    /// A rate, or a setting that requires one, together with a trace.
    #[error("{name} has no effect on a link with a trace: omit one of them")]
    BesideTrace {
        /// The key of the text form.
        name: &'static str,
    },
    /// A named trace that was not loaded.
    #[error("trace files are not supported here: write a rate, such as rate=100M")]
    TraceNotLoaded,
    /// An outage that ends before it begins.
    #[error(
        "an outage from {from:?} until {until:?} is empty: write its beginning and a later end, such as down=3s..5s"
    )]
    EmptyOutage {
        /// Its beginning.
        from: Duration,
        /// Its end.
        until: Duration,
    },
    /// Outages that overlap or are out of order.
    #[error(
        "an outage begins at {from:?}, before the previous one ends: write them in order, such as down=3s..5s+8s..9s"
    )]
    OutageTooEarly {
        /// Its beginning.
        from: Duration,
    },
    /// Rates, delays or losses out of order.
    #[error("a {name} at {at:?} is not after the previous one: write them in order, such as {example}")]
    StepTooEarly {
        /// The key of the text form.
        name: &'static str,
        /// An example of the form.
        example: &'static str,
        /// Its time.
        at: Duration,
    },
    /// CoDel without target or interval.
    #[error("{name} acts on every packet: write a target and an interval, such as {name}=5ms:100ms")]
    ZeroCodel {
        /// The key of the text form.
        name: &'static str,
    },
    /// Both kinds of CoDel.
    #[error("codel has no effect with fq-codel, which has one for each flow: omit one of them")]
    TwoCodels,
    /// FlowQueue-CoDel where packets have no flows.
    #[error("fq-codel needs the flows of packets, which are unknown here: write codel instead")]
    NoFlows,
    /// A policer without rate or burst.
    #[error("police lets nothing pass: write a rate and a burst, such as police=10M:20KB")]
    ZeroPolice,
    /// A queue, CoDel, a bucket, rate step, or marking by queue, on a link where nothing ever waits.
    #[error("{name} has no effect without a rate: write a rate too, such as rate=100M")]
    QueueWithoutRate {
        /// The key of the text form.
        name: &'static str,
    },
    /// Fragments without a size, or of one too small for data.
    #[error("fragment needs an mtu of at least {LEAST_MTU}B: write it too, such as mtu=1500B,fragment=on")]
    NoRoomForFragments,
    /// Fragments behind a fair queue.
    #[error("fq-codel takes whole packets: omit fragment, or write codel instead")]
    FragmentsOfFlows,
    /// Reordering by no time at all.
    #[error("reorder holds packets back by 0: write by how long, such as reorder=1%:2ms")]
    ReorderWithoutExtra,
}

/// The smallest MTU of IPv4, in bytes (RFC 791 section 3.2).
const LEAST_MTU: u32 = 68;

impl LinkConfig {
    /// Checks that the numbers make sense.
    ///
    /// # Errors
    /// The first invalid setting, with advice.
    pub fn check(&self) -> Result<(), LinkError> {
        let steps = self.loss_steps.iter().map(|step| ("loss-step", step.loss));
        let probabilities = [
            ("loss", self.loss.mean()),
            ("reorder", self.reorder.probability),
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("mark", self.mark.probability),
        ];
        for (name, value) in probabilities.into_iter().chain(steps) {
            if !(0.0..=1.0).contains(&value) {
                return Err(LinkError::Probability { name, value });
            }
        }
        for loss in self.loss_steps.iter().map(|step| self.loss.with_mean(step.loss)).chain([self.loss]) {
            loss.check_bursts()?;
        }
        let mut rates = self.rate.into_iter().chain(self.steps.iter().map(|step| step.rate));
        if rates.any(|rate| rate.bits_per_second() == 0) {
            return Err(LinkError::ZeroRate);
        }
        if self.queue_bytes == Some(0) || self.queue_packets == Some(0) {
            return Err(LinkError::ZeroQueue);
        }
        if self.bucket_bytes == Some(0) {
            return Err(LinkError::ZeroBucket);
        }
        if self.police.is_some_and(|police| police.rate.bits_per_second() == 0 || police.burst_bytes == 0) {
            return Err(LinkError::ZeroPolice);
        }
        for (name, codel) in [("codel", self.codel), ("fq-codel", self.fq_codel)] {
            if codel.is_some_and(|codel| codel.target.is_zero() || codel.interval.is_zero()) {
                return Err(LinkError::ZeroCodel { name });
            }
        }
        if self.codel.is_some() && self.fq_codel.is_some() {
            return Err(LinkError::TwoCodels);
        }
        if self.fragment {
            self.check_fragments()?;
        }
        self.check_service()?;
        if self.reorder.probability > 0.0 && self.reorder.extra.is_zero() {
            return Err(LinkError::ReorderWithoutExtra);
        }
        self.check_times()
    }

    fn check_fragments(&self) -> Result<(), LinkError> {
        if self.mtu.is_none_or(|mtu| mtu < LEAST_MTU) {
            return Err(LinkError::NoRoomForFragments);
        }
        if self.fq_codel.is_some() { Err(LinkError::FragmentsOfFlows) } else { Ok(()) }
    }

    /// Checks that the settings of rate and queue are compatible.
    fn check_service(&self) -> Result<(), LinkError> {
        let of_the_rate = [("bucket", self.bucket_bytes.is_some()), ("step", !self.steps.is_empty())];
        let of_the_queue = [
            ("queue", self.queue_bytes.is_some()),
            ("queue-packets", self.queue_packets.is_some()),
            ("codel", self.codel.is_some()),
            ("fq-codel", self.fq_codel.is_some()),
            ("mark-above", self.mark.above_bytes.is_some()),
        ];
        let set = |&(name, is_set): &(&'static str, bool)| is_set.then_some(name);
        if self.trace.is_some() {
            let rate = [("rate", self.rate.is_some())];
            let beside = rate.iter().chain(&of_the_rate).find_map(set);
            return beside.map_or(Ok(()), |name| Err(LinkError::BesideTrace { name }));
        }
        let without = of_the_queue.iter().chain(&of_the_rate).find_map(set).filter(|_| self.rate.is_none());
        without.map_or(Ok(()), |name| Err(LinkError::QueueWithoutRate { name }))
    }

    /// Returns whether packets wait for a rate or a trace.
    pub(crate) fn has_queue(&self) -> bool {
        self.rate.is_some() || self.trace.is_some()
    }

    /// Checks the configuration, and that a named trace is loaded.
    pub(crate) fn check_loaded(&self) -> Result<(), LinkError> {
        self.check()?;
        match &self.trace {
            Some(file) if file.trace().is_none() => Err(LinkError::TraceNotLoaded),
            _ => Ok(()),
        }
    }

    /// Checks that a link without a fair queue in front can have this configuration.
    pub(crate) fn check_alone(&self) -> Result<(), LinkError> {
        if self.fq_codel.is_some() { Err(LinkError::NoFlows) } else { Ok(()) }
    }

    /// Loads the trace, if any; `read` reads a file by name, as `std::fs::read_to_string` does.
    ///
    /// # Errors
    /// A file that cannot be read or is no trace.
    pub fn load_trace(&mut self, read: impl FnOnce(&str) -> io::Result<String>) -> Result<(), TraceFileError> {
        self.trace.as_mut().map_or(Ok(()), |file| file.load(read))
    }

    fn check_times(&self) -> Result<(), LinkError> {
        if let Some(&Outage { from, until }) = self.outages.iter().find(|outage| outage.from >= outage.until) {
            return Err(LinkError::EmptyOutage { from, until });
        }
        if let Some(pair) = self.outages.windows(2).find(|pair| pair[1].from < pair[0].until) {
            return Err(LinkError::OutageTooEarly { from: pair[1].from });
        }
        let times = [
            ("rate step", "step=10s:20M+20s:5M", self.steps.iter().map(|step| step.at).collect::<Vec<_>>()),
            ("delay step", "delay-step=10s:50ms+20s:5ms", self.delay_steps.iter().map(|step| step.at).collect()),
            ("loss step", "loss-step=10s:5%+20s:0%", self.loss_steps.iter().map(|step| step.at).collect()),
        ];
        for (name, example, times) in times {
            if let Some(pair) = times.windows(2).find(|pair| pair[1] <= pair[0]) {
                return Err(LinkError::StepTooEarly { name, example, at: pair[1] });
            }
        }
        Ok(())
    }

    /// Returns the same link with the random streams of its `number`-th sibling: links built many times from one
    /// description must not lose the same packets everywhere. Number 0 is the link itself, and applying a number twice
    /// reverts it.
    #[must_use]
    pub fn sibling(&self, number: u64) -> Self {
        // Exclusive or, so that it can be reverted; `Streams` mixes the seed before use.
        Self { seed: self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15), ..self.clone() }
    }
}

/// Both directions of a link, which share no random stream.
///
/// The text form is that of a [`LinkConfig`] for both directions, or one for each with ` / ` between them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Duplex {
    /// From the first node to the second.
    pub forward: LinkConfig,
    /// From the second node to the first.
    pub backward: LinkConfig,
}

impl Duplex {
    /// Creates a link from the two halves of a text form; the way back gets streams of its own even if the seeds are
    /// equal.
    pub fn new(forward: LinkConfig, backward: LinkConfig) -> Self {
        Self { forward, backward: backward.sibling(1) }
    }

    /// Loads the traces of both directions; see [`LinkConfig::load_trace`].
    ///
    /// # Errors
    /// A file that cannot be read or is no trace.
    pub fn load_traces(&mut self, read: impl Fn(&str) -> io::Result<String>) -> Result<(), TraceFileError> {
        self.forward.load_trace(&read)?;
        self.backward.load_trace(&read)
    }

    /// Returns the same two directions with the random streams of their `number`-th sibling; see
    /// [`LinkConfig::sibling`].
    #[must_use]
    pub fn sibling(&self, number: u64) -> Self {
        // Even numbers: odd ones could coincide with the reverse direction of a neighbour.
        let number = number.wrapping_mul(2);
        Self { forward: self.forward.sibling(number), backward: self.backward.sibling(number) }
    }
}
