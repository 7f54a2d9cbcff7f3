//! The validity of a run: whether it shows the model rather than the limits of the machine.
//!
//! A run is valid if for each pair of hosts
//! - 99 % of its packets were delivered within 0.5 ms of the model's time, or 2 % of its round-trip time if that is
//!   longer,
//! - the latest was within 10 ms, or 20 % of the round-trip time,
//!
//! and if
//! - over fast cables, which have no stamps, 99 % of the packets waited at most that 0.5 ms or 2 % before they were
//!   seen, and none longer than 2 ms, or 5 %: packets that seem to arrive at once overflow a queue that was never full
//!   (the round trip is that of the nearest pair),
//! - no packet was lost except those that the model drops: none in a full ring, none on a cable, none refused by the
//!   kernel,
//! - all had usable stamps, and a destination.

use std::fmt;
use std::time::Duration;

use crate::emulated::Observation;
use crate::testbed::InterfaceCounts;

const LATE_99: Duration = Duration::from_micros(500);
const LATEST: Duration = Duration::from_millis(10);
const LONGEST_UNSEEN: Duration = Duration::from_millis(2);

/// The verdict on a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunValidity {
    /// The faults; empty for a valid run.
    pub faults: Vec<Fault>,
}

/// A deviation from the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One packet in a hundred was later than the limit.
    Late {
        /// The 99th percentile.
        lateness: Duration,
        /// The limit.
        limit: Duration,
    },
    /// A packet was later than the limit.
    Latest {
        /// The largest lateness.
        lateness: Duration,
        /// The limit.
        limit: Duration,
    },
    /// One packet in a hundred may have waited longer than the limit before the emulator saw it.
    Unseen {
        /// The 99th percentile.
        unseen: Duration,
        /// The limit.
        limit: Duration,
    },
    /// A packet may have waited longer than the limit before the emulator saw it.
    LongestUnseen {
        /// The longest.
        unseen: Duration,
        /// The limit.
        limit: Duration,
    },
    /// Packets that the emulator did not fetch in time.
    RingDrops(u64),
    /// Packets that left a host, or were sent to one, and never arrived.
    Unexplained(u64),
    /// Packets from the emulator that the kernel did not accept.
    SendFailures(u64),
    /// Packets that were not IPv4, too large, or without a destination.
    Refused(u64),
    /// Packets whose time of arrival is unknown.
    Unstamped(u64),
}

impl RunValidity {
    /// Judges a run.
    pub fn of(run: &Observation) -> Self {
        let report = &run.report;
        let mut faults = Vec::new();
        let round_trips = run.round_trips();
        let mut timed = Vec::new();
        for (hosts, round_trip) in &round_trips {
            let (limit, limit_all) = (LATE_99.max(*round_trip / 50), LATEST.max(*round_trip / 5));
            let lateness = report.lateness_at(hosts.iter().copied());
            let (late, latest) = (lateness.percentile(99), lateness.largest());
            timed.push((late > limit, Fault::Late { lateness: late, limit }));
            timed.push((latest > limit_all, Fault::Latest { lateness: latest, limit: limit_all }));
        }
        let shortest = round_trips.iter().map(|(_, round_trip)| *round_trip).min().unwrap_or_default();
        let (limit, limit_longest) = (LATE_99.max(shortest / 50), LONGEST_UNSEEN.max(shortest / 20));
        let (unseen, longest) = (report.unseen.percentile(99), report.unseen.largest());
        timed.push((unseen > limit, Fault::Unseen { unseen, limit }));
        timed.push((longest > limit_longest, Fault::LongestUnseen { unseen: longest, limit: limit_longest }));
        faults.extend(timed.into_iter().filter(|&(exceeds, _)| exceeds).map(|(_, fault)| fault));
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

    /// Returns whether the run is valid.
    pub fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }
}

/// Returns the packets that entered a cable at one end and did not leave it at the other, except those counted
/// otherwise.
pub(crate) fn unexplained(run: &Observation) -> u64 {
    let lost = |((near, far), pieces): (&(InterfaceCounts, InterfaceCounts), &u64)| {
        pieces.saturating_sub(far.received)
            + [near.send_drops, near.receive_drops, far.send_drops, far.receive_drops].iter().sum::<u64>()
    };
    run.cables.iter().zip(&run.report.pieces).map(lost).sum()
}

impl fmt::Display for RunValidity {
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
            Self::Unseen { unseen, limit } => {
                write!(
                    f,
                    "1 packet in 100 may have waited {} before it was seen (limit {})",
                    millis(unseen),
                    millis(limit)
                )
            }
            Self::LongestUnseen { unseen, limit } => {
                write!(f, "a packet may have waited {} before it was seen (limit {})", millis(unseen), millis(limit))
            }
            Self::RingDrops(count) => write!(f, "the emulator was too slow for {count} packets"),
            Self::Unexplained(count) => write!(f, "{count} packets were lost that the model did not drop"),
            Self::SendFailures(count) => write!(f, "the kernel rejected {count} packets"),
            Self::Refused(count) => {
                write!(f, "{count} packets had no known destination, were not IPv4, or were too large")
            }
            Self::Unstamped(count) => write!(f, "{count} packets had no usable time stamp (was the clock set?)"),
        }
    }
}

/// Formats a time in milliseconds.
fn millis(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use linkrelay::Lateness;

    use super::*;
    use crate::emulator::{EmulatorReport, Scheduling};

    /// Returns a run without faults, except that packets may have waited these numbers of microseconds.
    fn run(unseen_micros: impl Iterator<Item = u64>) -> Observation {
        let mut unseen = Lateness::default();
        unseen_micros.for_each(|micros| unseen.add(Duration::from_micros(micros)));
        let report = EmulatorReport {
            links: Vec::new(),
            lateness: vec![Lateness::default()],
            traffic: Vec::new(),
            waits: Vec::new(),
            unseen,
            handed: vec![900],
            pieces: vec![100],
            ring_drops: 0,
            send_failures: 0,
            refused: 0,
            unstamped: 0,
            elapsed: Duration::from_secs(1),
            cpu: Duration::ZERO,
            scheduling: Scheduling::Ordinary,
        };
        let cables = vec![(InterfaceCounts::default(), InterfaceCounts { received: 100, ..Default::default() })];
        let delays = vec![[Duration::from_millis(25); 2]];
        Observation { report, cables, links: Vec::new(), pairs: vec![(0, 1)], delays }
    }

    #[test]
    fn long_unseen_waits_make_a_run_invalid() {
        let faults = |micros: &[u64]| RunValidity::of(&run(micros.iter().copied())).faults;
        let fine = [999; 99];
        assert_eq!(faults(&[&fine[..], &[2500]].concat()), []);
        let (unseen, limit) = (Duration::from_micros(2501), Duration::from_micros(2500));
        assert_eq!(faults(&[&fine[..], &[2501]].concat()), [Fault::LongestUnseen { unseen, limit }]);
        let (unseen, limit) = (Duration::from_micros(1001), Duration::from_millis(1));
        assert_eq!(faults(&[&fine[..], &[1001; 2]].concat()), [Fault::Unseen { unseen, limit }]);
    }

    #[test]
    fn limits_depend_on_the_round_trip_of_each_pair() {
        let mut run = run(std::iter::empty());
        run.pairs = vec![(0, 1), (2, 3)];
        run.delays = vec![[Duration::from_millis(25); 2], [Duration::from_millis(5); 2]];
        run.report.lateness = vec![Lateness::default(); 4];
        let late = |run: &mut Observation, host: usize| {
            (0..50).for_each(|_| run.report.lateness[host].add(Duration::from_micros(800)));
        };
        late(&mut run, 0);
        assert_eq!(RunValidity::of(&run).faults, [], "within 2 % of 50 ms");
        late(&mut run, 3);
        let (lateness, limit) = (Duration::from_micros(800), Duration::from_micros(500));
        assert_eq!(RunValidity::of(&run).faults, [Fault::Late { lateness, limit }]);
    }

    #[test]
    fn missing_frames_are_unexplained() {
        let mut run = run(std::iter::empty());
        assert!(RunValidity::of(&run).is_valid());
        run.cables[0].1 = InterfaceCounts { received: 98, send_drops: 3, ..InterfaceCounts::default() };
        assert_eq!(RunValidity::of(&run).faults, [Fault::Unexplained(5)]);
    }
}
