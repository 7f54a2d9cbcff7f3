//! The reference cases: how close the engine comes to the floor (docs/design/floor.md), always measured the same way.
//!
//! They make up the table of `cargo run --release -p downpour-sim --example floor`, of the benchmarks, and of a snapshot in the
//! tests.

use crate::{Case, Coding, Ending};
use std::fmt;
use std::time::Duration;
use transport::ConnectingSide;
use transport::Profile;

/// A case with a name and a target.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Its name in tables.
    pub name: String,
    /// The transfer.
    pub case: Case,
    /// The largest multiple of its floor that the median may take; `None`: only watched.
    pub target: Option<f64>,
}

/// The results of a case for some seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The case's name.
    pub name: String,
    /// Number of runs.
    pub seeds: u64,
    /// The least time the transfer can take, in seconds.
    pub floor: f64,
    /// The median run's time from the first datagram to the receiver's last byte, in seconds.
    pub median: f64,
    /// The slowest run's, in seconds.
    pub worst: f64,
    /// IP bytes that the sender had sent when the receiver had everything, per byte of the object, in the median run.
    pub wire: f64,
    /// IP bytes that it sent after that, likewise.
    pub after: f64,
    /// Runs that did not close with identical bytes.
    pub failed: u64,
    /// The largest multiple of its floor that the median may take; `None`: only watched.
    pub target: Option<f64>,
}

/// Returns the nine cases that have targets: a given rate of 100 Mbit/s, a queue of 256 KB, loss in both directions,
/// the sender connects.
pub fn cases() -> Vec<Reference> {
    let cases = [
        (10_000_000, 25, 0, Some(1.05)),
        (10_000_000, 25, 1, Some(1.05)),
        (10_000_000, 25, 5, Some(1.05)),
        (10_000_000, 25, 10, Some(1.08)),
        (10_000_000, 300, 2, Some(1.12)),
        (1_000_000, 100, 0, None),
        (1_000_000, 100, 1, None),
        (1_000_000, 100, 5, Some(1.25)),
        (1_000_000, 100, 10, None),
    ];
    let reference = |(size, delay, loss, target): (u64, u64, u32, Option<f64>)| Reference {
        name: format!("{} MB, RTT {} ms, {loss} %", size / 1_000_000, 2 * delay),
        case: case(size, &format!("rate=100M,delay={delay}ms,queue=256KB,loss={loss}%")),
        target,
    };
    cases.into_iter().map(reference).collect()
}

/// Returns cases without targets, so that no change of the engine makes them worse unnoticed.
pub fn watched() -> Vec<Reference> {
    let fixed = |name: &str, link: &str| (name.to_owned(), case(10_000_000, link));
    let base = "rate=100M,delay=25ms,queue=256KB,loss=1%";
    let named = [
        fixed("10 Mbit/s", "rate=10M,delay=25ms,queue=64KB,loss=1%"),
        fixed("1 Gbit/s", "rate=1G,delay=25ms,queue=2MB,loss=1%"),
        fixed("bursts of 5", "rate=100M,delay=25ms,queue=256KB,loss=2%,burst=5"),
        fixed("jitter of 10 ms", "rate=100M,delay=25ms,queue=256KB,loss=1%,jitter=10ms"),
        fixed("5 % reordered by 5 ms", "rate=100M,delay=25ms,queue=256KB,loss=1%,reorder=5%:5ms"),
        fixed("queue of 16 KB", "rate=100M,delay=25ms,queue=16KB,loss=1%"),
        fixed("2 % duplicated", "rate=100M,delay=25ms,queue=256KB,loss=1%,duplicate=2%"),
        fixed("30 % lost", "rate=100M,delay=25ms,queue=256KB,loss=30%"),
        fixed("1 ms", "rate=100M,delay=500us,queue=256KB,loss=1%"),
        ("receiver connects".into(), Case { connector: ConnectingSide::Receiver, ..case(10_000_000, base) }),
        ("coding takes 5 ms".into(), Case { coding: Coding::each(Duration::from_millis(5)), ..case(10_000_000, base) }),
        ("100 kB".into(), case(100_000, base)),
        ("told nothing, no loss".into(), searching(systems::auto(), "rate=100M,delay=25ms,queue=256KB")),
        ("told nothing, 1 %".into(), searching(systems::auto(), base)),
        ("arq, no loss".into(), searching(systems::arq::profile(), "rate=100M,delay=25ms,queue=256KB")),
        ("arq, 1 %".into(), searching(systems::arq::profile(), base)),
    ];
    named.map(|(name, case)| Reference { name, case, target: None }).into()
}

fn case(size: u64, link: &str) -> Case {
    Case { size, ..Case::new(link.parse().expect("the text is written here")) }
}

fn searching(profile: Profile, link: &str) -> Case {
    Case { profile, ..case(10_000_000, link) }
}

/// Runs the cases with targets with `seeds` seeds each, from 1 on.
pub fn rows(seeds: u64) -> Vec<Row> {
    cases().iter().map(|reference| reference.run(seeds)).collect()
}

impl Reference {
    /// Runs this case with `seeds` seeds, from 1 on.
    pub fn run(&self, seeds: u64) -> Row {
        let (mut times, mut wire, mut after, mut failed) = (Vec::new(), Vec::new(), Vec::new(), 0);
        for seed in 1..=seeds {
            let outcome = self.case.run(seed);
            failed += u64::from(!outcome.is_identical() || outcome.ending != Ending::Closed);
            times.push(outcome.completed_secs());
            let per_byte = |bytes: u64| bytes as f64 / self.case.size as f64;
            wire.push(per_byte(outcome.bytes_until_complete));
            after.push(per_byte(outcome.sender.packets.bytes_sent - outcome.bytes_until_complete));
        }
        Row {
            name: self.name.clone(),
            seeds,
            floor: self.case.floor().as_secs_f64(),
            worst: times.iter().copied().fold(0.0, f64::max),
            median: median(times),
            wire: median(wire),
            after: median(after),
            failed,
            target: self.target,
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

impl Row {
    /// Titles of the columns that [`Row`] prints.
    pub const HEADER: &str =
        "case                      floor s  median s  x floor  worst x   target  wire/byte  after/byte  failed";

    /// Returns the median, as a multiple of the floor.
    pub fn median_factor(&self) -> f64 {
        self.median / self.floor
    }

    /// Returns the worst run, as a multiple of the floor.
    pub fn worst_factor(&self) -> f64 {
        self.worst / self.floor
    }

    /// Returns whether no run failed and the median is within the target, if any.
    pub fn is_met(&self) -> bool {
        self.failed == 0 && self.target.is_none_or(|target| self.median_factor() <= target)
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, floor, median, wire, after, failed, .. } = self;
        let target = self.target.map_or_else(|| "-".to_owned(), |target| format!("{target:.2}"));
        let (factor, worst) = (self.median_factor(), self.worst_factor());
        write!(f, "{name:24} {floor:8.3} {median:9.3} {factor:8.3} {worst:8.3} {target:>8}")?;
        write!(f, " {wire:10.4} {after:11.4} {failed:7}")
    }
}
