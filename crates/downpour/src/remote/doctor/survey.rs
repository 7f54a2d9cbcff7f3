//! Everything measured in one direction, and what follows from it: the rate of the line, and whether a transfer gains by
//! being told one.
//!
//! What a congestion control gets says little about the line: CUBIC gets a thirtieth of one of 100 Mbit/s and 50 ms that
//! loses a packet in a hundred. So the line is measured by other means: packet trains at a low rate, which show what its
//! slowest link does for a short burst (`docs/design/auto.md`), and trials, which send at a set rate and ask whether more
//! is lost or queued than at others.

#[cfg(test)]
mod tests;

use std::ops::RangeInclusive;

use serde::Serialize;
use transport::congestion::{CongestionConfig, FixedRateConfig, LinkRate};
use transport::{LimitedBy, Rate};

use super::meter::Traffic;

/// Options of commands express rates from so many bits per second on in whole megabits, others in kilobits.
pub(super) const WHOLE_MEGABITS: f64 = 1e7;

/// A train takes the link so many seconds, at the rate that has arrived, if it may have as many packets: hosts that are
/// late by a tenth of a millisecond falsify shorter ones. Over 6 ms, the packets of a link of 100 Mbit/s agreed in 21 probes
/// of 36 only, over 4 ms in 36 of 37.
const TRAIN_SECONDS: f64 = 0.004;
const TRAIN_PACKETS: RangeInclusive<f64> = 20.0..=64.0;
const PACKET_BITS: f64 = 12_000.0;

/// Trains leave at this part of the rate that has arrived, so that they do not meet, and at most at so many bits per second:
/// more are not needed.
const TRAINS_PART: f64 = 0.25;
const TRAINS_RATE: f64 = 5e6;

/// Maximum number of trials.
const MOST_TRIALS: usize = 2;

/// Part of the rate of trains, and of what has passed while more was sent, that a trial sends at: a little less, so that no
/// queue builds up. Trains seem up to 8 % faster than the link, since the first packet of each has to wake the receiver.
const BELOW_TRAINS: f64 = 0.9;
const BELOW_PASSING: f64 = 0.95;

/// Without trains, the first trial sends at this multiple of what has arrived, and the second at this multiple of the
/// first.
const ABOVE: f64 = 1.5;

/// No trial sends at more than this multiple of what has arrived, whatever trains or the other side say: a policer lets
/// short bursts through.
const MOST_ABOVE: f64 = 4.0;

/// Part of a set rate at which a trial learns what is lost without congestion.
const FAR_BELOW: f64 = 0.5;

/// Loss beyond the path's own that shows that a rate is too high, absolutely and as a part of the path's own.
const MORE_LOSS: f64 = 0.01;
const MORE_LOSS_PART: f64 = 0.5;

/// Standard deviations by which chance may make two probes differ.
const DEVIATIONS: f64 = 2.5;

/// Fewer packets lost beyond the path's own loss may be a single burst.
const A_BURST: f64 = 8.0;

/// Part of what was sent that arrives where no queue grows.
const ARRIVING: f64 = 0.98;

/// Seconds beyond the minimum round trip, and part of that, from which a queue is standing.
const STANDING: f64 = 0.02;
const STANDING_PART: f64 = 0.1;

/// A sender that gets out less than this part of a set rate is too slow for it.
const SENT: f64 = 0.9;

/// How much faster something has to be to be recommended.
const WORTHWHILE: f64 = 1.25;

/// More than this multiple of the rate of trains cannot arrive: the trains are wrong then.
const DISPROVED: f64 = 1.05;

/// Everything measured in one direction.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Survey {
    /// A transfer with the profile as it is.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// The same with the congestion control `auto`, if the profile has another one and no set rate.
    pub auto: Option<Traffic>,
    /// Packet trains at a low rate.
    pub trains: Option<Traffic>,
    /// Trials of set rates, in order.
    pub trials: Vec<Trial>,
    /// What the line carries, and how that was found out.
    pub line: Option<Line>,
    /// What makes transfers in this direction fastest.
    pub best: Best,
}

/// A short probe at a set rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Trial {
    /// What was measured.
    #[serde(flatten)]
    pub traffic: Traffic,
    /// What it shows.
    pub shows: Shown,
}

/// What a trial shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Shown {
    /// The line carries the rate: what is lost is lost at lower rates, too.
    Carried,
    /// The line carries less: more is lost, or waits in a queue, than at lower rates.
    Exceeded,
    /// The sender was too slow for the rate.
    NotSent,
}

/// The rate of the line, in IP bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Line {
    /// The rate.
    pub rate_bits_per_second: u64,
    /// How it was found out.
    pub method: Method,
}

/// How the rate of the line was found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// By packet trains, and no trial disagrees.
    Trains,
    /// What passes while more is sent: a trial has exceeded it.
    Exceeded,
    /// The highest rate that was tried, all of which passed: the line may carry more.
    AtLeast,
}

/// What makes transfers fastest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "set", content = "bits_per_second")]
pub enum Best {
    /// The profile as it is.
    Nothing,
    /// The congestion control `auto`.
    Auto,
    /// This rate, which has been tried.
    Rate(u64),
    /// A lower rate than the one that was set, which exceeds the line.
    LowerRate(u64),
    /// A set rate was faster, but nothing shows what the line carries.
    Unclear,
}

impl Survey {
    /// Begins with a transfer as the profile is.
    pub(super) const fn new(traffic: Traffic) -> Self {
        Self { traffic, auto: None, trains: None, trials: Vec::new(), line: None, best: Best::Nothing }
    }

    /// Returns the congestion control of the next probe of a path with this minimum round trip in seconds, if another
    /// one is needed.
    pub(super) fn next(&self, profile: &CongestionConfig, min_rtt: f64) -> Option<CongestionConfig> {
        let searches = matches!(profile, CongestionConfig::Auto(_) | CongestionConfig::FixedRate(_));
        if !searches && self.auto.is_none() {
            return Some(CongestionConfig::default());
        }
        let arrived = self.arrived();
        if arrived <= 0.0 || self.is_busy() {
            return None;
        }
        if self.trains.is_none() {
            let (first, last) = (*TRAIN_PACKETS.start(), *TRAIN_PACKETS.end());
            let packets = (TRAIN_SECONDS * arrived / PACKET_BITS).clamp(first, last);
            return Some(at_rate((TRAINS_PART * arrived).min(TRAINS_RATE), packets as u32));
        }
        let most = self.all().map(|traffic| traffic.rate_bits_per_second as f64).fold(0.0, f64::max);
        self.next_rate(min_rtt).map(|rate| at_rate(rate.min(MOST_ABOVE * most), 1))
    }

    /// Takes what the probe measured that [`next`](Self::next) has asked for.
    pub(super) fn add(&mut self, probe: &CongestionConfig, traffic: Traffic, min_rtt: f64) {
        match probe {
            CongestionConfig::FixedRate(config) if config.train > 1 => self.trains = Some(traffic),
            CongestionConfig::FixedRate(_) => {
                let shows = self.shown(&traffic, min_rtt);
                self.trials.push(Trial { traffic, shows });
            }
            _ => self.auto = Some(traffic),
        }
    }

    /// Draws the conclusions from everything that was measured.
    pub(super) fn conclude(&mut self, min_rtt: f64) {
        self.line = self.found(min_rtt);
        self.best = self.fastest(min_rtt);
    }

    /// Returns the IP bytes sent in all probes.
    pub(super) fn bytes_sent(&self) -> u64 {
        self.all().fold(0, |sum, traffic| sum.saturating_add(traffic.bytes_sent))
    }

    /// Returns what was measured at a set rate.
    pub(super) fn tried_at(&self, rate: u64) -> Option<&Traffic> {
        self.trials.iter().map(|trial| &trial.traffic).find(|traffic| traffic.set_bits_per_second == Some(rate))
    }

    fn all(&self) -> impl Iterator<Item = &Traffic> {
        let trials = self.trials.iter().map(|trial| &trial.traffic);
        self.transfers().chain(&self.trains).chain(trials)
    }

    fn transfers(&self) -> impl Iterator<Item = &Traffic> {
        [&self.traffic].into_iter().chain(&self.auto)
    }

    /// Returns the most bits per second that have arrived in a transfer.
    fn arrived(&self) -> f64 {
        self.transfers().map(|traffic| traffic.rate_bits_per_second as f64).fold(0.0, f64::max)
    }

    /// Returns the loss of the probe that has lost least: no rate avoids it. Trains are too few packets to tell.
    fn own_loss(&self) -> f64 {
        let trials = self.trials.iter().map(|trial| &trial.traffic);
        self.transfers().chain(trials).map(|traffic| traffic.loss).fold(1.0, f64::min)
    }

    /// Returns what trains have shown, unless more has arrived than that.
    pub(super) fn link(&self) -> Option<LinkRate> {
        let found = self.trains.iter().chain(self.transfers()).find_map(|traffic| traffic.trains)?;
        let most = self.all().map(|traffic| traffic.rate_bits_per_second).max().unwrap_or_default();
        (most as f64 <= DISPROVED * found.rate.bits_per_second() as f64).then_some(found)
    }

    /// Returns what the line carries if this traffic exceeds it: what arrived, and what was lost behind its queue.
    fn passing(&self, traffic: &Traffic) -> f64 {
        traffic.rate_bits_per_second as f64 / (1.0 - self.own_loss().min(0.9))
    }

    /// Returns what traffic at a set rate shows.
    fn shown(&self, traffic: &Traffic, min_rtt: f64) -> Shown {
        let set = traffic.set_bits_per_second.unwrap_or_default() as f64;
        let sent = traffic.sent_bits_per_second.map_or(set, |sent| sent as f64);
        if sent < SENT * set {
            return Shown::NotSent;
        }
        let is_lossy = self.all().any(|other| loses_more(traffic, other));
        let is_queued = traffic.loaded_rtt.is_some_and(|rtt| rtt > min_rtt * (1.0 + STANDING_PART) + STANDING);
        let is_held_up = (traffic.rate_bits_per_second as f64) < ARRIVING * sent * (1.0 - traffic.loss);
        if is_lossy || (is_queued && is_held_up) { Shown::Exceeded } else { Shown::Carried }
    }

    fn next_rate(&self, min_rtt: f64) -> Option<f64> {
        let arrived = self.arrived();
        if self.trials.len() >= MOST_TRIALS {
            return None;
        }
        if let Some(set) = self.traffic.set_bits_per_second {
            return self.next_below(set as f64, min_rtt);
        }
        match self.trials.last() {
            None => {
                let rate =
                    self.link().map_or(ABOVE * arrived, |found| BELOW_TRAINS * found.rate.bits_per_second() as f64);
                Some(rate)
            }
            Some(trial) if trial.shows == Shown::Exceeded => {
                let passing = BELOW_PASSING * self.passing(&trial.traffic);
                (passing * (1.0 - self.own_loss()) > WORTHWHILE * arrived).then_some(passing)
            }
            Some(trial) if trial.shows == Shown::Carried => {
                let set = trial.traffic.set_bits_per_second? as f64;
                let more = self.link().map_or(ABOVE * set, |found| BELOW_TRAINS * found.rate.bits_per_second() as f64);
                (more > WORTHWHILE * set).then_some(more)
            }
            Some(_) => None,
        }
    }

    /// Returns the rate of a trial where the user has set one: if much is lost, far below it, to see whether that is the
    /// path's own, and then what the line seems to carry.
    fn next_below(&self, set: f64, min_rtt: f64) -> Option<f64> {
        if self.traffic.loss <= MORE_LOSS {
            return None;
        }
        match self.trials.len() {
            0 => Some(FAR_BELOW * set.min(self.arrived())),
            _ if self.shown(&self.traffic, min_rtt) == Shown::Exceeded => {
                Some(BELOW_PASSING * self.passing(&self.traffic))
            }
            _ => None,
        }
    }

    /// Returns whether a machine and not the path limits a transfer.
    fn is_busy(&self) -> bool {
        self.transfers().any(|traffic| matches!(traffic.limited_by, LimitedBy::Source | LimitedBy::Receiver))
    }

    fn found(&self, min_rtt: f64) -> Option<Line> {
        let line = |rate: f64, method| Some(Line { rate_bits_per_second: rate as u64, method });
        let exceeding = self.trials.iter().filter(|trial| trial.shows == Shown::Exceeded).map(|trial| &trial.traffic);
        let is_above = self.traffic.set_bits_per_second.is_some()
            && !self.trials.is_empty()
            && self.shown(&self.traffic, min_rtt) == Shown::Exceeded;
        let exceeding = exceeding.chain(is_above.then_some(&self.traffic)).map(|traffic| self.passing(traffic));
        if let Some(rate) = exceeding.max_by(f64::total_cmp) {
            return line(rate, Method::Exceeded);
        }
        if let Some(found) = self.link() {
            return line(found.rate.bits_per_second() as f64, Method::Trains);
        }
        let carried = self.carried().filter_map(|trial| trial.traffic.set_bits_per_second).max()?;
        line(carried as f64, Method::AtLeast)
    }

    fn carried(&self) -> impl Iterator<Item = &Trial> {
        self.trials.iter().filter(|trial| trial.shows == Shown::Carried)
    }

    fn fastest(&self, min_rtt: f64) -> Best {
        let usual = self.traffic.goodput as f64;
        let auto = self.auto.as_ref().map_or(0.0, |traffic| traffic.goodput as f64);
        let trial = self.carried().max_by_key(|trial| trial.traffic.goodput);
        let rate = trial.and_then(|trial| trial.traffic.set_bits_per_second.zip(Some(trial.traffic.goodput as f64)));
        if self.traffic.set_bits_per_second.is_some() {
            let is_exceeded = !self.trials.is_empty() && self.shown(&self.traffic, min_rtt) == Shown::Exceeded;
            return rate.filter(|_| is_exceeded).map_or(Best::Nothing, |(rate, _)| Best::LowerRate(rate));
        }
        match rate {
            Some((rate, goodput)) if goodput > WORTHWHILE * usual.max(auto) => match self.line {
                Some(Line { method: Method::Trains | Method::Exceeded, .. }) => Best::Rate(rate),
                _ => Best::Unclear,
            },
            _ if auto > WORTHWHILE * usual => Best::Auto,
            _ => Best::Nothing,
        }
    }
}

/// Returns whether more was lost than chance explains beside another probe.
fn loses_more(traffic: &Traffic, other: &Traffic) -> bool {
    let [here, there] = [traffic, other].map(|traffic| traffic.packets.max(1) as f64);
    let both = (traffic.loss * here + other.loss * there) / (here + there);
    let deviation = (both * (1.0 - both) * (1.0 / here + 1.0 / there)).sqrt();
    let more = traffic.loss - other.loss;
    more > MORE_LOSS.max(MORE_LOSS_PART * other.loss) + DEVIATIONS * deviation && more * here > A_BURST
}

/// Returns a probe at about this rate in bits per second, rounded down to one that the options of commands can express.
fn at_rate(rate: f64, train: u32) -> CongestionConfig {
    let unit = if rate >= WHOLE_MEGABITS { 1_000_000 } else { 1_000 };
    let rate = Rate::from_bits_per_second((rate as u64 / unit * unit).max(unit));
    CongestionConfig::FixedRate(FixedRateConfig { rate, train, ..FixedRateConfig::default() })
}
