//! HyStart++ (RFC 9406): ends slow start when the round-trip time rises, before the queue overflows.

use crate::recovery::report::Report;
use crate::time::Time;
use std::time::Duration;

/// RFC 9406 section 4.3. Paths shorter than 8 ms have too few samples in a round, and keep classic slow start.
const SAMPLES: u32 = 8;
const MIN_RISE: Duration = Duration::from_millis(4);
const MAX_RISE: Duration = Duration::from_millis(16);
const RISE_DIVISOR: u32 = 8;
const CAUTIOUS_DIVISOR: f64 = 4.0;
const CAUTIOUS_ROUNDS: u32 = 5;

/// The first slow start of a path. L, the RFC's cap on growth per acknowledgement, is infinite: we pace.
#[derive(Debug, Default)]
pub(super) struct HyStart {
    /// The round ends when a packet sent at this time or later is acknowledged.
    round_start: Time,
    samples: u32,
    minimum: Option<Duration>,
    last_minimum: Option<Duration>,
    /// Conservative slow start, after a rise of the round-trip time.
    cautious: Option<Cautious>,
}

#[derive(Debug)]
struct Cautious {
    /// The round-trip time below which the rise was spurious.
    baseline: Duration,
    rounds: u32,
}

impl HyStart {
    /// Takes the round-trip time sample of a report. Returns true when slow start has ended.
    pub(super) fn on_report(&mut self, report: &Report<'_>) -> bool {
        let over =
            report.delivered.last().is_some_and(|sent| sent.time >= self.round_start) && self.end_round(report.now);
        if let Some(rtt) = report.rtt {
            self.samples += 1;
            let minimum = self.minimum.map_or(rtt, |minimum| minimum.min(rtt));
            self.minimum = Some(minimum);
            if self.samples >= SAMPLES {
                self.judge(minimum);
            }
        }
        over
    }

    fn end_round(&mut self, now: Time) -> bool {
        self.round_start = now;
        self.last_minimum = self.minimum.take();
        self.samples = 0;
        self.cautious.as_mut().is_some_and(|cautious| {
            cautious.rounds += 1;
            cautious.rounds >= CAUTIOUS_ROUNDS
        })
    }

    fn judge(&mut self, minimum: Duration) {
        match &self.cautious {
            Some(cautious) if minimum < cautious.baseline => self.cautious = None,
            Some(_) => {}
            None => {
                let rose = |last: Duration| minimum >= last + (last / RISE_DIVISOR).clamp(MIN_RISE, MAX_RISE);
                if self.last_minimum.is_some_and(rose) {
                    self.cautious = Some(Cautious { baseline: minimum, rounds: 0 });
                }
            }
        }
    }

    /// Returns the divisor of the growth in slow start.
    pub(super) fn divisor(&self) -> f64 {
        if self.cautious.is_some() { CAUTIOUS_DIVISOR } else { 1.0 }
    }
}
