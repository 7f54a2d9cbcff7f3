//! Scenarios drawn from a seed: hosts, their data and the path.

use crate::coding::Coding;
use crate::host::{Host, HostConfig};
use crate::streams::{ReadScript, StreamScript};
use erasure::WindowCode;
use fastrand::Rng;
use netsim::{Duplex, LinkConfig, Loss, Mark, NodeId, Reorder};
use std::fmt;
use std::time::Duration;
use transport::flow::{StreamCoding, WindowCoding};
use transport::{ConnectionConfig, EndpointConfig, Profile, Rate, wire::Credit};

/// An interruption of the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outage {
    /// Nothing.
    None,
    /// It carries nothing for a while.
    Pause {
        /// When it begins.
        at: Duration,
        /// How long it lasts: less than the time after which the engine considers the path dead.
        length: Duration,
    },
    /// The path carries nothing any more.
    Death {
        /// When it begins.
        at: Duration,
    },
}

/// Two hosts, a path between them and the data that they send each other.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Determines keys, ids, contents and all random choices.
    pub seed: u64,
    /// The path from host 0 to host 1 and back.
    pub link: Duplex,
    /// How both send.
    pub profile: Profile,
    /// The host that connects.
    pub connects: usize,
    /// The host that closes when everything has arrived, in both directions.
    pub closes: usize,
    /// Lengths of the objects that each host sends.
    pub objects: [Vec<u64>; 2],
    /// Streams that each host sends.
    pub streams: [Vec<StreamScript>; 2],
    /// How both read them.
    pub reads: ReadScript,
    /// Bytes of control stream that each host sends.
    pub control: [u64; 2],
    /// How long coding a block takes.
    pub compute_delay: Duration,
    /// How long reading or writing a block takes.
    pub storage_delay: Duration,
    /// The credit of each host for the other, until data is written.
    pub credit: Credit,
    /// The interruption of the path.
    pub outage: Outage,
    /// Another choice that both make in mid-transfer.
    pub change: Option<Change>,
}

/// Another choice of the profile while the connection is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// When it is made.
    pub at: Duration,
    /// The key.
    pub key: &'static str,
    /// The value.
    pub value: &'static str,
}

impl Scenario {
    /// Draws the scenario of this seed.
    pub fn draw(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed);
        let link = Duplex::new(link(&mut random), link(&mut random)).sibling(seed);
        let profile = profile(&mut random, &link);
        let objects = match random.u8(..8) {
            0 => [objects(&mut random, &profile), objects(&mut random, &profile)],
            _ => [objects(&mut random, &profile), Vec::new()],
        };
        let mut scenario = Self {
            seed,
            connects: random.usize(..2),
            closes: random.usize(..2),
            control: [0, 0].map(|_| if random.u8(..3) == 0 { up_to(&mut random, 20_000) } else { 0 }),
            compute_delay: rarely(&mut random, 3, Duration::from_millis(60)),
            storage_delay: rarely(&mut random, 3, Duration::from_millis(60)),
            credit: Credit {
                symbols: if random.u8(..4) == 0 { random.u64(100..2_000) } else { 24_000 },
                control: if random.u8(..4) == 0 { random.u64(500..4_000) } else { 1 << 20 },
            },
            outage: Outage::None,
            change: None,
            link,
            profile,
            objects,
            streams: [Vec::new(), Vec::new()],
            reads: ReadScript::default(),
        };
        let at = part(&mut random, scenario.expected() * 2, 1);
        scenario.outage = match random.u8(..10) {
            0 => Outage::Death { at },
            1 => Outage::Pause { at, length: part(&mut random, Duration::from_secs(8), 1) },
            _ => Outage::None,
        };
        scenario
    }

    /// Draws the scenario of this seed, with streams in both directions, in addition to the objects or instead of them.
    pub fn draw_with_streams(seed: u64) -> Self {
        let mut scenario = Self::draw(seed);
        let mut random = Rng::with_seed(seed ^ 0x5eed_0f57_4ea5);
        if random.u8(..3) > 0 {
            scenario.objects = [Vec::new(), Vec::new()];
        }
        scenario.streams = match random.u8(..3) {
            0 => [streams(&mut random), Vec::new()],
            _ => [streams(&mut random), streams(&mut random)],
        };
        if random.u8(..3) == 0 {
            let every = part(&mut random, Duration::from_millis(40), 2);
            scenario.reads = ReadScript { most: 1_000 + up_to(&mut random, 200_000) as usize, every };
        }
        if random.u8(..3) == 0 {
            scenario.profile.streams = StreamCoding::Window(WindowCoding {
                code: WindowCode::Rlc,
                symbols: [1, 2, 9, 64, 2_000][random.usize(..5)],
                ..WindowCoding::default()
            });
        }
        scenario
    }

    /// Draws the scenario of this seed with one of the documents' systems, with other numbers.
    pub fn draw_documents(seed: u64) -> Self {
        let mut scenario = Self::draw(seed);
        scenario.profile = document(&mut Rng::with_seed(seed ^ 0xd0c5), &scenario.link);
        scenario
    }

    /// Draws the scenario of this seed with arq, lt-tcp or ttp and any choice of feedback, loss detection and timeout,
    /// and occasionally another choice in mid-transfer.
    pub fn draw_choices(seed: u64) -> Self {
        let mut scenario = Self::draw(seed);
        let mut random = Rng::with_seed(seed ^ 0xc401_ce50);
        scenario.profile = choices(&mut random, &scenario.link);
        if random.u8(..4) == 0 && scenario.outage == Outage::None {
            let (key, values) = CHANGES[random.usize(..CHANGES.len())];
            let at = part(&mut random, scenario.expected() * 2, 1);
            scenario.change = Some(Change { at, key, value: values[random.usize(..values.len())] });
        }
        scenario
    }

    /// Returns roughly how long the transfer takes on a path that performs as configured.
    pub fn expected(&self) -> Duration {
        let rtt = self.link.forward.delay + self.link.backward.delay;
        let way = |link: &LinkConfig, objects: &[u64], streams: &[StreamScript], control: u64| {
            let rate = link.rate.map_or(f64::INFINITY, |rate| rate.bits_per_second() as f64);
            let rate = self.profile.fixed_rate().map_or(rate, |fixed| rate.min(fixed.bits_per_second() as f64));
            // A write may cost a packet of its own.
            let stream = |stream: &StreamScript| stream.length + stream.length / stream.write * 1_408;
            let bytes = objects.iter().sum::<u64>() + streams.iter().map(stream).sum::<u64>() + control;
            let writing = |stream: &StreamScript| stream.every * (stream.length / stream.write + 1) as u32;
            let writing = streams.iter().map(writing).max().unwrap_or_default();
            writing + Duration::from_secs_f64(8.0 * 1.05 * bytes as f64 / rate / (1.0 - link.loss.mean()))
        };
        let forward = way(&self.link.forward, &self.objects[0], &self.streams[0], self.control[0]);
        let backward = way(&self.link.backward, &self.objects[1], &self.streams[1], self.control[1]);
        rtt * 2 + forward.max(backward)
    }

    /// Returns the time limit of a run. A fixed rate does not react to loss, so even the worst path delays it by
    /// minutes at most; a window that does react sends a packet or two per round trip on the worst paths.
    pub fn patience(&self) -> Duration {
        match self.profile.fixed_rate() {
            Some(_) => self.expected() * 100 + self.turns() * 10 + Duration::from_secs(300),
            None => Duration::from_secs(4 * 3_600),
        }
    }

    /// Returns roughly how long the transfer takes if each block waits until the one before is acknowledged.
    fn turns(&self) -> Duration {
        const SMALLEST_SYMBOL: u16 = 1_024;
        let block = u64::from(SMALLEST_SYMBOL) * u64::from(self.profile.blocks.max_source_symbols(SMALLEST_SYMBOL));
        let blocks: u64 = self.objects.iter().flatten().map(|length| length.div_ceil(block)).sum();
        let rtt = self.link.forward.delay + self.link.backward.delay;
        let queues = queueing(&self.link.forward) + queueing(&self.link.backward);
        (rtt + queues + self.compute_delay + self.storage_delay) * u32::try_from(blocks).unwrap_or(u32::MAX)
    }

    /// Returns one of the two hosts.
    pub(super) fn host(&self, side: usize) -> Host {
        let id = |side: usize| NodeId::from_index(side as u32);
        Host::new(id(side), self.host_config(side, id(1 - side)))
    }

    /// Returns the configuration of one of the hosts; the other is at `peer`.
    pub(super) fn host_config(&self, side: usize, peer: NodeId) -> HostConfig {
        let other = 1 - side;
        let most_symbols = self.credit.symbols;
        let limits = ConnectionConfig { credit: self.credit, most_symbols, ..ConnectionConfig::default() };
        HostConfig {
            endpoint: EndpointConfig { limits, ..EndpointConfig::default() },
            connect_to: if self.connects == side { vec![peer] } else { Vec::new() },
            objects: self.objects[side].clone(),
            streams: self.streams[side].clone(),
            reads: self.reads,
            expects_streams: self.streams[other].iter().filter(|stream| stream.reset_at.is_none()).count(),
            expects: self.objects[other].len(),
            control: self.control[side],
            expects_control: self.control[other],
            closes: self.closes == side,
            coding: Coding::each(self.compute_delay),
            storage_delay: self.storage_delay,
            ..HostConfig::idle(self.profile.clone(), self.seed)
        }
    }
}

/// Returns how long a full queue takes to drain.
fn queueing(link: &LinkConfig) -> Duration {
    let (Some(bytes), Some(rate)) = (link.queue_bytes, link.rate) else { return Duration::ZERO };
    Duration::from_secs_f64(8.0 * bytes as f64 / rate.bits_per_second() as f64)
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { link, profile, connects, closes, objects, control, credit, outage, .. } = self;
        write!(
            f,
            "{} (block feedback {:?}, {}, {}) over {link}: objects {objects:?}, control {control:?}, ",
            profile.name,
            profile.fixed_rate(),
            profile.blocks,
            profile.schedule
        )?;
        write!(
            f,
            "streams {:?} in {:?}, {:?}, host {connects} connects, {closes} closes, coding {:?}, storage {:?}, ",
            self.streams, profile.streams, self.reads, self.compute_delay, self.storage_delay
        )?;
        let (detection, timeout) = (&profile.recovery.detection, &profile.recovery.timeout);
        write!(f, "{:?}, {detection}, {timeout}, {}, ", profile.feedback, profile.recovery.estimator)?;
        write!(f, "credit {} and {}, outage {outage:?}, {:?}", credit.symbols, credit.control, self.change)
    }
}

/// Draws a number up to and including `most`, small ones more often.
fn up_to(random: &mut Rng, most: u64) -> u64 {
    (most as f64 * random.f64().powi(3)).round() as u64
}

/// Draws zero in most cases, and a time up to `most` in one case in `in_how_many`.
fn rarely(random: &mut Rng, in_how_many: u8, most: Duration) -> Duration {
    if random.u8(..in_how_many) == 0 { part(random, most, 1) } else { Duration::ZERO }
}

/// Draws a time up to `most` in whole microseconds; the higher the power, the more often short ones.
fn part(random: &mut Rng, most: Duration, power: i32) -> Duration {
    Duration::from_micros((most.as_micros() as f64 * random.f64().powi(power)) as u64)
}

/// A burst of losses is over after this long. Otherwise one of ten packets would last ten seconds where a probe goes out
/// every second, although the path is not dead.
const LONGEST_BURST: Duration = Duration::from_secs(2);

fn link(random: &mut Rng) -> LinkConfig {
    // 200 kbit/s to 1 Gbit/s, every magnitude equally likely, in readable steps.
    let rate = (10f64.powf(5.3 + 3.7 * random.f64()) / 1e5).round() as u64 * 100_000;
    let permille = |share: f64| (share * 1e3).round() / 1e3;
    let share = permille(random.f64() * 0.6);
    let loss = match random.u8(..6) {
        0 => Loss::None,
        1 | 2 => Loss::Bernoulli(permille(share / 10.0)),
        3 => Loss::Bernoulli(share),
        _ => Loss::GilbertElliott { loss: permille(share / 2.0), mean_burst: permille(1.5 + 6.0 * random.f64()) },
    };
    let burst_time = matches!(loss, Loss::GilbertElliott { .. }).then_some(LONGEST_BURST);
    let chance = |random: &mut Rng, most: f64| if random.u8(..4) == 0 { permille(most * random.f64()) } else { 0.0 };
    let reorder = chance(random, 0.3);
    let held = Duration::from_micros(1 + up_to(random, 100_000));
    // A queue of at least two full packets.
    let queue = random.bool().then(|| 3_000 + up_to(random, 400_000));
    LinkConfig {
        rate: Some(netsim::Rate::from_bits_per_second(rate)),
        queue_bytes: queue,
        delay: rarely(random, 2, Duration::from_millis(600)) + part(random, Duration::from_millis(30), 2),
        jitter: rarely(random, 3, Duration::from_millis(100)),
        loss,
        burst_time,
        reorder: if reorder > 0.0 { Reorder { probability: reorder, extra: held } } else { Reorder::default() },
        duplicate: chance(random, 0.2),
        corrupt: chance(random, 0.05),
        mark: Mark {
            above_bytes: queue.filter(|_| random.u8(..3) == 0).map(|bytes| bytes / 2),
            probability: chance(random, 0.2),
        },
        seed: random.u64(..),
        ..LinkConfig::default()
    }
}

/// Returns the rate of the slower direction in bits per second; 1 Mbit/s if neither is limited.
fn slower_bits(link: &Duplex) -> u64 {
    let rates = [&link.forward, &link.backward].into_iter().filter_map(|link| link.rate);
    rates.min().map_or(1_000_000, |rate| rate.bits_per_second())
}

fn profile(random: &mut Rng, link: &Duplex) -> Profile {
    let bits = slower_bits(link) as f64;
    let mut profile = match random.u8(..5) {
        0 => systems::arq::profile(),
        1 => systems::auto(),
        // Set to half of the capacity, all of it, or more.
        _ => systems::auto()
            .with_fixed_rate(Rate::from_bits_per_second((bits * [0.5, 1.0, 1.0, 1.2][random.usize(..4)]) as u64)),
    };
    let k = ["1024", "1024", "256", "64", "16", "10"][random.usize(..6)];
    profile.set("blocks.k", k).expect("blocks of one size");
    profile
}

/// Choices of the documents' systems that a drawn profile makes: keys, and values of which one is picked.
const RC_UDP: [(&str, &[&str]); 6] = [
    ("blocks.bytes", &["1000000", "1000000", "100000", "10000", "1"]),
    (
        "blocks.code",
        &["precoded-lt", "precoded-lt", "raptor", "raptorq", "lt", "reed-solomon", "uncoded", "tornado:64"],
    ),
    ("schedule.blocks", &["1", "1", "2", "5"]),
    ("schedule.ahead", &["1", "1", "0", "3"]),
    ("schedule.wait", &["300us", "0ms"]),
    ("feedback.blocks", &["done", "needs"]),
];
const TORNADO_TRANSFER: [(&str, &[&str]); 2] = [
    ("blocks", &["partition", "partition", "sub-files", "sub-files:bytes=50000", "fixed:k=64", "fixed:code=uncoded"]),
    ("schedule.repair-every", &["auto", "auto", "1", "10", "1000"]),
];

/// Draws a document's system, set to half of the capacity of the slower direction, all of it, or more, or left to
/// search it if it can.
fn document(random: &mut Rng, link: &Duplex) -> Profile {
    let (mut profile, choices) = match random.u8(..2) {
        0 => (systems::rc_udp::profile(), &RC_UDP[..]),
        _ => (systems::tornado_transfer::profile(), &TORNADO_TRANSFER[..]),
    };
    for (key, values) in choices {
        profile.set(key, values[random.usize(..values.len())]).expect("a valid choice");
    }
    if profile.fixed_rate().is_some() || random.bool() {
        let bits = slower_bits(link) as f64;
        // The capacity or more, with feedback and PINGs on top, without a window, into an unbounded queue: each block
        // would take longer than the previous one.
        let is_bounded = link.forward.queue_bytes.and(link.backward.queue_bytes).is_some();
        let most = if is_bounded { 1.2 } else { 0.9 };
        let fixed = (bits * f64::min([0.5, 1.0, 1.0, 1.2][random.usize(..4)], most)) as u64;
        profile = profile.with_fixed_rate(Rate::from_bits_per_second(fixed));
    }
    profile
}

/// Choices that any profile can make, each of which a drawn one makes in one case of three.
const ANY: [(&str, &[&str]); 8] = [
    ("feedback.packets", &["ranges", "count", "last:64", "last", "in-order"]),
    ("feedback.blocks", &["needs", "done", "mask"]),
    ("feedback.timing", &["every-packet", "spaced", "on-blocks", "every:packets=64", "every"]),
    ("detection", &["threshold", "threshold:packets=1,adapt=off", "duplicates", "duplicates:recovery=off"]),
    ("timeout", &["probe", "rto", "rto:min=1s,max=5s", "rto:min=60s"]),
    ("rtt", &["per-round", "median", "ewma:alpha=1,beta=1"]),
    ("estimator", &["packets", "ewma", "dynamic-ewma", "autoregressive"]),
    ("blocks", &["lt-tcp", "lt-tcp:code=raptorq,most=1024", "ttp", "ttp:bits=8000", "fixed:k=64,code=tornado:32"]),
];
/// Choices made in mid-transfer.
const CHANGES: [(&str, &[&str]); 7] = [
    ("schedule", &["windowed", "arq", "proactive", "chunks", "interleaved", "block-at-a-time"]),
    ("congestion", &["cubic", "reno", "bbr", "auto"]),
    ("detection", &["threshold", "duplicates"]),
    ("timeout", &["probe", "rto"]),
    ("rtt", &["ewma", "per-round", "median"]),
    ("estimator", &["packets", "dynamic-ewma"]),
    ("blocks", &["lt-tcp", "ttp", "fixed:k=16", "bytes"]),
];

/// Draws arq, lt-tcp or ttp, set to the capacity if they require it, with other choices.
fn choices(random: &mut Rng, link: &Duplex) -> Profile {
    let mut profile =
        [systems::arq::profile, systems::lt_tcp::profile, systems::ttp::profile, systems::auto][random.usize(..4)]();
    let is_ttp = profile.name == "ttp";
    for (key, values) in ANY.into_iter().filter(|(key, _)| !is_ttp || *key != "blocks") {
        if random.u8(..3) == 0 {
            profile.set(key, values[random.usize(..values.len())]).expect("a valid choice");
        }
    }
    if is_ttp {
        // Its minimum rate would exceed the capacity of many paths.
        let most = slower_bits(link);
        for (key, rate) in [("min", most / 20), ("max", most), ("bottleneck", most)] {
            profile.set(&format!("congestion.{key}"), &rate.to_string()).expect("a rate");
        }
        // Half of them, without a draw: the other draws of a seed are unchanged.
        let encode = ["beside", "first"][(most.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 63) as usize];
        profile.set("schedule.encode", encode).expect("an order");
    }
    profile
}

/// Draws the lengths of a few objects: the boundaries of symbols and blocks as often as anything between, seldom a
/// megabyte.
fn objects(random: &mut Rng, profile: &Profile) -> Vec<u64> {
    let symbol = [1_408u64, 1_152][random.usize(..2)];
    let block = symbol * u64::from(profile.blocks.max_source_symbols(1_408));
    let count = if random.u8(..4) == 0 { 1 + up_to(random, 20) } else { 1 };
    let most = if random.u8(..8) == 0 { 1_000_000 } else { 120_000 };
    let length = |random: &mut Rng| match random.u8(..8) {
        0 => random.u64(..2),
        1 => symbol * random.u64(1..4) + random.u64(..3) - 1,
        2 => (block * random.u64(1..4)).min(1_000_000),
        _ => up_to(random, most),
    };
    (0..count).map(|_| length(random).min(1_000_000 / count)).collect()
}

/// Draws a few streams: many small writes, bulk, or anything between; one in four is reset or stopped midway.
fn streams(random: &mut Rng) -> Vec<StreamScript> {
    let count = 1 + up_to(random, 12);
    let script = |random: &mut Rng| {
        let most = if random.u8(..8) == 0 { 400_000 } else { 60_000 };
        let length = up_to(random, most) / count;
        let write = [1 + length / 4, 10, 100, 1_403, 5_000, 1 << 20][random.usize(..6)].max(length / 500 + 1);
        let every = if random.bool() { part(random, Duration::from_millis(20), 2) } else { Duration::ZERO };
        let cut = |random: &mut Rng| (random.u8(..8) == 0).then(|| random.u64(..=length));
        StreamScript { length, write, every, reset_at: cut(random), stop_at: cut(random) }
    };
    (0..count).map(|_| script(random)).collect()
}
