//! Whether a run shows what the model says, or what the machine could not do.
//!
//! A run is valid if
//! - 99 % of its packets were handed over within 0.5 ms of when the model says, or 2 % of the round-trip time where that is longer,
//! - the latest was within 10 ms, or 20 % of the round-trip time,
//! - no packet was lost but those that the model drops: none for want of room in a ring, none on a cable, none refused by the kernel,
//! - all had usable stamps, and were for somebody.

use std::fmt;
use std::time::Duration;

use crate::emulated::Observation;
use crate::space::InterfaceCounts;

const LATE_99: Duration = Duration::from_micros(500);
const LATEST: Duration = Duration::from_millis(10);

/// What can be said of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Why it is not valid; empty if it is.
    pub faults: Vec<Fault>,
}

/// Something that the model did not ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One packet in a hundred was later than the limit.
    Late {
        /// The 99th percentile.
        lateness: Duration,
        /// What it may be.
        limit: Duration,
    },
    /// A packet was later than the limit.
    Latest {
        /// The largest lateness.
        lateness: Duration,
        /// What it may be.
        limit: Duration,
    },
    /// Packets that the emulator did not fetch in time.
    RingDrops(u64),
    /// Packets that left a host, or were handed to one, and never got there.
    Unexplained(u64),
    /// Packets that the kernel did not take from the emulator.
    SendFailures(u64),
    /// Packets that were no IPv4, too large, or for nobody.
    Refused(u64),
    /// Packets whose time of arrival is not known.
    Unstamped(u64),
}

impl Verdict {
    /// Judges a run.
    pub fn of(run: &Observation) -> Self {
        let report = &run.report;
        let mut faults = Vec::new();
        let (lateness, limit) = (report.lateness.percentile(99), LATE_99.max(run.round_trip / 50));
        if lateness > limit {
            faults.push(Fault::Late { lateness, limit });
        }
        let (lateness, limit) = (report.lateness.largest(), LATEST.max(run.round_trip / 5));
        if lateness > limit {
            faults.push(Fault::Latest { lateness, limit });
        }
        let counted = [
            (report.ring_drops, Fault::RingDrops as fn(u64) -> Fault),
            (unexplained(run), Fault::Unexplained),
            (report.send_failures, Fault::SendFailures),
            (report.refused, Fault::Refused),
            (report.unstamped, Fault::Unstamped),
        ];
        faults.extend(counted.into_iter().filter(|&(count, _)| count > 0).map(|(count, fault)| fault(count)));
        Self { faults }
    }

    /// Whether the run shows what the model says.
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Packets that went into a cable at one end and did not come out at the other, beyond what has a count of its own.
pub(crate) fn unexplained(run: &Observation) -> u64 {
    let lost = |((near, far), handed): (&(InterfaceCounts, InterfaceCounts), &u64)| {
        handed.saturating_sub(far.received)
            + [near.send_drops, near.receive_drops, far.send_drops, far.receive_drops].iter().sum::<u64>()
    };
    run.cables.iter().zip(&run.report.handed).map(lost).sum()
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_valid() {
            return f.write_str("valid");
        }
        f.write_str("INVALID: ")?;
        for (number, fault) in self.faults.iter().enumerate() {
            if number > 0 {
                f.write_str("; ")?;
            }
            write!(f, "{fault}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Late { lateness, limit } => {
                write!(f, "1 packet in 100 was more than {} late (limit {})", millis(lateness), millis(limit))
            }
            Self::Latest { lateness, limit } => {
                write!(f, "a packet was {} late (limit {})", millis(lateness), millis(limit))
            }
            Self::RingDrops(count) => write!(f, "the emulator was too slow for {count} packets"),
            Self::Unexplained(count) => write!(f, "{count} packets were lost that the model did not drop"),
            Self::SendFailures(count) => write!(f, "the kernel did not take {count} packets"),
            Self::Refused(count) => write!(f, "{count} packets were no IPv4, too large, or for nobody"),
            Self::Unstamped(count) => write!(f, "{count} packets had no usable time stamp (was the clock set?)"),
        }
    }
}

/// A time as text, in milliseconds.
fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
