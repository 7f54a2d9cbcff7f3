//! Judges the figures: the bottleneck, and the expected transfer times.

use std::time::Duration;

use transport::{ConnectingSide, Rate, SendLimit, transfer_floor};

use super::checkup::{Checkup, DoctorVerdict, Forecast, ForecastLimit, Side, Speed};
use super::machine::Machine;
use super::meter::{ThreadShare, Traffic};

/// Share of a core's time, used or waited for, from which a thread is at its limit: every thread has idle moments.
const FULL: f64 = 0.85;

/// The sizes that are forecast if none is requested.
const USUAL_SIZES: [u64; 3] = [1_000_000_000, 100_000_000_000, 1_000_000_000_000];

/// Number of small files that are forecast, and bytes in each.
const SMALL_FILES: u64 = 100_000;
const SMALL_FILE: u64 = 4_000;

/// The figures of one direction.
struct Lane<'a> {
    traffic: Traffic,
    source: (Side, &'a Machine),
    target: (Side, &'a Machine),
    connector: ConnectingSide,
    rtt: Duration,
    over_ssh: bool,
    is_capped: bool,
}

/// Judges a checkup by its findings. `is_capped`: the profile has a fixed rate or a rate limit.
pub(super) fn judge(checkup: &Checkup, is_capped: bool, size: Option<u64>) -> DoctorVerdict {
    let rtt = checkup.min_rtt.map_or(Duration::ZERO, |rtt| Duration::try_from_secs_f64(rtt).unwrap_or_default());
    let (local, remote, over_ssh) = ((Side::Local, &checkup.local), (Side::Remote, &checkup.remote), checkup.over_ssh);
    let measured = |traffic: &Option<Traffic>| {
        traffic.clone().filter(|traffic| traffic.goodput > 0 && traffic.rate_bits_per_second > 0)
    };
    let up = measured(&checkup.up).map(|traffic| Lane {
        traffic,
        source: local,
        target: remote,
        connector: ConnectingSide::Sender,
        rtt,
        over_ssh,
        is_capped,
    });
    let down = measured(&checkup.down).map(|traffic| Lane {
        traffic,
        source: remote,
        target: local,
        connector: ConnectingSide::Receiver,
        rtt,
        over_ssh,
        is_capped,
    });
    let forecast = |files, bytes| {
        let seconds = |lane: &Option<Lane<'_>>| lane.as_ref().map(|lane| lane.seconds(files, bytes));
        Forecast { files, bytes, up: seconds(&up), down: seconds(&down) }
    };
    let sizes = size.map_or_else(|| USUAL_SIZES.to_vec(), |size| vec![size]);
    let mut forecasts: Vec<Forecast> = sizes.into_iter().map(|bytes| forecast(1, bytes)).collect();
    forecasts.push(forecast(SMALL_FILES, SMALL_FILES * SMALL_FILE));
    DoctorVerdict { up: up.map(|lane| lane.speed()), down: down.map(|lane| lane.speed()), forecasts }
}

impl Lane<'_> {
    /// Returns the slower one of the disks, in bytes per second.
    fn disk(&self) -> Option<(Side, u64)> {
        let read = self.source.1.disk.read.map(|rate| (self.source.0, rate));
        let write = self.target.1.disk.write.map(|rate| (self.target.0, rate));
        [read, write].into_iter().flatten().filter(|(_, rate)| *rate > 0).min_by_key(|(_, rate)| *rate)
    }

    fn speed(&self) -> Speed {
        let goodput = self.traffic.goodput;
        match self.disk() {
            Some((side, rate)) if rate < goodput => Speed { goodput: rate, bottleneck: ForecastLimit::Disk(side) },
            _ => Speed { goodput, bottleneck: self.carrier() },
        }
    }

    /// Returns the bottleneck between the disks.
    fn carrier(&self) -> ForecastLimit {
        let full = |share: Option<ThreadShare>| share.is_some_and(|share| share.running + share.waiting >= FULL);
        if self.is_capped && self.traffic.limited_by == SendLimit::Pacing {
            ForecastLimit::ConfiguredRate
        } else if full(self.traffic.sender) {
            ForecastLimit::Cpu(self.source.0)
        } else if full(self.traffic.receiver) || self.traffic.limited_by == SendLimit::Receiver {
            ForecastLimit::Cpu(self.target.0)
        } else if self.traffic.limited_by == SendLimit::Source {
            ForecastLimit::Cpu(self.source.0)
        } else if self.over_ssh {
            ForecastLimit::Ssh
        } else {
            ForecastLimit::Network
        }
    }

    /// Returns the duration: the network's floor (`docs/design/floor.md`), or that of the disks if it is longer.
    fn seconds(&self, files: u64, bytes: u64) -> f64 {
        let arrived = Rate::from_bits_per_second(self.traffic.rate_bits_per_second);
        let network = transfer_floor(bytes, arrived, self.rtt, 0.0, self.connector).as_secs_f64();
        let disk = self.disk().map_or(0.0, |(_, rate)| bytes as f64 / rate as f64);
        let made = self.target.1.disk.small_files.filter(|rate| *rate > 0);
        let names = made.map_or(0.0, |rate| files as f64 / rate as f64);
        network.max(disk).max(names)
    }
}
